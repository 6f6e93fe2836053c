"""What the looks at doubtful placings share: the answers, and what links did to the names."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.checkpoint.bookkeeping import BOOKKEEPING
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS
from inspector.keys.placing.tree import Leaf, Path, exchanged
from inspector.keys.report import Ambiguity
from inspector.keys.rules.entry import Link, Renames, Rule

MIX, AS_PLACED, LEAVE_OUT = "mix", "as-placed", "leave-out"

SAME_OR_OUT = ((AS_PLACED, "yes, the same under another name"), (LEAVE_OUT, "no, or not known: leave them out"))

# What is doubted, the question, and its place.
Doubt = tuple[list[Link], Ambiguity, str]


def decide(answer: str | None, doubted: Sequence[Link], kept: list[Link], held: list[Leaf]) -> list[Link]:
    """What is kept after the answer. held: is added to where there is none yet."""
    if answer in (MIX, AS_PLACED):
        return kept
    if answer is None:
        held += [link.source for link in doubted]
    away = {link.source.name for link in doubted}
    return [link for link in kept if link.source.name not in away]


def unwrapped(path: Path, wrappers: frozenset[str] = WRAPPER_SEGMENTS) -> Path:
    return tuple(segment for segment in path if segment not in wrappers)


def weights_of(links: Sequence[Link]) -> list[Link]:
    return [link for link in links if link.source.name.rpartition(".")[2] not in BOOKKEEPING]


def module_of(leaf: Leaf) -> Path:
    return tuple(leaf.name.split(".")[:-1])


def exchange_of(link: Link) -> tuple[Path, Path]:
    """What stands before the shared end of both modules."""
    ours, theirs = link.source.name.rpartition(".")[0], link.target.name.rpartition(".")[0]
    # The module of a tensor at the top has no name, which is no segment either.
    return exchanged(ours, theirs) if ours and theirs else (module_of(link.source), module_of(link.target))


def of_levels(rules: Sequence[Rule]) -> frozenset[str]:
    """Ids of the rules that take levels off or put them in."""
    return frozenset(rule.id for rule in rules if rule.renames is Renames.LEVELS)


def by_levels(link: Link, levels: frozenset[str]) -> bool:
    """Whether levels of the names were taken off or put in, and nothing else done to them."""
    return bool(link.moves) and all(move.rule in levels for move in link.moves)


def is_within(short: Path, long: Path) -> bool:
    """Whether short is long with segments left out."""
    rest = iter(long)
    return all(segment in rest for segment in short)
