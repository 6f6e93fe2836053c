"""Imports point downwards only: faces, render and inspection, slices, architectures, checkpoint, readers' floor."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "inspector"

FLOOR = ("errors", "findings", "progress", "units", "limits", "sharing", "side_files", "new_files", "shell_lines")
SLICES = ("params", "flops", "weights", "keys", "cam", "exports", "pasted")

# A part may import its own files, the floor, and what is named here.
ALLOWED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(FLOOR, ()),
    "checkpoint": (),
    "readers": ("checkpoint",),
    "architectures": ("checkpoint",),
    **dict.fromkeys(SLICES, ("checkpoint", "architectures")),
    "survey": ("checkpoint", "readers", "architectures", "params"),
    "inspection": ("checkpoint", "readers", "architectures", *SLICES),
    "render": ("checkpoint", "architectures", "inspection", "survey", *SLICES),
    "cli": ("checkpoint", "readers", "architectures", "inspection", "survey", "render", *SLICES),
    "web": ("checkpoint", "readers", "architectures", "inspection", "render", *SLICES),
    "__init__": ("checkpoint", "readers", "architectures", "inspection", "survey", "render", *SLICES),
    "__main__": ("cli",),
}
# A slice may see another slice's result types, and export needs what it exports.
EXTRA: dict[str, tuple[str, ...]] = {
    "exports": ("keys", "readers"),
    # An error is explained with the rules of the repair and the verdicts on globals.
    "pasted": ("keys", "readers"),
    "params": (),
}


def _imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def _top_level_imports(path: Path) -> set[str]:
    """Imports that run when the module is imported: not those inside functions or under TYPE_CHECKING."""
    names: set[str] = set()

    def visit(nodes: list[ast.stmt]) -> None:
        for node in nodes:
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module)
            elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.dump(node.test):
                visit(node.body)
                visit(node.orelse)
            elif isinstance(node, ast.Try | ast.With | ast.ClassDef):
                visit(node.body)

    visit(ast.parse(path.read_text(encoding="utf-8")).body)
    return names


def _files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def _part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", _files(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_downwards(path: Path) -> None:
    part = _part(path)
    assert part in ALLOWED, f"{part} is a new part: give it a place in ALLOWED"
    allowed = {part, *FLOOR, *ALLOWED[part], *EXTRA.get(part, ())}
    for name in _imports(path):
        if not name.startswith("inspector."):
            continue
        pieces = name.split(".")
        other = pieces[1]
        if other in allowed or (not (PACKAGE / other).exists() and not (PACKAGE / f"{other}.py").exists()):
            continue
        is_report = len(pieces) > 2 and pieces[2] == "report"
        assert part in SLICES and other in SLICES and is_report, f"{path.name} in {part} imports {name}"


@pytest.mark.parametrize("path", _files(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_streamlit_only_in_web(path: Path) -> None:
    if _part(path) != "web":
        assert not any(name.split(".")[0] == "streamlit" for name in _imports(path))


NO_TORCH = ("checkpoint", "readers", "params", "weights", "pasted", "render", "inspection", "cli", "__init__", *FLOOR)
TORCH_BY_NAME = {"torch_bridge.py"}


@pytest.mark.parametrize("path", _files(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_torch_stays_out_of_the_light_parts(path: Path) -> None:
    if _part(path) in NO_TORCH and path.name not in TORCH_BY_NAME:
        heavy = {name.split(".")[0] for name in _top_level_imports(path)} & {"torch", "torchvision", "thop"}
        assert not heavy, f"{path} imports {heavy} at the top"


def test_files_stay_readable() -> None:
    long = {str(p.relative_to(ROOT)): n for p in _files() if (n := len(p.read_text().splitlines())) > 420}
    assert not long, f"over 420 lines: {long}"


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ("torch", "torchvision", "streamlit", "numpy", "pandas")
    code = f"import inspector, sys; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"
