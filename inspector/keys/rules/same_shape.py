"""Tensors of which each has a shape of its own, in the file and in the target: one way alone is left to place them.

Placing by shape needs all of them, so `placing/by_order.py` does it, where neither names nor order place anything; this
entry is what is shown and accepted. Two networks may have the same shapes, so it is asked for.
"""

from __future__ import annotations

from inspector.keys.report import Cost
from inspector.keys.rules import same_order
from inspector.keys.rules.entry import Rule

RULE = Rule(
    id="same-shape",
    title="Same shapes",
    says=(
        "Places tensors by their shapes where neither names nor order say anything and every shape is there once. "
        "Needs `--accept`."
    ),
    cost=Cost.LOSSLESS,
    done="{tensors} {are} placed by shape alone",
    consent=True,
)
# Rules that place tensors whatever they are called.
WITHOUT_NAMES = frozenset({same_order.RULE.id, RULE.id})
