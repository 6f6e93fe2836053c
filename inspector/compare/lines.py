"""A checkpoint as lines of text that another's can be held against by any text diff, git's above all.

One line per tensor, sorted by name, so that a line changes when and only when its tensor does.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator

import numpy as np

from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.compare.held import Held, piece_chunks, stored_type
from inspector.compare.kernel import BLOCK, values
from inspector.compare.numbers import total
from inspector.compare.pair import blocks
from inspector.errors import InspectorError
from inspector.progress import silent
from inspector.weights.decoded import find_decoder
from inspector.weights.decoded.types import TensorBytes
from inspector.weights.meter import Meter
from inspector.weights.moments import column_sums

#: Characters of a tensor's sha256.
DIGEST = 8
_LONGEST = 200


def checkpoint_lines(checkpoint: Checkpoint) -> Iterator[str]:
    """What the file is and says of itself behind "#", then `name type shape digest8 rms` of every tensor, sorted.

    Names are the keys from the root of the file with dots between them, so that two state dicts stay apart. digest8:
    the beginning of the sha256 of its elements in row-major order, little-endian. rms: root mean square of its finite
    numbers; what is not finite is counted behind it.
    """
    yield f"# {one_word(checkpoint.format_says, spaces=True)}"
    for key, text in sorted(checkpoint.own_metadata):
        yield f"# {one_word(f'{key}: {text}'[:_LONGEST], spaces=True)}"
    for tensor in sorted(checkpoint.tensors, key=_name):
        yield " ".join((one_word(_name(tensor)), stored_type(tensor), _shape(tensor), *_content(checkpoint, tensor)))


def _name(tensor: TensorInfo) -> str:
    return ".".join(tensor.path) or tensor.name


def _shape(tensor: TensorInfo) -> str:
    return "x".join(map(str, tensor.shape)) or "scalar"


def one_word(text: str, *, spaces: bool = False) -> str:
    """Text of a file without anything that a terminal obeys or that ends a line; without spaces where a name is one
    word."""
    return "".join(c if c.isprintable() and (spaces or c != " ") else _written_out(c) for c in text)


def _written_out(character: str) -> str:
    return "\\x20" if character == " " else character.encode("unicode_escape").decode()


def _content(checkpoint: Checkpoint, tensor: TensorInfo) -> tuple[str, ...]:
    try:
        digest = _digest(checkpoint, tensor)
    except (InspectorError, OSError, ValueError, MemoryError):
        return ("unreadable", "-")
    return (digest, _rms(checkpoint, tensor))


def _digest(checkpoint: Checkpoint, tensor: TensorInfo) -> str:
    digest = hashlib.sha256()
    for piece in piece_chunks(Held(checkpoint, tensor), Meter(silent, 0)):
        digest.update(piece)
    return digest.hexdigest()[:DIGEST]


def _rms(checkpoint: Checkpoint, tensor: TensorInfo) -> str:
    place = TensorBytes(checkpoint=checkpoint, tensor=tensor, at_once=BLOCK)
    squares: list[float] = []
    count = odd = 0
    try:
        decoded = find_decoder(tensor).decode(place)
        for block in blocks(decoded):
            own = values(block, decoded.dtype).astype(np.float64)
            finite = np.isfinite(own)
            if not finite.all():
                odd += own.size - int(np.count_nonzero(finite))
                own[~finite] = 0.0
            with np.errstate(over="ignore"):
                squares.append(float(np.add.reduce(column_sums(own * own))))
            count += own.size
    except (InspectorError, OSError, ValueError, MemoryError):
        return "-"
    rms = f"{math.sqrt(total(squares) / (count - odd)):.6g}" if count > odd else "-"
    return f"{rms} {odd} not finite" if odd else rms
