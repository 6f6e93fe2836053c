"""Query, key and value of an attention as one matrix or as three: in_proj_weight, qkv.weight; q_proj, k_proj, v_proj.

The parts lie below each other, query first, as torch's MultiheadAttention and timm have them; the names of the separate
side say which is which. A matrix that is interleaved by heads has the same shape, and no name tells: so it needs
consent, and a name that is known for interleaving (query_key_value) is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from inspector.keys.keytree import Leaf
from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.roles import split_name
from inspector.keys.rules.entry import Leftovers, Link, Rule

# (query, key, value) as they are called apart.
_APART = (
    ("q_proj", "k_proj", "v_proj"),
    ("query", "key", "value"),
    ("q", "k", "v"),
    ("to_q", "to_k", "to_v"),
    ("wq", "wk", "wv"),
)
# What stands between the attention's own name and weight or bias when they are one.
_FUSED = ("in_proj_", "in_proj.", "qkv.", "to_qkv.", "Wqkv.")
_LEAVES = ("weight", "bias")


def places_of(settled: Sequence[Link]) -> dict[str, str]:
    """Where the modules of the file went, by what was placed below them; None of two minds are left out."""
    found: dict[str, str] = {}
    torn: set[str] = set()
    for link in settled:
        ours, theirs = link.source.name.split("."), link.target.name.split(".")
        while ours and theirs and ours[-1] == theirs[-1]:
            ours, theirs = ours[:-1], theirs[:-1]
            if found.setdefault(".".join(ours), ".".join(theirs)) != ".".join(theirs):
                torn.add(".".join(ours))
    return {ours: theirs for ours, theirs in found.items() if ours not in torn}


def _apart(leaves: Mapping[str, Leaf]) -> Iterator[tuple[str, str, list[Leaf]]]:
    """(attention's name, weight or bias, its query, key and value) of every whole set of equal shapes."""
    for name in leaves:
        module, leaf = split_name(name)
        parent, query = split_name(module)
        for names in _APART:
            if leaf in _LEAVES and query == names[0]:
                start = f"{parent}." if parent else ""
                parts = [leaves.get(f"{start}{part}.{leaf}") for part in names]
                whole = [part for part in parts if part is not None]
                sizes = {part.shape for part in whole}
                if len(whole) == len(names) and len(sizes) == 1 and all((whole[0].shape or (0,))[:1]):
                    yield parent, leaf, whole


def _fused(parent: str, leaf: str, parts: Sequence[Leaf], there: Mapping[str, Leaf]) -> Leaf | None:
    start = f"{parent}." if parent else ""
    rows, *rest = parts[0].shape or ()
    names = [f"{start}{fused}{leaf}" for fused in _FUSED]
    found = [there[name] for name in names if name in there and there[name].shape == (3 * rows, *rest)]
    return found[0] if len(found) == 1 else None


def _steps(left: Leftovers) -> Iterator[Step]:
    places = places_of(left.settled)
    back = {theirs: ours for ours, theirs in places.items()}
    ours, theirs = {leaf.name: leaf for leaf in left.extra}, {leaf.name: leaf for leaf in left.missing}
    for parent, leaf, parts in _apart(ours):
        whole = _fused(places[parent], leaf, parts, theirs) if parent in places else None
        if whole is not None and left.proves_rows(*parts):
            yield _step(StepKind.MERGE, parts[0], whole, more=tuple(part.name for part in parts[1:]))
    for parent, leaf, parts in _apart(theirs):
        whole = _fused(back[parent], leaf, parts, ours) if parent in back else None
        rows = (parts[0].shape or (0,))[0]
        if whole is not None and left.proves_rows(whole):
            for i, part in enumerate(parts):
                yield _step(StepKind.SPLIT, whole, part, rows=(i * rows, (i + 1) * rows))


def _step(
    kind: StepKind, source: Leaf, place: Leaf, *, more: tuple[str, ...] = (), rows: tuple[int, int] = (0, 0)
) -> Step:
    return Step(
        kind=kind,
        source=source.name,
        target=place.name,
        rule=RULE.id,
        reason="Query, key and value below each other, in this order.",
        cost=Cost.LOSSLESS,
        evidence=Evidence.RULE,
        shape=place.shape,
        more=more,
        rows=rows,
    )


RULE = Rule(
    id="fused-attention",
    title="Query, key and value",
    says=(
        "Puts query, key and value of an attention below each other into one matrix, or takes one apart; whether it is "
        "interleaved by heads no name tells, so it needs `--accept`."
    ),
    cost=Cost.LOSSLESS,
    done="query, key and value of {tensors} are joined or taken apart",
    consent=True,
    steps=_steps,
)
