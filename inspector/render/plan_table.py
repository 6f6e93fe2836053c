"""A repair plan tensor by tensor: where each goes, by what right, in which shape. For a table, as CSV, as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from inspector.checkpoint.types import Shape
from inspector.keys.report import RepairPlan, Step, StepKind
from inspector.render.spreadsheet import csv_text
from inspector.units import human_shape

COLUMNS = ("source", "target", "what", "rule", "evidence", "cost", "shape", "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """One step. source, target: "" for what is filled in or left out. shape: of the target, else of the source."""

    source: str
    target: str
    what: str
    rule: str
    evidence: str
    cost: str
    shape: str
    reason: str


def plan_rows(plan: RepairPlan, ours: Mapping[str, Shape], theirs: Mapping[str, Shape | None]) -> tuple[PlanRow, ...]:
    """One row per step in the plan's order, then what stays missing. ours, theirs: shapes by name."""
    rows = [_row(step, ours, theirs) for step in plan.steps]
    what = "stays initial" if plan.partial else "missing"
    for name in plan.missing:
        shape = theirs.get(name)
        rows.append(
            PlanRow(
                source="",
                target=name,
                what=what,
                rule="",
                evidence="",
                cost="",
                shape=human_shape(shape) if shape is not None else "",
                reason="No tensor of the file goes there.",
            )
        )
    return tuple(rows)


def _row(step: Step, ours: Mapping[str, Shape], theirs: Mapping[str, Shape | None]) -> PlanRow:
    have = ours.get(step.source) if step.source is not None else None
    want = theirs.get(step.target) if step.target is not None else None
    if have is not None and want is not None and have != want:
        shape = f"{human_shape(have)} → {human_shape(want)}"
    else:
        known = want if want is not None else have
        shape = human_shape(known) if known is not None else ""
    return PlanRow(
        source=" + ".join(step.sources),
        target=step.target or "",
        what="leave out" if step.kind is StepKind.DROP else step.kind.value,
        rule=" + ".join(filter(None, (step.rule, *step.also))),
        # A tensor that goes nowhere rests on no evidence; its reason says why.
        evidence=step.evidence.value if step.source is not None and step.target is not None else "",
        cost=step.cost.value,
        shape=shape,
        reason=step.reason,
    )


def find_rows(rows: Iterable[PlanRow], words: str) -> tuple[PlanRow, ...]:
    """The rows in which every word occurs in some column, in any case."""
    wanted = words.lower().split()
    if not wanted:
        return tuple(rows)
    return tuple(row for row in rows if _holds(row, wanted))


def _holds(row: PlanRow, wanted: Sequence[str]) -> bool:
    text = f"{row.source} {row.target} {row.what} {row.rule} {row.evidence} {row.cost} {row.shape}".lower()
    return all(word in text for word in wanted)


def rows_csv(rows: Iterable[PlanRow]) -> str:
    """With a header line."""
    return csv_text(COLUMNS, ([getattr(row, column) for column in COLUMNS] for row in rows))
