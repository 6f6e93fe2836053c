"""Modules of one build one after the other: blocks of a stage, layers of a transformer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from inspector.architectures.structure.types import NORMS, Layer, LayerKind, Stack
from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.types import ModuleNode

# Zeros in front are of the stem, so that stem and number are the name: 00 to 09 are a row, and 10 to 11 another.
_NUMBERED = re.compile(r"(.*?)(0|[1-9]\d{0,5})")
_NUMBER = re.compile(r"\d+")
_LEAST = 2
_LEAST_STAGED = 3
_LEAST_TURNS = 4
_WIDE = frozenset(LayerKind) - NORMS - {LayerKind.TENSOR}

# A number for each that there is, so that thousands are compared at once.
Build = int


def stacks_of(tree: ModuleNode, layers: Sequence[Layer]) -> tuple[Stack, ...]:
    """The outermost first. A block is of another's build where the same tensors lie in the same modules with as many
    dimensions and their layers are of the same kinds and kernels; widths may differ."""
    by_path = {layer.path: layer for layer in layers}
    builds: dict[str, tuple[Build, Build]] = {}
    _build(tree, builds, {})
    return tuple(sorted(_stacks(tree, builds, by_path), key=lambda stack: stack.path.count(".")))


def _build(
    node: ModuleNode, builds: dict[str, tuple[Build, Build]], known: dict[tuple[object, ...], Build]
) -> tuple[Build, Build]:
    """(by names and dimensions, by names and shapes) of everything in a module. known: what has a number."""
    own = [(t.name.rpartition(".")[2], t.shape) for t in node.tensors if not is_bookkeeping(t.name)]
    below = [(child.name, _build(child, builds, known)) for child in node.children]
    loose = tuple([(name, len(shape)) for name, shape in own]), tuple([(name, one[0]) for name, one in below])
    exact = tuple(own), tuple([(name, one[1]) for name, one in below])
    found = known.setdefault(("loose", loose), len(known)), known.setdefault(("exact", exact), len(known))
    builds[node.path] = found
    return found


def _stacks(
    node: ModuleNode, builds: Mapping[str, tuple[Build, Build]], by_path: Mapping[str, Layer]
) -> Iterator[Stack]:
    found = ((child, _NUMBERED.fullmatch(child.name)) for child in node.children)
    numbered = [(match[1], int(match[2]), child) for child, match in found if match is not None]
    numbered.sort(key=lambda one: one[:2])
    stacked: set[str] = set()
    for stem, group in groupby(numbered, key=lambda one: one[0]):
        runs: list[list[tuple[int, ModuleNode]]] = [[]]
        for _, number, child in group:
            run = runs[-1]
            if run and (number != run[-1][0] + 1 or not _is_like(child, run[-1][1], builds, by_path)):
                runs.append([])
            runs[-1].append((number, child))
        # Nothing is cut in two by a block with a layer more than the others.
        whole = [one for run in runs for one in run]
        base = _base([child for _, child in whole], by_path) if len(runs) > 1 and _is_counted(whole) else ()
        if base:
            stacked.update(child.name for _, child in whole)
            yield _of_stages(node, stem, whole, base, by_path)
            continue
        # Of names with a word in front, as conv2 and conv5, each has a part of its own.
        for run in _gathered(runs, builds) if not stem and len(whole) >= _LEAST_TURNS and _is_counted(whole) else runs:
            for stack in _made(node, stem, run, builds, by_path):
                stacked.update(child.name for _, child in run)
                yield stack
    # What repeats inside a block is a part of that block.
    for child in node.children:
        if child.name not in stacked:
            yield from _stacks(child, builds, by_path)


def _gathered(
    runs: Sequence[list[tuple[int, ModuleNode]]], builds: Mapping[str, tuple[Build, Build]]
) -> list[list[tuple[int, ModuleNode]]]:
    """Runs of one build with others between them as one: blocks of two sorts take turns, or a few of them differ."""
    found: dict[tuple[Build, Build], list[tuple[int, ModuleNode]]] = {}
    for run in runs:
        equal = len({builds[child.path][1] for _, child in run}) == 1
        # What differs in its widths stays a run of its own.
        key = builds[run[0][1].path] if equal else (-1, run[0][0])
        found.setdefault(key, []).extend(run)
    return list(found.values())


def _is_like(
    one: ModuleNode, other: ModuleNode, builds: Mapping[str, tuple[Build, Build]], by_path: Mapping[str, Layer]
) -> bool:
    if builds[one.path][0] != builds[other.path][0]:
        return False
    if builds[one.path][1] == builds[other.path][1]:
        return True
    return [_work(layer) for layer in _inside(one, by_path)] == [_work(layer) for layer in _inside(other, by_path)]


def _work(layer: Layer) -> tuple[object, ...]:
    """What a block of other widths shares. A square convolution is as likely either way, so it is like a plain one."""
    return LayerKind.CONVOLUTION if layer.is_square else layer.kind, layer.kernel


def _made(
    node: ModuleNode,
    stem: str,
    run: Sequence[tuple[int, ModuleNode]],
    builds: Mapping[str, tuple[Build, Build]],
    by_path: Mapping[str, Layer],
) -> Iterator[Stack]:
    if len(run) < _LEAST:
        return
    # One tensor-bearing module alone is a layer, not a block: Sequential's numbers are full of them. A block of tensors
    # that are no layer of torch's is somebody's own.
    inside = [_inside(child, by_path) for _, child in run]
    if len(inside[0]) < _LEAST or not (run[0][1].children or all(one.kind is LayerKind.TENSOR for one in inside[0])):
        return
    wide = [[layer.outputs for layer in layers if layer.kind in _WIDE and layer.outputs] for layers in inside]
    block = run[0][1]
    yield Stack(
        inner=tuple(_stacks(block, builds, by_path)),
        path=f"{node.path}.{stem}" if node.path else stem,
        first=run[0][0],
        count=len(run),
        picked=() if run[-1][0] - run[0][0] == len(run) - 1 else tuple(number for number, _ in run),
        equal=len({builds[child.path][1] for _, child in run}) == 1,
        layers=tuple(inside[0]),
        widths=tuple(widths[-1] for widths in wide if widths) if all(wide) else (),
    )


def _is_counted(run: Sequence[tuple[int, ModuleNode]]) -> bool:
    return len(run) >= _LEAST_STAGED and all(b[0] == a[0] + 1 for a, b in pairwise(run))


def _base(blocks: Sequence[ModuleNode], by_path: Mapping[str, Layer]) -> tuple[str, ...]:
    """Names of the layers that all blocks have alike, where that is most of every block; () elsewhere."""
    works = [{layer.path[len(block.path) :]: _work(layer) for layer in _inside(block, by_path)} for block in blocks]
    least = min(works, key=len)
    if any(work.get(name) != kind for work in works for name, kind in least.items()):
        return ()
    # More of what is numbered inside: a stage of more blocks, which is told of each stage.
    patterns = {_NUMBER.sub("*", name) for name in least}
    if any(name not in least and _NUMBER.sub("*", name) in patterns for work in works for name in work):
        return ()
    wide = sum(kind[0] in _WIDE for kind in least.values())
    fewer = sum(len(work) > len(least) for work in works)
    if wide < _LEAST or 2 * fewer > len(works) or any(len(work) >= 2 * len(least) for work in works):
        return ()
    return tuple(least)


def _of_stages(
    node: ModuleNode,
    stem: str,
    run: Sequence[tuple[int, ModuleNode]],
    base: Sequence[str],
    by_path: Mapping[str, Layer],
) -> Stack:
    names = set(base)
    inside = [(child, _inside(child, by_path)) for _, child in run]
    shared = [[layer for layer in layers if layer.path[len(child.path) :] in names] for child, layers in inside]
    wide = [[layer.outputs for layer in layers if layer.kind in _WIDE and layer.outputs] for layers in shared]
    return Stack(
        path=f"{node.path}.{stem}" if node.path else stem,
        first=run[0][0],
        count=len(run),
        equal=False,
        layers=tuple(shared[0]),
        widths=tuple(widths[-1] for widths in wide) if all(wide) else (),
        extra=tuple(
            layer for child, layers in inside for layer in layers if layer.path[len(child.path) :] not in names
        ),
    )


def _inside(node: ModuleNode, by_path: Mapping[str, Layer]) -> list[Layer]:
    found = [by_path[node.path]] if node.path in by_path else []
    # Tensors that are in no layer stand under their own names.
    found += [by_path[t.name] for t in node.tensors if t.name in by_path and t.name != node.path]
    for child in node.children:
        found += _inside(child, by_path)
    return found
