"""BEiT's attention: biases for query and value, none for the key; as one layer, the key's bias is zero.

A fused bias is taken apart only if its middle third is exactly zero, which is looked at when the plan is applied.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.keys.placing.roles import split_name
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Rule
from inspector.keys.rules.stacked import places_of

_FUSED = ("qkv.bias", "in_proj_bias")


def _pairs(leaves: dict[str, Leaf]) -> Iterator[tuple[str, Leaf, Leaf]]:
    """(attention's name, bias of the query, bias of the value) where the key has none."""
    for name, query in leaves.items():
        parent, leaf = split_name(name)
        start = f"{parent}." if parent else ""
        value = leaves.get(f"{start}v_bias")
        if leaf != "q_bias" or value is None or f"{start}k_bias" in leaves:
            continue
        if len(query.shape or ()) == 1 and query.shape == value.shape:
            yield parent, query, value


def _whole(parent: str, part: Leaf, there: dict[str, Leaf]) -> Leaf | None:
    start = f"{parent}." if parent else ""
    (width,) = part.shape or (0,)
    found = [there[start + name] for name in _FUSED if start + name in there]
    return found[0] if len(found) == 1 and found[0].shape == (3 * width,) else None


def _steps(left: Leftovers) -> Iterator[Step]:
    ours, theirs = {leaf.name: leaf for leaf in left.extra}, {leaf.name: leaf for leaf in left.missing}
    our_pairs, their_pairs = list(_pairs(ours)), list(_pairs(theirs))
    if not our_pairs and not their_pairs:
        return
    places = places_of(left.settled)
    back = {theirs: ours for ours, theirs in places.items()}
    for parent, query, value in our_pairs:
        whole = _whole(places[parent], query, theirs) if parent in places else None
        if whole is not None:
            yield _step(StepKind.MERGE, query.name, whole, value="zeros-between", more=(value.name,))
    for parent, query, value in their_pairs:
        whole = _whole(back[parent], query, ours) if parent in back else None
        if whole is not None:
            (width,) = query.shape or (0,)
            yield _step(StepKind.SPLIT, whole.name, query, rows=(0, width))
            yield _step(StepKind.DROP, whole.name, None, value="zeros", rows=(width, 2 * width))
            yield _step(StepKind.SPLIT, whole.name, value, rows=(2 * width, 3 * width))


def _step(
    kind: StepKind,
    source: str,
    place: Leaf | None,
    *,
    value: str = "",
    more: tuple[str, ...] = (),
    rows: tuple[int, int] = (0, 0),
) -> Step:
    return Step(
        kind=kind,
        source=source,
        target=place.name if place is not None else None,
        rule=RULE.id,
        reason="Query, zeros for the key, value, in this order.",
        cost=Cost.LOSSLESS,
        evidence=Evidence.RULE,
        shape=place.shape if place is not None else None,
        value=value,
        more=more,
        rows=rows,
    )


RULE = Rule(
    id="query-value-bias",
    title="Query and value bias",
    says=(
        "Joins BEiT's biases of query and value, zeros between them, into the bias of one layer, or takes one apart "
        "whose middle is zero; whether it is interleaved by heads no name tells, so it needs `--accept`."
    ),
    cost=Cost.LOSSLESS,
    done="the biases of query and value of {tensors} are joined or taken apart",
    consent=True,
    steps=_steps,
)
