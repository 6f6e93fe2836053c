"""Gate and value of a gated layer in one matrix: gate first, or value first."""

from __future__ import annotations

import re

from inspector.keys.inner_orders.entry import InnerOrder, Way, halves_exchanged
from inspector.keys.rules.entry import Link

_GATE_FIRST = r"(^|\.)(gate_up_proj|w12)\.(weight|bias)$"
_VALUE_FIRST = r"(^|\.)ff(_context)?\.net\.0\.proj\.(weight|bias)$"
_EITHER = re.compile(f"{_GATE_FIRST}|{_VALUE_FIRST}")
GATE, VALUE = "gate", "value"


def _holds(link: Link) -> bool:
    ours, theirs = link.source.name, link.target.name
    rows = (link.target.shape or (1,))[0]
    other = ours.split(".")[-3:] != theirs.split(".")[-3:]
    return other and rows % 2 == 0 and bool(_EITHER.search(ours) or _EITHER.search(theirs))


def first_of(name: str) -> str:
    """Which of the two the first half of a tensor of this name is, "" for not known."""
    return GATE if re.search(_GATE_FIRST, name) else VALUE if re.search(_VALUE_FIRST, name) else ""


INNER_ORDER = InnerOrder(
    id="gate-order",
    what="gated layers",
    ways=(
        Way(
            id="gate-first",
            says="the gate first, as Phi-3 and DINOv2's w12 have it",
            shown=(r"(^|\.)(gate_up_proj|w0)\.weight$",),
        ),
        Way(
            id="value-first",
            says="the value first, as diffusers' GEGLU and SwiGLU have it",
            shown=(r"(^|\.)ff(_context)?\.net\.0\.proj\.weight$",),
        ),
    ),
    holds=_holds,
    change=halves_exchanged,
    source="transformers modeling_phi3.py, dinov2 layers/swiglu_ffn.py; diffusers models/activations.py",
)
