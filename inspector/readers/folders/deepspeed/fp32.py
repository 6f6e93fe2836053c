"""The fp32 weights of a ZeRO save, put together from what every rank holds, by names and shapes from the headers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from inspector.checkpoint.assembled_source import AssembledSource
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.limits import Limits
from inspector.readers.folders.deepspeed.records import ModelFacts, OptimFacts
from inspector.readers.folders.deepspeed.vector import Cut, Run, Vector, cut_groups, cut_parameters, run_of, without

_PIECE_NBYTES = 350
_OUTER = "optimizer_state_dict"


@dataclass(slots=True, kw_only=True)
class Rank:
    """One data-parallel rank: its files by name, opened; None where one is missing."""

    number: int
    model: tuple[str, Checkpoint] | None
    optim: tuple[str, Checkpoint] | None
    optim_name: str


@dataclass(slots=True, kw_only=True)
class Weights:
    """What was put together. made: (name, shape, dtype, source, bytes present, what it is) in the order of the model.
    taken: tensors of rank 0's model file that are whole there. equal: names that share the numbers of another one.
    why_not: why there is nothing. lost: share of each weight that is missing. missing: files."""

    made: list[tuple[str, tuple[int, ...], str, AssembledSource, int, str]] = field(default_factory=list)
    taken: list[tuple[str, TensorInfo, str]] = field(default_factory=list)
    equal: list[tuple[str, str]] = field(default_factory=list)
    why_not: str = ""
    lost: dict[str, float] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def put_together(ranks: Sequence[Rank], facts: ModelFacts, optim: OptimFacts, limits: Limits) -> Weights:
    """The fp32 weights of one tensor-parallel rank. Raises LimitExceeded."""
    found = Weights(missing=[rank.optim_name for rank in ranks if rank.optim is None])
    if facts.expert_partitioned:
        found.why_not = "its experts are partitioned over ranks of their own (AutoEP), which cannot be merged so"
        return found
    if not facts.groups or not optim.key:
        found.why_not = "the files name no parameters (param_shapes), or hold no flat groups"
        return found
    count = sum(len(group) for group in facts.groups)
    is_third = optim.stage == 3 or (optim.stage is None and optim.key == "fp32_flat_groups")
    limits.charge(count * (len(ranks) if is_third else 2) * _PIECE_NBYTES, "The pieces of the fp32 weights")
    flat = [_flat_groups(rank, optim.key) for rank in ranks]
    dtypes = {t.dtype for groups in flat if groups for t in groups}
    if len(dtypes) != 1:
        found.why_not = f"the flat groups are of {len(dtypes)} dtypes"
        return found
    dtype = dtypes.pop()
    cuts, found.why_not = (_third if is_third else _second)(ranks, flat, facts, optim, DTYPES[dtype].itemsize)
    if found.why_not:
        return found
    for cut in cuts:
        _keep(found, cut, dtype, "")
    _frozen(found, ranks, facts, is_third)
    _buffers(found, ranks, facts)
    known = {name for name, *_ in found.made} | {name for name, *_ in found.taken}
    found.equal = [(name, other) for name, other in facts.shared if other in known and name not in known]
    return found


def _flat_groups(rank: Rank, key: str) -> list[TensorInfo] | None:
    """A rank's flat groups in their order, None when its file is missing."""
    if rank.optim is None:
        return None
    by_place: dict[int, TensorInfo] = {}
    for tensor in rank.optim[1].tensors:
        if tensor.path[:2] == (_OUTER, key) and len(tensor.path) <= 3:
            place = tensor.path[2] if len(tensor.path) == 3 else "0"
            if place.isdigit() and len(place) < 8:
                by_place[int(place)] = tensor
    return [by_place[place] for place in sorted(by_place)]


def _runs(rank: Rank, groups: Sequence[TensorInfo]) -> list[Run] | str:
    name, checkpoint = rank.optim if rank.optim is not None else ("", None)
    runs: list[Run] = []
    for tensor in groups:
        run = run_of(tensor, checkpoint, name) if checkpoint is not None else None
        if run is None:
            return f"{'.'.join(tensor.path)[:80]} of {name} is no flat tensor whose bytes lie in the file"
        runs.append(run)
    return runs


def _second(
    ranks: Sequence[Rank],
    flat: Sequence[list[TensorInfo] | None],
    facts: ModelFacts,
    optim: OptimFacts,
    itemsize: int,
) -> tuple[list[Cut], str]:
    counts = {len(groups) for groups in flat if groups is not None}
    if len(counts) != 1:
        return [], "the ranks hold different numbers of flat groups"
    by_rank: list[list[Run] | None] = []
    for rank, groups in zip(ranks, flat, strict=True):
        runs = _runs(rank, groups) if groups is not None else None
        if isinstance(runs, str):
            return [], runs
        by_rank.append(runs)
    vectors: list[Vector] = []
    for number in range(counts.pop()):
        group = facts.groups[number] if number < len(facts.groups) else []
        behind = optim.paddings[number] if optim.paddings is not None and number < len(optim.paddings) else []
        needed = sum(math.prod(shape) for _, shape in group) + sum(behind)
        runs_here = [runs[number] if runs is not None else None for runs in by_rank]
        vectors.append(Vector(without(runs_here, needed, [rank.optim_name for rank in ranks]), itemsize))
    return cut_groups(vectors, facts.groups, optim.paddings, len(ranks))


def _third(
    ranks: Sequence[Rank],
    flat: Sequence[list[TensorInfo] | None],
    facts: ModelFacts,
    optim: OptimFacts,
    itemsize: int,
) -> tuple[list[Cut], str]:
    needed = sum(-(-math.prod(shape) // len(ranks)) for group in facts.groups for _, shape in group)
    vectors: list[Vector] = []
    for rank, groups in zip(ranks, flat, strict=True):
        runs = _runs(rank, groups) if groups is not None else None
        if isinstance(runs, str):
            return [], runs
        gap = [Run(needed, None, says=f"{rank.optim_name} is missing")]
        vectors.append(Vector(runs if runs is not None else gap, itemsize))
    return cut_parameters(vectors, facts.groups)


def _keep(found: Weights, cut: Cut, dtype: str, says: str) -> None:
    k = DTYPES[dtype].itemsize
    numel = math.prod(cut.shape)
    source = AssembledSource(cut.pieces, shape=(numel,), itemsize=k, name=cut.name[:120])
    gone = [piece for piece in cut.pieces if piece.source is None]
    covered = sum(piece.sizes[0] for piece in cut.pieces)
    first = min((piece.offsets[0] for piece in gone), default=min(numel, covered))
    if gone:
        found.lost[cut.name] = sum(piece.sizes[0] for piece in gone) / numel
    found.made.append((cut.name, cut.shape, dtype, source, first * k, says))


def _frozen(found: Weights, ranks: Sequence[Rank], facts: ModelFacts, is_third: bool) -> None:
    """Parameters that are not trained lie in the model files, not in flat groups; stage 3 cuts them up as well."""
    by_rank = [_children(rank, "frozen_param_fragments") for rank in ranks]
    for name, shape in facts.frozen:
        if not is_third:
            whole = by_rank[0].get(name)
            if whole is not None and whole.shape == shape:
                found.taken.append((name, whole, "not trained"))
            continue
        fragments = [fragments.get(name) for fragments in by_rank]
        dtypes = {t.dtype for t in fragments if t is not None}
        if len(dtypes) != 1:
            continue
        dtype = dtypes.pop()
        numel = math.prod(shape)
        runs: list[Run] = []
        for rank, tensor in zip(ranks, fragments, strict=True):
            file, checkpoint = rank.model if rank.model is not None else (f"the model file of rank {rank.number}", None)
            run = run_of(tensor, checkpoint, file) if tensor is not None and checkpoint is not None else None
            runs.append(run or Run(-(-numel // len(ranks)), None, says=f"{file} is missing or has no such fragment"))
        vector = Vector(runs, DTYPES[dtype].itemsize)
        if vector.numel >= numel:
            _keep(found, Cut(name, shape, tuple(vector.pieces(0, numel))), dtype, "not trained")


def _buffers(found: Weights, ranks: Sequence[Rank], facts: ModelFacts) -> None:
    module = _children(ranks[0], "module") if ranks else {}
    for name in dict.fromkeys(facts.buffers):
        tensor = module.get(name)
        if tensor is not None:
            found.taken.append((name, tensor, "buffer, as the model had it"))


def _children(rank: Rank, key: str) -> Mapping[str, TensorInfo]:
    """The tensors directly under one key of a rank's model file, by name."""
    if rank.model is None:
        return {}
    return {t.path[1]: t for t in rank.model[1].tensors if len(t.path) == 2 and t.path[0] == key}
