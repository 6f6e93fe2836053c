"""A sum of two maps with different channels where neither is a shortcut: the convolution that made one too few."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from inspector.doctor.constructors import line_that_makes
from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.scene import Scene


def by_layer(scene: Scene, a: Tensor, b: Tensor, says: str, shortcut: str) -> Diagnosis | None:
    """Of two operands that no module was given besides, one that a convolution made, itself or through pixel_shuffle.

    shortcut: the 1x1 convolution that would join them as well. None where one goes past a module, as a shortcut does.
    """
    if scene.recorder.was_given(a) or scene.recorder.was_given(b):
        return None
    modules = dict(scene.model.named_modules())
    for one, other in ((b, a), (a, b)):
        maker = scene.recorder.maker(one)
        shuffle = modules.get(maker)
        times = 1
        path = maker
        if isinstance(shuffle, nn.PixelShuffle) or scene.recorder.operator_of(one) == "pixel_shuffle":
            path = next((p for p, m in scene.modules_called() if isinstance(m, nn.Conv2d)), "")
            layer = modules.get(path)
            gives = layer.out_channels if isinstance(layer, nn.Conv2d) else 0
            times = gives // one.shape[1] if gives and gives % one.shape[1] == 0 else 0
        layer = modules.get(path)
        if not isinstance(layer, nn.Conv2d) or times < 1 or layer.out_channels != one.shape[1] * times:
            continue
        wants = other.shape[1] * times
        if not _runs(scene, layer, wants):
            continue
        what = f"{times} = {_root(times)}x{_root(times)} of its channels become one" if times > 1 else ""
        made = f" {path} gives {layer.out_channels}" + (f", and {what} in the shuffle." if what else ".")
        return Diagnosis(
            cause="sum-of-shapes",
            says=says + made,
            fix=f"Either {path} is to give {wants}"
            + (f" ({other.shape[1]} x {_root(times)}**2)" if times > 1 else "")
            + f", or, where this is meant as a shortcut across a change of channels, a 1x1 convolution: {shortcut}.",
            code=f"nn.Conv2d({layer.in_channels}, {wants}, {layer.kernel_size[0]}, padding={_padding(layer)})",
            sureness=Sureness.CERTAIN if times > 1 else Sureness.LIKELY,
            tried=(f"{path} with {wants} channels: runs through",),
            change=line_that_makes(scene.model, path),
        )
    return None


def _padding(layer: nn.Conv2d) -> str:
    return repr(layer.padding if isinstance(layer.padding, str) else layer.padding[0])


def _root(times: int) -> int:
    return math.isqrt(times)


def _runs(scene: Scene, layer: nn.Conv2d, wants: int) -> bool:
    """With so many channels out of this layer, with numbers."""

    def change(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], Any] | None:
        if name != "conv2d" or len(args) < 2 or args[1] is not layer.weight:
            return None
        weight = layer.weight.new_zeros(wants, *layer.weight.shape[1:])
        bias = None if layer.bias is None else layer.bias.new_zeros(wants)
        return [args[0], weight, bias, *args[3:]], kwargs

    return layer.groups == 1 and scene.trials.left and scene.trials.runs_replaced(change, scene.args, scene.kwargs)
