"""A pickle without torch's frame: Python objects, numpy arrays, or something that only wants to run code."""

from __future__ import annotations

from inspector.checkpoint.types import Checkpoint, Storage
from inspector.findings import Finding, FindingKind, Severity
from inspector.readers.assemble import checkpoint_from_pickle, unpickle
from inspector.readers.checks.contents import trailing_data
from inspector.readers.checks.storage_findings import missing_storages
from inspector.readers.entry import Peek, Reader
from inspector.readers.finish import FileContent
from inspector.readers.unpickle.globals.lists import UNMISTAKABLE
from inspector.readers.unpickle.globals.verdicts import may_exist
from inspector.readers.unpickle.machine.machine import Outcome
from inspector.readers.unpickle.nested.hidden_pickles import (
    Hidden,
    observe_hidden,
    observe_polyglot,
    search_behind,
    search_end,
)
from inspector.units import counted

SEVERAL_PICKLES = FindingKind("several-pickles", Severity.WARNING, "Several pickles in one file")

# Opcodes with which protocols 0 and 1 begin an object; text may begin with the same letters, so it is tried out. The
# later protocols may go without their mark as well.
_FIRST = frozenset(b"(]})cIJKMLNFGSTUVXPBC\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x95\x96")
_TRIAL_NBYTES = 1 << 20
_MOST_STREAMS = 16


def _claims(peek: Peek) -> str:
    source, head, limits = peek.source, peek.head, peek.limits
    if len(head) >= 2 and head[0] == 0x80 and head[1] <= 5:
        return f"a pickle of protocol {head[1]}"
    if not head or head[0] not in _FIRST:
        return ""
    outcome = unpickle(source, 0, source.size, limits.trial(opcodes=100_000, nbytes=_TRIAL_NBYTES)).outcome
    called = any(use.calls for use in outcome.uses.values())
    named = any(f"{use.module}.{use.name}" in UNMISTAKABLE for use in outcome.uses.values())
    # A few letters of text can be a whole pickle ("N."), so a stream without calls must fill the file.
    fills = not outcome.broken and (source.size - outcome.end <= 1) and source.size > 2
    if (
        fills
        and not called
        and not named
        and outcome.protocol < 2
        and not source.name.lower().endswith(READER.suffixes)
    ):
        # "cool\nsystem\n." is a text of two words: nothing of that name is there to import.
        fills = not outcome.uses or any(may_exist(use.module) for use in outcome.uses.values())
    if called or named or fills or (outcome.over_limit and outcome.opcodes > 10_000):
        return "a pickle of protocol 0 or 1" if outcome.protocol < 2 else f"a pickle of protocol {outcome.protocol}"
    return ""


def _read(peek: Peek) -> Checkpoint:
    source, limits = peek.source, peek.limits
    pickle = unpickle(source, 0, source.size, limits, joblib=True)
    at = pickle.outcome.end
    more: list[Outcome] = []
    findings: list[Finding] = []
    while not pickle.outcome.broken and at < source.size and len(more) < _MOST_STREAMS:
        if source.read(at, 1) not in (b"\x80", b"c", b"(", b"]", b"}"):
            break
        following = unpickle(source, at, source.size, limits).outcome
        if following.broken and not following.uses:
            break
        more.append(following)
        at = following.end
        if following.broken:
            break
    if more:
        findings.append(
            SEVERAL_PICKLES.found(
                f"{counted(len(more), 'further pickle')} follow the first; only the first is shown, "
                "the globals of all are listed.",
                evidence=(("pickles", len(more) + 1),),
                remedy="A program that reads on would run those too.",
            )
        )
    hidden = Hidden()
    if not pickle.outcome.broken and at < source.size:
        hidden = search_behind(source, at, source.size, limits, "behind the pickle")
    archive, at_end = search_end(source, limits, after=pickle.outcome.end)
    hidden.add(at_end)
    findings += [*observe_hidden(hidden), *observe_polyglot(archive, READER.says)]
    if not pickle.outcome.broken and at < source.size:
        findings.append(trailing_data(source.size - at, "the pickle", "pickle ignores them."))
    storages = {
        key: Storage(id=key, nbytes=ref.numel, present_nbytes=0, offset=None, device=ref.location or None)
        for key, ref in pickle.storages.items()
    }
    findings += missing_storages(list(storages), "this file: it is the data.pkl out of an archive")
    content = FileContent(format=READER.id, format_says=READER.says, storages=storages, findings=findings)
    return checkpoint_from_pickle(pickle, content, source=source, limits=limits, also=more, hidden=hidden.outcomes)


READER = Reader(
    id="pickle",
    says="Python pickle",
    suffixes=(".pkl", ".pickle", ".p"),
    claims=_claims,
    read=_read,
    no_index="a pickle says what is in it step by step, up to its last byte",
)
