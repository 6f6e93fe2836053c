"""What lies above a threshold: counted on small maps by hand."""

from __future__ import annotations

import numpy as np

from inspector.cam.report import Crop
from inspector.render.colour_maps import diverging_table, signed_colours
from inspector.render.outline import above, draw_box, draw_outline, measure_outline

WHOLE = Crop(left=0, top=0, width=6, height=4, picture_width=6, picture_height=4)


def _heat() -> np.ndarray:
    heat = np.zeros((4, 6), dtype=np.float32)
    heat[1:3, 1:4] = 0.8  # six pixels
    heat[0, 5] = 1.0  # one, apart from them
    return heat


def test_the_box_is_around_the_largest_part_and_the_share_is_of_all() -> None:
    mask = above(_heat(), WHOLE, 0.5)
    found = measure_outline(mask, WHOLE)
    assert found.box == (1, 1, 4, 3)
    assert found.share == 7 / 24


def test_the_threshold_itself_is_above_it() -> None:
    assert above(_heat(), WHOLE, 0.8).sum() == 7
    assert above(_heat(), WHOLE, 0.81).sum() == 1


def test_nothing_above_has_no_box() -> None:
    found = measure_outline(above(np.zeros((4, 6), dtype=np.float32), WHOLE, 0.5), WHOLE)
    assert (found.share, found.box) == (0.0, None)


def test_the_outline_lies_where_the_crop_lies() -> None:
    crop = Crop(left=10, top=20, width=6, height=4, picture_width=40, picture_height=50)
    mask = above(_heat(), crop, 0.5)
    assert mask.shape == (50, 40)
    assert measure_outline(mask, crop).box == (11, 21, 14, 23)
    assert not mask[:20].any()
    assert not mask[:, :10].any()


def test_drawing_leaves_the_picture_itself_alone_and_changes_only_near_the_outline() -> None:
    picture = np.full((60, 60, 3), 90, dtype=np.uint8)
    mask = np.zeros((60, 60), dtype=np.bool_)
    mask[20:40, 20:40] = True
    drawn = draw_outline(picture, mask, (20, 20, 40, 40))
    assert (picture == 90).all()
    changed = (drawn != 90).any(axis=2)
    assert changed[20, 20:40].all()
    assert not changed[:17].any()
    assert not changed[25:35, 25:35].any()


def test_a_box_is_drawn_on_its_edges_alone() -> None:
    picture = np.full((60, 60, 3), 90, dtype=np.uint8)
    drawn = draw_box(picture, (10, 20, 50, 40))
    assert (picture == 90).all()
    lines = (drawn == 255).all(axis=2)
    assert lines[20, 10:50].all()
    assert lines[39, 10:50].all()
    assert lines[20:40, 10].all()
    assert lines[20:40, 49].all()
    assert lines.sum() == 2 * 40 + 2 * 18
    # Detectors name places beyond the picture, too.
    assert (draw_box(picture, (-5, -5, 80, 90)) == 90).all()


def test_signed_colours_are_white_at_zero_and_mirror_in_strength() -> None:
    colours = signed_colours(np.array([-1.0, 0.0, 1.0, np.nan, 5.0]))
    assert colours[1].tolist() == colours[3].tolist() == [247, 247, 247]
    assert colours[0].tolist() == [8, 48, 107]
    assert colours[2].tolist() == colours[4].tolist() == [127, 39, 4]
    assert len(diverging_table()) == 257
