"""Every reader, rule, method and writer is listed, has a test file, and a line in docs/."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from inspector.cam.methods import METHODS
from inspector.compare.relatives import RELATIVES
from inspector.compare.verdicts import VERDICTS
from inspector.exports.writers import WRITERS
from inspector.keys.rules import RULES
from inspector.projector.methods import METHODS as PROJECTIONS
from inspector.readers import FOLDER_READERS, READERS

ROOT = Path(__file__).resolve().parents[1]
PLACES = (
    ("inspector/readers/formats", "READER", READERS),
    ("inspector/readers/folders", "READER", FOLDER_READERS),
    ("inspector/keys/rules", "RULE", RULES),
    ("inspector/cam/methods", "METHOD", METHODS),
    ("inspector/projector/methods", "METHOD", PROJECTIONS),
    ("inspector/exports/writers", "WRITER", WRITERS),
    ("inspector/compare/verdicts", "VERDICT", VERDICTS),
    ("inspector/compare/relatives", "RELATIVE", RELATIVES),
)


def _modules(folder: str, word: str) -> list[Path]:
    return [p for p in sorted((ROOT / folder).rglob("*.py")) if f"\n{word} = " in p.read_text(encoding="utf-8")]


@pytest.mark.parametrize(("folder", "word", "listed"), PLACES, ids=lambda x: x if isinstance(x, str) else "")
def test_every_entry_is_listed(folder: str, word: str, listed: tuple[object, ...]) -> None:
    assert len(_modules(folder, word)) == len(listed)
    ids = [entry.id for entry in listed]  # type: ignore[attr-defined]
    assert len(set(ids)) == len(ids)


RULE_FILES = _modules("inspector/keys/rules", "RULE")
OTHER_IDS = [entry.id for _, word, listed in PLACES if word != "RULE" for entry in listed]


@pytest.mark.parametrize("path", RULE_FILES, ids=lambda p: p.stem)
def test_every_rule_has_a_test_file(path: Path) -> None:
    assert (ROOT / "tests/keys/rules" / f"test_{path.stem}.py").exists()


@pytest.mark.parametrize("name", OTHER_IDS)
def test_every_other_entry_is_named_in_a_test(name: str) -> None:
    tests = (p for p in (ROOT / "tests").rglob("test_*.py") if p.name != Path(__file__).name)
    assert any(f'"{name}"' in p.read_text(encoding="utf-8") for p in tests)


def test_the_lists_in_docs_are_current() -> None:
    out = subprocess.run([sys.executable, "scripts/build_docs.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert out.returncode == 0, out.stdout + out.stderr
