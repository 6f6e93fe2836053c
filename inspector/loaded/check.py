"""`check_loaded`: which of a model's tensors are this file's now, and what became of the others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase

from torch import nn

from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.nested import EMA_NAME, averaged_prefixes
from inspector.checkpoint.types import StateDict, StateRole, TensorInfo
from inspector.errors import InspectorError, ReadError
from inspector.findings import Finding, ranked, run_checks
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.plan import listed
from inspector.keys.report import KeyReport, RepairPlan, StepKind
from inspector.loaded import findings as kinds
from inspector.loaded.choose import Rename, choose_state, numbers_of
from inspector.loaded.compare import Comparer
from inspector.loaded.equal import cast_between
from inspector.loaded.own_attributes import Unregistered, unregistered
from inspector.loaded.places import Place, places_of, target_of_model, ties_of
from inspector.loaded.report import Held, LoadedReport, LoadedTensor, NotLoaded, UnusedTensor
from inspector.loaded.weights import Source, Weights, weights_of
from inspector.progress import Progress, silent
from inspector.units import counted, human_shape

# What is one and the same once nothing at all was loaded.
_OF_NOTHING = {kind.id for kind in (kinds.INITIAL, kinds.CHANGED, kinds.ABSENT, kinds.UNUSED)}


def check_loaded(
    model: nn.Module,
    source: Source,
    *,
    state: str = "",
    rename: Rename | None = None,
    leave_out: Collection[str] = (),
    strict: bool = False,
    progress: Progress = silent,
) -> LoadedReport:
    """Compare a model in memory with a file's weights, and say of each tensor whether it is the file's, and what else.

    source: a path, an opened checkpoint, a state dict, or what torch.load returned. Nothing in a file is run; tensors
    are read one at a time, and the model is neither copied nor changed.
    state: which state dict ("ema"), where the file has several; else the one of which the model holds most.
    rename: the file's names as your script renames them, a mapping or a function that gives None for what it drops.
    leave_out: patterns ("fc.*") of names, on either side, that are not the file's on purpose: nothing is said of them.
    strict: raise NotLoaded, which carries the report, unless it `holds`: no warning and no error.
    Raises ReadError for a file that is none, UsageError for a `state` or `rename` that means nothing.
    """
    weights = weights_of(source)
    places = places_of(model)
    chosen, own = choose_state(weights, places, state, rename)
    comparer = Comparer(places, weights, chosen, own)
    left = comparer.by_names(progress)
    told = None
    if any(not is_bookkeeping(place.name) for place in left):
        told = _diagnosed(model, places, weights, chosen) if rename is None else None
        left = comparer.by_plan(left, told.plan if told is not None else None)
        left = _by_ties(comparer, left)
        left = comparer.by_values(left)
    comparer.rest(left)
    made = comparer.made
    kept = tuple(made.tensors[place.name] for place in places)
    hidden = tuple(unregistered(model))
    plan = told.plan if told is not None else None
    fits_by = _repair(told, kept)
    unused = tuple(_unused(chosen, made.used, kept, own, hidden, plan))
    scene = kinds.Scene(
        model=model,
        source=weights.checkpoint.origin.name,
        tensors=tuple(one for one in kept if not _left_out(one.name, leave_out)),
        unused=tuple(
            one for one in unused if not (_left_out(one.name, leave_out) or _left_out(one.place or one.name, leave_out))
        ),
        in_file={name: tensor.shape for name, tensor in own.items()},
        averages=tuple(_averages(weights, chosen, kept, made.used)),
        conflicts=tuple(_conflicts(places, weights, own)),
        repair=fits_by,
    )
    noticed = list(run_checks(kinds.CHECKS, scene))
    noticed += [
        one.finding
        for one in hidden
        if not any(_left_out(name, leave_out) for name in (*one.names, *one.finding.subjects))
    ]
    if any(one.id == kinds.NOTHING.id for one in noticed):
        noticed = [one for one in noticed if one.id not in _OF_NOTHING]
    report = LoadedReport(
        model=type(model).__name__,
        source=scene.source,
        state_dict=chosen.label,
        tensors=kept,
        unused=unused,
        unregistered=tuple(name for one in hidden for name in one.names),
        ties=ties_of(places),
        training=model.training,
        active=kinds.active_modules(model),
        findings=ranked(noticed),
        says=_answer(model, scene, kept, noticed),
        repair=fits_by,
        code=_code(plan, weights) if fits_by else "",
        not_examined=tuple(_not_compared(kept)),
    )
    if strict and not report.holds:
        raise NotLoaded(report.says, hint=report.repair, report=report)
    return report


def _left_out(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) or name.startswith(f"{pattern}.") for pattern in patterns)


def _diagnosed(model: nn.Module, places: Sequence[Place], weights: Weights, state: StateDict) -> KeyReport | None:
    try:
        return diagnose(weights.checkpoint, target_of_model(model, tuple(places)), state=state)
    except InspectorError:
        return None


def _by_ties(comparer: Comparer, left: Sequence[Place]) -> list[Place]:
    """A tied place that the file has under the parameter's other name alone."""
    names = {name: group for group in ties_of(tuple(comparer.places)) for name in group}
    still = []
    for place in left:
        settled = [comparer.made.tensors.get(name) for name in names.get(place.name, ())]
        twin = next((made for made in settled if made is not None and made.is_loaded), None)
        if twin is None or place.name in comparer.own:
            still.append(place)
            continue
        comparer.settle(place, twin.held, source=twin.source, why=f"tied to {twin.name}")
    return still


def _repair(told: KeyReport | None, tensors: Sequence[LoadedTensor]) -> str:
    """What would have made it load; "" where no place waits for what a rule would put there."""
    if told is None or told.plan is None or not told.plan.rules:
        return ""
    moved = _moved_by(told.plan)
    wanting = [one for one in tensors if not one.is_loaded and one.source != one.name]
    return told.compared if any(one.name in moved for one in wanting) else ""


def _moved_by(plan: RepairPlan) -> set[str]:
    """Places that a rule of the plan fills from the file."""
    return {s.target for s in plan.steps if s.target is not None and s.source is not None and s.rule}


def _code(plan: RepairPlan | None, weights: Weights) -> str:
    if plan is None or not plan.complete or weights.held is not None:
        return ""
    try:
        return python_code(plan, file_name=weights.checkpoint.origin.name)
    except InspectorError:
        return ""


def _unused(
    state: StateDict,
    used: set[str],
    tensors: Sequence[LoadedTensor],
    own: dict[str, TensorInfo],
    hidden: Sequence[Unregistered],
    plan: RepairPlan | None,
) -> Iterator[UnusedTensor]:
    places = {tensor.name: name for name, tensor in own.items()}
    shapes = {one.name: one.shape for one in tensors}
    lost = {name for one in hidden for name in one.names}
    # What the target computes for itself, or has twice, is not missed.
    dropped = {
        step.source
        for step in (plan.steps if plan is not None else ())
        if step.kind is StepKind.DROP and step.cost.value == "lossless"
    }
    # A teacher's name tells too little: it may be another network.
    first = dict.fromkeys(tensor.name.partition(".")[0] for tensor in state.tensors)
    averaged = {*averaged_prefixes(state), *(one for one in first if EMA_NAME.search(one.replace("teacher", "")))}
    for tensor in state.tensors:
        if tensor.name in used:
            continue
        place = places.get(tensor.name, "")
        why = ""
        if tensor.name in lost:
            why = "the model keeps these layers in a plain attribute"
        elif place and shapes[place] != tensor.shape:
            why = f"the model has {human_shape(shapes[place])} for {human_shape(tensor.shape)}"
        elif place:
            why = "the model's own place has other values"
        elif tensor.name.partition(".")[0] in averaged:
            why = "they are averages"
        elif tensor.name in dropped:
            continue
        yield UnusedTensor(name=tensor.name, shape=tensor.shape, place=place, why=why)


def _averages(
    weights: Weights, chosen: StateDict, tensors: Sequence[LoadedTensor], used: set[str]
) -> Iterator[tuple[str, int]]:
    """(label, tensors) of averaged weights that the model does not hold and that are other numbers."""
    for prefix in averaged_prefixes(chosen):
        names = [t.name for t in chosen.tensors if t.name.startswith(f"{prefix}.")]
        if not any(name in used for name in names):
            yield prefix, len(names)
    if chosen.role is StateRole.EMA:
        return
    held = {one.source: one for one in tensors if one.is_loaded and len(one.shape) > 1}
    for state in weights.checkpoint.state_dicts:
        if state.role is not StateRole.EMA or state.path == chosen.path:
            continue
        by_name = {t.name.removeprefix("module."): t for t in state.tensors}
        pair = next(((t, by_name[t.name]) for t in chosen.tensors if t.name in held and t.name in by_name), None)
        if pair is not None and _differ(weights, pair[0], pair[1]):
            yield state.label, len(state.tensors)


def _conflicts(places: Sequence[Place], weights: Weights, own: dict[str, TensorInfo]) -> Iterator[tuple[str, str]]:
    """Names of one parameter for which the file has two different tensors."""
    for group in ties_of(tuple(places)):
        there = [name for name in group if name in own]
        for other in there[1:]:
            if _differ(weights, own[there[0]], own[other]):
                yield there[0], other


def _differ(weights: Weights, one: TensorInfo, other: TensorInfo) -> bool:
    if one is other:
        return False
    try:
        return cast_between(numbers_of(weights, one), numbers_of(weights, other)) is None
    except (ReadError, NotImplementedError, RuntimeError):
        return False


def _answer(model: nn.Module, scene: kinds.Scene, tensors: Sequence[LoadedTensor], noticed: Sequence[Finding]) -> str:
    name, learned = type(model).__name__, [one for one in tensors if not is_bookkeeping(one.name)]
    good = sum(one.is_loaded for one in learned)
    if not learned:
        return f"{name} has no parameters or buffers that a file could fill."
    cast = [one for one in learned if one.held is Held.CAST]
    casts = f", {len(cast):,} of them after a cast ({cast[0].why})" if cast else ", bit for bit"
    if good == len(learned):
        hidden = " What lies in plain attributes is not among them." if _hides(noticed) else ""
        return f"All {counted(good, 'tensor')} of {name} are those of {scene.source}{casts}.{hidden}"
    parts = []
    for held, words in (
        (Held.INITIAL, "at their initialisation"),
        (Held.OTHER, "with another tensor's values"),
        (Held.TRANSPOSED, "transposed"),
        (Held.CHANGED, "with other values"),
        (Held.ABSENT, "not in the file"),
        (Held.UNKNOWN, "not compared"),
    ):
        count = sum(one.held is held for one in learned)
        if count:
            parts.append(f"{count:,} {words}")
    start = f"{good:,} of {counted(len(learned), 'tensor')} of {name} are those of {scene.source}"
    return f"{start}{casts if good else ''}; {', '.join(parts)}."


def _not_compared(tensors: Sequence[LoadedTensor]) -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for one in tensors:
        if one.held is Held.UNKNOWN:
            groups.setdefault(one.why, []).append(one.name)
    for why, names in groups.items():
        yield f"{counted(len(names), 'tensor')} ({listed(names)}): {why}"


def _hides(noticed: Sequence[Finding]) -> bool:
    return any(one.id in ("layers-in-plain-container", "tensor-in-plain-attribute") for one in noticed)
