"""On a model that has learned, the heat lies on the object: more than a uniform map's, more than without training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision.models import get_model

from inspector.cam.describe import Setting
from inspector.cam.explain import explain, explain_many
from inspector.cam.inputs.preprocess import infer_preprocessing
from inspector.cam.report import Preprocessing
from inspector.cam.spec import MapRequest
from inspector.checkpoint.torch_bridge import to_state_dict
from inspector.readers import open_checkpoint
from inspector.render.overlay import overlay
from sample_models.shapes import CLASSES, draw_scene, generate

WEIGHTS = Path(__file__).resolve().parents[2] / "sample_models" / "weights" / "shapes.safetensors"
AT_ONCE = 25


@pytest.fixture(scope="module")
def trained() -> tuple[nn.Module, Preprocessing]:
    checkpoint = open_checkpoint(WEIGHTS)
    assert checkpoint.weights is not None
    model = get_model("shufflenet_v2_x0_5", weights=None, num_classes=len(CLASSES)).eval()
    model.load_state_dict(to_state_dict(checkpoint, checkpoint.weights))
    return model, infer_preprocessing(None, checkpoint)


def energy_ratio(model: nn.Module, preprocessing: Preprocessing, count: int) -> float:
    """Mean over fresh pictures: share of the heat in the object's mask, over the mask's share of the picture."""
    images, labels, masks = generate(880_012, count)
    ratios = []
    for first in range(0, count, AT_ONCE):
        some = slice(first, first + AT_ONCE)
        pictures = [Image.fromarray(image) for image in images[some]]
        setting = Setting(preprocessing=preprocessing)
        found = explain_many(model, pictures, MapRequest(), setting, targets=labels[some].tolist())
        for explanation, mask in zip(found, masks[some], strict=True):
            side = explanation.heat.shape[0] // mask.shape[0]
            heat = explanation.heat.reshape(mask.shape[0], side, mask.shape[1], side).mean(axis=(1, 3))
            total = float(heat.sum())
            ratios.append(float(heat[mask].sum()) / total / float(mask.mean()) if total > 0 else 0.0)
    return float(np.mean(ratios))


def test_heat_lies_on_the_object(trained: tuple[nn.Module, Preprocessing], seeds: Callable[..., range]) -> None:
    model, preprocessing = trained
    assert not preprocessing.assumed
    torch.manual_seed(0)
    fresh = get_model("shufflenet_v2_x0_5", weights=None, num_classes=len(CLASSES)).eval()
    count = len(seeds(50, full=200))
    learned, unlearned = (energy_ratio(which, preprocessing, count) for which in (model, fresh))
    print(f"energy in the mask over uniform: trained {learned:.2f}, untrained {unlearned:.2f}")
    assert learned >= 1.5
    assert learned > unlearned + 0.5


def test_overlay_is_hot_on_the_object_of_a_wide_picture(
    trained: tuple[nn.Module, Preprocessing], seeds: Callable[..., range]
) -> None:
    """Through crop and resize and back: on 300 x 200 pictures the tint lies on the object, in the picture's pixels."""
    model, preprocessing = trained
    inside, outside = [], []
    for seed in seeds(6, full=12):
        pixels, mask = draw_scene(np.random.default_rng((77, seed)), seed % len(CLASSES), 200, 300)
        picture = Image.fromarray(pixels)
        found = explain(model, picture, preprocessing=preprocessing, target=seed % len(CLASSES))
        drawn = overlay(picture, found, colour_map="inferno", opacity=1.0, blend="uniform").astype(float).mean(axis=2)
        assert np.array_equal(overlay(picture, found)[:, :50], pixels[:, :50])  # left of the square that is seen
        inside.append(drawn[mask].mean())
        outside.append(drawn[:, 50:250][~mask[:, 50:250]].mean())
    assert np.mean(inside) > 1.5 * np.mean(outside)
