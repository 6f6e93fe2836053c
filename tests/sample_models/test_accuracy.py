"""The committed weights keep what their metadata promises, on pictures that training never saw."""

import json

import pytest
import torch
from PIL import Image

from inspector.architectures.recognise import recognise
from inspector.cam.inputs.preprocess import infer_preprocessing, prepare
from inspector.readers import open_checkpoint
from sample_models.family import build_model, load_run
from sample_models.pictures import PICTURES
from sample_models.shapes import CLASSES, generate
from sample_models.train import INPUT_SIZE, measure_localisation, to_input


@pytest.fixture(scope="module")
def model():
    return build_model(load_run())


def test_at_least_97_percent_of_fresh_pictures_are_right(model):
    images, labels, _ = generate(424_242, 600)
    with torch.inference_mode():
        answers = torch.cat([model(to_input(images[i : i + 50])).argmax(1) for i in range(0, len(images), 50)])
    assert (answers.numpy() == labels).mean() >= 0.97


def test_heat_falls_on_the_object(model):
    assert measure_localisation(model, n=60) >= 1.5


def test_the_stated_preprocessing_is_the_one_trained_with(family):
    metadata = dict(open_checkpoint(family / "shapes.safetensors").metadata)
    assert json.loads(metadata["preprocessing"])["size"] == INPUT_SIZE


def test_the_example_pictures_are_classified_rightly_as_the_product_prepares_them(model, family):
    checkpoint = open_checkpoint(family / "shapes.safetensors")
    preprocessing = infer_preprocessing(recognise(checkpoint), checkpoint)
    for recipe in PICTURES:
        pixels, _ = prepare(Image.open(family / "pictures" / recipe.name), preprocessing)
        with torch.inference_mode():
            assert CLASSES[int(model(pixels).argmax())] == recipe.label, recipe.name
