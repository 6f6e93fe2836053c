"""Names of rows in a file that somebody has: a vocabulary, a list of classes, a projector's metadata."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inspector.errors import UsageError
from inspector.readers.plain_json import parse_json

#: Vocabularies that stand beside a checkpoint, the best first.
BESIDE = ("vocab.txt", "vocab.json", "tokenizer.json")
#: The longest list that is read.
MOST_NBYTES = 64_000_000
_MOST_VALUES = 8_000_000
# Vocabularies are filled up with rows that no token has; by more, the list is another tensor's.
_FILLED = 1024


def parse_labels(raw: bytes, name: str) -> tuple[str, ...]:
    """A label for each row from 0 on, "" where a row has none.

    One in each line (of several columns the first); as JSON a list, {token: number}, {number: name} or a
    tokenizer.json.
    Raises UsageError for anything else, CorruptFile and LimitExceeded as `parse_json`.
    """
    if name.lower().endswith(".json") or raw.lstrip()[:1] in (b"{", b"["):
        value, _ = parse_json(raw, name, most_values=_MOST_VALUES)
        found = _of_json(value)
        if found is None:
            raise UsageError(
                f"{name} holds no list of labels.", hint="A list, a mapping from token to number, or a tokenizer.json."
            )
        return found
    lines = raw.decode("utf-8-sig", "backslashreplace").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return tuple(line.rstrip("\r").split("\t")[0] for line in lines)


def fits(labels: Sequence[str], rows: int) -> bool:
    """Whether the list may be these rows': as long, or a vocabulary that was filled up."""
    return 0 <= rows - len(labels) < _FILLED and len(labels) > 0


def labels_at(labels: Sequence[str], numbers: Sequence[int]) -> tuple[str, ...]:
    """Those of these rows, "" behind the end of the list."""
    return tuple(labels[number] if number < len(labels) else "" for number in numbers)


def labels_for(labels: Sequence[str], rows: int, name: str) -> tuple[str, ...]:
    """The labels of so many rows. Raises UsageError for none, or more than there are rows.

    A heading line, as metadata of several columns has, is one label too many and left out.
    """
    if len(labels) == rows + 1:
        return tuple(labels[1:])
    if not 0 < len(labels) <= rows:
        raise UsageError(f"{name} holds {len(labels):,} labels, and there are {rows:,} rows.", hint="Give one a line.")
    return tuple(labels)


def _of_json(value: object) -> tuple[str, ...] | None:
    if isinstance(value, list):
        # Unigram vocabularies have [token, score].
        texts = [one[0] if isinstance(one, list) and one else one for one in value]
        return tuple(texts) if texts and all(isinstance(one, str) for one in texts) else None
    if not isinstance(value, dict) or not value:
        return None
    model = value.get("model")
    if isinstance(model, dict) and "vocab" in model:
        found = _of_json(model["vocab"])
        return None if found is None else _with_added(found, value.get("added_tokens"))
    if all(type(number) is int for number in value.values()):
        return _numbered(((number, str(token)) for token, number in value.items()), len(value))
    if all(isinstance(name, str) for name in value.values()) and all(str(key).isdecimal() for key in value):
        return _numbered(((int(str(key)), str(name)) for key, name in value.items()), len(value))
    return None


def _with_added(labels: tuple[str, ...], added: object) -> tuple[str, ...]:
    more = dict(enumerate(labels))
    for one in added if isinstance(added, list) else ():
        if isinstance(one, dict) and type(one.get("id")) is int and isinstance(one.get("content"), str):
            more[one["id"]] = one["content"]
    return _numbered(more.items(), len(more)) or labels


def _numbered(pairs: Iterable[tuple[int, str]], count: int) -> tuple[str, ...] | None:
    """By number, with gaps left empty; None where most of it would be gaps, or a number is below 0."""
    by_number = dict(pairs)
    most = max(by_number) + 1
    if min(by_number) < 0 or most > 2 * count + _FILLED:
        return None
    return tuple(by_number.get(number, "") for number in range(most))
