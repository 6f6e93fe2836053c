"""The modules at the top of a network, each with what is in it: boxes, and no arrows, since calls are in no file."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from inspector.architectures.structure.types import EITHER_WAY, MAYBE_TABLES, NORMS, Layer, LayerKind, Part, Stack
from inspector.checkpoint.types import ModuleNode
from inspector.units import counted

# In the order in which a person would say them; norms go without saying where anything else is there.
COUNTED = (
    *(LayerKind.CONVOLUTION, LayerKind.DEPTHWISE, LayerKind.TRANSPOSED, LayerKind.MODULATED),
    LayerKind.EITHER_CONVOLUTION,
    *(LayerKind.LSTM, LayerKind.GRU, LayerKind.RNN, LayerKind.ATTENTION, LayerKind.LINEAR),
    *(LayerKind.MATRIX, LayerKind.BILINEAR, LayerKind.FOURIER),
    *(LayerKind.EMBEDDING, LayerKind.BATCH_NORM, LayerKind.NORM, LayerKind.SCALE),
    *(LayerKind.SLOPE, LayerKind.PRELU),
)
_PLURALS = {
    LayerKind.LSTM: "LSTMs",
    LayerKind.GRU: "GRUs",
    LayerKind.ATTENTION: "multi-head attentions",
    LayerKind.EITHER_CONVOLUTION: "convolutions that may be transposed",
    LayerKind.BILINEAR: "bilinear layers or 1-d convolutions",
    LayerKind.NORM: "layer, group or instance norms",
    LayerKind.SCALE: "scales",
    LayerKind.SLOPE: "scales or PReLU slopes",
    LayerKind.PRELU: "PReLUs",
    LayerKind.MATRIX: "matrices without bias",
    LayerKind.FOURIER: "Fourier bases",
}
_LAYER_NORM = re.compile(r"layer_?norm|(?:^|_)ln(?:_?\d+)?(?:$|_)", re.I)
_MOST_KINDS = 3
_MOST_PARTS = 60
_MOST_BETWEEN = 3


def parts_of(tree: ModuleNode, layers: Sequence[Layer], stacks: Sequence[Stack]) -> tuple[tuple[Part, ...], int]:
    """(at most sixty, how many more there are); a single module around everything is not counted as one."""
    while len(tree.children) == 1 and not tree.tensors:
        tree = tree.children[0]
    start = len(tree.path) + 1 if tree.path else 0
    inside: defaultdict[str, list[Layer]] = defaultdict(list)
    for layer in layers:
        inside[layer.path[start:].partition(".")[0]].append(layer)
    parts = tuple(_part(child, inside[child.name], stacks) for child in tree.children[:_MOST_PARTS])
    return parts, len(tree.children) - len(parts)


def _part(node: ModuleNode, inside: Sequence[Layer], stacks: Sequence[Stack]) -> Part:
    if len(inside) == 1:
        return Part(path=node.path, says=inside[0].says)
    blocks = [stack for stack in stacks if stack.path.startswith(f"{node.path}.")]
    says = kinds_text(inside)
    if blocks:
        largest = max(blocks, key=lambda stack: stack.count)
        says = f"{largest.count:,} {'equal blocks' if largest.equal else 'blocks of one build'}; {says}"
    return Part(path=node.path, says=says)


def kinds_text(layers: Sequence[Layer], most: int = _MOST_KINDS, *, norms: bool = False) -> str:
    """ "20 convolutions, 1 linear layer"; norms: said beside other layers too.

    A convolution as wide as it is deep is counted with the others, since most run forwards; beside transposed ones it
    is said to be open: "5 or 6 convolutions, 3 or 4 transposed convolutions", and many of them apart.
    """
    # Those that the rows leave open, so that both hedge the same.
    squares = sum(layer.is_square and layer.more == EITHER_WAY for layer in layers)
    counts = Counter(LayerKind.CONVOLUTION if layer.is_square else layer.kind for layer in layers)
    called = all(is_called_layer_norm(layer.path) for layer in layers if layer.kind is LayerKind.NORM)
    apart = squares if counts[LayerKind.TRANSPOSED] and squares > _MOST_BETWEEN else 0
    if apart:
        counts[LayerKind.CONVOLUTION] -= apart
        squares = 0
    said = [kind for kind in COUNTED if counts[kind]]
    if not norms:
        said = [kind for kind in said if kind not in NORMS] or said
    tables = any(layer.more in MAYBE_TABLES for layer in layers)
    turned = sum(layer.is_square and layer.more == EITHER_WAY for layer in layers)
    named = [
        counted(counts[kind], "layer norm") if kind is LayerKind.NORM and called else _counted(kind, counts, squares)
        for kind in said
    ]
    if LayerKind.MATRIX in said:
        # As hedged as the rows.
        text = counted(counts[LayerKind.MATRIX], "matrix without bias", "matrices without bias")
        one = "linear layer or table" if counts[LayerKind.MATRIX] == 1 else "linear layers or tables"
        named[said.index(LayerKind.MATRIX)] = f"{text} ({one})" if tables else text
    if turned and not counts[LayerKind.TRANSPOSED] and LayerKind.CONVOLUTION in said:
        named[said.index(LayerKind.CONVOLUTION)] += f" ({turned:,} of them either way)"
    if apart:
        named.insert(said.index(LayerKind.TRANSPOSED) + 1, f"{apart:,} convolutions of either way")
    # "and 1 other kind" is as long as the kind.
    most += len(named) == most + 1
    more = f" and {counted(len(named) - most, 'other kind')}" if len(named) > most else ""
    return ", ".join(named[:most]) + more if named else counted(len(layers), "tensor")


def is_called_layer_norm(path: str) -> bool:
    """By its name, or its module's where it is numbered: "layer_norm", "LayerNorm.0", "ln_1"."""
    name = next((name for name in reversed(path.split(".")) if not name.isdecimal()), "")
    return _LAYER_NORM.search(name) is not None


def _counted(kind: LayerKind, counts: Mapping[LayerKind, int], squares: int) -> str:
    number = counts[kind]
    if squares and counts[LayerKind.TRANSPOSED] and kind is LayerKind.CONVOLUTION:
        return _between(number - squares, number, kind)
    if squares and kind is LayerKind.TRANSPOSED:
        return _between(number, number + squares, kind)
    return counted(number, kind.value, _PLURALS.get(kind, ""))


def _between(least: int, most: int, kind: LayerKind) -> str:
    return f"{least:,} {'or' if most == least + 1 else 'to'} {counted(most, kind.value)}"
