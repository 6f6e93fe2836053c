"""An optimizer's state through a repair: which parameter of the target gets whose moments, and under which index.

Whoever loads the new file builds the optimizer over the target's parameters, in the target's order, so indices are
written anew for that order. Moments follow their parameter where a step only re-names or re-arranges its elements; what
a step computes, or leaves at its initial value, has none. Where that would not train on as before, the state stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from inspector.keys.operations import operation_of
from inspector.keys.optimizer.by_index import class_of
from inspector.keys.optimizer.map import ELEMENTWISE, LAZY, OptimizerMap
from inspector.keys.report import RepairPlan, Step, StepKind

# Operations that move elements and change none, so that they do the same to moments.
_MOVES = frozenset({"keep", "reshape", "permute", "merge", "split", "grouped"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerPlan:
    """How one optimizer's state goes on.

    groups: per group of the optimizer, the target's parameters in the order of their new indices. steps: parameter ->
    the step whose sources' state it gets; parameters without one start without state. dropped: what is left behind, a
    sentence each. refusal: why the state cannot travel, "" when it does.
    """

    map: OptimizerMap
    groups: tuple[tuple[str, ...], ...] = ()
    steps: Mapping[str, Step] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    refusal: str = ""

    @property
    def says(self) -> str:
        """The answer in one sentence."""
        if self.refusal:
            return f"{self.map.label}: the optimizer state cannot travel: {self.refusal}."
        count = len(self.steps)
        return f"{self.map.label}: {self.map.kind} state of {count:,} parameters follows them, indices rewritten."


class _Stays(Exception):
    """Why, as the end of a sentence."""


def plan_travel(
    found: OptimizerMap, plan: RepairPlan, parameters: Sequence[str], ndims: Mapping[str, int]
) -> OptimizerPlan:
    """Follow the plan's steps with one optimizer's state.

    parameters: the target's, in the order of `model.parameters()`, shared ones once. ndims: dimensions of each.
    """
    if found.refusal:
        return OptimizerPlan(map=found, refusal=found.refusal)
    try:
        return _travel(found, plan, parameters, ndims)
    except _Stays as error:
        return OptimizerPlan(map=found, refusal=str(error))


def _travel(
    found: OptimizerMap, plan: RepairPlan, parameters: Sequence[str], ndims: Mapping[str, int]
) -> OptimizerPlan:
    group_of = {name: number for number, group in enumerate(found.groups) for name in group.names}
    making = _making(plan, parameters)
    groups: list[list[str]] = [[] for _ in found.groups]
    steps: dict[str, Step] = {}
    dropped: list[str] = []
    used: set[str] = set()
    partly = len(found.names) < len(found.listed)
    for name in parameters:
        step = making.get(name)
        if step is None or not step.sources:
            if partly:
                raise _Stays(f"{name} is new, and the optimizer had only a part of the parameters")
            groups[_group_of_new(name, ndims, found)].append(name)
            dropped.append(f"{name}: new, starts without optimizer state")
            continue
        members = {group_of.get(source) for source in step.sources}
        used.update(step.sources)
        if members == {None}:
            if not partly:
                raise _Stays(f"{step.source} is no parameter of it, and {name} is one of the target")
            continue  # Frozen there: whoever builds the optimizer again leaves it out again.
        if len(members) != 1 or None in members:
            raise _Stays(f"{name} is made of parameters that are not in one group")
        (number,) = members
        groups[number or 0].append(name)
        if not _follows(step, found):
            _check_lazy(found, name)
            dropped.append(f"{name}: its values are computed anew, so its optimizer state is left behind")
        elif any(found.state[source] or found.plain[source] for source in step.sources):
            steps[name] = step
    if found.sorted_names:
        here = [step.sources[0] for name in parameters if (step := making.get(name)) is not None and step.sources]
        ours = sorted((source for source in here if source in group_of), key=found.order.__getitem__)
        if ours != [source for source in here if source in group_of]:
            raise _Stays("the file's tensors are sorted by name, so its indices may go by another order than theirs")
    lost = [source for source in group_of if source not in used]
    places = {step.source: step for step in plan.steps if step.source is not None}
    for source in lost:
        step = places.get(source)
        if step is not None and step.target is not None:
            raise _Stays(f"{source} is one of its parameters, and {step.target} is none of the target")
        dropped.append(f"{source}: left out, and its optimizer state with it")
    if not all(groups):
        raise _Stays("one of its groups would have no parameter left")
    return OptimizerPlan(map=found, groups=tuple(map(tuple, groups)), steps=steps, dropped=tuple(dropped))


def _making(plan: RepairPlan, parameters: Sequence[str]) -> dict[str, Step]:
    """The step that makes each parameter; of a tied one, that of the place whose memory it shares."""
    making = {step.target: step for step in plan.steps if step.target is not None}
    own = {step.source: step for step in plan.steps if step.target is not None and step.kind is not StepKind.TIE}
    for name, step in list(making.items()):
        if step.kind is StepKind.TIE and name in parameters and step.source in own:
            making[name] = own[step.source]
    return making


def _follows(step: Step, found: OptimizerMap) -> bool:
    """Whether the step does to the state what it does to the numbers. Raises where it is not known."""
    operation = operation_of(step).id
    if operation not in _MOVES:
        return False
    if operation == "keep":
        return True
    for source in step.sources:
        for name, tensor in found.state[source].items():
            if tensor.numel > 1 and not ELEMENTWISE.fullmatch(name):
                raise _Stays(f"{name} of {source} is not one number per element, and {step.target} is re-arranged")
    kinds = {frozenset((*found.state[source], *found.plain[source])) for source in step.sources}
    if len(kinds) > 1:
        raise _Stays(f"the parameters that {step.target} is made of do not have the same state")
    return True


def _group_of_new(name: str, ndims: Mapping[str, int], found: OptimizerMap) -> int:
    _check_lazy(found, name)
    if len(found.groups) == 1:
        return 0
    group = found.class_of_group.get(class_of(name, ndims[name]))
    if group is None:
        raise _Stays(f"{name} is new, and nothing tells which of its {len(found.groups)} groups it is for")
    return group


def _check_lazy(found: OptimizerMap, name: str) -> None:
    if found.kind not in LAZY:
        raise _Stays(f"{name} would have no state, and {found.kind} is not known to start one in the middle")
