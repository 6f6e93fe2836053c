"""torch.distributed.checkpoint: a folder of data files, one or more per rank, and a .metadata that says what is where.

Listing it reads the .metadata and the headers of what is no tensor; each chunk of a tensor is found inside its data
file when its numbers are wanted. Source: torch/distributed/checkpoint (2.15); every slice of a data file is a file of
torch.save.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from inspector.checkpoint.assembled_source import AssembledSource, Piece
from inspector.checkpoint.coverage import survey
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.joined_source import SliceSource
from inspector.checkpoint.layout import row_major
from inspector.checkpoint.reopening_source import MOST_HELD_OPEN, BriefSource
from inspector.checkpoint.source import ByteSource, is_distant
from inspector.checkpoint.types import Checkpoint, Part, Storage, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.errors import CorruptFile, LimitExceeded, ReadError, UnknownFormat
from inspector.readers.assemble import checkpoint_from_pickle, metadata_of
from inspector.readers.entry import FolderPeek, FolderReader, Peek
from inspector.readers.finish import FileContent, finished
from inspector.readers.folder import Folder, leads_outside
from inspector.readers.folders.dcp.chunk import ChunkSource, mismatch
from inspector.readers.folders.dcp.findings import Losses, observe
from inspector.readers.folders.dcp.metadata import Chunk, Contents, Slice, TensorEntry, read_contents
from inspector.readers.folders.dcp.pickle import follow
from inspector.readers.folders.value_tree import ValueTree, below, tensor_value
from inspector.readers.join import join, rebase
from inspector.units import counted

METADATA = ".metadata"
_RANK_METADATA = re.compile(r"__\d+\.metadata")
_MARK = b"torch.distributed.checkpoint"
_MOST_CELLS = 1_000_000
_MOST_CHECKED = 500
# Across a network each is a round trip or two, and of thousands of ranks nobody waits for all.
_MOST_ASKED_FOR = 8
# Said of files that torch.load opens; this folder is opened by other functions.
_NOT_HERE = frozenset({"weights-only-refuses", "unnamed-tensors"})


def find_folders(folder: Folder) -> dict[str, list[str]]:
    """Names of .metadata files by the folder they lie in ("" or "name/"), those of ranks in their order."""
    found: dict[str, list[str]] = {}
    for path in folder.files():
        inside, _, base = path.rpartition("/")
        if base == METADATA or _RANK_METADATA.fullmatch(base):
            found.setdefault(f"{inside}/" if inside else "", []).append(path)
    chosen: dict[str, list[str]] = {}
    for inside, paths in found.items():
        # One of all ranks together stands before those of single ranks.
        whole = [p for p in paths if p.rpartition("/")[2] == METADATA]
        ranked = whole or sorted(paths, key=lambda p: (len(p), p))
        ours = [p for p in ranked if is_metadata(folder.open(p), is_whole=bool(whole))]
        if ours:
            chosen[inside] = ours
    return {"": chosen[""]} if "" in chosen else chosen


def is_metadata(source: ByteSource, *, is_whole: bool = False) -> bool:
    """Whether a file begins as the pickle of torch.distributed.checkpoint's metadata. is_whole: there is one for all
    ranks, so that what a network gave of it is kept for whoever reads it next."""
    head = source.read(0, min(400, source.size))
    if not (is_whole and is_distant(source)):
        source.close()
    return head[:1] in (b"\x80", b"c", b"(") and _MARK in head


def _data_files(folder: Folder) -> list[str]:
    return [path for path in folder.files() if path.endswith(".distcp")]


def _claims(peek: FolderPeek) -> str:
    try:
        found = find_folders(peek.folder)
    except ReadError:
        return ""
    if found:
        return f"{next(iter(found.values()))[0]} lists a torch.distributed.checkpoint"
    data = _data_files(peek.folder)
    return f"{counted(len(data), 'file')} of a torch.distributed.checkpoint" if data else ""


def _read(peek: FolderPeek) -> Checkpoint:
    folder = peek.folder
    found = find_folders(folder)
    if not found:
        data = _data_files(folder)
        raise CorruptFile(
            f"{folder.name} has {counted(len(data), 'data file')} of a torch.distributed.checkpoint, first {data[0]}, "
            "but no .metadata, which says what lies where.",
            hint="It is written last: saving was probably cut off, or copying left hidden files out. Copy it too.",
        )
    if len(found) > 1:
        raise UnknownFormat(
            f"{folder.name} holds {len(found)} distributed checkpoints: {', '.join(list(found)[:5])}.",
            hint="Open one of these folders.",
        )
    ((inside, names),) = found.items()
    return _Assembly(peek, inside).run(names)


@dataclass(slots=True)
class _File:
    """A data file as the metadata names it. source: None when it cannot be read, and why."""

    source: ByteSource | None
    why: str
    slices: int = 0


class _Assembly:
    """One reading of one folder. inside: where in the folder it lies, "" or "name/"."""

    def __init__(self, peek: FolderPeek, inside: str) -> None:
        self.peek = peek
        self.inside = inside
        self.contents = Contents()
        self.files: dict[str, _File] = {}
        self.losses = Losses()
        self.tree = ValueTree()
        self.cells = _MOST_CELLS
        self.inner: list[tuple[str, Checkpoint]] = []
        self.parts: list[Part] = []
        self.skipped: list[str] = []
        # Chunks are opened long after this opening and its budget are done.
        self.later = replace(peek.limits, budget=None)

    def run(self, names: Sequence[str]) -> Checkpoint:
        evidence = [self.metadata(name) for name in names]
        assembled: list[AssembledSource] = []
        infos: list[tuple[TensorInfo, int]] = []
        for entry in self.contents.tensors.values():
            source, present = self.tensor(entry)
            path = self.tree.put(entry.path, entry.name, tensor_value(entry.shape, entry.dtype, entry.name))
            assembled.append(source)
            infos.append((_info(entry, path), present))
        for item in self.contents.objects.values():
            self.tree.put(item.path, item.name, self.object(item.name, item.at))
        self.check_chunks()
        joined = join([*evidence, *self.inner], name=self.peek.folder.name, extra=assembled)
        storages = dict(joined.storages)
        tensors: list[TensorInfo] = []
        for (info, present), start in zip(infos, joined.extra_starts, strict=True):
            storages[info.storage_id or ""] = Storage(
                id=info.storage_id or "", nbytes=info.nbytes, present_nbytes=present, offset=start
            )
            tensors.append(self.named(info))
        of_objects = [
            replace(rebase(t, number), path=(name, *t.path), name=".".join((name, *t.path)))
            for number, (name, c) in enumerate([*evidence, *self.inner])
            for t in c.tensors
        ]
        groups, optimizers = self.tree.groups(tensors, ordered=self.contents.ordered)
        root = self.tree.value()
        findings = [f for f in joined.findings if f.id not in _NOT_HERE]
        findings += observe(self.contents, self.losses, self.unused())
        content = FileContent(
            format=READER.id,
            format_says=READER.says,
            root=root,
            tensors=tensors,
            inner=of_objects,
            storages=storages,
            groups=groups,
            optimizers=optimizers,
            metadata=(*(("version", v) for v in sorted(self.contents.versions)), *metadata_of(root)),
            globals=joined.globals,
            findings=findings,
            skipped=self.skipped,
            parts=self.all_parts(),
        )
        nbytes = sum(part.nbytes for part in self.all_parts())
        return finished(joined.source, content, name=self.peek.folder.name, nbytes=nbytes)

    def metadata(self, name: str) -> tuple[str, Checkpoint]:
        """Add what one .metadata lists; returns its globals and findings as a checkpoint without tensors."""
        source = self.peek.folder.open(name)
        limits = self.peek.limits
        pickle = follow(source, limits)
        source.close()  # There may be one per rank, and nothing more is read from it.
        if pickle.outcome.over_limit:
            raise LimitExceeded(f"{name} is larger than this program follows: {pickle.outcome.broken}.")
        if not read_contents(pickle.outcome.value, self.contents, limits):
            raise CorruptFile(
                f"{name} is no metadata of a torch.distributed.checkpoint that can be followed: "
                f"{pickle.outcome.broken or 'it lists no state dict'}.",
                hint="Get the whole folder again.",
            )
        # Its own tree would say the same as the checkpoint's; only where its globals stand is worth a walk.
        pickle.outcome.value = None
        content = FileContent(format=READER.id, format_says="metadata")
        made = checkpoint_from_pickle(pickle, content, source=source, limits=limits)
        listed = counted(len(self.contents.tensors), "tensor")
        self.parts.append(Part(name=name, nbytes=source.size, says=f"says where {listed} lie"))
        places = tuple(replace(use, place="") for use in made.globals)
        return name, replace(made, globals=places, tensors=(), storages={}, skipped=())

    def file(self, name: str) -> _File:
        """The data file of that name in the folder; a name that leads elsewhere is never followed."""
        known = self.files.get(name)
        if known is None:
            path = self.inside + name
            if leads_outside(name):
                known = _File(None, f"its place {name[:80]!r} leads outside the folder")
                self.losses.outside.append(name[:200])
            elif self.peek.folder.size_of(path) is None:
                known = _File(None, f"{name[:80]} is not in the folder")
                self.losses.missing_files.append(name[:200])
            else:
                source = self.peek.folder.open(path)
                many = len(self.files) >= MOST_HELD_OPEN
                known = _File(BriefSource(source) if many else source, "")
            self.files[name] = known
        known.slices += 1
        return known

    def place(self, at: Slice | None, what: str) -> tuple[ByteSource | None, str]:
        """The file that a slice lies in, or why it cannot be read."""
        if at is None:
            self.losses.unplaced += 1
            return None, "the .metadata does not say where it is"
        if at.transforms:
            self.losses.transformed.append((what, " and ".join(at.transforms)))
            return None, f"it is packed by {' and '.join(at.transforms)}, which is not read here"
        file = self.file(at.file)
        if file.source is not None and at.offset + at.nbytes > file.source.size:
            self.losses.cut.append((at.file, at.offset + at.nbytes, file.source.size))
            return None, f"{at.file} ends at byte {file.source.size:,}, before byte {at.offset + at.nbytes:,}"
        return file.source, file.why

    def tensor(self, entry: TensorEntry) -> tuple[AssembledSource, int]:
        """The bytes of one tensor, and how many of them are there before the first that is not."""
        pieces: list[Piece] = []
        for chunk in entry.chunks:
            source, why = self.place(chunk.at, entry.name)
            held: ByteSource | None = None
            if source is not None and chunk.at is not None:
                held = ChunkSource(
                    source,
                    chunk.at.offset,
                    chunk.at.nbytes,
                    dtype=entry.dtype,
                    sizes=chunk.sizes,
                    what=entry.name[:80],
                    limits=self.later,
                )
            pieces.append(Piece(chunk.offsets, chunk.sizes, held, says=why))
        k = DTYPES[entry.dtype].itemsize
        made = AssembledSource(pieces, shape=entry.shape, itemsize=k, name=entry.name[:120])
        listed = [(p.offsets, p.sizes) for p in pieces]
        found = survey(entry.shape, listed, most_cells=self.cells)
        readable = [(p.offsets, p.sizes) for p in pieces if p.source is not None]
        there = found if len(readable) == len(listed) else survey(entry.shape, readable, most_cells=self.cells)
        if found is None or there is None:
            self.skipped.append(f"{entry.name[:80]}: its {counted(len(pieces), 'chunk')} were not compared.")
            return made, made.size
        self.cells = max(0, self.cells - found.cells - there.cells) or 1
        self.losses.add(entry, found, there)
        return made, made.size if there.first_missing is None else there.first_missing * k

    def object(self, name: str, at: Slice | None) -> Value:
        """The value of an entry that is no tensor. Its pickle is followed, never run."""
        source, why = self.place(at, name)
        if source is not None and at is not None:
            try:
                made = self.open(source, at, f"{name[:80]} in {at.file}")
            except ReadError as error:
                why = error.says
                self.losses.unreadable.append(f"{name[:80]}: {why}")
            else:
                self.inner.append((name, made))
                return below(made.root, name)
        return Value(kind=ValueKind.CUT, type_name="", says=f"cannot be read: {why}"[:200])

    def open(self, source: ByteSource, at: Slice, name: str) -> Checkpoint:
        opening = self.peek.opening.deeper()
        return opening.file(Peek(SliceSource(source, at.offset, at.nbytes, name), opening))

    def check_chunks(self) -> None:
        """Open the headers of the first chunks: do they hold what the metadata says?"""
        checked = self.first_chunks()
        for entry, chunk in checked:
            file = self.files.get(chunk.at.file) if chunk.at is not None else None
            if file is None or file.source is None or chunk.at is None or chunk.at.transforms:
                continue
            if chunk.at.offset + chunk.at.nbytes > file.source.size:
                continue
            try:
                made = self.open(file.source, chunk.at, f"{entry.name[:80]} in {chunk.at.file}")
                wrong = mismatch(made, entry.dtype, chunk.sizes)
            except ReadError as error:
                self.losses.unreadable.append(f"{entry.name[:80]}: {error.says}")
                continue
            if wrong:
                self.losses.unreadable.append(f"{entry.name[:80]} {wrong}")
            self.inner.append((f"{entry.name[:80]} in {chunk.at.file}", replace(made, tensors=(), storages={})))
        left = self.contents.chunks - len(checked)
        if left > 0:
            self.skipped.append(
                f"The headers of {counted(left, 'chunk')} of tensors were not opened; torch loads chunks of tensors "
                "with weights_only=True, and everything else here was looked at."
            )

    def first_chunks(self) -> list[tuple[TensorEntry, Chunk]]:
        """One of each tensor first; of files across a network, one of each of the first few files."""
        chunks = [(e, c) for e in self.contents.tensors.values() for c in e.chunks[:1]]
        if len(chunks) < _MOST_CHECKED:
            chunks += [(e, c) for e in self.contents.tensors.values() for c in e.chunks[1:]]
        if any(file.source is not None and is_distant(file.source) for file in self.files.values()):
            first = {chunk.at.file: (entry, chunk) for entry, chunk in reversed(chunks) if chunk.at is not None}
            return [first[name] for name in sorted(first)[:_MOST_ASKED_FOR]]
        return chunks[:_MOST_CHECKED]

    def named(self, info: TensorInfo) -> TensorInfo:
        """Known by its key in its mapping, as in every other format; by its dotted path in a list."""
        in_list = len(info.path) > 1 and self.tree.is_numbered(info.path[:-1])
        return replace(info, name=".".join(info.path) if in_list else info.path[-1])

    def unused(self) -> list[str]:
        """Data files beside those that the metadata names."""
        here = [p.removeprefix(self.inside) for p in _data_files(self.peek.folder) if p.startswith(self.inside)]
        return [name for name in here if name not in self.files]

    def all_parts(self) -> tuple[Part, ...]:
        data = [
            Part(
                name=(self.inside + name)[:300],
                nbytes=file.source.size if file.source is not None else 0,
                says=f"data file, {counted(file.slices, 'item')}" if file.source is not None else "missing",
                # Under another name it may be a whole file of its own, of which only slices were looked at.
                opened=file.source is not None and name.endswith(".distcp"),
            )
            for name, file in sorted(self.files.items())
        ]
        return (*self.parts, *data)


def _info(entry: TensorEntry, path: tuple[str, ...]) -> TensorInfo:
    k = DTYPES[entry.dtype].itemsize
    numel = 1
    for n in entry.shape:
        numel *= n
    n = len(entry.chunks)
    return TensorInfo(
        name=entry.name,
        path=path,
        shape=entry.shape,
        dtype=entry.dtype,
        nbytes=numel * k,
        storage_id=f"assembled/{entry.name}",
        stride=row_major(entry.shape),
        note=f"in {n:,} chunks" if n > 1 else "",
    )


READER = FolderReader(
    id="dcp",
    says="torch.distributed.checkpoint folder",
    layout=".metadata (or __<rank>.metadata) beside __<rank>_<n>.distcp",
    claims=_claims,
    read=_read,
)
