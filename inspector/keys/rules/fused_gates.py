"""Gate and value of a gated layer (SwiGLU) as one matrix or as two: gate_up_proj; gate_proj and up_proj.

The names of the separate side say which is the gate, and the fused name says the order: gate_up has the gate first
(Phi-3's modeling code), w12 has w1 first (DINOv2, xFormers). One that is interleaved row by row has the same name and
shape, so it needs consent. Matrices that only their shapes would pair are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inspector.keys.keytree import Leaf
from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.roles import split_name
from inspector.keys.rules.entry import Leftovers, Rule
from inspector.keys.rules.fused_attention import places_of

# (first half, second half) and the one that has both in this order.
_FORMS = ((("gate_proj", "up_proj"), "gate_up_proj"), (("w1", "w2"), "w12"))
_LEAVES = ("weight", "bias")


def _sets(leaves: Mapping[str, Leaf]) -> Iterator[tuple[str, str, str, tuple[Leaf, Leaf]]]:
    """(module around them, fused name, weight or bias, the two halves) of every pair of equal shapes."""
    for name in leaves:
        module, leaf = split_name(name)
        parent, first = split_name(module)
        start = f"{parent}." if parent else ""
        for names, fused in _FORMS:
            if leaf in _LEAVES and first == names[0]:
                one, two = leaves[name], leaves.get(f"{start}{names[1]}.{leaf}")
                if two is not None and one.shape == two.shape and all((one.shape or (0,))[:1]):
                    yield parent, fused, leaf, (one, two)


def _whole(parent: str, fused: str, leaf: str, half: Leaf, there: Mapping[str, Leaf]) -> Leaf | None:
    start = f"{parent}." if parent else ""
    found = there.get(f"{start}{fused}.{leaf}")
    rows, *rest = half.shape or (0,)
    return found if found is not None and found.shape == (2 * rows, *rest) else None


def _steps(left: Leftovers) -> Iterator[Step]:
    places = places_of(left.settled)
    back = {theirs: ours for ours, theirs in places.items()}
    ours, theirs = {leaf.name: leaf for leaf in left.extra}, {leaf.name: leaf for leaf in left.missing}
    for parent, fused, leaf, (one, two) in _sets(ours):
        place = _whole(places[parent], fused, leaf, one, theirs) if parent in places else None
        if place is not None and left.proves_rows(one, two):
            yield _step(StepKind.MERGE, one, place, more=(two.name,))
    for parent, fused, leaf, (one, two) in _sets(theirs):
        whole = _whole(back[parent], fused, leaf, one, ours) if parent in back else None
        rows = (one.shape or (0,))[0]
        if whole is not None and left.proves_rows(whole):
            yield _step(StepKind.SPLIT, whole, one, rows=(0, rows))
            yield _step(StepKind.SPLIT, whole, two, rows=(rows, 2 * rows))


def _step(
    kind: StepKind, source: Leaf, place: Leaf, *, more: tuple[str, ...] = (), rows: tuple[int, int] = (0, 0)
) -> Step:
    return Step(
        kind=kind,
        source=source.name,
        target=place.name,
        rule=RULE.id,
        reason="Gate and value below each other, in the order that their common name says.",
        cost=Cost.LOSSLESS,
        evidence=Evidence.RULE,
        shape=place.shape,
        more=more,
        rows=rows,
    )


RULE = Rule(
    id="fused-gates",
    title="Gate and value",
    says=(
        "Puts gate and value of a gated layer below each other into one matrix (gate_up_proj, w12), or takes one "
        "apart; whether it is interleaved no name tells, so it needs `--accept`."
    ),
    cost=Cost.LOSSLESS,
    done="gate and value of {tensors} are joined or taken apart",
    consent=True,
    steps=_steps,
)
