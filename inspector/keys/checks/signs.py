"""Kernels without a negative number: squares, importances, masks, scales and counts look so, no trained weights do.

Training starts kernels around zero, and of a few dozen numbers around zero some are negative. So where every kernel
that is looked at has numbers of one sign alone, the file holds something about the weights, whatever its names say.
A network whose weights are kept positive on purpose (monotonic, input-convex) looks the same: that is asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.checkpoint.dtypes import find_dtype
from inspector.errors import InspectorError
from inspector.findings import Check, Finding
from inspector.keys.checks.entry import CANNOT_TELL, Context, cannot_tell, refusing
from inspector.keys.checks.kernels import MOST_KERNELS, numbers_in
from inspector.keys.checks.numbers import at_hand
from inspector.keys.report import Ambiguity
from inspector.units import counted

WEIGHTS, OTHER = "weights", "other-numbers"
# Of numbers around zero this many are never of one sign by chance: 2 ** -63.
_LEAST_NUMEL = 64
# One kernel may be a table of positions or distances, or a filter that averages.
_LEAST_KERNELS = 2


def _asked(context: Context) -> str:
    """Where something was read into names, the user says whether it is the weights; nobody doubts plain names."""
    says = "" if _is_plain(context) else _one_sign(context)
    return ask_whether_weights(
        context, "one-sign", says, yes="yes, this network keeps them on one side of zero", place="kernels"
    )


def ask_whether_weights(context: Context, ident: str, says: str, *, yes: str, place: str = "") -> str:
    """Why it is no repair where the user answers that these are not the weights; "" else, and where nothing is said."""
    if not says:
        return ""
    answer = context.questions.ask(
        Ambiguity(
            id=ident,
            question=f"{says} Are they the weights?",
            options=((WEIGHTS, yes), (OTHER, "no: then there is nothing to load")),
        ),
        place=place,
    )
    return f"{says} They are not the weights." if answer == OTHER else ""


def _told(context: Context) -> Iterator[Finding]:
    if context.plan is not None and _is_plain(context) and (says := _one_sign(context)):
        yield cannot_tell(
            "one-sign",
            says,
            sure=True,
            remedy="Load it only if this network keeps its weights on one side of zero; else look for the file of the "
            "weights themselves.",
        )


def _is_plain(context: Context) -> bool:
    return all(ours == theirs for ours, theirs in context.goes.items())


def _one_sign(context: Context) -> str:
    """What is so of the kernels, "" where one has both signs, or too little can be looked at."""
    kernels = sorted(
        (
            tensor
            for name in context.goes
            if (tensor := context.tensors.get(name)) is not None
            and len(tensor.shape or ()) > 1
            # A row of numbers with axes of 1 is no kernel: the lengths that weight norm keeps are never negative.
            and (numel := tensor.numel) >= _LEAST_NUMEL
            and numel > max(tensor.shape)
            and (kind := find_dtype(tensor.dtype)) is not None
            and kind.floating
            and "complex" not in tensor.dtype
        ),
        key=lambda tensor: tensor.nbytes,
    )[:MOST_KERNELS]
    if len(kernels) < _LEAST_KERNELS or not at_hand(context, tuple(one.name for one in kernels)):
        return ""
    positive, first, seen = True, "", 0
    try:
        for tensor, held in numbers_in(context, kernels):
            low, high = float(held.min()), float(held.max())
            if not (low >= 0 or high <= 0):
                return ""
            if low == high:
                continue  # Not trained yet, or a mask that keeps all.
            if seen and positive is not (low >= 0):
                return ""
            positive, seen = low >= 0, seen + 1
            first = first or f"{tensor.name} first, {low:.3g} to {high:.3g}"
    except InspectorError:
        return ""
    if seen < _LEAST_KERNELS:
        return ""
    side = "negative" if positive else "positive"
    return (
        f"None of the {counted(seen, 'kernel')} that were looked at has a {side} number ({first}): squares, "
        "importances, masks and scales look so, and no trained weights do."
    )


REFUSALS = (refusing(_asked),)
NUMBERS = (Check(kinds=(CANNOT_TELL,), find=_told),)
