"""A list of a model's keys as people have it: a line each, or as Python and JSON print one, with shapes or without.

Nothing is evaluated: names are what stands in quotes, or on a line of its own.
"""

from __future__ import annotations

import re
from collections import Counter

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.checkpoint.types import Shape
from inspector.errors import LimitExceeded, UsageError
from inspector.limits import DEFAULT_LIMITS

_SHAPE = r"(?:torch\.Size\(\s*)?[\[(]\s*(?P<shape>[0-9]+(?:\s*,\s*[0-9]+)*\s*,?|)\s*[\])](?:\s*\))?"
# How Python and JSON print several: odict_keys(['a', 'b']), {"a": [3, 4]}, [('a', torch.Size([3, 4]))].
_PRINTED = re.compile(r"\s*(?:[A-Za-z_.]*\s*\(\s*)?[\[{(]*\s*[\[{(]\s*['\"]|\s*['\"]")
_QUOTED = re.compile(r"(?P<quote>['\"])(?P<name>(?:(?!(?P=quote))[^\\\n])+)(?P=quote)" rf"(?:\s*[:,]\s*{_SHAPE})?")
# conv1.weight: torch.Size([64, 3, 7, 7]), conv1.weight (64, 3, 7, 7)
_LINE = re.compile(rf"(?P<name>\S+?)(?:\s*[:=,]\s*|\s+){_SHAPE}\s*,?")
# What load_state_dict says when keys do not fit (torch/nn/modules/module.py). No parameter has such a name.
_ERROR_SIGNS = ("Missing key(s)", "Unexpected key(s)", "Error(s) in loading", "size mismatch for ")
_HINT = "Paste the model's own names, one per line: print(*model.state_dict(), sep='\\n')."


def target_of_list(text: str, label: str, *, called: str = "") -> Target:
    """The target that a list of keys describes. label: the target's. called: the list, in what is said of it.

    Blank lines and those that begin with # are skipped. Shapes count where every key has one. Raises UsageError where
    it lists nothing, a name twice, or is the text of a loading error, which lists something else; LimitExceeded for
    more keys than a file may have tensors.
    """
    called = called or label
    if any(sign in text for sign in _ERROR_SIGNS):
        raise UsageError(f"In {called} stands an error message, not a list of keys.", hint=_HINT)
    found = _printed(text) if _PRINTED.match(text) else _lines(text)
    if not found:
        raise UsageError(f"{called} lists no keys.", hint="Write one key per line.")
    if len(found) > DEFAULT_LIMITS.tensors:
        raise LimitExceeded(f"{called} lists more than {DEFAULT_LIMITS.tensors:,} keys.")
    twice = next((name for name, count in Counter(name for name, _ in found).items() if count > 1), None)
    if twice is not None:
        raise UsageError(f'{called} lists "{twice[:200]}" more than once.')
    shaped = all(shape is not None for _, shape in found)
    tensors = tuple(TargetTensor(name=name, shape=shape if shaped else None) for name, shape in found)
    return Target(label=label, kind=TargetKind.KEYS, tensors=tensors)


def _printed(text: str) -> list[tuple[str, Shape | None]]:
    return [(one["name"], _shape(one["shape"])) for one in _QUOTED.finditer(text)]


def _lines(text: str) -> list[tuple[str, Shape | None]]:
    found: list[tuple[str, Shape | None]] = []
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        shaped = _LINE.fullmatch(line)
        if shaped is not None:
            found.append((shaped["name"], _shape(shaped["shape"])))
            continue
        # print(*model.state_dict()) puts them side by side. A name may have a space; then its pieces are no names.
        pieces = line.replace(",", " ").split()
        several = len(pieces) > 1 and all(re.search(r"[^.\s][./][^.\s]", piece) for piece in pieces)
        found += [(piece, None) for piece in (pieces if several else [line])]
    return found


def _shape(text: str | None) -> Shape | None:
    return None if text is None else tuple(map(int, re.findall(r"[0-9]+", text)))
