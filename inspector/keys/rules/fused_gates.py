"""Gate and value of a gated layer (SwiGLU) as one matrix or as two: gate_up_proj; gate_proj and up_proj.

The names of the separate side say which is the gate, and the fused name says the order: gate_up has the gate first
(Phi-3's modeling code), w12 has w1 first (DINOv2, xFormers). One that is interleaved row by row has the same name and
shape, so it needs consent. Matrices that only their shapes would pair are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.keys.report import Cost, Step
from inspector.keys.rules.entry import Leftovers, Rule
from inspector.keys.rules.stacked import Form, stack

# (first half, second half) and the one that has both in this order.
_FORMS = (Form(("gate_proj", "up_proj"), ("gate_up_proj.",)), Form(("w1", "w2"), ("w12.",)))
_REASON = "Gate and value below each other, in the order that their common name says."


def _steps(left: Leftovers) -> Iterator[Step]:
    return stack(left, _FORMS, rule=RULE.id, reason=_REASON)


RULE = Rule(
    id="fused-gates",
    title="Gate and value",
    says=(
        "Puts gate and value of a gated layer below each other into one matrix (gate_up_proj, w12), or takes one "
        "apart; whether it is interleaved no name tells, so it needs `--accept`."
    ),
    cost=Cost.LOSSLESS,
    done="gate and value of {tensors} are joined or taken apart",
    consent=True,
    steps=_steps,
)
