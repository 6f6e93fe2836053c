"""What is measured of a tensor whose stored elements are no plain numbers: the first decoder that claims it says so.

A new one is a file and a name here; `plain` takes what nobody claims.
"""

from __future__ import annotations

from inspector.checkpoint.layout import is_plain_float
from inspector.checkpoint.types import TensorInfo
from inspector.weights.decoded import blocks, packed, parts, plain, quantised, stored, words
from inspector.weights.decoded.types import Decoder

DECODERS: tuple[Decoder, ...] = (
    blocks.DECODER,
    packed.DECODER,
    stored.DECODER,
    parts.DECODER,
    quantised.DECODER,
    words.DECODER,
)


def find_decoder(tensor: TensorInfo) -> Decoder:
    """Who reads that tensor's numbers."""
    # Nearly all tensors of nearly all files, and nobody's claim: thousands of them need not be offered to everyone.
    if is_plain_float(tensor):
        return plain.DECODER
    return next((decoder for decoder in DECODERS if decoder.claims(tensor)), plain.DECODER)
