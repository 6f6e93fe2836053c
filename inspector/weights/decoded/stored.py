"""Sparse tensors: the values that are stored, of however many elements; what is not stored is zero and not counted."""

from __future__ import annotations

import dataclasses

from inspector.checkpoint.types import TensorInfo
from inspector.units import counted
from inspector.weights.decoded import parts, plain
from inspector.weights.decoded.types import Decoded, Decoder, TensorBytes
from inspector.weights.report import Decoding, NumberKind


def _claims(tensor: TensorInfo) -> bool:
    return tensor.layout.startswith("sparse")


def _decode(place: TensorBytes) -> Decoded:
    encoding = place.tensor.encoding
    layout = place.tensor.layout.removeprefix("sparse").strip("_").upper()
    # Indices and values, or compressed indices, plain indices and values: see `Encoding`.
    if encoding is None or len(encoding.parts) not in (2, 3) or encoding.parts[-1].layout != "strided":
        raise place.refusal(f"it is stored as sparse {layout}, and its values are not known")
    values = dataclasses.replace(encoding.parts[-1], name=place.tensor.name)
    decoder = parts.DECODER if parts.DECODER.claims(values) else plain.DECODER
    decoded = decoder.decode(dataclasses.replace(place, tensor=values))
    says = f"{counted(values.numel, 'stored value')} of {counted(place.tensor.numel, 'element')} (sparse {layout})"
    if decoded.decoding is not None:
        says = f"{decoded.decoding.says} of {says}"
    if encoding.scheme == "sparse_coo" and encoding.coalesced is not True:
        says += ", not added up where one place occurs twice"
    # A row of the values is no row of the tensor.
    return dataclasses.replace(
        decoded, shape=(), decoding=Decoding(kind=NumberKind.STORED, dtype=decoded.dtype, says=says)
    )


DECODER = Decoder(id="sparse", claims=_claims, decode=_decode)
