"""Gate and value of a gated layer (SwiGLU, GEGLU) as one matrix or as two: gate_up_proj; gate_proj and up_proj.

The names of the separate side say which is the gate. The fused one's name may claim an order: gate_up has the gate
first (Phi-3), w12 has w1 first (DINOv2, xFormers); fc1, wi and their like say none, and codes differ (timm and
diffusers have the value first, Megatron, GLM and ModernBERT the gate). gpt-oss has a row of each in turn under the
same name. Sources: transformers modeling_phi3.py, modeling_modernbert.py, modeling_gpt_oss.py; timm layers/mlp.py;
diffusers models/activations.py; Megatron-LM mlp.py; dinov2 layers/swiglu_ffn.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from inspector.checkpoint.types import Shape
from inspector.keys.placing.provenance import shown_in
from inspector.keys.placing.tree import Leaf
from inspector.keys.recast import Recast
from inspector.keys.report import Cost
from inspector.keys.rules.entry import Questions, Rule
from inspector.keys.rules.fused_attention import PHI
from inspector.keys.rules.stacked import Around, Family, Order, recasts

# What a fused matrix of a gated layer rests on, as the finding "cannot-tell" calls it, too.
GATE_UP_ORDER = "gate-up-order"
_W12 = ("w1", "w2")
# (gate, value) as they are called apart.
FORMS = (
    ("gate_proj", "up_proj"),
    ("wi_0", "wi_1"),
    ("w1", "w3"),
    _W12,
    ("fc1_g", "fc1_x"),
    ("gate", "up"),
    ("ffn_gate", "ffn_up"),
    ("w_gate", "w_up"),
    ("gate_fc", "up_fc"),
    ("fc_gate", "fc_up"),
    ("linear_gate", "linear_up"),
    ("gate_linear", "up_linear"),
    ("gate_layer", "up_layer"),
    ("wg", "wu"),
)
_END = r"\.(weight|bias|kernel)$"
_WHOLE = re.compile(
    r"(^|\.)(gate_?(and_?)?up(_proj)?|up_?(and_?)?gate(_proj)?|w1?_?[123]?2|w1_?w?[23]|w3_?w?1|wi|wi_fused|fc1|fc_in|c_fc"
    r"|linear_fc1|lin1|linear1|linear_1|dense_h_to_4h|ff_proj|in_proj|proj_in|up_proj|net\.0\.proj|mlp\.0|ffn\.0|ff\.0"
    rf"|swiglu|glu|gated|ffn_gate_up|fc_gate_up){_END}",
    re.IGNORECASE,
)
# Names that say of themselves that gate and value are in one.
JOINED = re.compile(
    rf"(^|\.)((\w+_)?(gate_?(and_?)?up|up_?(and_?)?gate)(_\w+)?|w_?1_?w?[23]|w_?3_?w?1|wi_fused|swiglu|geglu){_END}",
    re.IGNORECASE,
)
_W12_WHOLE = re.compile(rf"(^|\.)w_?1_?w?2{_END}", re.IGNORECASE)


def _own(name: str) -> str:
    return re.sub(_END, "", name).rpartition(".")[2].lower()


def _claims(name: str) -> str:
    own = _own(name)
    if re.search(r"gate_?(and_?)?up|^w_?1_?w?[23]$", own):
        return "gate-first"
    return "up-first" if re.search(r"up_?(and_?)?gate|^w_?3_?w?1$", own) else ""


def _proves(name: str, around: Around) -> str:
    if _W12_WHOLE.search(name):
        # DINOv2's and xFormers' SwiGLU: chunk(2), the first half activated. A file's has their w3 beside it.
        third = _W12_WHOLE.sub(r"\1w3.weight", name)
        return "gate-first" if around.in_target or third in around.names else ""
    # Of a gate_up_proj in other layers only its own name says the order: gpt-oss has a row of each in turn.
    return "gate-first" if all(shown_in(around.shapes, (pattern,)) for pattern in PHI) else ""


def _orders(shapes: tuple[Shape, ...]) -> list[Order]:
    if shapes[0] != shapes[1]:
        return []
    return [
        Order("gate-first", "the gate first, then the value", (0, 1)),
        Order("up-first", "the value first, then the gate", (1, 0)),
        Order("row-by-row", "a row of the gate and one of the value in turn (gpt-oss)", (0, 1), 0),
    ]


_FAMILY = Family(
    question=GATE_UP_ORDER,
    what="gate and value",
    parts=FORMS,
    whole=_WHOLE,
    claims=_claims,
    proves=_proves,
    orders=_orders,
    only={_W12: _W12_WHOLE},
)


def _recasts(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Recast]:
    yield from recasts(leaves, places, questions, _FAMILY, rule=RULE.id)


RULE = Rule(
    id="fused-gates",
    title="Gate and value",
    says=(
        "Puts gate and value of a gated layer into one matrix (gate_up_proj, w12, fc1, wi), or takes one apart; asks "
        "in which order they lie where the names of DINOv2's or Phi-3's layers do not prove it."
    ),
    cost=Cost.LOSSLESS,
    done="gate and value of {tensors} are joined or taken apart",
    recasts=_recasts,
)
