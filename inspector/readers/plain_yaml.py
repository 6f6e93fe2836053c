"""YAML from outside, as text: from the parser's events, so that no tag constructs anything and no alias is expanded.

PyYAML's own safe loader refuses files with unknown tags, which is what argparse and Lightning write, and builds aliases
into one graph, which a few lines can make exponentially large when it is walked.
"""

from __future__ import annotations

from inspector.errors import CorruptFile, MissingExtra
from inspector.readers.plain_json import whole

_DEPTH = 24
_MOST_EVENTS = 4000
Pair = tuple[str, str]


def read_yaml(raw: bytes, name: str) -> tuple[tuple[Pair, ...], bool]:
    """((dotted key, text) of every scalar, in order; whether the rest was not read because of bounds).

    A list of scalars is one text, "[a, b]". Tags of objects are shown in front of the text. Raises CorruptFile for what
    is no YAML and nothing of it could be read, MissingExtra where PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError as error:
        raise MissingExtra(f"{name} is YAML, and PyYAML is not installed.", hint="pip install PyYAML") from error
    text = raw.decode("utf-8-sig", "backslashreplace")
    made = _Walk()
    try:
        for number, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
            if number >= _MOST_EVENTS or not made.take(event):
                return tuple(made.found), True
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if not made.found:
            raise CorruptFile(f"{name} is no valid YAML ({' '.join(str(error).split())[:120]}).") from error
        return tuple(made.found), True
    return tuple(made.found), False


class _Walk:
    """Where the events are: one (key or None, index or None, items of a list of scalars) per open container."""

    def __init__(self) -> None:
        self.found: list[Pair] = []
        self.stack: list[_Open] = []

    def take(self, event: object) -> bool:
        """False when it is nested too deep."""
        kind = type(event).__name__
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            if len(self.stack) >= _DEPTH:
                return False
            tag = self._tag(event)
            path = self._next("")
            self.stack.append(_Open(path, kind == "MappingStartEvent"))
            if tag:
                self.found.append((f"{path}.(type)" if path else "(type)", tag))
        elif kind in ("MappingEndEvent", "SequenceEndEvent") and self.stack:
            closed = self.stack.pop()
            if closed.items:
                self.found.append((closed.path, f"[{', '.join(closed.items)}]"))
        elif kind == "ScalarEvent":
            self._scalar(whole(str(getattr(event, "value", ""))), self._tag(event))
        elif kind == "AliasEvent":
            self._scalar(f"(as at &{whole(str(getattr(event, 'anchor', '')))[:80]} above)", "")
        return True

    def _scalar(self, text: str, tag: str) -> None:
        shown = f"{tag} {text}".strip() if tag else text
        top = self.stack[-1] if self.stack else None
        if top is not None and top.is_mapping and top.key is None:
            top.key = shown[:200]
        elif top is not None and not top.is_mapping:
            top.items.append(shown[:200])
            top.count += 1
        else:
            self.found.append((self._next(""), shown))

    def _next(self, path: str) -> str:
        """The dotted path of the value that begins now."""
        if not self.stack:
            return path
        top = self.stack[-1]
        if top.is_mapping:
            # A container as a key has no name of its own.
            label, top.key = (top.key, None) if top.key is not None else ("?", "?")
        else:
            label, top.count = str(top.count), top.count + 1
        return f"{top.path}.{label}"[:400] if top.path else label

    @staticmethod
    def _tag(event: object) -> str:
        tag = str(getattr(event, "tag", None) or "")
        return "" if not tag or (tag.startswith("tag:yaml.org,2002:") and "python" not in tag) else whole(tag)[-120:]


class _Open:
    __slots__ = ("count", "is_mapping", "items", "key", "path")

    def __init__(self, path: str, is_mapping: bool) -> None:
        self.path = path
        self.is_mapping = is_mapping
        self.key: str | None = None
        self.items: list[str] = []
        self.count = 0
