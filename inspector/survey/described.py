"""What is in a file, for a catalogue of many: its row, its findings, its network and its tensors, as one line of JSON.

It is taken down where the file is read and kept beside the result in the store: whoever makes a catalogue reads the
store alone, and no driver ever holds the tensors of a million files.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from inspector.architectures.recognise import recognise
from inspector.checkpoint.types import Checkpoint, StateRole, TensorInfo
from inspector.errors import InspectorError
from inspector.survey.report import SurveyRow
from inspector.units import shorten_middle

#: What these lines are called in a store.
DESCRIBED = "described"
# (path in it, size, time of the last change in ns, or what a store says) of each file; one of "" for a file itself.
Identity = tuple[tuple[str, int, int | str], ...]
#: Told once the numbers of a checkpoint were read: (digest, whether all is one value) of each tensor, by its path.
NumbersSeen = Callable[[Mapping[tuple[str, ...], tuple[str, bool]]], None]

_MOST_TEXT = 2_000
_TOLD_APART = 16
_MOST_TENSORS = 2_000_000
_MOST_SUBJECTS = 20
# A column of whole numbers ends here; a file may declare any size.
_MOST_WHOLE = 2**63 - 1
_SHA256 = re.compile(r"[0-9a-f]{64}")
# What JSON may hold and a table of text may not: half a surrogate pair, and the sign that ends a text in C.
_UNTABLED = re.compile("[\x00\ud800-\udfff]")


class Describer:
    """Takes down the checkpoints of one unit: a file with its members, or a folder."""

    def __init__(self) -> None:
        self._described: dict[str, dict[str, Any]] = {}
        self._digests: Mapping[tuple[str, ...], tuple[str, bool]] | None = None

    def numbers(self, digests: Mapping[tuple[str, ...], tuple[str, bool]]) -> None:
        """The numbers of the checkpoint that is described next were read."""
        self._digests = digests

    def describe(self, path: str, checkpoint: Checkpoint) -> None:
        """What is in the one of that row. Raises nothing for what the file contains."""
        digests, self._digests = self._digests, None
        try:
            self._described[path] = {
                **_network(checkpoint),
                **_tensors(checkpoint, digests or {}),
                "numbers": digests is not None,
            }
        except (InspectorError, ValueError, RecursionError, MemoryError):
            # Its row and findings tell what it is; a catalogue without its tensors is better than none.
            self._described.pop(path, None)

    def unit(self, rows: Sequence[SurveyRow], parts: Sequence[str], identity: Identity | None) -> bytes:
        """The line of the whole unit."""
        return unit_line(rows, parts, identity, self._described)


def unit_line(
    rows: Sequence[SurveyRow],
    parts: Sequence[str] = (),
    identity: Identity | None = None,
    described: Mapping[str, Mapping[str, Any]] | None = None,
) -> bytes:
    """A unit as the catalogue reads it: its rows, and whatever was taken down of each."""
    known = json.dumps(identity, ensure_ascii=True) if identity else ""
    tag = identity[0][2] if identity and isinstance(identity[0][2], str) else ""
    line = {
        "identity": hashlib.sha256(known.encode("ascii")).hexdigest()[:32] if known else "",
        "tag": tabled(tag),
        "covers": [tabled(part) for part in parts],
        "rows": [
            _row(row, (described or {}).get(row.path, {}), tag if number == 0 else "")
            for number, row in enumerate(rows)
        ],
    }
    return json.dumps(line, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def tabled(text: str) -> str:
    """The same text as a table of text can hold it: what it cannot is written out, and no name is endless. A digest
    behind what is shortened tells two apart that differ where it is cut."""
    text = _UNTABLED.sub(lambda match: ascii(match[0])[1:-1], text)
    if len(text) <= _MOST_TEXT:
        return text
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()[:_TOLD_APART]
    return f"{shorten_middle(text, _MOST_TEXT - _TOLD_APART - 1)}#{digest}"


def _whole(number: int) -> int:
    return max(-_MOST_WHOLE, min(number, _MOST_WHOLE))


def _row(row: SurveyRow, described: Mapping[str, Any], tag: str) -> dict[str, Any]:
    sha256 = row.sha256 or (tag if _SHA256.fullmatch(tag) else None)
    return {
        "path": tabled(row.path),
        "nbytes": _whole(row.nbytes),
        "kind": row.kind.value,
        "format": tabled(row.format),
        "producer": tabled(row.producer),
        "tensors": _whole(row.tensors),
        "parameters": _whole(row.parameters),
        "buffers": _whole(row.buffers),
        "dangerous": _whole(row.dangerous),
        "unknown": _whole(row.unknown),
        "severity": row.worst.value if row.worst is not None else None,
        "finding": row.finding,
        "says": tabled(row.says),
        "sha256": sha256,
        "findings": [
            {
                "id": one.id,
                "severity": one.severity.value,
                "says": tabled(one.says),
                "subjects": [tabled(subject) for subject in one.subjects[:_MOST_SUBJECTS]],
            }
            for one in row.findings
        ],
        **described,
    }


def _network(checkpoint: Checkpoint) -> dict[str, Any]:
    best = recognise(checkpoint, describe=False).best if checkpoint.weights is not None else None
    if best is None:
        return {}
    return {
        "architecture": f"{best.spec.library}/{best.spec.name}",
        "classes": None if best.spec.num_classes is None else _whole(best.spec.num_classes),
        "confidence": round(best.score, 4),
        "exact": best.exact,
    }


def _tensors(checkpoint: Checkpoint, digests: Mapping[tuple[str, ...], tuple[str, bool]]) -> dict[str, Any]:
    roles = {tensor.path: state.role for state in reversed(checkpoint.state_dicts) for tensor in state.tensors}
    if checkpoint.weights is not None:
        roles.update((tensor.path, StateRole.WEIGHTS) for tensor in checkpoint.weights.tensors)
    listed = checkpoint.tensors[:_MOST_TENSORS]
    found = [digests.get(tensor.path, ("", False)) for tensor in listed]
    counts = Counter(tensor.dtype for tensor in listed)
    return {
        "dtypes": dict(sorted(counts.items())),
        "weights_digest": _digest_of_weights(checkpoint, digests),
        "held": {
            "name": [tabled(tensor.name) for tensor in listed],
            "role": [roles.get(tensor.path, StateRole.OTHER).value for tensor in listed],
            "dtype": [tensor.dtype for tensor in listed],
            "shape": [[_whole(size) for size in tensor.shape] for tensor in listed],
            "nbytes": [_whole(tensor.nbytes) for tensor in listed],
            "digest": [digest or None for digest, _ in found],
            "constant": [constant if digest else None for digest, constant in found],
        },
    }


def _digest_of_weights(checkpoint: Checkpoint, digests: Mapping[tuple[str, ...], tuple[str, bool]]) -> str | None:
    """Of the likeliest weights, names and numbers, whatever file they lie in; None where one has no digest."""
    weights: Sequence[TensorInfo] = checkpoint.weights.tensors if checkpoint.weights is not None else ()
    named = sorted((tensor.name, digests.get(tensor.path, ("", False))[0]) for tensor in weights)
    if not named or not all(digest for _, digest in named):
        return None
    told = json.dumps(named, ensure_ascii=True, separators=(",", ":"))
    return hashlib.blake2b(told.encode("ascii"), digest_size=16).hexdigest()
