"""Pickles inside a pickle: a tensor's own torch.save file in a plain pickle, and what hides in bytes constants.

`pickle.dump` of a tensor writes its storage as `torch.storage._load_from_bytes(<a whole torch.save file>)`. That file
is parsed where it lies, by the same rules as any other, and the tensor reads its numbers from there. Other constants
that are pickles themselves (arguments of `pickle.loads`, cloudpickle, base64 text) are followed for the names they
would import. Every byte is looked at once per level, and levels are few.
Source: torch/storage.py, TypedStorage.__reduce__ and _load_from_bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from inspector.checkpoint.joined_source import SliceSource
from inspector.checkpoint.source import BufferSource, ByteSource
from inspector.checkpoint.types import GlobalUse, GlobalVerdict, Storage
from inspector.errors import LimitExceeded, ReadError
from inspector.findings import Finding, FindingKind, Severity
from inspector.limits import Limits
from inspector.readers.archives.zip_directory import find_member, read_directory
from inspector.readers.archives.zip_members import payload_offsets
from inspector.readers.unpickle.globals.verdicts import judge
from inspector.readers.unpickle.machine.machine import Outcome, calls_importable, importable_names
from inspector.readers.unpickle.nested.encoded import _BASE64 as _BASE64
from inspector.readers.unpickle.nested.encoded import LONG, begins_as_pickle, decodings, may_hide_pickle, unpacked
from inspector.readers.unpickle.stand_ins import NOT_UNDERSTOOD, BytesAt, Mapping, StorageRef
from inspector.units import counted

PICKLE_IN_CONSTANT = FindingKind(
    "pickle-in-constant", Severity.NOTICE, "A pickle inside a constant", also=(Severity.WARNING, Severity.ERROR)
)
CONSTANTS_LEFT_OUT = FindingKind(
    "constants-left-out", Severity.WARNING, "Constants that may be pickles were not looked into"
)

LOADER = "torch.storage._load_from_bytes"
MOST_LEVELS = 4
_MAGIC = (0x1950A86A20F9469CFC6C).to_bytes(10, "little")
_MOST_FILES = 20_000
_LEAST_NBYTES = 64
_PRELUDE_NBYTES = 4096  # torch writes 160.
_DECODED_NBYTES = 1 << 20
_LOADERS = frozenset(
    {
        "pickle",
        "_pickle",
        "dill",
        "cloudpickle",
        "joblib",
        "base64",
        "binascii",
        "zlib",
        "gzip",
        "bz2",
        "lzma",
        "codecs",
        "_codecs",
        "marshal",
    }
)


@dataclass(slots=True, kw_only=True)
class Inside:
    """What was found inside the constants of one pickle.

    outcomes: (where, outcome) of every pickle that loading this one loads too. hidden: of every other one.
    storages: of the torch.save files among them, by id. left_out: constants that were not looked into.
    files: how many files were tried; followed: how many of them whole.
    """

    outcomes: list[tuple[str, Outcome]] = field(default_factory=list)
    hidden: list[tuple[str, Outcome]] = field(default_factory=list)
    storages: dict[str, Storage] = field(default_factory=dict)
    left_out: int = 0
    files: int = 0
    followed: int = 0

    def add(self, deeper: Inside) -> None:
        """Take over what was found further inside."""
        self.outcomes += deeper.outcomes
        self.hidden += deeper.hidden
        self.left_out += deeper.left_out
        self.storages.update(deeper.storages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Bytes to look into: start .. stop of a source. inline: they are in memory and not in the file.

    spelled: they are what a text or compressed bytes stand for.
    """

    source: ByteSource
    start: int
    stop: int
    inline: bytes | None = None
    spelled: bool = False

    @property
    def place(self) -> str:
        """For people."""
        if self.spelled:
            return "an encoded constant"
        return "a bytes constant" if self.inline is not None else f"the bytes constant at byte {self.start:,}"


@dataclass(slots=True, kw_only=True)
class Followed:
    """One pickle of a stretch. storages: by key as written; their refs carry the prefix."""

    outcome: Outcome
    storages: dict[str, StorageRef]


# Follows one pickle of a stretch from a byte on; storages get the prefix.
Follow = Callable[[Stretch, int, str], Followed]


class Loader:
    """What stands for torch.storage._load_from_bytes while one pickle is followed."""

    def __init__(
        self, source: ByteSource, limits: Limits, inside: Inside, follow: Follow, *, in_file: bool, prefix: str
    ) -> None:
        self.source = source
        self.limits = limits
        self.inside = inside
        self.follow = follow
        self.in_file = in_file
        self.prefix = prefix
        self.suspects: list[tuple[object, str]] = []
        self.seen: set[object] = set()
        self.kept: list[object] = []
        self.known = b"", False

    def __call__(self, args: tuple[object, ...]) -> object:
        """The object in the file, or NOT_UNDERSTOOD when it is no whole torch.save file."""
        data = args[0] if len(args) == 1 else None
        stretch = self.stretch(data)
        if stretch is None or self.inside.files >= _MOST_FILES:
            return NOT_UNDERSTOOD
        self.inside.files += 1
        prefix = f"{self.prefix}nested {self.inside.files}/"
        try:
            head = stretch.source.read(stretch.start, min(32, stretch.stop - stretch.start))
            if head[:4] == b"PK\x03\x04":
                found = self.archive(stretch, prefix)
            elif head[:1] == b"\x80" and _MAGIC in head:
                found = self.stack(stretch, prefix)
            else:
                return NOT_UNDERSTOOD
        except ReadError:
            return NOT_UNDERSTOOD
        if found is None:
            return NOT_UNDERSTOOD
        self.inside.followed += 1
        if self.suspects and self.suspects[-1][0] is data:
            self.suspects.pop()
        return found.outcome.value

    def stretch(self, data: object) -> Stretch | None:
        """Where a constant lies, None for what is none, too short, or was looked into before."""
        if isinstance(data, BytesAt) and self.in_file:
            key: object = (data.offset, data.nbytes)
            made = Stretch(source=self.source, start=data.offset, stop=data.offset + data.nbytes)
        elif isinstance(data, bytes):
            key = id(data)
            self.kept.append(data)  # An id is only good as long as its object lives.
            made = Stretch(source=BufferSource(data), start=0, stop=len(data), inline=data)
        else:
            return None
        if key in self.seen or made.stop - made.start < _LEAST_NBYTES:
            return None
        self.seen.add(key)
        return made

    def run(self, stretch: Stretch, at: int, prefix: str) -> Followed:
        found = self.follow(stretch, at, prefix)
        self.inside.outcomes.append((stretch.place, found.outcome))
        return found

    def stack(self, stretch: Stretch, prefix: str) -> Followed | None:
        """The five pickles and the storages of torch.save before 1.6."""
        found = self.prelude(stretch, prefix)
        if found is None:
            return None
        at, big_endian = found
        runs: list[Followed] = []
        for _ in range(2):
            runs.append(self.run(stretch, at, prefix))
            if runs[-1].outcome.broken:
                return None
            at = runs[-1].outcome.end
        main, keys = runs[0], runs[1].outcome.value
        if not isinstance(keys, list):
            return None
        placed: dict[str, Storage] = {}
        for key in keys:
            ref = main.storages.get(str(key)) if type(key) in (str, int) else None
            if ref is None or at + 8 > stretch.stop:
                return None
            count = int.from_bytes(stretch.source.read(at, 8), "big" if big_endian else "little", signed=True)
            if count != ref.numel or at + 8 + ref.nbytes > stretch.stop:
                return None
            placed[ref.key] = self.storage(stretch, ref, at + 8, big_endian)
            at += 8 + ref.nbytes
        return self.settled(main, placed)

    def prelude(self, stretch: Stretch, prefix: str) -> tuple[int, bool] | None:
        """Where the first three pickles end, and whether they announce a big-endian file; None where they break off.

        A plain pickle has one such file for every tensor, and in all of them these three are the same bytes, naming
        nothing: they are followed once.
        """
        raw, big_endian = self.known
        if raw and stretch.source.read(stretch.start, min(len(raw), stretch.stop - stretch.start)) == raw:
            return stretch.start + len(raw), big_endian
        at, outcomes = stretch.start, []
        for _ in range(3):
            outcomes.append(self.run(stretch, at, prefix).outcome)
            if outcomes[-1].broken:
                return None
            at = outcomes[-1].end
        info = outcomes[2].value
        big_endian = isinstance(info, Mapping) and info.get("little_endian") is False
        if at - stretch.start <= _PRELUDE_NBYTES and not any(outcome.uses for outcome in outcomes):
            self.known = stretch.source.read(stretch.start, at - stretch.start), big_endian
        return at, big_endian

    def archive(self, stretch: Stretch, prefix: str, *, keep: bool = True) -> Followed | None:
        """A torch.save zip, stored as torch stores it. keep: somebody has its tensors."""
        file = SliceSource(stretch.source, stretch.start, stretch.stop - stretch.start)
        directory = read_directory(file, self.limits)
        stem = directory.members[0].name.partition("/")[0] if directory.members else ""
        main = find_member(directory, f"{stem}/data.pkl")
        if main is None or directory.doubts or main.method != 0 or main.encrypted:
            return None
        if find_member(directory, f"{stem}/constants.pkl") is not None:
            return None  # TorchScript: torch.load hands it to torch.jit.load, which runs its code.
        (offset,) = payload_offsets(file, [main])
        if offset is None:
            return None
        found = self.run(stretch, stretch.start + offset, prefix)
        order = find_member(directory, f"{stem}/byteorder")
        (order_at,) = payload_offsets(file, [order]) if order is not None else (None,)
        big_endian = order_at is not None and file.read(order_at, min(3, file.size - order_at)) == b"big"
        if found.outcome.broken or not keep:
            return None
        placed: dict[str, Storage] = {}
        for key, ref in found.storages.items():
            member = find_member(directory, f"{stem}/data/{key}")
            if member is None or member.method != 0 or member.nbytes != ref.nbytes:
                return None
            (at,) = payload_offsets(file, [member])
            if at is None or at + ref.nbytes > file.size:
                return None
            placed[ref.key] = self.storage(stretch, ref, stretch.start + at, big_endian)
        return self.settled(found, placed)

    def settled(self, found: Followed, placed: dict[str, Storage]) -> Followed | None:
        if any(ref.key not in placed for ref in found.storages.values()):
            return None
        self.inside.storages.update(placed)
        return found

    def storage(self, stretch: Stretch, ref: StorageRef, at: int, big_endian: bool) -> Storage:
        inline = None
        if stretch.inline is not None:
            self.limits.charge(ref.nbytes, "A tensor inside a pickle")
            inline = stretch.inline[at : at + ref.nbytes]
        return Storage(
            id=ref.key,
            nbytes=ref.nbytes,
            present_nbytes=ref.nbytes,
            offset=at if inline is None else None,
            device=ref.location or None,
            big_endian=big_endian,
            inline=inline,
        )


def look_into(loader: Loader, suspects: list[tuple[object, str]], inside: Inside) -> None:
    """Follow every constant that is a pickle but was not loaded by a known call.

    suspects: (constant, name of the function it was handed to, "" for none).
    """
    wanted: dict[int, tuple[object, bool]] = {}
    for constant, callee in suspects:
        known = wanted.get(id(constant), (constant, False))
        wanted[id(constant)] = (constant, known[1] or callee.partition(".")[0] in _LOADERS or callee == LOADER)
    for constant, eager in wanted.values():
        for stretch in _candidates(loader, constant, eager):
            try:
                _follow_all(loader, stretch, eager)
            except LimitExceeded:
                inside.left_out += 1
            except ReadError:
                continue  # It began like an archive and is none.


def _candidates(loader: Loader, constant: object, eager: bool) -> Iterator[Stretch]:
    """The stretches of bytes that a constant stands for: itself, decoded, unpacked."""
    if isinstance(constant, str):
        yield from map(_spelled, decodings(constant))
        if eager or may_hide_pickle(constant[:LONG].encode("latin-1", "replace")):
            yield _inline(constant.encode("latin-1", "replace"))
    elif isinstance(constant, bytes):
        yield _inline(constant)
        yield from _from_bytes(constant[:_DECODED_NBYTES])
    elif isinstance(constant, BytesAt) and loader.in_file:
        yield Stretch(source=loader.source, start=constant.offset, stop=constant.offset + constant.nbytes)
        yield from _from_bytes(loader.source.read(constant.offset, min(constant.nbytes, _DECODED_NBYTES)))


def _from_bytes(raw: bytes) -> Iterator[Stretch]:
    """What is compressed in bytes, or spelled by them."""
    inner = unpacked(raw)
    if inner is not None:
        yield _spelled(inner)
        raw = inner
    if raw[:LONG].isascii():
        yield from map(_spelled, decodings(raw.decode("latin-1")))


def _inline(raw: bytes) -> Stretch:
    return Stretch(source=BufferSource(raw), start=0, stop=len(raw), inline=raw)


def _spelled(raw: bytes) -> Stretch:
    return Stretch(source=BufferSource(raw), start=0, stop=len(raw), inline=raw, spelled=True)


def _names_danger(outcome: Outcome) -> bool:
    return any(judge(module, name)[0] is GlobalVerdict.DANGEROUS for module, name in importable_names(outcome))


def _follow_all(loader: Loader, stretch: Stretch, eager: bool) -> None:
    """The pickles of a stretch, one behind the other, as torch's old files and careless loaders have them."""
    at, number = stretch.start, 0
    head = stretch.source.read(at, min(4, stretch.stop - at))
    if head == b"PK\x03\x04":
        before = len(loader.inside.outcomes)
        loader.archive(stretch, "hidden/", keep=False)
        loader.inside.hidden += loader.inside.outcomes[before:]
        del loader.inside.outcomes[before:]
        return
    while at < stretch.stop and number < 5:
        head = stretch.source.read(at, min(2, stretch.stop - at))
        announced = len(head) == 2 and head[0] == 0x80 and head[1] <= 5
        if not announced and not ((eager or begins_as_pickle(head)) and number == 0):
            return
        found = loader.follow(stretch, at, "hidden/").outcome
        # Numbers may begin like a pickle; what names nothing and leads nowhere is none. Text may begin like one that
        # announces nothing: it has to call something.
        if not found.uses and (found.broken or number == 0):
            return
        # Bytes that break off and call nothing are bytes, unless a dangerous name stands in them.
        if found.broken and not calls_importable(found) and not _names_danger(found):
            return
        if not announced and not eager and not calls_importable(found):
            return
        loader.inside.hidden.append((stretch.place, found))
        if found.broken:
            return
        at, number = found.end, number + 1


def observe_inside(inside: Inside, hidden: Sequence[GlobalUse]) -> list[Finding]:
    """Pickles in constants that nothing known loads, and constants that were too many to look into."""
    found: list[Finding] = []
    if inside.hidden:
        places = list(dict.fromkeys(where for where, _ in inside.hidden))
        more = f" and {len(places) - 1:,} more" if len(places) > 1 else ""
        bad = [u for u in hidden if u.verdict is not GlobalVerdict.KNOWN]
        worst = any(u.verdict is GlobalVerdict.DANGEROUS for u in bad)
        named = f" It would import {', '.join(u.name[:80] for u in bad[:3])}." if bad else ""
        found.append(
            PICKLE_IN_CONSTANT.found(
                f"There is another pickle inside {places[0]}{more}; whoever loads that runs it as well.{named}",
                severity=Severity.ERROR if worst else Severity.WARNING if bad else Severity.NOTICE,
                subjects=tuple(u.name[:200] for u in bad[:20]),
                evidence=(("pickles", len(inside.hidden)),),
                remedy="Nothing was run here. The names are listed with the others.",
            )
        )
    if inside.left_out:
        found.append(
            CONSTANTS_LEFT_OUT.found(
                f"{counted(inside.left_out, 'constant')} may be pickles too and were not looked into.",
                evidence=(("constants", inside.left_out),),
                remedy="No ordinary program writes so many, or nests them so deep: treat the file as made by hand.",
            )
        )
    return found
