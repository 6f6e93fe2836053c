"""Dotted tensor names as a tree of modules."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.checkpoint.types import ModuleNode, TensorInfo


class _Branch:
    """A module in the making. children: None as long as there are none; most modules have only tensors."""

    __slots__ = ("children", "path", "tensors")

    def __init__(self, path: str) -> None:
        self.path = path
        self.tensors: list[TensorInfo] = []
        self.children: dict[str, _Branch] | None = None


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
    segments: dict[str, str] = {}  # One text for all modules called "0" or "conv1".
    last, branch = "", root
    for tensor in tensors:
        prefix = tensor.name[: tensor.name.rfind(".") + 1]
        if prefix != last:  # Else another tensor of the same module, which most are.
            last, branch = prefix, _branch_of(root, tensor.name, room, segments)
        branch.tensors.append(tensor)
    return _frozen("", root)


def _branch_of(root: _Branch, name: str, room: TreeRoom, segments: dict[str, str]) -> _Branch:
    """The module that a tensor of that name belongs to, or the last one on the way for which there is room."""
    branch = root
    for segment in name.split(".", _MOST_SEGMENTS)[:-1]:
        child = branch.children.get(segment) if branch.children is not None else None
        if child is None:
            path = f"{branch.path}.{segment}" if branch is not root else segment
            if not room.take(path):
                break
            child = _Branch(path)
            if branch.children is None:
                branch.children = {}
            branch.children[segments.setdefault(segment, segment)] = child
        branch = child
    return branch


def _frozen(name: str, branch: _Branch) -> ModuleNode:
    # Recursion is bounded by _MOST_SEGMENTS.
    children = branch.children
    below = tuple([_frozen(segment, child) for segment, child in children.items()]) if children is not None else ()
    return ModuleNode(name=name, path=branch.path, tensors=tuple(branch.tensors), children=below)
