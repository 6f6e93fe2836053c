"""What the code members of a TorchScript archive say, read as text: classes, signatures, operators.

The text is what torch/csrc/jit/serialization/python_print.cpp writes; torch/csrc/jit/serialization/import_source.cpp
says which names it can reach: `torch` (the aten operators), `ops`, `CONSTANTS`, and `__torch__` (its own classes).
A namespace can be given another name (`t = torch`), so a namespace that is used as a value is a sign of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_GAP = r"(?:[ \t\r\n]|\\\r?\n)*+"
# A string without its end is taken to the end of the line: everything is passed over once, whatever it is.
_TOKEN = re.compile(
    r"(?P<string>\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?)|(?P<comment>\#[^\n]*+)"
    rf"|(?<![\w.])(?P<chain>(?:torch|ops|__torch__)\b(?:{_GAP}\.{_GAP}[A-Za-z_]\w*+)*+)"
    r"|(?<![\w.])(?P<word>while|print)\b",
    re.DOTALL,
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*+)"')
_CLASS = re.compile(r"class (\w+)\(\w*\):")
_FINAL = re.compile(r"  (\w+) : Final\[[^\n]*?\] = ([^\n]*)")
_DEF = re.compile(r"( *)def (\w+)\(")
_MANGLED = re.compile(r"^__torch__\.|___torch_mangle_\d+\.")
_CONTROL = re.compile(r"^ +(?:if|while|for) .*:$|: Final\[", re.MULTILINE)
_MOST_SIGNATURE = 2000
_MOST_NOTED = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptClass:
    """One class of the code. name: "__torch__.a.B". constants: (name, value as text) of its Final attributes.

    parameters, buffers: names in `__parameters__` and `__buffers__`; None where the class has no such line.
    methods: (name, signature without self), in file order.
    """

    name: str
    parameters: frozenset[str] | None
    buffers: frozenset[str] | None
    constants: tuple[tuple[str, str], ...]
    methods: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A name in the code: "aten::save", with the member and the line (from 1) it stands in."""

    name: str
    member: str
    line: int


@dataclass(slots=True, kw_only=True)
class CodeFacts:
    """What one code member names.

    operators: each operator at its first place. classes: of `__torch__.torch.classes`. hidden: where a namespace is
    used as a value, or a string does not end in its line. references: "__torch__..." names. loops, prints: lines.
    """

    operators: dict[str, Spot] = field(default_factory=dict)
    classes: dict[str, Spot] = field(default_factory=dict)
    hidden: list[Spot] = field(default_factory=list)
    references: set[str] = field(default_factory=set)
    loops: list[Spot] = field(default_factory=list)
    prints: list[Spot] = field(default_factory=list)


def plain_class(name: str) -> str:
    """The Python class that a TorchScript class was made from: without `__torch__.` and mangling."""
    return _MANGLED.sub("", name)


def is_scripted(text: str) -> bool:
    """Whether the code has control flow or Final constants, which tracing does not leave."""
    return _CONTROL.search(text) is not None


def module_name(member: str) -> str:
    """ "__torch__.a.b" of the member "code/__torch__/a/b.py" (the part behind the archive's folder)."""
    return member.removeprefix("code/").removesuffix(".py").replace("/", ".")


def read_facts(member: str, text: str) -> CodeFacts:
    """Every name of interest in one code member. Linear in its length; raises nothing."""
    facts = CodeFacts()
    line, at = 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", at, token.start())
        at = token.start()
        kind = token.lastgroup
        if kind == "string":
            if len(token[0]) < 2 or token[0][-1] != token[0][0]:
                _hide(facts, Spot(name="a string that does not end", member=member, line=line))
        elif kind == "word":
            spots = facts.loops if token[0] == "while" else facts.prints
            if len(spots) < _MOST_NOTED:
                spots.append(Spot(name=token[0], member=member, line=line))
        elif kind == "chain":
            _note(facts, _NAME.findall(token[0]), member, line)
    return facts


def _keep(found: dict[str, Spot], spot: Spot, facts: CodeFacts) -> None:
    """Note a name at its first place. A text with very many different names hides the one that matters."""
    if len(found) < _MOST_NOTED:
        found.setdefault(spot.name, spot)
    elif len(facts.hidden) < _MOST_NOTED and spot.name not in found:
        facts.hidden.append(Spot(name=f"more than {_MOST_NOTED:,} different names", member=spot.member, line=spot.line))


def _hide(facts: CodeFacts, spot: Spot) -> None:
    if len(facts.hidden) < _MOST_NOTED:
        facts.hidden.append(spot)


def _note(facts: CodeFacts, parts: Sequence[str], member: str, line: int) -> None:
    root = parts[0]
    if root == "torch" and len(parts) > 2 and parts[1] == "ops":
        parts, root = parts[1:], "ops"
    if root == "__torch__":
        if len(facts.references) < _MOST_NOTED:
            facts.references.add(".".join(parts[:64]))
        if parts[1:3] == ["torch", "classes"] and len(parts) > 4:
            name = ".".join(parts[3:5])
            _keep(facts.classes, Spot(name=name, member=member, line=line), facts)
        elif len(parts) < 2 or parts[1:] == ["torch"] or parts[1:3] == ["torch", "classes"]:
            _hide(facts, Spot(name=".".join(parts), member=member, line=line))
        return
    if len(parts) < (2 if root == "torch" else 3):
        _hide(facts, Spot(name=".".join(parts), member=member, line=line))
        return
    name = f"aten::{parts[1]}" if root == "torch" else f"{parts[1]}::{parts[2]}"
    _keep(facts.operators, Spot(name=name, member=member, line=line), facts)


def read_classes(member: str, text: str) -> list[ScriptClass]:
    """The classes that one code member defines. Linear in its length."""
    found: list[ScriptClass] = []
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if line.startswith("class ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
        head = _CLASS.match(lines[start])
        if head is not None:
            found.append(_class(f"{module_name(member)}.{head[1]}", lines[start + 1 : end]))
    return found


def _class(name: str, body: Sequence[str]) -> ScriptClass:
    parameters: frozenset[str] | None = None
    buffers: frozenset[str] | None = None
    constants: list[tuple[str, str]] = []
    for line in body:
        if line.startswith("  __parameters__ = "):
            parameters = frozenset(_QUOTED.findall(line))
        elif line.startswith("  __buffers__ = "):
            buffers = frozenset(_QUOTED.findall(line))
        elif " : Final[" in line[:200] and len(line) < 1000:
            constant = _FINAL.match(line)
            if constant is not None and len(constants) < 64 and not constant[1].startswith("_"):
                constants.append((constant[1], constant[2][:80]))
    return ScriptClass(
        name=name,
        parameters=parameters,
        buffers=buffers,
        constants=tuple(constants),
        methods=tuple(read_functions(body, 2)),
    )


def read_functions(lines: Sequence[str], indent: int) -> list[tuple[str, str]]:
    """(name, "(x: Tensor) -> Tensor") of each function that is defined at this indentation."""
    found: list[tuple[str, str]] = []
    for number, line in enumerate(lines):
        head = _DEF.match(line)
        if head is None or len(head[1]) != indent or len(found) >= 200:
            continue
        text = line[head.end() - 1 :]
        for more in lines[number + 1 : number + 40]:
            if text.endswith(":") or len(text) > _MOST_SIGNATURE:
                break
            text += " " + more.strip()
        text = text.removesuffix(":")[:_MOST_SIGNATURE]
        found.append((head[2], re.sub(r"^\(\w+: __torch__\.[\w.]+(?:, )?", "(", text)))
    return found
