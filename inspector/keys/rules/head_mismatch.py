"""A last layer for another number of classes.

The file's head is of no use then: it is left out and the target's stays at the model's initial value, to be trained.
It is never padded or cut, which would load and mean nothing. A head that has another name as well is known by being
the only module left over on both sides, and called a head on both. A table of positions or words is no head.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from inspector.keys.placing.layouts import Voucher, voucher_of
from inspector.keys.placing.roles import split_name
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link, Rule
from inspector.units import human_shape

# A table of relative positions also has rows of its own number, and is no layer.
_LEAVES = ("weight", "bias")
_HEAD = re.compile(
    r"(^|[._])(heads?|fc|classif[a-z]*|cls|logits|score|pred[a-z]*|last|linear|out|output|final)([._]?[0-9a-z]*)([._]|$)"
)
# Tables of words or positions, by what people call them.
_TABLE = re.compile(
    r"(^|[._])(pos|positions?|words?|tokens?|vocab|emb|embed[a-z]*|wte|wpe|time|types?|segments?)([._]|$)"
)
# An inception net has two heads, a detector with masks three. A row of them (of a detector's levels) is one.
_MOST_HEADS = 3


def is_called_head(leaf: Leaf) -> bool:
    """Whether its module's name is one of a head."""
    return _HEAD.search(split_name(leaf.name)[0]) is not None


def _heads(left: Leftovers) -> list[Link]:
    candidates = [link for link in left.reshaped if _only_rows_differ(link)]
    if left.target.heads:
        return [link for link in candidates if link.target.name in left.target.heads]
    # Without the architecture's own word for it: few modules, whole, all from the same old to the same new count (a
    # detector's for each of its boxes), and no other shape that differs for another reason.
    candidates = [link for link in candidates if split_name(link.target.name)[1] in _LEAVES]
    counts = {(_rows(link.source.shape), _rows(link.target.shape)) for link in candidates}
    ratios = {_ratio(link) for link in candidates}
    modules = {split_name(link.target.name)[0] for link in candidates}
    rows_of_heads = {re.sub(r"\.[0-9]+$", ".#", module) for module in modules}
    beside = len({split_name(module)[0] for module in modules}) == 1
    matrices = [link for link in candidates if len(link.target.shape or ()) >= 2]
    if len(ratios if beside else counts) != 1 or len(rows_of_heads) > _MOST_HEADS or len(matrices) < len(modules):
        return []
    # A network whose table has other rows is of another vocabulary or length, its tied output layer with it.
    if any(_is_table(link, left) for link in matrices):
        return []
    return candidates


def _is_table(link: Link, left: Leftovers) -> bool:
    """Whether rows are looked up in it: by its name, or a matrix alone that neither is last nor is called a head."""
    module = split_name(link.target.name)[0]
    if any(t.name == f"{module}.bias" for t in left.target.tensors):
        return False  # nothing is added to what is looked up, whatever it is called
    if voucher_of(link.source, link.target) is Voucher.EMBEDDING:
        return True
    if _HEAD.search(module):
        return False
    last = next((t.name for t in reversed(left.target.tensors) if len(t.shape or ()) > 1), "")
    return _TABLE.search(module) is not None or link.target.name != last


def _renamed(left: Leftovers) -> list[tuple[Leaf, Leaf]]:
    """(tensor, place) of a head of another name and count: all that is left over, and one module on either side."""
    ours, theirs = _modules(left.extra), _modules(left.missing)
    if len(ours) != 1 or len(theirs) != 1 or left.reshaped:
        return []
    ((source, mine),), ((target, wanted),) = ours.items(), theirs.items()
    known = not left.target.heads or any(place.name in left.target.heads for place in wanted.values())
    if not (known and mine.keys() == wanted.keys() <= {*_LEAVES} and "weight" in wanted):
        return []
    if not (_HEAD.search(source) and _HEAD.search(target)) or len(wanted["weight"].shape or ()) < 2:
        return []
    pairs = [(leaf, wanted[last]) for last, leaf in mine.items()]
    counts = {(_rows(leaf.shape), _rows(place.shape)) for leaf, place in pairs}
    alike = all((leaf.shape or ())[1:] == (place.shape or ())[1:] for leaf, place in pairs)
    return pairs if alike and len(counts) == 1 and len(set(*counts)) == 2 else []


def _modules(leaves: Sequence[Leaf]) -> dict[str, dict[str, Leaf]]:
    found: dict[str, dict[str, Leaf]] = {}
    for leaf in leaves:
        module, last = split_name(leaf.name)
        found.setdefault(module, {})[last] = leaf
    return found


def _ratio(link: Link) -> Fraction:
    return Fraction(_rows(link.source.shape), max(_rows(link.target.shape), 1))


def _rows(shape: tuple[int, ...] | None) -> int:
    return shape[0] if shape else 0


def _only_rows_differ(link: Link) -> bool:
    ours, theirs = link.source.shape, link.target.shape
    return bool(ours and theirs) and len(ours or ()) == len(theirs or ()) and (ours or ())[1:] == (theirs or ())[1:]


def _steps(left: Leftovers) -> Iterator[Step]:
    pairs = [(link.source, link.target) for link in _heads(left)] or _renamed(left)
    for leaf, place in pairs:
        ours, theirs = leaf.shape or (), place.shape or ()
        yield Step(
            kind=StepKind.DROP,
            source=leaf.name,
            target=None,
            rule=RULE.id,
            reason=f"{human_shape(ours)} in the file, {human_shape(theirs)} in the target: another number of classes.",
            cost=Cost.LOSSY,
            evidence=Evidence.CHOSEN,
        )
        yield Step(
            kind=StepKind.FILL,
            source=None,
            target=place.name,
            rule=RULE.id,
            reason=(
                f"The file has a head for {_rows(ours):,} classes, the target one for {_rows(theirs):,}; this one "
                "stays untrained, at its initial value."
            ),
            cost=Cost.LOSSY,
            evidence=Evidence.CHOSEN,
            shape=theirs,
            value="initial",
        )


RULE = Rule(
    id="head-mismatch",
    title="Other number of classes",
    says="Leaves out a head for another number of classes; the target's head stays at its initial value.",
    cost=Cost.LOSSY,
    done="the head{classes} stays untrained",
    replaces_head=True,
    steps=_steps,
)
