"""What shapes tell of attention: heads where a table has a column for each, shared keys and values, places."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from inspector.architectures.structure.marks import is_kept, kept_keys
from inspector.architectures.structure.projections import by_module, projections
from inspector.architectures.structure.types import Claim, Layer, LayerKind, Topic
from inspector.checkpoint.name_forms import forms_of
from inspector.checkpoint.types import Shape, TensorInfo
from inspector.units import human_shape

_TABLE = "relative_position_bias_table"
_POSITIONS = re.compile(
    r"(?:^|[._])pos(?:ition(?:al)?)?_?(?:emb(?:ed(?:ding)?)?s?|table|encodings?)(?:\.weight)?$", re.I
)
# One projection each; the same words in every library that keeps three.
_TRIPLES = (
    ("q_proj", "k_proj", "v_proj"),
    ("query", "key", "value"),
    ("to_q", "to_k", "to_v"),
    ("q", "k", "v"),
    ("wq", "wk", "wv"),
    ("q_lin", "k_lin", "v_lin"),
)
# A row for each distance, a column for each head; an Embedding or a matrix of its own.
_DISTANCES = re.compile(r"(?:^|[._])rel(?:ative)?_?(?:attn|att|attention|pos(?:ition)?s?)?_?(?:bias|table)\w*$", re.I)
_MOST_HEADS, _MOST_TABLES = 128, 8
_JOINT = ("qkv", "in_proj", "c_attn", "to_qkv", "qkv_proj", "query_key_value", "Wqkv")
_MOST_MORE = 2  # tokens beside the places of a grid


def is_attention(layers: Sequence[Layer]) -> bool:
    """Whether anything in it is attention, by kind or by the names of its projections."""
    names = {layer.path.rpartition(".")[2] for layer in layers}
    return (
        any(layer.kind is LayerKind.ATTENTION for layer in layers)
        or any(names.issuperset(triple) for triple in _TRIPLES)
        or any(is_joint(layer) for layer in layers)
        or bool(by_module(layers))
    )


def is_joint(layer: Layer) -> bool:
    """Whether it is three projections in one, by its name and widths."""
    three = layer.inputs and layer.outputs == 3 * layer.inputs
    return bool(three) and layer.path.rpartition(".")[2] in _JOINT


def attention(tensors: Sequence[TensorInfo], layers: Sequence[Layer]) -> Iterator[Claim]:
    """The first of each kind; what repeats is the stacks' to say."""
    forms = forms_of(tensor.name for tensor in tensors)
    yield from _first(_heads(t.name, t.shape) for t in tensors if t.name.endswith(_TABLE))
    tables = _named_distances(layers)
    yield from _first(_distances(table, layers) for table in tables[:_MOST_TABLES])
    yield from kept_keys(tensors, layers)
    yield from projections(layers)
    yield from _shared(layers)
    if any(map(_POSITIONS.search, forms)):
        yield from _first(_places(t.name, t.shape) for t in tensors if _POSITIONS.search(t.name))


def _named_distances(layers: Sequence[Layer]) -> list[Layer]:
    if not any(map(_DISTANCES.search, forms_of(layer.path for layer in layers))):
        return []
    return [layer for layer in layers if _DISTANCES.search(layer.path)]


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


def _distances(table: Layer, layers: Sequence[Layer]) -> Claim | None:
    """A table beside three projections whose width it divides."""
    parent = table.path.rpartition(".")[0]
    sizes = (table.inputs, table.outputs) if table.kind is LayerKind.EMBEDDING else (table.outputs, table.inputs)
    if table.kind not in {LayerKind.EMBEDDING, LayerKind.MATRIX} or not sizes[0] or not sizes[1]:
        return None
    rows, heads = sizes[0], sizes[1]
    queries = {names[0] for names in _TRIPLES}
    query = next((one for one in layers if one.path.rpartition(".")[0] == parent and _last(one) in queries), None)
    if query is None or not query.outputs or query.outputs % heads or not 1 < heads <= min(_MOST_HEADS, rows):
        return None
    distances = f" ({rows:,} rows = 2 x {(rows + 1) // 2:,} - 1 distances)" if rows % 2 else ""
    return Claim(
        topic=Topic.HEADS,
        says=f"{parent} has {heads:,} heads, a column of {_last(table)} for each{distances}.",
        evidence=f"{table.name} {rows}x{heads}, its name, and {heads:,} divide the {query.outputs:,} of {_last(query)}",
        value=heads,
        path=parent,
    )


def _last(layer: Layer) -> str:
    return layer.path.rpartition(".")[2]


def has_other_attention(layers: Sequence[Layer]) -> bool:
    """Whether a module has projections of attention and no table that tells its heads."""
    queries = {names[0] for names in _TRIPLES} | set(_JOINT)
    own = [layer.path.rpartition(".")[0] for layer in layers if _last(layer) in queries]
    if not own:
        return False
    tables = {layer.path.rpartition(".")[0] for layer in _named_distances(layers)}
    tables |= {layer.path.rpartition(".")[0] for layer in layers if layer.path.endswith(_TABLE)}
    tables |= {layer.path.rpartition(".")[0] for layer in layers if is_kept(layer.path)}
    return any(parent not in tables for parent in own)


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
