"""From a checkpoint to a stream: which memory of the file each new tensor needs, and what of it is shared.

A tensor that is the file's own, or a view of it, is cut out of its storage: only the elements it shows are written,
whatever else the storage held. What a step computes is memory of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from inspector.architectures.types import ArchitectureSpec
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.layout import row_major, span_of
from inspector.checkpoint.raw_tensor import NoNumbers, RawTensor, bare_tensor, check_dense, read_raw
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.exports.stream import Block, Entry, Memory, Stream, check_expanded, in_order, own_block
from inspector.keys.apply import check_one, initial_of, make_one, state_of
from inspector.keys.report import RepairPlan
from inspector.keys.versions import renamed_versions


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """A new tensor that is a view of one of the file's storages, in elements."""

    name: str
    info: TensorInfo
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    @property
    def span(self) -> tuple[int, int]:
        """First and one past the last element it shows."""
        return span_of(replace(self.info, shape=self.shape, stride=self.stride, offset=self.offset))


def stream_of_plan(checkpoint: Checkpoint, plan: RepairPlan, *, spec: ArchitectureSpec | None = None) -> Stream:
    """What the plan makes, one tensor at a time. Raises KeysDoNotFit as `apply_plan` does, ReadError for a tensor that
    is no dense one."""
    infos = {t.name: t for t in state_of(checkpoint, plan).tensors}
    initial = initial_of(plan, spec)

    def load(name: str) -> RawTensor:
        return read_raw(checkpoint, infos[name])

    views: list[_View] = []
    blocks: list[Block] = []
    names: list[str] = []
    for step in plan.steps:
        check_one(step, load)
        if step.target is None:
            continue
        names.append(step.target)
        make = partial(make_one, step, load, initial)

        sources = {name: _bare(infos[name]) for name in step.sources}
        try:
            shadow = make_one(step, sources.__getitem__, initial)
        except (NoNumbers, RuntimeError):
            # An operation that looks at numbers: it is made once to know its shape.
            shadow = make()
        info = infos[step.sources[0]] if len(step.sources) == 1 else None
        view = _view_of(step.target, shadow, sources[info.name], info) if info is not None else None
        if view is not None:
            views.append(view)
        else:
            blocks.append(own_block(step.target, shadow.shape, shadow.dtype, make))
    return _stream(checkpoint, names, views, blocks, renamed_versions(plan))


def stream_of_tensors(
    checkpoint: Checkpoint, tensors: Iterable[TensorInfo], versions: tuple[tuple[str, int], ...] = ()
) -> Stream:
    """Tensors of the file as they are, under their own names. Raises ReadError for one that is no dense one."""
    views: list[_View] = []
    blocks: list[Block] = []
    names: list[str] = []
    for info in tensors:
        names.append(info.name)
        shadow = _bare(info)
        view = _view_of(info.name, shadow, shadow, info)
        if view is not None:
            views.append(view)
        else:
            blocks.append(own_block(info.name, info.shape, info.dtype, partial(read_raw, checkpoint, info)))
    return _stream(checkpoint, names, views, blocks, versions)


def _bare(info: TensorInfo) -> RawTensor:
    """A tensor without numbers in the file's own memory: what a step makes of it tells type and shape, and whether the
    result is still that memory."""
    check_dense(info)
    # Values that are worked out (conjugated, negated views) are memory of their own.
    return bare_tensor(info.dtype, info.shape, info.stride, shows=info.name if info.encoding is None else "")


def _view_of(name: str, made: RawTensor, of: RawTensor, info: TensorInfo) -> _View | None:
    """What was made as a view of the tensor it was made of; None when it is memory of its own."""
    if not made.bare or not made.shows:
        return None
    offset = (made.address - of.address) // made.array.itemsize if made.numel else 0
    return _View(name=name, info=info, shape=made.shape, stride=made.stride, offset=info.offset + offset)


def _stream(
    checkpoint: Checkpoint,
    names: list[str],
    views: list[_View],
    blocks: list[Block],
    versions: tuple[tuple[str, int], ...],
) -> Stream:
    places = {name: number for number, name in enumerate(names)}
    groups = [[view] for view in views if not math.prod(view.shape)]
    groups += _groups([view for view in views if math.prod(view.shape)])
    blocks += [_block(checkpoint, group, places) for group in groups]
    for block in blocks:
        check_expanded(block)
    blocks.sort(key=lambda block: places[block.entries[0].name])
    return Stream(names=tuple(names), blocks=tuple(blocks), versions=versions)


def _groups(views: list[_View]) -> list[list[_View]]:
    """Views whose elements overlap, together: those must stay one memory, and no others need to."""
    by_storage: dict[tuple[str, str], list[_View]] = {}
    for view in views:
        by_storage.setdefault((view.info.storage_id or "", view.info.dtype), []).append(view)
    groups: list[list[_View]] = []
    for members in by_storage.values():
        end = -1
        for view in sorted(members, key=lambda v: v.span):
            first, last = view.span
            if first >= end:
                groups.append([])
            groups[-1].append(view)
            end = max(end, last)
    return groups


def _block(checkpoint: Checkpoint, group: list[_View], places: Mapping[str, int]) -> Block:
    group = sorted(group, key=lambda view: places[view.name])
    first, end = min(view.span[0] for view in group), max(view.span[1] for view in group)
    dtype = group[0].info.dtype
    same = {(view.shape, view.stride, view.offset) for view in group}
    numel = math.prod(group[0].shape)
    if len(same) == 1 and numel < end - first:
        # A slice with gaps: written without what lies between.
        info = replace(group[0].info, shape=group[0].shape, stride=group[0].stride, offset=group[0].offset)
        entries = tuple(Entry(name=v.name, shape=v.shape, stride=row_major(v.shape)) for v in group)
        return Block(dtype=dtype, numel=numel, entries=entries, make=_reading(checkpoint, info))
    nbytes = (end - first) * DTYPES[group[0].info.dtype].itemsize
    run = replace(group[0].info, shape=(end - first,), stride=(1,), offset=first, nbytes=nbytes)
    return Block(
        dtype=dtype,
        numel=end - first,
        entries=tuple(
            Entry(name=v.name, shape=v.shape, stride=v.stride, offset=v.offset - first if numel else 0) for v in group
        ),
        make=_reading(checkpoint, run),
    )


def _reading(checkpoint: Checkpoint, info: TensorInfo) -> Callable[[], Memory]:
    return lambda: in_order(read_raw(checkpoint, info))
