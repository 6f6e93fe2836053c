"""Query, key and value of an attention as one matrix or as three; key and value as one or as two.

torch's MultiheadAttention (in_proj_weight) and transformers' Conv1D (c_attn, which lies (in, out)) have query, key and
value below each other; so have timm's blocks and Phi-3. Of the other names several codes write several orders: OPT k,
v, q; nanoGPT's forks k, q, v; Megatron, BLOOM and GPT-NeoX head by head; Megatron's first version row by row. Sources:
transformers modeling_gpt2.py, modeling_bloom.py, modeling_gpt_neox.py, modeling_phi3.py and convert_opt_*;
timm layers/attention.py; torchvision models/swin_transformer.py; torch/nn/modules/activation.py; Megatron-LM
checkpointing.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import permutations

from inspector.checkpoint.types import Shape
from inspector.keys.placing.provenance import shown_in
from inspector.keys.placing.tree import Leaf
from inspector.keys.recast import Recast
from inspector.keys.report import Cost
from inspector.keys.rules.entry import QKV_ORDER, Questions, Rule
from inspector.keys.rules.stacked import Around, Family, Order, heads, recasts

# (query, key, value) as they are called apart.
PARTS = (
    ("q_proj", "k_proj", "v_proj"),
    ("query", "key", "value"),
    ("q", "k", "v"),
    ("to_q", "to_k", "to_v"),
    ("wq", "wk", "wv"),
    ("w_q", "w_k", "w_v"),
    ("W_q", "W_k", "W_v"),
    ("Wq", "Wk", "Wv"),
    ("WQ", "WK", "WV"),
    ("W_Q", "W_K", "W_V"),
    ("q_lin", "k_lin", "v_lin"),
    ("linear_q", "linear_k", "linear_v"),
    ("q_linear", "k_linear", "v_linear"),
    ("query_proj", "key_proj", "value_proj"),
    ("proj_q", "proj_k", "proj_v"),
    ("fc_q", "fc_k", "fc_v"),
    ("w_qs", "w_ks", "w_vs"),
    ("queries", "keys", "values"),
    ("attn_q", "attn_k", "attn_v"),
    ("query_layer", "key_layer", "value_layer"),
    ("toq", "tok", "tov"),
)
# Phi-3's layers, as vLLM and transformers name them.
PHI = tuple(
    rf"(^|\.)layers\.0\.{end}\.weight$" for end in (r"self_attn\.qkv_proj", r"mlp\.gate_up_proj", "input_layernorm")
)
# torchvision's Swin transformers.
_SWIN = (
    r"(^|\.)features\.0\.0\.attn\.qkv\.weight$",
    r"(^|\.)features\.0\.0\.attn\.proj\.weight$",
    r"(^|\.)features\.0\.0\.attn\.relative_position_bias_table$",
    r"(^|\.)features\.0\.0\.mlp\.0\.weight$",
    r"(^|\.)features\.0\.reduction\.weight$",
)
_END = r"\.(weight|bias|kernel)$"
LETTERS = "qkv|kqv|kvq|qvk|vqk|vkq"
WHOLE = re.compile(
    rf"(^|\.)(in_proj_(weight|bias)$|(in_proj|c_attn|W_pack|query_key_value|key_query_value|query_value_key"
    rf"|(\w+_)?(w|to_?)?({LETTERS})(_\w+)?){_END})",
    re.IGNORECASE,
)
PAIRS = re.compile(rf"(^|\.)((\w+_)?(w|to_?|c_)?(kv|vk)(_\w+)?|key_value|query_free_kv){_END}", re.IGNORECASE)
_NAMES = {"query_key_value": "qkv", "key_query_value": "kqv", "query_value_key": "qvk"}
# What no shape shows of key and value in one matrix.
KV_ORDER = "kv-order"
_SAYS = {"q": "query", "k": "key", "v": "value"}
# Of these orders a code is known; the others are asked about behind them.
_KNOWN = ("qkv", "kqv", "kvq", "qvk")
_OF_BLOCK = r"(^|\.)blocks\.0\.(0\.)?"
_BLOCK = _OF_BLOCK + r"attn\."
_TIMM = (
    _BLOCK + r"qkv\.weight$",
    _BLOCK + r"proj\.weight$",
    _OF_BLOCK + r"mlp\.fc0\.weight$",
    _OF_BLOCK + r"norm0\.",
)
# A whole, and what one code alone has beside it. Where key and value have fewer heads, too, the three lie in blocks.
_PAIRED = (
    (r"(^|\.)to_qkv\.weight$", ("to_out.0.weight", "to_out.weight")),
    # ModernBERT's; flash-attention's module has its own name. Elsewhere Wqkv is a spelling that anybody may choose.
    (r"(^|\.)Wqkv\.weight$", ("Wo.weight",)),
    (r"(^|\.)mixer\.Wqkv\.weight$", ("out_proj.weight",)),
)
_VIT = r"(^|\.)patch_embed\.proj\.weight$"


def letters_of(name: str) -> str:
    """The order that the whole's own name claims: "kqv" of to_kqv.weight."""
    own = re.sub(r"[._](weight|bias|kernel)$", "", name).rpartition(".")[2].lower()
    found = re.search(rf"({LETTERS})", own)
    return _NAMES.get(own) or (found[1] if found else "")


def _claims(name: str) -> str:
    return "-".join(letters_of(name))


def _claims_pair(name: str) -> str:
    own = re.sub(r"[._](weight|bias|kernel)$", "", name).rpartition(".")[2].lower()
    return "v-k" if re.search(r"(^|_|w|to)vk", own) else "k-v"


def proves_order(name: str, around: Around) -> str:
    """The order that the names around it prove, "" for none."""
    in_order, shapes = "q-k-v", around.shapes
    # transformers' Conv1D lies (in, out), and every network that has it splits its columns so.
    if around.turned and re.search(r"(^|\.)h\.[0-9]+\.(attn|attention)\.c_attn\.", name):
        return in_order
    # torch's MultiheadAttention has a bare parameter beside a layer; apex has both bare, head by head.
    if re.search(r"(^|\.)in_proj_(weight|bias)$", name) and _beside(name, "out_proj.weight") in around.names:
        return in_order
    if all(shown_in(shapes, (pattern,)) for pattern in PHI):
        return in_order
    if re.search(r"\.attn\.qkv\.", name):
        # That a file is timm's takes what stands around the blocks, too.
        libraries = (_TIMM, _SWIN) if around.in_target else ((*_TIMM, _VIT), _SWIN)
        if any(all(shown_in(shapes, (pattern,)) for pattern in patterns) for patterns in libraries):
            return in_order
    # lucidrains' layers; flash-attention's and ModernBERT's.
    if any(re.search(own, name) and any(_beside(name, x) in around.names for x in ends) for own, ends in _PAIRED):
        return in_order
    # With fewer heads of key and value these are vLLM's and Phi-3's alone. Of equal parts, a tutorial's are head by
    # head (UvA deep learning course, 6), and OPT's lie k, v, q beside out_proj.
    grouped = len({part[0] for part in around.parts}) > 1 and re.search(r"(^|\.)qkv_proj\.weight$", name)
    return in_order if grouped and _beside(name, "o_proj.weight") in around.names else ""


def _beside(name: str, other: str) -> str:
    """What stands beside a whole under this name."""
    return re.sub(r"(in_proj_(weight|bias)|[A-Za-z_]+\.(weight|bias))$", other, name)


def _orders(shapes: tuple[Shape, ...]) -> list[Order]:
    found = []
    named = [*_KNOWN, *("".join(p) for p in permutations("qkv") if "".join(p) not in _KNOWN)]
    for letters in named:
        said = ", ".join(_SAYS[letter] for letter in letters)
        found.append(Order("-".join(letters), f"{said} below each other", tuple("qkv".index(x) for x in letters)))
    for number in heads(shapes):
        size = min(shape[0] for shape in shapes) // number
        found.append(
            Order(
                f"{number}-heads",
                f"query, key and value head by head, {number} heads of {size} rows for the key (Megatron, GPT-NeoX)",
                (0, 1, 2),
                number,
            )
        )
    if len({shape[0] for shape in shapes}) == 1:
        found.append(Order("row-by-row", "a row of each in turn (Megatron's checkpoint_version 1)", (0, 1, 2), 0))
    return found


def _pair_orders(shapes: tuple[Shape, ...]) -> list[Order]:
    found = [
        Order("k-v", "key, value below each other", (0, 1)),
        Order("v-k", "value, key below each other", (1, 0)),
    ]
    for number in heads(shapes):
        size = min(shape[0] for shape in shapes) // number
        found.append(
            Order(f"{number}-heads", f"key and value head by head, {number} heads of {size} rows", (0, 1), number)
        )
    return [*found, Order("row-by-row", "a row of each in turn", (0, 1), 0)]


_WHOLES = Family(
    question=QKV_ORDER,
    what="query, key and value",
    parts=PARTS,
    whole=WHOLE,
    claims=_claims,
    proves=proves_order,
    orders=_orders,
    only={},
)
_HALVES = Family(
    question=KV_ORDER,
    what="key and value",
    parts=tuple(triple[1:] for triple in PARTS),
    whole=PAIRS,
    claims=_claims_pair,
    proves=lambda name, around: "",
    orders=_pair_orders,
    only={},
)


def _recasts(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Recast]:
    yield from recasts(leaves, places, questions, _WHOLES, rule=RULE.id)
    yield from recasts(leaves, places, questions, _HALVES, rule=RULE.id)


RULE = Rule(
    id="fused-attention",
    title="Query, key and value",
    says=(
        "Puts query, key and value of an attention (or key and value) into one matrix, or takes one apart, also where "
        "it lies (in, out) or its parts are not equally large. The names of torch's, timm's, GPT-2's and Phi-3's "
        "attentions prove the order; else it is asked: below each other in any order, head by head, or row by row."
    ),
    cost=Cost.LOSSLESS,
    done="query, key and value of {tensors} are joined or taken apart",
    rests_on=QKV_ORDER,
    recasts=_recasts,
)
