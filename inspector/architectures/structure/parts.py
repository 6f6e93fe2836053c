"""The modules at the top of a network, each with what is in it: boxes, and no arrows, since calls are in no file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from inspector.architectures.structure.types import NORMS, Layer, LayerKind, Part, Stack
from inspector.checkpoint.types import ModuleNode
from inspector.units import counted

# In the order in which a person would say them; norms go without saying where anything else is there.
COUNTED = (
    *(LayerKind.CONVOLUTION, LayerKind.DEPTHWISE, LayerKind.TRANSPOSED, LayerKind.MODULATED),
    LayerKind.EITHER_CONVOLUTION,
    *(LayerKind.LSTM, LayerKind.GRU, LayerKind.RNN, LayerKind.ATTENTION, LayerKind.LINEAR),
    *(LayerKind.MATRIX, LayerKind.BILINEAR),
    *(LayerKind.EMBEDDING, LayerKind.BATCH_NORM, LayerKind.NORM, LayerKind.SCALE),
)
_PLURALS = {
    LayerKind.LSTM: "LSTMs",
    LayerKind.GRU: "GRUs",
    LayerKind.ATTENTION: "multi-head attentions",
    LayerKind.EITHER_CONVOLUTION: "convolutions that may be transposed",
    LayerKind.BILINEAR: "bilinear layers or 1-d convolutions",
    LayerKind.NORM: "layer, group or instance norms",
    LayerKind.SCALE: "scales",
    LayerKind.MATRIX: "matrices without bias",
}
_MOST_KINDS = 3
_MOST_PARTS = 60


def parts_of(tree: ModuleNode, layers: Sequence[Layer], stacks: Sequence[Stack]) -> tuple[Part, ...]:
    """At most sixty; a single module around everything is not counted as one."""
    while len(tree.children) == 1 and not tree.tensors:
        tree = tree.children[0]
    start = len(tree.path) + 1 if tree.path else 0
    inside: defaultdict[str, list[Layer]] = defaultdict(list)
    for layer in layers:
        inside[layer.path[start:].partition(".")[0]].append(layer)
    return tuple(_part(child, inside[child.name], stacks) for child in tree.children[:_MOST_PARTS])


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

    A convolution as wide as it is deep is counted with the others and said to be open: "5 or 6 convolutions, 3 or 4
    transposed convolutions".
    """
    squares = sum(layer.is_square for layer in layers)
    counts = Counter(LayerKind.CONVOLUTION if layer.is_square else layer.kind for layer in layers)
    said = [kind for kind in COUNTED if counts[kind]]
    if not norms:
        said = [kind for kind in said if kind not in NORMS] or said
    named = [_counted(kind, counts, squares) for kind in said]
    more = f" and {counted(len(named) - most, 'other kind')}" if len(named) > most else ""
    return ", ".join(named[:most]) + more if named else counted(len(layers), "tensor")


def _counted(kind: LayerKind, counts: Mapping[LayerKind, int], squares: int) -> str:
    number = counts[kind]
    if kind is LayerKind.CONVOLUTION and squares:
        if not counts[LayerKind.TRANSPOSED]:
            which = "" if squares == number == 1 else f"{squares:,} " if squares < number else "all "
            return f"{counted(number, kind.value)} ({which}square, so possibly transposed)"
        return _between(number - squares, number, kind)
    if kind is LayerKind.TRANSPOSED and squares:
        return _between(number, number + squares, kind)
    return counted(number, kind.value, _PLURALS.get(kind, ""))


def _between(least: int, most: int, kind: LayerKind) -> str:
    return f"{least:,} {'or' if most == least + 1 else 'to'} {counted(most, kind.value)}"
