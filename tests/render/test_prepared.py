"""Preprocessing in a few words: what is seen of how much, and by whose numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inspector.cam.report import Preprocessing
from inspector.render.prepared import preprocessing_words

STEPS = Preprocessing(
    resize=256, crop=(224, 224), mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), channels=3,
    interpolation="bilinear", source="", assumed=False,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "224 of 256 px, ImageNet's mean"),
        ({"resize": 224}, "224 px, ImageNet's mean"),
        ({"resize": None, "mean": (0.48145466, 0.4578275, 0.40821073)}, "224 px, CLIP's mean"),
        ({"resize": (64, 64), "crop": None, "mean": (0.5,) * 3}, "64 px, mean 0.5"),
        ({"resize": (64, 48), "crop": None, "mean": (0.1, 0.25, 0.3)}, "64 x 48 px, mean 0.1, 0.25, 0.3"),
        ({"crop": None, "mean": (0.0,) * 3, "std": (1.0,) * 3}, "shorter side 256 px, values from 0 to 1"),
        ({"resize": None, "crop": None, "mean": (0.0,) * 3}, "its own size, mean 0"),
    ],
)
def test_in_words(changes: dict[str, object], says: str) -> None:
    assert preprocessing_words(replace(STEPS, **changes)) == says  # type: ignore[arg-type]
