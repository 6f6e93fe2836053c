"""What shapes tell of attention: heads where a table has a column for each, shared keys and values, places."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from inspector.architectures.structure.types import Claim, Layer, LayerKind, Topic
from inspector.checkpoint.types import Shape, TensorInfo
from inspector.units import human_shape

_TABLE = "relative_position_bias_table"
_POSITIONS = re.compile(r"(?:^|[._])pos(?:ition(?:al)?)?_?emb(?:ed(?:ding)?)?s?(?:\.weight)?$", re.I)
# One projection each; the same words in every library that keeps three.
_TRIPLES = (
    ("q_proj", "k_proj", "v_proj"),
    ("query", "key", "value"),
    ("to_q", "to_k", "to_v"),
    ("q", "k", "v"),
    ("wq", "wk", "wv"),
    ("q_lin", "k_lin", "v_lin"),
)
_JOINT = ("qkv", "in_proj", "c_attn", "to_qkv", "qkv_proj", "query_key_value", "Wqkv")
_MOST_MORE = 2  # tokens beside the places of a grid


def is_attention(layers: Sequence[Layer]) -> bool:
    """Whether anything in it is attention, by kind or by the names of its projections."""
    names = {layer.path.rpartition(".")[2] for layer in layers}
    return (
        any(layer.kind is LayerKind.ATTENTION for layer in layers)
        or any(names.issuperset(triple) for triple in _TRIPLES)
        or any(is_joint(layer) for layer in layers)
    )


def is_joint(layer: Layer) -> bool:
    """Whether it is three projections in one, by its name and widths."""
    three = layer.inputs and layer.outputs == 3 * layer.inputs
    return bool(three) and layer.path.rpartition(".")[2] in _JOINT


def attention(tensors: Sequence[TensorInfo], layers: Sequence[Layer]) -> Iterator[Claim]:
    """The first of each kind; what repeats is the stacks' to say."""
    yield from _first(_heads(t.name, t.shape) for t in tensors if t.name.endswith(_TABLE))
    yield from _shared(layers)
    yield from _first(_places(t.name, t.shape) for t in tensors if _POSITIONS.search(t.name))


def _first(claims: Iterator[Claim | None]) -> Iterator[Claim]:
    found = next((claim for claim in claims if claim is not None), None)
    if found is not None:
        yield found


def _heads(name: str, shape: Shape) -> Claim | None:
    if len(shape) != 2:
        return None
    side = math.isqrt(shape[0])
    if side * side != shape[0] or side % 2 == 0:
        return None
    window = (side + 1) // 2
    return Claim(
        topic=Topic.HEADS,
        says=f"{name.rpartition('.')[0]} has {shape[1]:,} heads over windows of {window} x {window}.",
        evidence=f"{_TABLE} {human_shape(shape)}: a column for each head, (2 x {window} - 1)² rows",
        value=shape[1],
        path=name.rpartition(".")[0],
    )


def _shared(layers: Sequence[Layer]) -> Iterator[Claim]:
    by_path = {layer.path: layer for layer in layers}
    for layer in layers:
        parent, _, last = layer.path.rpartition(".")
        for query, key, value in _TRIPLES:
            if last != query:
                continue
            k, v = (by_path.get(f"{parent}.{name}".lstrip(".")) for name in (key, value))
            if k is None or v is None or not k.outputs or k.outputs != v.outputs or not layer.outputs:
                continue
            if layer.outputs > k.outputs and layer.outputs % k.outputs == 0:
                times = layer.outputs // k.outputs
                yield Claim(
                    topic=Topic.ATTENTION,
                    says=f"{parent} shares each key and value between {times} heads (grouped-query attention).",
                    evidence=f"{query} puts out {layer.outputs:,}, {key} and {value} {k.outputs:,}",
                    value=times,
                    path=parent,
                )
                return


def _places(name: str, shape: Shape) -> Claim | None:
    sizes = tuple(n for n in shape if n != 1)
    if len(sizes) != 2 or len(shape) > 3:
        return None
    places = sizes[0]
    grid = ""
    for more in range(_MOST_MORE + 1):
        side = math.isqrt(max(0, places - more))
        if side > 2 and side * side + more == places:
            grid = f", as many as {side} x {side}" + (f" and {more} more" if more else "")
            break
    return Claim(
        topic=Topic.POSITIONS,
        says=f"{name} has {places:,} places{grid}.",
        evidence=f"{name} {human_shape(shape)}",
        value=places,
        path=name,
    )
