"""The sample vision transformer: recognised with nothing assumed, right on fresh pictures, heat on the object."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from inspector.architectures.build import build_model
from inspector.architectures.recognise import recognise
from inspector.cam.explain import explain
from inspector.cam.inputs.preprocess import infer_preprocessing
from inspector.checkpoint.torch_bridge import to_state_dict
from inspector.readers import open_checkpoint
from sample_models.shapes import CLASSES, generate
from sample_models.train import to_input
from sample_models.train_tokens import DEPTH, HEADS, SIZE, new_transformer

UNSEEN = 424_243


@pytest.fixture(scope="module")
def sample(family):
    checkpoint = open_checkpoint(family / "shapes_vit.safetensors")
    return checkpoint, recognise(checkpoint)


@pytest.fixture(scope="module")
def model(sample):
    checkpoint, recognition = sample
    built = build_model(recognition.best.spec)
    built.load_state_dict(to_state_dict(checkpoint, checkpoint.weights), strict=True)
    return built.eval()


def test_it_is_recognised_exactly_and_nothing_is_assumed(sample):
    checkpoint, recognition = sample
    best = recognition.best
    assert best.spec.label.startswith("torchvision/vit?")
    assert (best.score, best.missing, best.extra, best.reshaped) == (1.0, (), (), ())
    assert f"heads={HEADS}&" in best.spec.label
    assert f"layers={DEPTH}&" in best.spec.label
    assert '("num_heads" in the file)' in recognition.says
    assert "assumed" not in recognition.says
    assert not infer_preprocessing(recognition, checkpoint).assumed
    assert json.loads(dict(checkpoint.metadata)["classes"]) == list(CLASSES)


def test_it_answers_as_torchvisions_own_module_does(sample, model):
    checkpoint, _ = sample
    own = new_transformer().eval()
    own.load_state_dict(to_state_dict(checkpoint, checkpoint.weights), strict=True)
    pictures = to_input(generate(UNSEEN, 4)[0], SIZE)
    with torch.inference_mode():
        assert torch.equal(own(pictures), model(pictures))


def test_the_stated_accuracy_holds_on_fresh_pictures(sample, model):
    images, labels, _ = generate(UNSEEN, 600)
    with torch.inference_mode():
        right = float((model(to_input(images, SIZE)).argmax(1).numpy() == labels).mean())
    stated = float(dict(sample[0].metadata)["accuracy"])
    # Three standard deviations of a share of 600.
    assert right == pytest.approx(stated, abs=3 * (stated * (1 - stated) / 600) ** 0.5)
    assert stated >= 0.95


@pytest.mark.parametrize("method", ["grad-cam", "gradient-rollout"])
def test_heat_lies_on_the_object(sample, model, method, seeds):
    checkpoint, recognition = sample
    preprocessing = infer_preprocessing(recognition, checkpoint)
    images, labels, masks = generate(UNSEEN, len(seeds(10, full=24)))
    inside, even = [], []
    for image, label, mask in zip(images, labels, masks, strict=True):
        found = explain(model, Image.fromarray(image), preprocessing=preprocessing, target=int(label), method=method)
        assert found.heat.shape == mask.shape
        inside.append(found.heat[mask].sum() / max(found.heat.sum(), 1e-12))
        even.append(mask.mean())
    assert np.mean(inside) > 1.5 * np.mean(even)
