"""The same tensors one after the other under other names: another author's names for the same network.

Placing by position needs the whole sequence, so `placing/by_order.py` does it; this entry is what is shown and
accepted. It keeps every number and is asked for all the same, since no name confirms it.
"""

from __future__ import annotations

from inspector.keys.report import Cost
from inspector.keys.rules.entry import Rule

RULE = Rule(
    id="same-order",
    title="Same order",
    says=(
        "Places tensors by their position where names say nothing and the whole sequence of roles and shapes agrees; "
        "not for files that are sorted or whose format does not keep the order, unless layers are counted kind by kind "
        "(`conv2d_7`, `dense_3`). Needs `--accept`."
    ),
    cost=Cost.LOSSLESS,
    done="{tensors} {are} placed by order alone",
    consent=True,
)
