"""What differs between two files beside the numbers of the weights: what they say, hold, and would run.

From the headers alone; of other state dicts numbers that stand alone (a step, a scale) are read, all others where that
is asked for.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from inspector.checkpoint.data import read_array, to_float32
from inspector.checkpoint.types import Checkpoint, GlobalVerdict, ModuleNode, StateDict, StateRole, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.compare.align import Operand
from inspector.compare.held import Held as PairHeld
from inspector.compare.optimizer_names import agreed, entry_names
from inspector.compare.report import OtherChange, OtherKind, Relation
from inspector.errors import InspectorError
from inspector.units import counted
from inspector.weights.meter import Meter

#: Values of a file that are held against the other's, and lines that come of it.
MOST_VALUES = 20_000
MOST_CHANGES = 2_000
_MOST_SHOWN = 200
_MOST_READ = 2_000
_MOST_NAMED = 3
_PLAIN = (ValueKind.TEXT, ValueKind.NUMBER, ValueKind.BOOLEAN, ValueKind.NONE)
_CLASS_NAMES = re.compile(
    r"class_?names|classes|categories|id2label|label2id|idx_to_class|class_to_idx|label_names", re.I
)
_SETTINGS = re.compile(
    r"args|opts?|cfg|config|hparams|hyper_?parameters|model_args|model_config|params_?config|settings", re.I
)
_OPTIMIZER = re.compile(r"optim(?!al|um)|param_groups|sched|scaler", re.I)

Held = dict[str, str]


def other_changes(
    a: Operand, b: Operand, names: Mapping[str, str], meter: Meter | None = None
) -> tuple[OtherChange, ...]:
    """names: of the paired tensors, the first file's -> the second's. meter: where tensors of other state dicts are to
    be compared byte by byte, what counts the bytes."""
    found: list[OtherChange] = [
        *_container(a, b, names),
        *_values(a, b),
        *_modules(a, b),
        *_differing(OtherKind.VERSION, _versions(a.state), _versions(b.state), "versions of modules"),
        *_code(a.checkpoint, b.checkpoint),
        *_state_dicts(a, b, meter),
    ]
    order = list(OtherKind)
    return tuple(sorted(found, key=lambda change: order.index(change.kind))[:MOST_CHANGES])


def _differing(kind: OtherKind, a: Held, b: Held, several: str = "") -> Iterator[OtherChange]:
    """several: what many of them are called, where a side without any is one line and not one for each."""
    if several and bool(a) != bool(b) and len(a) + len(b) > 1:
        says = [f"{len(held):,} {several}" if held else None for held in (a, b)]
        yield OtherChange(kind=kind, where="", a=says[0], b=says[1])
        return
    for where in (*a, *(key for key in b if key not in a)):
        if a.get(where) != b.get(where):
            yield OtherChange(kind=kind, where=where, a=_cut(a.get(where)), b=_cut(b.get(where)))


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"


def _container(a: Operand, b: Operand, names: Mapping[str, str]) -> Iterator[OtherChange]:
    one, two = a.checkpoint, b.checkpoint
    if one.format_says != two.format_says:
        yield OtherChange(kind=OtherKind.FORMAT, where="", a=one.format_says, b=two.format_says)
    place = {tensor.name: at for at, tensor in enumerate(b.tensors)}
    there = [place[names[tensor.name]] for tensor in a.tensors if tensor.name in names]
    moved = sum(x > y for x, y in pairwise(there))
    if moved:
        first = next(i for i, (x, y) in enumerate(pairwise(there)) if x > y)
        paired = [tensor.name for tensor in a.tensors if tensor.name in names]
        says = f"in another order from {paired[first + 1]} on"
        yield OtherChange(kind=OtherKind.ORDER, where="", a=None, b=_cut(says))
    shared = [_shared(a), {frozenset(names.get(n, n) for n in group) for group in _shared(a)}, _shared(b)]
    back = {other: own for own, other in names.items()}
    for group in sorted(shared[1] - shared[2], key=sorted):
        where = ", ".join(sorted(back.get(n, n) for n in group))
        yield OtherChange(kind=OtherKind.SHARING, where=where[:_MOST_SHOWN], a="one memory", b=None)
    for group in sorted(shared[2] - shared[1], key=sorted):
        yield OtherChange(kind=OtherKind.SHARING, where=", ".join(sorted(group))[:_MOST_SHOWN], a=None, b="one memory")


def _shared(side: Operand) -> set[frozenset[str]]:
    """Names that show one and the same elements."""
    views: dict[tuple[object, ...], set[str]] = {}
    for tensor in side.tensors:
        if tensor.storage_id is not None and tensor.numel:
            views.setdefault((tensor.storage_id, tensor.offset, tensor.shape, tensor.stride), set()).add(tensor.name)
    return {frozenset(group) for group in views.values() if len(group) > 1}


def _values(a: Operand, b: Operand) -> Iterator[OtherChange]:
    ones, twos = _plain_values(a), _plain_values(b)
    kinds: dict[OtherKind, tuple[Held, Held]] = {}
    for side, held in enumerate((ones, twos)):
        for where, text in held.items():
            kinds.setdefault(_kind_of(where), ({}, {}))[side][where] = text
    for kind, (one, two) in kinds.items():
        yield from _differing(kind, one, two)


def _kind_of(where: str) -> OtherKind:
    segments = re.split(r"[./]|: ", where)
    if any(_CLASS_NAMES.fullmatch(segment) for segment in segments):
        return OtherKind.CLASS_NAMES
    if any(_OPTIMIZER.search(segment) for segment in segments[:-1]):
        return OtherKind.OPTIMIZER
    return OtherKind.HYPERPARAMETER if any(_SETTINGS.fullmatch(s) for s in segments[:-1]) else OtherKind.METADATA


def _plain_values(side: Operand) -> Held:
    """Texts and numbers of the file by where they stand, those beside the tensors of a state dict too."""
    held = dict(side.checkpoint.metadata)
    held.pop("", None)
    left = MOST_VALUES
    waiting: list[tuple[tuple[str, ...], Value]] = [((), side.checkpoint.root)]
    while waiting and left > 0:
        path, value = waiting.pop()
        left -= 1
        if value.kind in _PLAIN and path:
            held.setdefault(".".join(path).removeprefix("__metadata__."), value.says)
        # The parameters of an optimizer's group are numbers: one line about all of them, and not one for each.
        if value.kind is ValueKind.SEQUENCE and path[-1:] == ("params",) and "param_groups" in path:
            held[".".join(path)] = _listed(value)
        # A module's attributes are its hyperparameters, which `_modules` holds against each other.
        elif value.kind is not ValueKind.MODULE:
            waiting += [((*path, label), child) for label, child in reversed(value.children)]
    return dict(sorted(held.items()))


def _listed(value: Value) -> str:
    """The numbers of a group's parameters: how many, and which where they follow each other."""
    numbers, count = [child.says for _, child in value.children], counted(value.size, "parameter")
    if len(numbers) != value.size:
        return f"{count}, {numbers[0]} first" if numbers else count
    if len(numbers) > 1 and all(re.fullmatch(r"[0-9]{1,9}", number) for number in numbers):
        first, last = int(numbers[0]), int(numbers[-1])
        if [int(number) for number in numbers] == [*range(first, last + 1)]:
            return f"{count} ({first} to {last})"
    return f"{count} ({', '.join(numbers)})"


def _modules(a: Operand, b: Operand) -> Iterator[OtherChange]:
    if a.state is None or b.state is None:
        return
    ones, twos = ({node.path: node for node in _walk(side.modules)} for side in (a.state, b.state))
    both = [path for path in ones if path in twos]
    for path in both:
        one, two = ones[path], twos[path]
        if one.kind is not None and two.kind is not None and one.kind != two.kind:
            yield OtherChange(kind=OtherKind.MODULE_CLASS, where=path, a=one.kind, b=two.kind)
        if one.kind is not None and two.kind is not None:
            for change in _differing(OtherKind.HYPERPARAMETER, dict(one.hyperparameters), dict(two.hyperparameters)):
                where = f"{path}.{change.where}" if path else change.where
                yield OtherChange(kind=change.kind, where=where, a=change.a, b=change.b)
    if a.state.kind != b.state.kind and a.state.is_module and b.state.is_module and "" not in both:
        yield OtherChange(kind=OtherKind.MODULE_CLASS, where="", a=a.state.kind, b=b.state.kind)


def _walk(node: ModuleNode) -> Iterator[ModuleNode]:
    waiting = [node]
    while waiting:
        here = waiting.pop()
        yield here
        waiting += reversed(here.children)


def _versions(state: StateDict | None) -> Held:
    return {path: str(version) for path, version in state.versions} if state is not None else {}


def _code(a: Checkpoint, b: Checkpoint) -> Iterator[OtherChange]:
    """Names that a load would import, but for those of every file that torch writes, and program text in the files."""
    ones, twos = (
        {use.name: f"imported ({use.verdict})" for use in side.globals if use.verdict is not GlobalVerdict.KNOWN}
        for side in (a, b)
    )
    yield from _differing(OtherKind.CODE, ones, twos)
    texts = (
        {
            text.name: f"{text.nbytes:,} bytes, {hashlib.sha256(text.text.encode()).hexdigest()[:8]}"
            for text in side.code
        }
        for side in (a, b)
    )
    one, two = texts
    yield from _differing(OtherKind.CODE, one, two)


def _state_dicts(a: Operand, b: Operand, meter: Meter | None) -> Iterator[OtherChange]:
    """The other state dicts: how many tensors of what size, numbers that stand alone, and with a meter all bytes."""
    ones, twos = ({s.label: s for s in side.checkpoint.state_dicts if s is not side.state} for side in (a, b))
    yield from _differing(
        OtherKind.STATE_DICT,
        {label: _size(state) for label, state in ones.items()},
        {label: _size(state) for label, state in twos.items()},
    )
    for label in [label for label in ones if label in twos]:
        kind = OtherKind.OPTIMIZER if ones[label].role is StateRole.OPTIMIZER else OtherKind.STATE_DICT
        first, second = _lone(a.checkpoint, ones[label]), _lone(b.checkpoint, twos[label])
        names = [entry_names(a.checkpoint, ones[label]), entry_names(b.checkpoint, twos[label])]
        for change in _differing(kind, first, second):
            name = agreed(names[0], names[1], change.where)
            yield OtherChange(kind=kind, where=f"{label}: {change.where}", a=change.a, b=change.b, parameter=name)
        if meter is not None:
            yield from _bytes(kind, (a.checkpoint, ones[label]), (b.checkpoint, twos[label]), meter)


def _bytes(
    kind: OtherKind, one: tuple[Checkpoint, StateDict], two: tuple[Checkpoint, StateDict], meter: Meter
) -> Iterator[OtherChange]:
    """One line about the larger tensors of a state dict that are not the same."""
    from inspector.compare.pair import compare_pair

    there = {tensor.name: tensor for tensor in two[1].tensors}
    # Those of one number are told each.
    both = [t for t in one[1].tensors if t.name in there and (t.numel != 1 or there[t.name].numel != 1)]
    different = []
    for tensor in both:
        meter.begin(tensor.name)
        found = compare_pair(PairHeld(one[0], tensor), PairHeld(two[0], there[tensor.name]), meter)
        if found.relation is not Relation.SAME:
            different.append(tensor.name)
    if different:
        shown = ", ".join(different[:_MOST_NAMED]) + (" ..." if len(different) > _MOST_NAMED else "")
        says = f"{len(different):,} of {counted(len(both), 'tensor')} hold other bytes: {shown}"
        yield OtherChange(kind=kind, where=one[1].label, a=None, b=_cut(says))


def _size(state: StateDict) -> str:
    elements = sum(tensor.numel for tensor in state.tensors)
    return f"{state.role}: {counted(len(state.tensors), 'tensor')}, {counted(elements, 'element')}"


def _lone(checkpoint: Checkpoint, state: StateDict) -> Held:
    alone = [tensor for tensor in state.tensors if tensor.numel == 1][:_MOST_READ]
    return {tensor.name: _number(checkpoint, tensor) for tensor in alone}


def _number(checkpoint: Checkpoint, tensor: TensorInfo) -> str:
    try:
        raw = read_array(checkpoint, tensor).reshape(-1)
        return repr(raw.tolist()[0]) if raw.dtype.kind in "iub" else repr(float(to_float32(raw, tensor.dtype)[0]))
    except (InspectorError, OSError, ValueError, MemoryError):
        return "not readable"
