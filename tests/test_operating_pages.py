"""What docs/operating.md and the Dockerfile say holds for the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inspector.web.front.paths import LIVE_PATH
from inspector.web.front.variables import VARIABLES, limits_from, number

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
OPERATING = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")


def test_every_variable_that_is_read_is_told_and_the_other_way_round() -> None:
    sources = [ROOT / "app.py", ROOT / "ui.py", *(ROOT / "pages").glob("*.py"), *(ROOT / "inspector").rglob("*.py")]
    table = ROOT / "inspector" / "web" / "front" / "variables.py"
    read = {name for path in sources if path != table for name in _names(path)}
    # Numbers are read by their entry, which has a name of its own there.
    by_entry = set(re.findall(r'^[A-Z_]+ = Variable\(\s*name="(\w+)"', _text(table), re.MULTILINE))
    assert read | by_entry == {one.name for one in VARIABLES}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _names(path: Path) -> set[str]:
    return set(re.findall(r"INSPECTOR_[A-Z_]+", _text(path)))


def test_every_default_is_a_value_that_may_be_set() -> None:
    for one in VARIABLES:
        if one.least is not None:
            assert number(one, {}) == number(one, {one.name: one.default}) == int(one.default)


def test_the_table_of_limits_has_the_defaults() -> None:
    limits = limits_from({})
    assert f"| {limits.connections}, {limits.connections_each} |" in OPERATING
    assert f"| {limits.uploads}, {limits.uploads_each} |" in OPERATING
    assert f"| {limits.upload_idle_seconds} s |" in OPERATING


def test_the_place_for_what_is_not_measured_yet_is_marked() -> None:
    assert "### Memory of the workers" in OPERATING


def test_the_container_is_nobody_and_asks_itself_whether_it_lives() -> None:
    users = re.findall(r"^USER (\S+)", DOCKERFILE, re.MULTILINE)
    assert users == ["10001:10001"] and DOCKERFILE.index("USER") > DOCKERFILE.index("useradd")
    assert f"http://127.0.0.1:8501{LIVE_PATH}" in DOCKERFILE
    assert re.findall(r"^VOLUME (\S+)", DOCKERFILE, re.MULTILINE) == ["/store"]
    # Where packages come from is the builder's to say.
    assert re.findall(r"https?://(?!127\.0\.0\.1)\S+", DOCKERFILE) == []


NEEDED = ("app.py", "ui.py", "pages", "inspector", "sample_models/weights", "requirements.txt", "setup.py", "README.md")


@pytest.mark.parametrize("name", NEEDED)
def test_what_the_image_is_made_of_is_not_left_out(name: str) -> None:
    left_out = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert (ROOT / name).exists() and name not in left_out
