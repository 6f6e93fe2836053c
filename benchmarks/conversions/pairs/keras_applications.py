"""Keras applications' ResNet-50 beside torch: one way, since it is no torch module.

It is the first version of the paper: a block's stride is in its first convolution, every convolution has a bias, and
the norms' epsilon is 1.001e-5. torchvision's has the stride in the second and no bias, so it answers otherwise with any
weights; the twin here is torchvision's with these three changed. Keras saves .weights.h5 and .keras, which are
named and not opened here; what is opened is what the hints say: the arrays saved with numpy.savez, by Keras under the
paths of its variables, or by h5py under the file's own, which have lost the layers' names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.conversions.pairs.flax import random_array
from benchmarks.conversions.pairs.hf_vision import epsilon
from benchmarks.conversions.sides import Pair, Side, picture

os.environ.setdefault("KERAS_BACKEND", "torch")
KERAS = "Keras applications"
_EPSILON = 1.001e-5


@dataclass(frozen=True)
class KerasModel:
    """Both precisions of one network, with the same numbers."""

    single: Any
    double: Any
    in_double: bool = False

    def answer(self, x: Tensor) -> Tensor:
        import keras

        model = self.double if self.in_double else self.single
        # What Keras casts on its way it casts to this.
        keras.config.set_floatx("float64" if self.in_double else "float32")
        made = model(x.permute(0, 2, 3, 1).numpy(), training=False)
        keras.config.set_floatx("float32")
        return torch.as_tensor(made).detach().cpu()


def _build(size: int) -> KerasModel:
    import keras
    from keras.applications import ResNet50

    made = []
    for dtype in ("float32", "float64"):
        keras.config.set_dtype_policy(dtype)
        keras.config.set_floatx(dtype)
        made.append(ResNet50(weights=None, input_shape=(size, size, 3), classes=7, classifier_activation=None))
    keras.config.set_dtype_policy("float32")
    keras.config.set_floatx("float32")
    return KerasModel(*made)


def _randomise(model: KerasModel, seed: int) -> None:
    made = [random_array(tuple(w.path.split("/")), np.empty(tuple(w.shape)), seed) for w in model.single.weights]
    model.single.set_weights(made)
    model.double.set_weights(made)


def _save_by_keras(model: KerasModel, folder: Path) -> Path:
    np.savez(folder / "resnet50.npz", **{w.path: np.asarray(w.value.detach().cpu()) for w in model.single.weights})
    return folder / "resnet50.npz"


def _save_by_h5py(model: KerasModel, folder: Path) -> Path:
    import h5py

    saved = folder / "resnet50.weights.h5"
    model.single.save_weights(saved)
    arrays: dict[str, np.ndarray] = {}

    def take(name: str, value: Any) -> None:
        if hasattr(value, "shape"):
            arrays[name] = value[()]

    with h5py.File(saved) as opened:
        opened.visititems(take)
    np.savez(folder / "from_h5.npz", **arrays)
    return folder / "from_h5.npz"


def _twin() -> nn.Module:
    """torchvision's ResNet-50 with the three changes."""
    from torchvision import models
    from torchvision.models.resnet import Bottleneck

    made = models.resnet50(num_classes=7)
    for module in made.modules():
        if isinstance(module, nn.Conv2d):
            module.bias = nn.Parameter(torch.zeros(module.out_channels))
        if isinstance(module, Bottleneck):
            module.conv1.stride, module.conv2.stride = module.conv2.stride, (1, 1)
    return epsilon(made, _EPSILON)


def _torchvision() -> nn.Module:
    from torchvision import models

    return epsilon(models.resnet50(num_classes=7), _EPSILON)


def _double(model: KerasModel) -> KerasModel:
    return KerasModel(model.single, model.double, True)


def pairs() -> Iterator[Pair]:
    twin = Side(library="torchvision with biases, stride first", build=_twin, own=False)
    whole = {
        "build": partial(_build, 64),
        "run": lambda model, x: model.answer(x),
        "randomise": _randomise,
        "double": _double,
        "can_be_target": False,
    }
    same = "epsilon of the norms"
    by_keras = Side(library=f"{KERAS}, npz", save=_save_by_keras, **whole)
    by_h5py = Side(library=f"{KERAS}, paths of the .weights.h5", save=_save_by_h5py, **whole)
    yield Pair(
        id="ResNet-50, first version",
        ours=by_keras,
        theirs=twin,
        input=picture(64),
        both=False,
        same=same,
        rounds=1e-5,  # Keras normalises in float32 behind torch
    )
    yield Pair(
        id="ResNet-50, first version",
        ours=by_h5py,
        theirs=twin,
        input=picture(64),
        both=False,
        same=same,
        impossible="Keras 3 saves its layers by class and number; which of the file's is which is in no name.",
    )
    yield Pair(
        id="ResNet-50, first version",
        ours=by_keras,
        theirs=Side(library="torchvision", build=_torchvision),
        input=picture(64),
        both=False,
        same=same,
        impossible="torchvision's has its strides elsewhere and no biases in its convolutions.",
    )
