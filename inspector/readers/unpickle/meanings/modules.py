"""Pickled modules: how an inert call becomes a module tree with classes, settings and named tensors.

A torch.nn.Module pickles as its class and its `__dict__`; `_modules`, `_parameters` and `_buffers` are in there
(torch/nn/modules/module.py). No class is needed, known or not. TorchScript's objects have their tensors and submodules
directly among their attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from inspector.checkpoint.types import ModuleNode, TensorInfo
from inspector.readers.unpickle.machine.room import Room
from inspector.readers.unpickle.stand_ins import Call, GlobalRef, Group, Mapping, TensorStub, text_of

_MOST_REPEATS = 20_000
_MOST_DEPTH = 150
_MOST_SETTINGS = 64
_MODULE_NBYTES = 600
_SETTING_NBYTES = 250
_PART_NBYTES = 150
_PLUMBING = frozenset({"_modules", "_parameters", "_buffers", "_non_persistent_buffers_set"})


class Visited:
    """The module records gathered so far, and how many repeats are left for all of a file together."""

    __slots__ = ("ids", "repeats_left", "room")

    def __init__(self, room: Room) -> None:
        self.ids: set[int] = set()
        self.repeats_left = _MOST_REPEATS
        self.room = room

    def admits(self, record: object, cost: int) -> bool:
        """The first visit is free, since the file paid for it with its length; a repeat costs its tensors."""
        if id(record) not in self.ids:
            self.ids.add(id(record))
            return True
        self.repeats_left -= 1 + cost
        return self.repeats_left >= 0

    def affords(self, record: object, above: str) -> bool:
        """Whether there is room to take a module apart; many of them may share one long state."""
        state = attributes_of(record.states[-1]) if isinstance(record, Call) and record.states else None
        n = len(state.pairs) if isinstance(state, Mapping) else 0
        settings = min(n, _MOST_SETTINGS)
        cost = _MODULE_NBYTES + len(above) + settings * _SETTING_NBYTES + n * _PART_NBYTES
        return self.room.work(n) and self.room.again("module", state, n) and self.room.take(cost)


MakeInfo = Callable[[TensorStub, str, "bool | None"], "TensorInfo | None"]


@dataclass(slots=True, kw_only=True)
class Parts:
    """A module record taken apart; lists of (name, record)."""

    kind: str
    parameters: list[tuple[str, object]]
    buffers: list[tuple[str, object]]
    modules: list[tuple[str, object]]
    attributes: list[tuple[str, object]]
    transient: frozenset[str]
    script: bool = False


def parts_of(record: object) -> Parts | None:
    """The parts of a module record, None when it is no module."""
    if not isinstance(record, Call) or not record.states:
        return None
    state = attributes_of(record.states[-1])
    if not isinstance(state, Mapping):
        return None
    values = {k: v for k, v in state.pairs if type(k) is str}
    modules, parameters = values.get("_modules"), values.get("_parameters")
    kind = class_of(record)
    if isinstance(modules, Mapping) and isinstance(parameters, Mapping):
        transient = values.get("_non_persistent_buffers_set")
        return Parts(
            kind=kind,
            parameters=_named(parameters),
            buffers=_named(values.get("_buffers")),
            modules=_named(modules),
            attributes=[(k, v) for k, v in values.items() if k not in _PLUMBING],
            transient=frozenset(i for i in transient.items if type(i) is str)
            if isinstance(transient, Group)
            else frozenset(),
        )
    if kind.startswith("__torch__."):
        tensors: list[tuple[str, object]] = [(k, v) for k, v in values.items() if isinstance(v, TensorStub)]
        scripts = {k for k, v in values.items() if isinstance(v, Call) and class_of(v).startswith("__torch__.")}
        children = [(k, v) for k, v in values.items() if k in scripts]
        taken = scripts | {k for k, _ in tensors}
        return Parts(
            kind=kind,
            parameters=tensors,
            buffers=[],
            modules=children,
            attributes=[(k, v) for k, v in values.items() if k not in taken],
            transient=frozenset(),
            script=True,
        )
    return None


def attributes_of(state: object) -> object:
    """The `__dict__` in what BUILD sets, which may be (attributes, slots)."""
    if isinstance(state, tuple) and len(state) == 2 and isinstance(state[0], Mapping):
        return state[0]
    return state


def class_of(record: Call) -> str:
    """The class a call would make an instance of, as far as the record tells."""
    callee, args = record.callee, record.args
    if isinstance(callee, GlobalRef):
        reconstructs = callee.full in ("copyreg._reconstructor", "copyreg.__newobj__", "copyreg.__newobj_ex__")
        if reconstructs and isinstance(args, tuple) and args and isinstance(args[0], GlobalRef):
            return args[0].full
        return callee.full
    return text_of(callee, 80)


def _named(value: object) -> list[tuple[str, object]]:
    if not isinstance(value, Mapping):
        return []
    last = {k: v for k, v in value.pairs if type(k) is str}
    return [(k, v) for k, v in last.items() if v is not None]


@dataclass(slots=True, kw_only=True)
class Gathered:
    """A module's state: named tensors in state_dict() order, the module tree, and what was left out."""

    tree: ModuleNode
    tensors: list[TensorInfo]
    cut: bool


class _Open:
    """A module whose children are being gathered."""

    __slots__ = ("children", "left", "name", "parts", "path", "record", "tensors")

    def __init__(self, record: object, parts: Parts, name: str, path: str) -> None:
        self.record = record
        self.parts = parts
        self.name = name
        self.path = path
        self.left: Iterator[tuple[str, object]] = iter(parts.modules)
        self.tensors: list[TensorInfo] = []
        self.children: list[ModuleNode] = []


def gather(record: object, make: MakeInfo, visited: Visited) -> Gathered | None:
    """Named tensors and tree of a module record, None when it is no module.

    A submodule that is used twice is listed under both names, as state_dict() does; a cycle is cut, and so is a graph
    of shared submodules that would unfold to more than 20,000 repeats.
    """
    parts = parts_of(record)
    if parts is None:
        return None
    tensors: list[TensorInfo] = []
    cut = False
    root = _Open(record, parts, "", "")
    _own_tensors(root, tensors, make)
    visited.ids.add(id(record))
    path, above = [root], {id(record)}
    while True:
        top = path[-1]
        step = next(top.left, None)
        if step is None:
            node = ModuleNode(
                name=top.name,
                path=top.path,
                kind=top.parts.kind,
                hyperparameters=settings_of(top.parts),
                tensors=tuple(top.tensors),
                children=tuple(top.children),
            )
            path.pop()
            above.discard(id(top.record))
            if not path:
                return Gathered(tree=node, tensors=tensors, cut=cut)
            path[-1].children.append(node)
            continue
        name, child = step
        inner = parts_of(child) if visited.repeats_left >= 0 and visited.affords(child, top.path) else None
        if inner is None or id(child) in above or len(path) >= _MOST_DEPTH:
            cut = cut or isinstance(child, Call)
            continue
        if not visited.admits(child, len(inner.parameters) + len(inner.buffers)):
            cut = True
            continue
        opened = _Open(child, inner, name, f"{top.path}.{name}" if top.path else name)
        _own_tensors(opened, tensors, make)
        path.append(opened)
        above.add(id(child))


def _own_tensors(module: _Open, tensors: list[TensorInfo], make: MakeInfo) -> None:
    parts = module.parts
    prefix = f"{module.path}." if module.path else ""
    is_parameter = None if parts.script else True
    named = [(n, v, is_parameter) for n, v in parts.parameters]
    named += [(n, v, False) for n, v in parts.buffers if n not in parts.transient]
    for name, value, kind in named:
        if isinstance(value, TensorStub):
            info = make(value, prefix + name, kind)
            if info is not None:
                module.tensors.append(info)
                tensors.append(info)


_HIDDEN = frozenset({"training", "_backend", "T_destination", "dump_patches", "call_super_init"})


def settings_of(parts: Parts) -> tuple[tuple[str, str], ...]:
    """The plain attributes of a module (numbers, text, short tuples), as its repr would be made of."""
    found: list[tuple[str, str]] = []
    for name, value in parts.attributes:
        if name.startswith("_") or name in _HIDDEN or len(name) > 80:
            continue
        plain = value is None or type(value) in (bool, int, float, str)
        short = isinstance(value, tuple) and len(value) <= 8 and all(type(i) in (bool, int, float, str) for i in value)
        if plain or short:
            found.append((name, text_of(value, 80)))
        if len(found) >= _MOST_SETTINGS:
            break
    return tuple(found)
