"""An LSTM, a GRU or a plain recurrent layer by its tensors, under torch's names or those that wrappers put in place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from inspector.architectures.structure.types import BOTH_DIRECTIONS, Layer, LayerKind
from inspector.checkpoint.types import ModuleNode, Shape, TensorInfo
from inspector.units import human_shape

_NAME = re.compile(r"(?:weight|bias)_(?:ih|hh|hr)(?:_l(\d+)(_reverse)?)?")
# Weight drop (Merity 2018, section 2) renames what it drops from; norms and pruning keep a weight in parts.
_RENAMED = re.compile(r"(?:parametrizations\.)?((?:weight|bias)_(?:ih|hh|hr)(?:_l\d+(?:_reverse)?)?)(?:_|\.)(\w+)")
_WHOLE = {
    "raw": "as weight drop keeps them",
    "v": "weight norm",
    "original1": "weight norm",
    "orig": "reparametrised",
    "original": "reparametrised",
    "original0": "",
    **dict.fromkeys(("g", "u", "mask"), ""),
}
_BY_GATES = {4: LayerKind.LSTM, 3: LayerKind.GRU, 1: LayerKind.RNN}
_WRAPPED = "module"


def recurrent_layer(path: str, tensors: Mapping[str, Shape]) -> tuple[Layer, set[str]] | None:
    """(layer, names of its tensors), None where there is none or the gates do not fit."""
    plain, why = _plain(tensors)
    # A cell has no number behind its names.
    end = "" if "weight_ih" in plain else "_l0"
    first, hidden = plain.get(f"weight_ih{end}"), plain.get(f"weight_hh{end}")
    if first is None or hidden is None or len(first) != 2 or len(hidden) != 2 or first[0] != hidden[0] or not hidden[1]:
        return None
    projected = plain.get("weight_hr_l0")
    width = hidden[0] if projected is None else 4 * projected[1] if len(projected) == 2 else 0
    size = projected[1] if projected is not None and len(projected) == 2 else hidden[1]
    kind = _BY_GATES.get(width // size) if size and width % size == 0 else None
    if kind is None:
        return None
    matches = [match for name in plain if (match := _NAME.fullmatch(name))]
    depth = 1 + max(int(match[1] or 0) for match in matches)
    both = any(match[2] for match in matches)
    more = [f"{depth} layers"] if depth > 1 else [] if end else ["one step at a time"]
    more += [BOTH_DIRECTIONS] if both else []
    more += [why] if why else []
    layer = Layer(
        path=path,
        kind=kind,
        inputs=first[1],
        outputs=hidden[1] * (2 if both else 1),
        evidence=f"weight_ih{end} {human_shape(first)}, weight_hh{end} {human_shape(hidden)}",
        more=", ".join(more),
    )
    return layer, {name for name in tensors if _NAME.fullmatch(name) or _part_of(name)}


def _part_of(name: str) -> str:
    """The weight that a tensor keeps under another name or a part of, "" for others."""
    match = _RENAMED.fullmatch(name)
    return match[1] if match is not None and match[2] in _WHOLE else ""


def _plain(tensors: Mapping[str, Shape]) -> tuple[dict[str, Shape], str]:
    """Tensors by torch's own names, and how some of them are kept."""
    plain = {name: shape for name, shape in tensors.items() if _NAME.fullmatch(name)}
    why = ""
    for name, shape in tensors.items():
        match = _RENAMED.fullmatch(name)
        if match is None or not _WHOLE.get(match[2]):
            continue
        if match[1] not in plain:
            plain[match[1]] = shape
            how = _WHOLE[match[2]]
            why = why or f"{match[1]} under another name, {how}" if match[2] == "raw" else how
    return plain, why


def with_raw(node: ModuleNode) -> ModuleNode:
    """A wrapper's module with the weights that it took out of the layer in it put back: "rnn.weight_hh_l0_raw" beside
    "rnn.module.weight_ih_l0"."""
    inner = next((child for child in node.children if child.name == _WRAPPED), None)
    raw = [tensor for tensor in node.tensors if _part_of(_last(tensor))]
    if inner is None or not raw or not any(_last(t).startswith("weight_ih") for t in inner.tensors):
        return node
    moved = tuple(replace(tensor, name=f"{inner.path}.{_last(tensor)}") for tensor in raw)
    whole = replace(inner, tensors=(*inner.tensors, *moved))
    children = tuple(whole if child is inner else child for child in node.children)
    return replace(node, tensors=tuple(t for t in node.tensors if t not in raw), children=children)


def _last(tensor: TensorInfo) -> str:
    return tensor.name.rpartition(".")[2]
