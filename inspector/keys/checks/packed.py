"""Numbers that are not the weights themselves: quantised with scales beside them, packed, or complex.

A weight in eight bits loads under the name of the real one and is a thousand times too large without its scale. So a
file that has such partners, which the target lacks, is refused: this is no matter of names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from inspector.checkpoint.dtypes import find_dtype
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.keys.checks.entry import MOST_SUBJECTS, Context, refusing
from inspector.units import counted

COMPLEX_TENSORS = FindingKind(
    "complex-tensors", Severity.NOTICE, "Complex numbers without a complex place", also=(Severity.WARNING,)
)

# (who writes it, leaf names of which all are needed, what to do)
_KINDS: tuple[tuple[str, frozenset[str], str], ...] = (
    (
        "GPTQ or AWQ",
        frozenset({"qweight", "scales"}),
        "load it with the library that packed it, or dequantise it there",
    ),
    ("bitsandbytes", frozenset({"absmax"}), "load it with bitsandbytes, or save the dequantised model"),
    ("bitsandbytes", frozenset({"SCB"}), "load it with bitsandbytes, or save the dequantised model"),
    (
        "torch's quantised layers",
        frozenset({"_packed_params"}),
        "call the model's own int_repr and dequantise, then save",
    ),
    (
        "torch's quantised layers",
        frozenset({"zero_point", "scale"}),
        "build the quantised model, or save dequantised weights",
    ),
    ("scaled float8", frozenset({"scale_weight"}), "multiply each weight by its scale first"),
    ("scaled float8", frozenset({"weight_scale"}), "multiply each weight by its scale first"),
    ("scaled float8", frozenset({"weight_scale_inv"}), "multiply each block of a weight by its scale first"),
    ("scaled float8", frozenset({"scaled_fp8"}), "multiply each weight by its scale first"),
)
# A partner is among so many last segments of its name.
_ENDS = 3
_PARTNERS = frozenset().union(*(needed for _, needed, _ in _KINDS))


def _quantised(context: Context) -> str:
    """Quantised weights with scales beside them, and who packed them."""
    others = () if context.state.is_module else context.state.others
    # No partner's name is a number: of the tensors their forms are asked.
    by_module = _parts_of((*context.tensors, *others)) if _name_partners((*context.forms, *others)) else {}
    ends = {part for name in context.places for part in name.split(".")[-_ENDS:]} if by_module else set()
    for who, needed, remedy in _KINDS:
        if needed & ends:
            continue  # the target is quantised as well
        modules = [module for module, names in by_module.items() if needed <= names]
        if modules and _is_weight_of(who, modules, context):
            partners = ", ".join(sorted(needed))
            return (
                f"The weights are quantised by {who}: {counted(len(modules), 'layer')} "
                f"({modules[0] or 'the file'} first) keep {partners} beside their numbers, and {context.target.label} "
                f"has no place for these. This is not a renaming; {remedy}."
            )
    kinds = [t.name for t in context.state.tensors if t.encoding is not None and t.encoding.scheme.startswith("per_")]
    if kinds and not any(t.dtype in ("qint8", "quint8", "qint32") for t in context.target.tensors):
        return (
            f"{counted(len(kinds), 'tensor')} ({kinds[0]} first) are quantised tensors of torch, and "
            f"{context.target.label} computes with real numbers: save the dequantised model first."
        )
    return ""


def _name_partners(names: Iterable[str]) -> bool:
    return any(not _PARTNERS.isdisjoint(name.rsplit(".", _ENDS)[-_ENDS:]) for name in names)


def _parts_of(names: Iterable[str]) -> dict[str, set[str]]:
    """Module -> what lies in it or is one of the last names there; nothing where no name ends as a partner does."""
    split = [name.split(".") for name in names]
    if all(_PARTNERS.isdisjoint(segments[-_ENDS:]) for segments in split):
        return {}
    found: dict[str, set[str]] = {}
    for segments in split:
        for i in range(max(0, len(segments) - _ENDS), len(segments)):
            found.setdefault(".".join(segments[:i]), set()).add(segments[i])
    return found


def _is_weight_of(who: str, modules: list[str], context: Context) -> bool:
    """Whether these are partners of weights: packed ones lack their weight, scaled ones have few bits."""
    if who != "torch's quantised layers":
        return True
    modules = [module for module in modules if not _observes(module, context)]
    return any(
        f"{module}.weight" not in context.tensors
        or _few_bits(context.tensors[f"{module}.weight"].dtype)
        or "quant" in module
        for module in modules
    )


def _observes(module: str, context: Context) -> bool:
    """Whether it only watches a layer whose weight is real, as quantisation-aware training saves it."""
    layer, _, last = module.rpartition(".")
    weight = context.tensors.get(f"{layer}.weight" if layer else "weight")
    watches = last.startswith(("activation_post_process", "weight_fake_quant"))
    return watches and weight is not None and not _few_bits(weight.dtype)


def _few_bits(dtype: str) -> bool:
    known = find_dtype(dtype)
    return known is None or not known.floating or known.itemsize == 1


def _is_whole(dtype: str) -> bool:
    known = find_dtype(dtype)
    return known is not None and not known.floating


def _is_wide(dtype: str) -> bool:
    known = find_dtype(dtype)
    return known is not None and known.itemsize > 1


# Buffers of whole numbers, which another version of the code has as real ones and a load casts: YOLO's anchors, Swin's
# table of positions.
_COUNTED = re.compile(
    r"(^|[._])(ind(ex|ices|exes)|idx|ids|anchors?|anchor_grid|strides?|masks?|num_[a-z_]+)$", re.IGNORECASE
)


def _integers(context: Context) -> str:
    """Integers on the place of real numbers: whatever they mean, a scale for them is somewhere else."""
    if not any(_is_whole(dtype) for dtype in {t.dtype for t in context.state.tensors}):
        return ""
    wanted = {t.name: t for t in context.target.tensors}
    wrong = []
    for ours, theirs in context.goes.items():
        tensor, place = context.tensors.get(ours), wanted.get(theirs)
        if tensor is None or place is None or len(tensor.shape) < 2 or not _is_whole(tensor.dtype):
            continue
        goal = find_dtype(place.dtype or "")
        counts = _is_wide(tensor.dtype) and (place.is_buffer or _COUNTED.search(theirs))
        if goal is not None and goal.floating and not counts:
            wrong.append(ours)
    if not wrong:
        return ""
    kinds = {context.tensors[name].dtype for name in wrong}
    bits = "" if any(map(_is_wide, kinds)) else " of eight bits"
    what = "truth values" if kinds == {"bool"} else f"whole numbers{bits}"
    return (
        f"{counted(len(wrong), 'tensor')} ({wrong[0]} first) hold{'s' if len(wrong) == 1 else ''} {what} where "
        f"{context.target.label} has real ones: quantised or packed weights, whose scale the names do not tell. Save "
        "dequantised weights first."
    )


def _complex(context: Context) -> Iterator[Finding]:
    wanted = {t.name: t.dtype or "" for t in context.target.tensors}
    found = [
        t.name
        for t in context.state.tensors
        if t.dtype.startswith("complex") and not wanted.get(context.goes.get(t.name, ""), "").startswith("complex")
    ]
    if found:
        yield COMPLEX_TENSORS.found(
            f"{counted(len(found), 'tensor')} ({found[0]} first) hold complex numbers, and {context.target.label} has "
            "no complex place for them: usually rotation tables (freqs_cis), which the model computes itself.",
            severity=Severity.WARNING if any(name in context.used for name in found) else Severity.NOTICE,
            subjects=found[:MOST_SUBJECTS],
            remedy="Leave them out; a real place would lose their imaginary half.",
        )


REFUSALS = (refusing(_quantised), refusing(_integers))
CHECKS = (Check(kinds=(COMPLEX_TENSORS,), find=_complex),)
