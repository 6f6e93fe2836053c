"""Do what the plan says: the tensors of the file under the target's names, or a model with them in it.

Nothing is decided here. Every tensor of the result is a step of the plan. Steps are done on raw tensors, without torch;
`apply_plan` hands them over as torch's, and only a model needs it.
"""

from __future__ import annotations

import textwrap
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from inspector.architectures.types import ArchitectureSpec
from inspector.checkpoint.gathered import gather
from inspector.checkpoint.layout import fraction_lost
from inspector.checkpoint.raw_tensor import RawTensor
from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
from inspector.errors import KeysDoNotFit
from inspector.installed import require
from inspector.keys.operations import operation_of
from inspector.keys.report import RepairPlan, Step, StepKind
from inspector.keys.versions import renamed_versions
from inspector.units import counted

if TYPE_CHECKING:
    from torch import Tensor, nn

_SHOWN = 400  # characters of torch's own message


def apply_plan(checkpoint: Checkpoint, plan: RepairPlan, *, spec: ArchitectureSpec | None = None) -> dict[str, Tensor]:
    """An OrderedDict in the target's order, with torch's `_metadata` renamed along where the file has it.

    Tensors that share memory in the file share it here. spec: needed when the plan leaves tensors at their initial
    value. Raises KeysDoNotFit for a plan that is not complete, since half a repair is none, and for a file that ends
    before the plan's tensors do.
    """
    from inspector.checkpoint.torch_bridge import raw_of, tensor_of, to_state_dict

    check_complete(plan)
    check_whole(checkpoint, plan)
    state = state_of(checkpoint, plan)
    used = {name for step in plan.steps for name in needed_by(step)}
    # What is left out need not be readable.
    held = to_state_dict(checkpoint, replace(state, tensors=tuple(t for t in state.tensors if t.name in used)))
    source = {name: raw_of(tensor, shows=name) for name, tensor in held.items()}
    initial = initial_of(plan, spec)

    def tensor_like(raw: RawTensor) -> Tensor:
        own = source.get(raw.shows)
        if own is None or raw is own:
            return tensor_of(raw) if own is None else held[raw.shows]
        # One storage, so that what was tied stays so.
        offset = (raw.address - own.address) // raw.array.itemsize if raw.numel else 0
        return held[raw.shows].as_strided(raw.shape, raw.stride, held[raw.shows].storage_offset() + offset)

    made: OrderedDict[str, Tensor] = OrderedDict()
    for step in plan.steps:
        check_one(step, source.__getitem__)
        if step.target is not None:
            made[step.target] = tensor_like(make_one(step, source.__getitem__, initial))
    versions = renamed_versions(plan)
    if versions:
        metadata = OrderedDict((path, {"version": version}) for path, version in versions)
        made._metadata = metadata  # type: ignore[attr-defined]
    return made


def not_whole(checkpoint: Checkpoint, plan: RepairPlan) -> tuple[TensorInfo, ...]:
    """The tensors that the plan takes and of which the file has not every number: nothing can be tried with them."""
    used = {name for step in plan.steps for name in needed_by(step)}
    return whole_and_cut(checkpoint, [t for t in state_of(checkpoint, plan).tensors if t.name in used])[1]


def whole_and_cut(
    checkpoint: Checkpoint, tensors: Sequence[TensorInfo]
) -> tuple[tuple[TensorInfo, ...], tuple[TensorInfo, ...]]:
    """Those of which the file has every number, and those of which it has not."""
    cut = [fraction_lost(tensor, checkpoint.storages) > 0 for tensor in tensors]
    pairs = list(zip(tensors, cut, strict=True))
    return tuple(t for t, is_cut in pairs if not is_cut), tuple(t for t, is_cut in pairs if is_cut)


def check_whole(checkpoint: Checkpoint, plan: RepairPlan) -> None:
    """Raise KeysDoNotFit where `not_whole` finds any: what is whole can be written without a target."""
    broken = not_whole(checkpoint, plan)
    if broken:
        total = counted(len(state_of(checkpoint, plan).tensors), "tensor")
        verb = "is" if len(broken) == 1 else "are"
        raise KeysDoNotFit(
            f"{len(broken):,} of {total} {verb} not whole in {checkpoint.origin.name} ({broken[0].name} is the first), "
            "so no repair was tried.",
            hint="Download or copy it again. A partial repair (--partial) takes the tensors that are whole.",
        )


def initial_of(plan: RepairPlan, spec: ArchitectureSpec | None) -> dict[str, RawTensor]:
    """The model's initial values for the tensors that the plan leaves there. Raises KeysDoNotFit without a model."""
    fresh = [s.target for s in plan.steps if s.kind is StepKind.FILL and s.value == "initial" and s.target is not None]
    if fresh and spec is None:
        raise KeysDoNotFit(
            f"{len(fresh)} tensors keep the model's initial value ({fresh[0]} first), and no model is given.",
            hint="Name an architecture as the target, such as torchvision/resnet18.",
        )
    if not fresh or spec is None:
        return {}
    from inspector.checkpoint.torch_bridge import raw_of
    from inspector.keys.initial import initial_values

    return {name: raw_of(tensor) for name, tensor in initial_values(spec, fresh).items()}


def check_installed(plan: RepairPlan) -> None:
    """Raise MissingLibrary, with the command that helps, where a step takes torch and there is none."""
    steps = [step for step in plan.steps if operation_of(step).by_torch]
    if steps:
        require("torch", f"Nothing was written: to {operation_of(steps[0]).says.format(steps[0].target)}")


def make_one(step: Step, load: Callable[[str], RawTensor], initial: Mapping[str, RawTensor] | None = None) -> RawTensor:
    """The tensor that one step makes, of nothing but its own sources: a plan can be applied tensor by tensor.

    load: a tensor of the file by its name. initial: the model's initial values by target name, for steps that keep one.
    Raises KeysDoNotFit for a step that makes none.
    """
    make = operation_of(step).make
    if make is None or step.target is None:
        raise KeysDoNotFit(f"{step.source} is left out: no tensor is made of it.")
    if step.kind is StepKind.FILL:
        return make(step, initial or {})
    return make(step, {name: load(name) for name in step.sources})


def needed_by(step: Step) -> tuple[str, ...]:
    """Tensors of the file that must be readable for this step: those it makes one of, and those it is checked by."""
    if step.target is None and operation_of(step).check is None:
        return ()
    return (*step.sources, *step.beside)


def check_one(step: Step, load: Callable[[str], RawTensor]) -> None:
    """Raise KeysDoNotFit when the file's numbers are not what the step rests on: a copy that is none, a bias not zero.

    Names and shapes made the plan; this is asked before anything of it is used. load: a tensor by its name.
    """
    check = operation_of(step).check
    wrong = check(step, {name: load(name) for name in needed_by(step)}) if check is not None else ""
    if wrong:
        raise KeysDoNotFit(wrong, hint=operation_of(step).otherwise)


def load_repaired(checkpoint: Checkpoint, plan: RepairPlan, spec: ArchitectureSpec) -> nn.Module:
    """The target model with the repaired weights, strictly loaded, in eval mode. Raises KeysDoNotFit otherwise.

    So it does for a part: a model with untrained layers in it answers, and the answers mean nothing.
    Raises UsageError while something that the model's answers depend on is only assumed.
    """
    from inspector.architectures.build import build_model
    from inspector.architectures.families.building import check_confirmed

    check_confirmed(spec)
    return load_into(build_model(spec), checkpoint, plan, spec=spec)


def load_into(
    model: nn.Module, checkpoint: Checkpoint, plan: RepairPlan, *, spec: ArchitectureSpec | None = None
) -> nn.Module:
    """This model with the repaired weights, strictly loaded, in eval mode. Raises KeysDoNotFit otherwise.

    spec: what the model was built from, where it was.
    """
    if plan.partial:
        raise KeysDoNotFit(f"{_count(plan.missing)} missing, {plan.missing[0]} first: a part of a model is not run.")
    state = apply_plan(checkpoint, plan, spec=spec)
    try:
        model.load_state_dict(state, strict=True)
    except (RuntimeError, ValueError) as error:
        goal = plan.target if spec is None else spec.label
        why = textwrap.shorten(str(error).splitlines()[-1].strip(), _SHOWN, placeholder=" ...")
        raise KeysDoNotFit(f"The repaired tensors do not load into {goal}: {why}") from error
    return model.eval()


def check_complete(plan: RepairPlan) -> None:
    """Raise KeysDoNotFit, with what is open, unless the plan gives a strict load, or the part that was asked for."""
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
        raise KeysDoNotFit(
            f"{plan.target} stays incomplete: {_count(plan.missing)} missing{first_missing}.",
            hint="Ask for a partial repair if they may stay at their initial value.",
        )


def _count(names: tuple[str, ...]) -> str:
    return f"{counted(len(names), 'tensor')} {'is' if len(names) == 1 else 'are'}"


def state_of(checkpoint: Checkpoint, plan: RepairPlan) -> StateDict:
    """The state dict that the plan was made for; where its parts lie apart in the file, all of them as one."""
    if plan.gathered:
        try:
            return gather(checkpoint.state_dicts, plan.gathered, plan.state_dict)
        except KeyError as error:
            raise KeysDoNotFit(f"{checkpoint.origin.name} has not all the parts of the plan.") from error
    for state in checkpoint.state_dicts:
        if state.path == plan.state_dict:
            return state
    raise KeysDoNotFit(f"{checkpoint.origin.name} has no state dict at {' / '.join(plan.state_dict) or 'its top'}.")
