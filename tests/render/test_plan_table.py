"""A plan as rows, and the rows as CSV that no spreadsheet runs."""

from __future__ import annotations

import csv
import io

from inspector.keys.report import Cost, Evidence, RepairPlan, Step, StepKind
from inspector.render.plan_table import PlanRow, find_rows, plan_rows, rows_csv


def _step(kind: StepKind, source: str | None, target: str | None, **more: object) -> Step:
    given = {"rule": "", "reason": "Why.", "cost": Cost.LOSSLESS, "evidence": Evidence.EXACT_NAME} | more
    return Step(kind=kind, source=source, target=target, **given)  # type: ignore[arg-type]


def _plan(*steps: Step, **more: object) -> RepairPlan:
    given = {
        "target": "t",
        "state_dict": (),
        "steps": steps,
        "rules": (),
        "ambiguities": (),
        "needs_accept": (),
        "missing": (),
        "complete": True,
    } | more
    return RepairPlan(**given)  # type: ignore[arg-type]


def test_every_step_is_a_row_and_what_is_missing_too() -> None:
    plan = _plan(
        _step(StepKind.RENAME, "module.a", "a", rule="wrapper-segment", also=("index-shift",), evidence=Evidence.RULE),
        _step(StepKind.PERMUTE, "k", "w", axes=(1, 0)),
        _step(StepKind.MERGE, "q", "qkv", more=("k2", "v")),
        _step(StepKind.DROP, "extra", None, cost=Cost.LOSSY, evidence=Evidence.CHOSEN),
        missing=("fc.weight",),
    )
    rows = plan_rows(plan, {"module.a": (2,), "k": (3, 2), "extra": ()}, {"a": (2,), "w": (2, 3), "fc.weight": (4, 2)})
    assert [(r.source, r.target, r.what, r.shape) for r in rows] == [
        ("module.a", "a", "rename", "2"),
        ("k", "w", "permute", "3x2 → 2x3"),
        ("q + k2 + v", "qkv", "merge", ""),
        ("extra", "", "leave out", "scalar"),
        ("", "fc.weight", "missing", "4x2"),
    ]
    assert rows[0].rule == "wrapper-segment + index-shift" and rows[0].evidence == "rule"
    assert rows[3].evidence == "" and rows[3].cost == "lossy"
    assert plan_rows(_plan(missing=("x",), partial=True), {}, {"x": None})[0].what == "stays initial"


def test_searching_looks_in_every_column() -> None:
    rows = plan_rows(_plan(_step(StepKind.KEEP, "a.w", "a.w"), _step(StepKind.DROP, "b", None)), {"a.w": (7, 7)}, {})
    assert [r.source for r in find_rows(rows, "7x7 EXACT")] == ["a.w"]
    assert [r.source for r in find_rows(rows, "leave")] == ["b"]
    assert len(find_rows(rows, "")) == 2
    assert find_rows(rows, "nothing here") == ()


def test_names_of_a_hostile_file_are_no_formulas() -> None:
    row = PlanRow(source="=1+1", target="@x", what="", rule="", evidence="", cost="", shape="", reason='a "b", c\nd')
    (head, read) = csv.reader(io.StringIO(rows_csv([row])))
    assert head[0] == "source"
    assert read[0] == "'=1+1" and read[1] == "'@x"
    assert read[-1] == 'a "b", c\nd'
