"""What a worker does with a piece: a function of the piece alone, which runs anywhere."""

from __future__ import annotations

import socket

from inspector.checkpoint.types import Checkpoint
from inspector.errors import CorruptFile, InspectorError, LimitExceeded, NoRoom, ReadError, RefusedContent
from inspector.giants.places import Known, SentSource, buckets_of, known_by
from inspector.giants.plan import Item, Stretch
from inspector.giants.written import Answer, written
from inspector.sweep.piece import Outcome
from inspector.weights import kernel
from inspector.weights.measure import measure_part, measure_tensor


def measure_piece(item: Item) -> Outcome:
    """An answer for each stretch of the piece. Kept is what says something of the file alone: not what a network or a
    disk would not give now, nor what changed meanwhile."""
    kernel.expect(item.of_nbytes)
    why = elsewhere(item.checkpoint, item.known)
    if not why:
        found = [_answer(item, stretch) for stretch in item.stretches]
        why = elsewhere(item.checkpoint, item.known, read=True)
        if not why:
            kept = item.known is not None and all(lasting for _, lasting in found)
            return Outcome(data=written([answer for answer, _ in found]), kept=kept)
    return Outcome(data=written([f"{stretch.tensor.name}: {why}" for stretch in item.stretches]), kept=False)


def lost_piece(item: Item, why: str) -> Outcome:
    """What becomes of a piece that no worker survives."""
    memory = why.startswith("MemoryError")
    says = "the process that read it ran out of memory" if memory else f"reading it failed ({why[:200]})"
    return Outcome(
        data=written([f"{one.tensor.name} could not be read: {says}." for one in item.stretches]), kept=False
    )


def _answer(item: Item, stretch: Stretch) -> tuple[Answer, bool]:
    """The answer, and whether it will be the same another time."""
    tensor = stretch.tensor
    try:
        if stretch.numel is None:
            return measure_tensor(item.checkpoint, tensor), True
        return measure_part(item.checkpoint, tensor, stretch.first, stretch.numel), True
    except InspectorError as error:
        told_by_bytes = isinstance(error, CorruptFile | LimitExceeded | RefusedContent) and not isinstance(
            error, NoRoom
        )
        refused = type(error) is ReadError and error.__cause__ is None
        return error.says, told_by_bytes or refused
    except (OSError, ValueError, MemoryError) as error:
        return f"{tensor.name} could not be read: {error}.", False


def elsewhere(checkpoint: Checkpoint, known: Known | None, *, read: bool = False) -> str:
    """Why the bytes are not those that were planned for, as a sentence; "" where they are. read: they were, now."""
    name = checkpoint.source.name
    if known is None:
        return ""
    sent = checkpoint.source
    try:
        source = sent.source if isinstance(sent, SentSource) else sent
        if known_by(source) != known or (read and any(one.changed() for one in buckets_of(source))):
            return f"{name} changed while it was read: ask again."
    except InspectorError as error:
        return error.says
    except OSError:
        return f"{socket.gethostname()} does not see {name}. Workers need the same paths as whoever sends them there."
    return ""
