"""From a pickle's outcome and its storages to a `Checkpoint`. Shared by every reader of pickles."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from inspector.checkpoint.nested import find_state_dicts
from inspector.checkpoint.source import BufferSource, ByteSource
from inspector.checkpoint.types import Checkpoint, GlobalUse, GlobalVerdict, Origin, Storage
from inspector.checkpoint.values import Value, ValueKind
from inspector.findings import Finding, Severity
from inspector.limits import Limits
from inspector.readers.observations import observe_globals, observe_storages
from inspector.readers.truncation import Cut, observe_cut
from inspector.readers.unpickle.machine import Machine, Outcome
from inspector.readers.unpickle.meanings import MEANINGS, build
from inspector.readers.unpickle.opcodes import TABLE
from inspector.readers.unpickle.outline import Outline, outline
from inspector.readers.unpickle.persistent import torch_persistent
from inspector.readers.unpickle.stand_ins import ArrayBytes, BytesAt, StorageRef, Use
from inspector.readers.unpickle.verdicts import judge, settle_wrappers, weights_only_allows
from inspector.readers.wrapper_names import observe_wrappers
from inspector.units import counted


@dataclass(slots=True, kw_only=True)
class Unpickled:
    """One pickle followed: its outcome, the storages it names, the module sources it carries."""

    outcome: Outcome
    storages: dict[str, StorageRef] = field(default_factory=dict)
    sources: list[tuple[str, str]] = field(default_factory=list)


def unpickle(source: ByteSource, start: int, stop: int, limits: Limits, *, in_file: bool = True) -> Unpickled:
    """Follow one pickle. in_file: the source is the file itself, so long constants can stay in it."""
    storages: dict[str, StorageRef] = {}
    sources: list[tuple[str, str]] = []
    machine = Machine(
        source,
        start,
        stop,
        limits=limits,
        meanings=MEANINGS,
        build=build,
        persistent=torch_persistent(storages, sources),
        keep_below=4096 if in_file else limits.text_nbytes,
    )
    outcome = machine.run(TABLE)
    limits.spend(outcome.nbytes)  # Given back once its outline is made, in checkpoint_from_pickle.
    return Unpickled(outcome=outcome, storages=storages, sources=sources)


def unpickle_bytes(data: bytes, limits: Limits) -> Unpickled:
    """The same for a pickle that had to be inflated."""
    return unpickle(BufferSource(data), 0, len(data), limits, in_file=False)


def checkpoint_from_pickle(
    pickle: Unpickled,
    *,
    source: ByteSource,
    limits: Limits,
    format_id: str,
    format_says: str,
    storages: dict[str, Storage],
    findings: Iterable[Finding] = (),
    skipped: Iterable[str] = (),
    metadata: Sequence[tuple[str, str]] = (),
    also: Sequence[Outcome] = (),
    cut: Cut | None = None,
) -> Checkpoint:
    """Put everything together. also: further pickles of the file, whose globals count too. cut: where it ends early."""
    outcome = pickle.outcome
    shown = outline(outcome.value, outcome.uses, limits)
    everything = {**storages, **{key: _array_storage(key, array) for key, array in shown.array_storages.items()}}
    tensors = tuple(shown.tensors)
    uses = _globals(outcome, shown, also)
    allowed = {u.name: weights_only_allows(*u.name.rpartition(".")[::2]) for u in uses}
    noticed = [observe_cut(cut, tensors, everything, source.name)] if cut else []
    noticed += findings
    noticed += _pickle_findings(outcome)
    noticed += observe_globals(uses, allowed, max([outcome.protocol, *(o.protocol for o in also)]))
    noticed += observe_storages(tensors, everything, source.name)
    noticed += _shape_findings(shown)
    states = find_state_dicts(shown.groups, optimizers=shown.optimizers, tensors=tensors)
    noticed += observe_wrappers(states)
    noticed += _misfit_findings(shown)
    left_out = list(skipped) + _skipped(shown)
    limits.spend(shown.nbytes - outcome.nbytes - sum(other.nbytes for other in also))
    return Checkpoint(
        origin=Origin(name=source.name, nbytes=source.size),
        format=format_id,
        format_says=format_says,
        root=shown.root,
        tensors=tensors,
        storages=everything,
        state_dicts=states,
        metadata=(*metadata, *metadata_of(shown.root)),
        globals=uses,
        findings=tuple(noticed),
        skipped=tuple(left_out),
        source=source,
    )


def _array_storage(key: str, array: ArrayBytes) -> Storage:
    data = array.data
    if isinstance(data, BytesAt):
        return Storage(
            id=key, nbytes=data.nbytes, present_nbytes=data.nbytes, offset=data.offset, big_endian=array.big_endian
        )
    n = len(data)
    return Storage(id=key, nbytes=n, present_nbytes=n, offset=None, big_endian=array.big_endian, inline=data)


_ORDER = {GlobalVerdict.DANGEROUS: 0, GlobalVerdict.UNKNOWN: 1, GlobalVerdict.KNOWN: 2}


def _globals(outcome: Outcome, shown: Outline, also: Sequence[Outcome]) -> tuple[GlobalUse, ...]:
    found = [_global(use, _place(use, shown)) for use in outcome.uses.values()]
    known = {u.name for u in found}
    for number, other in enumerate(also, 2):
        place = f"(pickle {number} of the file)"
        found += [_global(use, place) for use in other.uses.values() if f"{use.module}.{use.name}" not in known]
    found = settle_wrappers(found)
    found.sort(key=lambda u: _ORDER[u.verdict])
    return tuple(found)


def _place(use: Use, shown: Outline) -> str:
    path = shown.places.get(id(use.holder)) if use.holder is not None else None
    path = shown.places.get(id(use)) if path is None else path
    if path is not None:
        return ".".join(path)[:500]
    known = judge(use.module, use.name)[0] is GlobalVerdict.KNOWN
    return "" if known else "(not in the tree: its result is thrown away)"


def _global(use: Use, place: str) -> GlobalUse:
    verdict, why = judge(use.module, use.name)
    return GlobalUse(
        name=f"{use.module}.{use.name}",
        verdict=verdict,
        place=place,
        arguments=use.arguments,
        called=use.calls > 0,
        count=max(use.count, use.calls),
        why=why,
    )


def _pickle_findings(outcome: Outcome) -> list[Finding]:
    found: list[Finding] = []
    if outcome.broken:
        found.append(
            Finding(
                id="pickle-over-limit" if outcome.over_limit else "broken-pickle",
                severity=Severity.ERROR,
                says=f"The pickle was followed only up to byte {outcome.end:,}: {outcome.broken}. "
                "What came before is shown; a real load would already have run it.",
                evidence=(("byte", outcome.end), ("globals", len(outcome.uses))),
                remedy="Get the file again from its source.",
            )
        )
    if outcome.oddities:
        found.append(
            Finding(
                id="odd-pickle",
                severity=Severity.WARNING,
                says=f"{counted(outcome.oddities, 'step')} of the pickle make no sense for the object they act on; "
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
        Finding(
            id="misfit-tensor",
            severity=Severity.ERROR,
            says=f"{place} calls {what[:120]} with arguments that make no tensor: {why[:300]}.{others}",
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
    return [
        Finding(
            id="unnamed-tensors",
            severity=Severity.INFO,
            says=says,
            evidence=(("tensors", len(shown.tensors)),),
            remedy="Nothing is wrong with it; it just is no model.",
        )
    ]


def _skipped(shown: Outline) -> list[str]:
    left_out: list[str] = []
    if shown.hidden:
        left_out.append(f"{counted(shown.hidden, 'value')} are not shown in the tree, which has its limit.")
    if shown.cut_deep:
        left_out.append(
            f"{counted(shown.cut_deep, 'container')} are nested too deep, or in a circle, and were not entered."
        )
    if shown.cut_tensors:
        left_out.append(f"{counted(shown.cut_tensors, 'tensor')} over the limit are not listed.")
    return left_out


_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_SIMPLE = {ValueKind.NUMBER, ValueKind.TEXT, ValueKind.BOOLEAN, ValueKind.NONE}
_SETTINGS = frozenset(
    [
        "hyper_parameters",
        "hparams",
        "args",
        "config",
        "cfg",
        "opt",
        "options",
        "meta",
        "metadata",
        "param_groups",
        "train_args",
        "hyperparameters",
    ]
)
_MOST_METADATA = 200
_MOST_ITEMS = 1000


def _is_short_list(value: Value) -> bool:
    """A list of texts, or of finite numbers, that is shown whole."""
    items = [child for _, child in value.children]
    if value.kind is not ValueKind.SEQUENCE or not 0 < len(items) <= _MOST_ITEMS or value.size != len(items):
        return False
    texts = all(c.kind is ValueKind.TEXT for c in items)
    return texts or all(c.kind is ValueKind.NUMBER and _NUMBER.fullmatch(c.says) for c in items)


def metadata_of(root: Value) -> tuple[tuple[str, str], ...]:
    """(key, value as text) of the plain values beside the weights: directly in the file's own mapping, in its
    settings, and in the parameter groups of an optimizer. Nested keys are joined with dots."""
    found: list[tuple[str, str]] = []

    def simple(prefix: str, value: Value) -> None:
        for label, child in value.children:
            if len(found) >= _MOST_METADATA:
                return
            if child.kind in _SIMPLE:
                found.append((f"{prefix}{label}", child.says))
            elif _is_short_list(child):
                # Class names, mean and std: written as JSON, so that whoever needs the items can have them.
                items = [c.says if c.kind is ValueKind.TEXT else json.loads(c.says) for _, c in child.children]
                found.append((f"{prefix}{label}", json.dumps(items, ensure_ascii=False)))

    if root.kind is not ValueKind.MAPPING:
        return ()
    simple("", root)
    for label, child in root.children:
        if label.lower() in _SETTINGS:
            simple(f"{label}.", child)
        groups = next((c for k, c in child.children if k == "param_groups"), None)
        if groups is not None:
            for number, group in groups.children[:4]:
                simple(f"{label}.param_groups.{number}.", group)
    return tuple(found)
