"""A matrix whose bias is as long as its inputs, or as neither side: stored turned, or beside another layer's bias.

torch's Linear keeps (out, in) beside a bias of out; TensorFlow, Flax and GPT-2's Conv1D keep (in, out). A file keeps
one of the two throughout, so that the few that differ were turned, or not turned, in a conversion.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import also, shown
from inspector.health.roles import Role
from inspector.health.subject import Examined, Subject
from inspector.units import human_shape

BIAS_UNFIT = FindingKind("bias-does-not-fit", Severity.WARNING, "A matrix and its bias do not fit together")

# So many matrices lie the one way before another is called turned, and at most this part of all.
_LEAST, _MOST = 3, 0.25
_TURNED = "the transposed shape would fit, as it does with"
_NEITHER = "neither side fits, and one does with"


def _find(subject: Subject) -> Iterator[Finding]:
    fits: dict[str, list[tuple[Examined, Examined]]] = {"rows": [], "columns": [], "neither": []}
    biases = {one.module: one for one in subject.called(lambda last: last == "bias")}
    for one, _ in subject.measured(Role.LINEAR) if biases else ():
        bias = biases.get(one.module) if one.last == "weight" and len(one.tensor.shape) == 2 else None
        if bias is None or len(bias.tensor.shape) != 1:
            continue
        rows, columns = one.tensor.shape
        side = "rows" if bias.tensor.numel == rows else "columns" if bias.tensor.numel == columns else "neither"
        # A square one says nothing.
        if rows != columns or side == "neither":
            fits[side].append((one, bias))
    turned, usual = sorted((fits["rows"], fits["columns"]), key=len)
    for found, how in ((turned, _TURNED), (fits["neither"], _NEITHER)):
        if found and len(usual) >= _LEAST and len(found) <= _MOST * (len(usual) + len(found)):
            yield _finding(found, len(usual), how)


def _finding(found: list[tuple[Examined, Examined]], usual: int, how: str) -> Finding:
    one, bias = found[0]
    names = [each.name for each, _ in found]
    return BIAS_UNFIT.found(
        f"{shown(one.name)} is {human_shape(one.tensor.shape)} beside a bias of {bias.tensor.numel:,}: {how} "
        f"{usual:,} others of the file{also(names)}.",
        subjects=names,
        evidence=(
            *(("matrices", len(found)), ("others", usual), ("bias", bias.tensor.numel)),
            *(("rows", one.tensor.shape[0]), ("columns", one.tensor.shape[1])),
        ),
        remedy="Conversions from TensorFlow, Flax and GPT-2's Conv1D turn every matrix, and torch keeps outputs first: "
        "this one was turned once too often, or not at all, or one of the two belongs to another layer. A square "
        "matrix would be just as wrong, and nothing would show it.",
    )


CHECK = Check(kinds=(BIAS_UNFIT,), find=_find)
