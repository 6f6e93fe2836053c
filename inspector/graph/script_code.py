"""TorchScript code as Python's syntax trees: parsed when it is asked for, never compiled.

The text is what torch/csrc/jit/serialization/python_print.cpp writes, which is Python's grammar nearly always.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

from inspector.checkpoint.types import SourceText
from inspector.readers.formats.script.code import module_name

_MEMBER_NBYTES = 2_000_000
_ALL_NBYTES = 3_000_000


@dataclass(slots=True, eq=False)
class CodeClass:
    """constants: of its Final attributes. methods: by name."""

    constants: dict[str, object] = field(default_factory=dict)
    methods: dict[str, ast.FunctionDef] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Member:
    classes: dict[str, CodeClass] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)


class Code:
    """Finds classes and functions by their dotted names. problems: members that could not be parsed, and why."""

    def __init__(self, texts: Sequence[SourceText]) -> None:
        self.problems: list[str] = []
        self._texts = {module_name(text.name): text for text in texts}
        self._members: dict[str, _Member] = {}
        self._left = _ALL_NBYTES

    def find_class(self, dotted: str) -> CodeClass | None:
        """ "__torch__.a.B"."""
        module, _, name = dotted.rpartition(".")
        return self._member(module).classes.get(name)

    def find_function(self, dotted: str) -> ast.FunctionDef | None:
        """ "__torch__.a.f"."""
        module, _, name = dotted.rpartition(".")
        return self._member(module).functions.get(name)

    def _member(self, module: str) -> _Member:
        known = self._members.get(module)
        if known is not None:
            return known
        member = _Member()
        text = self._texts.get(module)
        if text is not None:
            self._members[module] = member
            problem = self._parse(text, member)
            if problem:
                self.problems.append(f"{text.name[:120]}: {problem}")
        return member

    def _parse(self, text: SourceText, member: _Member) -> str:
        """Fills a member; why it could not be parsed, "" for none."""
        if not text.whole:
            return "it was not read whole"
        if text.nbytes > min(_MEMBER_NBYTES, self._left):
            return f"{text.nbytes:,} bytes are too many"
        self._left -= text.nbytes
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text.text)
        except SyntaxError as error:
            return f"line {error.lineno or 0} is not Python's grammar"
        except (ValueError, RecursionError, MemoryError):
            return "it is nested too deep, or no text"
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef):
                member.functions.setdefault(statement.name, statement)
            elif isinstance(statement, ast.ClassDef):
                member.classes.setdefault(statement.name, _class(statement))
        return ""


def _class(tree: ast.ClassDef) -> CodeClass:
    made = CodeClass()
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            made.methods.setdefault(statement.name, statement)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            value = statement.value
            if (
                isinstance(value, ast.UnaryOp)
                and isinstance(value.op, ast.USub)
                and isinstance(value.operand, ast.Constant)
            ):
                number = value.operand.value
                if isinstance(number, int | float):
                    made.constants[statement.target.id] = -number
            elif isinstance(value, ast.Constant):
                made.constants[statement.target.id] = value.value
    return made
