"""The layers of each part in one sentence, with kernels and widths, and blocks of one build in another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from inspector.architectures.structure.ends import MOST_RECURRENT
from inspector.architectures.structure.paths import above
from inspector.architectures.structure.tables import first_matrices
from inspector.architectures.structure.types import NORMS, RECURRENT, Claim, Layer, LayerKind, Stack, Topic
from inspector.architectures.structure.wording import columns_text, is_weighty, layers_text

_MOST_LINES = 20
_MOST_BLOCKS = 4


def repeats(layers: Sequence[Layer], stacks: Sequence[Stack]) -> Iterator[Claim]:
    """A sentence for each stack. Widths of its layers are said of equal blocks, of others what each puts out."""
    inside = _by_stack(layers, stacks)
    for place, stack in enumerate(stacks):
        where = f"{stack.path}{stack.first} to {stack.path}{stack.first + stack.count - 1}"
        root = f"{stack.path}{stack.first}"
        if stack.equal:
            says = f"{where} are {stack.count:,} equal blocks: {layers_text(stack.layers, root)}."
            evidence = "the same tensors in the same modules, all shapes equal"
        else:
            says = f"{where} are {stack.count:,} blocks of one build: {_unequal(stack, inside[place])}."
            evidence = "the same tensors in the same modules, the same kernels, other widths"
        yield Claim(topic=Topic.REPEATS, says=says, evidence=evidence, value=stack.count, path=stack.path)


def _by_stack(layers: Sequence[Layer], stacks: Sequence[Stack]) -> list[dict[int, list[Layer]]]:
    found: list[dict[int, list[Layer]]] = [{} for _ in stacks]
    blocks = _blocks(stacks)
    for layer in layers:
        for path in (layer.path, *above(layer.path)):
            if path in blocks:
                place, number = blocks[path]
                found[place].setdefault(number, []).append(layer)
    return found


def _blocks(stacks: Sequence[Stack]) -> dict[str, tuple[int, int]]:
    """(place of the stack, number in it) of each block by its path."""
    return {
        f"{stack.path}{number}": (place, number)
        for place, stack in enumerate(stacks)
        for number in range(stack.first, stack.first + stack.count)
    }


def _unequal(stack: Stack, blocks: Mapping[int, Sequence[Layer]]) -> str:
    ordered = [blocks[number] for number in sorted(blocks)]
    if all(layer.kind is LayerKind.TENSOR for layer in stack.layers):
        return _tensors(stack, ordered)
    return columns_text(ordered, [f"{stack.path}{number}" for number in sorted(blocks)])


def _tensors(stack: Stack, blocks: Sequence[Sequence[Layer]]) -> str:
    """Somebody's own layers: each tensor with its shape in all of them."""
    shown = blocks if len(blocks) <= _MOST_BLOCKS else [blocks[0], blocks[-1]]
    gap = " ... " if len(blocks) > _MOST_BLOCKS else ", "
    said = []
    for column in zip(*shown, strict=False):
        name = column[0].path.removeprefix(f"{stack.path}{stack.first}.")
        said.append(f"{name} {gap.join(layer.more for layer in column)}")
    return f"tensors in no layer of torch's: {'; '.join(said)}"


def lines(layers: Sequence[Layer], stacks: Sequence[Stack]) -> Iterator[Claim]:
    """A sentence for the layers of each module, in the file's order, that are in no stack; at most twenty."""
    elsewhere = {layer.path for layer in first_matrices(layers)}
    recurrent = [layer.path for layer in layers if layer.kind in RECURRENT]
    if len(recurrent) <= MOST_RECURRENT:
        elsewhere.update(recurrent)
    groups = _groups([layer for layer in layers if layer.path not in elsewhere], stacks)
    told = any(map(is_weighty, layers))
    kept = [(root, group) for root, group in groups if any(map(is_weighty, group)) or (told and _own_matrices(group))]
    for root, group in kept[:_MOST_LINES]:
        named = [layer for layer in group if is_weighty(layer)] or list(group)
        ends = [layer for layer in group if layer.kind not in NORMS]
        first, last = ends[0].name, ends[-1].name
        where = (
            root if root and not _is_split(root, groups, stacks) else first if first == last else f"{first} to {last}"
        )
        weights = [layer.evidence for layer in (named[0], named[-1])]
        evidence = weights[0] if len(named) == 1 else f"{weights[0]} ... {weights[1]}"
        yield Claim(
            topic=Topic.LAYERS,
            says=f"{where}: {layers_text(group, root)}.",
            evidence=evidence,
            value=len(named),
            path=root or named[0].path,
        )
    if len(kept) > _MOST_LINES:
        rest = [layer for _, group in kept[_MOST_LINES:] for layer in group if is_weighty(layer)]
        yield Claim(
            topic=Topic.LAYERS,
            says=f"And {len(kept) - _MOST_LINES:,} more modules with {len(rest):,} layers.",
            evidence="their names and shapes",
            value=len(rest),
        )


def _own_matrices(group: Sequence[Layer]) -> bool:
    """Whether something in it is more than a row: a table, a picture; or a single number."""
    return any(layer.kind is LayerKind.TENSOR and ("x" in layer.more or layer.more == "scalar") for layer in group)


def _is_split(root: str, groups: Sequence[tuple[str, Sequence[Layer]]], stacks: Sequence[Stack]) -> bool:
    """Whether other sentences tell of the same module."""
    lines = sum(one == root or one.startswith(f"{root}.") for one, _ in groups)
    return lines > 1 or any(stack.path.startswith(f"{root}.") for stack in stacks)


def _groups(layers: Sequence[Layer], stacks: Sequence[Stack]) -> list[tuple[str, list[Layer]]]:
    """Neighbours under the innermost module that holds two layers with weights, without those in a stack."""
    weighty: Counter[str] = Counter()
    for layer in layers:
        if is_weighty(layer):
            weighty.update(above(layer.path))
    found: list[tuple[str, list[Layer]]] = []
    blocks = _blocks(stacks)
    open_ = False
    for layer in layers:
        if layer.kind is LayerKind.EMBEDDING or any(path in blocks for path in (layer.path, *above(layer.path))):
            open_ = False
            continue
        root = next((path for path in above(layer.path) if weighty[path] > 1), "")
        if not open_ or found[-1][0] != root:
            found.append((root, []))
        found[-1][1].append(layer)
        open_ = True
    return found
