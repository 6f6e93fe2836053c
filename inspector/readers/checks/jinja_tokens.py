"""Jinja templates as blocks of tokens. Source: Jinja's lexer (jinja2/lexer.py, release 3.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MOST_BEFORE = 2000
_MOST_IN_BLOCK = 20_000
_TOKEN = re.compile(
    r"""\s+|(?P<string>'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")|(?P<float>\d[\d_]*\.\d+(?:[eE][+-]?\d+)?)|(?P<int>\d[\d_]*)"""
    r"""|(?P<name>[^\W\d]\w*)|(?P<op>//|\*\*|==|!=|<=|>=|[-+*/%~|.,:;=<>()\[\]{}])""",
    re.DOTALL,
)
_OPEN = re.compile(r"\{[{%#]")
_CLOSE = {"{{": re.compile(r"[-+]?\}\}"), "{%": re.compile(r"[-+]?%\}"), "{#": re.compile(r"#\}")}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = frozenset("\\'\"abfnrtvxuUN01234567\n")
_PAIRS = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True, slots=True)
class Token:
    """kind: string, int, float, name or op. text: decoded, for a string."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One {{ ... }} or {% ... %}. tokens: None where they are not Jinja's. before: the text in front of it."""

    text: str
    tokens: tuple[Token, ...] | None
    before: str
    is_statement: bool


def blocks_of(text: str) -> Iterator[Block]:
    """The blocks of a template, without its comments."""
    at = 0
    while (opened := _OPEN.search(text, at)) is not None:
        before = text[at : opened.start()]
        close = _CLOSE[opened[0]]
        if opened[0] == "{#":
            end = close.search(text, opened.end())
            at = end.end() if end else len(text)
            continue
        tokens, at = _lex(text, opened.end() + (text[opened.end() : opened.end() + 1] in ("-", "+")), close)
        if at < 0:
            end = close.search(text, opened.end())
            if end is None:
                return
            at = end.end()
        yield Block(
            text=text[opened.start() : at], tokens=tokens, before=before[:_MOST_BEFORE], is_statement=opened[0] == "{%"
        )


def _lex(text: str, at: int, close: re.Pattern[str]) -> tuple[tuple[Token, ...] | None, int]:
    """The tokens from there to the closing mark, and where that ends; (None, -1) where they are not Jinja's."""
    tokens: list[Token] = []
    below: list[str] = []
    while at < len(text) and len(tokens) < _MOST_IN_BLOCK:
        end = None if below else close.match(text, at)
        if end is not None:
            return tuple(tokens), end.end()
        match = _TOKEN.match(text, at)
        if match is None:
            return None, -1
        kind, word = match.lastgroup, match[0]
        at = match.end()
        if kind is None:
            continue
        if kind == "op" and word in "([{":
            below.append(word)
        elif kind == "op" and word in _PAIRS and (not below or below.pop() != _PAIRS[word]):
            return None, -1
        tokens.append(Token(kind, _decoded(word) if kind == "string" else word))
    return None, -1


def _decoded(word: str) -> str:
    known = _ESCAPE.sub(lambda match: match[0] if match[1] in _ESCAPES else "\\" + match[0], word[1:-1])
    try:
        return known.encode("ascii", "backslashreplace").decode("unicode-escape")
    except UnicodeDecodeError:
        return word[1:-1]
