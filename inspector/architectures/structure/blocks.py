"""A stack of blocks in one sentence: "5 equal blocks: ..., 6 experts 0 to 5, each with ..."."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby

from inspector.architectures.structure.paths import above
from inspector.architectures.structure.types import NORMS, Layer, LayerKind, Stack
from inspector.architectures.structure.wording import columns_text, ends_text, kind_text, layers_text, widths_text

_MOST_BLOCKS, _MOST_EXTRA, _MOST_NUMBERS = 4, 6, 12
_LEAST_RUNS = 2
_NUMBER = re.compile(r"\d+")
_MOST_BRIEF = 5
_LEAST_TURNS, _MOST_ORDERED = 4, 10
_EXPERTS = "experts"


def blocks_of(stacks: Sequence[Stack]) -> dict[str, tuple[int, int]]:
    """(place of the stack, number in it) of each block by its path."""
    return {f"{stack.path}{number}": (place, number) for place, stack in enumerate(stacks) for number in stack.numbers}


def layers_by_block(layers: Sequence[Layer], stacks: Sequence[Stack]) -> list[dict[int, list[Layer]]]:
    """The layers of each block of each stack, by the block's number."""
    found: list[dict[int, list[Layer]]] = [{} for _ in stacks]
    blocks = blocks_of(stacks)
    for layer in layers:
        place, number = _block(layer, blocks)
        if place is not None:
            found[place].setdefault(number, []).append(layer)
    return found


def _block(layer: Layer, blocks: Mapping[str, tuple[int, int]]) -> tuple[int | None, int]:
    return next((blocks[path] for path in (layer.path, *above(layer.path)) if path in blocks), (None, 0))


def numbers_text(stack: Stack) -> str:
    """ "blocks.0 to blocks.5", "blocks.0, 1, 3 and 5"; of many the first and the last."""
    numbers = stack.numbers
    if not stack.picked:
        return f"{stack.path}{numbers[0]} to {stack.path}{numbers[-1]}"
    if len(numbers) <= _MOST_NUMBERS:
        return f"{stack.path}{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
    shown = ", ".join(map(str, numbers[: _MOST_NUMBERS // 2]))
    return f"{stack.path}{shown} ... {numbers[-1]} (with others between them)"


def brief_text(stacks: Sequence[Stack]) -> str:
    """ "Blocks: layer1.0 to layer1.2 (3, 64 wide), layer2.0 to layer2.3 (4, 128 wide)."; those of modules numbered
    alike together, the largest of many."""
    families: dict[object, list[Stack]] = {}
    for stack in stacks:
        parent, _, stem = stack.path.rpartition(".")
        families.setdefault((_NUMBER.sub("*", parent), stem, stack.count), []).append(stack)
    groups = [
        group for family in families.values() for group in ([family] if len(family) > 2 else [[x] for x in family])
    ]
    largest = sorted(groups, key=lambda group: -sum(one.count * len(one.layers) for one in group))[:_MOST_BRIEF]
    said = [_brief(group) for group in groups if group in largest]
    more = f" and {len(groups) - len(said):,} more rows" if len(groups) > len(said) else ""
    return f"Blocks: {', '.join(said)}{more}." if said else ""


def _brief(group: Sequence[Stack]) -> str:
    first, last = group[0], group[-1]
    widths = [width for stack in group for width in (stack.widths if len(group) == 1 else stack.widths[-1:])]
    wide = f", {widths[0]:,} wide" if len(set(widths)) == 1 else f", {widths_text(widths)} wide" if widths else ""
    if len(group) == 1:
        return f"{numbers_text(first)} ({first.count:,}{wide})"
    return f"{first.count:,} in each of {len(group):,} modules {first.path.rpartition('.')[0]} to " + (
        f"{last.path.rpartition('.')[0]} ({wide.removeprefix(', ')})" if wide else last.path.rpartition(".")[0]
    )


def equal_text(stack: Stack) -> str:
    """What is in each of equal blocks; what repeats inside a block is said once, with its number."""
    root = f"{stack.path}{stack.first}"
    if not stack.inner:
        return "; ".join(part for part in (layers_text(stack.layers, root), _order(stack)) if part)
    blocks = blocks_of(stack.inner)
    inside = layers_by_block(stack.layers, stack.inner)
    said = []
    for place, group in groupby(stack.layers, key=lambda layer: _block(layer, blocks)[0]):
        if place is None:
            said.append(layers_text(list(group), root))
        elif inside[place]:
            said.append(_inner_text(stack.inner[place], inside[place], root))
            inside[place] = {}
    return "; ".join(text for text in said if text)


def _numbers(stack: Stack, name: str) -> str:
    numbers = stack.numbers
    if not stack.picked:
        return f"{name}{numbers[0]} to {numbers[-1]}"
    return f"{name}{', '.join(map(str, numbers[:_MOST_NUMBERS]))}"


def _inner_text(stack: Stack, blocks: Mapping[int, Sequence[Layer]], root: str) -> str:
    name = stack.path.removeprefix(f"{root}.")
    what = "equal blocks" if stack.equal else "blocks of one build"
    if name.rstrip(".").rpartition(".")[2].lower() == _EXPERTS:
        what = _EXPERTS if stack.equal else f"{_EXPERTS} of one build"
    text = equal_text(stack) if stack.equal else unequal_text(stack, blocks)
    return f"{stack.count:,} {what} {_numbers(stack, name)} ({text})"


def unequal_text(stack: Stack, blocks: Mapping[int, Sequence[Layer]]) -> str:
    """Each layer of blocks of one build with its widths in all of them."""
    more = {layer.path for layer in stack.extra}
    ordered = [[layer for layer in blocks[number] if layer.path not in more] for number in sorted(blocks)]
    if all(layer.kind is LayerKind.TENSOR for layer in stack.layers):
        return _tensors(stack, ordered)
    notes = [
        columns_text(ordered, [f"{stack.path}{number}" for number in sorted(blocks)]),
        _order(stack),
        _stages(stack),
    ]
    for inner in stack.inner:
        name = inner.path.removeprefix(f"{stack.path}{stack.first}.")
        notes.append(f"in each {_numbers(inner, name)} are of one build")
    if stack.extra:
        notes.append(f"besides {_extra(stack)}")
    return "; ".join(note for note in notes if note)


def _order(stack: Stack) -> str:
    """ "in the file bn1, conv1, bn2, prelu, conv2, bn3", where a norm stands before the first convolution and another
    between: they may be called in this order, and a norm made first need not be."""
    root = f"{stack.path}{stack.first}."
    own = [layer for layer in stack.layers if layer.path.startswith(root)]
    kinds = ["norm" if one.kind in NORMS else "weights" for one in own if one.kind is not LayerKind.TENSOR]
    turns = [kind for kind, _ in groupby(kinds)]
    names = [one.path.removeprefix(root) for one in own]
    if turns[:1] != ["norm"] or len(turns) < _LEAST_TURNS or len(own) > _MOST_ORDERED:
        return ""
    return "" if any(name.isdecimal() for name in names) else f"in the file's order {', '.join(names)}"


def _stages(stack: Stack) -> str:
    """ "in runs of 2-3-4-2 blocks whose last convolution puts out 64-128-256-512"."""
    runs = [(width, len(list(group))) for width, group in groupby(stack.widths)]
    if sum(count > 1 for _, count in runs) < _LEAST_RUNS or not all(_is_plain(layer) for layer in stack.layers):
        return ""
    counts = "-".join(f"{count:,}" for _, count in runs)
    return f"in runs of {counts} blocks whose last convolution puts out {widths_text([width for width, _ in runs])}"


def _is_plain(layer: Layer) -> bool:
    return layer.kind in NORMS | {LayerKind.TENSOR, LayerKind.CONVOLUTION, LayerKind.EITHER_CONVOLUTION}


def _extra(stack: Stack) -> str:
    """ "shortcut.0 in 2, 5: 1x1 convolution 64-128 / 128-256", norms beside it left out"""
    found: dict[str, list[tuple[str, Layer]]] = {}
    weighty = [layer for layer in stack.extra if layer.kind not in NORMS] or stack.extra
    for layer in weighty:
        number, _, name = layer.path.removeprefix(stack.path).partition(".")
        found.setdefault(name, []).append((number, layer))
    said = []
    for name, group in list(found.items())[:_MOST_EXTRA]:
        numbers = ", ".join(number for number, _ in group[:_MOST_EXTRA])
        numbers += " and more" if len(group) > _MOST_EXTRA else ""
        texts = [_extra_text(layer) for _, layer in group[:_MOST_EXTRA]]
        said.append(f"{name} in {numbers}: {' / '.join(text for text, _ in groupby(texts))}")
    if len(found) > _MOST_EXTRA:
        said.append(f"and {len(found) - _MOST_EXTRA:,} more")
    return ", ".join(said)


def _extra_text(layer: Layer) -> str:
    if layer.kind is LayerKind.TENSOR:
        return f"own tensor {layer.more}"
    return f"{kind_text(layer, 1)} {ends_text(layer)}"


def _tensors(stack: Stack, blocks: Sequence[Sequence[Layer]]) -> str:
    """Somebody's own layers: each tensor with its shape in all of them."""
    shown = blocks if len(blocks) <= _MOST_BLOCKS else [blocks[0], blocks[-1]]
    gap = " ... " if len(blocks) > _MOST_BLOCKS else ", "
    said = []
    for column in zip(*shown, strict=False):
        name = column[0].path.removeprefix(f"{stack.path}{stack.first}.")
        said.append(f"{name} {gap.join(layer.more for layer in column)}")
    return f"tensors in no layer of torch's: {'; '.join(said)}"
