"""What a comparison proves of two files as a whole: the cheap and exact first. A new one is a file and a name here."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.compare.report import Diff, Verdict
from inspector.compare.verdicts import after_cast, grown, only_some, other_names, same, transposed
from inspector.compare.verdicts.entry import VerdictEntry

VERDICTS: tuple[VerdictEntry, ...] = (
    same.VERDICT,
    other_names.VERDICT,
    after_cast.VERDICT,
    transposed.VERDICT,
    grown.VERDICT,
    only_some.VERDICT,
)


def find_verdicts(diff: Diff) -> tuple[tuple[Verdict, ...], tuple[str, ...]]:
    """(all that hold, in the order of their entries; sentences about tests that failed)."""
    found: list[Verdict] = []
    failed: list[str] = []
    for entry in VERDICTS:
        try:
            verdict = entry.decide(diff)
        except Exception as error:  # noqa: BLE001 - files are hostile: one test that breaks must not end the comparison
            failed.append(broken(entry.title, error))
            continue
        if verdict is not None:
            found.append(verdict)
    return tuple(found), tuple(failed)


def broken(title: str, error: Exception) -> str:
    """The sentence for a test that broke off."""
    return f"Whether it is “{title}”: the test broke off ({type(error).__name__}: {str(error)[:200]})."


def settles(verdicts: Iterable[Verdict]) -> bool:
    """Whether one of them leaves nothing about the numbers to be explained."""
    final = {entry.id for entry in VERDICTS if entry.settles}
    return any(verdict.id in final for verdict in verdicts)
