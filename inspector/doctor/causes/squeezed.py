"""A squeeze that took a batch of one away, seen where the dimension is missed."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.doctor.causes.entry import Cause
from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.scene import Scene
from inspector.doctor.squeezes import Squeeze
from inspector.forward.watch import tensors_in
from inspector.units import human_shape


def find_squeezed(scene: Scene) -> Diagnosis | None:
    """A tensor of what failed has lost its batch of one, and two samples run through."""
    if not isinstance(scene.error, RuntimeError | IndexError | ValueError):
        return None
    if any(not t.dim() or t.shape[0] != 1 for t in scene.inputs) or not scene.inputs:
        return None
    tensor = squeezed_tensor(scene)
    if tensor is None or not scene.runs_with(lambda x: torch.cat([x, x]), numbers=True):
        return None
    return squeezed_batch(scene, tensor, sureness=Sureness.CERTAIN, tried=("the same input twice: runs through",))


def squeezed_tensor(scene: Scene) -> Tensor | None:
    """The first of what the failing function was given that came from such a squeeze."""
    given = scene.given if isinstance(scene.given, Tensor) else None
    pool = [*scene.function_tensors, *scene.operands, *([given] if given is not None else [])]
    if scene.frame is not None:
        pool += list(tensors_in(list(scene.frame.variables.values())))
    return next((t for t in pool if scene.recorder.squeezes.of(t) is not None), None)


def squeezed_batch(
    scene: Scene, tensor: Tensor, *, sureness: Sureness, tried: tuple[str, ...] = ()
) -> Diagnosis | None:
    """That this tensor lacks its batch, and what to write instead of the squeeze."""
    squeeze = scene.recorder.squeezes.of(tensor)
    if squeeze is None:
        return None
    line = f" in {squeeze.line.file}, line {squeeze.line.line}" if squeeze.line is not None else ""
    called = "a squeeze of dimension 0" if squeeze.named else "squeeze() without a dimension"
    left = human_shape(squeeze.after) if squeeze.after else "a single number"
    return Diagnosis(
        cause="batch-squeezed",
        says=f"The batch of 1 is lost: {called}{line} makes {left} of "
        f"{human_shape(squeeze.before)}, and {scene.path} is given {scene.told(tensor)}.",
        fix=_fix(squeeze),
        code=_code(squeeze),
        sureness=sureness,
        tried=tried,
    )


def _fix(squeeze: Squeeze) -> str:
    if any(n == 1 for n in squeeze.before[1:]) and not squeeze.named:
        return "Name the dimensions that are to go: with a batch of one, dimension 0 is one of them."
    return "Take the squeeze out: there is nothing in this shape but the batch to take away."


def _code(squeeze: Squeeze) -> str:
    ones = [i for i, n in enumerate(squeeze.before) if n == 1 and i]
    if not ones or squeeze.named:
        return ""
    if len(ones) == 1:
        return f"x = x.squeeze({ones[0]})"
    return "x = x.flatten(1)" if len(ones) == len(squeeze.before) - 2 else f"x = x.squeeze({tuple(ones)})"


CAUSES = (Cause(kinds=("batch-squeezed",), find=find_squeezed),)
