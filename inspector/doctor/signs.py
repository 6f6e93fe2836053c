"""What the values of a pass that ran through say: the first bad one, channels that never fire, ends of ranges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import nn

from inspector.doctor.record import WIDE_GAP, Recorder
from inspector.doctor.report import CallRecord, DeadChannels, Output, Saturation
from inspector.findings import Finding, FindingKind, Severity
from inspector.units import counted, human_share

NOT_FINITE = FindingKind(
    "output-not-finite", Severity.ERROR, "A module gives NaN or infinite values", (Severity.NOTICE,)
)
ALL_ZEROS = FindingKind(
    "output-all-zeros", Severity.WARNING, "A module gives nothing but zeros", (Severity.NOTICE, Severity.INFO)
)
CONSTANT = FindingKind("output-constant", Severity.WARNING, "A module gives one value everywhere", (Severity.INFO,))
DEAD = FindingKind("dead-channels", Severity.NOTICE, "Most channels of a ReLU are never positive")
SATURATED = FindingKind("saturated", Severity.NOTICE, "A sigmoid, tanh or softmax is at its ends")
TOO_LARGE = FindingKind("beyond-half", Severity.NOTICE, "Values are too large for half precision")
SPREAD = FindingKind(
    "samples-crossed",
    Severity.NOTICE,
    "Each sample is computed with every other by broadcasting",
    (Severity.WARNING,),
)
GIVES_NOTHING = FindingKind("gives-nothing", Severity.WARNING, "The forward gives no tensor")

# Fewer values are zero or equal by chance: the squeeze of a small block.
LEAST_VALUES = 32
_MOST_OF = 0.9
_LEAST_CHANNELS = 16
_HALF = 65504.0
_ONE_INPUT = "One input is little evidence: try others before anything is concluded."


def find_bad_values(model: nn.Module, recorder: Recorder) -> Iterator[Finding]:
    """The first module with NaN or infinities, the first with zeros alone, the first with one value everywhere.

    Modules are looked at in the order in which they ended, so that the innermost comes first.
    """
    ended = in_order_of_end(recorder.calls)
    modules = dict(model.named_modules())
    seen: set[str] = set()
    for call in ended:
        for output in call.outputs:
            kind = _bad(output)
            # Of scores and boxes the scores may be equal.
            if kind == "constant" and any(one.statistics and not one.statistics.constant for one in call.outputs):
                continue
            if kind is None or kind in seen or (kind == "constant" and _needs_no_reason(modules.get(call.path))):
                continue
            seen.add(kind)
            yield _finding(kind, call, output, modules.get(call.path))


def in_order_of_end(calls: Sequence[CallRecord]) -> list[CallRecord]:
    """Those that ended; a call ends after all that was called inside it."""
    found: list[CallRecord] = []
    waiting: list[CallRecord] = []
    for call in calls:
        while waiting and waiting[-1].depth >= call.depth:
            found.append(waiting.pop())
        waiting.append(call)
    return [call for call in (*found, *reversed(waiting)) if call.ended]


def _bad(output: Output) -> str | None:
    values = output.statistics
    if values is None or output.dtype.startswith(("bool", "int", "uint")):
        return None
    if values.nans or values.infinities:
        return "not finite"
    if values.negative_infinities:
        return "negative infinity"
    count = _count(output)
    if count < LEAST_VALUES:
        return None
    if values.zeros == 1.0:
        return "zeros"
    return "constant" if values.constant else None


def _count(output: Output) -> int:
    count = 1
    for size in output.shape:
        count *= size
    return count


def _needs_no_reason(module: nn.Module | None) -> bool:
    """A gate before training gives 0.5 for all that is near zero; an embedding of one token is one row."""
    return module is None or not any(True for _ in module.parameters()) or isinstance(module, nn.Embedding)


def _finding(kind: str, call: CallRecord, output: Output, module: nn.Module | None) -> Finding:
    values = output.statistics
    assert values is not None
    name = f"{call.path or 'The model itself'} ({call.kind})"
    time = f", in its call {call.time}," if call.time > 1 else ""
    count = _count(output)
    zero = _own_zeros(module)
    if kind == "not finite":
        parts = [counted(values.nans, "NaN")] if values.nans else []
        infinite = values.infinities + values.negative_infinities
        parts += [counted(infinite, "infinity", "infinities")] if infinite else []
        return NOT_FINITE.found(
            f"{name}{time} is the first to give {' and '.join(parts)}, of {count:,} values.",
            subjects=(call.path,),
            evidence=(("nans", values.nans), ("infinities", infinite), ("values", count)),
            remedy="Look at its input and weights: a division by 0, log or sqrt of what is not positive, overflow.",
        )
    if kind == "negative infinity":
        return NOT_FINITE.found(
            f"{name}{time} gives {values.negative_infinities:,} times -infinity, of {count:,} values: a mask or log 0.",
            severity=Severity.NOTICE,
            subjects=(call.path,),
            evidence=(("negative_infinities", values.negative_infinities), ("values", count)),
        )
    chosen = ALL_ZEROS if kind == "zeros" else CONSTANT
    what = "nothing but zeros" if kind == "zeros" else f"{values.minimum:g} everywhere"
    return chosen.found(
        f"{name}{time} is the first to give {what} ({count:,} values)"
        + (f": its {zero} is all zeros." if zero else "."),
        severity=Severity.INFO if zero else None,
        subjects=(call.path,),
        evidence=(("values", count),),
        remedy="A layer that starts at zero is often meant so." if zero else "Nothing of the input goes beyond it.",
    )


def _own_zeros(module: nn.Module | None) -> str:
    """The name of a weight of its own that is zero throughout."""
    if module is None:
        return ""
    for inside in module.modules():
        for name, parameter in inside._parameters.items():
            if parameter is None or not parameter.numel() or parameter.is_meta or name.endswith("bias"):
                continue
            if not bool(parameter.detach().any()):
                return name
    return ""


def find_spread(recorder: Recorder, batch: int, *, gives_loss: bool = False) -> Iterator[Finding]:
    """A column and a row as long as the batch that became a square: answers (N, 1) beside targets (N,).

    gives_loss: a single number comes out, so that a difference is most likely a loss's.
    """
    seen = set()
    for one in recorder.spreads:
        if one.count != batch or (one.operator, one.line) in seen:
            continue
        seen.add((one.operator, one.line))
        line = f" ({one.line.file}, line {one.line.line}: {one.line.text})" if one.line is not None else ""
        yield SPREAD.found(
            f"{one.operator} in {one.inside or 'the model itself'}{line} makes {one.count}x{one.count} of "
            f"{one.count}x1 and {one.count}, as many as the batch has samples.",
            severity=Severity.WARNING if gives_loss and one.difference else None,
            subjects=(one.inside,),
            remedy="Where every sample was to meet its own: give both one shape, squeeze(1) or unsqueeze(1).",
        )


def find_dead(dead: Sequence[DeadChannels]) -> Iterator[Finding]:
    """A ReLU most of whose channels are never positive."""
    for one in dead:
        if one.channels >= _LEAST_CHANNELS and one.dead >= _MOST_OF * one.channels:
            yield DEAD.found(
                f"{one.dead:,} of {one.channels:,} channels of {one.path or 'the model itself'} are nowhere positive "
                f"({counted(one.positions, 'value')} each).",
                subjects=(one.path,),
                evidence=(("dead", one.dead), ("channels", one.channels), ("positions", one.positions)),
                remedy=_ONE_INPUT,
            )


def find_saturated(saturations: Sequence[Saturation], last: str, *, unscaled: bool = False) -> Iterator[Finding]:
    """last: path of the module that ended last before the model; its certainty is the answer's own.

    unscaled: a finding says already that the input is. More than two at their ends are one finding.
    """
    ends = [
        one
        for one in saturations
        if one.share > _MOST_OF and one.count >= 8 * LEAST_VALUES and one.path not in ("", last) and not _is_gap(one)
    ]
    folded = ends if len(ends) > 2 else []
    if folded:
        paths = list(dict.fromkeys(one.path for one in folded))
        functions = " and ".join(sorted({one.function for one in folded}))
        shares = sorted(one.share for one in folded)
        yield SATURATED.found(
            f"{human_share(shares[0])} to {human_share(shares[-1])} of the {functions} in {len(paths)} modules "
            f"({paths[0]} to {paths[-1]}) are at the ends of their range.",
            subjects=tuple(paths),
            evidence=(("share", round(shares[0], 4)), ("modules", len(paths))),
            remedy="The range of the input makes it so, most likely."
            if unscaled
            else f"Hardly any gradient goes through there: look at the scale of what comes in. {_ONE_INPUT}",
        )
    for one in saturations:
        if one in folded:
            continue
        if _is_gap(one) and one.gap is not None and one.path not in ("", last):
            yield SATURATED.found(
                f"The softmax in {one.path} gets logits far apart: the greatest of a row stands {one.gap:.0f} above "
                f"the fifth (median), and exp(-{one.gap:.0f}) of it is left.",
                subjects=(one.path,),
                evidence=(("gap", round(one.gap, 3)), ("share", round(one.share, 4)), ("values", one.count)),
                remedy="Is 1/sqrt(d) missing, as attention has it? Hardly any gradient goes through there.",
            )
        elif one.share > _MOST_OF and one.count >= 8 * LEAST_VALUES and one.path not in ("", last):
            yield SATURATED.found(
                f"{human_share(one.share)} of the {one.function} in {one.path} are at the ends of its range.",
                subjects=(one.path,),
                evidence=(("share", round(one.share, 4)), ("values", one.count)),
                remedy=f"Hardly any gradient goes through there. {_ONE_INPUT}",
            )


def _is_gap(one: Saturation) -> bool:
    return one.gap is not None and one.gap > WIDE_GAP and one.count >= 8 * LEAST_VALUES


def greatest_of(calls: Sequence[CallRecord]) -> tuple[str, float] | None:
    """(path, magnitude) of the largest finite value that a module gave; the first where several did."""
    found: tuple[str, float] | None = None
    for call in in_order_of_end(calls):
        for output in call.outputs:
            values = output.statistics
            if (
                values is None
                or values.minimum is None
                or values.maximum is None
                or output.dtype.startswith(("int", "uint"))
            ):
                continue
            size = max(abs(values.minimum), abs(values.maximum))
            if found is None or size > found[1]:
                found = (call.path, size)
    return found


def find_too_large(greatest: tuple[str, float] | None) -> Iterator[Finding]:
    """Values that would be infinite in half precision."""
    if greatest is not None and greatest[1] > _HALF:
        yield TOO_LARGE.found(
            f"{greatest[0] or 'The model itself'} gives values up to {greatest[1]:.3g}; float16 ends at {_HALF:,.0f}.",
            subjects=(greatest[0],),
            evidence=(("greatest", greatest[1]),),
            remedy="Use bfloat16 or float32, or look for a norm that is missing.",
        )
