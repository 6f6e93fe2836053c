"""Several opened files as the parts of one checkpoint: one source, storages that do not collide, findings merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from inspector.checkpoint.joined_source import JoinedSource
from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint, GlobalUse, Part, Storage, TensorInfo
from inspector.findings import Finding, ranked
from inspector.units import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What several files hold together.

    source: all files' bytes, one behind the other, then `extra` ones. tensors: per file, with storage ids and, in
    `storages`, offsets that hold in `source`. extra_starts: where each extra source begins.
    globals: of all files, worst first, with the file in their place. findings: equal ids are said once.
    parts: the files, for display.
    """

    source: JoinedSource
    tensors: tuple[tuple[TensorInfo, ...], ...]
    storages: dict[str, Storage]
    extra_starts: tuple[int, ...]
    globals: tuple[GlobalUse, ...]
    findings: tuple[Finding, ...]
    parts: tuple[Part, ...]


def join(files: Sequence[tuple[str, Checkpoint]], *, name: str, extra: Sequence[ByteSource] = ()) -> Joined:
    """Put (name, checkpoint) of several files together. extra: sources without a file of their own, such as tensors
    assembled from pieces (`AssembledSource`)."""
    source = JoinedSource([*(c.source for _, c in files), *extra], name)
    storages: dict[str, Storage] = {}
    tensors: list[tuple[TensorInfo, ...]] = []
    for number, (_, checkpoint) in enumerate(files):
        start = source.starts[number]
        for storage in checkpoint.storages.values():
            key = storage_key(number, storage.id)
            offset = None if storage.offset is None else start + storage.offset
            storages[key] = storage.moved(key, offset)
        tensors.append(tuple(rebase(t, number) for t in checkpoint.tensors))
    return Joined(
        source=source,
        tensors=tuple(tensors),
        storages=storages,
        extra_starts=source.starts[len(files) :],
        globals=_globals(files),
        findings=_findings(files),
        parts=tuple(Part(name=n, nbytes=c.origin.nbytes, says=_says(c)) for n, c in files),
    )


def storage_key(number: int, key: str) -> str:
    """Id of a storage of file `number` among all."""
    return f"{number}/{key}"


def rebase(tensor: TensorInfo, number: int) -> TensorInfo:
    """A tensor of file `number`, pointing to its storage among all."""
    encoding = tensor.encoding
    if encoding is not None and encoding.parts:
        encoding = replace(encoding, parts=tuple(rebase(part, number) for part in encoding.parts))
    key = None if tensor.storage_id is None else storage_key(number, tensor.storage_id)
    moved = tensor.moved(tensor.name, tensor.path, key)
    return moved if encoding is tensor.encoding else replace(moved, encoding=encoding)


def _says(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.format_says}, {counted(len(checkpoint.tensors), 'tensor')}"


def _globals(files: Sequence[tuple[str, Checkpoint]]) -> tuple[GlobalUse, ...]:
    """One entry per name, at its first place; counts added."""
    found: dict[str, GlobalUse] = {}
    for name, checkpoint in files:
        for use in checkpoint.globals:
            known = found.get(use.name)
            if known is None:
                found[use.name] = replace(use, place=f"{name}: {use.place}" if use.place else name)
            elif use.verdict.order < known.verdict.order:
                place = f"{name}: {use.place}" if use.place else name
                found[use.name] = replace(use.joined(known), place=place)
            else:
                found[use.name] = known.joined(use)
    return tuple(sorted(found.values(), key=lambda use: use.verdict.order))


def _findings(files: Sequence[tuple[str, Checkpoint]]) -> tuple[Finding, ...]:
    """Each id and severity once, in the words of the first file that has it, with the number of the others."""
    groups: dict[tuple[str, str], list[tuple[str, Finding]]] = {}
    for name, checkpoint in files:
        for finding in checkpoint.findings:
            groups.setdefault((finding.id, finding.severity.value), []).append((name, finding))
    merged: list[Finding] = []
    for group in groups.values():
        name, first = group[0]
        others = len({n for n, _ in group} - {name})
        more = f" {counted(others, 'other file has', 'other files have')} the same kind of finding." if others else ""
        says = first.says if name in first.says else f"{name}: {first.says}"
        subjects = tuple(dict.fromkeys(s for _, f in group for s in f.subjects))[:40]
        merged.append(replace(first, says=says + more, subjects=subjects, evidence=(*first.evidence, ("file", name))))
    return ranked(merged)
