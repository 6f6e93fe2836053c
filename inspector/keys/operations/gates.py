"""The gates of a recurrent layer in another order, out of a kernel (in, gates x units) or of one of two rows of biases.

The argument is the order, "1-0-2" for Keras's z, r, h as torch's r, z, n; "turned" behind it where the tensor lies
(in, out), "once" where torch has two biases that add up to the file's one: then the rows behind its own are zeros;
"flattened-CHANNELS-PLACES" where its inputs are a picture's and the file has them place by place.
Source: keras layers/rnn/gru.py and lstm.py; torch nn/modules/rnn.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor, join, zeros_like
from inspector.keys.operations.entry import Moment, Operation, Part, argument_of, in_parts
from inspector.keys.report import Step, StepKind

_FLATTENED = "flattened"


def value_of(order: Sequence[int], flag: str = "") -> str:
    """The `value` of a step. flag: "turned", "once", or neither."""
    return f"gates:{'-'.join(map(str, order))}{f',{flag}' if flag else ''}"


def flattened(value: str, channels: int, places: int) -> str:
    """The same for a matrix whose inputs the file has place by place."""
    return f"{value},{_FLATTENED}-{channels}-{places}"


def _read(step: Step) -> tuple[list[int], bool, bool]:
    """(the order, whether it lies (in, out), whether this is the part that the file has not)."""
    order, *flags = argument_of(step).split(",")
    return [int(at) for at in order.split("-")], "turned" in flags, "once" in flags and step.rows[0] > 0


def _picture(step: Step) -> tuple[int, int]:
    """(channels, places) of the picture that it takes in; (1, 0) where it is none."""
    for flag in argument_of(step).split(",")[1:]:
        name, *sizes = flag.split("-")
        if name == _FLATTENED:
            return int(sizes[0]), int(sizes[1])
    return 1, 0


def _exchanged(tensor: RawTensor, a: int, b: int) -> RawTensor:
    """(rows, a x b) as (rows, b x a)."""
    return tensor.reshape((-1, a, b)).permute((0, 2, 1)).reshape(tensor.shape).contiguous()


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    order, turned, beyond = _read(step)
    tensor = tensors[step.sources[0]]
    if beyond:
        return zeros_like(tensor)
    rows = tensor.permute((1, 0)).contiguous() if turned else tensor.rows(*step.rows).reshape(step.shape or ())
    parts = in_parts(rows, len(order))
    made = join([parts[at] for at in order])
    channels, places = _picture(step)
    return _exchanged(made, places, channels) if places else made


def _undo(step: Step, tensor: RawTensor) -> tuple[Part, ...]:
    order, turned, beyond = _read(step)
    if beyond:
        return (Part(None, tensor),)
    channels, places = _picture(step)
    parts = in_parts(_exchanged(tensor, channels, places) if places else tensor, len(order))
    own = join([parts[order.index(at)] for at in range(len(order))])
    if turned:
        return (Part(step.sources[0], own.permute((1, 0)).contiguous()),)
    return (Part(step.sources[0], own, step.rows),)


def _lines(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        order, turned, beyond = _read(step)
        if beyond:
            lines.append(f"made[{step.target!r}] = torch.zeros_like(state[{step.source!r}])")
            continue
        first, last = step.rows
        rows = f"state[{step.source!r}]" + (".t()" if turned else f"[{first}:{last}].reshape({step.shape!r})")
        lines += [
            f"gates = {rows}.chunk({len(order)})",
            f"made[{step.target!r}] = torch.cat([gates[at] for at in {tuple(order)!r}])",
        ]
        channels, places = _picture(step)
        if places:
            lines += [
                f"gates = made[{step.target!r}].reshape(-1, {places}, {channels}).transpose(1, 2)",
                f"made[{step.target!r}] = gates.reshape(-1, {places * channels}).contiguous()",
            ]
    return lines


OPERATION = Operation(
    id="gates",
    kinds=(StepKind.SPLIT,),
    way="gates",
    says="put the gates of {} into torch's order",
    moment=Moment.FILE,
    make=_make,
    undo=_undo,
    lines=_lines,
)
