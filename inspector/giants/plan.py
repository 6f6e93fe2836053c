"""The pieces of one checkpoint, from its headers alone: small tensors of a file together, large ones cut between the
leaves that their statistics are added up by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.types import Checkpoint, Storage, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.giants.places import Known, SentSource, known_by, narrowed, part_of
from inspector.sweep.piece import Piece, key_of
from inspector.weights.measure import may_be_cut
from inspector.weights.moments import LEAF

#: What the results are called in a store.
QUESTION = "numbers"
#: Bytes of a piece, at the most: about a second of work.
PIECE_NBYTES = 256 << 20
# Tensors that travel together: of twenty thousand biases, what is in flight should be a few hundred.
_MOST_TENSORS = 1000
_NOTHING = Value(kind=ValueKind.NONE, type_name="NoneType", says="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What is asked of one tensor: the numbers of all of it (numel None), or of so many elements from `first` on."""

    tensor: TensorInfo
    first: int = 0
    numel: int | None = None

    @property
    def nbytes(self) -> int:
        """That are read for it."""
        if self.numel is None:
            return self.tensor.nbytes
        return self.numel * DTYPES[self.tensor.dtype].itemsize


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A piece as it travels. checkpoint: nothing of it but where the bytes of these tensors lie. known: what tells that
    they are still the same, None where nothing does. of_nbytes: what all pieces read together."""

    checkpoint: Checkpoint
    stretches: tuple[Stretch, ...]
    known: Known | None = None
    of_nbytes: int = 0


def plan_pieces(
    checkpoint: Checkpoint, tensors: Sequence[TensorInfo], *, most_nbytes: int = PIECE_NBYTES
) -> tuple[Piece[Item], ...]:
    """Pieces that together ask for all of the tensors, each once, in the order of their bytes.

    most_nbytes: of one piece. A tensor that cannot be cut (decoded, compressed, a view) is one piece whatever its size,
    and a leaf of 2^24 elements is never cut. Raises OSError where a file is not there any more.
    """
    known: KnownParts = {}
    nbytes = sum(tensor.nbytes for tensor in tensors)
    return tuple(
        _piece(checkpoint, stretches, known, nbytes)
        for stretches in _groups(checkpoint, _stretches(checkpoint, tensors, most_nbytes), most_nbytes)
    )


def _stretches(checkpoint: Checkpoint, tensors: Sequence[TensorInfo], most_nbytes: int) -> Iterator[Stretch]:
    for tensor in sorted(tensors, key=lambda tensor: place_of(checkpoint, tensor)):
        if tensor.nbytes <= most_nbytes or not may_be_cut(checkpoint, tensor):
            yield Stretch(tensor=tensor)
            continue
        step = max(1, most_nbytes // (LEAF * DTYPES[tensor.dtype].itemsize)) * LEAF
        for first in range(0, tensor.numel, step):
            yield Stretch(tensor=tensor, first=first, numel=min(step, tensor.numel - first))


def _groups(checkpoint: Checkpoint, stretches: Iterator[Stretch], most_nbytes: int) -> Iterator[tuple[Stretch, ...]]:
    """Neighbours of one file."""
    group: list[Stretch] = []
    held = part = 0
    for stretch in stretches:
        own = part_of(checkpoint.source, place_of(checkpoint, stretch.tensor)[1])
        full = held + stretch.nbytes > most_nbytes or len(group) >= _MOST_TENSORS
        if group and (full or own != part):
            yield tuple(group)
            group, held = [], 0
        group.append(stretch)
        held, part = held + stretch.nbytes, own
    if group:
        yield tuple(group)


def place_of(checkpoint: Checkpoint, tensor: TensorInfo) -> tuple[bool, int]:
    """Where its storage begins, those without one last."""
    storage = _storage(checkpoint, tensor)
    first = storage.offset if storage is not None else None
    size = DTYPES[tensor.dtype].itemsize if tensor.dtype in DTYPES else 1
    return first is None, (first or 0) + (tensor.offset * size if first is not None else 0)


def _storage(checkpoint: Checkpoint, tensor: TensorInfo) -> Storage | None:
    return checkpoint.storages.get(tensor.storage_id or "")


def _piece(checkpoint: Checkpoint, stretches: tuple[Stretch, ...], known: KnownParts, nbytes: int) -> Piece[Item]:
    part = part_with(checkpoint, [stretch.tensor for stretch in stretches], known)
    told = [repr((stretch.tensor, stretch.first, stretch.numel)) for stretch in stretches]
    return Piece(
        item=Item(checkpoint=part.checkpoint, stretches=stretches, known=part.known, of_nbytes=nbytes),
        key=key_of(QUESTION, *part.facts, told) if part.known is not None else "",
        nbytes=sum(stretch.nbytes for stretch in stretches),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOf:
    """Of a checkpoint what some tensors need, to be sent. facts: what tells its bytes from others', for a key."""

    checkpoint: Checkpoint
    known: Known | None
    facts: tuple[object, ...]


#: What files are known by, which many pieces ask of the same ones.
KnownParts = dict[tuple[int, ...], Known | None]


def part_with(checkpoint: Checkpoint, tensors: Iterable[TensorInfo], known: KnownParts) -> PartOf:
    """known: is added to. Raises OSError where a file is not there any more."""
    storages: dict[str, Storage] = {}
    for tensor in tensors:
        for one in _with_parts(tensor):
            storage = _storage(checkpoint, one)
            if storage is not None:
                storages[storage.id] = storage
    spans = [(s.offset, s.offset + _length(s)) for s in storages.values() if s.offset is not None]
    low, high = min((first for first, _ in spans), default=0), max((end for _, end in spans), default=0)
    source, before = narrowed(checkpoint.source, low, high)
    leaf = (id(source), *(id(part) for part in getattr(source, "parts", ())))
    if leaf not in known:
        known[leaf] = known_by(source)
    moved = {
        name: storage if storage.offset is None else replace(storage, offset=storage.offset - before)
        for name, storage in storages.items()
    }
    sent = Checkpoint(
        origin=checkpoint.origin,
        format=checkpoint.format,
        format_says=checkpoint.format_says,
        root=_NOTHING,
        tensors=(),
        storages=moved,
        source=SentSource(source, source.name, source.size),
    )
    told = [repr(one) for one in moved.values()]
    return PartOf(
        checkpoint=sent, known=known[leaf], facts=(checkpoint.format, checkpoint.origin.name, known[leaf], told)
    )


def _with_parts(tensor: TensorInfo) -> Iterator[TensorInfo]:
    yield tensor
    for part in tensor.encoding.parts if tensor.encoding is not None else ():
        yield from _with_parts(part)


def _length(storage: Storage) -> int:
    """Of its bytes in the file."""
    if storage.deflated_nbytes is not None:
        return storage.deflated_nbytes
    return storage.present_nbytes
