"""A network that could not be built: what its code raised, as the answer of a pass that never began."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

from inspector.architectures.user_code import Factory
from inspector.doctor.report import Diagnosis, Failure, SourceLine, Sureness, Trace
from inspector.errors import InspectorError
from inspector.findings import FindingKind, Severity
from inspector.side_files import read_text
from inspector.units import counted

FAILED = FindingKind("forward-fails", Severity.ERROR, "The forward pass fails")
_MISSING = re.compile(r"missing (\d+) required (?:positional|keyword-only) arguments?: (?P<names>.+)$")
_ATTRIBUTE = re.compile(r"'(?P<kind>\w+)' object has no attribute '(?P<name>\w+)'")


def not_built(answer: Mapping[str, object], factory: Factory, folder: Path, *, training: bool) -> Trace:
    """answer: what `code_runner.place_of` says; unchecked, since their code ran before it."""
    kind, says = (str(answer.get(name) or "")[:1000] for name in ("kind", "says"))
    number = answer.get("line")
    line: SourceLine | None = None
    if isinstance(number, int) and number > 0 and answer.get("file"):
        file, text = str(answer["file"])[:400], str(answer.get("text") or "")[:400]
        line = SourceLine(file=Path(file).name, line=number, text=text)
    diagnosis = _diagnosed(kind, says, line, factory, _tree(factory, line, folder))
    failure = Failure(stack=(), error=kind, says=says, operator="", operands=(), expects="", line=line)
    return Trace(
        target=factory.text, inputs=(), input_from="", training=training, calls=(), failure=failure,
        diagnosis=diagnosis, findings=(FAILED.found(diagnosis.says, remedy=diagnosis.fix),),
    )  # fmt: skip


def _tree(factory: Factory, line: SourceLine | None, folder: Path) -> ast.Module | None:
    """Of the factory's own file, where the line stands in it."""
    if not factory.is_file or line is None or Path(factory.where).name != line.file:
        return None
    try:
        return ast.parse(read_text(folder / factory.where, "source"))
    except (InspectorError, SyntaxError, ValueError, RecursionError):
        return None


def _diagnosed(kind: str, says: str, line: SourceLine | None, factory: Factory, tree: ast.Module | None) -> Diagnosis:
    where = f" in {line.file}, line {line.line}" if line is not None else ""
    if "before Module.__init__() call" in says:
        written, init = _around(tree, line)
        named = f"{written} sets" if written else "The class of that line sets"
        at = SourceLine(file=line.file, line=init[0], text=init[1]) if line is not None and init[0] else None
        return Diagnosis(
            cause="no-super-init",
            says=f"{named} a layer before nn.Module's own __init__ has run: super().__init__() is missing, or stands "
            "below.",
            fix="Begin its __init__ with the line below.",
            code="super().__init__()",
            change=at,
        )
    missing = _MISSING.search(says)
    if kind == "TypeError" and missing is not None and (line is None or f"{factory.name}" in says):
        names = re.findall(r"'(\w+)'", missing["names"])
        return Diagnosis(
            cause="missing-argument",
            says=f"{factory.name} takes {counted(len(names), 'argument')} that nobody gave: {', '.join(names)}.",
            fix="Give them behind a question mark, or name a function that needs none.",
            code=f"code:{Path(factory.where).name}:{factory.name}?" + "&".join(f"{name}=..." for name in names),
        )
    attribute = _ATTRIBUTE.search(says)
    if kind == "AttributeError" and attribute is not None:
        return Diagnosis(
            cause="no-such-attribute",
            says=f"{attribute['kind']} has no {attribute['name']}{where}, while it is built.",
            fix=f"Set self.{attribute['name']} above that line, or mend the name.",
        )
    if kind in ("ModuleNotFoundError", "ImportError"):
        return Diagnosis(
            cause="name-not-set",
            says=f"An import fails{where}: {says}.",
            fix="Install it in this Python, or take it out.",
        )
    if kind == "NameError":
        return Diagnosis(cause="name-not-set", says=f"{says}{where}.", fix="Import or set it above that line.")
    if line is not None and kind in ("ValueError", "AssertionError", "RuntimeError") and says:
        return Diagnosis(
            cause="own-check",
            says=f"What {line.file}, line {line.line} makes is refused: {says.rstrip('.')}.",
            fix="It says itself what it wants: change what that line gives.",
        )
    return Diagnosis(
        cause="unknown",
        says=f"Building the network raises {kind}{where}: {says.rstrip('.')}.",
        fix="It never came to a forward pass: mend the line below first.",
        sureness=Sureness.UNKNOWN,
    )


def _around(tree: ast.Module | None, line: SourceLine | None) -> tuple[str, tuple[int, str]]:
    """(class, its __init__ by line and text) around a line."""
    for node in ast.walk(tree) if tree is not None and line is not None else ():
        if isinstance(node, ast.ClassDef) and line is not None and node.lineno <= line.line <= (node.end_lineno or 0):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
                    return node.name, (inner.lineno, f"def __init__({ast.unparse(inner.args)}):"[:400])
            return node.name, (node.lineno, f"class {node.name}")
    return "", (0, "")
