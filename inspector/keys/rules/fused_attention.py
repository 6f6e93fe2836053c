"""Query, key and value of an attention as one matrix or as three: in_proj_weight, qkv.weight; q_proj, k_proj, v_proj.

The parts lie below each other, query first, as torch's MultiheadAttention and timm have them; the names of the separate
side say which is which. A matrix that is interleaved by heads has the same shape, and no name tells: so it needs
consent, and a name that is known for interleaving (query_key_value) is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.keys.report import Cost, Step
from inspector.keys.rules.entry import QKV_ORDER, Leftovers, Rule
from inspector.keys.rules.stacked import Form, stack

# What stands between the attention's own name and weight or bias when they are one.
_FUSED = ("in_proj_", "in_proj.", "qkv.", "to_qkv.", "Wqkv.")
# (query, key, value) as they are called apart.
_FORMS = (
    Form(("q_proj", "k_proj", "v_proj"), _FUSED),
    Form(("query", "key", "value"), _FUSED),
    Form(("q", "k", "v"), _FUSED),
    Form(("to_q", "to_k", "to_v"), _FUSED),
    Form(("wq", "wk", "wv"), _FUSED),
)


def _steps(left: Leftovers) -> Iterator[Step]:
    return stack(left, _FORMS, rule=RULE.id, reason="Query, key and value below each other, in this order.")


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
    rests_on=QKV_ORDER,
    steps=_steps,
)
