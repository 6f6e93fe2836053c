"""From the machine's graph of records to what can be shown: a tree of values, named tensors, places of globals.

Walked with an explicit stack and an identity set: a graph that unfolds exponentially, or a cycle, costs what its
records cost. A container that is met again is a "seen above" leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from sys import getsizeof

from inspector.checkpoint.nested import NamedTensors
from inspector.checkpoint.types import Encoding, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.limits import Limits
from inspector.readers.unpickle.machine.frames import Frame, Path, Versions, access_of
from inspector.readers.unpickle.machine.room import Room
from inspector.readers.unpickle.meanings.modules import Visited, class_of, gather, parts_of
from inspector.readers.unpickle.outline.leaves import (
    NO_KEY,
    PLAIN,
    TEXT_WIDTH,
    call_children,
    encoding_of,
    is_constant,
    labelled,
    leaf_of,
    listed_size,
    mapping_children,
    odd_keys_of,
    type_name_of,
    versions_of,
)
from inspector.readers.unpickle.outline.looks import Looks
from inspector.readers.unpickle.outline.misfits import Misfits
from inspector.readers.unpickle.stand_ins import (
    ArrayBytes,
    ArrayStub,
    Call,
    GlobalRef,
    Group,
    Mapping,
    PersistentRef,
    Recipe,
    StorageRef,
    TensorStub,
    Use,
    text_of,
)
from inspector.units import counted

_OTHERS = 200
# What a walked graph takes in memory, with all that is made of it later (bytes).
_TENSOR_NBYTES = 900
_VALUE_NBYTES = 180
_GROUP_NBYTES = 1500
_CHILD_NBYTES = 200
_ENTERED = 10  # The work of entering a container, in children listed.
_FEW = 8
_OPTIMIZERS = frozenset({"state", "param_groups"})


@dataclass(slots=True, kw_only=True)
class Outline:
    """What a pickle holds, in the terms of `inspector.checkpoint`.

    array_storages: numpy elements inside the pickle, by the storage id their tensors carry.
    places: path of each global's first holder. hidden: values that were walked but not kept for display.
    cut_deep: containers below `Limits.depth`, or too many to walk, which were not walked.
    nbytes: what all this takes in memory, by estimate. misfits: known rebuilds that made no tensor.
    """

    root: Value
    tensors: list[TensorInfo]
    groups: list[NamedTensors]
    optimizers: list[Path]
    array_storages: dict[str, ArrayBytes]
    places: dict[int, Path]
    hidden: int
    cut_deep: int
    cut_tensors: int
    nbytes: int
    misfits: Misfits


def outline(root: object, uses: dict[tuple[str, str], Use], limits: Limits) -> Outline:
    """Walk the graph below root once. Raises nothing for what it contains."""
    walk = _Walk(limits, uses)
    value = walk.run(root)
    return Outline(
        root=value,
        tensors=walk.tensors,
        groups=walk.groups,
        optimizers=walk.optimizers,
        array_storages=walk.arrays,
        places=walk.places,
        hidden=walk.hidden,
        cut_deep=walk.cut_deep,
        cut_tensors=walk.cut_tensors,
        nbytes=walk.room.taken,
        misfits=walk.misfits,
    )


class _Walk:
    def __init__(self, limits: Limits, uses: dict[tuple[str, str], Use]) -> None:
        self.limits = limits
        self.tensors: list[TensorInfo] = []
        self.groups: list[NamedTensors] = []
        self.optimizers: list[Path] = []
        self.arrays: dict[str, ArrayBytes] = {}
        self.array_ids: dict[int, str] = {}
        self.encodings: dict[int, Encoding] = {}
        self.looks = Looks()
        self.room = Room(limits.room)
        self.gathered = Visited(self.room)
        self.versions: dict[int, Versions] = {}
        self.seen: set[int] = set()
        self.places: dict[int, Path] = {}
        self.wanted = {id(use.holder) for use in uses.values() if use.holder is not None}
        self.nodes = 0
        self.hidden = 0
        self.cut_deep = 0
        self.cut_tensors = 0
        self.misfits = Misfits()
        # The containers on the way from the root to where the walk is, and how many of them are an optimizer's.
        self.stack: list[Frame] = []
        self.in_optimizers = 0

    def run(self, root: object) -> Value:
        made = self.enter("", root, (), None)
        if isinstance(made, Value):
            return made
        stack, nodes = self.stack, self.limits.nodes
        stack.append(made)
        self.in_optimizers += made.is_optimizer
        while True:
            top = stack[-1]
            step = next(top.left, None)
            if step is None:
                value = self.close(top)
                stack.pop()
                self.in_optimizers -= top.is_optimizer
                if not stack:
                    return value
                self.show(stack[-1], top.label, value)
                continue
            label, record = step
            if self.nodes >= nodes and self.is_nothing_new(record) and len(top.others) >= (_OTHERS if top.named else 0):
                self.hidden += 1  # Counted as `show` would, without making what is thrown away.
                continue
            if len(stack) > self.limits.depth and not isinstance(record, TensorStub) and leaf_of(record) is None:
                self.cut_deep += 1
                says = f"nested deeper than {self.limits.depth} levels"
                self.show(top, label, Value(kind=ValueKind.CUT, type_name="", says=says))
                continue
            made = self.enter(label, record, (*top.path, label), top)
            if isinstance(made, Frame):
                stack.append(made)
                self.in_optimizers += made.is_optimizer
            else:
                self.show(top, label, made)

    def is_nothing_new(self, record: object) -> bool:
        """Whether there can be no tensor or global in it that is not listed yet. A tensor met again has a new name."""
        return type(record) in PLAIN or (id(record) in self.seen and type(record) is not TensorStub)

    @property
    def full(self) -> bool:
        """Whether the tree has as many values as may be shown."""
        return self.nodes >= self.limits.nodes

    def show(self, parent: Frame, label: str, value: Value) -> None:
        cost = _VALUE_NBYTES + getsizeof(label) + getsizeof(value.says)
        if self.nodes < self.limits.nodes and self.room.take(cost):
            self.nodes += 1
            parent.children.append((label, value))
        else:
            self.hidden += 1

    def close(self, frame: Frame) -> Value:
        self.room.give_back(frame.lent)
        # All that lies below an optimizer becomes one state dict, by its path.
        if frame.tensors and self.room.take(_GROUP_NBYTES) and not self.in_optimizers:
            self.groups.append(
                NamedTensors(
                    path=frame.path,
                    kind=frame.type_name,
                    tensors=tuple(frame.tensors),
                    others=tuple(frame.others),
                    versions=frame.versions.found,
                    odd_versions=frame.versions.odd,
                    odd_keys=odd_keys_of(frame.unnamed, _OTHERS),
                    access=access_of(self.stack, frame.path),
                )
            )
        return Value(
            kind=frame.kind,
            type_name=frame.type_name[:TEXT_WIDTH],
            says=frame.says[:TEXT_WIDTH],
            children=tuple(frame.children),
            size=frame.size,
            name=frame.name,
            inert=frame.inert,
        )

    def enter(self, label: str, record: object, path: Path, parent: Frame | None) -> Value | Frame:
        """A leaf's value, or the frame of a container to walk."""
        if id(record) in self.wanted:
            self.places.setdefault(id(record), path)
        array = record if isinstance(record, ArrayStub) and record.tensor is not None else None
        stub = array.tensor if array is not None else record
        if isinstance(stub, TensorStub):
            return self.tensor(label, stub, path, parent)
        if parent is not None and parent.named and label not in parent.unnamed and len(parent.others) < _OTHERS:
            parent.others.append(label)
        leaf = leaf_of(record)
        if leaf is not None:
            return leaf
        if isinstance(record, GlobalRef):
            self.places.setdefault(id(record.use), path)
            return Value(kind=ValueKind.GLOBAL, type_name="global", says=record.full[:TEXT_WIDTH])
        if id(record) in self.seen and not is_constant(record):
            return Value(kind=ValueKind.SEEN, type_name=type_name_of(record), says="the same object as one shown above")
        self.seen.add(id(record))
        return self.container(label, record, path) if self.affords(record) else self.cut(record)

    def affords(self, record: object) -> bool:
        """Whether the children of a container can be listed: in memory, and as part of all the work of this walk."""
        n = listed_size(record) if isinstance(record, Mapping | Call) else 0
        if isinstance(record, Call) and n > _FEW:
            shared = record.states[-1] if record.states else record.args
            if not self.room.again("call", shared, n):
                return False
        return self.room.work(_ENTERED + n) and _CHILD_NBYTES * n <= self.room.left

    def cut(self, record: object) -> Value:
        self.cut_deep += 1
        return Value(kind=ValueKind.CUT, type_name=type_name_of(record), says="more than there is memory or time for")

    def tensor(self, label: str, stub: TensorStub, path: Path, parent: Frame | None) -> Value | Frame:
        # Under a key of a megabyte every dotted name takes a megabyte.
        if not self.room.take(sum(map(len, path)) + 9 * len(path)):
            self.cut_tensors += 1
            return Value(kind=ValueKind.CUT, type_name="", says="a tensor for which there is not enough memory left")
        dotted = ".".join(path)
        says = self.looks.of(stub)[2]
        if stub.note:
            says = f"{says}, {stub.note}"
        if parent is None or label not in parent.elsewhere:
            named = parent is not None and parent.named and label not in parent.unnamed
            info = self.info(stub, label if named else dotted, path)
            self.misfits.add(path, stub.kind, stub.why)
            if parent is not None and label in parent.transient:
                info = replace(info, is_parameter=False, note="buffer that the module does not save (non-persistent)")
            if self.keep(info) and named and parent is not None:
                parent.tensors.append(info)
        if not stub.extra or id(stub) in self.seen:
            return Value(kind=ValueKind.TENSOR, type_name=stub.kind[:TEXT_WIDTH], says=says[:TEXT_WIDTH], name=dotted)
        self.seen.add(id(stub))
        parts = iter([labelled(i, item) for i, item in enumerate(stub.extra)])
        return Frame(
            record=stub, label=label, path=path, kind=ValueKind.TENSOR, type_name=stub.kind, left=parts,
            size=len(stub.extra), says=says, name=dotted,
        )  # fmt: skip

    def info(self, stub: TensorStub, name: str, path: Path, is_parameter: bool | None = None) -> TensorInfo:
        shape, stride, _, nbytes = self.looks.of(stub)
        return TensorInfo(
            name=name,
            path=path,
            shape=shape,
            dtype=stub.dtype,
            nbytes=nbytes if stub.nbytes is None else stub.nbytes,
            storage_id=self.storage_id(stub.storage),
            offset=stub.offset,
            stride=stride,
            device=stub.device,
            requires_grad=stub.requires_grad,
            layout=stub.layout,
            is_parameter=stub.is_parameter if is_parameter is None else is_parameter,
            note=stub.note,
            encoding=self.encoding(stub.recipe, name, path) if stub.recipe is not None else None,
        )

    def encoding(self, recipe: Recipe, name: str, path: Path) -> Encoding:
        # Parts have no recipe of their own, so this goes one level down and no further; a tensor met again shares it.
        if id(recipe) not in self.encodings:
            parts = [self.info(replace(p, recipe=None), f"{name} ({i})", path) for i, p in enumerate(recipe.parts)]
            self.encodings[id(recipe)] = encoding_of(recipe, parts)
        return self.encodings[id(recipe)]

    def storage_id(self, storage: StorageRef | ArrayBytes | None) -> str | None:
        if storage is None:
            return None
        if isinstance(storage, StorageRef):
            return storage.key
        known = self.array_ids.get(id(storage))
        if known is None:
            known = f"array {len(self.arrays)}"
            self.array_ids[id(storage)] = known
            self.arrays[known] = storage
        return known

    def keep(self, info: TensorInfo) -> bool:
        if len(self.tensors) >= self.limits.tensors or not self.room.take(_TENSOR_NBYTES):
            self.cut_tensors += 1
            return False
        self.tensors.append(info)
        return True

    def container(self, label: str, record: object, path: Path) -> Frame:
        if isinstance(record, Mapping):
            return self.mapping(label, record, path)
        if isinstance(record, Call):
            return self.call(label, record, path)
        items: Sequence[object] = ()
        kind, type_name, says = ValueKind.OBJECT, type(record).__name__, text_of(record)
        if isinstance(record, list | tuple):
            kind, says, items = ValueKind.SEQUENCE, counted(len(record), "item"), record
        elif isinstance(record, Group):
            kind = ValueKind.SET if record.kind in ("set", "frozenset") else ValueKind.SEQUENCE
            type_name, says, items = record.kind, counted(len(record.items), "item"), record.items
        elif isinstance(record, PersistentRef):
            type_name, says = "persistent id", "an id that only the program which wrote the file can resolve"
            items = [record.pid]
        elif isinstance(record, ArrayStub):
            kind, type_name, says, items = ValueKind.ARRAY, record.kind, record.note or "no elements", record.extra
        left = ((str(i), item) for i, item in enumerate(items))
        return Frame(
            record=record, label=label, path=path, kind=kind, type_name=type_name, left=left, size=len(items), says=says
        )

    def mapping(self, label: str, record: Mapping, path: Path) -> Frame:
        lent = _CHILD_NBYTES * listed_size(record)
        self.room.take(lent)
        children, unnamed = mapping_children(record)
        is_optimizer = {label for label, _ in children[:64]} >= _OPTIMIZERS
        if is_optimizer:
            self.optimizers.append(path)
        versions = self.versions_of(record.attributes)
        if not versions.alone:
            children.append(("(attributes)", record.attributes))
            unnamed["(attributes)"] = NO_KEY
        if record.extra is not None:
            children.append(("(default)", record.extra))
            unnamed["(default)"] = NO_KEY
        return Frame(
            record=record, label=label, path=path, kind=ValueKind.MAPPING, type_name=record.kind, left=iter(children),
            size=len(children), says=counted(len(children), "entry", "entries"), named=True,
            unnamed=unnamed, versions=versions, lent=lent, is_optimizer=is_optimizer,
        )  # fmt: skip

    def versions_of(self, attributes: object) -> Versions:
        # Kept, since a file can give the same attributes to any number of mappings.
        if id(attributes) not in self.versions:
            self.versions[id(attributes)] = versions_of(attributes)
        return self.versions[id(attributes)]

    def call(self, label: str, record: Call, path: Path) -> Frame:
        kind = class_of(record)
        self.misfits.add(path, kind, record.why)
        parts = parts_of(record)
        lent = _CHILD_NBYTES * listed_size(record)
        self.room.take(lent)
        if parts is None:
            children, unnamed = call_children(record)
            is_optimizer = {label for label, _ in children[:64]} >= _OPTIMIZERS
            if is_optimizer:
                self.optimizers.append(path)
            says = {"new": "an object of this class, not made", "build": "a class with changed attributes"}.get(
                record.how, "the result of a call that was not made"
            )
            says = says if self.full else f"{says}: {text_of(record, 120)}"
            return Frame(
                record=record, label=label, path=path, kind=ValueKind.OBJECT, type_name=kind, left=iter(children),
                size=len(children), says=says, inert=True, lent=lent, named=unnamed is not None, unnamed=unnamed or {},
                is_optimizer=is_optimizer,
            )  # fmt: skip
        if id(record) not in self.gathered.ids:
            self.module(record, path, kind)
        own = [*parts.parameters, *parts.buffers]
        children = [*own, *parts.modules, *parts.attributes]
        says = f"{counted(len(own), 'tensor')}, {counted(len(parts.modules), 'submodule')}"
        return Frame(
            record=record, label=label, path=path, kind=ValueKind.MODULE, type_name=kind, left=iter(children),
            size=len(children), says=says, inert=True, transient=parts.transient, lent=lent,
            elsewhere=frozenset(k for k, v in own if isinstance(v, TensorStub)) - parts.transient,
        )  # fmt: skip

    def module(self, record: Call, path: Path, kind: str) -> None:
        """A pickled module that is no part of one already gathered becomes a named group of tensors."""

        def make(stub: TensorStub, name: str, is_parameter: bool | None) -> TensorInfo | None:
            if not self.room.take(len(name) + 70 * name.count(".") + 8 * len(path)):
                self.cut_tensors += 1
                return None
            info = self.info(stub, name, (*path, *name.split(".")), is_parameter)
            return info if self.keep(info) else None

        found = gather(record, make, self.gathered)
        if found is None:
            return
        self.cut_deep += found.cut
        self.groups.append(
            NamedTensors(
                path=path,
                kind=kind,
                tensors=tuple(found.tensors),
                is_module=True,
                modules=found.tree,
                access=access_of(self.stack, path),
            )
        )
