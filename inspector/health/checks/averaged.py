"""Averaged weights (EMA, SWA) beside the trained ones: never updated, far away, or broken.

By definition an average of exponential weights lags behind what was trained, and equals it only before the first step.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass

from inspector.checkpoint.bookkeeping import UPDATES, is_bookkeeping
from inspector.checkpoint.nested import averaged_prefixes
from inspector.checkpoint.types import StateDict, StateRole, TensorInfo
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.equality import Budget, Pair, are_equal, distance, may_equal
from inspector.health.listing import bounded, listed
from inspector.health.subject import Subject
from inspector.keys.optimizer.map import parameters_of
from inspector.units import counted

NEVER_UPDATED = FindingKind(
    "average-never-updated",
    Severity.WARNING,
    "Averaged weights equal the trained ones exactly",
    also=(Severity.NOTICE,),
)
FAR_APART = FindingKind("average-far-apart", Severity.WARNING, "Averaged weights are far from the trained ones")
AVERAGE_NON_FINITE = FindingKind("average-non-finite", Severity.ERROR, "Averaged weights hold NaN or infinity")

# CompVis/latent-diffusion ldm/modules/ema.py keeps the average of model.* here, under names without points.
_LIT = "model_ema."
_LIT_TWIN = "model."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Averaged:
    """label: where. pairs: (trained parameter, its average). updates: how often it was updated, None where not told."""

    label: str
    pairs: tuple[Pair, ...]
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
    pairs = tuple(
        (tensor, held[name])
        for name, tensor in own.items()
        if name in held and tensor.path in trained and tensor.shape == held[name].shape and not is_bookkeeping(name)
    )
    return _Averaged(label=label, pairs=pairs, updates=_updates(subject, held))


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
            subjects=bounded(names),
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
        yield from _far(subject, one, budget)


def _never(subject: Subject, one: _Averaged) -> Finding:
    training = subject.training
    epochs = max([counter.count for counter in training.epochs], default=0)
    steps = training.most_steps or 0
    updates = one.updates
    # A first update copies the weights; what was not trained equals by itself.
    trained = steps > 1 or epochs > 1
    proved = updates > 1 if updates is not None else trained
    done = f"{steps:,.0f} steps" if steps else f"{epochs:,.0f} epochs"
    return NEVER_UPDATED.found(
        f"All {counted(len(one.pairs), 'parameter')} of the averaged weights in {one.label} equal the trained ones, "
        "bit for bit" + (f", after {done}." if trained else "."),
        severity=Severity.WARNING if proved else Severity.NOTICE,
        subjects=(one.label,),
        evidence=(
            ("parameters", len(one.pairs)),
            ("steps", steps),
            ("epochs", epochs),
            *((("updates", updates),) if updates is not None else ()),
        ),
        remedy="Saved before the first update, with an average that begins later, or with the average copied into the "
        "model on purpose, that is how it should be. Otherwise update() is never called, or both are one object.",
    )


def _far(subject: Subject, one: _Averaged, budget: Budget) -> Iterator[Finding]:
    limit = subject.thresholds.farthest_average
    found = distance(subject.checkpoint, one.pairs, budget)
    if found is None or found.relative <= limit:
        return
    yield FAR_APART.found(
        f"The averaged weights in {one.label} are {found.relative:.3g} times the norm of the trained ones away from "
        f"them, over {counted(found.tensors, 'parameter')}.",
        subjects=(one.label,),
        evidence=(("distance", found.relative), ("threshold", limit), ("parameters", found.tensors)),
        remedy="An average of what was trained lies near it. It may be of another run, in another layout, or have "
        "begun from random weights with so slow a decay that it still holds them.",
    )


CHECK = Check(kinds=(NEVER_UPDATED, FAR_APART, AVERAGE_NON_FINITE), find=_find)
