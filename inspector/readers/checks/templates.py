"""Chat templates that do more than lay out messages: what reaches Python's inner attributes, directly or by a name that
the template makes.

Programs render them, some without a sandbox (CVE-2024-34359), and then an attribute such as __globals__ or gi_frame
leads to everything. Text that is only put out may say what it likes. Sources: the Jinja documentation on its sandbox,
jinja2/sandbox.py (its lists of unsafe attributes).
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator

from inspector.findings import Finding, FindingKind, Severity
from inspector.readers.checks.jinja import Expression, Names, NotJinja
from inspector.readers.checks.jinja_tokens import Block, Token, blocks_of
from inspector.readers.checks.jinja_values import BUILT, DATA, texts_in

TEMPLATE_REACHES_OUT = FindingKind("template-reaches-out", Severity.ERROR, "The template reaches out of itself")
TEMPLATE_MAY_REACH_OUT = FindingKind("template-may-reach-out", Severity.WARNING, "The template may reach out of itself")

_MOST_TOKENS = 200_000
# Attributes of frames, generators, coroutines, tracebacks, code and functions: jinja2.sandbox keeps the same.
_INNER = re.compile(
    r"__\w+__|(gi|cr|ag)_(frame|code|running|await|yieldfrom|origin)|f_(back|builtins|code|globals|locals|trace)"
    r"|tb_(frame|next)|co_(code|consts|names|varnames)|func_(globals|code|closure|defaults|dict)|im_(func|self|class)"
    r"|mro|format_map|_module"
)
_RUNNERS = frozenset({"eval", "exec", "compile", "__import__", "popen", "system"})
# What hands attributes or functions out by their names, outside of texts.
_REACHES = re.compile(
    r"\|\s*attr\b|\bgetattr\b|\bpopen\b|\bsubprocess\b|\bos\s*\.\s*(?:system|environ|popen)\b"
    r"|\b(?:eval|exec|compile|open|__import__)\s*\(|\b(?:lipsum|cycler|joiner)\s*(?:\.|\[|\|)"
    r"|\b(?:request|config|self)\s*\.\s*(?:application|_|SECRET)"
)
# The same for a block that is not Jinja's, texts and escapes included.
_SPELLED = re.compile(rf"__\w+__|(?:\\+x5f){{2}}|(?:\\+u005f){{2}}|__['\"]\s*[~+]|{_REACHES.pattern}")
_SECRETS = re.compile(r"\b(?:request|config|self)\s*\[\s*['\"](?:application|_|SECRET)")
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"", re.DOTALL)
_READS = frozenset({"include", "import", "from", "extends"})
_PLAIN_PATH = re.compile(r"[\w\-. ]+(/[\w\-. ]+)*")


def observe_template(text: str, where: str) -> Finding | None:
    """A chat template that does more than lay out messages. where: the key or file it comes from."""
    worst: Finding | None = None
    for severity, block, what in _reached(text):
        if severity is Severity.ERROR:
            return _reaches_out(block, what, where)
        worst = worst or _may_reach_out(block, what, where)
    return worst


def _reached(text: str) -> Iterator[tuple[Severity, str, str]]:
    """(severity, block, what it reaches for) of everything that reaches out of the template."""
    names, blocks, tokens = Names(), [], 0
    for block in blocks_of(text):
        tokens += 1 + len(block.tokens or ())
        if tokens > _MOST_TOKENS:
            yield (
                Severity.WARNING,
                block.text,
                f"it has more than {_MOST_TOKENS:,} words, and the rest was not followed",
            )
            break
        match = _SPELLED.search(block.text) if block.tokens is None else None
        match = match or _REACHES.search(_TEXT.sub("''", block.text)) or _SECRETS.search(block.text)
        if match is not None:
            yield Severity.ERROR, block.text, repr(match[0][:40])
        for name in _attributes(block.tokens or ()):
            yield Severity.ERROR, block.text, repr(name[:40])
        if block.tokens:
            blocks.append(block)
    # Twice: a macro or a loop may use what is only said behind it.
    for number in range(2):
        for n, block in enumerate(blocks):
            names.looked_up.clear()
            names.formats.clear()
            try:
                read = _follow(block, blocks[n + 1] if n + 1 < len(blocks) else None, names)
            except NotJinja as error:
                match = _SPELLED.search(block.text)
                if match is not None:
                    yield Severity.ERROR, block.text, repr(match[0][:40])
                elif error.deep:
                    yield Severity.WARNING, block.text, "it nests deeper than was followed"
                continue
            if number:
                yield from ((severity, block.text, what) for severity, what in _judged(names, read))


def _attributes(tokens: tuple[Token, ...]) -> Iterator[str]:
    """Inner attributes that are written out, and calls of one by a keyword."""
    for before, token in zip((Token("op", ""), *tokens), tokens, strict=False):
        if token.kind == "name" and _INNER.fullmatch(token.text) and (before.text in (".", "|") or "__" in token.text):
            yield token.text


def _follow(block: Block, after: Block | None, names: Names) -> object:
    """Take over what a block assigns; what it reads as another template, DATA for none."""
    assert block.tokens is not None
    if not block.is_statement:
        Expression(block.tokens, names).whole()
        return DATA
    word, rest = block.tokens[0].text, Expression(block.tokens[1:], names)
    if word in _READS:
        return rest.whole()
    if word == "set":
        _set(rest, after, names)
    elif word == "for":
        targets = _targets(rest)
        rest.need("in")
        values = _elements(rest.whole())
        for target in targets:
            for value in values:
                names.assign(target, value)
        if rest.take("if"):
            rest.whole()
    elif word in ("macro", "call"):
        _macro(word, rest, names)
    elif word == "filter":
        rest.filter(DATA)
    elif word == "with":
        while not rest.ended:
            (target,) = _targets(rest)
            rest.need("=")
            names.assign(target, rest.condition())
            rest.take(",")
    elif word in ("if", "elif", "do", "print"):
        rest.whole()
    return DATA


def _targets(rest: Expression) -> list[str]:
    found = []
    while not rest.peek("in", "="):
        if rest.take("(", ")", ","):
            continue
        name = rest.name()
        while rest.take("."):
            name += "." + rest.name()
        found.append(name)
        if rest.ended or rest.peek("|"):
            break
    return found


def _set(rest: Expression, after: Block | None, names: Names) -> None:
    targets = _targets(rest)
    if rest.take("="):
        value = rest.whole()
        parts = value if isinstance(value, tuple) and len(value) == len(targets) > 1 else [value] * len(targets)
        for target, part in zip(targets, parts, strict=True):
            names.assign(target, part)
        return
    # {% set x %} ... {% endset %}: the text between, where no other block is in it.
    plain = after is not None and after.is_statement and after.tokens is not None and after.tokens[0].text == "endset"
    value = after.before if after is not None and plain else BUILT
    while isinstance(value, str) and rest.peek("|"):
        value = rest.filtered(value)
    for target in targets:
        names.assign(target, value.strip() if isinstance(value, str) else value)


def _macro(word: str, rest: Expression, names: Names) -> None:
    name = "caller" if word == "call" else rest.name()
    if word == "call" and not rest.peek("("):
        rest.whole()
        return
    rest.need("(")
    parameters = []
    while not rest.take(")"):
        parameters.append(rest.name())
        if rest.take("="):
            names.assign(parameters[-1], rest.condition())
        rest.take(",")
    if word == "call":
        rest.whole()
    else:
        names.macros[name] = tuple(parameters)


def _elements(value: object) -> list[object]:
    if isinstance(value, dict):
        return [*value]
    if isinstance(value, list | tuple):
        return [part for item in value for part in (item if isinstance(item, list | tuple) else [item])]
    return [value] if value is BUILT else [DATA]


def _judged(names: Names, read: object) -> Iterator[tuple[Severity, str]]:
    for value, how in names.looked_up:
        if value is BUILT:
            yield Severity.WARNING, f"a name that it makes of pieces, in {how}"
        for text in texts_in(value):
            if _is_inner(text) or (how == "|map(" and text == "attr"):
                yield Severity.ERROR, repr(text[:40])
    for value in names.formats:
        for text in texts_in(value):
            if any(_is_inner(part) for part in _fields(text)):
                yield Severity.ERROR, repr(text[:40])
    for text in texts_in(read):
        grave = Severity.WARNING if _PLAIN_PATH.fullmatch(text) and ".." not in text else Severity.ERROR
        yield grave, f"another file, {text[:40]!r}"
    if read is BUILT:
        yield Severity.WARNING, "another file, whose name it makes of pieces"


def _is_inner(text: str) -> bool:
    return any(_INNER.fullmatch(part) or part in _RUNNERS for part in re.split(r"[.\s\[\]]+", text))


def _fields(text: str) -> Iterable[str]:
    try:
        return [name or "" for _, name, _, _ in string.Formatter().parse(text)]
    except ValueError:
        return []


def _reaches_out(block: str, what: str, where: str) -> Finding:
    return TEMPLATE_REACHES_OUT.found(
        f"The template in {where[:80]} reaches out of it by {what}: a program that renders it without a sandbox "
        "runs what it says.",
        subjects=(where[:200],),
        evidence=(("block", block[:200]),),
        remedy="Nothing was rendered here. llama-cpp-python before 0.2.72 rendered without a sandbox; use "
        "another template.",
    )


def _may_reach_out(block: str, what: str, where: str) -> Finding:
    return TEMPLATE_MAY_REACH_OUT.found(
        f"The template in {where[:80]} may reach out of it: {what}. What that gives was not followed.",
        subjects=(where[:200],),
        evidence=(("block", block[:200]),),
        remedy="Nothing was rendered here. A chat template needs no such thing; read the block.",
    )
