"""What can be noticed is declared once: ids, severities and titles are the same wherever a finding is made."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "inspector"
SAMPLES = ROOT / "sample_models" / "files"
# A rule of the repair is a kind of its own: its id, and a title made of what it says.
OF_RULES = "keys/rules/entry.py"
sys.path.insert(0, str(ROOT / "scripts"))

from finding_kinds import finding_kinds  # noqa: E402

from inspector.compare.missing import KINDS as OF_MISSING  # noqa: E402
from inspector.errors import InspectorError  # noqa: E402
from inspector.limits import DEFAULT_LIMITS  # noqa: E402
from inspector.readers import open_checkpoint  # noqa: E402
from inspector.survey.unclaimed import observe_unclaimed  # noqa: E402
from tests.house_parsed import tree_of  # noqa: E402


def _calls(name: str) -> Iterator[tuple[str, ast.Call, bool]]:
    """(file, call, whether a constant of the module is made by it) of every call of that name."""
    for path in sorted(PACKAGE.rglob("*.py")):
        where = path.relative_to(PACKAGE)
        if where.as_posix() in (OF_RULES, "findings.py"):
            continue
        tree = tree_of(path)
        constants = [statement.value for statement in tree.body if isinstance(statement, ast.Assign)]
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                yield f"{where}:{node.lineno}", node, node in constants


def test_a_finding_is_made_by_its_kind() -> None:
    assert [where for where, _, _ in _calls("Finding")] == []


def test_a_kind_is_a_constant_that_the_list_finds() -> None:
    assert [where for where, _, is_constant in _calls("FindingKind") if not is_constant] == []


def test_an_id_belongs_to_one_kind() -> None:
    counts = Counter(kind.id for kind in finding_kinds())
    assert [ident for ident, n in counts.items() if n > 1] == []
    declared = Counter(
        call.args[0].value for _, call, _ in _calls("FindingKind") if isinstance(call.args[0], ast.Constant)
    )
    assert [ident for ident, n in declared.items() if n > 1] == []
    assert set(declared) <= set(counts)


def test_a_title_is_one_line_without_numbers() -> None:
    for kind in finding_kinds():
        assert 0 < len(kind.title) <= 60 and not kind.title.endswith("."), kind
        assert not any(letter.isdecimal() for letter in kind.title.replace("fp32", "")), kind
        assert kind.severity not in kind.also, kind


@pytest.mark.parametrize("path", sorted(SAMPLES.iterdir()), ids=lambda path: path.name)
def test_every_finding_of_the_sample_files_has_the_title_of_its_kind(path: Path) -> None:
    titles = {kind.id: kind.title for kind in finding_kinds()}
    try:
        findings = open_checkpoint(path).findings
    except InspectorError:
        findings = tuple(observe_unclaimed(path, path.name, DEFAULT_LIMITS))
    for finding in findings:
        assert finding.title == titles[finding.id]


def test_what_a_comparison_takes_for_missing_are_kinds() -> None:
    assert {kind.id for kind in finding_kinds()} >= OF_MISSING
