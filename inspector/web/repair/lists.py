"""Rules, what is left over, and every tensor's way: thousands of keys as a few lines, each unfolded on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from inspector.architectures.types import Target
from inspector.checkpoint.types import StateDict
from inspector.findings import Finding
from inspector.keys.folding import Fold, fold, search
from inspector.keys.placing.left_over import LeftOver
from inspector.keys.report import Cost, Evidence, KeyReport, RepairPlan, RuleUse
from inspector.keys.sentences import without_questions
from inspector.render.json import as_json
from inspector.render.plan_table import PlanRow, find_rows, plan_rows, rows_csv
from inspector.units import counted, human_shape
from inspector.web.components import quiet
from inspector.web.text import escaped, mono, visible
from inspector.web.trees import arrow, badge, table, table_height

_PATTERNS = 60
_UNFOLDED = 200
_WHY = {
    Evidence.EXACT_NAME: "by the same name and shape",
    Evidence.RULE: "by the rules above",
    Evidence.WORDS: "by a name that means the same",
    Evidence.UNIQUE_TOKEN: "by a shape that nothing else has",
    Evidence.ORDER_ONLY: "by their order alone",
    Evidence.SYMMETRIC: "by their order alone, where a neighbour of the same shape would fit as well",
    Evidence.CHOSEN: "as you chose",
}
_SEARCHED = 24  # names, above which a list gets a field to search it


def answer(report: KeyReport) -> str:
    """The diagnosis in a sentence; of open questions, which stand below with their boxes, only that there are some."""
    rest = without_questions(report)
    if rest == report.says:
        return rest
    asked = report.plan.ambiguities if report.plan is not None else ()
    return f"{counted(len(asked), 'question')} to answer first: the file does not tell. {rest}".rstrip()


def show_rules(plan: RepairPlan) -> None:
    """Each rule with its cost, how many keys it explains, and three examples."""
    rows = [_rule_row(use) for use in plan.rules]
    table(("Rule", "Cost", "Keys", "For example"), rows, numeric=(2,), key="rules")


def _rule_row(use: RuleUse) -> tuple[str, ...]:
    examples = "<br>".join(arrow(source, target) if target else mono(source, 70) for source, target in use.examples)
    tone = badge("lossless", "info") if use.cost is Cost.LOSSLESS else badge("lossy", "warning")
    return escaped(use.says), tone, f"{use.count:,}", examples


def certificate(plan: RepairPlan) -> str:
    """Why each placed tensor belongs where it is, in one sentence."""
    return "; ".join(f"{counted(count, 'tensor')} {_WHY[kind]}" for kind, count in plan.certificate)


def show_left_over(left: LeftOver, *, waiting: bool = False, lost: int = 0) -> None:
    """Missing, unexpected and reshaped names, folded; with a search field where there are many.

    waiting: a question is open, which decides about many of them: then they lie behind a click.
    lost: how many tensors the file does not hold whole.
    """
    if left.nothing and lost:
        # No good news, so without its sign.
        st.caption(f"By name nothing is missing; {counted(lost, 'tensor is', 'tensors are')} not whole in the file.")
        return
    if left.nothing:
        quiet("Nothing missing, nothing unexpected, no other shapes.")
        return
    total = len(left.missing) + len(left.initial) + len(left.unexpected) + len(left.reshaped)
    if waiting:
        with st.expander(f"Not placed until that is answered ({total:,})", icon=":material/pending:"):
            _show_lists(left, total)
    else:
        _show_lists(left, total)


def _show_lists(left: LeftOver, total: int) -> None:
    words = ""
    if total > _SEARCHED:
        words = st.text_input(
            "Search the names", placeholder="layer3.*.conv1 bias", key="left-search", icon=":material/search:"
        )
    shapes = {name: f"{human_shape(have)} → {human_shape(want)}" for name, have, want in left.reshaped}
    rows = [
        *_list("key", "missing", left.missing, words),
        *_list("key", "staying at the model's initial value", left.initial, words),
        *_list("key", "unexpected", left.unexpected, words),
        *_list("tensor", "of another shape", tuple(shapes), words, shapes),
    ]
    table(("What", "Which"), rows, key="left-over")


def _list(
    noun: str, what: str, names: Sequence[str], words: str, notes: Mapping[str, str] | None = None
) -> list[tuple[str, str]]:
    if not names:
        return []
    found = search(names, words) if words.strip() else tuple(names)
    label = f"{counted(len(names), noun)} {what}"
    if len(found) < len(names):
        label += f", {len(found):,} found"
    return [(escaped(label), folded_html(fold(found), notes or {}))]


def folded_html(folds: Sequence[Fold], notes: Mapping[str, str]) -> str:
    """Patterns with their counts, as HTML; what a pattern stands for unfolds with a click. notes: by name."""
    lines = [_pattern(one, notes) for one in folds[:_PATTERNS]]
    hidden = sum(one.count for one in folds[_PATTERNS:])
    if hidden:
        lines.append(f'<div class="mi-more">and {hidden:,} more: search for a part of the name</div>')
    return f'<div class="mi-folds">{"".join(lines)}</div>'


def _pattern(one: Fold, notes: Mapping[str, str]) -> str:
    if one.count == 1:
        return f"<div>{mono(one.names[0], 90)}{_note(notes.get(one.names[0], ''))}</div>"
    said = {notes[name] for name in one.names if name in notes}
    inner = "".join(f"<div>{mono(name, 90)}{_note(notes.get(name, ''))}</div>" for name in one.names[:_UNFOLDED])
    if one.count > _UNFOLDED:
        inner += f'<div class="mi-more">and {one.count - _UNFOLDED:,} more</div>'
    note = _note(said.pop() if len(said) == 1 else "")
    return (
        f'<details><summary>{mono(one.pattern, 90)}<span class="mi-count">{one.count:,}</span>{note}</summary>'
        f"<div>{inner}</div></details>"
    )


def _note(text: str) -> str:
    return f'<span class="mi-more"> {escaped(text)}</span>' if text else ""


def show_plan(plan: RepairPlan, state: StateDict, target: Target, stem: str) -> None:
    """Every tensor's way from the file to the target, searchable, and to take along as CSV or JSON."""
    rows = plan_rows(plan, {t.name: t.shape for t in state.tensors}, {t.name: t.shape for t in target.tensors})
    with st.expander(f"Every tensor ({len(rows):,})", icon=":material/table_rows:", key="every-tensor"):
        box, csv, json = st.columns([5, 1, 1], vertical_alignment="bottom")
        words = box.text_input(
            "Search", placeholder="name, rule, evidence or 64x3x7x7", key="plan-search", label_visibility="collapsed"
        )
        found = find_rows(rows, words or "")
        csv.download_button(
            "CSV", lambda: rows_csv(rows), f"{stem}_plan.csv", "text/csv", on_click="ignore", key="plan-csv"
        )
        json.download_button(
            "JSON", lambda: as_json(plan), f"{stem}_plan.json", "application/json", on_click="ignore", key="plan-json"
        )
        if len(found) < len(rows):
            st.caption(f"{len(found):,} of {len(rows):,}")
        st.dataframe(_frame(found), hide_index=True, height=table_height(len(found), 420), key="plan")


def _frame(rows: Sequence[PlanRow]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "In the file": [visible(row.source) for row in rows],
            "In the target": [visible(row.target) for row in rows],
            "What": [row.what for row in rows],
            "Rule": [row.rule for row in rows],
            "Evidence": [row.evidence for row in rows],
            "Shape": [row.shape for row in rows],
        }
    )


def beside(report: KeyReport) -> list[Finding]:
    """The findings that the page does not say already as answer, question, rule or list of names.

    None while a question is open: what is not placed yet would look lost, or like a part of something else.
    """
    plan = report.plan
    if plan is not None and plan.ambiguities:
        return []
    said = {report.says, report.refusal, *(a.question for a in (plan.ambiguities if plan else ()))}
    elsewhere = {"missing-tensors", *(use.id for use in (plan.rules if plan else ()))}
    return [f for f in report.findings if f.says not in said and f.id not in elsewhere]
