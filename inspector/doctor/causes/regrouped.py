"""A view that changed the number of samples, seen where the others are missed: in the loss, in a sum, in a join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from inspector.doctor.causes.entry import Cause
from inspector.doctor.causes.repairs import fitting_sides
from inspector.doctor.regroups import Regroup
from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.scene import Scene
from inspector.units import human_shape

_VIEWS = ("view", "reshape")


def find_regrouped(scene: Scene) -> Diagnosis | None:
    """One operand came from such a view, another has as many samples as the input."""
    if not isinstance(scene.error, RuntimeError | ValueError):
        return None
    given = next((t for t in scene.inputs if t.dim() > 1), None)
    pool = list({id(t): t for t in (*scene.function_tensors, *scene.operands) if t.dim()}.values())
    if given is None or len(pool) < 2:
        return None
    batch = given.shape[0]
    lost = next((t for t in pool if t.shape[0] != batch and scene.recorder.regroups.of(t) is not None), None)
    kept = next((t for t in pool if t.shape[0] == batch and not isinstance(t, nn.Parameter)), None)
    if lost is None or kept is None:
        return None
    # A loss takes rows of all positions; targets that were not flattened with them are another matter.
    if kept.numel() == lost.shape[0]:
        return None
    view = scene.recorder.regroups.of(lost)
    # What is joined or added has to fit but for the samples; a loss compares samples first.
    loss = "loss" in scene.recorder.function_name or "entropy" in scene.recorder.function_name
    if view is None or not (loss or (lost.dim() == kept.dim() and scene.operator not in ("addmm", "mm", "bmm"))):
        return None
    line = f" in {view.line.file}, line {view.line.line}" if view.line is not None else ""
    way = "puts positions into the batch" if view.after[0] > batch else "puts samples together"
    numel = 1
    for size in view.before[1:]:
        numel *= size
    fix, code, tried = _fix(scene, view, numel)
    return Diagnosis(
        cause="batch-reshaped",
        says=f"The {batch:,} samples become {view.after[0]:,} rows: the view{line} makes {human_shape(view.after)} of "
        f"{human_shape(view.before)} and {way}; {scene.told(lost)} then meets {scene.told(kept)}.",
        fix=fix,
        code=code,
        sureness=Sureness.CERTAIN if tried else Sureness.LIKELY,
        tried=tried,
        change=view.line,
    )


def _fix(scene: Scene, view: Regroup, numel: int) -> tuple[str, str, tuple[str, ...]]:
    """(what to do, line, what was tried): flattening by samples with the next layer as wide, and other pictures."""
    width = view.after[-1]
    wider: dict[str, tuple[int, int]] = {}

    def change(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], Any] | None:
        if name in _VIEWS and args and isinstance(args[0], Tensor) and tuple(args[0].shape) == view.before:
            return (args[0], (view.before[0], -1)), {}
        weight = args[1] if name == "linear" and len(args) > 1 else None
        if isinstance(weight, Tensor) and args[0].shape[-1] == numel != weight.shape[1] == width:
            wider[scene.recorder.names.get(id(weight), "")] = (numel, weight.shape[0])
            return [args[0], weight.new_zeros(weight.shape[0], numel), *args[2:]], kwargs
        return None

    name = _viewed(scene, view)
    tried: list[str] = []
    fix = "Flatten what belongs to one sample, and keep the samples apart."
    code = f"{name} = {name}.flatten(1)"
    if scene.trials.left and scene.trials.runs_replaced(change, scene.args, scene.kwargs):
        made = "".join(f", {path.removesuffix('.weight')} as nn.Linear({a}, {b})" for path, (a, b) in wider.items())
        tried.append(f"{code}{made}: runs through")
        if wider:
            path, (a, b) = next(iter(wider.items()))
            fix += f" Each has {numel:,} numbers then, so {path.removesuffix('.weight')} has to take {a:,}."
            code += f"\nself.{path.removesuffix('.weight')} = nn.Linear({a}, {b})  # in __init__"
    sides = fitting_sides(scene)
    if sides:
        tried.append(f"pictures of {sides[0]}x{sides[0]}: runs through")
        fix += (
            f" The layers as they are fit pictures of {sides[0]}x{sides[0]}; nn.AdaptiveAvgPool2d before it fits any."
        )
    return fix, code, tuple(tried)


def _viewed(scene: Scene, view: Regroup) -> str:
    """What the line of the view assigns to, "x" where it assigns to nothing."""
    left = view.line.text.partition("=")[0].strip() if view.line is not None and "=" in view.line.text else ""
    return left if left.isidentifier() else "x"


CAUSES = (Cause(kinds=("batch-reshaped",), find=find_regrouped),)
