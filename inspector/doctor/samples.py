"""Does a sample's answer depend on the others in its batch? Tried out: in evaluation it should not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.utils._pytree import tree_map_only

from inspector.doctor.constructors import class_of, line_that_makes, parsed_source, with_argument
from inspector.doctor.modes import run_in_mode
from inspector.doctor.record import Recorder, unwatched
from inspector.doctor.report import SourceLine
from inspector.doctor.reshapes import remedy_of_reshape, told_reshape
from inspector.doctor.trials import MOST_NUMBERS
from inspector.findings import Finding, FindingKind, Severity
from inspector.forward.watch import Call, ForwardError, Listener, tensors_in
from inspector.units import human_shape

MIXED = FindingKind(
    "samples-mixed", Severity.WARNING, "A sample's answer depends on the others in its batch", (Severity.NOTICE,)
)
BATCH_LOST = FindingKind(
    "batch-lost", Severity.NOTICE, "The samples that come out are not those that went in", (Severity.WARNING,)
)
FIXED_BATCH = FindingKind("batch-is-fixed", Severity.NOTICE, "A batch of another size does not run")
# Kernels sum in another order for another batch.
_APART = 1e-3
_APART_HALF = 3e-2


_TIMED = (nn.RNNBase, nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)


class SampleSums(Listener):
    """Of each module's first output, what belongs to the last `count` samples of `batch`, as two sums.

    failed: a tensor of this pass could not be summed. The pass itself goes on, since others look at it, too.
    """

    def __init__(self, count: int, batch: int) -> None:
        self.count, self.batch = count, batch
        self.seen: list[tuple[str, str, float, float] | None] = []
        self.unbatched: set[str] = set()
        self.failed = False

    def leave(self, call: Call) -> None:
        try:
            with unwatched():
                self._add(call)
        except Exception:  # noqa: BLE001 - nested and sparse tensors refuse one thing each
            self.failed = True

    def _add(self, call: Call) -> None:
        given = next(tensors_in((call.args, dict(call.kwargs))), None)
        if isinstance(call.module, _TIMED) and given is not None and given.dim() == 2:
            self.unbatched.add(call.path)
        output = next(tensors_in(call.output), None)
        if output is None or output.dim() == 0 or output.shape[0] != self.batch or not output.is_floating_point():
            self.seen.append(None)
            return
        own = output.detach()[-self.count :].double()
        self.seen.append((call.path, type(call.module).__name__, float(own.sum()), float(own.abs().sum())))


def is_doubled(numel: int) -> bool:
    """Whether an input of so many numbers is also run behind as many others."""
    return 2 * numel <= MOST_NUMBERS


def sums_alone(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> SampleSums | None:
    """What is to hear the pass that `find_mixed` looks at; None where nothing can be told of these samples."""
    tensors = list(tensors_in((tuple(args), dict(kwargs))))
    batch = tensors[0].shape[0] if tensors and tensors[0].dim() > 1 else 0
    if not batch or any(t.dim() == 0 or t.shape[0] != batch or t.is_meta for t in tensors):
        return None
    if isinstance(model, nn.RNNBase | nn.MultiheadAttention) and not model.batch_first:
        return None
    return SampleSums(batch, batch) if is_doubled(sum(t.numel() for t in tensors)) else None


def find_mixed(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    alone: Sequence[Tensor],
    one: SampleSums,
    recorder: Recorder,
    *,
    batched: bool = False,
) -> Iterator[Finding]:
    """The samples once alone and once behind as many others; nothing where that cannot be told.

    alone: what came out of them in evaluation, one: what was heard of that pass. The others stand first: a recurrent
    layer that takes the batch for time hands on from there. recorder: of the pass itself. batched: that dimension 0 is
    the batch is known, and no guess.
    """
    reshapes = [one for one in recorder.reshapes if one.misnamed is None or one.after[0] != one.before[0]]
    over_first, lines = recorder.over_first, recorder.lines_of_calls
    if one.failed:
        return
    tensors, batch = list(tensors_in((tuple(args), dict(kwargs)))), one.batch
    with torch.no_grad():
        doubled = tree_map_only(Tensor, lambda t: torch.cat([_other(t), t]), (tuple(args), dict(kwargs)))
    two = SampleSums(batch, 2 * batch)
    try:
        beside = run_in_mode(model, doubled[0], doubled[1], training=False, listener=two)
    except ForwardError as raised:
        if len(tensors) == 1:
            yield _fixed(raised, batch)
        return
    if len(tensors) == 1 and not any(map(_takes_time_first, model.modules())):
        yield from _lost(tensors[0], alone, beside, batch, recorder.stacked)
    kept = [(a, b[-batch:]) for a, b in zip(alone, beside, strict=False) if _comparable(a, b, batch)]
    if not any(_apart(a, b) for a, b in kept):
        return
    path, kind = _first(one, two)
    if path in one.unbatched:
        return  # Given without a batch: dimension 0 is the sequence.
    module = model.get_submodule(path) if path else model
    says = (
        f"Where dimension 0 of the input is the batch: a sample's answer changes with the others in it, from "
        f"{path or 'the model itself'} ({kind}) on"
    )
    if reshapes:
        yield MIXED.found(
            f"{says}: {told_reshape(reshapes[0])}.", subjects=(path,), remedy=remedy_of_reshape(reshapes[0])
        )
        return
    named = next((o for o in over_first if o.inside == path and o.count == batch), None)
    if named is not None and named.line is not None and not isinstance(module, nn.Softmax | nn.LogSoftmax):
        line = f"({named.line.file}, line {named.line.line}: {named.line.text})"
        yield MIXED.found(
            f"{says}: {named.operator} {line} goes over dimension 0.",
            subjects=(path,),
            remedy=_dimension_meant(named.shape),
        )
        return
    # Whoever gives time first means it so, unless dimension 1 is gone: one answer for each entry of dimension 0.
    meant = _takes_time_first(module) and not _is_one_answer_each(tensors[0], alone, beside, batch)
    calls, made = (lines or {}).get(path, ()), line_that_makes(model, path) if path else None
    where = f", called in {calls[0].file}, line {calls[0].line}: {calls[0].text}" if calls and calls[0] else ""
    at = f" ({made.file}, line {made.line}: {made.text})" if made is not None and _is_torchs(module) else ""
    yield MIXED.found(
        f"{says}{at}{where}.",
        severity=Severity.NOTICE if meant and not batched else None,
        subjects=(path,),
        remedy=_remedy(module, made),
    )


def _dimension_meant(shape: tuple[int, ...]) -> str:
    """Never one of a single entry."""
    ways = [f"dim={i} ({shape[i]:,} entries)" for i in range(1, len(shape)) if shape[i] > 1]
    most = " or ".join(ways[:3]) or "one behind the batch"
    return f"Of {human_shape(shape)} dimension 0 is the batch: {most} is meant."


def _other(tensor: Tensor) -> Tensor:
    turned = tensor.flip(tuple(range(1, tensor.dim()))) if tensor.dim() > 1 else tensor.flip(0)
    return turned * 0.5 if tensor.is_floating_point() else turned


def _comparable(a: Tensor, b: Tensor, batch: int) -> bool:
    if not a.is_floating_point() or a.dim() == 0 or not a.numel():
        return False
    return a.shape[0] == batch and b.shape[0] == 2 * batch and a.shape[1:] == b.shape[1:]


def _apart(a: Tensor, b: Tensor) -> bool:
    if not bool(a.isfinite().all() and b.isfinite().all()):
        return False
    allowed = _APART if a.dtype in (torch.float32, torch.float64) else _APART_HALF
    return float((a.double() - b.double()).abs().max()) > allowed * max(float(a.abs().max()), 1e-6)


def _first(one: SampleSums, two: SampleSums) -> tuple[str, str]:
    """(path, kind) of the first module whose output for these samples is another one."""
    if len(one.seen) == len(two.seen):
        for a, b in zip(one.seen, two.seen, strict=True):
            if a is not None and b is not None:
                size = max(a[3], 1e-6)
                if abs(a[2] - b[2]) > _APART * size or abs(a[3] - b[3]) > _APART * size:
                    return a[0], a[1]
    return "", "its own code"


def _is_torchs(module: nn.Module) -> bool:
    return type(module).__module__.startswith("torch.nn.")


def _takes_time_first(module: nn.Module) -> bool:
    return isinstance(module, nn.RNNBase | nn.MultiheadAttention) and not module.batch_first


def _is_one_answer_each(given: Tensor, alone: Sequence[Tensor], beside: Sequence[Tensor], batch: int) -> bool:
    """Whether dimension 0 of the answer goes with that of the input, and dimension 1 of the input is nowhere left."""
    if not alone or not beside or given.dim() < 2 or not alone[0].dim() or not beside[0].dim():
        return False
    length = given.shape[1]
    goes_with = alone[0].shape[0] == batch and beside[0].shape[0] == 2 * batch
    return goes_with and length > 1 and length not in alone[0].shape[1:]


def _lost(
    given: Tensor, alone: Sequence[Tensor], beside: Sequence[Tensor], batch: int, stacked: Sequence[SourceLine]
) -> Iterator[Finding]:
    """So many samples went in, another number comes out that is no multiple, or one that does not grow with them.

    stacked: lines that stack in dimension 0. A warning where the answer goes with dimension 1 of the input instead.
    """
    if not alone or not beside:
        return
    if batch == 1 and tuple(beside[0].shape) == (2, *alone[0].shape):
        one, two = (human_shape(tuple(t.shape)) if t.dim() else "a single number" for t in (alone[0], beside[0]))
        yield BATCH_LOST.found(
            f"Where dimension 0 of the input is the batch: one sample gives {one}, two give {two}. The batch of one is "
            "lost.",
            evidence=(("in", 1), ("out", alone[0].shape[0] if alone[0].dim() else 0)),
            remedy="squeeze() takes a batch of 1 away, too: name the dimension, as squeeze(-1), or flatten(1).",
        )
        return
    if alone[0].dim() < 2 or alone[0].dim() != beside[0].dim():
        return
    a, b = tuple(alone[0].shape), tuple(beside[0].shape)
    grown = [i for i, (m, n) in enumerate(zip(a, b, strict=True)) if n == 2 * m]
    if a[0] == batch or (0 in grown and a[0] % batch == 0) or any(i and a[i] % batch == 0 for i in grown):
        return
    second = a == b and given.dim() > 2 and a[0] == given.shape[1] > 1
    of_second = f" Its {a[0]:,} are dimension 1 of the input." if second else ""
    line = stacked[0] if stacked and second else None
    by = f" stack ({line.file}, line {line.line}: {line.text}) puts a new dimension in front." if line else ""
    yield BATCH_LOST.found(
        f"Where dimension 0 of the input is the batch: {batch:,} samples go in and {human_shape(a)} comes out"
        + (f", {human_shape(b)} for {2 * batch:,}." if a != b else ", and the same for twice as many.")
        + of_second
        + by,
        severity=Severity.WARNING if second else None,
        evidence=(("in", batch), ("out", a[0])),
        remedy="Behind the batch it is dim=1: torch.stack(..., dim=1)."
        if line
        else "Look at view(-1, ...), flatten and what picks from dimension 0 (out[-1] where the batch stands first).",
    )


def _remedy(module: nn.Module, made: SourceLine | None = None) -> str:
    if _takes_time_first(module):
        code = with_argument(made, "batch_first", "True")
        return f"It takes time first: {code or 'batch_first=True'}, or transpose(0, 1) before and after."
    if isinstance(module, nn.Softmax | nn.LogSoftmax | nn.Softmin):
        return "It goes over the batch: dim=1 or dim=-1, where the classes are."
    if isinstance(module, _NormBase) and not module.track_running_stats:
        return "Without running statistics it measures each batch anew: track_running_stats=True."
    return "Look there for a softmax, mean or flatten over dimension 0, or a layer that takes it for time or channels."


def _fixed(raised: ForwardError, batch: int) -> Finding:
    path = raised.calls[-1].path if raised.calls else ""
    says = str(raised.error).strip().partition("\n")[0][:200]
    return FIXED_BATCH.found(
        f"It runs with a batch of {batch}, and not with {2 * batch}: {path or 'the model itself'} fails ({says}).",
        subjects=(path,),
        remedy="Take the batch from the tensor, x.size(0), where a number is written into the code.",
    )


# "(batch, seq, features)", "B, T, D" in a comment or docstring beside the class.
_BATCH_FIRST = re.compile(
    r"\(?\b(?:batch(?:_size)?|bs?|B|N)\s*[,x]\s*(?:seq\w*|T|L|len\w*|time\w*|steps?|frames?|tokens?|words?|S)\b"
)


def says_batch_first(model: nn.Module) -> bool:
    """Whether the source of the model's class says in words that the batch stands first."""
    found = class_of(model)
    if found is None:
        return False
    parsed = parsed_source(found[0])
    lines = parsed[1][found[1].lineno - 1 : found[1].end_lineno] if parsed is not None else ()
    comments = " ".join(line.partition("#")[2] for line in lines)
    return bool(_BATCH_FIRST.search(f"{comments} {ast.get_docstring(found[1]) or ''}"))
