"""What a comparison proves of two files as a whole: the cheap and exact first. A new one is a file and a name here."""

from __future__ import annotations

from inspector.compare.report import Diff, Verdict
from inspector.compare.verdicts import after_cast, grown, only_some, other_names, same
from inspector.compare.verdicts.entry import VerdictEntry

VERDICTS: tuple[VerdictEntry, ...] = (
    same.VERDICT,
    other_names.VERDICT,
    after_cast.VERDICT,
    grown.VERDICT,
    only_some.VERDICT,
)


def find_verdicts(diff: Diff) -> tuple[Verdict, ...]:
    """All that hold, in the order of their entries."""
    return tuple(found for entry in VERDICTS if (found := entry.decide(diff)) is not None)
