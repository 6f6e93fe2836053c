"""Feature maps as pixels: the scale that is said is the one that is drawn, and what is dead is marked."""

from __future__ import annotations

import numpy as np
import pytest

from inspector.doctor.maps_asked import Order, Scale, Side
from inspector.doctor.maps_report import Axes, FeatureMaps
from inspector.doctor.report import Statistics
from inspector.errors import UsageError
from inspector.render.colour_maps import colour_table
from inspector.render.feature_maps import caption, channel_pixels, is_marked, maps_sheet, sentences


def statistics(values: np.ndarray) -> Statistics:
    kept = values[np.isfinite(values)].astype(float)
    low, high = (float(kept.min()), float(kept.max())) if kept.size else (None, None)
    bad = int(values.size - kept.size)
    return Statistics(
        minimum=low, maximum=high, mean=None, deviation=None, zeros=0.0, nans=bad, infinities=0,
        negative_infinities=0, constant=low == high and not bad,
    )  # fmt: skip


def maps(raw: np.ndarray, layout: str = "NCHW", *, shape: tuple[int, ...] = ()) -> FeatureMaps:
    each = tuple(statistics(one) for one in raw)
    return FeatureMaps(
        target="net", input_from="noise", training=False, path="conv", kind="Conv2d", time=1, calls=2,
        side=Side.OUTPUT, tensor=0, tensors=1, shape=shape or (1, *raw.shape), dtype="float32",
        axes=Axes(layout=layout, grid=(raw.shape[1], raw.shape[2]), because="a test"), channels=each,
        low=float(np.nanmin(raw)), high=float(np.nanmax(raw)), order=Order.NUMBER, shown=tuple(range(len(raw))),
        drawn=(raw.shape[1], raw.shape[2]), raw=raw.astype(np.float32),
    )  # fmt: skip


RAW = np.array(
    [[[0.0, 1.0], [0.5, 1.0]], [[-1.0, 3.0], [1.0, np.nan]], [[0.0, 0.0], [0.0, 0.0]], [[2.0, 2.0], [2.0, 2.0]]]
)


def test_each_channel_on_its_own_scale_and_all_on_one() -> None:
    found, table = maps(RAW), colour_table("viridis")
    own = channel_pixels(found, 0, scale=Scale.CHANNEL, colours="viridis")
    assert (own[0, 0] == table[0]).all() and (own[0, 1] == table[255]).all() and (own[1, 0] == table[128]).all()
    # From -1 to 3: 0 lies at a quarter, 1 in the middle.
    shared = channel_pixels(found, 0, scale=Scale.SHARED, colours="grey")
    assert shared[0, 0].tolist() == [64, 64, 64] and shared[0, 1].tolist() == [128, 128, 128]


def test_what_is_not_finite_is_red_and_what_is_constant_is_flat() -> None:
    found = maps(RAW)
    red = channel_pixels(found, 1, scale=Scale.CHANNEL, colours="grey")
    assert red[1, 1, 0] > 200 and red[1, 1, 1] == 0 and len(set(red[0, 0].tolist())) == 1
    flat = channel_pixels(found, 2, scale=Scale.CHANNEL, colours="viridis")
    assert len(np.unique(flat)) == 1
    assert [caption(found, n)[1] for n in range(4)] == [
        "0 to 1", "-1 to 3, 1 not finite", "zero everywhere", "2 everywhere"
    ]  # fmt: skip
    assert [is_marked(found, n) for n in range(4)] == [False, True, True, True]


def test_the_scale_and_the_dead_are_said() -> None:
    own, shared = " ".join(sentences(maps(RAW), Scale.CHANNEL)), " ".join(sentences(maps(RAW), Scale.SHARED))
    assert "own scale" in own and "One scale for all channels: -1 to 3." in shared
    for says in (own, shared):
        assert "1 channel of 4 (25.0 %) zero everywhere" in says and "#2" in says and "#3" in says
        assert "1 channel of 4 (25.0 %) with values that are not finite: #1." in says
    quiet = " ".join(sentences(maps(RAW[:1], shape=(3, 1, 2, 2)), Scale.CHANNEL))
    assert "No channel is constant" in quiet and "The first of 3 samples." in quiet


def test_the_sheet_holds_every_cell_unblurred() -> None:
    sheet = maps_sheet(maps(RAW[:1]), scale=Scale.CHANNEL, colours="viridis")
    first = np.flatnonzero((sheet == colour_table("viridis")[255]).all(axis=2))
    # Two of four cells, each enlarged to 64 x 64 whole pixels.
    assert len(first) == 2 * 64 * 64


def test_lines_are_curves() -> None:
    found = maps(np.linspace(0, 1, 50).reshape(1, 1, 50), "NCL")
    curve = channel_pixels(found, 0, scale=Scale.CHANNEL, colours="viridis")
    ink = (curve == (31, 90, 160)).all(axis=2)
    rows = [int(np.flatnonzero(ink[:, x]).mean()) for x in (5, 130, 250)]
    assert rows[0] > rows[1] > rows[2]
    assert maps_sheet(found).shape[2] == 3
    assert "heights compare within one alone" in " ".join(sentences(found, Scale.CHANNEL))


def test_other_colours_are_named() -> None:
    with pytest.raises(UsageError, match="viridis, cividis, grey"):
        channel_pixels(maps(RAW), 0, scale=Scale.CHANNEL, colours="jet")
