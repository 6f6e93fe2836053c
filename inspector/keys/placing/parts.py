"""Names as trees of modules that are compared by what they hold: how many tensors of which role and shape.

Unlike `tree.py`, which compares names, these trees are for two sides that share none. A tensor that is no layer's own
(cls_token, in_proj_weight) is a module with one weight, so that it can stand beside one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from inspector.checkpoint.types import Shape
from inspector.keys.placing.roles import NORM_NAME, is_counter, roles_of, squeezed
from inspector.keys.placing.tree import Leaf, Path

_MASK = (1 << 64) - 1
# No module is nested deeper: no file decides how deep we recurse.
_DEEPEST = 32
_LAYER = re.compile(r"(.*[^_])_(weight|bias)")
# The weight of a layer in other libraries, where a module of one or two tensors has it.
_WEIGHTS = frozenset({"weight", "weights", "kernel", "w", "embedding", "embeddings", "embedding_table"})
_BIASES = frozenset({"bias", "biases", "b", "offset"})


@dataclass(eq=False, slots=True)
class Part:
    """A module of one side. first: where its first tensor stands in the side's own order.

    leaves: by role, its own tensors. bag: equal for equal multisets of (role, shape) below; names: equal for equal
    relative names as well. size: tensors below.
    """

    path: Path
    first: int
    children: dict[str, Part] = field(default_factory=dict)
    leaves: dict[str, Leaf] = field(default_factory=dict)
    bag: int = 0
    names: int = 0
    size: int = 0

    @property
    def alone(self) -> Part:
        """Its own tensors, without the modules below."""
        made = Part(self.path, self.first, leaves=dict(self.leaves))
        _count(made)
        return made

    def below(self) -> list[Part]:
        """What it consists of: the modules below, and its own tensors as one more."""
        parts = [plain(child) for child in self.children.values()]
        return [*parts, self.alone] if self.leaves and self.children else parts


def plain(part: Part) -> Part:
    """Without levels that hold nothing but one other module."""
    while len(part.children) == 1 and not part.leaves:
        part = next(iter(part.children.values()))
    return part


def grow_parts(leaves: Sequence[Leaf], computed: frozenset[str]) -> Part:
    """The tree of one side, without counters and what is computed. computed: last names of such buffers."""
    root = Part((), 0)
    kept = [leaf for leaf in leaves if not is_counter(leaf) and leaf.name.rpartition(".")[2] not in computed]
    names = {leaf.name for leaf in kept}
    # By the name of a module and of a tensor in it, of which few differ: most tensors are in one that is known.
    modules: dict[str, Part] = {}
    for i, (leaf, role) in enumerate(zip(kept, roles_of(kept), strict=True)):
        module, _, last = leaf.name.rpartition(".")
        # Flax's norms, and those that only scale (torchtune's RMSNorm); else it is a layer scale or a number.
        if last == "scale" and (f"{module}.bias" in names or _is_norm(module, names)):
            role = "weight"
        plain_own = _own_of(last, role) if module else None
        node = modules.get(module) if plain_own else None
        if node is not None and plain_own:
            own = plain_own
        else:
            path, own = _split(leaf.name, role)
            node = _grown(root, path, i)
            if plain_own and len(path) < _DEEPEST:
                modules[module] = node
        while own in node.leaves:
            own += "'"
        node.leaves[own] = leaf
    _count(root)
    return root


def _is_norm(module: str, names: set[str]) -> bool:
    return NORM_NAME.search(module.rpartition(".")[2]) is not None and f"{module}.weight" not in names


def _grown(root: Part, path: Path, first: int) -> Part:
    """The module at this path, with those above it."""
    node = root
    for n, segment in enumerate(path, start=1):
        child = node.children.get(segment)
        if child is None:
            child = node.children[segment] = Part(path[:n], first)
        node = child
    return node


def in_runs(leaves: Sequence[Leaf]) -> bool:
    """Whether the tensors of each module stand together, as they do wherever order says anything."""
    modules = [leaf.name.rpartition(".")[0] for leaf in leaves]
    runs = 1 + sum(a != b for a, b in pairwise(modules))
    return runs <= 1.2 * len(set(modules)) + 2


def _split(name: str, role: str | None) -> tuple[Path, str]:
    *parents, last = name.split(".", _DEEPEST)
    own = _own_of(last, role)
    if own is not None and parents:
        return tuple(parents), own
    joined = _LAYER.fullmatch(last)
    return ((*parents, joined[1]), joined[2]) if joined is not None else ((*parents, last), "weight")


def _own_of(last: str, role: str | None) -> str | None:
    """What a tensor of this name is in the module that holds it; None for one that is a module of its own."""
    if last.endswith(("_weight", "_bias")) and _LAYER.fullmatch(last):
        return None
    if last in _WEIGHTS:
        return "weight"
    return "bias" if last in _BIASES else role


def _count(part: Part) -> None:
    """Bags and sizes, from the leaves up."""
    order: list[Part] = []
    pending = [part]
    while pending:
        node = pending.pop()
        order.append(node)
        pending.extend(node.children.values())
    # Of thousands of tensors few differ in role or shape.
    known: dict[tuple[str, Shape | None], tuple[int, int]] = {}
    for node in reversed(order):
        tokens, bag, size = [], 0, 0
        for role, leaf in node.leaves.items():
            kind = role, leaf.shape
            token = known.get(kind)
            if token is None:
                plain_token = hash((role, squeezed(leaf.shape)))
                token = known[kind] = plain_token, _mixed(plain_token)
            tokens.append(token[0])
            bag += token[1]
        for child in node.children.values():
            size += child.size
            bag += child.bag
        node.size = len(tokens) + size
        node.bag = bag & _MASK
        node.names = hash((frozenset(tokens), frozenset([(s, c.names) for s, c in node.children.items()])))


def _mixed(token: int) -> int:
    """So that sums of tokens are equal only for equal multisets."""
    return hash((token, "token", token >> 7)) & _MASK
