"""Whether the target is one whole module of the file by its names, so that what else the file has lies beside it.

`visual.trunk.` of an open_clip file for a timm network, `net.` of a Lightning module with its loss, `features.` of a
VGG: every place of the target has the tensor of that name below one module, and that module has nothing more. What lies
elsewhere in the file cannot change what the module computes, and leaving it out is no loss to it. Not so where what is
left over says something about the placed tensors (masks, averages, adapters), counts on behind them (layer2 beside
layer1), or where a module is no more than a layer, whose names are everybody's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from inspector.checkpoint.level_words import DERIVED
from inspector.checkpoint.name_forms import shared_levels
from inspector.checkpoint.nested import EMA_NAME
from inspector.keys.placing.tree import Leaf, Path, numbered, stands_around

# Adapters, quantisers and pruning have names beside the layers that they change. A logit_scale changes none.
_ABOUT = re.compile(
    r"(^|[._])(lora|adapters?|loha|lokr|hada|ia3|dora|observers?|fake_quant|act_quant|quant[a-z]*|prun(ed|ing)|deltas?|diffs?"
    r"|masks?|qweight|qzeros|absmax|zero_points?)([._]|$)|(^|\.)(scales?|zeros?)(\.|$)|(weight|input|output|act)_scale",
    re.IGNORECASE,
)
_FEWEST_MODULES = 2


def lies_beside(links: Sequence[tuple[Leaf, Leaf]], extra: Sequence[Leaf]) -> bool:
    """Whether (tensor, place) are one whole module of the file, and none of extra is of it or about it."""
    if len(stands_around(links)) != 1:
        return False
    inside = shared_levels([ours.name for ours, _ in links])
    relative = {tuple(leaf.name.split("."))[len(inside) :]: leaf.shape for leaf, _ in links}
    if not inside or len({path[:-1] for path in relative}) < _FEWEST_MODULES:
        return False
    return not any(_is_of(tuple(leaf.name.split(".")), leaf, inside, relative) for leaf in extra)


def _is_of(path: Path, leaf: Leaf, inside: Path, relative: dict[Path, tuple[int, ...] | None]) -> bool:
    """Whether a tensor that is left over is in the module, counted on behind it, or said of its tensors."""
    apart = next((n for n, (a, b) in enumerate(zip(path, inside, strict=False)) if a != b), min(len(path), len(inside)))
    if apart == len(inside) or apart == len(path):
        return True
    own, other = numbered(inside[apart]), numbered(path[apart])
    if own is not None and other is not None and own[0] == other[0]:
        return True
    if EMA_NAME.search(leaf.name) or _ABOUT.search(leaf.name) or any(DERIVED.search(segment) for segment in path[:-1]):
        return True
    ends = (path[n:] for n in range(len(path)))
    return len(leaf.shape or ()) > 1 and any(relative.get(end) == leaf.shape for end in ends)
