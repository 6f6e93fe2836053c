"""A state dict over several files: shards with an index.json, or shards that only their names hold together.

huggingface_hub and transformers do not compare the index with what the shards hold; here each tensor is looked for, and
what the files do hold stays readable whatever is missing beside it.
"""

from __future__ import annotations

from inspector.checkpoint.nested import NamedTensors, find_state_dicts
from inspector.checkpoint.types import Checkpoint, Part, StateDict, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.errors import CorruptFile, LimitExceeded, ReadError
from inspector.limits import Limits
from inspector.readers.checks.wrapper_names import observe_wrappers
from inspector.readers.entry import FolderPeek, FolderReader
from inspector.readers.finish import FileContent, finished
from inspector.readers.folder import Folder, leads_outside
from inspector.readers.folders.sharded.checks import Shards, observe_shards
from inspector.readers.folders.sharded.layout import (
    INDEX_NAME,
    ShardIndex,
    families,
    looks_like_index,
    read_index,
    shard_name,
)
from inspector.readers.join import join
from inspector.units import counted

_HEAD_NBYTES = 4096
_OPEN_AT_ONCE = 64


def _claims(peek: FolderPeek) -> str:
    try:
        name = _index_name(peek.folder)
        if name:
            return f"the index {name}"
        family = _family(peek.folder)
    except ReadError:
        return ""
    return f"{counted(len(family), 'file')} named as shards of one checkpoint" if family else ""


def _index_name(folder: Folder) -> str:
    """The index in the folder itself, that of safetensors first."""
    found: list[str] = []
    for name in folder.top():
        if len(found) < 8 and INDEX_NAME.fullmatch(name):
            source = folder.open(name)
            if looks_like_index(source.read(0, min(_HEAD_NBYTES, source.size))):
                found.append(name)
            source.close()
    return min(found, key=lambda name: (".safetensors." not in name, len(name), name), default="")


def _family(folder: Folder) -> tuple[str, ...]:
    """Shards without an index: the files of the one family with most members, () when a single file is meant."""
    best = max(families(folder.top()).items(), key=lambda item: len(item[1]), default=None)
    if best is None or best[0][1] < 2 or len(best[1]) < 2:
        return ()
    return tuple(path for _, path in sorted(best[1].items()))


def _read(peek: FolderPeek) -> Checkpoint:
    name = _index_name(peek.folder)
    if name:
        source = peek.folder.open(name)
        return read_sharded(peek, read_index(source, name, peek.limits))
    return read_sharded(peek, ShardIndex(name="", nbytes=0, weight_map={}, files=_family(peek.folder)))


def read_sharded(peek: FolderPeek, index: ShardIndex) -> Checkpoint:
    """One checkpoint of the index's files in the folder. Raises CorruptFile when none of them can be read."""
    shards = _open_shards(peek, index)
    if not shards.opened:
        refused = next(iter(shards.unreadable.values()), None)
        lost = next(iter([*shards.missing, *shards.outside]), "none is named")
        first = lost[:300] if refused is None else refused.says[:300].rstrip(".")
        raise CorruptFile(
            f"{peek.folder.name}: none of the {counted(len(index.files), 'file')} that "
            f"{index.name or 'the shards'} names can be read, first {first}.",
            hint="Put the shards into the same folder as the index." if refused is None else refused.hint,
        )
    joined = join(shards.opened, name=peek.folder.name)
    chosen, everything, ordered = _merge(shards, joined.tensors, index)
    group = NamedTensors(
        path=(), kind="sharded state dict", tensors=tuple(chosen), ordered=ordered, versions=_versions(shards)
    )
    states = find_state_dicts([group])
    findings = [*observe_shards(shards, index, peek.folder, everything), *joined.findings, *observe_wrappers(states)]
    kinds = {checkpoint.format for _, checkpoint in shards.opened}
    kind = "safetensors" if kinds == {"safetensors"} else "torch.save" if "safetensors" not in kinds else "mixed"
    parts = [
        Part(name=path, nbytes=0, says=f"missing, {counted(n, 'tensor')} lost", opened=False)
        for path, n in shards.missing.items()
    ]
    parts += [
        Part(name=path, nbytes=peek.folder.size_of(path) or 0, says=f"cannot be read: {why.says[:200]}", opened=False)
        for path, why in shards.unreadable.items()
    ]
    if index.name:
        parts.insert(0, Part(name=index.name, nbytes=index.nbytes, says=f"index of {len(index.weight_map):,} tensors"))
    content = FileContent(
        format=READER.id,
        format_says=f"sharded {kind} checkpoint, {counted(len(shards.opened), 'file')}",
        root=_root(shards, chosen, peek.limits),
        tensors=everything,
        storages=joined.storages,
        states=states,
        metadata=(*index.metadata, *_metadata(shards)),
        globals=joined.globals,
        findings=findings,
        observed=True,
        skipped=[f"{path}: {s}" for path, checkpoint in shards.opened for s in checkpoint.skipped][:20],
        parts=(*joined.parts, *parts),
    )
    return finished(joined.source, content, name=peek.folder.name)


def _open_shards(peek: FolderPeek, index: ShardIndex) -> Shards:
    wanted: dict[str, int] = dict.fromkeys(index.files, 0)
    for file in index.weight_map.values():
        wanted[file] = wanted.get(file, 0) + 1
    shards = Shards()
    tensors = 0
    for path in sorted(wanted, key=_in_order):
        if peek.folder.size_of(path) is None:
            place = shards.outside if leads_outside(path) else shards.missing
            place[path] = wanted[path]
            continue
        try:
            checkpoint = peek.open_inner(path)
        except ReadError as error:
            shards.unreadable[path] = error
            continue
        tensors += len(checkpoint.tensors)
        if tensors > peek.limits.tensors:
            raise LimitExceeded(f"{peek.folder.name} holds more than {peek.limits.tensors:,} tensors.")
        if len(wanted) > _OPEN_AT_ONCE:
            checkpoint.source.close()  # It opens again when it is read: a process has 1024 files at most.
        shards.opened.append((path, checkpoint))
    return shards


def _in_order(path: str) -> tuple[str, int, str]:
    name = shard_name(path)
    return (name.stem, name.number, path) if name is not None else (path, 0, path)


def main_state(checkpoint: Checkpoint) -> StateDict | None:
    """The state dict of a shard: the file itself, or else the likeliest weights in it."""
    return next((state for state in checkpoint.state_dicts if not state.path), checkpoint.weights)


def _merge(
    shards: Shards, tensors: tuple[tuple[TensorInfo, ...], ...], index: ShardIndex
) -> tuple[list[TensorInfo], list[TensorInfo], bool]:
    """(the merged state dict, every tensor, whether the order is the model's own).

    A tensor that several shards hold counts where the index says it is, else in the first; the others stay listed
    under the name of their file. Fills `shards.holders`.
    """
    main: list[dict[tuple[str, ...], str]] = []
    ordered = True
    for number, (_, checkpoint) in enumerate(shards.opened):
        state = main_state(checkpoint)
        main.append({t.path: t.name for t in state.tensors} if state is not None else {})
        ordered = ordered and (state is None or state.ordered)
        for key in main[-1].values():
            shards.holders.setdefault(key, []).append(number)
    place = {path: number for number, (path, _) in enumerate(shards.opened)}
    chosen: list[TensorInfo] = []
    everything: list[TensorInfo] = []
    for number, (path, _) in enumerate(shards.opened):
        for tensor in tensors[number]:
            name = main[number].get(tensor.path)
            holders = shards.holders.get(name, []) if name is not None else []
            told = place.get(index.weight_map.get(name or "", ""), -1)
            if name is not None and number == (told if told in holders else holders[0]):
                made = tensor.moved(name, (name,), tensor.storage_id)
                chosen.append(made)
            else:
                made = tensor.moved(tensor.name, (path, *tensor.path), tensor.storage_id)
            everything.append(made)
    return chosen, everything, ordered


def _versions(shards: Shards) -> tuple[tuple[str, int], ...]:
    found: dict[str, int] = {}
    for _, checkpoint in shards.opened:
        state = main_state(checkpoint)
        found.update(dict(state.versions) if state is not None else {})
    return tuple(found.items())


def _metadata(shards: Shards) -> tuple[tuple[str, str], ...]:
    """Of all shards; what they agree on once, the rest under their names."""
    found: dict[str, set[str]] = {}
    for _, checkpoint in shards.opened:
        for key, value in checkpoint.metadata:
            found.setdefault(key, set()).add(value)
    same = [(key, values.pop()) for key, values in found.items() if len(values) == 1]
    differing = {key for key, values in found.items() if len(values) > 1}
    apart = [(f"{p}: {k}", v) for p, c in shards.opened for k, v in c.metadata if k in differing]
    return (*same, *apart[:200])


def _root(shards: Shards, chosen: list[TensorInfo], limits: Limits) -> Value:
    """The merged mapping: each shard's own values where they are one, the tensors that count."""
    names = {tensor.name for tensor in chosen}
    children: list[tuple[str, Value]] = []
    taken: set[str] = set()
    for path, checkpoint in shards.opened:
        root = checkpoint.root
        flat = root.kind is ValueKind.MAPPING and any(not state.path for state in checkpoint.state_dicts)
        for label, value in root.children if flat else ((path, root),):
            if len(children) >= limits.nodes:
                break
            if value.kind is ValueKind.TENSOR and label in names:
                if label not in taken:
                    children.append((label, value))
                    taken.add(label)
            else:
                children.append((f"{path}: {label}" if flat else label, value))
    return Value(
        kind=ValueKind.MAPPING,
        type_name="sharded state dict",
        says=f"{counted(len(chosen), 'tensor')} in {counted(len(shards.opened), 'file')}",
        children=tuple(children),
        size=len(children),
    )


READER = FolderReader(
    id="sharded",
    says="shards with an index.json (safetensors or torch.save)",
    layout="*.index.json, *-00001-of-0000N.safetensors or .bin",
    claims=_claims,
    read=_read,
)
