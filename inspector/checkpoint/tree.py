"""Dotted tensor names as a tree of modules."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.checkpoint.types import ModuleNode, TensorInfo


class _Branch:
    __slots__ = ("children", "path", "tensors")

    def __init__(self, path: str) -> None:
        self.path = path
        self.tensors: list[TensorInfo] = []
        self.children: dict[str, _Branch] = {}


# Names with more segments than this are cut, so that a hostile name of a million dots makes no deep tree.
_MOST_SEGMENTS = 64


class TreeRoom:
    """How many modules, and characters in their paths, are left for all trees of one file together.

    Models have about as many modules as tensors; names made for it spell sixty modules for every tensor.
    """

    __slots__ = ("characters", "modules")

    def __init__(self, tensors: int) -> None:
        self.modules = 10_000 + 2 * tensors
        self.characters = 1_000_000 + 100 * tensors

    def take(self, path: str) -> bool:
        """Whether there is room for one more module of that path."""
        self.modules -= 1
        self.characters -= len(path)
        return self.modules >= 0 and self.characters >= 0


def module_tree(tensors: Sequence[TensorInfo], room: TreeRoom | None = None) -> ModuleNode:
    """The tree that the names spell: "layer1.0.conv1.weight" is a tensor of layer1 / 0 / conv1.

    Children are in the order of first appearance. Kinds are unknown (None): a name does not tell a class.
    room: shared by the trees of one file; a tensor for whose modules there is none stays where there is one.
    """
    room = room or TreeRoom(len(tensors))
    root = _Branch("")
    for tensor in tensors:
        branch = root
        for segment in tensor.name.split(".", _MOST_SEGMENTS)[:-1]:
            child = branch.children.get(segment)
            if child is None:
                path = f"{branch.path}.{segment}" if branch is not root else segment
                if not room.take(path):
                    break
                child = _Branch(path)
                branch.children[segment] = child
            branch = child
        branch.tensors.append(tensor)
    return _frozen("", root)


def _frozen(name: str, branch: _Branch) -> ModuleNode:
    # Recursion is bounded by _MOST_SEGMENTS.
    children = tuple(_frozen(segment, child) for segment, child in branch.children.items())
    return ModuleNode(name=name, path=branch.path, tensors=tuple(branch.tensors), children=children)
