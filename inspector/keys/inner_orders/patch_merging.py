"""The four patches that a Swin merges into one: cell by cell (the authors' slices), or channel by channel (Unfold)."""

from __future__ import annotations

import re

from inspector.keys.inner_orders.entry import InnerOrder, Way
from inspector.keys.rules.entry import Link

_REDUCTION = re.compile(r"(^|\.)(reduction|norm)\.(weight|bias)$")
_PLACE = re.compile(r"downsample|reduction|merging")
SLICES, UNFOLD = "slices", "unfold"


def _holds(link: Link) -> bool:
    shape = link.target.shape or ()
    named = _REDUCTION.search(link.target.name) and (_PLACE.search(link.target.name) or _PLACE.search(link.source.name))
    return bool(named) and link.source.shape == shape and len(shape) in (1, 2) and shape[-1] % 4 == 0


def _change(link: Link, ours: str, theirs: str) -> str:
    channels = (link.target.shape or (4,))[-1] // 4
    return f"merging:{channels},2,2" if ours == UNFOLD else f"merging:2,2,{channels}"


INNER_ORDER = InnerOrder(
    id="patch-merging",
    what="patch mergings",
    ways=(
        Way(
            id=SLICES,
            says="cell by cell, as the Swin authors, timm, torchvision and transformers slice them",
            shown=(
                r"\.attn\.qkv\.weight$",
                r"\.attention\.self\.query\.weight$",
                r"^features\.0\.reduction\.weight$",
            ),
        ),
        Way(
            id=UNFOLD,
            says="channel by channel, as OpenMMLab's Unfold gives them",
            shown=(r"\.attn\.w_msa\.", r"\.ffn\.layers\.0\.0\.(weight|bias)$"),
        ),
    ),
    holds=_holds,
    change=_change,
    source="mmpretrain tools/model_converters, mmdet models/backbones/swin.py",
)
