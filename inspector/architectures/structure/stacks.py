"""Modules of one build one after the other: blocks of a stage, layers of a transformer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from inspector.architectures.structure.types import Layer, LayerKind, Stack
from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.types import ModuleNode

_NUMBERED = re.compile(r"(.*?)(\d{1,6})")
_LEAST = 2
_WIDE = frozenset(LayerKind) - {LayerKind.NORM, LayerKind.BATCH_NORM, LayerKind.SCALE, LayerKind.TENSOR}

Build = tuple[object, ...]


def stacks_of(tree: ModuleNode, layers: Sequence[Layer]) -> tuple[Stack, ...]:
    """The outermost first. A block is of another's build where the same tensors lie in the same modules with as many
    dimensions; widths may differ."""
    by_path = {layer.path: layer for layer in layers}
    builds: dict[str, tuple[Build, Build]] = {}
    _build(tree, builds)
    return tuple(sorted(_stacks(tree, builds, by_path), key=lambda stack: stack.path.count(".")))


def _build(node: ModuleNode, builds: dict[str, tuple[Build, Build]]) -> tuple[Build, Build]:
    """(names and dimensions, names and shapes) of everything in a module."""
    own = [(t.name.rpartition(".")[2], t.shape) for t in node.tensors if not is_bookkeeping(t.name)]
    below = [(child.name, _build(child, builds)) for child in node.children]
    loose = (tuple((name, len(shape)) for name, shape in own), tuple((name, one[0]) for name, one in below))
    exact = (tuple(own), tuple((name, one[1]) for name, one in below))
    builds[node.path] = (loose, exact)
    return loose, exact


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
            if run and (number != run[-1][0] + 1 or builds[child.path][0] != builds[run[-1][1].path][0]):
                runs.append([])
            runs[-1].append((number, child))
        for run in runs:
            for stack in _made(node, stem, run, builds, by_path):
                stacked.update(child.name for _, child in run)
                yield stack
    # What repeats inside a block is a part of that block.
    for child in node.children:
        if child.name not in stacked:
            yield from _stacks(child, builds, by_path)


def _made(
    node: ModuleNode,
    stem: str,
    run: Sequence[tuple[int, ModuleNode]],
    builds: Mapping[str, tuple[Build, Build]],
    by_path: Mapping[str, Layer],
) -> Iterator[Stack]:
    # One tensor-bearing module alone is a layer, not a block: Sequential's numbers are full of them.
    if len(run) < _LEAST or not run[0][1].children:
        return
    inside = [_inside(child, by_path) for _, child in run]
    if len(inside[0]) < _LEAST:
        return
    wide = [[layer.outputs for layer in layers if layer.kind in _WIDE and layer.outputs] for layers in inside]
    yield Stack(
        path=f"{node.path}.{stem}" if node.path else stem,
        first=run[0][0],
        count=len(run),
        equal=len({builds[child.path][1] for _, child in run}) == 1,
        layers=tuple(inside[0]),
        widths=tuple(widths[-1] for widths in wide if widths) if all(wide) else (),
    )


def _inside(node: ModuleNode, by_path: Mapping[str, Layer]) -> list[Layer]:
    found = [by_path[node.path]] if node.path in by_path else []
    for child in node.children:
        found += _inside(child, by_path)
    return found
