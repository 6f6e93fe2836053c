"""Files that hold a piece of every tensor, or nothing of it: flat parameters, placeholders, one rank of several."""

from __future__ import annotations

import re

from inspector.keys.checks.entry import Context, refusing
from inspector.units import counted, human_shape

_FLAT = re.compile(r"(^|\.)_?flat_param(_[0-9]+)?$")
_MOST_RANKS = 512


def _flat(context: Context) -> str:
    """Flat parameters of FSDP: nothing says where each weight begins."""
    if not any(map(_FLAT.search, context.forms)):
        return ""
    flat = [name for name in context.tensors if _FLAT.search(name) and name not in context.places]
    if not flat:
        return ""
    return (
        f"{counted(len(flat), 'tensor')} of the file ({flat[0]} first) {'is' if len(flat) == 1 else 'are'} FSDP's flat "
        "parameters: all weights of a part in one vector, and where each begins is not in the file. Save the full "
        f"state dict in the script that trained it (StateDictType.FULL_STATE_DICT); {context.target.label} needs names "
        "and shapes."
    )


def _placeholders(context: Context) -> str:
    """Empty placeholders of ZeRO-3, on either side, with what to run."""
    empty = [n for n, t in context.tensors.items() if 0 in t.shape and _elements(context, context.goes.get(n, n))]
    empty += [
        x.source.name for x in context.draft.reshaped if 0 in (x.source.shape or ()) and x.source.name not in empty
    ]
    if empty:
        return (
            f"{counted(len(empty), 'tensor')} of the file ({empty[0]} first) have no elements: they are placeholders "
            "of DeepSpeed's ZeRO-3, whose ranks keep the numbers. Run zero_to_fp32.py beside the checkpoint folder, or "
            "open the whole folder here."
        )
    holes = [
        x.target.name for x in context.draft.reshaped if 0 in (x.target.shape or ()) and 0 not in (x.source.shape or ())
    ]
    if holes:
        return (
            f"{counted(len(holes), 'tensor')} of {context.target.label} ({holes[0]} first) have no elements: the model "
            "was built under ZeRO-3 and its weights lie on other ranks. Load inside deepspeed.zero.GatheredParameters, "
            "or take the model's shapes before it is partitioned; the file is not at fault."
        )
    return ""


def _elements(context: Context, name: str) -> bool:
    shape = context.places.get(name)
    return shape is not None and 0 not in shape


def _rank(context: Context) -> str:
    """One rank of tensor parallelism: one dimension of each pair differs, all by one factor, and norms are whole."""
    if not context.misfit or not context.draft.reshaped:
        return ""
    cuts: dict[int, list[str]] = {}
    factors = set()
    for link in context.draft.reshaped:
        ours, theirs = link.source.shape or (), link.target.shape or ()
        if len(ours) != len(theirs):
            return ""
        apart = [i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b]
        if len(apart) != 1 or not ours[apart[0]] or theirs[apart[0]] % ours[apart[0]]:
            return ""
        factors.add(theirs[apart[0]] // ours[apart[0]])
        cuts.setdefault(apart[0], []).append(link.target.name)
    # A network of half the width has half as long norms; those of a rank are whole.
    whole = [x for x in context.draft.placed if len(x.source.shape or ()) == 1 and max(x.source.shape or (0,)) > 1]
    matrices = [name for names in cuts.values() for name in names if name.endswith("weight")]
    if len(factors) != 1 or not whole or len(matrices) < 2:
        return ""
    ranks = factors.pop()
    if not 2 <= ranks <= _MOST_RANKS:
        return ""
    ways = {0: "by rows (column-parallel layers)", 1: "by columns (row-parallel layers)"}
    parts = [
        f"{counted(len(names), 'tensor')} {ways.get(dim, f'along dimension {dim}')}, {names[0]} first"
        for dim, names in sorted(cuts.items())
    ]
    first = context.draft.reshaped[0]
    return (
        f"This looks like one of {ranks} tensor-parallel ranks: cut {' and '.join(parts)}, each to 1/{ranks} "
        f"({first.target.name} is {human_shape(first.source.shape or ())} here and "
        f"{human_shape(first.target.shape or ())} in {context.target.label}). The other {counted(ranks - 1, 'file')} "
        "hold the rest; without them nothing can be repaired."
    )


def _local(context: Context) -> str:
    """One process's part of a distributed tensor."""
    # A replicated tensor, or the only shard, has its numbers under its own name; the others' shape is the whole one's.
    cut = [t for t in context.state.tensors if t.note.startswith(("DTensor", "ShardedTensor")) and t.storage_id is None]
    if not cut:
        return ""
    return (
        f"{counted(len(cut), 'tensor')} of the file ({cut[0].name} first) are one process's part of a distributed "
        f"tensor ({cut[0].note}). Save full_tensor() of each, or convert the whole distributed checkpoint: taking the "
        "part for the tensor would load other numbers."
    )


REFUSALS = (refusing(_flat), refusing(_placeholders), refusing(_local))
RANK = refusing(_rank)
