"""Matrices below each other in one, or apart: what the rules for attentions and for gated layers share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from inspector.keys.placing.roles import split_name
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link

_LEAVES = ("weight", "bias")


@dataclass(frozen=True, slots=True)
class Form:
    """parts: the modules' names when they are apart, the upper one first. wholes: what may stand before weight or bias
    when they are one."""

    parts: tuple[str, ...]
    wholes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Set:
    """All parts of one form, of equal shapes. parent: the module around them."""

    parent: str
    leaf: str
    form: Form
    parts: tuple[Leaf, ...]

    def whole(self, parent: str | None, there: Mapping[str, Leaf]) -> Leaf | None:
        """The one tensor under this parent that has as many rows as all parts; None for none or several."""
        if parent is None:
            return None
        start = f"{parent}." if parent else ""
        rows, *rest = self.parts[0].shape or ()
        shape = (len(self.parts) * rows, *rest)
        found = [there.get(f"{start}{whole}{self.leaf}") for whole in self.form.wholes]
        fitting = [leaf for leaf in found if leaf is not None and leaf.shape == shape]
        return fitting[0] if len(fitting) == 1 else None


def places_of(settled: Sequence[Link]) -> dict[str, str]:
    """Where the modules of the file went, by what was placed below them; None of two minds are left out."""
    found: dict[str, str] = {}
    torn: set[str] = set()
    known: set[tuple[str, str]] = set()
    for link in settled:
        ours, theirs = link.source.name, link.target.name
        inside = True
        while inside:
            ours, our_dot, our_last = ours.rpartition(".")
            theirs, their_dot, their_last = theirs.rpartition(".")
            # What stands above a pair of modules is seen once, with the first tensor below them.
            if our_last != their_last or (ours, theirs) in known:
                break
            known.add((ours, theirs))
            if found.setdefault(ours, theirs) != theirs:
                torn.add(ours)
            inside = bool(our_dot and their_dot)
    return {ours: theirs for ours, theirs in found.items() if ours not in torn}


def stack(left: Leftovers, forms: Sequence[Form], *, rule: str, reason: str) -> Iterator[Step]:
    """Parts of the file joined for a whole of the target, and wholes of the file taken apart for its parts."""
    ours, theirs = {leaf.name: leaf for leaf in left.extra}, {leaf.name: leaf for leaf in left.missing}
    our_sets, their_sets = list(_sets(ours, forms)), list(_sets(theirs, forms))
    if not our_sets and not their_sets:
        return
    places = places_of(left.settled)
    back = {theirs: ours for ours, theirs in places.items()}

    def step(
        kind: StepKind, source: Leaf, place: Leaf, more: tuple[str, ...] = (), rows: tuple[int, int] = (0, 0)
    ) -> Step:
        return Step(
            kind=kind,
            source=source.name,
            target=place.name,
            rule=rule,
            reason=reason,
            cost=Cost.LOSSLESS,
            evidence=Evidence.RULE,
            shape=place.shape,
            more=more,
            rows=rows,
        )

    for apart in our_sets:
        whole = apart.whole(places.get(apart.parent), theirs)
        if whole is not None and left.proves_rows(*apart.parts):
            yield step(StepKind.MERGE, apart.parts[0], whole, tuple(part.name for part in apart.parts[1:]))
    for apart in their_sets:
        whole = apart.whole(back.get(apart.parent), ours)
        if whole is not None and left.proves_rows(whole):
            rows = (apart.parts[0].shape or (0,))[0]
            for i, part in enumerate(apart.parts):
                yield step(StepKind.SPLIT, whole, part, rows=(i * rows, (i + 1) * rows))


def _sets(leaves: Mapping[str, Leaf], forms: Sequence[Form]) -> Iterator[_Set]:
    for name in leaves:
        module, leaf = split_name(name)
        parent, first = split_name(module)
        start = f"{parent}." if parent else ""
        for form in forms:
            if leaf in _LEAVES and first == form.parts[0]:
                found = [leaves.get(f"{start}{part}.{leaf}") for part in form.parts]
                parts = tuple(part for part in found if part is not None)
                equal = len({part.shape for part in parts}) == 1
                if len(parts) == len(found) and equal and all((parts[0].shape or (0,))[:1]):
                    yield _Set(parent, leaf, form, parts)
