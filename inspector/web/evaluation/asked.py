"""What is asked of a checkpoint: its head, the evaluation, the worst cases; all of it jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from inspector.cam.report import Preprocessing
from inspector.cam.targets.answers import infer_answer
from inspector.evaluate.report import Evaluation
from inspector.jobs.asked import DataFacts, HeadFacts, WorstCase
from inspector.jobs.job import Job
from inspector.jobs.subjects import Naming
from inspector.units import counted
from inspector.web import jobs, reports
from inspector.web.explain import inputs
from inspector.web.explain.answer import kept_names
from inspector.web.session import Hand

# Worst cases that are shown with their maps.
MOST_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A checkpoint on a set of pictures. naming: of its outputs, and how they are read."""

    hand: Hand
    data: DataFacts
    preprocessing: Preprocessing
    naming: Naming

    @property
    def job(self) -> Job:
        """The evaluation. Raises ReadError where the file is gone."""
        arguments = (reports.model_file(self.hand), self.data.data, self.preprocessing, self.naming)
        return Job(kind="evaluation", arguments=arguments, near=self.hand.sha256)

    @property
    def title(self) -> str:
        """What is said while it is under way."""
        return f"Evaluating {self.hand.name} on {counted(self.data.pictures, 'picture')}"


def head_of(hand: Hand, preprocessing: Preprocessing) -> HeadFacts:
    """How many classes it has, and what a picture takes. Raises ExplainError for what gives no scores."""
    job = Job(kind="head-size", arguments=(reports.model_file(hand), preprocessing), near=hand.sha256)
    found: HeadFacts = jobs.ask(job, says="Trying out one pass")
    return found


def of_other(hand: Hand, data: DataFacts) -> Asked:
    """The same of another checkpoint, as its own file states it or as it was set on its own page."""
    naming = Naming(names=kept_names(hand), answer=infer_answer(reports.checkpoint_of(hand)))
    return Asked(hand=hand, data=data, preprocessing=inputs.inferred(hand), naming=naming)


def worst_cases(asked: Asked, report: Evaluation) -> tuple[WorstCase, ...] | None:
    """Those that are shown; None while they are worked on."""
    arguments = (
        reports.model_file(asked.hand),
        asked.data.data,
        asked.preprocessing,
        replace(asked.naming, names=report.mapping.names),
        report.worst[:MOST_SHOWN],
    )
    job = Job(kind="worst-cases", arguments=arguments, near=asked.hand.sha256)
    found: tuple[WorstCase, ...] | None = jobs.await_job(job, title="Looking at the worst cases")
    return found
