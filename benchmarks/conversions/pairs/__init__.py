"""The pairs, a file for each group; one whose libraries are not installed is left out, and said."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.conversions.pairs import (
    detectors,
    flax,
    hf_text,
    hf_vision,
    keras_applications,
    self_supervised,
    t5,
    torchvision_timm,
)
from benchmarks.conversions.sides import Pair


def all_pairs() -> Iterator[Pair]:
    for group in (hf_vision, hf_text, torchvision_timm, detectors, self_supervised, t5, flax, keras_applications):
        yield from group.pairs()
