"""The overlay lies where the model looked, at the strength that was asked for, and nowhere else."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from inspector.cam.exporting.blend import Blend
from inspector.cam.report import Crop, Explanation, LayerProposal, Preprocessing, Score
from inspector.errors import UsageError
from inspector.render.colour_maps import COLOUR_MAPS, colour_table, coloured, diverging_table, signed_colours
from inspector.render.overlay import crop_pixels, heat_picture, lay_over, overlay, png_bytes, resample


def explanation(heat: np.ndarray, crop: Crop) -> Explanation:
    layer = LayerProposal(
        path="conv", kind="Conv2d", shape=(1, 2, 2), layout="NCHW", prefix_tokens=0, grid=(2, 2), rank=1, reason=""
    )
    steps = Preprocessing(
        resize=None,
        crop=None,
        mean=(0.0,),
        std=(1.0,),
        channels=1,
        interpolation="bilinear",
        source="",
        assumed=False,
    )
    return Explanation(
        heat=heat.astype(np.float32),
        raw=heat.astype(np.float32),
        method="grad-cam",
        layer=layer,
        target=Score(index=0, name=None, logit=0.0, probability=1.0),
        scores=(),
        raw_minimum=0.0,
        raw_maximum=1.0,
        negative_share=0.0,
        preprocessing=steps,
        crop=crop,
        findings=(),
        versions=(),
        seconds=0.0,
    )


def crop_of(left: float, top: float, width: float, height: float, picture: tuple[int, int]) -> Crop:
    return Crop(left=left, top=top, width=width, height=height, picture_width=picture[0], picture_height=picture[1])


@pytest.fixture
def picture() -> Image.Image:
    """12 wide, 8 high, seeded noise."""
    return Image.fromarray(np.random.default_rng(2).integers(0, 256, (8, 12, 3), dtype=np.uint8))


def test_blend_by_hand_inside_and_untouched_outside(picture: Image.Image) -> None:
    before = np.asarray(picture).copy()
    found = overlay(
        picture, explanation(np.ones((4, 4)), crop_of(3, 2, 4, 4, (12, 8))), opacity=0.25, blend=Blend.UNIFORM
    )
    inside = np.zeros((8, 12), dtype=bool)
    inside[2:6, 3:7] = True
    top = colour_table("viridis")[255].astype(float)
    assert np.array_equal(found[~inside], before[~inside])
    assert np.array_equal(found[inside], np.rint(0.75 * before[inside] + 0.25 * top).astype(np.uint8))
    assert np.array_equal(np.asarray(picture), before)


def test_opacity_ends(picture: Image.Image) -> None:
    heat = np.linspace(0, 1, 96).reshape(8, 12)
    whole = explanation(heat, crop_of(0, 0, 12, 8, (12, 8)))
    assert np.array_equal(overlay(picture, whole, opacity=0.0), np.asarray(picture))
    # At the picture's own size nothing is resampled: the heat's colours stand pixel by pixel, not squared.
    assert np.array_equal(
        overlay(picture, whole, opacity=1.0, colour_map="magma", blend=Blend.UNIFORM), coloured(heat, "magma")
    )
    assert np.array_equal(heat_picture(whole, colour_map="magma"), coloured(heat.astype(np.float32), "magma"))


def test_opacity_follows_heat_so_that_cold_places_are_exactly_the_picture(picture: Image.Image) -> None:
    before = np.asarray(picture).astype(float)
    heat = np.zeros((8, 12))
    heat[2, 3], heat[4, 5], heat[6, 7] = 1.0, 0.5, np.nan
    found = overlay(picture, explanation(heat, crop_of(0, 0, 12, 8, (12, 8))), opacity=0.6)
    cold = np.nan_to_num(heat) == 0
    assert np.array_equal(found[cold], before[cold])
    table = colour_table("viridis").astype(float)
    # Half the heat is half the opacity: 0.6 x 0.5 of the colour's middle.
    assert np.abs(found[4, 5] - (0.7 * before[4, 5] + 0.3 * table[128])).max() <= 0.51
    assert np.abs(found[2, 3] - (0.4 * before[2, 3] + 0.6 * table[255])).max() <= 0.51
    # As it was drawn before, and as an option still: the same share everywhere, so that nothing keeps its colour.
    even = overlay(picture, explanation(heat, crop_of(0, 0, 12, 8, (12, 8))), opacity=0.6, blend="uniform")
    assert np.abs(even[cold] - (0.4 * before[cold] + 0.6 * table[0])).max() <= 0.51


def test_a_signed_field_is_as_opaque_as_it_is_far_from_zero(picture: Image.Image) -> None:
    field = np.zeros((8, 12), dtype=np.float32)
    field[0, 0], field[0, 1] = -1.0, -0.25
    found = lay_over(picture, field, crop_of(0, 0, 12, 8, (12, 8)), signed_colours, opacity=1.0)
    before = np.asarray(picture)
    assert np.array_equal(found[1:], before[1:])
    assert found[0, 0].tolist() == diverging_table()[0].tolist()
    mixed = 0.75 * before[0, 1] + 0.25 * diverging_table()[96].astype(float)
    assert np.abs(found[0, 1] - mixed).max() <= 0.51


def test_a_hot_pixel_lands_where_the_model_saw_it() -> None:
    """The model sees the middle of a 400 x 200 picture at half the size; its pixel (30, 50) is there at (80, 220)."""
    heat = np.zeros((80, 80))
    heat[30, 50] = 1.0
    found = explanation(heat, crop_of(120, 20, 160, 160, (400, 200)))
    black = Image.new("RGB", (400, 200))
    drawn = overlay(black, found, opacity=1.0, colour_map="inferno").astype(int).sum(axis=2)
    rows, columns = np.nonzero(drawn == drawn.max())
    # Model pixel r covers original rows 20 + 2r and the next.
    assert sorted(set(rows)) == [80, 81]
    assert sorted(set(columns)) == [220, 221]


def test_fractional_crops_hold_the_pixels_whose_centres_are_inside() -> None:
    rows, columns = crop_pixels(crop_of(1.4, 0.6, 3.2, 2.0, (10, 10)))
    assert (rows, columns) == (range(1, 3), range(1, 5))  # 1.5..4.5 lie in [1.4, 4.6); 1.5, 2.5 in [0.6, 2.6)
    assert crop_pixels(crop_of(-5, -5, 30, 30, (10, 10))) == (range(10), range(10))


def test_resample_is_linear_between_centres() -> None:
    row = np.array([[0.0, 1.0]], dtype=np.float32)
    assert resample(row, range(8), 0.0, 8.0, axis=1)[0].tolist() == [0, 0, 0.125, 0.375, 0.625, 0.875, 1, 1]
    # The crop hangs two pixels over the left edge.
    assert resample(row, range(6), -2.0, 8.0, axis=1)[0].tolist() == [0.125, 0.375, 0.625, 0.875, 1, 1]
    assert resample(row.T, range(8), 0.0, 8.0, axis=0)[:, 0].tolist() == [0, 0, 0.125, 0.375, 0.625, 0.875, 1, 1]


def test_tall_pictures_are_blended_in_pieces_without_seams() -> None:
    heat = np.linspace(0, 1, 70)[:, None] * np.ones((70, 3))
    tall = overlay(
        Image.new("RGB", (3, 700)),
        explanation(heat, crop_of(0, 0, 3, 700, (3, 700))),
        opacity=1,
        colour_map="cividis",
        blend=Blend.UNIFORM,
    )
    expected = np.interp((np.arange(700) + 0.5) / 10 - 0.5, np.arange(70), np.linspace(0, 1, 70))
    assert np.abs(tall[:, 1].astype(int) - coloured(expected, "cividis")).max() <= 1


def test_dimming_darkens_only_outside(picture: Image.Image) -> None:
    found = overlay(picture, explanation(np.zeros((4, 4)), crop_of(3, 2, 4, 4, (12, 8))), opacity=0.0, dim_outside=0.5)
    before = np.asarray(picture)
    assert np.array_equal(found[2:6, 3:7], before[2:6, 3:7])
    assert np.array_equal(found[0], np.rint(before[0] * 0.5).astype(np.uint8))


def test_wrong_questions(picture: Image.Image) -> None:
    found = explanation(np.ones((4, 4)), crop_of(0, 0, 12, 8, (12, 8)))
    with pytest.raises(UsageError, match="opacity is 50"):
        overlay(picture, found, opacity=50)
    with pytest.raises(UsageError, match=r"has 8 x 12 pixels, the explained one 12 x 8"):
        overlay(picture.transpose(Image.Transpose.ROTATE_90), found)
    with pytest.raises(UsageError, match=r"no blend 'even'.*heat, uniform"):
        overlay(picture, found, blend="even")
    with pytest.raises(UsageError, match=r"no colour map 'rainbow'.*viridis, cividis"):
        overlay(picture, found, colour_map="rainbow")


def test_png_keeps_every_pixel(picture: Image.Image) -> None:
    data = png_bytes(np.asarray(picture))
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), np.asarray(picture))
    assert data == png_bytes(np.asarray(picture))


def lightness(name: str) -> np.ndarray:
    """CIE L* (0..100) of the 256 colours."""
    linear = colour_table(name) / 255.0
    linear = np.where(linear <= 0.04045, linear / 12.92, ((linear + 0.055) / 1.055) ** 2.4)
    luminance = linear @ np.array([0.2126, 0.7152, 0.0722])
    return np.where(luminance > 0.008856, 116 * np.cbrt(luminance) - 16, 903.3 * luminance)


@pytest.mark.parametrize("name", ["viridis", "cividis", "inferno", "magma"])
def test_perceptual_maps_rise_in_lightness(name: str) -> None:
    steps = lightness(name)[::16]
    assert (np.diff(steps) > 0).all()
    assert np.diff(steps).std() < 0.3 * np.diff(steps).mean()


def test_jet_does_not_and_is_still_offered() -> None:
    assert not (np.diff(lightness("jet")[::16]) > 0).all()
    assert COLOUR_MAPS[0] == "viridis"


def test_known_ends() -> None:
    # The published first and last colours of viridis.
    assert colour_table("viridis")[0].tolist() == [68, 1, 84]
    assert np.abs(colour_table("viridis")[255].astype(int) - [253, 231, 37]).max() <= 1
    red = colour_table("jet")[255]
    assert red[0] >= 127
    assert red[1:].tolist() == [0, 0]
    assert np.array_equal(coloured(np.array([-1.0, np.nan, 2.0]), "jet"), colour_table("jet")[[0, 0, 255]])
    with pytest.raises(ValueError, match="read-only"):
        colour_table("jet")[0] = 0
