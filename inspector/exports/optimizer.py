"""The state dict of an optimizer for the repaired parameters: indices written anew, moments re-arranged as they were.

`keys/optimizer/remap.py` decides what follows whom; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.architectures.types import Target
from inspector.checkpoint.types import Checkpoint
from inspector.checkpoint.values import Value, ValueKind
from inspector.errors import ExportError, InspectorError
from inspector.exports.plain import NotPlain, plain_of
from inspector.keys.apply import state_of
from inspector.keys.operations import operation_of
from inspector.keys.optimizer.map import ELEMENTWISE, map_optimizers, may_be_parameter, value_at
from inspector.keys.optimizer.remap import OptimizerPlan, plan_travel
from inspector.keys.report import RepairPlan, Step

# What a user says yes to where groups of an optimizer can be read by kind of parameter, and in other ways too.
GROUPS_BY_KIND = "optimizer-groups"


def plan_optimizers(
    checkpoint: Checkpoint, plan: RepairPlan, target: Target, *, by_kind: bool = False
) -> tuple[OptimizerPlan, ...]:
    """What becomes of each optimizer of the file. by_kind: the yes to GROUPS_BY_KIND.

    Raises ExportError when the target's parameters are not known.
    """
    state = state_of(checkpoint, plan)
    known = {t.name: t.is_buffer for t in target.tensors}
    buffers = {s.source for s in plan.steps if s.source is not None and s.target is not None and known.get(s.target)}
    if not map_optimizers(checkpoint, state, buffers):
        return ()
    ndims, certain = _parameters(target)
    if certain:
        buffers |= {s.source for s in plan.steps if s.source is not None and s.target and s.target not in ndims}
    found = map_optimizers(checkpoint, state, buffers, by_kind=by_kind)
    return tuple(plan_travel(one, plan, tuple(ndims), ndims) for one in found)


def find_staying(goings: Sequence[OptimizerPlan]) -> OptimizerPlan | None:
    """The optimizer for which a file with optimizers cannot be written: none of them travels, or one of several in a
    list does not. None where it can.
    """
    staying = [going for going in goings if going.refusal]
    # In a list, the position is what loads: a gap would give one optimizer another's state.
    listed = [going for going in staying if going.map.path and going.map.path[-1].isdigit()]
    return (listed or staying)[0] if listed or (goings and len(staying) == len(goings)) else None


def _parameters(target: Target) -> tuple[dict[str, int], bool]:
    """(dimensions of the target's parameters, in the order of `model.parameters()`; whether a built model says so)."""
    if target.spec is not None:
        from inspector.architectures.build import build_model

        try:
            model = build_model(target.spec, device="meta")
        except InspectorError:
            pass
        else:
            return {name: parameter.dim() for name, parameter in model.named_parameters()}, True
    if not target.ordered:
        raise ExportError(
            f"The order of {target.label}'s parameters is not known, and an optimizer's indices go by it.",
            hint="Name an architecture or a .pth file as the target.",
        )
    if any(t.shape is None for t in target.tensors):
        raise ExportError(f"{target.label} tells no shapes, so no optimizer state can be checked against it.")
    wanted = [t for t in target.tensors if may_be_parameter(t.name, t.dtype, t.is_buffer)]
    return {t.name: len(t.shape or ()) for t in wanted}, False


def state_dict_of(checkpoint: Checkpoint, going: OptimizerPlan) -> dict[str, object]:
    """What `optimizer.load_state_dict` takes. Raises ExportError for a setting that is no plain value."""
    found = going.map
    names = [name for group in going.groups for name in group]
    keys: Mapping[str, int | str] = (
        {name: name for name in names} if found.by_name else {name: number for number, name in enumerate(names)}
    )
    state = {keys[name]: _moments(checkpoint, going, going.steps[name]) for name in names if name in going.steps}
    groups = []
    for number, (group, members) in enumerate(zip(found.groups, going.groups, strict=True)):
        settings: dict[str, object] = {}
        for label, child in group.settings.children:
            if label == "params":
                settings[label] = [keys[name] for name in members]
            elif label == "param_names":
                settings[label] = list(members)
            else:
                settings[label] = _setting(checkpoint, (*found.path, "param_groups", str(number), label), child)
        groups.append(settings)
    made: dict[str, object] = {"state": state, "param_groups": groups}
    for label, child in value_at(checkpoint.root, found.path).children:
        if label not in made:
            # An apex optimizer keeps fp32 copies of the weights beside its state: without them it is another training.
            made[label] = _setting(checkpoint, (*found.path, label), child)
    return made


def _setting(checkpoint: Checkpoint, path: tuple[str, ...], value: Value) -> object:
    if value.kind is ValueKind.TENSOR:
        # A learning rate on the device, as capturable optimizers keep it.
        info = next((t for t in checkpoint.tensors if t.path == path), None)
        if info is not None and info.numel == 1:
            from inspector.checkpoint.torch_bridge import to_torch

            return to_torch(checkpoint, info)
    try:
        return plain_of(value)
    except NotPlain as error:
        raise ExportError(
            f"{'.'.join(path)[:120]} is no plain value, and without it the optimizer would train otherwise.",
            hint="Write the weights without the optimizer.",
        ) from error


def _moments(checkpoint: Checkpoint, going: OptimizerPlan, step: Step) -> dict[str, object]:
    """One parameter's state: elements as the step arranges them, and what counts steps once."""
    from inspector.checkpoint.torch_bridge import raw_of, tensor_of, to_torch

    found, operation = going.map, operation_of(step)
    made: dict[str, object] = {}
    for name in found.state[step.sources[0]]:
        tensors = {source: to_torch(checkpoint, found.state[source][name]) for source in step.sources}
        if operation.id == "keep":
            made[name] = tensors[step.sources[0]]
        elif ELEMENTWISE.fullmatch(name) and operation.make is not None:
            raw = operation.make(step, {source: raw_of(tensor) for source, tensor in tensors.items()})
            made[name] = tensor_of(raw)
        else:
            made[name] = _one_of(step, name, list(tensors.values()))
    for name in found.plain[step.sources[0]]:
        try:
            values = [plain_of(found.plain[source][name]) for source in step.sources]
        except NotPlain as error:
            raise ExportError(f"{name} of {step.source}'s optimizer state is no plain value.") from error
        made[name] = _one_of(step, name, values)
    return made


def _one_of(step: Step, name: str, values: list[object]) -> object:
    """What has to be the same for all sources of a step: how many updates they have seen."""
    from torch import Tensor, equal

    first = values[0]
    for value in values[1:]:
        same = equal(first, value) if isinstance(first, Tensor) and isinstance(value, Tensor) else first == value
        if not same:
            raise ExportError(
                f"{step.target} is made of {', '.join(step.sources)}, whose optimizer states differ in {name}.",
                hint="Write the weights without the optimizer.",
            )
    return first
