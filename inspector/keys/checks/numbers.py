"""What a few small tensors tell at diagnosis that no name or shape does: norm scales less one, copies that are none.

A diagnosis goes by names and shapes. Where it rests on numbers that are at hand (a file on this machine, little to
read), these are looked at before anything is promised; elsewhere the same is said when the plan is applied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.checkpoint.source import is_distant
from inspector.errors import InspectorError
from inspector.findings import Check, Finding
from inspector.keys.checks.entry import CANNOT_TELL, Context, cannot_tell, refusing
from inspector.keys.placing.roles import NORM_NAME, split_name
from inspector.keys.report import Ambiguity, StepKind
from inspector.units import human_share

LEAVE_OUT, KEEP = "leave-out", "keep"
# What a diagnosis reads of a file at most, for each question.
_MOST_NBYTES = 32 << 20
_MOST_NORMS = 256
# As `health/checks/norm_delta.py` has them: scales of what was added, and their share below zero.
_SCALE, _NEGATIVE, _LEAST = 0.3, 0.2, 2
# Fewer numbers in all say nothing of their signs.
_FEW = 16


def at_hand(context: Context, names: tuple[str, ...]) -> bool:
    """Whether these tensors' numbers are on this machine."""
    held = [context.tensors.get(name) for name in names]
    return not is_distant(context.checkpoint.source) and all(
        tensor is not None and tensor.storage_id is not None and tensor.device != "meta" for tensor in held
    )


def _nbytes(context: Context, names: tuple[str, ...]) -> int:
    return sum(context.tensors[name].nbytes for name in names)


def _unlike(context: Context) -> str:
    """What is left out as a copy, or as computed, and is neither: asked about, since it may be what one wants."""
    from inspector.checkpoint.raw_tensor import read_raw
    from inspector.keys.operations import operation_of

    for step in context.draft.steps:
        if step.kind is not StepKind.DROP or not step.value:
            continue
        operation = operation_of(step)
        names = tuple(dict.fromkeys((*step.sources, *step.beside)))
        if operation.check is None or not operation.otherwise or not at_hand(context, names):
            continue
        if _nbytes(context, names) > _MOST_NBYTES:
            continue
        try:
            wrong = operation.check(step, {name: read_raw(context.checkpoint, context.tensors[name]) for name in names})
        except InspectorError:
            continue  # Reading it fails in the same words where the plan is applied.
        if wrong and _ask(context, step.rule, step.source or "", wrong) == KEEP:
            return wrong
    return ""


def _ask(context: Context, rule: str, name: str, wrong: str) -> str | None:
    return context.questions.ask(
        Ambiguity(
            id=rule,
            question=f"{wrong} Is it to be left out all the same?",
            options=(
                (LEAVE_OUT, "yes: what the target has or computes holds"),
                (KEEP, "no: then the file is another network's"),
            ),
        ),
        place=name,
    )


def _untied(context: Context) -> str:
    """Places that are one tensor in the target, and two different ones in the file."""
    from inspector.checkpoint.raw_tensor import read_raw, same_bits

    placed = {s.target: s.source for s in context.draft.steps if s.kind in (StepKind.KEEP, StepKind.RENAME)}
    for group in context.target.ties:
        names = tuple(dict.fromkeys(source for place in group if (source := placed.get(place))))
        views = {(t.storage_id, t.offset, t.stride) for n in names if (t := context.tensors.get(n))}
        if len(names) < 2 or len(views) < 2 or not at_hand(context, names):
            continue
        if _nbytes(context, names) > 8 * _MOST_NBYTES:
            continue
        try:
            first, *others = (read_raw(context.checkpoint, context.tensors[name]) for name in names)
        except InspectorError:
            continue
        for name, other in zip(names[1:], others, strict=True):
            if not same_bits(first, other):
                return (
                    f"{' and '.join(group[:3])} are one tensor in {context.target.label}, and {names[0]} and {name} "
                    "are different numbers in the file: a load keeps the last of them for both."
                )
    return ""


def _zero_centred(context: Context) -> Iterator[Finding]:
    """Norm scales around zero: stored less one, as Gemma and Megatron's LayerNorm1P do, or a difference to a model."""
    scales = _scales(context)
    if context.plan is None or len(scales) < _LEAST or not at_hand(context, scales):
        return
    from inspector.checkpoint.raw_tensor import read_raw

    number = negative = 0
    square = 0.0
    centred = []
    for name in scales[:_MOST_NORMS]:
        try:
            held = read_raw(context.checkpoint, context.tensors[name]).numbers.astype("float64")
        except InspectorError:
            return
        size = float((held * held).sum())
        if not size:
            continue  # Begins at zero: the last norm of a residual branch.
        if not size < _SCALE**2 * held.size:
            return
        centred.append(name)
        number, negative, square = number + held.size, negative + int((held < 0).sum()), square + size
    if len(centred) < _LEAST or number < _FEW or negative < _NEGATIVE * number:
        return
    yield cannot_tell(
        "norm-scale-offset",
        f"The scales of all {len(centred):,} norms lie around 0 in the file ({centred[0]} first; root mean square "
        f"{(square / number) ** 0.5:.3g}, {human_share(negative / number)} negative): they are stored less 1, as Gemma "
        "and Megatron do, or are a difference to another model. A target whose norms do not add 1 loads them and "
        "answers nonsense.",
        sure=True,
        subjects=centred,
        remedy="If the target's norms multiply by the weight as it is, add 1 to these first.",
    )


def _scales(context: Context) -> tuple[str, ...]:
    """Tensors of the file that go to a norm's scale: a vector called weight or scale in a module called a norm."""
    found = []
    for ours, theirs in context.goes.items():
        module, last = split_name(theirs)
        shape = context.tensors[ours].shape if ours in context.tensors else ()
        if last not in ("weight", "scale", "gamma") or len(shape) != 1 or shape[0] < 2:
            continue
        if NORM_NAME.search(split_name(module)[1].lower()) or f"{module}.running_var" in context.places:
            found.append(ours)
    return tuple(found)


_GEMMA = re.compile(r"(^|\.)(pre_feedforward_layernorm|post_feedforward_layernorm)\.weight$|(^|[._])gemma")


def _gemma(context: Context) -> Iterator[Finding]:
    """Names that are Gemma's on one side and another code's on the other: its norms add 1 to what is stored."""
    if not any(map(_GEMMA.search, context.forms)):
        return
    changed = [
        (a, b) for a, b in context.goes.items() if a != b and bool(_GEMMA.search(a)) is not bool(_GEMMA.search(b))
    ]
    if context.plan is not None and changed:
        yield cannot_tell(
            "norm-scale-offset",
            f"{changed[0][0]} becomes {changed[0][1]}: one of these names is Gemma's, whose norms add 1 to the stored "
            "scale. Whether the other code does is in no name, and a plain norm loads it just as well.",
            sure=True,
            subjects=[a for a, _ in changed],
            remedy="Compare one answer of the model with a known one, or add 1 to the scales of the norms.",
        )


REFUSALS = (refusing(_untied), refusing(_unlike))
NUMBERS = (Check(kinds=(CANNOT_TELL,), find=_zero_centred),)
CHECKS = (Check(kinds=(CANNOT_TELL,), find=_gemma),)
