"""Integers that hold several codes each: measured as they are, and said to be what they are.

GPTQ (AutoGPTQ, GPTQModel; arXiv:2210.17323) and AWQ (AutoAWQ; arXiv:2306.00978) pack a layer's weights of 2, 3, 4 or 8
bits into int32 words named qweight, and its zero points into qzeros. Only with scales and the group index beside them
are they weights, so they are not decoded here.
"""

from __future__ import annotations

import dataclasses

from inspector.checkpoint.types import TensorInfo
from inspector.weights.decoded import plain
from inspector.weights.decoded.types import Decoded, Decoder, TensorBytes
from inspector.weights.report import Decoding, NumberKind

_WORDS = {
    "qweight": "int32 words of packed codes, as GPTQ and AWQ store weights: no weights without the scales beside them",
    "qzeros": "int32 words of packed codes, as GPTQ and AWQ store zero points",
}


def _last(tensor: TensorInfo) -> str:
    return tensor.name.rpartition(".")[2]


def _claims(tensor: TensorInfo) -> bool:
    return tensor.dtype == "int32" and len(tensor.shape) == 2 and _last(tensor) in _WORDS


def _decode(place: TensorBytes) -> Decoded:
    says = _WORDS[_last(place.tensor)]
    return dataclasses.replace(
        plain.DECODER.decode(place), decoding=Decoding(kind=NumberKind.CODES, dtype="int32", says=says)
    )


DECODER = Decoder(id="words", claims=_claims, decode=_decode)
