"""An optimizer's moments: what no gradient can have made of them, and which parameters no gradient has reached.

Second moments are averages of squares (Adam: Kingma and Ba 2014, 1412.6980), so none is below zero, and one is exactly
zero only where every gradient was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.checks.moments_lost import lost_state
from inspector.health.phrases import listed
from inspector.health.subject import Subject
from inspector.health.training.optimizers import Entry, Optimizer
from inspector.units import counted, human_share
from inspector.weights.report import TensorStatistics

MOMENT_NON_FINITE = FindingKind("moment-non-finite", Severity.ERROR, "An optimizer's state holds NaN or infinity")
MOMENT_NEGATIVE = FindingKind("moment-negative", Severity.ERROR, "An optimizer's second moments are negative")
STEP_LOST = FindingKind("optimizer-step-lost", Severity.WARNING, "An optimizer's moments have moved and its steps not")
WITHOUT_GRADIENT = FindingKind(
    "parameter-without-gradient", Severity.NOTICE, "The optimizer lists parameters that no step moved"
)
STEPS_DIFFER = FindingKind("optimizer-steps-differ", Severity.NOTICE, "Parameters were stepped differently often")

_STATISTICS = tuple[Entry, str, TensorStatistics]


def _find(subject: Subject) -> Iterator[Finding]:
    for optimizer in subject.training.optimizers:
        yield from _non_finite(subject, optimizer)
        yield from _negative(subject, optimizer)
        yield from _lost(subject, optimizer)
        yield from _unmoved(subject, optimizer)
        yield from _differing(optimizer)


def _measured(subject: Subject, optimizer: Optimizer) -> Iterator[_STATISTICS]:
    """(entry, field, statistics) of every tensor of the state that has numbers."""
    for entry in optimizer.entries.values():
        for name, tensor in entry.tensors.items():
            found = subject.measured_by_path.get(tensor.path)
            if found is not None and found.numel:
                yield entry, name, found


def _non_finite(subject: Subject, optimizer: Optimizer) -> Iterator[Finding]:
    bad = [(entry, name, t) for entry, name, t in _measured(subject, optimizer) if t.nan or t.infinite]
    if bad:
        names = list(dict.fromkeys(entry.label for entry, _, _ in bad))
        fields = ", ".join(sorted({name for _, name, _ in bad})[:4])
        yield MOMENT_NON_FINITE.found(
            f"{optimizer.called} holds NaN or infinity in {fields} of {counted(len(names), 'parameter')}: "
            f"{listed(names)}.",
            subjects=names,
            evidence=(
                ("parameters", len(names)),
                ("nan", sum(t.nan for _, _, t in bad)),
                ("infinite", sum(t.infinite for _, _, t in bad)),
            ),
            remedy="The first step after resuming makes these parameters NaN: resume from an earlier checkpoint, or "
            "drop the optimizer's state and warm up again.",
        )


def _negative(subject: Subject, optimizer: Optimizer) -> Iterator[Finding]:
    bad = [
        (entry, name, t)
        for entry, name, t in _measured(subject, optimizer)
        if name in optimizer.kind.squares and t.finite and t.minimum < 0
    ]
    if bad:
        names = list(dict.fromkeys(entry.label for entry, _, _ in bad))
        _, field, worst = min(bad, key=lambda one: one[2].minimum)
        yield MOMENT_NEGATIVE.found(
            f"{optimizer.called} holds averages of squares below zero for {counted(len(names), 'parameter')}, down to "
            f"{worst.minimum:.3g} in {field}: {listed(names)}.",
            subjects=names,
            evidence=(("parameters", len(names)), ("smallest", worst.minimum), ("threshold", 0)),
            remedy="A square root of it is NaN at the next step. No gradient leads there: the state was averaged with "
            "another, cast or damaged. Drop the optimizer's state and warm up again.",
        )


def _lost(subject: Subject, optimizer: Optimizer) -> Iterator[Finding]:
    if not optimizer.kind.name:  # Others may keep a step that means nothing.
        return
    moved = [
        entry.label
        for entry, name, t in _measured(subject, optimizer)
        # Adagrad's sum may begin above zero.
        if name in optimizer.kind.gradients
        and name != "sum"
        and t.zero < t.numel
        and optimizer.steps.get(entry.key) == 0
    ]
    if moved:
        yield STEP_LOST.found(
            f"{optimizer.called} has moments of {counted(len(moved), 'parameter')} that gradients have moved, and "
            f"counts 0 steps for them: {listed(moved)}.",
            subjects=moved,
            evidence=(("parameters", len(moved)), ("steps", 0)),
            remedy="Adam divides by 1 - beta^step, so that its first steps after resuming are too long. Set step to "
            "what was trained.",
        )


def _unmoved(subject: Subject, optimizer: Optimizer) -> Iterator[Finding]:
    most = optimizer.most_steps
    if not optimizer.whole or not optimizer.entries or most == 0 or optimizer.kind.name == "LBFGS":
        return
    zero = {
        entry.key
        for entry, name, t in _measured(subject, optimizer)
        if name in optimizer.kind.gradients and t.zero == t.numel and not t.nan and not _moving(subject, entry)
    }
    keys = [key for group in optimizer.groups for key in group.keys]
    never = {key for key in keys if key not in optimizer.entries}
    behind = {key for key, steps in optimizer.steps.items() if steps == 0}
    # Of what was trained and has lost its state another check tells.
    lost = {key for keys_of in lost_state(subject, optimizer) for key in keys_of}
    unmoved = (zero | never | behind) - lost
    found = [optimizer.names.get(key) or f"entry {key}" for key in keys if key in unmoved]
    if not found:
        return
    steps = "" if most is None else f" in {most:,.0f} steps"
    yield WITHOUT_GRADIENT.found(
        f"{optimizer.called} lists {counted(len(keys), 'parameter')}, and {len(found):,} of them never had a gradient "
        f"other than zero{steps}: {listed(found)}.",
        subjects=found,
        evidence=(
            ("parameters", len(found)),
            ("listed", len(keys)),
            ("without state", len(never - lost)),
            ("moments all zero", len(zero - lost)),
        ),
        remedy="Frozen or unused on purpose (an auxiliary head, a branch that another phase trains, one behind a layer "
        "that begins at zero) it is normal. If it should train: is it used in forward, and does the loss reach it?",
    )


def _moving(subject: Subject, entry: Entry) -> bool:
    """Whether its averaged gradients or steps are not zero, which contradicts squares that are."""
    tensors = [entry.tensors[name] for name in ("exp_avg", "momentum_buffer", "grad_avg") if name in entry.tensors]
    found = [subject.measured_by_path.get(tensor.path) for tensor in tensors]
    return any(t is not None and t.zero < t.numel for t in found)


def _differing(optimizer: Optimizer) -> Iterator[Finding]:
    counts = Counter(steps for steps in optimizer.steps.values() if steps > 0)
    if len(counts) < 2:
        return
    usual = counts.most_common(1)[0][0]
    others = [optimizer.entries[key].label for key, steps in optimizer.steps.items() if steps > 0 and steps != usual]
    yield STEPS_DIFFER.found(
        f"{optimizer.called} has stepped {counted(counts[usual], 'parameter')} {usual:,.0f} times and {len(others):,} "
        f"others {_range(counts, usual)} times ({human_share(len(others) / sum(counts.values()))}): "
        f"{listed(others)}.",
        subjects=others,
        evidence=(
            ("usual", usual),
            ("fewest", min(counts)),
            ("most", max(counts)),
            ("parameters", len(others)),
        ),
        remedy="Normal where layers were unfrozen or added later, or a batch does not use every branch. Otherwise two "
        "runs' states were mixed.",
    )


def _range(counts: Counter[float], usual: float) -> str:
    """ "4", or "4 to 9"."""
    others = [steps for steps in counts if steps != usual]
    return f"{min(others):,.0f}" + (f" to {max(others):,.0f}" if len(others) > 1 else "")


CHECK = Check(
    kinds=(MOMENT_NON_FINITE, MOMENT_NEGATIVE, STEP_LOST, WITHOUT_GRADIENT, STEPS_DIFFER),
    find=_find,
)
