"""The last modulation of a diffusion transformer: shift before scale in the authors' code, scale before shift in
diffusers' final norm."""

from __future__ import annotations

import re

from inspector.keys.inner_orders.entry import InnerOrder, Way, halves_exchanged
from inspector.keys.rules.entry import Link

_FINAL = re.compile(r"(^|\.)final_layer\.adaLN_modulation\.1\.(weight|bias)$")
_NORM_OUT = re.compile(r"(^|\.)norm_out\.linear\.(weight|bias)$")


def _holds(link: Link) -> bool:
    names = (link.source.name, link.target.name)
    rows = (link.target.shape or (1,))[0]
    return (
        any(_FINAL.search(name) for name in names) and any(_NORM_OUT.search(name) for name in names) and rows % 2 == 0
    )


INNER_ORDER = InnerOrder(
    id="shift-scale",
    what="final modulations",
    ways=(
        Way(
            id="shift-first",
            says="shift, then scale, as the authors of SD3, Flux and DiT write it",
            shown=(r"(^|\.)final_layer\.adaLN_modulation\.0\.weight$",),
        ),
        Way(
            id="scale-first",
            says="scale, then shift, as diffusers' AdaLayerNormContinuous reads it",
            shown=(r"(^|\.)norm_out\.linear\.weight$",),
        ),
    ),
    holds=_holds,
    change=halves_exchanged,
    source="diffusers loaders/single_file_utils.py, swap_scale_shift",
)
