"""What jobs keep is not taken up in another shape than it was kept in: the table of an archive failed on one."""

from __future__ import annotations

import ast

import pytest

from inspector.jobs import job
from inspector.jobs.job import Job
from tests.house_parsed import house, in_one_worker
from tests.jobs.kept_shapes import Shapes, digest_of, lines_of

pytestmark = in_one_worker

MADE = """
from __future__ import annotations
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from pkg.report import Report as Told

def made(bench) -> Told | None: ...
def other(bench) -> int: ...
"""
REPORT = """
from dataclasses import dataclass
from pkg.parts import Part, Parts

@dataclass(frozen=True)
class Report:
    "Of a file."
    name: str
    parts: Parts = ()

@dataclass(frozen=True)
class Apart:
    name: str
"""
PARTS = """
from enum import StrEnum
class Kind(StrEnum):
    ONE = "one"
class Base:
    kind: Kind
class Part(Base):
    size: int
class Further(Part):
    at: float
Parts = tuple[Part, ...]
"""


def _lines(report: str = REPORT, parts: str = PARTS) -> tuple[str, ...]:
    texts = {"pkg.made": MADE, "pkg.report": report, "pkg.parts": parts}
    return Shapes({name: ast.parse(text) for name, text in texts.items()}).of("pkg.made", "made")


def test_the_digest_beside_the_engine_is_of_the_shapes_as_they_are() -> None:
    lines = lines_of({house().module(path): tree for path, tree in house().trees.items()})
    found = digest_of(lines)
    assert found == job._SHAPES, (
        "The shape of a result that jobs keep has changed (a field, a type, a class, or a kind of job). So that "
        f'results of the former shape are not taken up, write _SHAPES = "{found}" in inspector/jobs/job.py, beside '
        "_ENGINE; after a merge, too."
    )


def test_every_result_is_followed_to_its_last_class() -> None:
    lines = "\n".join(lines_of({house().module(path): tree for path, tree in house().trees.items()}))
    # A field, a member of a union, of an alias, what is imported for its type alone, and a kind of error in a row.
    for name in (
        "survey.report.SurveyRow", "graph.types.Box", "events.report.ScalarSeries", "findings.Finding",
        "keys.report.Step", "errors.AddressRefused", "flops.report.ModuleCost", "checkpoint.types.Shape",
    ):  # fmt: skip
        assert f"inspector.{name}: " in lines


@pytest.mark.parametrize(
    ("report", "parts"),
    [
        (REPORT.replace("    name: str\n    parts", "    title: str\n    parts"), PARTS),
        (REPORT.replace("    parts: Parts = ()\n", "    parts: Parts = ()\n    at: int = 0\n"), PARTS),
        (REPORT, PARTS.replace("size: int", "size: float")),
        (REPORT, PARTS.replace('ONE = "one"', 'ONE = "1"')),
        (REPORT, PARTS.replace("    kind: Kind\n", "    kind: Kind\n    was: Kind\n")),
        (REPORT, PARTS.replace("at: float", "at: int")),
        (REPORT, PARTS.replace("tuple[Part, ...]", "list[Part]")),
    ],
    ids=["a name", "a new field", "a type", "a member", "of its base", "of one made of it", "an alias"],
)
def test_what_a_shape_is_changes_the_digest(report: str, parts: str) -> None:
    assert (report, parts) != (REPORT, PARTS)
    assert digest_of(_lines(report, parts)) != digest_of(_lines())


@pytest.mark.parametrize(
    ("report", "parts"),
    [
        (REPORT.replace("Of a file.", "Of another."), PARTS),
        (REPORT.replace("class Apart:\n    name: str", "class Apart:\n    name: int"), PARTS),
        (REPORT.replace("Parts = ()", "Parts = None"), PARTS + "\ndef size_of(part): return 1\n"),
    ],
    ids=["words", "a class of none", "what it begins as"],
)
def test_what_is_no_shape_leaves_it(report: str, parts: str) -> None:
    assert (report, parts) != (REPORT, PARTS)
    assert digest_of(_lines(report, parts)) == digest_of(_lines())


def test_another_shape_is_another_question(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Job(kind="trial", arguments=(1,)).key
    monkeypatch.setattr(job, "_SHAPES", "another")
    assert Job(kind="trial", arguments=(1,)).key != before
