"""How the package stands, in numbers: the same for any commit, side by side.

    python scripts/house.py [COMMIT ...]

Files and lines of inspector/, functions of more than 60 lines or with nine parameters and more (outside the command
line's signatures), imports inside functions, circles of imports between files (those inside functions and for types
included, and without them), names of files that are used twice, and in how many files what is meant to be known once
is written down.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_LONG, _MANY = 60, 9
# What several parts need to know, and a text that only its home should list.
_ONCE = {
    "segments of wrappers": "_checkpoint_wrapped_module",
    "names of bookkeeping": "total_ops",
}
# A text in the definition of what is one thing under several names.
_HOMES = {
    "augmented or plain map": "augmented_maps if",
    "a file as a model that runs": "plan_to_run(",
}


class House:
    """The package below a folder."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / "inspector"
        self.files = sorted(self.package.rglob("*.py"))
        self.texts = {path: path.read_text(encoding="utf-8") for path in self.files}
        self.trees = {path: ast.parse(text) for path, text in self.texts.items()}

    def module(self, path: Path) -> str:
        """ "inspector.keys.plan" """
        return ".".join(path.relative_to(self.package.parent).with_suffix("").parts).removesuffix(".__init__")

    def functions(self) -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
        for path, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield path, node

    def imported(self, path: Path, *, everywhere: bool = True) -> set[str]:
        """What a file imports, dotted: modules, and the names taken from them. everywhere: as for `imports`."""
        return {name for module, names in self._statements(path, everywhere) for name in {module, *names}}

    def imports(self, path: Path, *, everywhere: bool) -> set[str]:
        """Modules of the package that a file imports. everywhere: inside functions and for types, too."""
        known = self._modules
        found = {name for module, names in self._statements(path, everywhere) for name in names & known or {module}}
        return (found & known) - {self.module(path)}

    def _statements(self, path: Path, everywhere: bool) -> list[tuple[str, set[str]]]:
        return (self._everywhere if everywhere else self._when_imported)[path]

    @cached_property
    def _modules(self) -> set[str]:
        return {self.module(path) for path in self.files}

    @cached_property
    def _everywhere(self) -> dict[Path, list[tuple[str, set[str]]]]:
        return {path: list(_imports_of(ast.walk(tree))) for path, tree in self.trees.items()}

    @cached_property
    def _when_imported(self) -> dict[Path, list[tuple[str, set[str]]]]:
        return {path: list(_imports_of(_at_the_top(tree.body))) for path, tree in self.trees.items()}

    def circles(self, *, everywhere: bool) -> list[set[str]]:
        """Sets of files each of which reaches the others."""
        return _strongly_connected({self.module(p): self.imports(p, everywhere=everywhere) for p in self.files})

    def figures(self) -> dict[str, object]:
        functions = list(self.functions())
        spans = [(node.end_lineno or 0) - node.lineno + 1 for _, node in functions]
        many = [
            (p, n) for p, n in functions if _parameters(n) >= _MANY and "cli" not in p.relative_to(self.package).parts
        ]
        inside = sum(
            isinstance(node, ast.Import | ast.ImportFrom)
            for _, function in functions
            for node in ast.walk(function)
            if node is not function
        )
        names = Counter(path.name for path in self.files if path.name != "__init__.py")
        figures: dict[str, object] = {
            "files": len(self.files),
            "lines": sum(len(text.splitlines()) for text in self.texts.values()),
            "longest file": max(len(text.splitlines()) for text in self.texts.values()),
            "functions": len(functions),
            f"functions over {_LONG} lines": sum(span > _LONG for span in spans),
            f"functions with {_MANY} parameters or more, not of commands": len(many),
            "imports inside functions": inside,
            "circles of imports": len(self.circles(everywhere=False)),
            "circles, through functions and types too": len(self.circles(everywhere=True)),
            "names of files used twice": sum(n > 1 for n in names.values()),
        }
        for what, text in _ONCE.items():
            figures[f"lists of {what}"] = sum(text in texts for texts in self.lists.values())
        for what, text in _HOMES.items():
            figures[f"homes of: {what}"] = sum(text in source for source in self.texts.values())
        return figures

    @cached_property
    def lists(self) -> dict[Path, set[str]]:
        """Every text in a file that is a key or an element of a dict, set, list or tuple."""
        return {path: _listed(tree) for path, tree in self.trees.items()}


def _imports_of(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, set[str]]]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            yield from ((alias.name, set()) for alias in node.names)


def _listed(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        found |= {i.value for i in items if isinstance(i, ast.Constant) and isinstance(i.value, str)}
    return found


def _at_the_top(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Statements that run when a module is imported."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        for inner in ("body", "orelse", "handlers", "finalbody"):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from _at_the_top([n for n in getattr(node, inner, []) if isinstance(n, ast.stmt)])


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def _strongly_connected(graph: dict[str, set[str]]) -> list[set[str]]:
    """Tarjan 1972, without recursion: the components of more than one node."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []
    for start in graph:
        if start in order:
            continue
        work = [(start, iter(sorted(graph[start])))]
        order[start] = low[start] = len(order)
        stack.append(start)
        while work:
            node, rest = work[-1]
            other = next(rest, None)
            if other is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    at = stack.index(node)
                    found += [set(stack[at:])] if len(stack) - at > 1 else []
                    for gone in stack[at:]:
                        low[gone] = len(graph) + 1
                    del stack[at:]
            elif other not in order:
                order[other] = low[other] = len(order)
                stack.append(other)
                work.append((other, iter(sorted(graph[other]))))
            else:
                low[node] = min(low[node], order[other] if other in stack else low[node])
    return found


def figures_at(commit: str) -> dict[str, object]:
    """Of a commit, "" for the files as they are."""
    if not commit:
        return House(ROOT).figures()
    packed = subprocess.run(["git", "archive", commit, "inspector"], cwd=ROOT, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        return House(Path(folder)).figures()


def main(commits: list[str]) -> int:
    columns = {commit or "now": figures_at(commit) for commit in (*commits, "")}
    rows: dict[str, list[object]] = defaultdict(list)
    for figures in columns.values():
        for name, value in figures.items():
            rows[name].append(value)
    print("| | " + " | ".join(columns) + " |\n| --- |" + " --- |" * len(columns))
    for name, values in rows.items():
        print(f"| {name} | " + " | ".join(f"{v:,}" for v in values) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
