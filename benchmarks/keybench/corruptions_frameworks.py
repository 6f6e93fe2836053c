"""One network as Keras, Flax, Haiku, TensorFlow 1, MLX, Paddle, MXNet and Chainer store it: names and layouts.

The layouts are the libraries' own (docs/libraries.md). Embeddings are turned round by none of them; convolutions of one
filter per channel are (h, w, channels, filters) in Keras and TensorFlow. What a user who knows the file says to a
question about one tensor is what was done to it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from benchmarks.keybench.corruptions_tensors import _is_linear
from benchmarks.keybench.damage import Corruption, Damaged, Row, State, damaged

BY_ORDER = ("same-order",)


@dataclass(frozen=True)
class Framework:
    """names: of a matrix or kernel, bias, a norm's weight, bias, mean and variance, an embedding; "" for torch's."""

    names: tuple[str, str, str, str, str, str, str]
    in_out: bool = False
    kernels: str = "oihw"
    depthwise: bool = False
    counters: bool = False
    spell: Callable[[str, int], str] = lambda name, role: name


def _flax(name: str, role: int) -> str:
    return f"{'batch_stats' if role in (4, 5) else 'params'}.{name}"


def _haiku(name: str, role: int) -> str:
    module, _, leaf = name.rpartition(".")
    return f"net/~/{module.replace('.', '/~/')}/{leaf}" if module else f"net/~/{leaf}"


FRAMEWORKS: Mapping[str, Framework] = {
    "Keras": Framework(
        ("kernel", "bias", "gamma", "beta", "moving_mean", "moving_variance", "embeddings"),
        in_out=True,
        kernels="hwio",
        depthwise=True,
    ),
    "Keras 2": Framework(
        ("kernel:0", "bias:0", "gamma:0", "beta:0", "moving_mean:0", "moving_variance:0", "embeddings:0"),
        in_out=True,
        kernels="hwio",
        depthwise=True,
        spell=lambda name, role: name.replace(".", "/"),
    ),
    "Flax": Framework(
        ("kernel", "bias", "scale", "bias", "mean", "var", "embedding"), in_out=True, kernels="hwio", spell=_flax
    ),
    "Haiku": Framework(
        ("w", "b", "scale", "offset", "mean", "var", "embeddings"), in_out=True, kernels="hwio", spell=_haiku
    ),
    "TensorFlow 1": Framework(
        ("kernel", "bias", "gamma", "beta", "moving_mean", "moving_variance", "embeddings"),
        in_out=True,
        kernels="hwio",
        depthwise=True,
        spell=lambda name, role: "model/" + re.sub(r"\.(\d+)", r"_\1", name).replace(".", "/"),
    ),
    "MLX": Framework(("", "", "", "", "", "", ""), kernels="ohwi", counters=True),
    "Paddle": Framework(("", "", "", "", "_mean", "_variance", ""), in_out=True),
    "MXNet": Framework(("", "", "gamma", "beta", "running_mean", "running_var", "")),
    "Chainer": Framework(
        ("W", "b", "gamma", "beta", "avg_mean", "avg_var", "W"), spell=lambda name, role: name.replace(".", "/")
    ),
}
_AXES = {"hwio": {3: (2, 1, 0), 4: (2, 3, 1, 0), 5: (2, 3, 4, 1, 0)}, "ohwi": {3: (0, 2, 1), 4: (0, 2, 3, 1)}}


def role_of(own: State, name: str) -> int | None:
    """Which of the seven a tensor is, None for what only torch has a name for."""
    module, _, leaf = name.rpartition(".")
    weight = own.get(f"{module}.weight")
    if leaf == "weight" and own[name].dim() > 1:
        return 0 if own[name].dim() > 2 or _is_linear(name) or f"{module}.bias" in own else 6
    if leaf in ("weight", "bias") and (weight is None or weight.dim() == 1) and f"{module}.weight" in own:
        return 2 if leaf == "weight" else 3
    return {"bias": 1, "running_mean": 4, "running_var": 5}.get(leaf) if module else None


def stored(tensor: Tensor, role: int | None, framework: Framework) -> Tensor:
    """A tensor of torch's as the library lays it out."""
    if role != 0:
        return tensor
    if tensor.dim() == 2:
        return tensor.t().contiguous() if framework.in_out else tensor
    if tensor.dim() == 4 and framework.depthwise and tensor.shape[1] == 1 and tensor.shape[0] > 1:
        return tensor.permute(2, 3, 0, 1).contiguous()
    axes = _AXES.get(framework.kernels, {}).get(tensor.dim())
    return tensor.permute(axes).contiguous() if axes else tensor


def _made(framework: Framework, *, order: str = "listed") -> Callable[[State, random.Random], Damaged]:
    def make(own: State, _: random.Random) -> Damaged:
        rows: list[Row] = []
        if any(".weight_ih_" in name for name in own):
            return Damaged({}, own, frozenset())  # whose gates lie otherwise in each of them
        for name, tensor in own.items():
            role = role_of(own, name)
            if name.endswith("num_batches_tracked") and not framework.counters:
                continue
            module, _dot, leaf = name.rpartition(".")
            leaf = (framework.names[role] if role is not None else "") or leaf
            key = framework.spell(f"{module}.{leaf}" if module else leaf, -1 if role is None else role)
            rows.append(Row(key, stored(tensor, role, framework), name))
        if order == "sorted":
            rows.sort(key=lambda row: row.key)
        made = damaged(rows, own)
        # Counters that torch counts for itself are filled in with zeros.
        lacks = own.keys() - {row.place for row in rows}
        return Damaged(made.file, made.truth, made.placeable, frozenset(lacks)) if made.file else made

    return make


def _at(framework: Framework) -> dict[str, Callable[[str], str]]:
    way = "transposed" if framework.in_out else "as-it-is"
    # Nor are CLIP's projections, which are parameters and no layers.
    tables = re.compile(r"embed|\.wte|\.wpe|table|^visual$|text_projection$")
    return {"transposed": lambda name: "as-it-is" if tables.search(name) else way}


def _answers(framework: Framework) -> dict[str, str]:
    return {
        "transposed-shapes": "transposed",
        "transposed-convolution": "as-the-others",
        "channels-last": framework.kernels,
        "kernel-order": "as-the-others",
    }


def _as(name: str, *, order: str = "listed") -> Corruption:
    framework = FRAMEWORKS[name]
    return Corruption(
        f"as {name}{', sorted' if order == 'sorted' else ''}",
        _made(framework, order=order),
        BY_ORDER,
        simple=False,
        answers=_answers(framework),
        at=_at(framework),
    )


FRAMEWORK_KINDS = (
    *(_as(name) for name in FRAMEWORKS),
    *(_as(name, order="sorted") for name in ("Keras", "Flax", "Haiku")),
)
