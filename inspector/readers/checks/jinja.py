"""What an expression of a Jinja template makes, and what it looks up by name.

Source: Jinja's parser (jinja2/parser.py, release 3.1), whose grammar of expressions this follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from inspector.readers.checks.jinja_tokens import Token
from inspector.readers.checks.jinja_values import (
    BUILT,
    DATA,
    added,
    any_of,
    begins_safely,
    called,
    either,
    is_built,
    is_constant,
    item_of,
    multiplied,
    same,
    short,
    small,
)

_MOST_DEPTH = 60
_WORDS = frozenset({"and", "or", "not", "in", "is", "if", "else", "recursive"})
# Filters that take the name of an attribute, and where.
_BY_ATTRIBUTE = frozenset({"attr", "map", "groupby", "sort", "selectattr", "rejectattr", "sum", "unique", "min", "max"})
_BY_FIRST = frozenset({"attr", "groupby", "selectattr", "rejectattr", "sum"})


class NotJinja(ValueError):
    """A block that Jinja's grammar does not give, or nested deeper than is followed (deep)."""

    def __init__(self, *, deep: bool = False) -> None:
        super().__init__("not followed")
        self.deep = deep


@dataclass(slots=True)
class Names:
    """What the variables of a template may be, and every value that stands where a name is looked up.

    looked_up: (value, how). formats: texts that str.format is called on.
    """

    values: dict[str, object] = field(default_factory=dict)
    macros: dict[str, tuple[str, ...]] = field(default_factory=dict)
    looked_up: list[tuple[object, str]] = field(default_factory=list)
    formats: list[object] = field(default_factory=list)

    def assign(self, name: str, value: object) -> None:
        known = self.values.get(name, value)
        self.values[name] = known if same(known, value) else either(known, value)


class Expression:
    """One pass over the tokens of an expression: what it makes, and into `names` what it looks up by name."""

    def __init__(self, tokens: Sequence[Token], names: Names) -> None:
        self.tokens, self.names, self.at, self.depth = tokens, names, 0, 0

    # -- tokens -------------------------------------------------------------------------------------------------

    def peek(self, *words: str) -> bool:
        if self.at >= len(self.tokens):
            return False
        token = self.tokens[self.at]
        return token.kind in ("op", "name") and token.text in words

    def take(self, *words: str) -> str:
        """The next token's text when it is one of these, else ""."""
        if not self.peek(*words):
            return ""
        self.at += 1
        return self.tokens[self.at - 1].text

    def need(self, word: str) -> None:
        if not self.take(word):
            raise NotJinja()

    def name(self) -> str:
        if self.at >= len(self.tokens) or self.tokens[self.at].kind != "name":
            raise NotJinja()
        self.at += 1
        return self.tokens[self.at - 1].text

    @property
    def ended(self) -> bool:
        return self.at >= len(self.tokens)

    # -- grammar ------------------------------------------------------------------------------------------------

    def whole(self) -> object:
        """A tuple or a condition, up to where it ends."""
        value = self.condition()
        if not self.peek(","):
            return value
        items = [value]
        while self.take(",") and not (self.ended or self.peek(")", "]", "}", "=", "in")):
            items.append(self.condition())
        return small(tuple(items))

    def condition(self) -> object:
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise NotJinja(deep=True)
        value = self.either()
        while self.take("if"):
            self.either()
            other = self.condition() if self.take("else") else value
            value = value if same(value, other) else either(value, other)
        self.depth -= 1
        return value

    def either(self) -> object:
        value = self.negated()
        while self.take("or", "and"):
            other = self.negated()
            value = value if same(value, other) else either(value, other)
        return value

    def negated(self) -> object:
        negations = 0
        while self.take("not"):
            negations += 1
        value = self.sum()
        compared = negations > 0
        while True:
            if self.take("==", "!=", "<", ">", "<=", ">=", "in"):
                self.sum()
            elif self.peek("not") and self._after("in"):
                self.at += 2
                self.sum()
            else:
                return DATA if compared else value
            compared = True

    def _after(self, word: str) -> bool:
        return self.at + 1 < len(self.tokens) and self.tokens[self.at + 1].text == word

    def sum(self) -> object:
        value = self.joined()
        while sign := self.take("+", "-"):
            other = self.joined()
            value = added(value, other) if sign == "+" else DATA
        return value

    def joined(self) -> object:
        value = self.product()
        while self.take("~"):
            other = self.product()
            if all(type(v) in (str, int) for v in (value, other)):
                value = short(f"{value}{other}")
            else:
                value = DATA if begins_safely(value) else BUILT
        return value

    def product(self) -> object:
        value = self.unary()
        while sign := self.take("*", "/", "//", "%", "**"):
            other = self.unary()
            value = multiplied(value, other, sign)
        return value

    def unary(self) -> object:
        negative = False
        while sign := self.take("-", "+"):
            negative ^= sign == "-"
        value = self.filtered(self.postfix(self.primary()))
        return -value if negative and type(value) is int else value

    def primary(self) -> object:
        if self.ended:
            raise NotJinja()
        token = self.tokens[self.at]
        if token.kind == "string":
            text = ""
            while not self.ended and self.tokens[self.at].kind == "string":
                text += self.tokens[self.at].text
                self.at += 1
            return text
        self.at += 1
        if token.kind == "int":
            return int(token.text[:18])
        if token.kind == "float":
            return DATA
        if token.kind == "name":
            return self._named(token.text)
        if token.text == "(":
            value = () if self.peek(")") else self.whole()
            self.need(")")
            return value
        if token.text == "[":
            return small(list(self._items("]")))
        if token.text == "{":
            return self._mapping()
        raise NotJinja()

    def _named(self, name: str) -> object:
        if name in _WORDS:
            raise NotJinja()
        if self.peek("(") and (name in self.names.macros or name in ("namespace", "dict")):
            self.at += 1
            given, keywords = self._arguments()
            for parameter, value in [*zip(self.names.macros.get(name, ()), given, strict=False), *keywords.items()]:
                if name in self.names.macros:
                    self.names.assign(parameter, value)
            return DATA if name in self.names.macros else keywords
        if self.peek(".") and self.at + 1 < len(self.tokens):
            spelled = f"{name}.{self.tokens[self.at + 1].text}"
            if spelled in self.names.values:
                self.at += 2
                return self.names.values[spelled]
        return self.names.values.get(name, DATA)

    def _items(self, end: str) -> Iterator[object]:
        while not self.take(end):
            yield self.condition()
            if not self.peek(end):
                self.need(",")

    def _mapping(self) -> object:
        made: dict[str, object] = {}
        while not self.take("}"):
            key = self.condition()
            self.need(":")
            value = self.condition()
            made[str(key) if type(key) in (str, int) else f"({len(made)})"] = value
            if not self.peek("}"):
                self.need(",")
        return small(made)

    def _arguments(self) -> tuple[list[object], dict[str, object]]:
        given: list[object] = []
        keywords: dict[str, object] = {}
        while not self.take(")"):
            if self.take("*", "**"):
                self.condition()
            elif self.tokens[self.at].kind == "name" and self._after("="):
                keyword = self.name()
                self.at += 1
                keywords[keyword] = self.condition()
            else:
                given.append(self.condition())
            if not self.peek(")"):
                self.need(",")
            if self.ended:
                raise NotJinja()
        return given, keywords

    def postfix(self, value: object) -> object:
        while not self.ended:
            if self.take("."):
                value = self._attribute(value)
            elif self.take("["):
                value = self._subscript(value)
            elif self.take("("):
                given, keywords = self._arguments()
                value = BUILT if any(map(is_built, (*given, *keywords.values()))) else DATA
            else:
                break
        return value

    def _attribute(self, value: object) -> object:
        if not self.ended and self.tokens[self.at].kind in ("int", "float"):
            self.at += 1
            return item_of(value, 0)
        name = self.name()
        if not self.peek("("):
            return value.get(name, DATA) if isinstance(value, dict) else BUILT if value is BUILT else DATA
        self.at += 1
        given, _ = self._arguments()
        if name == "format":
            self.names.formats.append(value)
        if name in ("get", "pop", "setdefault", "attribute") and given:
            self.names.looked_up.append((given[0], f".{name}("))
        if isinstance(value, dict):
            return list(value.items()) if name == "items" else BUILT if is_built(value) or value else DATA
        return called(value, name, given)

    def _subscript(self, value: object) -> object:
        parts: list[object] = []
        sliced = False
        while not self.take("]"):
            if self.take(":"):
                sliced = True
            elif self.take(","):
                continue
            else:
                parts.append(self.condition())
        if sliced:
            return BUILT if isinstance(value, str) or value is BUILT else any_of(value)
        index = parts[0] if parts else DATA
        self.names.looked_up.append((index, "[...]"))
        if isinstance(value, dict) and isinstance(index, str):
            return value.get(index, DATA)
        return item_of(value, index)

    def filtered(self, value: object) -> object:
        while True:
            if self.take("|"):
                value = self.filter(value)
            elif self.take("is"):
                self.take("not")
                self.name()
                if self.take("("):
                    self._arguments()
                elif not self.ended and (
                    self.tokens[self.at].kind in ("string", "int", "float")
                    or self.peek("[", "{")
                    or (
                        self.tokens[self.at].kind == "name"
                        and not self.peek("and", "or", "else", "if", "is", "in", "not")
                    )
                ):
                    self.postfix(self.primary())
                value = DATA
            elif self.peek("(", ".", "["):
                value = self.postfix(value)
            else:
                return value

    def filter(self, value: object) -> object:
        """One filter behind its bar."""
        name = self.name()
        while self.take("."):
            name += "." + self.name()
        given: list[object] = []
        keywords: dict[str, object] = {}
        if self.take("("):
            given, keywords = self._arguments()
        self._attributes_of(name, given, keywords)
        if name in ("first", "last", "random"):
            return item_of(value, -1 if name == "last" else 0) if name != "random" else any_of(value)
        if name in ("default", "d") and given:
            return either(value, given[0]) if value is not DATA else any_of(given)
        if name in ("string", "list", "safe", "trim") and not isinstance(value, str | list | tuple):
            return value
        call = {"trim": "strip"}.get(name, name)
        if name == "format" and isinstance(value, str) and all(map(is_constant, given)):
            return multiplied(value, tuple(given), "%")
        if name == "join" and isinstance(value, list | tuple):
            return called(given[0] if given else "", "join", [value])
        if name in ("string", "safe") and isinstance(value, str):
            return value
        if name == "reverse" and isinstance(value, str):
            return value[::-1]
        if name == "list" and isinstance(value, list | tuple):
            return value
        return called(value, call, given)

    def _attributes_of(self, name: str, given: list[object], keywords: dict[str, object]) -> None:
        if name not in _BY_ATTRIBUTE:
            return
        how = f"|{name}("
        if name in _BY_FIRST:
            self.names.looked_up += [(value, how) for value in given[:1]]
        if "attribute" in keywords:
            self.names.looked_up.append((keywords["attribute"], how))
        if name == "map" and given:
            # map('attr', name): any filter by its name.
            self.names.looked_up.append((given[0], how))
            if given[0] == "attr":
                self.names.looked_up.append((BUILT if len(given) < 2 else given[1], how))
