"""Dotted tensor names as a tree of modules."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.checkpoint.types import ModuleNode, TensorInfo


class _Branch:
    __slots__ = ("children", "path", "tensors")

    def __init__(self, path: str) -> None:
        self.path = path
        self.tensors: list[TensorInfo] = []
        self.children: dict[str, _Branch] = {}


# Names with more segments than this are cut, so that a hostile name of a million dots makes no deep tree.
_MOST_SEGMENTS = 64


def module_tree(tensors: Iterable[TensorInfo]) -> ModuleNode:
    """The tree that the names spell: "layer1.0.conv1.weight" is a tensor of layer1 / 0 / conv1.

    Children are in the order of first appearance. Kinds are unknown (None): a name does not tell a class.
    """
    root = _Branch("")
    for tensor in tensors:
        branch = root
        for segment in tensor.name.split(".", _MOST_SEGMENTS)[:-1]:
            child = branch.children.get(segment)
            if child is None:
                child = _Branch(f"{branch.path}.{segment}" if branch is not root else segment)
                branch.children[segment] = child
            branch = child
        branch.tensors.append(tensor)
    return _frozen("", root)


def _frozen(name: str, branch: _Branch) -> ModuleNode:
    # Recursion is bounded by _MOST_SEGMENTS.
    children = tuple(_frozen(segment, child) for segment, child in branch.children.items())
    return ModuleNode(name=name, path=branch.path, tensors=tuple(branch.tensors), children=children)
