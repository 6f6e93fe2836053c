"""Numbers as text: rounding at the borders, where one unit becomes the next."""

from __future__ import annotations

import pytest

from inspector.units import counted, human_bytes, human_count, human_macs, human_shape, human_share, shorten_middle


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.00 K"),
        (999_499, "999 K"),
        (999_500, "1.00 M"),
        (11_689_512, "11.7 M"),
        (7_000_000_000, "7.00 B"),
    ],
)
def test_counts(n: int, text: str) -> None:
    assert human_count(n) == text


@pytest.mark.parametrize(
    ("n", "text"), [(134, "134 B"), (4_800_000, "4.80 MB"), (2_147_483_648, "2.15 GB"), (999_950, "1.00 MB")]
)
def test_bytes(n: int, text: str) -> None:
    assert human_bytes(n) == text


def test_macs_use_si_steps() -> None:
    assert human_macs(4_089_184_256) == "4.09 G"


@pytest.mark.parametrize(
    ("x", "text"),
    [(0.0, "0 %"), (1e-9, "< 0.1 %"), (0.0723, "7.2 %"), (0.99999, "> 99.9 %"), (1.0, "100 %"), (float("nan"), "NaN")],
)
def test_shares_never_round_something_to_nothing(x: float, text: str) -> None:
    assert human_share(x) == text


def test_shapes_and_plurals() -> None:
    assert human_shape((64, 3, 7, 7)) == "64x3x7x7"
    assert human_shape(()) == "scalar"
    assert counted(1, "key") == "1 key"
    assert counted(1234, "entry", "entries") == "1,234 entries"


def test_long_keys_keep_both_ends() -> None:
    key = "model.encoder.layers.11.attention.self.query.weight"
    short = shorten_middle(key, 30)
    assert len(short) == 30
    assert short.endswith("self.query.weight"[-10:])
    assert short.startswith("model.enc")
    assert shorten_middle("short", 30) == "short"
