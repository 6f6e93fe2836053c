"""The tree of values of a checkpoint whose parts lie apart, each with its keys from the root."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from inspector.checkpoint.nested import NamedTensors
from inspector.checkpoint.types import TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.units import counted, human_shape

Key = str | int
_OTHERS = 200


@dataclass(slots=True)
class _Branch:
    children: dict[str, _Branch | Value] = field(default_factory=dict)
    numbered: bool = True


class ValueTree:
    """Values put in one by one. Every list is shown as a sequence: a branch whose keys are all numbers."""

    def __init__(self) -> None:
        self._root = _Branch()

    def put(self, path: Sequence[Key], name: str, value: Value) -> tuple[str, ...]:
        """Put a value at a path, or, where something else is in the way, under its own name at the root.

        Returns the keys it got.
        """
        branch = self._root
        for key in path[:-1]:
            found = branch.children.get(str(key))
            if isinstance(found, Value):
                return self._aside(name, value)
            if found is None:
                found = _Branch()
                branch.children[str(key)] = found
                branch.numbered = branch.numbered and isinstance(key, int)
            branch = found
        last = str(path[-1])
        if last in branch.children:
            return self._aside(name, value)
        branch.children[last] = value
        branch.numbered = branch.numbered and isinstance(path[-1], int)
        return tuple(str(key) for key in path)

    def _aside(self, name: str, value: Value) -> tuple[str, ...]:
        label, n = name, 2
        while label in self._root.children:
            label, n = f"{name} ({n})", n + 1
        self._root.children[label] = value
        self._root.numbered = False
        return (label,)

    def value(self) -> Value:
        """The whole tree."""
        return _value(self._root, is_root=True)

    def groups(
        self, tensors: Iterable[TensorInfo], *, ordered: bool = True
    ) -> tuple[list[NamedTensors], list[tuple[str, ...]]]:
        """Every mapping with tensors directly in it, and the paths of optimizers ("state" beside "param_groups")."""
        members: dict[tuple[str, ...], list[TensorInfo]] = {}
        for tensor in tensors:
            members.setdefault(tensor.path[:-1], []).append(tensor)
        groups: list[NamedTensors] = []
        optimizers: list[tuple[str, ...]] = []
        stack: list[tuple[tuple[str, ...], _Branch]] = [((), self._root)]
        while stack:
            path, branch = stack.pop()
            if {"state", "param_groups"} <= branch.children.keys():
                optimizers.append(path)
            inner = [(k, v) for k, v in branch.children.items() if isinstance(v, _Branch)]
            stack += [((*path, key), child) for key, child in reversed(inner)]
            if path in members and not branch.numbered:
                names = {t.path[-1] for t in members[path]}
                others = [key for key in branch.children if key not in names][:_OTHERS]
                groups.append(
                    NamedTensors(
                        path=path, kind="dict", tensors=tuple(members[path]), others=tuple(others), ordered=ordered
                    )
                )
        return groups, optimizers

    def is_numbered(self, path: Sequence[str]) -> bool:
        """Whether the branch at a path is shown as a sequence."""
        branch: _Branch | Value | None = self._root
        for key in path:
            branch = branch.children.get(key) if isinstance(branch, _Branch) else None
        return isinstance(branch, _Branch) and branch.numbered


def _value(branch: _Branch, *, is_root: bool = False) -> Value:
    children = tuple((k, v if isinstance(v, Value) else _value(v)) for k, v in branch.children.items())
    numbered = branch.numbered and bool(children) and not is_root
    return Value(
        kind=ValueKind.SEQUENCE if numbered else ValueKind.MAPPING,
        type_name="list" if numbered else "dict",
        says=counted(len(children), "item") if numbered else counted(len(children), "entry", "entries"),
        children=children,
        size=len(children),
    )


def tensor_value(shape: tuple[int, ...], dtype: str, name: str, note: str = "") -> Value:
    """The leaf of one tensor. name: its dotted path."""
    says = f"{human_shape(shape)[:100]} {dtype}" + (f", {note}" if note else "")
    return Value(kind=ValueKind.TENSOR, type_name="torch.Tensor", says=says[:200], name=name)


def below(value: Value, prefix: str) -> Value:
    """The tree of an inner file, its tensors found under `prefix` and a dot."""
    name = f"{prefix}.{value.name}".rstrip(".") if value.kind is ValueKind.TENSOR else value.name
    if not value.children:
        return value if name == value.name else _named(value, name)
    return replace(value, name=name, children=tuple((k, below(v, prefix)) for k, v in value.children))


def _named(value: Value, name: str) -> Value:
    """A leaf under another name; each of a hundred thousand tensors is one, and `replace` takes twice as long."""
    return Value(
        kind=value.kind, type_name=value.type_name, says=value.says, size=value.size, name=name, inert=value.inert
    )
