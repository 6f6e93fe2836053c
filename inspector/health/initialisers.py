"""What a layer's numbers are before training: the initialisers of torch.nn, torchvision and the usual papers.

A weight does not say what layer it is of, so that all that its name and shape allow are candidates. Fan-in and fan-out
are counted as torch.nn.init does, from the weight's own shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from inspector.checkpoint.types import Shape


class Family(StrEnum):
    """Which distribution. TRUNCATED: a normal one cut at two standard deviations."""

    UNIFORM = "uniform"
    NORMAL = "normal"
    TRUNCATED = "truncated normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialiser:
    """scale: the bound of a uniform distribution around zero, the standard deviation before cutting of a normal one.

    says: who begins like this.
    """

    family: Family
    scale: float
    says: str

    @property
    def std(self) -> float:
        """The standard deviation of what it makes."""
        if self.family is Family.UNIFORM:
            return self.scale / math.sqrt(3)
        return self.scale * (_CUT_STD if self.family is Family.TRUNCATED else 1.0)


# Of a standard normal distribution cut at -2 and 2: sqrt(1 - 4 phi(2) / (Phi(2) - Phi(-2))).
_CUT_STD = 0.8796256610342398
# Standard deviations that people write out, who does.
_FIXED: Mapping[float, str] = {
    1.0: "nn.Embedding",
    0.1: "Inception v3",
    0.03: "SSDlite",
    0.02: "transformers, ConvNeXt, Swin, DCGAN",
    0.01: "heads of VGG, MobileNet, SqueezeNet; detection heads",
    0.006: "DeepSeek",
    0.001: "auxiliary heads of Inception v3",
}
# Gates of each recurrent layer: weight_ih is (gates x hidden, inputs).
_GATES = (1, 3, 4)
_RECURRENT = ("weight_ih", "weight_hh")


def initialisers_of(name: str, shape: Shape) -> tuple[Initialiser, ...]:
    """The candidates for a weight of two or more dimensions, the most usual first; () for other shapes."""
    if len(shape) < 2 or 0 in shape:
        return ()
    return _initialisers(is_recurrent(name), shape)


def is_recurrent(name: str) -> bool:
    """Whether it is a weight of torch's recurrent layers, by its name."""
    return name.rpartition(".")[2].startswith(_RECURRENT)


# Thousands of layers have a few shapes.
@lru_cache(maxsize=256)
def _initialisers(recurrent: bool, shape: Shape) -> tuple[Initialiser, ...]:
    found = [Initialiser(family=Family.UNIFORM, scale=b, says=says) for b, says in _bounds(recurrent, shape)]
    found += [Initialiser(family=Family.NORMAL, scale=s, says=says) for s, says in _deviations(shape)]
    found += [Initialiser(family=Family.TRUNCATED, scale=s, says=says) for s, says in _cut(shape)]
    return tuple(found)


def fans_of(shape: Shape) -> tuple[int, int]:
    """(fan-in, fan-out) as torch.nn.init counts them: a transposed or grouped convolution by its weight's shape too."""
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def default_bias_bound(shape: Shape) -> float:
    """The bound of the bias beside a weight of Linear, ConvNd (and, one candidate of two, Bilinear)."""
    return 1 / math.sqrt(max(1, fans_of(shape)[0]))


def _bounds(recurrent: bool, shape: Shape) -> Iterator[tuple[float, str]]:
    fan_in, fan_out = fans_of(shape)
    if recurrent:
        for gates in _GATES:
            if shape[0] % gates == 0:
                yield 1 / math.sqrt(shape[0] // gates), "nn.RNN, nn.GRU, nn.LSTM"
    yield 1 / math.sqrt(fan_in), "the default of nn.Linear and nn.ConvNd"
    if len(shape) == 3:
        yield 1 / math.sqrt(shape[1]), "the default of nn.Bilinear"
    yield math.sqrt(6 / (fan_in + fan_out)), "Xavier: nn.MultiheadAttention, nn.Transformer, SSD"
    yield math.sqrt(6 / fan_in), "He, by fan-in: SqueezeNet"
    yield math.sqrt(6 / fan_out), "He, by fan-out"
    yield math.sqrt(3 / fan_in), "feature pyramids of torchvision's detectors"
    yield math.sqrt(3 / fan_out), "MNASNet's head"
    yield 1 / math.sqrt(shape[0]), "EfficientNet's head"


def _deviations(shape: Shape) -> Iterator[tuple[float, str]]:
    fan_in, fan_out = fans_of(shape)
    yield math.sqrt(2 / fan_out), "He, by fan-out: ResNet, VGG, MobileNet"
    yield math.sqrt(2 / fan_in), "He, by fan-in: DenseNet"
    yield from _FIXED.items()
    yield math.sqrt(2 / (fan_in + fan_out)), "Xavier"
    yield math.sqrt(1 / fan_in), "LeCun; the patches of a vision transformer"
    yield math.sqrt(1 / fan_out), "normal, by fan-out"


def _cut(shape: Shape) -> Iterator[tuple[float, str]]:
    fan_in, _ = fans_of(shape)
    yield 1.0, "trunc_normal_ with its own defaults"
    yield 0.02, "truncated at two standard deviations"
    for gain in (1, 2):
        yield math.sqrt(gain / fan_in) / _CUT_STD, "variance scaling of JAX and TensorFlow"
