"""Numbers that are not the weights themselves: quantised with scales beside them, packed, or complex.

A weight in eight bits loads under the name of the real one and is a thousand times too large without its scale. So a
file that has such partners, which the target lacks, is refused: this is no matter of names.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.checkpoint.dtypes import find_dtype
from inspector.findings import Finding, Severity
from inspector.keys.remarks.entry import Remark, Seen, told
from inspector.units import counted

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


def _quantised(seen: Seen) -> str:
    by_module: dict[str, set[str]] = {}
    for name in (*seen.tensors, *(() if seen.state.is_module else seen.state.others)):
        segments = name.split(".")
        for i in range(max(0, len(segments) - 3), len(segments)):
            by_module.setdefault(".".join(segments[:i]), set()).add(segments[i])
    for who, needed, remedy in _KINDS:
        if needed & seen.leaf_names or any(part in needed for n in seen.places for part in n.split(".")[-3:]):
            continue  # the target is quantised as well
        modules = [module for module, names in by_module.items() if needed <= names]
        if modules and _is_weight_of(who, modules, seen):
            partners = ", ".join(sorted(needed))
            return (
                f"The weights are quantised by {who}: {counted(len(modules), 'layer')} "
                f"({modules[0] or 'the file'} first) "
                f"keep {partners} beside their numbers, and {seen.target.label} has no place for these. This is not a "
                f"renaming; {remedy}."
            )
    kinds = [t.name for t in seen.state.tensors if t.encoding is not None and t.encoding.scheme.startswith("per_")]
    if kinds and not any(t.dtype in ("qint8", "quint8", "qint32") for t in seen.target.tensors):
        return (
            f"{counted(len(kinds), 'tensor')} ({kinds[0]} first) are quantised tensors of torch, and "
            f"{seen.target.label} "
            "computes with real numbers: save the dequantised model first."
        )
    return ""


def _is_weight_of(who: str, modules: list[str], seen: Seen) -> bool:
    """Whether these are partners of weights: packed ones lack their weight, scaled ones have few bits."""
    if who != "torch's quantised layers":
        return True
    return any(
        f"{module}.weight" not in seen.tensors or _few_bits(seen.tensors[f"{module}.weight"].dtype) or "quant" in module
        for module in modules
    )


def _few_bits(dtype: str) -> bool:
    known = find_dtype(dtype)
    return known is None or not known.floating or known.itemsize == 1


def _integers(seen: Seen) -> str:
    """Integers on the place of real numbers: whatever they mean, a scale for them is somewhere else."""
    wanted = {t.name: t.dtype for t in seen.target.tensors if t.dtype}
    wrong = []
    for ours, theirs in seen.goes.items():
        tensor = seen.tensors.get(ours)
        goal = find_dtype(wanted.get(theirs) or "")
        if tensor is not None and goal is not None and goal.floating and len(tensor.shape) >= 2:
            known = find_dtype(tensor.dtype)
            if known is not None and not known.floating and known.itemsize == 1:
                wrong.append(ours)
    if not wrong:
        return ""
    return (
        f"{counted(len(wrong), 'tensor')} ({wrong[0]} first) are whole numbers of eight bits where "
        f"{seen.target.label} has "
        "real ones: quantised or packed weights, whose scale the names do not tell. Save dequantised weights first."
    )


def _complex(seen: Seen) -> Iterator[Finding]:
    wanted = {t.name: t.dtype or "" for t in seen.target.tensors}
    found = [
        t.name
        for t in seen.state.tensors
        if t.dtype.startswith("complex") and not wanted.get(seen.goes.get(t.name, ""), "").startswith("complex")
    ]
    if found:
        yield told(
            "complex-tensors",
            Severity.WARNING if any(name in seen.used for name in found) else Severity.NOTICE,
            f"{counted(len(found), 'tensor')} ({found[0]} first) hold complex numbers, and {seen.target.label} has no "
            "complex place for them: usually rotation tables (freqs_cis), which the model computes itself.",
            subjects=found,
            remedy="Leave them out; a real place would lose their imaginary half.",
        )


QUANTISED = Remark(
    id="no-fit", says="Quantised weights with scales beside them: refused, with who packed them.", reason=_quantised
)
INTEGERS = Remark(id="no-fit", says="Whole numbers of eight bits on a real place: refused.", reason=_integers)
COMPLEX = Remark(id="complex-tensors", says="Complex tensors without a complex place.", find=_complex)
