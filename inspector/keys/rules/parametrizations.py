"""Weight and spectral norm under their old and new names: weight_g, weight_v and parametrizations.weight.original0, 1.

torch renames old to new while loading where the file's metadata allows it; the other way, and in renamed files, nothing
does. The numbers are the same. Fires on all tensors of one module together, with equal shapes.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.keys.placing.tree import Leaf, Node
from inspector.keys.report import Cost
from inspector.keys.rules.entry import Link, Move, Pair, Rule

# torch.nn.utils.weight_norm and spectral_norm, before and since torch.nn.utils.parametrizations.
_FORMS = (
    ("weight norm", (("weight_g", "original0"), ("weight_v", "original1"))),
    ("spectral norm", (("weight_orig", "original"), ("weight_u", "0._u"), ("weight_v", "0._v"))),
)


def _new_names(node: Node) -> dict[str, Leaf]:
    child = node.children.get("parametrizations")
    weight = child.children.get("weight") if child is not None else None
    return dict(weight.walk()) if weight is not None else {}


def _links(pair: Pair) -> Iterator[Link]:
    for what, names in _FORMS:
        old, new = tuple(a for a, _ in names), tuple(b for _, b in names)
        for ours, theirs, ways in (
            (dict(pair.source.leaves), _new_names(pair.target), (old, new)),
            (_new_names(pair.source), dict(pair.target.leaves), (new, old)),
        ):
            inside = ours if ways[0] == new else theirs
            if set(inside) != set(new) or any(a not in ours or b not in theirs for a, b in zip(*ways, strict=True)):
                continue
            pairs = [(ours[a], theirs[b]) for a, b in zip(*ways, strict=True)]
            if any(b.shape not in (None, a.shape) for a, b in pairs):
                continue
            to_new = ways[0] == old
            says = f"give {what} its {'new' if to_new else 'old'} names"
            for leaf, place in pairs:
                yield Link(leaf, place, (Move(RULE.id, says, change=(what, to_new)),))


RULE = Rule(
    id="parametrizations",
    title="Weight and spectral norm",
    says="Calls the tensors of weight_norm and spectral_norm by their names before or since torch's parametrizations.",
    cost=Cost.LOSSLESS,
    done="weight or spectral norm gets its other names",
    leaf_links=_links,
)
