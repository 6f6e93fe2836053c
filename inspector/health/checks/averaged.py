"""Averaged weights (EMA, SWA) beside the trained ones: never updated, far away, unlike them in places, or broken.

By definition an average of exponential weights lags behind what was trained, and equals it only before the first step.
Tensor by tensor it points where the trained one does, so that a pair that does not is told by the others.
"""

from __future__ import annotations

import statistics
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass

from inspector.checkpoint.bookkeeping import UPDATES, is_bookkeeping
from inspector.checkpoint.nested import averaged_prefixes
from inspector.checkpoint.types import StateDict, StateRole, TensorInfo
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.equality import (
    Budget,
    Distance,
    Pair,
    Resemblance,
    are_equal,
    distance,
    may_equal,
    resemblance,
)
from inspector.health.phrases import also, listed, shown
from inspector.health.role_names import RUNNING_MEANS
from inspector.health.subject import Subject
from inspector.keys.optimizer.map import parameters_of
from inspector.units import counted, human_distance

NEVER_UPDATED = FindingKind(
    "average-never-updated",
    Severity.WARNING,
    "Averaged weights were never updated",
    also=(Severity.NOTICE,),
)
FAR_APART = FindingKind("average-far-apart", Severity.WARNING, "Averaged weights are far from the trained ones")
UNLIKE = FindingKind("average-unlike", Severity.WARNING, "Tensors that do not resemble their average")
AVERAGE_NON_FINITE = FindingKind("average-non-finite", Severity.ERROR, "Averaged weights hold NaN or infinity")

# Cosines of a tensor with its average: below the first of one that is not its average, above the second of all others;
# those of trained networks are 0.9 and more. So many others, and so few elements.
_UNLIKE, _LIKE = 0.3, 0.7
_LEAST_PAIRS, _LEAST_NUMEL = 4, 16
# Of matrices and kernels that have nothing to do with each other it is 0, with an error of 1 / sqrt(numel).
_STRANGE = 0.1
# CompVis/latent-diffusion ldm/modules/ema.py keeps the average of model.* here, under names without points.
_LIT = "model_ema."
_LIT_TWIN = "model."


_Compared = list[tuple[TensorInfo, Resemblance]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Averaged:
    """label: where. pairs: (trained parameter, its average). means: the same of running means. updates: how often it
    was updated, None where not told."""

    label: str
    pairs: tuple[Pair, ...]
    means: tuple[Pair, ...]
    updates: float | None


def _find(subject: Subject) -> Iterator[Finding]:
    budget = Budget(subject.thresholds.compared_nbytes)
    for one in _averages(subject):
        broken = yield from _broken(subject, one)
        if not broken:
            yield from _compared(subject, one, budget)
    subject.leave_out(budget.why, budget.left_out)


def _averages(subject: Subject) -> Iterator[_Averaged]:
    live = _trained(subject)
    if live is None:
        return
    inside = averaged_prefixes(live)
    for prefix in inside:
        start = f"{prefix}."
        held = {t.name[len(start) :]: t for t in live.tensors if t.name.startswith(start)}
        # Which of several it is a twin of.
        for twin in dict.fromkeys(t.name.partition(".")[0] for t in live.tensors):
            own = {t.name[len(twin) + 1 :]: t for t in live.tensors if t.name.startswith(f"{twin}.")}
            if twin not in inside and {n: t.shape for n, t in own.items()} == {n: t.shape for n, t in held.items()}:
                yield _paired(subject, prefix, live, own, held)
                break
    lit = {t.name[len(_LIT) :]: t for t in live.tensors if t.name.startswith(_LIT)}
    if lit and not any("." in name for name in lit):
        own = {t.name[len(_LIT_TWIN) :]: t for t in live.tensors if t.name.startswith(_LIT_TWIN)}
        yield _paired(subject, _LIT[:-1], live, own, lit)
    for state in subject.checkpoint.state_dicts:
        if state.role is StateRole.EMA and state.tensors:
            yield _paired(subject, state.label, live, _plain(live), _plain(state))


def _trained(subject: Subject) -> StateDict | None:
    if subject.state is not None and subject.state.role is StateRole.WEIGHTS:
        return subject.state
    return next((one for one in subject.checkpoint.state_dicts if one.role is StateRole.WEIGHTS), None)


def _plain(state: StateDict) -> dict[str, TensorInfo]:
    return {t.name.removeprefix("module."): t for t in state.tensors}


def _paired(
    subject: Subject,
    label: str,
    live: StateDict,
    own: Mapping[str, TensorInfo],
    held: Mapping[str, TensorInfo],
) -> _Averaged:
    trained = {t.path for t in parameters_of(live).values()}
    if not set(own) & set(held):
        # LitEma's names are the parameters' without points (CompVis/latent-diffusion ldm/modules/ema.py).
        own = {name.replace(".", ""): tensor for name, tensor in own.items()}
    both = [(n, (t, held[n])) for n, t in own.items() if n in held and t.shape == held[n].shape]
    return _Averaged(
        label=label,
        pairs=tuple(pair for name, pair in both if pair[0].path in trained and not is_bookkeeping(name)),
        means=tuple(pair for name, pair in both if name.rpartition(".")[2] in RUNNING_MEANS),
        updates=_updates(subject, held),
    )


def _updates(subject: Subject, held: Mapping[str, TensorInfo]) -> float | None:
    for name, tensor in held.items():
        t = subject.measured_by_path.get(tensor.path)
        if name.rpartition(".")[2] in UPDATES and t is not None and t.numel == 1 and t.finite:
            # LitEma's is -1 where it does not count.
            return t.minimum if t.minimum >= 0 else None
    return None


def _broken(subject: Subject, one: _Averaged) -> Generator[Finding, None, bool]:
    # Of what the subject is about, another check tells.
    own = {examined.tensor.path for examined in subject.tensors}
    bad = [
        (tensor, t)
        for _, tensor in one.pairs
        if tensor.path not in own
        and (t := subject.measured_by_path.get(tensor.path)) is not None
        and (t.nan or t.infinite)
    ]
    if bad:
        names = [tensor.name for tensor, _ in bad]
        yield AVERAGE_NON_FINITE.found(
            f"The averaged weights in {one.label} hold NaN or infinity in {len(bad):,} of "
            f"{counted(len(one.pairs), 'parameter')}: {listed(names)}.",
            subjects=names,
            evidence=(("parameters", len(bad)), ("nan", sum(t.nan for _, t in bad))),
            remedy="An average never recovers from a NaN. Begin it anew from the trained weights.",
        )
    return bool(bad)


def _compared(subject: Subject, one: _Averaged, budget: Budget) -> Iterator[Finding]:
    told_apart = unknown = equal = 0
    for trained, averaged in one.pairs:
        a, b = (subject.measured_by_path.get(t.path) for t in (trained, averaged))
        if trained.dtype != averaged.dtype or a is None or b is None:
            unknown += 1
        elif not may_equal(a, b):
            told_apart += 1
        else:
            same = are_equal(subject.checkpoint, trained, averaged, budget)
            equal, told_apart, unknown = equal + (same is True), told_apart + (same is False), unknown + (same is None)
        if told_apart:
            break
    if equal and not told_apart and not unknown:
        yield _never(subject, one)
    elif told_apart:
        resting = _resting(subject, one)
        if resting:
            yield _at_rest(subject, one, resting)
        else:
            yield from _resembling(subject, one, budget)


def _resting(subject: Subject, one: _Averaged) -> list[TensorInfo]:
    """Scales and shifts that are 1 or 0 throughout in the average and not in what was trained, where most are."""
    able, found = 0, []
    for trained, averaged in one.pairs:
        a, b = (subject.measured_by_path.get(t.path) for t in (trained, averaged))
        if a is None or b is None or len(a.shape) != 1 or a.numel < 2 or not a.finite or a.minimum == a.maximum:
            continue
        able += 1
        if b.finite and b.minimum == b.maximum and b.minimum in (0.0, 1.0):
            found.append(averaged)
    return found if len(found) >= 2 and len(found) * 2 > able else []


def _at_rest(subject: Subject, one: _Averaged, resting: Sequence[TensorInfo]) -> Finding:
    proved, done, evidence = _progress(subject, one)
    names = [tensor.name for tensor in resting]
    return NEVER_UPDATED.found(
        f"The averaged weights in {one.label} are as initialised{done}: {len(names):,} scales and shifts "
        f"({listed(names)}) are still 1 or 0 throughout, and the trained ones are not.",
        # One update makes an average of them.
        severity=Severity.WARNING if proved and one.updates != 0 else Severity.NOTICE,
        subjects=(one.label, *names),
        evidence=(("tensors", len(names)), *evidence),
        remedy="Averages that begin late (SWA) are so until then. Otherwise update() was never called, was given "
        "another model, or the file holds the average of a new one.",
    )


def _progress(subject: Subject, one: _Averaged) -> tuple[bool, str, tuple[tuple[str, float], ...]]:
    """(whether the average ought to have moved, ", after 280 steps", evidence)."""
    training = subject.training
    epochs = max([counter.count for counter in training.epochs], default=0)
    steps = training.most_steps or 0
    updates = one.updates
    # A first update copies the weights; what was not trained equals by itself.
    trained = steps > 1 or epochs > 1
    proved = updates > 1 if updates is not None else trained
    done = f", after {steps:,.0f} steps" if steps else f", after {epochs:,.0f} epochs"
    told = (("steps", steps), ("epochs", epochs), *((("updates", updates),) if updates is not None else ()))
    return proved, done if trained else "", told


def _never(subject: Subject, one: _Averaged) -> Finding:
    proved, done, evidence = _progress(subject, one)
    return NEVER_UPDATED.found(
        f"All {counted(len(one.pairs), 'parameter')} of the averaged weights in {one.label} equal the trained ones, "
        f"bit for bit{done}.",
        severity=Severity.WARNING if proved else Severity.NOTICE,
        subjects=(one.label,),
        evidence=(("parameters", len(one.pairs)), *evidence),
        remedy="Saved before the first update, with an average that begins later, or with the average copied into the "
        "model on purpose, that is how it should be. Otherwise update() is never called, or both are one object.",
    )


def _resembling(subject: Subject, one: _Averaged, budget: Budget) -> Iterator[Finding]:
    """From one reading of both: how far they are all together, then which of them stand out."""
    kinds: dict[str, _Compared] = {"kernels and matrices": [], "vectors": [], "running means": []}
    for pairs, kind in ((one.pairs, ""), (one.means, "running means")):
        for a, b in pairs:
            found = resemblance(subject.checkpoint, a, b, budget)
            if found is not None:
                kinds[kind or ("vectors" if len(a.shape) < 2 else "kernels and matrices")].append((a, found))
    whole = distance([found for kind, compared in kinds.items() if kind != "running means" for _, found in compared])
    limit = subject.thresholds.farthest_average
    cosines = [found.cosine for a, found in kinds["kernels and matrices"] if a.numel >= subject.thresholds.few]
    middle = statistics.median(cosines) if len(cosines) >= _LEAST_PAIRS else 1.0
    if whole is not None and (whole.relative > limit or middle < _STRANGE):
        yield _far(one, whole, middle, limit)
        return
    for kind, compared in kinds.items():
        yield from _unlike(one, kind, [(a, found) for a, found in compared if a.numel >= _LEAST_NUMEL])


def _far(one: _Averaged, whole: Distance, middle: float, limit: float) -> Finding:
    strange = "" if middle >= _STRANGE else f", and the median cosine of their matrices is {middle:.2f}"
    return FAR_APART.found(
        f"The averaged weights in {one.label} are {human_distance(whole.relative)} times the norm of the trained ones "
        f"away from them, over {counted(whole.tensors, 'parameter')}{strange}.",
        subjects=(one.label,),
        evidence=(
            *(("distance", whole.relative), ("threshold", limit), ("parameters", whole.tensors)),
            *((("median cosine", middle), ("threshold cosine", _STRANGE)) if strange else ()),
        ),
        remedy="An average of what was trained lies near it. It may be of another run, in another layout, or have "
        "begun from random weights with so slow a decay that it still holds them.",
    )


def _unlike(one: _Averaged, kind: str, compared: Sequence[tuple[TensorInfo, Resemblance]]) -> Iterator[Finding]:
    """Few that point elsewhere among many that do not: in between nothing can be told."""
    odd = [(a, found) for a, found in compared if found.cosine < _UNLIKE]
    rest = [found.cosine for _, found in compared if found.cosine >= _UNLIKE]
    if not odd or len(rest) < max(_LEAST_PAIRS, 3 * len(odd)) or min(rest) < _LIKE:
        return
    odd.sort(key=lambda each: each[1].cosine)
    names = [a.name for a, _ in odd]
    tensor, worst = odd[0]
    yield UNLIKE.found(
        f"{shown(tensor.name)} and its average in {one.label} have a cosine of {worst.cosine:.2f}, while the other "
        f"{kind} have {min(rest):.2f} and more{also(names)}.",
        subjects=names,
        evidence=(
            *(("cosine", worst.cosine), ("least of the others", min(rest)), ("distance", worst.relative)),
            *(("tensors", len(names)), ("of", len(compared)), ("threshold", _UNLIKE)),
        ),
        remedy="An average points where its tensor does. One of the two was overwritten, transposed or damaged, or "
        "was left out when the others were averaged or loaded: compare both with an earlier file.",
    )


CHECK = Check(kinds=(NEVER_UPDATED, FAR_APART, UNLIKE, AVERAGE_NON_FINITE), find=_find)
