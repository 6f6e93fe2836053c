"""Pickles where no loader of the format looks: behind the main one, in members that nothing names, in front of numbers.

A second program may read them, so their names count. A stretch of bytes is taken for a pickle only when it runs to its
STOP, or calls a name before it breaks off; random numbers do not.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from inspector.checkpoint.joined_source import SliceSource
from inspector.checkpoint.source import BufferSource, ByteSource, is_distant
from inspector.checkpoint.types import GlobalVerdict
from inspector.errors import CorruptFile, ReadError
from inspector.findings import Evidence, Finding, FindingKind, Severity
from inspector.limits import Limits
from inspector.readers.archives.zip_directory import Directory, read_directory
from inspector.readers.archives.zip_members import Member, calculated_offsets, payload_offsets
from inspector.readers.unpickle.globals.verdicts import judge
from inspector.readers.unpickle.machine.machine import Outcome, calls_importable
from inspector.readers.unpickle.nested.encoded import LETTERS, SECOND
from inspector.readers.unpickle.unpickling import unpickle
from inspector.units import counted

MEMBERS_NOT_SEARCHED = FindingKind(
    "members-not-searched", Severity.ERROR, "Not all of the file was searched for pickles"
)
HIDDEN_PICKLE = FindingKind(
    "hidden-pickle", Severity.WARNING, "A pickle where no loader of the format looks", also=(Severity.ERROR,)
)
TWO_FORMATS = FindingKind("two-formats", Severity.WARNING, "The file is of two formats at once")
BURIED_PICKLE = FindingKind("buried-pickle", Severity.ERROR, "A pickle lies buried in the file")

_FIRST = frozenset(b"\x80c(]}")
_ZIP = b"PK\x03\x04"
# Whole pickles of nothing, and texts: rare at the head of numbers, and what hides there may begin so.
_TRIVIAL = frozenset((b"N.", b"].", b"}.", b").", b"\x88.", b"\x89."))
_TEXTS = {ord("V"): LETTERS + b"0123456789+/", ord("S"): b"'\"", ord("C"): bytes(range(16, 256))}
# Where a pickle can begin in the middle of a file: its mark, or a module and a name by themselves.
_BURIED = re.compile(rb"\x80[\x02-\x05](?=[\x95\x8cc}\](XKC\x8f])|[ci][A-Za-z_][\w.]{1,60}\n[A-Za-z_][\w.]{0,60}\n")
_BURIED_NBYTES = 1 << 18
_MOST_BURIED = 64
_MOST_PADDING_NBYTES = 4 << 30
_PADDING_NBYTES = 1 << 16
_COMMENT_NBYTES = (1 << 16) + 22
_MOST_BEHIND = 8
_MOST_MEMBERS = 256
_TRIAL_OPCODES = 200_000
# For all trials of one file together.
_MOST_STEPS = 2_000_000
_TRIAL_NBYTES = 4 << 20
_LISTED = 20
_ENDED = f"The search for hidden pickles ended after {_MOST_STEPS:,} steps."


# Name, offset, bytes and first bytes of a storage.
Head = tuple[str, int, int, bytes]


@dataclass(slots=True)
class Hidden:
    """What was found: (where, outcome) each; and what was not looked at, in sentences."""

    found: list[tuple[str, Outcome]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    steps: int = _MOST_STEPS

    @property
    def outcomes(self) -> list[Outcome]:
        """For the globals of the checkpoint."""
        return [outcome for _, outcome in self.found]

    def add(self, other: Hidden) -> None:
        """Take over what another search found."""
        self.found += other.found
        self.left_out += other.left_out

    def try_at(
        self, source: ByteSource, start: int, stop: int, limits: Limits, *, calls: bool, anything: bool = False
    ) -> Outcome | None:
        """The outcome of what stands there, None where it is no pickle.

        calls: whether it must call a name, as bytes that are meant as numbers must; a pickle inside its constants
        counts. anything: whatever its first byte.
        """
        if stop - start < 3 or (not anything and source.read(start, 1)[0] not in _FIRST):
            return None
        if self.steps <= 0:
            if _ENDED not in self.left_out:
                self.left_out.append(_ENDED)
            return None
        head = source.read(start, 2)
        if head[0] == 0x80 and head[1] > 5:
            return None
        trial = limits.trial(opcodes=_TRIAL_OPCODES, nbytes=_TRIAL_NBYTES)
        pickle = unpickle(source, start, stop, trial)
        outcome = pickle.outcome
        self.steps -= outcome.opcodes
        for inner in (outcome, *(found for _, found in (*pickle.inside.outcomes, *pickle.inside.hidden))):
            if calls_importable(inner):
                return _light(inner)
        ended = not outcome.broken or outcome.over_limit
        return _light(outcome) if ended and not calls and (outcome.uses or outcome.end == stop) else None


def _light(outcome: Outcome) -> Outcome:
    """Without the values: only the names count."""
    for use in outcome.uses.values():
        use.holder = None
    return replace(outcome, value=None, nbytes=0)


def observe_hidden(hidden: Hidden) -> list[Finding]:
    """One finding about all of them, and one about what was not looked at."""
    unsearched = [_unsearched(hidden.left_out)] if hidden.left_out else []
    if not hidden.found:
        return unsearched
    names = [f"{use.module}.{use.name}" for _, outcome in hidden.found for use in outcome.uses.values()]
    places = [where for where, _ in hidden.found]
    grave = any(
        judge(use.module, use.name)[0] is GlobalVerdict.DANGEROUS
        for _, outcome in hidden.found
        for use in outcome.uses.values()
    )
    they = "it" if len(places) == 1 else "they"
    called = f"; {they} would import {', '.join(n[:60] for n in dict.fromkeys(names[:3]))}" if names else ""
    return [
        *unsearched,
        HIDDEN_PICKLE.found(
            f"{counted(len(places), 'pickle lies', 'pickles lie')} where no loader of the format looks, first "
            f"{places[0]}{called}. Nothing was run here.",
            severity=Severity.ERROR if grave else Severity.WARNING,
            subjects=tuple(places[:_LISTED]),
            evidence=(
                ("pickles", len(places)),
                *((where[:200], ", ".join(names_of(o))[:500] or "no names") for where, o in hidden.found[:_LISTED]),
            ),
            remedy="A program that reads on, or that loads the member by itself, runs "
            f"{'it' if len(places) == 1 else 'them'}. Do not pass the file on.",
        ),
    ]


def _unsearched(left_out: Sequence[str]) -> Finding:
    return MEMBERS_NOT_SEARCHED.found(
        f"Not all of the file was searched for pickles: {left_out[0][:200]}",
        evidence=(("places", len(left_out)), *((f"place {n}", what[:200]) for n, what in enumerate(left_out[:20], 1))),
        remedy="No ordinary program writes such a file: treat it as made by hand.",
    )


def names_of(outcome: Outcome) -> list[str]:
    """The globals of a pickle as text."""
    return [f"{use.module}.{use.name}" for use in outcome.uses.values()]


def search_behind(source: ByteSource, at: int, stop: int, limits: Limits, what: str) -> Hidden:
    """Pickles and archives from `at` on, also behind padding of one repeated byte."""
    hidden = Hidden()
    for _ in range(_MOST_BEHIND):
        if at >= stop:
            break
        at = _skip_padding(source, at, stop)
        if source.read(at, min(4, stop - at)) == _ZIP:
            _look_into_archive(SliceSource(source, at, stop - at), f"an archive {what} at byte {at:,}", limits, hidden)
            break
        outcome = hidden.try_at(source, at, stop, limits, calls=False)
        if outcome is None:
            break
        hidden.found.append((f"{what} at byte {at:,}", outcome))
        at = outcome.end
    return hidden


def _skip_padding(source: ByteSource, at: int, stop: int) -> int:
    window = source.read(at, min(_PADDING_NBYTES, stop - at))
    if not window or window[0] in _FIRST or window[:4] == _ZIP:
        return at
    left = len(window.lstrip(window[:1]))
    return at + len(window) - left if left else at


def search_members(source: ByteSource, members: Sequence[Member], read: frozenset[str], limits: Limits) -> Hidden:
    """Pickles in members that no storage refers to. read: names of members that are something else, in lower case."""
    hidden = Hidden()
    wanted = [m for m in members if m.name.lower() not in read and m.nbytes > 2]
    if len(wanted) > _MOST_MEMBERS:
        hidden.left_out.append(f"{len(wanted) - _MOST_MEMBERS:,} further members were not searched for pickles.")
    chosen = wanted[:_MOST_MEMBERS]
    for member, offset in zip(chosen, payload_offsets(source, chosen), strict=True):
        try:
            if offset is None:
                raise CorruptFile("its local header is not where the directory says.")
            _look_into(source, member, offset, limits, hidden)
        except ReadError as error:
            # One that cannot be read must not hide the rest.
            hidden.left_out.append(f"{member.name[:80]} could not be searched: {error.says}")
    return hidden


def _look_into(source: ByteSource, member: Member, offset: int, limits: Limits, hidden: Hidden) -> None:
    if member.encrypted and not member.plain:
        raise CorruptFile("it is encrypted.")
    if member.method == 8:
        raw = source.read(offset, min(member.packed_nbytes, _TRIAL_NBYTES, max(0, source.size - offset)))
        try:
            data = zlib.decompressobj(-15).decompress(raw, _TRIAL_NBYTES)
        except zlib.error as error:
            raise CorruptFile(f"it cannot be inflated ({error}).") from error
        outcome = hidden.try_at(BufferSource(data), 0, len(data), limits, calls=False)
        if outcome is not None:
            hidden.found.append((member.name[:200], outcome))
        return
    if member.method != 0:
        raise CorruptFile(f"it is compressed by method {member.method}.")
    stop = min(offset + member.packed_nbytes, source.size)
    if stop - offset > 4 and source.read(offset, 4) == _ZIP:
        _look_into_archive(SliceSource(source, offset, stop - offset), member.name[:200], limits, hidden)
        return
    outcome = hidden.try_at(source, offset, stop, limits, calls=False) if stop > offset else None
    if outcome is not None:
        hidden.found.append((member.name[:200], outcome))


def _look_into_archive(inner: ByteSource, where: str, limits: Limits, hidden: Hidden) -> None:
    try:
        directory = read_directory(inner, limits)
    except ReadError as error:
        hidden.left_out.append(f"{where} could not be searched: {error.says}")
        return
    members = [m for m in directory.members if m.name.lower().endswith(".pkl")][:_MOST_BEHIND]
    for member, offset in zip(members, payload_offsets(inner, members), strict=True):
        stop = min((offset or 0) + member.packed_nbytes, inner.size)
        outcome = hidden.try_at(inner, offset, stop, limits, calls=False) if offset and offset < stop else None
        if outcome is not None:
            hidden.found.append((f"{member.name[:80]} of {where}", outcome))


def search_numbers(source: ByteSource, heads: Iterable[Head], limits: Limits) -> Hidden:
    """Whole pickles with calls at the head of storages. heads: (name, offset, nbytes, first bytes) each."""
    hidden = Hidden()
    for name, offset, nbytes, head in heads:
        if len(head) < 2:
            continue
        stop = min(offset + nbytes, source.size)
        if head in _TRIVIAL and stop > offset:
            # A whole pickle of nothing, which puts a search off what follows it.
            outcome = _buried(SliceSource(source, offset, stop - offset), limits)[1]
        elif head[1] in SECOND.get(head[0], b"") or head[1] in _TEXTS.get(head[0], b""):
            outcome = hidden.try_at(source, offset, stop, limits, calls=True, anything=True)
        else:
            continue
        if outcome is not None:
            hidden.found.append((f"the numbers of {name[:200]}", outcome))
    return hidden


def search_buried(source: ByteSource, limits: Limits) -> tuple[int, list[str]] | None:
    """Where a pickle begins behind the start of a file and calls what can run code, and those names; None when none."""
    start = _padding(source)
    at, outcome = _buried(SliceSource(source, start, source.size - start), limits)
    return (start + at, _called(outcome)) if outcome is not None else None


def _padding(source: ByteSource) -> int:
    """How many bytes at the beginning of a source are one and the same."""
    at, first = 0, source.read(0, min(1, source.size))
    while at < min(source.size, _MOST_PADDING_NBYTES):
        window = source.read(at, min(_BURIED_NBYTES, source.size - at))
        left = len(window.lstrip(first))
        at += len(window) - left
        if left:
            break
    return max(0, at - 1)


def _buried(source: ByteSource, limits: Limits) -> tuple[int, Outcome | None]:
    head = source.read(0, min(source.size, _BURIED_NBYTES))
    for match in itertools.islice(_BURIED.finditer(head), _MOST_BURIED):
        trial = limits.trial(opcodes=_TRIAL_OPCODES, nbytes=_TRIAL_NBYTES)
        outcome = unpickle(source, match.start(), source.size, trial).outcome
        if _called(outcome):
            return match.start(), _light(outcome)
    return 0, None


def _called(outcome: Outcome) -> list[str]:
    """What a pickle calls that can run code."""
    return [
        f"{use.module}.{use.name}"
        for use in outcome.uses.values()
        if use.calls and judge(use.module, use.name)[0] is GlobalVerdict.DANGEROUS
    ]


def search_directory(source: ByteSource, directory: Directory, limits: Limits) -> tuple[int, list[str]] | None:
    """A pickle in what a zip archive says beside its members: comments, and the extra fields of both its headers.

    The byte where it begins, and the names that it calls and that can run code; None when there is none.
    """
    members = list(directory.members[:_MOST_MEMBERS])
    # Across a network, headers that hold no more than torch's padding are not worth a request each.
    torchs = is_distant(source) and calculated_offsets(directory.members, directory.start, members) is not None
    members = [] if torchs else members
    offsets = payload_offsets(source, members)
    spans = [(m.header_offset, offset) for m, offset in zip(members, offsets, strict=True) if offset is not None]
    spans += [(directory.start, source.size), (max(directory.start, source.size - _COMMENT_NBYTES), source.size)]
    for start, stop in spans:
        if 0 <= start < stop <= source.size:
            at, outcome = _buried(SliceSource(source, start, stop - start), limits)
            if outcome is not None:
                return start + at, _called(outcome)
    return None


def search_end(source: ByteSource, limits: Limits, after: int = 0) -> tuple[Directory | None, Hidden]:
    """A zip archive that ends a file of another format: zipfile opens the file as that archive, torch does not.

    after: where the file's own content ends, if an archive inside that is looked into elsewhere.
    """
    hidden = Hidden()
    try:
        directory = read_directory(source, limits)
    except ReadError:
        return None, hidden
    if source.size - directory.trailing_nbytes <= after:
        return None, hidden
    for why, members in (("", directory.members), *directory.rivals):
        for member in [m for m in members if m.name.lower().endswith(".pkl")][:_MOST_BEHIND]:
            (offset,) = payload_offsets(source, [member])
            stop = min((offset or 0) + member.packed_nbytes, source.size)
            outcome = hidden.try_at(source, offset, stop, limits, calls=False) if offset and offset < stop else None
            if outcome is not None:
                hidden.found.append((f"{member.name[:80]} of the archive at its end{why and f', {why}'}", outcome))
    return directory, hidden


def observe_polyglot(directory: Directory | None, what: str) -> list[Finding]:
    """The finding about a file that is also an archive."""
    if directory is None or not directory.members:
        return []
    return [
        two_formats(
            what,
            f"a zip archive of {counted(len(directory.members), 'member')}",
            f", first {directory.members[0].name[:80]}: tools that look at its end open the archive.",
            subjects=tuple(m.name[:200] for m in directory.members[:_LISTED]),
            evidence=(("members", len(directory.members)),),
        )
    ]


def two_formats(shown: str, other: str, how: str, *, evidence: Evidence, subjects: Sequence[str] = ()) -> Finding:
    """The finding about a file that programs open as the one or the other. how: the rest of the sentence."""
    return TWO_FORMATS.found(
        f"The file is {shown} and {other} at once{how}",
        subjects=subjects,
        evidence=evidence,
        remedy="No ordinary program writes such a file; do not trust another tool's scan of it.",
    )


def buried_pickle(found: tuple[int, list[str]], place: str, then: str = "", *, remedy: str) -> Finding:
    """The finding about a pickle that something else goes before. place: the file, or a part of it."""
    at, names = found
    return BURIED_PICKLE.found(
        f"A pickle begins at byte {at:,} of {place} and would import "
        f"{', '.join(name[:80] for name in names[:3])}{then}.",
        subjects=tuple(name[:200] for name in names[:_LISTED]),
        evidence=(("byte", at),),
        remedy=remedy,
    )
