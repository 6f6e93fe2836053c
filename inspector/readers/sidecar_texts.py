"""The entries of a small configuration file, as (dotted key, text): JSON, YAML, or lines of settings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from inspector.errors import LimitExceeded
from inspector.readers.plain_json import parse_json, whole
from inspector.readers.plain_yaml import read_yaml
from inspector.units import counted

_YAML_NBYTES = 128_000  # PyYAML's parser reads about 100 kB in a second.
_MOST_VALUES = 50_000
_MOST_ENTRIES = 200
_TEXT = 1000
_DEPTH = 4
_SHORT_LIST = 64
# Kept whole, as JSON: the names of the outputs, in their order.
_WHOLE = ("id2label", "class_names", "classes", "categories", "idx_to_class")
# Nothing but the names of the outputs, one in each line, or as JSON.
_LABELS = ("classes.txt", "labels.txt", "class_names.txt", "classes.json", "labels.json", "class_names.json")
Pair = tuple[str, str]


def read_entries(raw: bytes, name: str) -> tuple[list[Pair], bool]:
    """(entries with shortened texts, whether there are more), by the ending of the name. Raises a ReadError or
    ValueError for what is not of that format."""
    if name.rpartition("/")[2] in _LABELS:
        return _labels(raw, name), False
    ending = name.rpartition(".")[2]
    how = _from_json if ending == "json" else _from_yaml if ending in ("yaml", "yml") else _from_text
    pairs, cut = how(raw, name)
    return [(whole(key)[:200], _shortened(key, whole(text))) for key, text in pairs], cut


def _shortened(key: str, text: str) -> str:
    if len(text) <= _TEXT or key.rpartition(".")[2] in _WHOLE:
        return text
    return text[:_TEXT] + "…"


def _from_json(raw: bytes, name: str) -> tuple[list[Pair], bool]:
    value, _ = parse_json(raw, name, most_values=_MOST_VALUES)
    found: list[Pair] = []
    cut = False
    for pair in _flat("", value, 0):
        if len(found) >= _MOST_ENTRIES:
            cut = True
            break
        found.append(pair)
    return found, cut


def _labels(raw: bytes, name: str) -> list[Pair]:
    """The whole file as one entry "classes"."""
    if name.endswith(".json"):
        value, _ = parse_json(raw, name, most_values=_MOST_VALUES)
        return [("classes", json.dumps(value, ensure_ascii=False))]
    lines = [line.strip() for line in raw.decode("utf-8-sig", "backslashreplace").splitlines()]
    return [("classes", json.dumps([line for line in lines if line], ensure_ascii=False))]


def _from_yaml(raw: bytes, name: str) -> tuple[list[Pair], bool]:
    if len(raw) > _YAML_NBYTES:
        raise LimitExceeded(f"{name} has {len(raw):,} bytes; YAML is read up to {_YAML_NBYTES:,}.")
    pairs, cut = read_yaml(raw, name)
    return [(key or "(value)", text) for key, text in pairs[:_MOST_ENTRIES]], cut or len(pairs) > _MOST_ENTRIES


def _from_text(raw: bytes, name: str) -> tuple[list[Pair], bool]:
    """Lines of "key: value" or "key = value"; else, such as a printed Namespace, its beginning as one entry."""
    text = raw.decode("utf-8-sig", "backslashreplace")
    lines = [line for line in text.splitlines() if line.strip()]
    found = [
        (match[1], match[2].strip())
        for line in lines[:_MOST_ENTRIES]
        if (match := re.fullmatch(r"\s*-{0,2}([\w.-]{1,100})\s*[:=]\s*(.{0,2000})", line))
    ]
    if len(found) * 2 < min(len(lines), _MOST_ENTRIES):
        found = [("(text)", text.strip())] if text.strip() else []
    return found, len(lines) > _MOST_ENTRIES


def _flat(path: str, value: object, depth: int) -> Iterator[Pair]:
    """(dotted key, text) of every plain value; short lists of plain values and label tables as JSON."""
    if isinstance(value, dict):
        if path.rpartition(".")[2] in _WHOLE and value and all(isinstance(v, str) for v in value.values()):
            yield path, json.dumps(value, ensure_ascii=False)
        elif depth >= _DEPTH and value:
            yield path, f"({counted(len(value), 'entry', 'entries')} not shown)"
        else:
            for key, inner in value.items():
                yield from _flat(f"{path}.{key[:100]}" if path else str(key)[:100], inner, depth + 1)
    elif isinstance(value, list):
        is_whole = path.rpartition(".")[2] in _WHOLE and all(isinstance(v, str) for v in value)
        if is_whole or (len(value) <= _SHORT_LIST and not any(isinstance(v, dict | list) for v in value)):
            yield path or "(list)", json.dumps(value, ensure_ascii=False)
        else:
            yield path or "(list)", f"(a list of {counted(len(value), 'item')})"
    elif isinstance(value, str):
        yield path or "(value)", value
    else:
        yield path or "(value)", json.dumps(value)
