"""Do what the plan says: the tensors of the file under the target's names, or a model with them in it.

Nothing is decided here. Every tensor of the result is a step of the plan.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import replace

import torch
from torch import Tensor, nn

from inspector.architectures.types import ArchitectureSpec
from inspector.checkpoint.torch_bridge import to_state_dict
from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.errors import KeysDoNotFit
from inspector.keys.initial import initial_values
from inspector.keys.report import RepairPlan, Step, StepKind
from inspector.keys.versions import renamed_versions
from inspector.units import counted


def apply_plan(checkpoint: Checkpoint, plan: RepairPlan, *, spec: ArchitectureSpec | None = None) -> dict[str, Tensor]:
    """An OrderedDict in the target's order, with torch's `_metadata` renamed along where the file has it.

    Tensors that share memory in the file share it here. spec: needed when the plan leaves tensors at their initial
    value. Raises KeysDoNotFit for a plan that is not complete: half a repair is none.
    """
    check_complete(plan)
    state = state_of(checkpoint, plan)
    used = {source for step in plan.steps if step.target is not None for source in step.sources}
    # What is left out need not be readable.
    source = to_state_dict(checkpoint, replace(state, tensors=tuple(t for t in state.tensors if t.name in used)))
    fresh = [s.target for s in plan.steps if s.kind is StepKind.FILL and s.value == "initial" and s.target is not None]
    if fresh and spec is None:
        raise KeysDoNotFit(
            f"{len(fresh)} tensors keep the model's initial value ({fresh[0]} first), and no model is given.",
            hint="Name an architecture as the target, such as torchvision/resnet18.",
        )
    initial = initial_values(spec, fresh) if fresh and spec is not None else {}
    made: OrderedDict[str, Tensor] = OrderedDict()
    for step in plan.steps:
        if step.target is not None:
            made[step.target] = _make(step, source, initial)
    versions = renamed_versions(plan)
    if versions:
        metadata = OrderedDict((path, {"version": version}) for path, version in versions)
        made._metadata = metadata  # type: ignore[attr-defined]
    return made


def load_repaired(checkpoint: Checkpoint, plan: RepairPlan, spec: ArchitectureSpec) -> nn.Module:
    """The target model with the repaired weights, strictly loaded, in eval mode. Raises KeysDoNotFit otherwise."""
    from inspector.architectures.build import build_model

    state = apply_plan(checkpoint, plan, spec=spec)
    model = build_model(spec)
    try:
        model.load_state_dict(state, strict=True)
    except RuntimeError as error:
        raise KeysDoNotFit(
            f"The repaired tensors do not load into {spec.label}: {str(error).splitlines()[-1].strip()}"
        ) from error
    return model.eval()


def check_complete(plan: RepairPlan) -> None:
    """Raise KeysDoNotFit, with what is open, unless the plan gives a strict load."""
    if plan.ambiguities:
        first = plan.ambiguities[0]
        options = " or ".join(f"{first.id}={option}" for option, _ in first.options)
        raise KeysDoNotFit(f"Not decided yet: {first.question}", hint=f"Choose {options}.")
    if plan.needs_accept:
        raise KeysDoNotFit(
            f"The repair is lossy: {', '.join(plan.needs_accept)} must be accepted first.",
            hint=f"Accept {plan.needs_accept[0]} if that loss is what you want.",
        )
    if not plan.complete:
        first_missing = f", {plan.missing[0]} first" if plan.missing else ""
        raise KeysDoNotFit(f"{plan.target} stays incomplete: {_count(plan.missing)} missing{first_missing}.")


def _count(names: tuple[str, ...]) -> str:
    return f"{counted(len(names), 'tensor')} {'is' if len(names) == 1 else 'are'}"


def state_of(checkpoint: Checkpoint, plan: RepairPlan) -> StateDict:
    """The state dict that the plan was made for."""
    for state in checkpoint.state_dicts:
        if state.path == plan.state_dict:
            return state
    raise KeysDoNotFit(f"{checkpoint.origin.name} has no state dict at {' / '.join(plan.state_dict) or 'its top'}.")


def spread_channels(weight: Tensor, channels: int) -> Tensor:
    """A first convolution's weight (out, in, *kernel) for another number of input channels, in its own dtype.

    Each new channel gets the sum over the old ones divided by the new count: a picture with equal channels gets the old
    answer. Computed in float64.
    """
    total = weight.to(torch.float64).sum(dim=1, keepdim=True) / channels
    return total.expand(-1, channels, *[-1] * (weight.dim() - 2)).to(weight.dtype).contiguous()


def resize_grid(embedding: Tensor, shape: tuple[int, ...], tokens: int) -> Tensor:
    """Position embeddings (1, tokens + n * n, width) for another square grid, in their own dtype.

    The first `tokens` stay; the grid is resized bicubically (align_corners False), computed in float32.
    """
    before, grid = embedding[:, :tokens], embedding[:, tokens:]
    old, new = math.isqrt(grid.shape[1]), math.isqrt(shape[1] - tokens)
    picture = grid.float().reshape(1, old, old, -1).permute(0, 3, 1, 2)
    picture = torch.nn.functional.interpolate(picture, size=(new, new), mode="bicubic", align_corners=False)
    grid = picture.permute(0, 2, 3, 1).reshape(1, new * new, -1).to(embedding.dtype)
    return torch.cat([before, grid], dim=1)


def undone(step: Step, tensor: Tensor) -> tuple[Tensor, ...]:
    """What each source must hold for a lossless step to have made this tensor: its inverse, up to the shape."""
    if step.kind is StepKind.PERMUTE:
        inverse = sorted(range(len(step.axes)), key=step.axes.__getitem__)
        return (tensor.permute(inverse).contiguous(),)
    if step.kind is StepKind.MERGE:
        return tensor.chunk(len(step.sources))
    return (tensor,)


def _make(step: Step, source: dict[str, Tensor], initial: dict[str, Tensor]) -> Tensor:
    if step.kind is StepKind.FILL:
        if step.value == "initial":
            return initial[step.target or ""]
        # Only counters are filled with a constant, and those are int64 in torch.
        made = torch.zeros if step.value == "zero" else torch.ones
        return made(step.shape or (), dtype=torch.int64)
    tensor = source[step.source or ""]
    if step.kind is StepKind.RESHAPE:
        return tensor.reshape(step.shape or ())
    if step.kind is StepKind.PERMUTE:
        return tensor.permute(step.axes).contiguous()
    if step.kind is StepKind.MERGE:
        return torch.cat([source[name] for name in step.sources])
    if step.kind is StepKind.SPLIT:
        return tensor[step.rows[0] : step.rows[1]].clone()
    if step.value.startswith("resize-grid:"):
        return resize_grid(tensor, step.shape or (), int(step.value.partition(":")[2]))
    if step.kind is StepKind.ADAPT:
        return spread_channels(tensor, (step.shape or (0, 0))[1])
    return tensor
