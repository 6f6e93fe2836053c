"""Runs the asked questions over one checkpoint and bundles the answers.

The only place that knows which question needs another one's answer: counting uses the recognised architecture,
diagnosis compares with it, and MACs are counted on the model built from it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from inspector.architectures.types import Recognition, Target
from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.errors import InspectorError, MissingLibrary
from inspector.findings import Finding
from inspector.flops.report import CostReport
from inspector.health.report import HealthReport
from inspector.keys.report import KeyReport
from inspector.params.report import ParameterReport
from inspector.progress import Progress, silent

if TYPE_CHECKING:
    from inspector.weights.measure import Reader


class Question(StrEnum):
    """What can be asked of a checkpoint, cheapest first. SPECTRA adds singular values to the answer of HEALTH."""

    RECOGNITION = "recognition"
    PARAMETERS = "parameters"
    KEYS = "keys"
    COSTS = "costs"
    HEALTH = "health"
    SPECTRA = "spectra"


#: What the overview asks: everything that the headers answer, without torch and without reading tensor bytes.
HEADER_QUESTIONS = (Question.RECOGNITION, Question.PARAMETERS, Question.KEYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedNumbers:
    """A first look at the numbers where the health check cannot run: NaN, infinities, zeros, least and largest.

    tensors: that were counted and judged. left: that were not. findings: what the health check says of those counts.
    """

    tensors: int
    left: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The reports that were asked for; None for the others and for those in `skipped`.

    skipped: (question, why) of what was asked but has no answer here. untried: those of them for which a library is
    missing here, which is nothing of the file's. seconds: (question, wall time). state: the state
    dict that somebody chose, None for the likeliest weights. counted: beside no `health`.
    """

    checkpoint: Checkpoint
    state: StateDict | None = None
    recognition: Recognition | None = None
    parameters: ParameterReport | None = None
    keys: KeyReport | None = None
    costs: CostReport | None = None
    health: HealthReport | None = None
    counted: CountedNumbers | None = None
    skipped: tuple[tuple[str, str], ...] = ()
    untried: frozenset[str] = frozenset()
    seconds: tuple[tuple[str, float], ...] = ()


def inspect(
    checkpoint: Checkpoint,
    questions: Iterable[Question] = HEADER_QUESTIONS,
    *,
    state: StateDict | None = None,
    target: Target | None = None,
    input_size: tuple[int, int, int] | None = None,
    read: Reader | None = None,
    progress: Progress = silent,
) -> Inspection:
    """Ask about one state dict of the checkpoint (the most likely weights unless `state` says which).

    target: what to diagnose against, instead of the best candidate. input_size: (C, H, W) for MACs, instead of the
    architecture's own. read: who reads the numbers, one pass here when not given. A question without an answer is in
    `skipped`; only `Stopped` from progress passes through.
    """
    asked = set(questions)
    run = _Run(checkpoint, state, target, input_size, read, progress)
    # Diagnosis and costs need to know what the file is.
    run.recognise(keep=Question.RECOGNITION in asked, needed=bool(asked))
    if Question.PARAMETERS in asked:
        run.ask(Question.PARAMETERS, run.count)
    if Question.KEYS in asked:
        run.ask(Question.KEYS, run.diagnose)
    if Question.COSTS in asked:
        run.ask(Question.COSTS, run.cost)
    if asked & {Question.HEALTH, Question.SPECTRA}:
        run.ask(Question.HEALTH, run.measure)
    if Question.SPECTRA in asked:
        run.ask(Question.SPECTRA, run.measure_spectra)
    return run.bundle(asked)


class _Run:
    """One inspection in the making."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        state: StateDict | None,
        target: Target | None,
        input_size: tuple[int, int, int] | None,
        read: Reader | None,
        progress: Progress,
    ) -> None:
        self.checkpoint = checkpoint
        self.state = state or checkpoint.weights
        self.chosen = state
        self.target = target
        self.input_size = input_size
        self.read = read
        self.progress = progress
        self.recognition: Recognition | None = None
        self.parameters: ParameterReport | None = None
        self.keys: KeyReport | None = None
        self.costs: CostReport | None = None
        self.health: HealthReport | None = None
        self.skipped: list[tuple[str, str]] = []
        self.untried: set[str] = set()
        self.seconds: list[tuple[str, float]] = []

    def ask(self, question: Question, answer: object) -> None:
        """Run one question; an InspectorError is its answer, not the end of the inspection."""
        assert callable(answer)
        start = time.perf_counter()
        try:
            if self.state is None:
                self.skipped.append((question.value, "The file holds no state dict."))
            else:
                answer(self.state)
        except InspectorError as error:
            if isinstance(error, MissingLibrary):
                self.untried.add(question.value)
            self.skipped.append((question.value, str(error)))
        self.seconds.append((question.value, time.perf_counter() - start))

    def recognise(self, *, keep: bool, needed: bool) -> None:
        if keep or needed:
            self.ask(Question.RECOGNITION, self._recognise)

    def _recognise(self, state: StateDict) -> None:
        from inspector.architectures.recognise import recognise

        self.recognition = recognise(self.checkpoint, state)

    def count(self, state: StateDict) -> None:
        from inspector.params.count import count_parameters

        self.parameters = count_parameters(self.checkpoint, state, self.recognition)

    def diagnose(self, state: StateDict) -> None:
        from inspector.architectures.targets import target_of_candidate
        from inspector.keys.diagnose import diagnose

        target = self.target
        if target is None:
            best = self.recognition.best if self.recognition else None
            if best is None:
                self.skipped.append((Question.KEYS.value, "No architecture was recognised: name a target to compare."))
                return
            target = target_of_candidate(best)
        self.keys = diagnose(self.checkpoint, target, state=state)

    def cost(self, state: StateDict) -> None:
        from inspector.flops.count import count_costs
        from inspector.keys.runnable import whose_costs, why_another

        best = self.recognition.best if self.recognition else None
        spec = self.target.spec if self.target and self.target.spec else best.spec if best else None
        if spec is None:
            self.skipped.append((Question.COSTS.value, "No architecture was recognised, so nothing can be run."))
            return
        given = self.target is not None and self.target.spec is not None
        whose = ""
        if not given and self.recognition is not None:
            another = why_another(self.checkpoint, self.recognition, state)
            if another:
                self.skipped.append((Question.COSTS.value, another))
                return
            whose = whose_costs(self.checkpoint, self.recognition, state)
        self.costs = replace(count_costs(spec, self.input_size), whose=whose)

    def measure(self, state: StateDict) -> None:
        from inspector.health.examine import examine
        from inspector.weights.measure import read_tensors

        self.health = examine(
            self.checkpoint,
            state,
            workers=os.cpu_count() or 1,
            read=self.read or read_tensors,
            progress=self.progress,
        )

    def measure_spectra(self, state: StateDict) -> None:
        from inspector.health.examine import add_spectra

        if self.health is not None:
            self.health = add_spectra(self.health, self.checkpoint, state, progress=self.progress)

    def bundle(self, asked: set[Question]) -> Inspection:
        return Inspection(
            checkpoint=self.checkpoint,
            state=self.chosen,
            recognition=self.recognition if Question.RECOGNITION in asked else None,
            parameters=self.parameters,
            keys=self.keys,
            costs=self.costs,
            health=self.health,
            skipped=tuple(s for s in self.skipped if s[0] in {q.value for q in asked}),
            untried=frozenset(self.untried & {q.value for q in asked}),
            seconds=tuple(self.seconds),
        )
