"""One tensor and one place that were left over, of one shape and with a word in common: fc_param and fc.weight.

Nothing proves that they are one: the file may hold a second head, and the model a new one. So it is asked, pair by
pair, and only where a tensor has one such place and the place no other such tensor (`placing/related.py`).
"""

from __future__ import annotations

from inspector.keys.report import Cost
from inspector.keys.rules.entry import Rule

RULE = Rule(
    id="related-names",
    title="Related names",
    says="Pairs a tensor and a place that are left over, of one shape and with a word in common; always asks.",
    cost=Cost.LOSSLESS,
    done="{tensors} {are} placed by a word in common",
)
