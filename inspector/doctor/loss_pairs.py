"""Does what a model ends in fit the loss of the same file? A softmax before cross entropy trains, and badly.

The end is known from the pass that was watched, the losses by the source alone: nothing of it is run for this.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inspector.doctor.constructors import Function, called_name
from inspector.doctor.observations import Loss
from inspector.doctor.report import End, SourceLine
from inspector.findings import Finding, FindingKind, Severity

MISMATCH = FindingKind("loss-mismatch", Severity.WARNING, "The loss takes other values than the model gives")

_LOSSES = {
    "CrossEntropyLoss": "cross_entropy", "cross_entropy": "cross_entropy", "NLLLoss": "nll_loss",
    "nll_loss": "nll_loss", "BCELoss": "binary_cross_entropy", "binary_cross_entropy": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "binary_cross_entropy_with_logits": "binary_cross_entropy_with_logits",
    "KLDivLoss": "kl_div", "kl_div": "kl_div",
    "MultiLabelSoftMarginLoss": "binary_cross_entropy_with_logits",
}  # fmt: skip
_NAMES = {
    "cross_entropy": "CrossEntropyLoss", "nll_loss": "NLLLoss", "binary_cross_entropy": "BCELoss",
    "binary_cross_entropy_with_logits": "BCEWithLogitsLoss", "kl_div": "KLDivLoss",
}  # fmt: skip
_TWICE = (
    "{loss} takes logits and applies {inside} itself: applied twice, gradients fade and the loss stays near its start."
)
# loss -> end of the model -> (what is wrong, remedy). What is not here fits.
_WRONG: dict[str, dict[str, tuple[str, str]]] = {
    "cross_entropy": {
        "softmax": (_TWICE, "Take the softmax out of the model; apply it to what is shown, not to what is trained."),
        "sigmoid": (_TWICE, "Take the sigmoid out; for several labels at once BCEWithLogitsLoss."),
        "relu": ("{loss} takes logits, and negative ones are cut off by the relu.", "Take the last relu out."),
    },
    "binary_cross_entropy_with_logits": {
        "sigmoid": (_TWICE, "Take the sigmoid out of the model, or use BCELoss."),
        "softmax": (_TWICE, "Take the softmax out of the model."),
        "relu": ("{loss} takes logits, and negative ones are cut off by the relu.", "Take the last relu out."),
    },
    "nll_loss": {
        "softmax": (
            "{loss} takes log-probabilities: of plain ones it is the negative mean and no likelihood.",
            "log_softmax for softmax, or logits and CrossEntropyLoss.",
        ),
        "linear": (
            "{loss} takes log-probabilities, and logits come: it falls without end.",
            "F.log_softmax(x, dim=1) at the end, or CrossEntropyLoss, which has it inside.",
        ),
        "sigmoid": ("{loss} takes log-probabilities.", "log_softmax at the end, or logits and CrossEntropyLoss."),
    },
    "binary_cross_entropy": {
        "linear": (
            "{loss} takes probabilities from 0 to 1, and logits come: beyond 0 to 1 it raises an error.",
            "BCEWithLogitsLoss, which takes logits, or a sigmoid at the end.",
        ),
        "log_softmax": ("{loss} takes probabilities from 0 to 1.", "A sigmoid at the end."),
    },
    "kl_div": {
        "softmax": ("{loss} takes log-probabilities first.", "F.log_softmax(x, dim=-1) for its first argument."),
        "linear": ("{loss} takes log-probabilities first.", "F.log_softmax(x, dim=-1) for its first argument."),
    },
}  # fmt: skip
_ENDS = {
    "softmax": "softmax", "Softmax": "softmax", "log_softmax": "log_softmax", "LogSoftmax": "log_softmax",
    "sigmoid": "sigmoid", "Sigmoid": "sigmoid",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Use:
    """A loss in a source. made: by what it was called itself ("softmax"), None where that is not told."""

    loss: str
    line: SourceLine
    made: str | None = None
    at: int = 0


def judged(loss: str, end: str) -> tuple[str, str] | None:
    """(what is wrong, remedy) of a loss beside the end of a model; None where they fit or nothing is known."""
    found = _WRONG.get(_LOSSES.get(loss, loss), {}).get(end)
    if found is None:
        return None
    name = _NAMES.get(_LOSSES.get(loss, loss), loss)
    inside = "log_softmax" if name == "CrossEntropyLoss" else "sigmoid"
    return found[0].format(loss=name, inside=inside), found[1]


def find_mismatch(text: str, file: str, ends: Sequence[End]) -> Iterator[Finding]:
    """One finding where no loss of the file fits any of the model's ends, or a line itself puts both together."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    uses = list(_uses(tree, text.splitlines(), file))
    for use in uses:
        wrong = judged(use.loss, use.made or "")
        if wrong is not None:
            yield MISMATCH.found(
                f"{use.made} goes into {_NAMES[use.loss]} ({_at(use.line)}). {wrong[0]}",
                evidence=_evidence(use.line),
                remedy=wrong[1].replace("out of the model", "out there"),
            )
            return
    plain = [use for use in uses if use.made is None]
    known = [end for end in ends if end.function]
    if not plain or not known or len(known) < len(ends):
        return
    pairs = [(use, end, judged(use.loss, end.function)) for use in plain for end in known]
    logged = any(called_name(n) in ("log", "log_softmax", "logsigmoid") for n in ast.walk(tree))
    if any(wrong is None or (logged and use.loss in ("nll_loss", "kl_div")) for use, _, wrong in pairs):
        return
    use, end, wrong = pairs[0]
    assert wrong is not None
    what = "a layer without activation (logits)" if end.function == "linear" else end.function
    where = f" ({_at(end.line)})" if end.line is not None else ""
    yield MISMATCH.found(
        f"The model ends in {what}{where}, and the loss is {_NAMES[use.loss]} ({_at(use.line)}). {wrong[0]}",
        subjects=(end.path,),
        evidence=_evidence(use.line),
        remedy=wrong[1],
    )


def find_mismatch_inside(losses: Sequence[Loss]) -> Iterator[Finding]:
    """Of losses that the forward itself calls."""
    for one in losses:
        wrong = judged(one.function, one.end.function) if one.end is not None else None
        if wrong is None or one.end is None:
            continue
        what = "a layer without activation (logits)" if one.end.function == "linear" else one.end.function
        made = f" ({_at(one.end.line)})" if one.end.line is not None else ""
        where = f" ({_at(one.line)})" if one.line is not None else ""
        yield MISMATCH.found(
            f"{one.function}{where} is given what {what} made{made}. {wrong[0]}",
            subjects=(one.end.path,),
            evidence=() if one.line is None else _evidence(one.line),
            remedy=wrong[1],
        )
        return


def _at(line: SourceLine) -> str:
    return f"{line.file}, line {line.line}: {line.text}"


def _evidence(line: SourceLine) -> tuple[tuple[str, str | int | float | bool], ...]:
    return (("file", line.file), ("line", line.line), ("text", line.text))


def _uses(tree: ast.Module, lines: list[str], file: str) -> Iterator[_Use]:
    """Where a loss is made or called. What is called of a variable that holds one is judged where it is called."""
    held: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and called_name(node.value) in _LOSSES:
            for target in node.targets:
                held[ast.unparse(target)] = _LOSSES[called_name(node.value)]
    scopes = [n for n in ast.walk(tree) if isinstance(n, Function)] + [tree]
    seen: set[int] = set()
    for scope in scopes:
        for node in ast.walk(scope):
            if not isinstance(node, ast.Call) or id(node) in seen:
                continue
            seen.add(id(node))
            name = called_name(node)
            line = SourceLine(file=file, line=node.lineno, text=lines[node.lineno - 1].strip()[:400])
            by_name = held.get(ast.unparse(node.func))
            if name in _LOSSES and name[:1].isupper():
                yield _Use(_LOSSES[name], line)
            elif (by_name or name in _LOSSES) and node.args:
                made = _made_by(node.args[0], scope, node.lineno)
                yield _Use(by_name or _LOSSES[name], line, made)


def _made_by(value: ast.expr, scope: ast.AST, before: int, depth: int = 3) -> str | None:
    """softmax, where the argument of a loss was made by it in the same function."""
    name = called_name(value)
    if name in _ENDS:
        return _ENDS[name]
    # nn.Softmax(dim=1)(x)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Call) and called_name(value.func) in _ENDS:
        return _ENDS[called_name(value.func)]
    if isinstance(value, ast.Name) and depth:
        given = [
            n.value
            for n in ast.walk(scope)
            if isinstance(n, ast.Assign)
            and n.lineno < before
            and any(isinstance(t, ast.Name) and t.id == value.id for t in n.targets)
        ]
        if given:
            last = max(given, key=lambda one: one.lineno)
            return _made_by(last, scope, last.lineno, depth - 1)
    return None
