"""What other loaders make of a file that one reader has claimed: files that are two formats at once.

torch.load looks for a zip, then for a tar, then for a pickle, whatever the file is called; zipfile looks at the end. A
file can be made so that each of them reads another content, and then the names that any of them would import count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from inspector.checkpoint.types import Checkpoint, GlobalUse, Reach
from inspector.errors import ReadError
from inspector.findings import Finding
from inspector.readers.archives.tar_directory import is_tar
from inspector.readers.assemble import uses_of
from inspector.readers.checks.observations import observe_globals
from inspector.readers.entry import Peek, Reader
from inspector.readers.finish import with_findings
from inspector.readers.polyglot import PICKLES, unlooked_end
from inspector.readers.unpickle.machine.machine import Outcome, calls_importable
from inspector.readers.unpickle.machine.opcodes import OPCODES
from inspector.readers.unpickle.nested.hidden_pickles import observe_hidden, observe_polyglot, search_end, two_formats
from inspector.readers.unpickle.unpickling import unpickle

_TRIAL_OPCODES = 100_000
_TRIAL_NBYTES = 4 << 20


def look_otherwise(checkpoint: Checkpoint, peek: Peek, reader: Reader) -> Checkpoint:
    """The checkpoint with a finding and the names for each other format that the same bytes are. Raises nothing."""
    found: list[Finding] = []
    uses: list[GlobalUse] = []
    for other in _torch_readers(peek):
        made = _read_as(other, peek, reader)
        if made is not None:
            found.append(_two_formats(reader.says, other.says, "torch.load opens it as that"))
            uses += [replace(use, place=f"(as {other.says}) {use.place}".strip()[:500]) for use in made.globals]
    if not found and is_tar(peek.head) and reader.id not in ("torch-tar", "packed"):
        found.append(_two_formats(reader.says, "tar archive", "programs that unpack archives find other files in it"))
    if reader.id not in PICKLES:
        outcome = _as_pickle(peek)
        if outcome is not None:
            found.append(
                _two_formats(reader.says, "pickle", "torch.load and pickle.load follow it from its first byte")
            )
            uses += uses_of([("the file read as a pickle", outcome)], read=True)
    if reader.id not in PICKLES and not peek.is_zip and not unlooked_end(peek, reader):
        # The last file in a tar may well be a zip; one behind the tar's own end is another thing.
        after = max((m.offset + m.nbytes for m in peek.tar.members), default=0) if peek.tar is not None else 0
        directory, hidden = search_end(peek.source, peek.limits, after)
        found += [*observe_hidden(hidden), *observe_polyglot(directory, reader.says)]
        uses += uses_of(hidden.found, read=False)
    if not found:
        return checkpoint
    known = {use.name for use in checkpoint.globals}
    new = {use.name: use for use in reversed(uses) if use.name not in known}
    merged = sorted((*checkpoint.globals, *new.values()), key=lambda use: _RANKS.index(use.verdict.value))
    found += observe_globals([use for use in new.values() if use.reach is not Reach.LEAVES])
    return with_findings(replace(checkpoint, globals=tuple(merged)), found)


def _torch_readers(peek: Peek) -> Iterator[Reader]:
    """The readers of torch.save's archives, as far as the first bytes allow them."""
    if is_tar(peek.head):
        from inspector.readers.formats import torch_tar

        yield torch_tar.READER
    if peek.is_zip:
        from inspector.readers.formats import torch_zip

        yield torch_zip.READER


_RANKS = ("dangerous", "unknown", "known")


def _read_as(other: Reader, peek: Peek, reader: Reader) -> Checkpoint | None:
    """The file as another reader has it, None when it is none of its own. Archives of torch are one kind."""
    if other.id == reader.id or (other.id == "torch-zip" and reader.id in ("torchscript", "torch-package")):
        return None
    try:
        if (peek.is_zip and peek.directory is None) or not other.claims(peek):
            return None
        return other.read(peek)
    except ReadError:
        return None


def _as_pickle(peek: Peek) -> Outcome | None:
    """What a pickle at the head of the file calls, None when it calls nothing that can be imported."""
    if not peek.head or peek.head[0] not in OPCODES or peek.head[:1] == b"P":
        # "PK" would be a persistent id: pickle.load ends there, and so does torch.load's first look at a legacy file.
        return None
    trial = peek.limits.trial(opcodes=_TRIAL_OPCODES, nbytes=_TRIAL_NBYTES)
    outcome = unpickle(peek.source, 0, peek.source.size, trial).outcome
    return outcome if calls_importable(outcome) else None


def _two_formats(shown: str, other: str, why: str) -> Finding:
    how = f": {why}. Shown is the first; the names of both are listed."
    return two_formats(shown, other, how, evidence=(("shown", shown), ("also", other)))
