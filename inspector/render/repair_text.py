"""A diagnosis for a terminal, in the order of the Repair page: target, sentence or questions, rules, what is left.

Hundreds of keys are folded into patterns, layer3.*.conv1.{weight,bias}; --json has every one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType

from inspector.keys.folding import fold
from inspector.keys.placing.left_over import left_over
from inspector.keys.sentences import without_questions
from inspector.render.text import findings_text, safe, table
from inspector.shell_lines import quote_word
from inspector.units import counted, human_shape, shorten_middle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.keys.report import KeyReport, RepairPlan

_PATTERNS = 8
_EXAMPLE = 60


def keys_text(report: KeyReport) -> RenderableType:
    """Everything a person decides by, nothing twice."""
    says = without_questions(report)
    parts: list[RenderableType] = [f"Target  {safe(report.target)}", *([f"[bold]{safe(says)}[/bold]"] if says else ())]
    if report.refusal and report.refusal != report.says:
        parts.append(f"[bold red]{safe(report.refusal)}[/]")
    plan = report.plan
    if plan is not None:
        parts += [*_questions(plan, report), *_rules(plan)]
    left = [f"{len(report.missing):,} missing", f"{len(report.unexpected):,} unexpected"]
    parts += [
        "",
        # Of names and shapes alone: what a load meets before stands in the sentence above.
        f"By name and shape: {len(report.matched):,} fit, {', '.join(left)}, {len(report.reshaped):,} of another "
        "shape.",
    ]
    parts += _left_over(report)
    asked = {question.question for question in plan.ambiguities} if plan else set()
    told = [finding for finding in report.findings if finding.says not in asked]
    if told or not asked:
        parts += ["", findings_text(told)]
    return Group(*parts)


def _questions(plan: RepairPlan, report: KeyReport) -> list[RenderableType]:
    """Each once, with how it is answered, and the id of its finding, which a program's settings may hold."""
    ids = {finding.says: f" [dim]({finding.id})[/dim]" for finding in report.findings}
    parts: list[RenderableType] = []
    for question in plan.ambiguities:
        parts.append(f"\n[yellow]{safe(question.question)}[/]{ids.get(question.question, '')}")
        for option, means in question.options:
            parts.append(f"  --choose {safe(quote_word(f'{question.id}={option}'))}  {safe(means)}")
    return parts


def _rules(plan: RepairPlan) -> list[RenderableType]:
    parts: list[RenderableType] = []
    if plan.rules:
        made = table("Rule", "Cost", "Tensors", "For example", right=(2,))
        for rule in plan.rules:
            pairs = [f"{_short(a)} -> {_short(b)}" for a, b in rule.examples]
            made.add_row(safe(rule.says), rule.cost.value, f"{rule.count:,}", "\n".join(pairs))
        parts += ["", made]
        parts += [f"[yellow]Only with --accept {rule}[/]" for rule in plan.needs_accept]
    if plan.certificate:
        parts += ["", f"Placed by {', '.join(f'{kind.value}: {count:,}' for kind, count in plan.certificate)}."]
    return parts


def _short(name: str) -> str:
    return safe(shorten_middle(name, _EXAMPLE))


def _left_over(report: KeyReport) -> list[RenderableType]:
    left = left_over(report)
    shapes = {name: (found, expected) for name, found, expected in left.reshaped}
    parts: list[RenderableType] = []
    parts += _folded("Missing", left.missing)
    parts += _folded("Stays at the model's initial value", left.initial)
    parts += _folded("Unexpected", left.unexpected)
    lines = []
    for one in fold(shapes)[:_PATTERNS]:
        found, expected = shapes[one.names[0]]
        more = " and alike" if len({shapes[name] for name in one.names}) > 1 else ""
        says = f"{human_shape(found)} in the file, {human_shape(expected)} in the target{more}"
        lines.append(f"  {_counted(one.count)}{safe(one.pattern)}  [dim]{says}[/dim]")
    if lines:
        hidden = len(shapes) - sum(one.count for one in fold(shapes)[:_PATTERNS])
        parts += [f"[bold]Of another shape[/bold]  {counted(len(shapes), 'tensor')}", *lines, *_hidden(hidden)]
    return parts


def _folded(what: str, names: Sequence[str]) -> list[RenderableType]:
    if not names:
        return []
    folds = fold(names)
    shown = folds[:_PATTERNS]
    lines = [f"  {_counted(one.count)}{safe(one.pattern)}" for one in shown]
    hidden = len(names) - sum(one.count for one in shown)
    return [f"[bold]{what}[/bold]  {counted(len(names), 'key')}", *lines, *_hidden(hidden)]


def _counted(count: int) -> str:
    return f"[dim]{count:>6,}[/dim]  "


def _hidden(hidden: int) -> list[RenderableType]:
    return [f"  [dim]and {hidden:,} more; --json lists every one[/dim]"] if hidden else []
