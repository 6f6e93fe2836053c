"""From a pickle's outcome and its storages to a `Checkpoint`. Shared by every reader of pickles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint, GlobalUse, GlobalVerdict, Reach, Storage
from inspector.checkpoint.values import ValueKind
from inspector.findings import Finding, FindingKind, Severity
from inspector.limits import Limits
from inspector.readers.checks.contents import unnamed_tensors
from inspector.readers.checks.named_code import observe_constants
from inspector.readers.checks.observations import observe_globals
from inspector.readers.checks.torch_versions import OF_NUMPY, Loaded, observe_loading
from inspector.readers.checks.truncation import Cut, observe_cut
from inspector.readers.finish import FileContent, finished
from inspector.readers.plain_metadata import metadata_of
from inspector.readers.unpickle.globals.verdicts import judge, settle_wrappers, weights_only_allows
from inspector.readers.unpickle.machine.machine import Outcome
from inspector.readers.unpickle.nested.nested_pickles import Inside, observe_inside
from inspector.readers.unpickle.outline.outline import Outline, outline
from inspector.readers.unpickle.stand_ins import ArrayBytes, BytesAt, Use
from inspector.readers.unpickle.unpickling import Unpickled, unpickle, unpickle_bytes
from inspector.units import counted

MISFIT_TENSOR = FindingKind("misfit-tensor", Severity.ERROR, "A tensor is rebuilt from arguments that do not fit")
ODD_PICKLE = FindingKind("odd-pickle", Severity.WARNING, "Steps of the pickle make no sense")
BROKEN_PICKLE = FindingKind("broken-pickle", Severity.ERROR, "The pickle breaks off")
PICKLE_OVER_LIMIT = FindingKind("pickle-over-limit", Severity.ERROR, "The pickle goes beyond a limit")

__all__ = ["Unpickled", "checkpoint_from_pickle", "metadata_of", "unpickle", "unpickle_bytes"]


def checkpoint_from_pickle(
    pickle: Unpickled,
    content: FileContent,
    *,
    source: ByteSource,
    limits: Limits,
    also: Sequence[Outcome] = (),
    hidden: Sequence[Outcome] = (),
    cut: Cut | None = None,
) -> Checkpoint:
    """Put everything together, and let go of what the pickle holds.

    content: what is known beside the pickle: its storages, findings, metadata. also: further pickles that a load reads
    or may read, whose globals count too. hidden: those that none reads. cut: where it ends early.
    """
    outcome = pickle.outcome
    shown = outline(outcome.value, outcome.uses, limits)
    arrays = {key: _array_storage(key, array) for key, array in shown.array_storages.items()}
    storages = {**content.storages, **pickle.inside.storages, **arrays}
    tensors = tuple(shown.tensors)
    uses, aside = _globals(outcome, shown, also, hidden, pickle.inside)
    # Those in `also` are the caller's, who may have more to ask of them.
    _let_go([outcome, *(other for _, other in [*pickle.inside.outcomes, *pickle.inside.hidden])])
    imported = [use for use in uses if use.reach is not Reach.LEAVES]
    noticed = [observe_cut(cut, tensors, storages, source.name)] if cut else []
    noticed += content.findings
    noticed += _pickle_findings(outcome)
    if not outcome.over_limit:
        # A load reads these as well.
        beside = next((o for o in (*also, *(o for _, o in pickle.inside.outcomes)) if o.over_limit), None)
        noticed += _pickle_findings(beside) if beside is not None else []
    exportable = any(t.storage_id is not None for t in tensors)
    noticed += observe_globals(imported, exportable=exportable, by_numpy=content.format in OF_NUMPY)
    noticed += observe_loading(
        Loaded(
            format_id=content.format,
            uses=[use for o in (outcome, *also) for use in o.uses.values()],
            tensors=tensors,
            storages=storages,
            protocol=outcome.protocol,
            operand=outcome.operand,
            named_before=outcome.named_before,
        )
    )
    noticed += _shape_findings(shown)
    noticed += _misfit_findings(shown)
    noticed += observe_inside(pickle.inside, aside)
    noticed += observe_constants(shown.root, imported)
    inner = sum(other.nbytes for _, other in [*pickle.inside.outcomes, *pickle.inside.hidden])
    limits.spend(shown.nbytes - outcome.nbytes - sum(other.nbytes for other in (*also, *hidden)) - inner)
    whole = replace(
        content,
        root=shown.root,
        tensors=tensors,
        storages=storages,
        groups=shown.groups,
        optimizers=shown.optimizers,
        findings=noticed,
        metadata=(*content.metadata, *metadata_of(shown.root)),
        globals=uses,
        skipped=(*content.skipped, *_skipped(shown)),
    )
    return finished(source, whole)


def _let_go(outcomes: Iterable[Outcome]) -> None:
    """Drop the records of pickles that have been walked: they are as large as all that is made of them."""
    for outcome in outcomes:
        outcome.value = None
        for use in outcome.uses.values():
            use.holder = None


def _array_storage(key: str, array: ArrayBytes) -> Storage:
    data = array.data
    if isinstance(data, BytesAt):
        return Storage(
            id=key, nbytes=data.nbytes, present_nbytes=data.nbytes, offset=data.offset, big_endian=array.big_endian
        )
    n = len(data)
    return Storage(id=key, nbytes=n, present_nbytes=n, offset=None, big_endian=array.big_endian, inline=data)


def _globals(
    outcome: Outcome, shown: Outline, also: Sequence[Outcome], hidden: Sequence[Outcome], inside: Inside
) -> tuple[tuple[GlobalUse, ...], tuple[GlobalUse, ...]]:
    """Every name, worst first; and those that only a pickle in a constant has, which a load leaves alone."""
    others = [(f"(pickle {number} of the file)", other) for number, other in enumerate((*also, *hidden), 2)]
    read, left = others[: len(also)], others[len(also) :]
    read += [(f"(inside {where})", other) for where, other in inside.outcomes]
    kept = [(f"(inside {where})", other) for where, other in inside.hidden]
    rest = (
        Reach.NAMES if all(map(_only_rebuilds, [outcome, *(o for _, o in (*others, *read, *kept))])) else Reach.MAY_RUN
    )
    found = [_global(use, _place(use, shown), rest) for use in outcome.uses.values()]
    known = {u.name: u.verdict.order for u in found}

    def new(place: str, other: Outcome, *, read: bool) -> list[GlobalUse]:
        # A name that is followed in one pickle may run code in another: the worse of the two counts.
        made = [_global(use, place, rest) for use in other.uses.values()]
        made = [use for use in made if use.verdict.order < known.get(use.name, len(GlobalVerdict))]
        known.update((use.name, use.verdict.order) for use in made)
        return made if read else [replace(use, reach=Reach.LEAVES) for use in made]

    for place, other in read:
        found += new(place, other, read=True)
    for place, other in left:
        found += new(place, other, read=False)
    constants = [use for place, other in kept for use in new(place, other, read=False)]
    found = settle_wrappers([*found, *constants])
    found.sort(key=lambda u: u.verdict.order)
    return tuple(found), tuple(constants)


# Of what weights_only allows, this alone calls what it is given.
_CALLS_ITS_ARGUMENT = "_rebuild_from_type_v2"


def _only_rebuilds(outcome: Outcome) -> bool:
    """Whether a pickle calls only what makes tensors and containers and calls nothing that it is handed."""
    return not outcome.oddities and all(
        not use.altered
        and (not use.calls or (weights_only_allows(use.module, use.name) and use.name != _CALLS_ITS_ARGUMENT))
        for use in outcome.uses.values()
    )


def uses_of(found: Iterable[tuple[str, Outcome]], *, read: bool) -> tuple[GlobalUse, ...]:
    """The names of pickles beside a format that has none, worst first. found: (where, outcome) each. read: whether some
    loader takes the file for such a pickle."""
    uses = [_global(use, f"({where})"[:500], Reach.MAY_RUN) for where, o in found for use in o.uses.values()]
    uses = uses if read else [replace(use, reach=Reach.LEAVES) for use in uses]
    return tuple(sorted(uses, key=lambda u: u.verdict.order))


def _place(use: Use, shown: Outline) -> str:
    path = shown.places.get(id(use.holder)) if use.holder is not None else None
    path = shown.places.get(id(use)) if path is None else path
    if path is not None:
        return ".".join(path)[:500]
    if not use.calls:
        return ""  # Named as the argument of a call that was understood.
    known = use.followed > 0 or judge(use.module, use.name)[0] is GlobalVerdict.KNOWN
    return "" if known else "(not in the tree: its result is thrown away)"


# Why a name that can run code does not do so where all its calls were followed.
_FOLLOWED = {
    "_load_from_bytes": "loads a torch.save file inside this one, which was followed here",
    "getattr": "takes a static method of a scheduler of torch",
    "NumpyArrayWrapper": "stands for an array of joblib, whose bytes behind it were read here",
    "memmap": "the class of an array that is in this file; no other file is opened",
}


def _global(use: Use, place: str, rest: Reach) -> GlobalUse:
    """rest: how far a load goes with what the pickle does not call."""
    verdict, why = judge(use.module, use.name)
    if use.followed and use.followed == use.calls:
        verdict, why = GlobalVerdict.KNOWN, _FOLLOWED[use.name.rpartition(".")[2]]
    if use.altered:
        verdict = GlobalVerdict.DANGEROUS
        why = "the file changes it for everybody who uses it afterwards"
    return GlobalUse(
        name=f"{use.module}.{use.name}",
        verdict=verdict,
        place=place,
        arguments=use.arguments,
        called=use.calls > 0,
        count=max(use.count, use.calls),
        why=why,
        reach=Reach.RUNS if (use.calls or use.altered) else rest,
    )


def _pickle_findings(outcome: Outcome) -> list[Finding]:
    found: list[Finding] = []
    if outcome.broken:
        found.append(
            PICKLE_OVER_LIMIT.found(
                f"The pickle was followed only up to byte {outcome.end:,}: {outcome.broken}. "
                "What came before is shown; a real load would go on and run what comes behind.",
                evidence=(("byte", outcome.end), ("globals", len(outcome.uses))),
                remedy="No ordinary program writes such a file: do not load it unless you trust where it is from.",
            )
            if outcome.over_limit
            else BROKEN_PICKLE.found(
                f"The pickle was followed only up to byte {outcome.end:,}: {outcome.broken}. "
                "What came before is shown; a real load would already have run it.",
                evidence=(("byte", outcome.end), ("globals", len(outcome.uses))),
                remedy="Get the file again from its source.",
            )
        )
    if outcome.oddities:
        found.append(
            ODD_PICKLE.found(
                f"{counted(outcome.oddities, 'step')} of the pickle make no sense for the object they act on; "
                "no ordinary program writes such a file.",
                evidence=(("steps", outcome.oddities),),
                remedy="Treat the file as made by hand.",
            )
        )
    return found


def _misfit_findings(shown: Outline) -> list[Finding]:
    """Known rebuild functions whose arguments make no tensor."""
    if not shown.misfits.count:
        return []
    path, what, why = shown.misfits.first[0]
    place = ".".join(path)[:200] or "the whole file"
    more = shown.misfits.count - 1
    others = f" So do {counted(more, 'more call')}." if more else ""
    return [
        MISFIT_TENSOR.found(
            f"{place} calls {what[:120]} with arguments that make no tensor: {why[:300]}.{others}",
            subjects=tuple(".".join(p)[:200] for p, _, _ in shown.misfits.first),
            evidence=(("calls", more + 1),),
            remedy="torch fails on it too, or makes something else of it. Get the file again from its source.",
        )
    ]


def _shape_findings(shown: Outline) -> list[Finding]:
    """A bare tensor or list of tensors is said to be that."""
    if shown.groups or not shown.tensors:
        return []
    if shown.root.kind is ValueKind.TENSOR:
        says = f"The file is one tensor, {shown.root.says}, without a name."
    elif shown.root.kind in (ValueKind.SEQUENCE, ValueKind.SET):
        says = f"The file is a {shown.root.type_name} with {counted(len(shown.tensors), 'tensor')}, not a state dict."
    else:
        return []
    return [unnamed_tensors(says, len(shown.tensors))]


def _skipped(shown: Outline) -> list[str]:
    left_out: list[str] = []
    if shown.hidden:
        left_out.append(
            f"{counted(shown.hidden, 'value is', 'values are')} not shown in the tree, which has its limit."
        )
    if shown.cut_deep:
        left_out.append(
            f"{counted(shown.cut_deep, 'container is', 'containers are')} nested too deep, or in a circle: not entered."
        )
    if shown.cut_tensors:
        left_out.append(f"{counted(shown.cut_tensors, 'tensor')} over the limit: not listed.")
    return left_out
