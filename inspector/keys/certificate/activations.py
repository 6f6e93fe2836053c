"""What a norm hands on: mean and variance of act(z) for z of mean `bias` and deviation |weight|, channel by channel.

A batch norm leaves each channel with exactly that mean and deviation on the data of its training; that the values are
normally distributed is assumed, and only the order of the results among the channels is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Middles of equally likely parts of the normal distribution: 64 tell a ReLU's mean to 1 % of the deviation.
_NODES: Floats = np.array([NormalDist().inv_cdf((k + 0.5) / 64) for k in range(64)])


def _sigmoid(z: Floats) -> Floats:
    made: Floats = 1 / (1 + np.exp(-np.clip(z, -60, 60)))
    return made


def _gelu(z: Floats) -> Floats:
    # Hendrycks 2016, the approximation by tanh: off by less than 0.001.
    made: Floats = 0.5 * z * (1 + np.tanh(0.7978845608 * (z + 0.044715 * z**3)))
    return made


#: By the operator's name in a graph, less a trailing underscore. The second argument is a leaky one's slope.
ACTIVATIONS: Mapping[str, Callable[[Floats, float], Floats]] = {
    "none": lambda z, _: z,
    "relu": lambda z, _: np.maximum(z, 0),
    "hardtanh": lambda z, _: np.clip(z, 0, 6),
    "relu6": lambda z, _: np.clip(z, 0, 6),
    "leaky_relu": lambda z, slope: np.where(z > 0, z, slope * z),
    "silu": lambda z, _: z * _sigmoid(z),
    "hardswish": lambda z, _: z * np.clip(z / 6 + 0.5, 0, 1),
    "hardsigmoid": lambda z, _: np.clip(z / 6 + 0.5, 0, 1),
    "sigmoid": lambda z, _: _sigmoid(z),
    "tanh": lambda z, _: np.tanh(z),
    "gelu": lambda z, _: _gelu(z),
    "elu": lambda z, _: np.where(z > 0, z, np.expm1(np.minimum(z, 0))),
    "softplus": lambda z, _: np.logaddexp(z, 0),
    "mish": lambda z, _: z * np.tanh(np.logaddexp(z, 0)),
}


def moments(weight: Floats, bias: Floats, activation: str, slope: float = 0.01) -> tuple[Floats, Floats]:
    """Mean and variance of what each channel hands on.

    weight, bias: (channels,) or (channels, columns), broadcast. Returns two arrays of their shape.
    """
    weight, bias = np.broadcast_arrays(np.abs(weight), bias)
    if activation == "none":
        return bias.copy(), weight**2
    act = ACTIVATIONS[activation]
    mean, square = np.zeros(weight.shape), np.zeros(weight.shape)
    for node in _NODES:
        value = act(bias + weight * node, slope)
        mean += value
        square += value * value
    mean /= len(_NODES)
    return mean, np.maximum(square / len(_NODES) - mean**2, 0)
