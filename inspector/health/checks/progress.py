"""Whether what counts a training agrees: epoch, steps, the optimizer's steps and the schedule's.

Scripts count as they like: an epoch begun or done, batches or updates, once per process. So what differs is a notice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.subject import Subject
from inspector.health.training.optimizers import Optimizer
from inspector.health.training.schedules import Schedule
from inspector.health.training.state import Counter, Training
from inspector.units import counted

PROGRESS_DISAGREES = FindingKind(
    "progress-disagrees", Severity.NOTICE, "Epoch, steps and schedule of a training disagree"
)
NOT_STEPPED = FindingKind("optimizer-not-stepped", Severity.NOTICE, "An optimizer that has not made a step")

_NEAR = 1  # An epoch is counted when it begins or when it is done.
# Batches whose gradients are gathered before an optimizer makes a step: more than so many are no habit.
_GATHERED = 32
# What makes no step for a long time on purpose.
_LATE = ("SWALR",)


def _find(subject: Subject) -> Iterator[Finding]:
    training = subject.training
    yield from _schedules(training)
    yield from _optimizers(training)
    yield from _unstepped(training)


def _schedules(training: Training) -> Iterator[Finding]:
    # Several take turns.
    if len(training.schedules) != 1 or training.schedules[0].kind in _LATE:
        return
    schedule = training.schedules[0]
    own = [one.most_steps for one in training.optimizers]
    steps = [one.count for one in training.steps] + [count for count in own if count is not None]
    epochs = [one.count for one in training.epochs]
    if schedule.steps is None or _near(schedule.steps, steps) or _near(schedule.steps, epochs):
        return
    beyond = bool(steps) and schedule.steps > max(steps)
    behind = bool(epochs) and schedule.steps < min(epochs)
    neither = bool(steps and epochs)
    if beyond or behind or neither:
        yield _disagree(training, schedule)


def _disagree(training: Training, schedule: Schedule) -> Finding:
    counts = [f"{one.label} is {one.count:,.0f}" for one in (*training.epochs, *training.steps)]
    counts += [
        f"{one.called} counts {one.most_steps:,.0f}" for one in training.optimizers if one.most_steps is not None
    ]
    return PROGRESS_DISAGREES.found(
        f"{schedule.called} has made {counted(int(schedule.steps or 0), 'step')}; {', '.join(counts[:6])}.",
        subjects=(schedule.label,),
        evidence=(("schedule", schedule.steps or 0), *_evidence(training)),
        remedy="A schedule that began later, or is stepped once per process or per batch of an accumulated gradient, "
        "looks like this. Otherwise it runs too fast or too slow, or is another run's.",
    )


def _evidence(training: Training) -> Iterator[tuple[str, float]]:
    for one in (*training.epochs, *training.steps):
        yield one.label, one.count
    for optimizer in training.optimizers:
        if optimizer.most_steps is not None:
            yield optimizer.label, optimizer.most_steps


def _optimizers(training: Training) -> Iterator[Finding]:
    """More steps than the file's counter of steps: the counter began anew, or the state is another run's. Far fewer
    than counter and schedule agree on: the same of the optimizer's state."""
    if not training.steps or len(training.optimizers) != 1:
        return
    optimizer = training.optimizers[0]
    yield from _behind(training, optimizer)
    most: Counter = max(training.steps, key=lambda one: one.count)
    if optimizer.most_steps is None or optimizer.most_steps <= most.count + _NEAR:
        return
    yield PROGRESS_DISAGREES.found(
        f"{optimizer.called} has made {optimizer.most_steps:,.0f} steps, and {most.label} is {most.count:,.0f}.",
        subjects=(optimizer.label,),
        evidence=(("optimizer", optimizer.most_steps), (most.label, most.count)),
        remedy="A counter that began anew when a training was resumed is harmless. Otherwise the optimizer's state is "
        "another run's.",
    )


def _behind(training: Training, optimizer: Optimizer) -> Iterator[Finding]:
    if len(training.schedules) != 1 or not optimizer.most_steps:
        return
    schedule = training.schedules[0]
    done = schedule.steps or 0
    # What gathers gradients counts batches in all three, or steps in two.
    if done <= _GATHERED * (optimizer.most_steps + _NEAR) or not _near(done, [one.count for one in training.steps]):
        return
    yield PROGRESS_DISAGREES.found(
        f"{optimizer.called} counts {counted(int(optimizer.most_steps), 'step')}, and {schedule.called} {done:,.0f}, "
        f"as {training.steps[0].label} does.",
        subjects=(optimizer.label,),
        evidence=(("optimizer", optimizer.most_steps), ("schedule", done), ("threshold", _GATHERED)),
        remedy="Gradients that are gathered over very many batches look like this, and an optimizer that was made anew "
        "when a training was resumed. Otherwise its state is an earlier one, or another run's.",
    )


def _unstepped(training: Training) -> Iterator[Finding]:
    done = max([one.count for one in (*training.epochs, *training.steps)], default=0)
    for optimizer in training.optimizers:
        keeps = any("momentum" in group.settings or "betas" in group.settings for group in optimizer.groups)
        plain = optimizer.kind.name == "SGD" and not optimizer.entries
        idle = optimizer.most_steps == 0 or (keeps and not plain and not optimizer.entries)
        if idle and done > _NEAR and optimizer.whole and optimizer.listed:
            yield NOT_STEPPED.found(
                f"{optimizer.called} has made no step, and the file counts {done:,.0f}.",
                subjects=(optimizer.label,),
                evidence=(("steps", 0), ("counted", done)),
                remedy="One that was made anew before it was saved, or whose turn has not come. Resuming begins with "
                "moments of zero: warm up again.",
            )


def _near(steps: float, counts: Sequence[float]) -> bool:
    return any(abs(steps - count) <= _NEAR for count in counts)


CHECK = Check(kinds=(PROGRESS_DISAGREES, NOT_STEPPED), find=_find)
