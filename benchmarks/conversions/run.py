"""One pair in one direction: save, diagnose, answer, repair, load strictly, and run both on one input.

The judge is the answer: with random weights in every tensor, two networks that answer alike have every tensor in its
place, in its layout and in its order. Where they differ and nothing was said, that is the worst there is: silent.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.conversions.sides import Pair, Side
from benchmarks.conversions.weights import randomise
from inspector import open_checkpoint
from inspector.architectures.code_runner import describe
from inspector.architectures.types import Target
from inspector.architectures.user_code import Factory, parse_factory, target_described
from inspector.checkpoint.types import Checkpoint
from inspector.errors import InspectorError
from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.keys.report import Ambiguity, Evidence, KeyReport, Step
from inspector.keys.rules import inverted_residuals, other_library, other_words

MOST_ROUNDS = 12
MOST_TRIED = 96
# Of the largest number in the answer. Rounding alone differs, since sums are taken in other orders.
CLOSE = 1e-3  # in float32
TELLING = "cannot-tell"


class Result(StrEnum):
    """What became of one direction of a pair."""

    EQUAL = "equal"
    ANSWERED = "equal after answers"
    REFUSED = "refused"
    ASKS = "asked, no answer gives equal outputs"
    RIGHTLY_NOT = "not equal by design, and not called complete"
    TOLD = "unequal, said"
    SILENT = "SILENT"
    BROKEN = "broken"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One direction. placed: tensors of the target by what put them there. differs: largest difference by precision,
    of the largest number in the answer. spread: that number. other: the same difference with other random weights, so
    that a small one is known to mean something."""

    pair: str
    ours: str
    theirs: str
    result: Result
    tensors: int = 0
    by_name: int = 0
    by_law: int = 0
    by_words: int = 0
    by_table: int = 0
    filled: int = 0
    asked: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    differs: Mapping[str, float] | None = None
    spread: float = 0.0
    other: float = 0.0
    says: str = ""
    rules: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    seconds: float = 0.0
    same: str = ""


def directions(pair: Pair) -> Iterator[tuple[Side, Side]]:
    if pair.theirs.can_be_target:
        yield pair.ours, pair.theirs
    if pair.both and pair.ours.can_be_target:
        yield pair.theirs, pair.ours


def target_of(model: nn.Module, library: str) -> Target:
    """What `code:` gives for this model."""
    factory: Factory = parse_factory(f"code:{library}.py:build")
    return target_described(describe(model), factory)


def convert(pair: Pair, ours: Side, theirs: Side) -> Row:
    """From ours to theirs. Whatever the engine raises is a row that says so."""
    blank = Row(pair=pair.id, ours=ours.library, theirs=theirs.library, result=Result.BROKEN, same=pair.same)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        source, goal = ours.build(), theirs.build()
        _fresh(ours, source, 1)
        _fresh(theirs, goal, 2)
        x = pair.input()
        before = {d: theirs.run(_in(theirs, goal, d), _cast(x, d)) for d in (torch.float64, torch.float32)}
        wanted = {d: ours.run(_in(ours, source, d), _cast(x, d)) for d in (torch.float64, torch.float32)}
        checkpoint = open_checkpoint(ours.save(source, Path(folder)))
        target = target_of(goal, theirs.library)
        started = time.perf_counter()
        try:
            report = diagnose(checkpoint, target, partial=pair.partial)
        except InspectorError as error:
            return replace(blank, says=f"{type(error).__name__}: {error}")
        seconds = time.perf_counter() - started
        spread = float(wanted[torch.float64].abs().max())
        other = float((before[torch.float64] - wanted[torch.float64]).abs().max()) / spread
        blank = replace(blank, tensors=len(target.tensors), spread=spread, other=other, seconds=seconds)

        def judged(report: KeyReport) -> dict[str, float] | str:
            if report.plan is None or not report.plan.complete:
                return report.says
            try:
                state = apply_plan(checkpoint, report.plan)
            except InspectorError as error:
                return f"{type(error).__name__}: {error}"
            fresh = theirs.build()
            found = fresh.load_state_dict(state, strict=not pair.partial)
            if pair.partial and found.unexpected_keys:
                return f"unexpected: {found.unexpected_keys[:3]}"
            answers = {d: theirs.run(_in(theirs, fresh, d), _cast(x, d)) for d in (torch.float64, torch.float32)}
            return {str(d).rpartition(".")[2]: float((answers[d] - wanted[d]).abs().max()) / spread for d in answers}

        report, asked, accepted = _answered(pair, checkpoint, target, report, judged)
        outcome = judged(report)
        row = _counted(replace(blank, asked=asked, accepted=accepted), report)
        if isinstance(outcome, str):
            refused = report.plan is None
            not_done = Result.REFUSED if refused else Result.ASKS
            return replace(row, result=Result.RIGHTLY_NOT if pair.impossible else not_done, says=outcome)
        equal = outcome["float64"] <= pair.rounds and outcome["float32"] <= CLOSE
        helped = bool(asked or accepted)
        wrong = Result.TOLD if row.caveats else Result.SILENT
        result = (Result.ANSWERED if helped else Result.EQUAL) if equal else wrong
        return replace(row, result=result, differs=outcome, says=report.says)


def _fresh(side: Side, model: Any, seed: int) -> None:
    if side.randomise is not None:
        side.randomise(model, seed)
    else:
        randomise(model, seed, side.fixed)


def _in(side: Side, model: Any, dtype: torch.dtype) -> Any:
    if side.double is not None:
        return side.double(model) if dtype == torch.float64 else model
    return model.to(dtype)


def _cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.to(dtype) if x.is_floating_point() else x


def _answered(
    pair: Pair, checkpoint: Checkpoint, target: Target, report: KeyReport, judged: Any
) -> tuple[KeyReport, tuple[str, ...], tuple[str, ...]]:
    """(last report, questions that were answered, rules that were accepted), from a user who knows both networks."""
    asked: dict[str, None] = {}
    accepted: dict[str, None] = {}
    answers: dict[str, str] = {}
    for _ in range(MOST_ROUNDS):
        plan = report.plan
        if plan is None or not (plan.ambiguities or plan.needs_accept):
            break
        willing = [rule for rule in plan.needs_accept if rule in pair.accept]
        accepted |= dict.fromkeys(willing)
        told: dict[str, str] = {}
        open_: list[Ambiguity] = []
        for question in plan.ambiguities:
            said = pair.answers.get(question.id) or pair.answers.get(question.id.partition(":")[0])
            if said in dict(question.options):
                told[question.id] = str(said)
            else:
                open_.append(question)
        if open_ and not told:
            told = _tried(pair, checkpoint, target, open_, (tuple(accepted), answers), judged)
        if not told.keys() - answers.keys() and not willing:
            break
        asked |= dict.fromkeys(told)
        answers |= told
        report = diagnose(checkpoint, target, accept=tuple(accepted), choose=answers, partial=pair.partial)
    return report, tuple(asked), tuple(accepted)


def _tried(
    pair: Pair,
    checkpoint: Checkpoint,
    target: Target,
    open_: list[Ambiguity],
    before: tuple[tuple[str, ...], dict[str, str]],
    judged: Any,
) -> dict[str, str]:
    """The answers that give equal outputs, else the first option of each."""
    options = [[option for option, _ in question.options] for question in open_]
    first = {q.id: o[0] for q, o in zip(open_, options, strict=True)}
    for n, chosen in enumerate(itertools.product(*options)):
        if n >= MOST_TRIED:
            break
        told = dict(zip((q.id for q in open_), chosen, strict=True))
        report = diagnose(checkpoint, target, accept=before[0], choose=before[1] | told, partial=pair.partial)
        outcome = judged(report)
        if not isinstance(outcome, str) and outcome["float64"] <= pair.rounds:
            return told
        if isinstance(outcome, str) and report.plan is not None and len(open_) == 1 and report.plan.ambiguities:
            first = told
    return first


def _counted(row: Row, report: KeyReport) -> Row:
    if report.plan is None:
        return row
    count: Counter[str] = Counter()
    for step in report.plan.steps:
        if step.target is not None:
            count[_by(step)] += 1
    caveats = tuple(f.id for f in report.findings if TELLING in f.id or f.id in ("projection-head", "missing-tensors"))
    return replace(
        row,
        by_name=count["name"],
        by_law=count["law"],
        by_words=count["words"],
        by_table=count["table"],
        filled=count["filled"],
        rules=tuple(dict.fromkeys(use.id for use in report.plan.rules)),
        caveats=caveats,
    )


def _by(step: Step) -> str:
    rules = {step.rule, *step.also}
    if step.source is None:
        return "filled"
    if not rules.isdisjoint((other_library.RULE.id, inverted_residuals.RULE.id)):
        return "table"
    if other_words.RULE.id in rules or step.evidence is Evidence.WORDS:
        return "words"
    return "law" if rules - {""} else "name"
