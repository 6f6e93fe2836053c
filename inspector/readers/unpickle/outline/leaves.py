"""Single records: the value of one without children, and the labelled children of one with."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.checkpoint.types import Encoding, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.readers.unpickle.machine.frames import Versions
from inspector.readers.unpickle.meanings.modules import attributes_of, class_of
from inspector.readers.unpickle.stand_ins import (
    ArrayStub,
    BytesAt,
    Call,
    GlobalRef,
    Group,
    Labelled,
    Mapping,
    Named,
    NumpyDtype,
    Recipe,
    StorageRef,
    TensorStub,
    WrappedArray,
    int_text,
    text_of,
)
from inspector.units import human_shape

TEXT_WIDTH = 200
# Under a label that stands for no key of its own.
NO_KEY = object()
# Of these none is a leaf.
_CONTAINERS = frozenset({Mapping, Call, list, TensorStub, GlobalRef})
PLAIN = frozenset({type(None), bool, int, float, str, bytes})
_CONSTANT = 4  # Items of a tuple that is shown again.


def is_constant(record: object) -> bool:
    """A few plain values in a tuple: betas, which every group of an optimizer shares. Shown wherever it stands."""
    return type(record) is tuple and len(record) <= _CONSTANT and all(type(item) in PLAIN for item in record)


def leaf_of(record: object) -> Value | None:
    """The value of a record without children, None for containers and tensors."""
    kind = type(record)
    if kind in _CONTAINERS:
        return None
    if record is None:
        return Value(kind=ValueKind.NONE, type_name="NoneType", says="None")
    if kind is bool:
        return Value(kind=ValueKind.BOOLEAN, type_name="bool", says=str(record))
    if isinstance(record, int):
        return Value(kind=ValueKind.NUMBER, type_name="int", says=int_text(record))
    if isinstance(record, float):
        return Value(kind=ValueKind.NUMBER, type_name="float", says=repr(record))
    if isinstance(record, str):
        says = record if len(record) <= TEXT_WIDTH else record[: TEXT_WIDTH - 1] + "…"
        return Value(kind=ValueKind.TEXT, type_name="str", says=says, size=len(record))
    if isinstance(record, bytes | bytearray):
        return Value(kind=ValueKind.BYTES, type_name="bytes", says=text_of(record, TEXT_WIDTH), size=len(record))
    if isinstance(record, BytesAt):
        says = f"{record.nbytes:,} bytes at byte {record.offset:,} of the stream"
        return Value(kind=ValueKind.BYTES, type_name="bytes", says=says, size=record.nbytes)
    if isinstance(record, Named):
        return Value(kind=ValueKind.TEXT, type_name=record.kind, says=record.text[:TEXT_WIDTH])
    if isinstance(record, NumpyDtype):
        return Value(kind=ValueKind.TEXT, type_name="numpy.dtype", says=record.order.strip("=|") + record.code)
    if isinstance(record, WrappedArray):
        return Value(kind=ValueKind.OBJECT, type_name=record.name, says="joblib's stand-in for an array, without one")
    if isinstance(record, StorageRef):
        says = f"{record.numel:,} elements, storage {record.key[:40]}"
        return Value(kind=ValueKind.OBJECT, type_name=f"torch.{record.type_name[:80]}", says=says)
    if isinstance(record, Group) and record.kind == "torch.Size" and all(type(n) is int for n in record.items[:64]):
        sizes = tuple(n for n in record.items[:64] if isinstance(n, int))
        return Value(kind=ValueKind.TEXT, type_name="torch.Size", says=human_shape(sizes)[:TEXT_WIDTH])
    if isinstance(record, tuple) and not record:
        return Value(kind=ValueKind.SEQUENCE, type_name="tuple", says="empty")
    return None


def type_name_of(record: object) -> str:
    if isinstance(record, Mapping | Group | ArrayStub | TensorStub):
        return record.kind
    return class_of(record)[:TEXT_WIDTH] if isinstance(record, Call) else type(record).__name__


def mapping_children(record: Mapping) -> tuple[list[tuple[str, object]], dict[str, object]]:
    """(label, value) with the last value of a repeated key, as a dict keeps it; and the labels that are no text keys,
    each with the key that it stands for.

    A key that is itself a record is listed beside its value, since it may hold a call. The number 1 beside the text
    "1" is another key, and called so.
    """
    children: dict[str, object] = {}
    unnamed: dict[str, object] = {}
    texts = {key for key, _ in record.pairs if type(key) is str}
    for n, (key, value) in enumerate(record.pairs):
        if type(key) is str:
            children[key] = value
            continue
        label = text_of(key, 80)
        if label in texts:
            label = f"{label} ({_type_of(key)})"
        if label in children and type(key) not in (int, float, bool):
            label = f"{label} ({n})"
        children[label] = value
        unnamed[label] = key
        if not isinstance(key, int | float | bytes | None):
            children[f"key {n}"] = key
            unnamed[f"key {n}"] = NO_KEY
    return list(children.items()), unnamed


def odd_keys_of(unnamed: dict[str, object], most: int) -> tuple[tuple[str, str], ...]:
    """(as Python writes it, its type) of the keys that are no text."""
    keys = [(label, key) for label, key in unnamed.items() if key is not NO_KEY][:most]
    # A label has what tells it from a text key of the same look.
    return tuple((label.removesuffix(f" ({_type_of(key)})"), _type_of(key)) for label, key in keys)


def _type_of(key: object) -> str:
    if isinstance(key, GlobalRef):
        return ""  # A name, of which nobody here knows what it stands for.
    return "NoneType" if key is None else type_name_of(key)


def listed_size(record: Mapping | Call) -> int:
    """About how many children `mapping_children` or `call_children` would list."""
    if isinstance(record, Mapping):
        return 2 * len(record.pairs)
    states = sum(2 * len(state.pairs) for state in map(attributes_of, record.states) if isinstance(state, Mapping))
    args = len(record.args) if isinstance(record.args, tuple) else 1
    return states + len(record.states) + args + len(record.items) + 2 * len(record.pairs)


def call_children(record: Call) -> tuple[list[tuple[str, object]], dict[str, object] | None]:
    """The children of an object that was not made; and where it is a dict of a class of its own, with tensors under
    text keys, the labels that are none of these, as `mapping_children` has them. None for any other object."""
    children: list[tuple[str, object]] = []
    if not isinstance(record.callee, GlobalRef):
        children.append(("called", record.callee))
    if isinstance(record.args, tuple):
        children += [(f"argument {i}", item) for i, item in enumerate(record.args)]
    else:
        children.append(("arguments", record.args))
    if record.kwargs is not None:
        children.append(("keywords", record.kwargs))
    for state in record.states:
        if isinstance(state, Mapping):
            children += mapping_children(state)[0]
        else:
            children.append(("state", state))
    children += [(str(i), item) for i, item in enumerate(record.items)]
    if any(type(key) is str and isinstance(value, TensorStub) for key, value in record.pairs):
        own, unnamed = mapping_children(Mapping(pairs=record.pairs))
        keys = {key for key, _ in own}
        around = [(f"{label} (of the object)" if label in keys else label, value) for label, value in children]
        return [*around, *own], unnamed | {label: NO_KEY for label, _ in around}
    for n, (key, value) in enumerate(record.pairs):
        if type(key) is str:
            children.append((key, value))
        else:
            children += [(f"key {n}", key), (f"value {n}", value)]
    return children, None


def labelled(number: int, item: object) -> tuple[str, object]:
    """Something that belongs to a tensor, under its own label or its number."""
    return (item.label, item.value) if isinstance(item, Labelled) else (f"part {number}", item)


def encoding_of(recipe: Recipe, parts: Sequence[TensorInfo]) -> Encoding:
    """A recipe with the parts as they are shown."""
    return Encoding(
        scheme=recipe.scheme,
        parts=tuple(parts),
        scale=recipe.scale,
        zero_point=recipe.zero_point,
        axis=recipe.axis,
        coalesced=recipe.coalesced,
        conjugated=recipe.conjugated,
        negated=recipe.negated,
    )


def versions_of(attributes: object) -> Versions:
    """Of what BUILD set on a mapping, None where it set nothing."""
    if attributes is None:
        return Versions()
    if not isinstance(attributes, Mapping):
        return Versions(alone=False)
    held = {key: value for key, value in attributes.pairs if type(key) is str}
    if "_metadata" not in held:
        return Versions(alone=False)
    metadata = held["_metadata"]
    if metadata is None:
        return Versions(alone=False)
    if not isinstance(metadata, Mapping):
        return Versions(alone=False, odd=True)
    found: list[tuple[str, int]] = []
    alone, odd = len(attributes.pairs) == 1, False
    for path, entry in metadata.pairs:
        if not isinstance(entry, Mapping):
            alone, odd = False, odd or type(path) is str
            continue
        for key, value in entry.pairs:
            if (
                type(path) is not str
                or type(key) is not str
                or isinstance(value, Call | Mapping | list | tuple | Group)
            ):
                alone = False
            if key == "version" and type(path) is str:
                odd = odd or not isinstance(value, int | float | None)
                if isinstance(value, int):
                    found.append((path, int(value)))
    return Versions(found=tuple(found), alone=alone, odd=odd)
