"""Which findings a check can make, and how they are named by whoever selects or ignores them."""

from __future__ import annotations

import difflib
import fnmatch
import importlib
import pkgutil
from collections.abc import Collection, Iterable
from functools import cache

from inspector.errors import UsageError
from inspector.findings import FindingKind
from inspector.health.checks import CHECKS
from inspector.health.spectrum_findings import SPECTRUM_KINDS
from inspector.lint.numbers import NUMBERS_LEFT, NUMBERS_UNREAD, PASSED_OVER
from inspector.survey.kinds import UNREAD

_PARTS = ("readers", "survey", "health", "lint")
#: They stay in force whatever is selected: a file that was not looked at may hold what is selected.
ALWAYS = frozenset(kind.id for kind in (*UNREAD, NUMBERS_UNREAD))
#: What only the numbers tell.
OF_NUMBERS = frozenset(kind.id for check in CHECKS for kind in check.kinds) | {
    *(NUMBERS_LEFT.id, NUMBERS_UNREAD.id, PASSED_OVER.id),
    *(kind.id for kind in SPECTRUM_KINDS),
}
#: What only the singular values tell.
OF_SPECTRA = frozenset(kind.id for kind in SPECTRUM_KINDS)


@cache
def checked_kinds() -> tuple[FindingKind, ...]:
    """Every kind of finding that a check can make, by id. Imports all readers, and no torch."""
    found: dict[str, FindingKind] = {}
    for part in _PARTS:
        package = importlib.import_module(f"inspector.{part}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, FindingKind):
                    found[value.id] = value
    return tuple(found[ident] for ident in sorted(found))


def find_ids(patterns: Iterable[str], option: str) -> frozenset[str]:
    """The ids that are meant: by whole ids, beginnings up to a hyphen, or patterns with *.

    option: where they were written, for the sentence. Raises UsageError for one that means nothing.
    """
    wanted, chosen = tuple(patterns), set[str]()
    # Where nothing is named, no reader is imported for its names.
    ids = [kind.id for kind in checked_kinds()] if wanted else []
    for pattern in wanted:
        matching = {ident for ident in ids if _matches(ident, pattern)}
        if not matching:
            raise UsageError(f'{option}: no finding is called "{pattern[:80]}".', hint=_nearest(pattern, ids))
        chosen |= matching
    return frozenset(chosen)


def with_explaining(ids: frozenset[str]) -> frozenset[str]:
    """With the kinds that are said in place of one of them."""
    return ids | {kind.id for kind in checked_kinds() if ids.intersection(kind.explains)}


def _matches(ident: str, pattern: str) -> bool:
    if "*" in pattern:
        return fnmatch.fnmatchcase(ident, pattern.replace("[", "[[]").replace("?", "[?]"))
    return ident == pattern or ident.startswith(f"{pattern.rstrip('-')}-")


def _nearest(pattern: str, ids: Collection[str]) -> str:
    near = difflib.get_close_matches(pattern[:80], ids, n=1, cutoff=0.5)
    return f"Did you mean {near[0]}?" if near else "docs/findings.md lists all of them."
