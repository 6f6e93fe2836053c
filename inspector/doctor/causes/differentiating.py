"""A forward that takes gradients itself (autograd.grad, backward), of what records none."""

from __future__ import annotations

import re
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from inspector.doctor.causes.entry import Cause
from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.scene import Scene
from inspector.forward.watch import tensors_in

_MESSAGE = re.compile(
    r"differentiated Tensors does not require grad|does not require grad and does not have a grad_fn|"
    r"differentiated [Tt]ensors? .{0,30}(?:does not|do not) require"
)


def find_needs_gradient(scene: Scene) -> Diagnosis | None:
    """The input wants no gradient, or the pass records none; tried out with both."""
    if not isinstance(scene.error, RuntimeError) or not _MESSAGE.search(scene.text):
        return None
    args, kwargs = scene.recorder.function_args
    asked = list(tensors_in(kwargs.get("inputs", args[1] if len(args) > 1 else None)))
    lacking = [t for t in asked if not t.requires_grad]
    off = not scene.recorder.gradients
    called = "autograd.grad" if scene.recorder.function_name == "grad" else "backward"

    def wants(tensor: Tensor) -> Tensor:
        plain = isinstance(tensor, nn.Parameter) or not tensor.is_floating_point()
        return tensor if plain else tensor.detach().clone().requires_grad_()

    given: tuple[tuple[Any, ...], dict[str, Any]] = tree_map_only(Tensor, wants, (scene.args, dict(scene.kwargs)))
    if off and scene.trials.runs_with_gradients(scene.args, scene.kwargs):
        return Diagnosis(
            cause="needs-gradient",
            says=f"{scene.path} calls {called}, and this pass recorded no gradients, as evaluation does.",
            fix="Run it in training mode; whoever evaluates it needs gradients on there, too.",
            code="with torch.enable_grad():",
            tried=("with gradients recorded: runs through",),
        )
    ran = scene.trials.runs_with_gradients(*given)
    if not lacking and not ran:
        return None
    told = f" for {scene.told(lacking[0])}" if lacking else ""
    name = _own_name(scene, lacking)
    more = " The pass has to record gradients, too: training mode, torch.enable_grad()." if off else ""
    return Diagnosis(
        cause="needs-gradient",
        says=f"{called} in {scene.path} asks for a gradient{told}, and nothing of it was recorded: it requires none.",
        fix=f"Let it require one before anything is computed from it, at the start of forward or by the caller.{more}",
        code=f"{name or 'x'} = {name or 'x'}.requires_grad_()",
        tried=("the input with requires_grad, gradients recorded: runs through",) if ran else (),
        sureness=Sureness.CERTAIN if ran else Sureness.LIKELY,
    )


def _own_name(scene: Scene, lacking: list[Tensor]) -> str:
    """What the outermost frame calls it: the line itself may stand in a small function, where it is too late."""
    for frame in scene.frames:
        for name, value in frame.variables.items():
            if lacking and value is lacking[0] and name.isidentifier():
                return name
    return ""


CAUSES = (Cause(kinds=("needs-gradient",), find=find_needs_gradient),)
