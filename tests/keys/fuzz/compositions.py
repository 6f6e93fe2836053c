"""One to four adversaries at work on one small network, and what becomes of it: right, asked, refused, or wrong.

The user knows the truth and sees what each answer would do: of a question's options they take the one that puts fewest
tensors wrong, and none where every option puts one wrong that was not wrong without it. What leaves tensors out is the
answer only where every other puts some wrong that no later one can put right.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import torch

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.checkpoint.types import Checkpoint
from inspector.errors import KeysDoNotFit, UsageError
from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.keys.report import KeyReport, RepairPlan, StepKind
from tests.keys.fuzz import adversaries as names
from tests.keys.fuzz import adversaries_tensors as tensors
from tests.keys.fuzz.adversaries import Adversary, Row, Scene
from tests.keys.fuzz.families import FAMILIES

ADVERSARIES: tuple[Adversary, ...] = (
    names.wrapped,
    names.wrapped_below,
    names.target_wrapped,
    names.target_by_synonyms,
    names.by_synonyms,
    names.by_synonyms,
    names.numbered_otherwise,
    names.counted_from_behind,
    names.words_invented,
    names.scrambled,
    names.norms_renamed,
    names.exchanged,
    names.order_shuffled,
    names.order_shuffled,
    names.channels_permuted,
    names.transposed,
    names.half_channels_last,
    tensors.library,
    tensors.library,
    tensors.foreign_words,
    tensors.second_set,
    tensors.strays,
    tensors.fused,
    tensors.split,
    tensors.head_changed,
    tensors.dtype,
    tensors.some_missing,
    tensors.no_counters,
    tensors.tied,
)
_MOST_ROUNDS = 10
_LEAVES_OUT = ("otherwise", "leave-out")
Saved = Callable[..., Checkpoint]


class Outcome(StrEnum):
    """RIGHT: complete and right, unasked. ANSWERED: after truthful answers. OPEN: not complete, and it says so.

    NOTHING_TELLS: complete, and wrong only where an adversary lied. WRONG: complete, and wrong where the file tells.
    """

    RIGHT = "right, unasked"
    ANSWERED = "right after truthful answers"
    OPEN = "waits for more"
    REFUSED = "refused"
    NOTHING_TELLS = "wrong where nothing tells"
    WRONG = "WRONG"


@dataclass(frozen=True)
class Verdict:
    """asked: ids of what was asked; wrong: places with other numbers; says: the diagnosis at the end."""

    outcome: Outcome
    done: tuple[str, ...]
    asked: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    says: str = ""


def make(seed: str) -> tuple[Scene, tuple[str, ...]]:
    """The network of a seed after its adversaries, and who they were."""
    rng = random.Random(seed)
    family = rng.choice(FAMILIES)
    numbers = torch.Generator().manual_seed(rng.getrandbits(40))
    goal = {name: _numbers(name, shape, numbers) for name, shape in family(rng).items()}
    scene = Scene(rows=[Row(name, name, value) for name, value in goal.items()], goal=goal)
    drawn = rng.choices(ADVERSARIES, k=rng.choice((1, 2, 2, 3, 3, 4)))
    done = [adversary.__name__ for adversary in drawn if adversary(scene, rng)]
    scene.lied |= _told_another_order(scene)
    return scene, (family.__name__, *done)


def _told_another_order(scene: Scene) -> set[str]:
    """Places of what was fused in another order and then given the name under which one code alone writes it, whose
    order is query, key, value: to_qkv with to_out.0 beside it."""
    keys = {row.key for row in scene.rows}
    return {
        place
        for row in scene.rows
        if row.crossed and row.key.endswith(".to_qkv.weight") and row.key.replace("to_qkv", "to_out.0") in keys
        for place in row.crossed
    }


def _numbers(name: str, shape: tuple[int, ...], numbers: torch.Generator) -> torch.Tensor:
    if name.endswith("num_batches_tracked"):
        return torch.randint(1, 2**40, shape, generator=numbers)
    made = torch.rand(shape, generator=numbers)
    return made + 0.1 if len(shape) < 2 else made - 0.5


def run(seed: str, saved: Saved) -> Verdict:
    """One composition from its seed to its verdict."""
    scene, done = make(seed)
    checkpoint = saved({row.key: row.value.contiguous() for row in scene.rows}, ordered=scene.ordered)
    known = tuple(TargetTensor(name=n, shape=tuple(v.shape), dtype="float32") for n, v in scene.goal.items())
    target = Target(label="the target", kind=TargetKind.FILE, tensors=known)
    asked: dict[str, None] = {}
    accept: tuple[str, ...] = ()
    answers: dict[str, str] = {}
    report = diagnose(checkpoint, target)
    for _ in range(_MOST_ROUNDS):
        plan = report.plan
        if plan is None or not (plan.ambiguities or plan.needs_accept):
            break
        asked |= dict.fromkeys((*(q.id for q in plan.ambiguities), *plan.needs_accept))
        better = _answer(scene, checkpoint, target, report, accept, answers)
        if better is None:
            break
        accept, answers, report = better
    plan = report.plan
    more = {"done": done, "asked": tuple(asked), "says": report.says}
    if plan is None:
        return Verdict(Outcome.REFUSED, **more)
    if not plan.complete:
        return Verdict(Outcome.OPEN, **more)
    try:
        wrong = _wrong(scene, apply_plan(checkpoint, plan), _placed(plan))
    except KeysDoNotFit:
        return Verdict(Outcome.REFUSED, **more)
    if wrong - scene.lied:
        return Verdict(Outcome.WRONG, wrong=tuple(sorted(wrong - scene.lied)), **more)
    if wrong:
        return Verdict(Outcome.NOTHING_TELLS, wrong=tuple(sorted(wrong)), **more)
    return Verdict(Outcome.ANSWERED if asked else Outcome.RIGHT, **more)


Answered = tuple[tuple[str, ...], dict[str, str], KeyReport]


def _answer(
    scene: Scene,
    checkpoint: Checkpoint,
    target: Target,
    report: KeyReport,
    accept: tuple[str, ...],
    answers: dict[str, str],
) -> Answered | None:
    """The first question that the user can answer, answered; None where there is none any more."""
    assert report.plan is not None
    before = _wrong_of(scene, checkpoint, report.plan)
    for question in report.plan.ambiguities:
        asked_at = (*(question.at(place) for place in question.places), question.id) if question.places else ()
        for ident in dict.fromkeys((*asked_at[:1], question.id)):
            tried = []
            for option, _ in question.options:
                try:
                    made = diagnose(checkpoint, target, accept=accept, choose={**answers, ident: option})
                except UsageError:
                    continue
                if made.plan is not None:
                    wrong = _wrong_of(scene, checkpoint, made.plan)
                    lost = _lost(scene, checkpoint, made.plan, wrong)
                    order = (len(lost), option in _LEAVES_OUT, len(wrong), -_count(made.plan), len(tried))
                    tried.append((order, wrong, option, made))
            best = min(tried, default=None, key=lambda t: t[0])
            if best is not None and best[1] <= before and (ident not in answers):
                return accept, {**answers, ident: best[2]}, best[3]
    for rule in report.plan.needs_accept:
        made = diagnose(checkpoint, target, accept=(*accept, rule), choose=answers)
        if made.plan is not None and _wrong_of(scene, checkpoint, made.plan, waiting=()) <= before | scene.lied:
            return (*accept, rule), answers, made
    return None


def _lost(scene: Scene, checkpoint: Checkpoint, plan: RepairPlan, wrong: set[str]) -> set[str]:
    """Of the wrong ones those that no answer to what is still asked can turn round."""
    if not plan.ambiguities or not wrong:
        return wrong
    steps = tuple(s for s in plan.steps if s.target in wrong)
    made = apply_plan(
        checkpoint, replace(plan, steps=steps, ambiguities=(), needs_accept=(), missing=(), complete=True)
    )
    return {n for n in wrong if scene.goal[n].dim() != 2 or not _same(made[n], scene.goal[n].t())}


def _count(plan: RepairPlan) -> int:
    return sum(step.source is not None and step.target is not None for step in plan.steps)


def _placed(plan: RepairPlan) -> set[str]:
    """Places that are filled from the file: what is filled in is not of it."""
    return {s.target for s in plan.steps if s.target is not None and s.kind is not StepKind.FILL}


def _wrong_of(
    scene: Scene, checkpoint: Checkpoint, plan: RepairPlan, waiting: tuple[str, ...] | None = None
) -> set[str]:
    """Places that the plan fills wrongly as far as it goes, without what waits to be accepted."""
    held = set(plan.needs_accept if waiting is None else waiting)
    steps = tuple(s for s in plan.steps if s.kind is not StepKind.FILL and held.isdisjoint((s.rule, *s.also)))
    part = replace(plan, steps=steps, ambiguities=(), needs_accept=(), missing=(), complete=True)
    try:
        return _wrong(scene, apply_plan(checkpoint, part), _placed(part)) - scene.lied
    except KeysDoNotFit:
        return set()


def _wrong(scene: Scene, made: dict[str, torch.Tensor], placed: set[str]) -> set[str]:
    return {
        name
        for name, truth in scene.goal.items()
        if name in made and name in placed and name not in scene.unjudged and not _same(made[name], truth)
    }


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bit for bit: a fused or turned tensor is compared whole."""
    return one.shape == other.shape and torch.equal(one, other.to(one.dtype))
