"""One fuzzed case: a network, damaged on either side, repaired, and every tensor compared with the truth.

Silent is what a strict load would take although a tensor is on another's place, or has numbers of another set.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.checkpoint.types import Checkpoint
from inspector.errors import KeysDoNotFit
from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.keys.report import Cost, Evidence, RepairPlan, StepKind
from inspector.keys.rules import RULES
from tests.keys.fuzz.damages import DAMAGES, Damage
from tests.keys.fuzz.networks import Tensor, network

ACCEPTABLE = tuple(r.id for r in RULES if r.consent or (r.cost is Cost.LOSSY and r.steps is not None))
_PLACED = (StepKind.KEEP, StepKind.RENAME, StepKind.RESHAPE, StepKind.PERMUTE, StepKind.SPLIT, StepKind.MERGE)

Saved = Callable[..., Checkpoint]


@dataclass(frozen=True)
class Case:
    """ours: what is in the file; goal: what the target expects, with the numbers that belong there."""

    seed: str
    damages: tuple[str, ...]
    ours: list[Tensor]
    goal: list[Tensor]
    ordered: bool


def make_case(seed: str, damages: Sequence[Damage] = DAMAGES) -> Case:
    rng = random.Random(seed)
    ours = goal = network(rng)
    done = []
    for damage in rng.choices(damages, k=rng.choice((1, 2, 2, 3, 3, 4))):
        on_file = damage.__name__ == "twin" or rng.random() < 0.7
        done.append(f"{damage.__name__}{'' if on_file else ' of the target'}")
        if on_file:
            ours = damage(ours, rng)
        else:
            goal = damage(goal, rng)
    return Case(seed, tuple(done), ours, goal, rng.random() < 0.5)


@dataclass(frozen=True)
class Verdict:
    """complete: a strict load passes (or the part that was asked for). wrong: places with a tensor of another."""

    complete: bool
    wrong: tuple[str, ...]
    plan: RepairPlan | None


def judge(case: Case, saved: Saved, *, accept: bool = False, partial: bool = False) -> Verdict:
    state = {t.name: t.value.contiguous() for t in case.ours}
    tensors = tuple(TargetTensor(name=t.name, shape=tuple(t.value.shape), dtype="float32") for t in case.goal)
    target = Target(label="the target", kind=TargetKind.FILE, tensors=tensors)
    checkpoint = saved(state, ordered=case.ordered)
    plan = diagnose(checkpoint, target, accept=ACCEPTABLE if accept else (), partial=partial).plan
    if plan is None or not plan.complete:
        return Verdict(False, (), plan)
    try:
        made = apply_plan(checkpoint, plan)
    except KeysDoNotFit:
        return Verdict(False, (), plan)  # the numbers contradict what the step rests on: nothing is written
    return Verdict(True, wrong_places(case, plan, made), plan)


def wrong_places(case: Case, plan: RepairPlan, made: dict[str, torch.Tensor]) -> tuple[str, ...]:
    from tests.keys.fuzz.networks import again

    own = {t.name: t for t in case.goal}
    place_of = {t.name: t.place for t in case.ours}
    owner_of = {t.name: t.owner for t in case.ours}
    other = {t.place: t.value for t in again(network(random.Random(case.seed)), "other")}
    wrong, owners = [], set()
    for step in plan.steps:
        if step.kind not in _PLACED or step.target is None:
            continue
        if step.target.endswith(("num_batches_tracked", "inv_freq")):
            continue
        if plan.partial and step.evidence is Evidence.EXACT_NAME:
            continue  # the names' own word; where other places stay empty, nothing can contradict it
        if (
            step.source is not None
            and place_of[step.source] == own[step.target].place
            and own[step.target].owner != "own"
        ):
            continue  # something that both sides got, under one name
        owner = {owner_of[name] for name in step.sources}
        owners |= owner
        truth = own[step.target].value
        if owner == {"other"}:
            truth = other.get(own[step.target].place, made[step.target])
        got = made[step.target]
        if got.shape != truth.shape or not torch.allclose(got, truth, atol=1e-5):
            wrong.append(step.target)
    return tuple(wrong) if wrong or len(owners) < 2 else ("two sets of weights, mixed",)
