"""torch.save of the first releases (0.1.0 to 0.1.9): a tar with sys_info, pickle, storages and tensors.

`storages` is a row of pickles, each followed by its elements; `tensors` a row of pickles, each followed by sizes and
strides; `pickle` is the object, whose persistent ids are the tensors' numbers. Nothing is unpacked.
Source: torch/serialization.py (2.15), legacy_load inside _legacy_load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint, Storage
from inspector.errors import CorruptFile, LimitExceeded
from inspector.findings import Finding, FindingKind, Severity
from inspector.limits import Limits
from inspector.readers.archives.tar_directory import TarDirectory, TarMember
from inspector.readers.assemble import Unpickled, checkpoint_from_pickle, unpickle
from inspector.readers.checks.contents import AMBIGUOUS_ARCHIVE
from inspector.readers.entry import Peek, Reader
from inspector.readers.finish import FileContent
from inspector.readers.unpickle.machine.arguments import sizes_of, storage_dtype, strided
from inspector.readers.unpickle.machine.machine import Outcome
from inspector.readers.unpickle.meanings.class_sources import source_texts
from inspector.readers.unpickle.nested.hidden_pickles import Hidden, observe_hidden, search_behind
from inspector.readers.unpickle.stand_ins import (
    GlobalRef,
    Mapping,
    PersistentRef,
    StorageRef,
    TensorStub,
    text_of,
)

BROKEN_MEMBER = FindingKind("broken-member", Severity.ERROR, "A member cannot be read to its end")

_MEMBERS = ("pickle", "storages", "tensors")
_ASKED = (*_MEMBERS, "sys_info")
_MOST_OTHERS = 64
_MOST_LINKS = 8
_MOST_COUNT = 1_000_000
_MOST_NUMEL = 1 << 62
_TENSOR_NBYTES = 1500


def _members(directory: TarDirectory) -> dict[str, TarMember] | None:
    """What torch finds under the names it asks for; None when one is lacking.

    As tarfile has it: the last of a name counts, a link stands for what it points to. "./pickle", as `tar -C folder .`
    writes it, is none of the names for torch, and is taken only where there is no other.
    """
    found: dict[str, TarMember] = {}
    for prefix in ("./", ""):
        for member in directory.members:
            if member.name.startswith(prefix) and member.name[len(prefix) :] in _ASKED:
                found[member.name[len(prefix) :]] = member
    places = {member.offset: number for number, member in enumerate(directory.members)}
    for name, _, _, before in directory.links:
        if name in _ASKED and (name not in found or places[found[name].offset] < before):
            target = _behind_link(directory, name)
            found.pop(name, None)
            if target is not None:
                found[name] = target
    return found if all(name in found for name in _MEMBERS) else None


def _behind_link(directory: TarDirectory, name: str) -> TarMember | None:
    """The file that the last link of that name leads to, over at most a few other links."""
    by_name = {member.name.removeprefix("./"): member for member in directory.members}
    links = {link: target for link, target, _, _ in directory.links}
    for _ in range(_MOST_LINKS):
        if name not in links:
            return by_name.get(name)
        name = links[name].removeprefix("./")
        if name in by_name:
            return by_name[name]
    return None


def _claims(peek: Peek) -> str:
    return "a tar with pickle, storages and tensors" if peek.tar is not None and _members(peek.tar) else ""


@dataclass(slots=True, kw_only=True)
class _Read:
    """What the members gave so far. problem: where and why a member could not be followed to its end."""

    refs: dict[object, StorageRef] = field(default_factory=dict)
    storages: dict[str, Storage] = field(default_factory=dict)
    tensors: dict[int, TensorStub] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    sources: list[tuple[str, str]] = field(default_factory=list)


def _read(peek: Peek) -> Checkpoint:
    source, limits = peek.source, peek.limits
    directory = peek.tar
    members = _members(directory) if directory is not None else None
    if directory is None or members is None:
        raise CorruptFile(f"{source.name} lacks a member of a torch 0.1 archive.")
    found = _Read()
    big_endian = _is_big_endian(source, members.get("sys_info"), limits, found)
    _read_storages(_Rows(source, members["storages"], limits, found), big_endian)
    _read_tensors(_Rows(source, members["tensors"], limits, found))
    member = members["pickle"]
    main = unpickle(
        source,
        member.offset,
        min(member.offset + member.nbytes, source.size),
        limits,
        persistent=_resolver(found),
    )
    code, left_out = source_texts(found.sources)
    hidden = _search(source, directory, members, main.outcome, limits)
    content = FileContent(
        format=READER.id,
        format_says=READER.says,
        storages=found.storages,
        findings=[*_findings(source, found), *_doubts(source, directory), *observe_hidden(hidden)],
        skipped=[*left_out, *hidden.left_out],
        code=code,
    )
    return checkpoint_from_pickle(
        main, content, source=source, limits=limits, also=found.outcomes, hidden=hidden.outcomes
    )


def _search(
    source: ByteSource, directory: TarDirectory, members: dict[str, TarMember], main: Outcome, limits: Limits
) -> Hidden:
    """Pickles behind the main one and in members that torch does not ask for."""
    hidden = Hidden()
    stop = min(members["pickle"].offset + members["pickle"].nbytes, source.size)
    if not main.broken:
        hidden.add(search_behind(source, main.end, stop, limits, "behind the main pickle"))
    asked = {member.offset for member in members.values()}
    others = [member for member in directory.members if member.offset not in asked and member.nbytes > 2]
    for member in others[:_MOST_OTHERS]:
        stop = min(member.offset + member.nbytes, source.size)
        outcome = hidden.try_at(source, member.offset, stop, limits, calls=False) if stop > member.offset else None
        if outcome is not None:
            hidden.found.append((member.name[:200], outcome))
    if len(others) > _MOST_OTHERS:
        hidden.left_out.append(f"{len(others) - _MOST_OTHERS:,} further members were not searched for pickles.")
    return hidden


def _doubts(source: ByteSource, directory: TarDirectory) -> list[Finding]:
    """Members that occur twice or are links, and what else no program writes."""
    counts = Counter(member.name for member in directory.members)
    doubts = [f"{name} occurs {n} times; the last counts" for name, n in counts.items() if n > 1 and name in _ASKED]
    doubts += [f"{name} is a link to {to[:80]}" for name, to, _, _ in directory.links if name in _ASKED][:20]
    doubts += directory.doubts
    if not doubts:
        return []
    return [
        AMBIGUOUS_ARCHIVE.found(
            f"{source.name} is no tar archive as torch wrote it: {'; '.join(doubts[:4])}.",
            evidence=(("doubts", len(doubts)),),
            remedy="Other programs may read something else from it; do not trust another tool's scan of it.",
        )
    ]


def _is_big_endian(source: ByteSource, member: TarMember | None, limits: Limits, found: _Read) -> bool:
    """What sys_info says. torch itself ignores it and reads storages in the byte order of the machine it runs on."""
    if member is None:
        return False
    info = unpickle(source, member.offset, min(member.offset + member.nbytes, source.size), limits).outcome
    found.outcomes.append(info)
    return isinstance(info.value, Mapping) and info.value.get("little_endian") is False


class _Rows:
    """A member that is a row of pickles with bytes between them."""

    def __init__(self, source: ByteSource, member: TarMember, limits: Limits, found: _Read) -> None:
        self.source = source
        self.name = member.name[:40]
        self.at = member.offset
        self.stop = min(member.offset + member.nbytes, source.size)
        self.limits = limits
        self.found = found

    def load(self) -> object:
        """The value of the next pickle. Raises CorruptFile when there is none that can be followed."""
        pickle: Unpickled = unpickle(self.source, self.at, self.stop, self.limits)
        outcome = pickle.outcome
        if outcome.uses or outcome.broken:
            self.found.outcomes.append(outcome)
        else:
            self.limits.spend(-outcome.nbytes)  # Nothing of it is kept but the value.
        if outcome.broken:
            raise CorruptFile(f"{self.name} breaks off: {outcome.broken}")
        self.at = outcome.end
        return outcome.value

    def count(self, what: str) -> int:
        """The number that a row begins with."""
        value = self.load()
        if type(value) is not int or not 0 <= value <= _MOST_COUNT:
            raise CorruptFile(f"{self.name} declares {text_of(value, 40)} {what}")
        return value

    def take(self, n: int) -> bytes:
        """The next n bytes, raw."""
        if n < 0 or self.at + n > self.stop:
            raise CorruptFile(f"{self.name} ends at byte {self.stop:,}, but {n:,} bytes are needed at {self.at:,}")
        raw = self.source.read(self.at, n)
        self.at += n
        return raw


def _read_storages(rows: _Rows, big_endian: bool) -> None:
    found = rows.found
    try:
        for _ in range(rows.count("storages")):
            entry = rows.load()
            dtype = storage_dtype(entry[2]) if isinstance(entry, tuple) and len(entry) == 3 else None
            if not isinstance(entry, tuple) or dtype is None or dtype[0] is None:
                raise CorruptFile(f"{rows.name} holds {text_of(entry, 60)}, which describes no storage")
            key, location = _key(entry[0]), entry[1]
            numel = int.from_bytes(rows.take(8), "big" if big_endian else "little", signed=True)
            if not 0 <= numel < _MOST_NUMEL:
                raise CorruptFile(f"storage {key} declares {numel:,} elements")
            nbytes = numel * DTYPES[dtype[0]].itemsize
            present = max(0, min(nbytes, rows.stop - rows.at))
            where = location.decode("latin-1") if isinstance(location, bytes) else location
            ref = StorageRef(key, dtype[0], dtype[1], where[:60] if isinstance(where, str) else "", numel)
            found.refs[key] = ref
            found.storages[key] = Storage(
                id=key,
                nbytes=nbytes,
                present_nbytes=present,
                offset=rows.at,
                device=ref.location or None,
                big_endian=big_endian,
            )
            rows.at += nbytes
            if present < nbytes:
                raise CorruptFile(f"storage {key} lacks {nbytes - present:,} of its {nbytes:,} bytes")
        _read_views(rows)
    except CorruptFile as problem:
        found.problems.append(problem.says)


def _read_views(rows: _Rows) -> None:
    """Storages that are a part of another one: (target, root, offset, elements)."""
    views = rows.load()
    if not isinstance(views, list | tuple):
        raise CorruptFile(f"{rows.name} ends with {text_of(views, 40)} instead of its views")
    for view in views:
        root = rows.found.refs.get(_key(view[1])) if isinstance(view, list | tuple) and len(view) == 4 else None
        span = sizes_of(view[2:]) if root is not None else None
        if root is None or span is None or sum(span) > root.numel:
            raise CorruptFile(f"{rows.name} holds the view {text_of(view, 60)}, which fits no storage")
        rows.found.refs[_key(view[0])] = StorageRef(
            root.key, root.dtype, root.type_name, root.location, root.numel, (span[0], span[1])
        )


def _key(value: object) -> str:
    """Storages and tensors were numbered by their address."""
    if type(value) is int and value.bit_length() < 128:
        return str(value)
    if isinstance(value, bytes):
        return value.decode("latin-1")[:60]
    return value[:60] if isinstance(value, str) else text_of(value, 60)


def _read_tensors(rows: _Rows) -> None:
    found = rows.found
    try:
        for _ in range(rows.count("tensors")):
            rows.limits.charge(_TENSOR_NBYTES, "The tensors of this archive")
            entry = rows.load()
            if not isinstance(entry, tuple) or len(entry) != 3 or type(entry[0]) not in (int, str):
                raise CorruptFile(f"{rows.name} holds {text_of(entry, 60)}, which describes no tensor")
            ndim = int.from_bytes(rows.take(4), "little", signed=True)
            rows.take(4)  # The number of dimensions took eight bytes once.
            if not 0 <= ndim <= rows.limits.dimensions:
                raise CorruptFile(f"tensor {_key(entry[0])} declares {ndim:,} dimensions")
            numbers = rows.take(16 * ndim + 8)
            values = [int.from_bytes(numbers[i : i + 8], "little", signed=True) for i in range(0, len(numbers), 8)]
            size, stride, offset = tuple(values[:ndim]), tuple(values[ndim:-1]), values[-1]
            kind = entry[2].full if isinstance(entry[2], GlobalRef) else "torch.Tensor"
            found.tensors[int(_key(entry[0]))] = _tensor(found.refs.get(_key(entry[1])), offset, size, stride, kind)
    except ValueError as problem:
        found.problems.append(f"{rows.name} holds a tensor whose number is none ({problem})"[:200])
    except (CorruptFile, LimitExceeded) as problem:
        found.problems.append(problem.says)


def _tensor(
    ref: StorageRef | None, offset: int, size: tuple[int, ...], stride: tuple[int, ...], kind: str
) -> TensorStub:
    made = strided(ref, offset, size, stride)
    if isinstance(made, TensorStub):
        made.kind = kind
        return made
    why = "it belongs to no storage of the file" if ref is None else made.why
    return TensorStub(storage=None, dtype="float32", shape=(0,), kind=kind, note=f"not made: {why}", why=why)


def _resolver(found: _Read) -> Callable[[object], object]:
    """Persistent ids: the number of a tensor or storage, or (class, source file, source text)."""

    def resolve(pid: object) -> object:
        if isinstance(pid, tuple) and len(pid) == 3 and isinstance(pid[0], GlobalRef):
            if type(pid[2]) is str:
                found.sources.append((pid[0].full, pid[2]))
            return pid[0]
        key = _key(pid) if type(pid) in (int, str, bytes) else ""
        tensor = found.tensors.get(int(key)) if key.isascii() and key.isdecimal() else None
        return tensor or found.refs.get(key) or PersistentRef(pid)

    return resolve


def _findings(source: ByteSource, found: _Read) -> list[Finding]:
    if not found.problems:
        return []
    return [
        BROKEN_MEMBER.found(
            f"{source.name} cannot be read to its end: {'; '.join(p.rstrip('.') for p in found.problems[:2])}.",
            evidence=(("problems", len(found.problems)),),
            remedy="Tensors without numbers are shown as such. Get the file again from its source.",
        )
    ]


READER = Reader(
    id="torch-tar",
    says="torch.save tar archive (torch 0.1.0 to 0.1.9)",
    suffixes=(".pt", ".pth", ".t7"),
    claims=_claims,
    read=_read,
    no_index="the length of each tensor stands right before its numbers, all through the file",
)
