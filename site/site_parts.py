"""Which modules of the package go into the page: those that its face can reach, less the rooms it has no use for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

#: Where the page's questions begin, and what is imported by a name that is put together (`readers/registry.py`).
ENTRIES = ("inspector.browser", "inspector.readers")
#: Rooms of the app that take torch, a server or a terminal. Whoever asks for one is told what brings it.
NOT_HERE = tuple(
    f"inspector.{room}"
    for room in (
        *("web", "cli", "jobs", "cam", "doctor", "forward", "evaluate", "projector", "events", "giants", "catalogue"),
        *("run", "architectures.families.builders", "architectures.build_timm", "readers.hub", "readers.bucket"),
        *("readers.web_files", "sweep.cluster", "sweep.bucket_blobs", "exports.merge", "exports.training"),
    )
)


def closure(root: Path) -> list[Path]:
    """Every file of the package that the page may import, now or inside a function."""
    seen: dict[str, Path] = {}
    waiting = [(name, False) for entry in ENTRIES for name in _all_of(root, entry)]
    while waiting:
        name, needed = waiting.pop()
        pieces = name.split(".")
        if name in seen or pieces[0] != "inspector" or (not needed and _left_out(name)):
            continue
        path = _file_of(root, name)
        if path is None:
            continue
        seen[name] = path
        waiting += [(".".join(pieces[:n]), True) for n in range(1, len(pieces))]
        # The package's own first file names all that Python may import from it, and imports it when asked.
        waiting += _imported(path) if name != "inspector" else []
    return sorted(seen.values())


def _left_out(name: str) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in NOT_HERE)


def _all_of(root: Path, package: str) -> list[str]:
    folder = root.joinpath(*package.split("."))
    names = [path.relative_to(root).with_suffix("").as_posix().replace("/", ".") for path in folder.rglob("*.py")]
    return [name.removesuffix(".__init__") for name in names]


def _file_of(root: Path, name: str) -> Path | None:
    place = root.joinpath(*name.split("."))
    found = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return found if found.is_file() else None


def _imported(path: Path) -> Iterator[tuple[str, bool]]:
    """(what it imports, whether with itself: what a function imports may be missing until it is called)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for branch in node.body
        for inner in ast.walk(branch)
    }
    later = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        needed = id(node) not in later
        if isinstance(node, ast.Import):
            yield from ((alias.name, needed) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, needed
            yield from ((f"{node.module}.{alias.name}", needed) for alias in node.names)
