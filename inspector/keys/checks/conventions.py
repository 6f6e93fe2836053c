"""What a strict load does not notice and no file says: the order inside fused matrices, rotary halves, strides.

Said only where a repair or a load depends on it: where the names were changed, so that the file comes from another
code, or where several known networks take the same names and shapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from inspector.architectures.claims import stated_architectures, twins_of
from inspector.architectures.index import load_index
from inspector.findings import Check, Finding
from inspector.keys.checks.entry import CANNOT_TELL, Context, cannot_tell
from inspector.keys.report import StepKind
from inspector.keys.rules.entry import QKV_ORDER
from inspector.units import counted

_ROTARY = re.compile(r"(^|\.)(rotary_emb|rotary_pos_emb|rope|inv_freq|freqs_cis)(\.|$)")
_GATED = re.compile(r"\.(gate_proj|gate_up_proj|w3|feed_forward\.w1)(\.|$)")
_QUERY = re.compile(
    r"(^|\.)(q_proj|wq|query|to_q|q|k_proj|wk|key|to_k|k|qkv_proj|query_key_value|Wqkv)\.(weight|base_layer\.weight)$"
)
_FUSED = re.compile(
    r"(^|\.)(in_proj_weight|in_proj\.weight|qkv\.weight|to_qkv\.weight|Wqkv\.weight|query_key_value\.weight|c_attn\.weight|qkv_proj\.weight)$"
)
_GATE_UP = re.compile(r"(^|\.)(gate_up_proj|w12|wi_fused|fc1_g|c_fc_gated|Wi)(\.weight)?$")
_EXPERTS = re.compile(r"(^|\.)experts?\.([a-z_0-9]+\.)*[a-z_0-9]+$")


def _rotary(context: Context) -> Iterator[Finding]:
    """Rotary halves split or interleaved."""
    if not any(_ROTARY.search(form) or _GATED.search(form) for form in context.forms):
        return
    turned = [(a, b) for a, b in context.goes.items() if _own(b)]
    if not turned:
        return
    other = [(a, b) for a, b in turned if _own(a) != _own(b)]
    says = (
        f"{other[0][0]} becomes {other[0][1]}, a name of another code; whether its rotary halves are split or "
        "interleaved "
        if other
        else f"Whether the rotary halves of {turned[0][0]} are split (Hugging Face) or interleaved (Meta) "
    )
    yield cannot_tell(
        "rope-layout",
        f"{says}no name or shape tells: both load, and the wrong one answers nonsense.",
        sure=bool(other),
        subjects=[a for a, _ in turned],
        remedy="Compare one answer of the model with a known one, or permute q and k as the model's converter does.",
    )


def _own(name: str) -> str:
    """A query's own name without its place, "" for what is none."""
    return _own_of_end(".".join(name.rsplit(".", 3)[-3:]))


@lru_cache(maxsize=1024)
def _own_of_end(end: str) -> str:
    """The last three words of a name are all that the pattern looks at, and of thousands of layers few differ."""
    found = _QUERY.search(end)
    return found[2] if found else ""


def _fused(context: Context) -> Iterator[Finding]:
    """The order of query, key and value in one matrix."""
    steps = context.draft.steps_by(lambda rule: rule.rests_on == QKV_ORDER)
    steps = [s for s in steps if s.kind in (StepKind.MERGE, StepKind.SPLIT) and s.target is not None and not s.declared]
    joined = [step.source or "" for step in steps]
    known = {step.target for step in context.draft.steps if step.declared}
    named = context.goes if any(map(_FUSED.search, context.forms)) else {}
    other = [
        a
        for a, b in named.items()
        if b not in known
        and _FUSED.search(b)
        and a.rpartition(".")[0].split(".")[-1:] != b.rpartition(".")[0].split(".")[-1:]
    ]
    found = [*joined, *(a for a in other if a not in joined)]
    if found:
        yield cannot_tell(
            QKV_ORDER,
            f"{counted(len(found), 'matrix', 'matrices')} of query, key and value ({found[0]} first) change hands. "
            "Their order, and whether they are interleaved by heads as in Megatron and GPT-NeoX, is in no shape.",
            sure=True,
            subjects=found,
            remedy="Compare one answer of the model with a known one before you rely on it.",
        )


def _gated(context: Context) -> Iterator[Finding]:
    """The order of gate and up in one matrix."""
    if not any(map(_GATE_UP.search, context.forms)):
        return
    found = [a for a, b in context.goes.items() if _GATE_UP.search(b) and not a.endswith(b) and not b.endswith(a)]
    if found:
        yield cannot_tell(
            "gate-up-order",
            f"{found[0]} holds gate and up below each other; which comes first is in no shape, and the name is "
            "another code's.",
            sure=True,
            subjects=found,
            remedy="Compare one answer of the model with a known one, or exchange the halves.",
        )


def _experts(context: Context) -> Iterator[Finding]:
    """Experts stacked on one side and numbered on the other."""
    ours = [t.name for t in context.unused if _EXPERTS.search(t.name) or re.search(r"\.experts\.[0-9]+\.", t.name)]
    numbered = [n for n in (*ours, *context.lacking) if re.search(r"\.experts\.[0-9]+\.", n)]
    stacked = [n for n in (*ours, *context.lacking) if _EXPERTS.search(n) and not re.search(r"\.experts\.[0-9]+\.", n)]
    if numbered and stacked:
        yield cannot_tell(
            "stacked-experts",
            f"Experts are stacked into one tensor on one side ({stacked[0]}) and numbered on the other "
            f"({numbered[0]}). Whether each lies transposed in the stack, and whether gate or up comes first, is in "
            "no name.",
            sure=True,
            subjects=stacked,
            remedy="Use the conversion of the library that stacked them.",
        )


def _equivalents(context: Context) -> Iterator[Finding]:
    """Other builders with the target's names and shapes: the strict load fits them, too, and answers differ."""
    spec = context.target.spec
    if spec is None or context.plan is None or context.plan.missing:
        return
    names, own = twins_of(spec), f"{spec.library}/{spec.name}"
    if names:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        yield cannot_tell(
            "architecture-twins",
            f"A strict load fits {', '.join(names[:3])}{more} as well as {own}, and gives other numbers there: they "
            "differ in strides, padding, pooling or activations, which no weights file holds.",
            sure=bool(context.goes) and _stated_otherwise(context, own, names),
            remedy=f"Make sure that the weights were trained as {own}.",
        )


def _stated_otherwise(context: Context, label: str, twins: tuple[str, ...]) -> bool:
    """Whether the file, or its config, names one of the twins and not the target."""
    stated = stated_architectures(context.checkpoint, load_index())
    return label not in stated and any(twin in stated for twin in twins)


CHECKS = tuple(Check(kinds=(CANNOT_TELL,), find=find) for find in (_equivalents, _rotary, _fused, _gated, _experts))
