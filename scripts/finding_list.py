"""Every finding that the code can make, read from its source: id, severity, and its sentence with gaps.

For docs/findings.md, so that whoever filters by id has the whole list, and none is forgotten.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "inspector"
_IDENT = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+|torchscript")
_SEVERITY = re.compile(r"Severity\.([A-Z]+)")


@dataclass
class Listed:
    """One id. severities: those it may have. says: the first sentence in the code, "…" for what is measured.
    makers: the parts of the package that make it."""

    severities: set[str] = field(default_factory=set)
    says: str = ""
    makers: set[str] = field(default_factory=set)


def listed_findings() -> dict[str, Listed]:
    """By id, sorted."""
    found: dict[str, Listed] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == "FindingKind"):
            if isinstance(call.args[0], ast.Constant):
                entry = found.setdefault(str(call.args[0].value), Listed())
                entry.makers.add(part)
                entry.severities |= set(_SEVERITY.findall(ast.unparse(call)))
                entry.says = f"{ast.literal_eval(call.args[2])}."
        for function, call in _calls(tree):
            arguments = {word.arg: word.value for word in call.keywords if word.arg}
            named = _ids(arguments["id"], function) if "id" in arguments else []
            for ident in named:
                entry = found.setdefault(ident, Listed())
                entry.makers.add(part)
                severity = _SEVERITY.findall(ast.unparse(arguments.get("severity", call)))
                entry.severities |= set(severity or _SEVERITY.findall(ast.unparse(function)))
                if not entry.says and "says" in arguments and len(named) == 1:
                    entry.says = _sentence(arguments["says"])
    return dict(sorted(found.items()))


def _calls(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.Call]]:
    """Each Finding(...), with the innermost function around it."""
    around: dict[int, tuple[ast.AST, ast.Call]] = {}
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        for node in ast.walk(function):  # Outer functions come first in ast.walk, so the innermost is kept.
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                around[id(node)] = function, node
    yield from around.values()


def _ids(value: ast.expr, function: ast.AST) -> list[str]:
    """The constants that the id is one of; for a variable, whatever in the function looks like an id. A repair rule's
    own id (`rule.id`) is none of these: docs/rules.md has those."""
    if isinstance(value, ast.Attribute):
        return []
    within: ast.AST = function if isinstance(value, ast.Name) else value
    texts = [n.value for n in ast.walk(within) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return list(dict.fromkeys(text for text in texts if _IDENT.fullmatch(text)))


def _sentence(value: ast.expr) -> str:
    if isinstance(value, ast.Constant):
        return str(value.value)
    if isinstance(value, ast.JoinedStr):
        return "".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in value.values)
    return ""
