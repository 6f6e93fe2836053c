"""GGUF's quantised blocks: the weights that ggml makes of them, a tile of blocks at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import why_unreadable
from inspector.checkpoint.types import TensorInfo
from inspector.weights.decoded.ggml_blocks import BlockType
from inspector.weights.decoded.ggml_others import OTHER_TYPES
from inspector.weights.decoded.ggml_simple import SIMPLE_TYPES
from inspector.weights.decoded.ggml_super import SUPER_TYPES
from inspector.weights.decoded.types import Decoded, Decoder, TensorBytes
from inspector.weights.report import Decoding, NumberKind

BLOCK_TYPES: dict[str, BlockType] = {kind.name: kind for kind in (*SIMPLE_TYPES, *SUPER_TYPES, *OTHER_TYPES)}


def _claims(tensor: TensorInfo) -> bool:
    return tensor.layout == "quantised_blocks" and tensor.encoding is not None and len(tensor.encoding.parts) == 1


def _decode(place: TensorBytes) -> Decoded:
    tensor = place.tensor
    assert tensor.encoding is not None
    scheme, held = tensor.encoding.scheme, tensor.encoding.parts[0]
    kind = BLOCK_TYPES.get(scheme)
    if kind is None:
        raise place.refusal(f"it is stored as quantised blocks ({scheme}), which are not decoded here")
    why = why_unreadable(held)
    if why:
        raise place.refusal(why)
    storage = place.checkpoint.storages.get(held.storage_id or "")
    swapped = storage is not None and storage.big_endian
    if swapped and not kind.big_endian:
        raise place.refusal(f"how blocks of {scheme} lie in a big-endian file is not known")
    if held.dtype != "uint8" or held.numel * kind.weights != tensor.numel * kind.nbytes:
        raise place.refusal(f"{tensor.numel:,} weights are no whole number of {scheme} blocks in {held.numel:,} bytes")
    return Decoded(
        dtype="float32",
        shape=tensor.shape,
        chunks=_values(place, held, kind, swapped=swapped),
        decoding=Decoding(kind=NumberKind.VALUES, dtype="float32", says=f"values of {scheme} blocks"),
    )


def _values(place: TensorBytes, held: TensorInfo, kind: BlockType, *, swapped: bool) -> Iterator[NDArray[np.float32]]:
    """Into one array again and again."""
    fields = kind.fields.newbyteorder(">") if swapped else kind.fields
    most = max(1, place.at_once // kind.weights)
    out = np.empty((min(most, max(1, held.numel // kind.nbytes)), kind.weights), np.float32)
    for chunk in place.stored(held, most * kind.nbytes):
        blocks = chunk.view(np.uint8).view(fields)
        values = out[: blocks.size]
        with np.errstate(over="ignore", invalid="ignore"):
            kind.decode(blocks, values)
        yield values.reshape(-1)


DECODER = Decoder(id="ggml", claims=_claims, decode=_decode)
