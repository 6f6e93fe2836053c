"""Parts of a tensor that take turns in it: query, key and value head by head, gate and value row by row.

The argument is "GROUPS,A-B-C", with "turned" and "parts" behind it where they hold. The whole is seen as so many equal
groups of rows; in each, the first part has A rows, the second B. One group is parts below each other; as many groups as
heads is Megatron's and GPT-NeoX's order; one row of each in turn is as many groups as a part has rows. A stack of
experts is one group, in which each is one row. turned: the whole has its last two axes the other way round, as
transformers' Conv1D has them; parts: the parts have.
Source: transformers modeling_gpt_neox.py, modeling_bloom.py, pytorch_utils.py; Megatron-LM checkpointing.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from inspector.checkpoint.raw_tensor import RawTensor, join
from inspector.checkpoint.types import Shape
from inspector.keys.operations.entry import Moment, Operation, Part, argument_of
from inspector.keys.report import Step, StepKind

_TURNED, _PARTS = "turned", "parts"


def value_of(groups: int, runs: Sequence[int], *, turned: bool = False) -> str:
    """The `value` of a step. runs: rows of each part in one group."""
    return f"grouped:{groups},{'-'.join(map(str, runs))}{f',{_TURNED}' if turned else ''}"


def with_turned_parts(value: str) -> str:
    """The same for parts that lie (in, out)."""
    return f"{value},{_PARTS}"


def _read(step: Step) -> tuple[int, list[int], bool, bool]:
    groups, runs, *flags = argument_of(step).split(",")
    return int(groups), [int(n) for n in runs.split("-")], _TURNED in flags, _PARTS in flags


def _turned(tensor: RawTensor) -> RawTensor:
    last = len(tensor.shape) - 1
    return tensor.permute((*range(last - 1), last, last - 1)).contiguous()


def _swapped(shape: Shape) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2])


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    groups, runs, turned, turn_parts = _read(step)
    shape = step.shape or ()
    if step.kind is StepKind.SPLIT:
        whole = tensors[step.sources[0]]
        rows = (_turned(whole) if turned else whole).reshape((groups, sum(runs), -1))
        # (groups, rows, ...) -> (rows, groups, ...), where a part's rows lie below each other.
        mine = rows.permute((1, 0, 2)).rows(*step.rows).permute((1, 0, 2)).contiguous()
        return (_turned(mine.reshape(_swapped(shape))) if turn_parts else mine.reshape(shape)).copy()
    held = [tensors[name] for name in step.sources]
    parts = [(_turned(part) if turn_parts else part).reshape((groups, -1)) for part in held]
    whole = join(parts, axis=1)
    return _turned(whole.reshape(_swapped(shape))) if turned else whole.reshape(shape)


def _undo(step: Step, tensor: RawTensor) -> tuple[Part, ...]:
    groups, runs, turned, turn_parts = _read(step)
    size = sum(runs)
    if step.kind is StepKind.SPLIT:
        mine = tuple(group * size + row for group in range(groups) for row in range(*step.rows))
        return (Part(step.sources[0], _turned(tensor) if turn_parts else tensor, among=mine, turned=turned),)
    whole = (_turned(tensor) if turned else tensor.contiguous()).reshape((groups * size, -1))
    starts = [0, *accumulate(runs)]
    found = []
    for i, name in enumerate(step.sources):
        rows = whole.take([group * size + row for group in range(groups) for row in range(starts[i], starts[i + 1])])
        found.append(Part(name, _turned(rows) if turn_parts else rows))
    return tuple(found)


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        groups, runs, turned, turn_parts = _read(step)
        shape = step.shape or ()
        turn = ".transpose(-1, -2)" if turned else ""
        if step.kind is StepKind.SPLIT:
            rows = f"state[{step.source!r}]{turn}.reshape({groups}, {sum(runs)}, -1)"
            first, last = step.rows
            form, back = (_swapped(shape), ".transpose(-1, -2).contiguous()") if turn_parts else (shape, ".clone()")
            lines.append(f"made[{step.target!r}] = {rows}[:, {first}:{last}].reshape({form!r}){back}")
            continue
        parts = ", ".join(f"state[{name!r}]" for name in step.sources)
        part = "part.t()" if turn_parts else "part"
        whole = f"torch.cat([{part}.reshape({groups}, -1) for part in ({parts})], 1)"
        form = _swapped(shape) if turned else shape
        lines.append(f"made[{step.target!r}] = {whole}.reshape({form!r}){turn}{'.contiguous()' if turned else ''}")
    return lines


OPERATION = Operation(
    id="grouped",
    kinds=(StepKind.SPLIT, StepKind.MERGE),
    way="grouped",
    says="join or take apart {} by runs of rows",
    moment=Moment.FILE,
    make=_make,
    undo=_undo,
    lines=_lines,
)
