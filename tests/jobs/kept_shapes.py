"""The shapes of all results that jobs keep: which classes, which fields of which types, read from the source.

From the source and not from the classes: what is imported for its types alone is not there when the code runs. What is
annotated as `object` or `Any` is not followed.
"""

from __future__ import annotations

import ast
import hashlib
from collections import defaultdict
from functools import cached_property

from inspector.jobs.kinds.table import KINDS

_Named = tuple[str, str]  # (module, name)


class Shapes:
    """trees: {module: its source}."""

    def __init__(self, trees: dict[str, ast.Module]) -> None:
        self._trees = trees
        self._homes = {module: _names_of(tree) for module, tree in trees.items()}

    def of(self, module: str, function: str) -> tuple[str, ...]:
        """One line for each class that a function may give back, deep inside, too; and for its own annotation."""
        maker = self._homes[module][function]
        if not isinstance(maker, ast.FunctionDef) or maker.returns is None:
            raise AssertionError(f"{module}.{function} says not what it gives back.")
        lines = {"": f"{function} -> {ast.unparse(maker.returns)}"}
        left = self._named(maker.returns, module)
        while left:
            at = left.pop()
            name = ".".join(at)
            if name in lines:
                continue
            node = self._homes[at[0]][at[1]]
            lines[name] = f"{name}: {_shape(node)}"
            for part in _parts(node):
                left += self._named(part, at[0])
            left += self._below[at]
        return tuple(sorted(lines.values()))

    def _named(self, node: ast.AST, module: str) -> list[_Named]:
        """What of the package an expression names, where it is defined."""
        found = []
        for one in ast.walk(node):
            name = one.id if isinstance(one, ast.Name) else None
            if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value.isidentifier():
                name = one.value
            home = self._home(module, name) if name else None
            if home is not None:
                found.append(home)
        return found

    def _home(self, module: str, name: str) -> _Named | None:
        """Where a name of a module is defined; None for what is none of the package's, and for what is no type."""
        node = self._homes.get(module, {}).get(name)
        if isinstance(node, ast.ImportFrom):
            taken = next(alias.name for alias in node.names if (alias.asname or alias.name) == name)
            return self._home(node.module or "", taken)
        return (module, name) if node is not None and not isinstance(node, ast.FunctionDef) else None

    @cached_property
    def _below(self) -> dict[_Named, list[_Named]]:
        """{class: those made of it}: a field may hold any of them."""
        found = defaultdict(list)
        for module, names in self._homes.items():
            for name, node in names.items():
                for base in node.bases if isinstance(node, ast.ClassDef) else ():
                    for home in self._named(base, module):
                        found[home].append((module, name))
        return found


def _names_of(tree: ast.Module) -> dict[str, ast.stmt]:
    """{name: the statement that makes it}, of classes, functions, assignments and imports from modules."""
    found: dict[str, ast.stmt] = {}
    # Also below "if TYPE_CHECKING".
    body = [one for node in tree.body for one in (node.body if isinstance(node, ast.If) else (node,))]
    for one in body:
        if isinstance(one, ast.ImportFrom) and not one.level:
            found |= {alias.asname or alias.name: one for alias in one.names}
        elif isinstance(one, ast.ClassDef | ast.FunctionDef):
            found[one.name] = one
        elif isinstance(one, ast.Assign):
            found |= {target.id: one for target in one.targets if isinstance(target, ast.Name)}
        elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            found[one.target.id] = one
    return found


def _parts(node: ast.stmt) -> list[ast.expr]:
    """What of a class or an alias says which types are in it."""
    if isinstance(node, ast.ClassDef):
        return [*node.bases, *(one.annotation for one in node.body if isinstance(one, ast.AnnAssign))]
    value = getattr(node, "value", None)
    return [value] if isinstance(value, ast.expr) else []


def _shape(node: ast.stmt) -> str:
    """Fields in their order with their types, members of an enumeration; without what they begin as."""
    if not isinstance(node, ast.ClassDef):
        return "; ".join(map(ast.unparse, _parts(node)))
    fields = [
        f"{ast.unparse(one.target)}: {ast.unparse(one.annotation)}"
        for one in node.body
        if isinstance(one, ast.AnnAssign)
    ]
    members = [ast.unparse(one) for one in node.body if isinstance(one, ast.Assign)]
    bases = ", ".join(map(ast.unparse, node.bases))
    return f"({bases}) {'; '.join([*fields, *members])}"


def lines_of(trees: dict[str, ast.Module]) -> tuple[str, ...]:
    """Of every kind of job whose result is kept."""
    shapes = Shapes(trees)
    found: set[str] = set()
    for kind in KINDS:
        if kind.kept:
            module, _, function = kind.where.partition(":")
            found |= {f"{kind.id}", *shapes.of(f"inspector.jobs.kinds.{module}", function)}
    return tuple(sorted(found))


def digest_of(lines: tuple[str, ...]) -> str:
    """Short, to be written down."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
