"""Which parameter each entry of an optimizer's state belongs to.

torch numbers parameters in the order in which an optimizer was given them, group by group, and keeps no names
(torch/optim/optimizer.py, state_dict): entry i is the i-th parameter of `model.parameters()`, which is the state dict's
own order without buffers and with shared tensors once. Nothing in the file says so. So it is believed only where the
moments have the parameters' shapes, every one of them; where another reading of the groups would fit as well, it is
not. Files that keep names (FSDP, and torch since 2.6 where the optimizer was given names) are read by those.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from inspector.checkpoint.bookkeeping import BOOKKEEPING
from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.types import Checkpoint, StateDict, StateRole, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.keys.optimizer.by_index import GroupsByKind, NotMapped, deal
from inspector.keys.placing.own_order import sorted_by_name
from inspector.units import counted

# State with one number per parameter element, by the optimizers of torch.optim, Lion, LAMB and Adafactor.
ELEMENTWISE = re.compile(
    r"exp_avg|exp_avg_sq|max_exp_avg_sq|exp_inf|momentum_buffer|square_avg|grad_avg|acc_delta|sum|prev|ax|variance"
)
_KINDS = (
    ({"exp_avg", "exp_avg_sq"}, "Adam-like"),
    ({"exp_avg", "exp_inf"}, "Adamax"),
    ({"square_avg", "acc_delta"}, "Adadelta"),
    ({"square_avg"}, "RMSprop"),
    ({"exp_avg"}, "Lion-like"),
    ({"momentum_buffer"}, "SGD with momentum"),
    ({"sum"}, "Adagrad"),
    ({"row_var", "col_var"}, "Adafactor"),
)
# These make a parameter's state when they first see its gradient, so one without state may be among others.
LAZY = frozenset({"Adam-like", "Adamax", "Adadelta", "RMSprop", "Lion-like", "SGD with momentum"})
_BUFFERS = re.compile(
    "|".join(sorted(BOOKKEEPING)) + r"|running_mean|running_var|position_ids|inv_freq"
    r"|relative_position_index|relative_coords_table|attn_mask|masked_bias|weight_u|_u|_v"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamGroup:
    """One of an optimizer's groups. names: its parameters, as the file's state dict spells them, in the order of their
    indices; keys: these indices (or names) as the file has them. settings: the group's mapping in the file.
    """

    names: tuple[str, ...]
    keys: tuple[str, ...]
    settings: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerMap:
    """One optimizer of the file, mapped to the parameters of one state dict.

    path: keys to it. kind: what its state looks like ("Adam-like"). by: "name", "index and shape". checked: how many
    parameters have state whose shape agrees. listed: all parameters of the weights, in the file's order. state:
    parameter name -> field -> tensor of the file; plain: the same for what is no tensor. by_name: its state is kept
    under names. class_of_group: the group of each class (leaf name, more than one dimension) that lies in one group.
    sorted_names: the weights are in an alphabet's order, which may not be the model's.
    refusal: why it cannot be mapped, "" when it is; asks: the groups by kind of parameter, where a
    yes to them would do. says: the answer in one sentence.
    """

    path: tuple[str, ...]
    kind: str
    says: str
    refusal: str = ""
    asks: str = ""
    by: str = ""
    checked: int = 0
    listed: tuple[str, ...] = ()
    by_name: bool = False
    groups: tuple[ParamGroup, ...] = ()
    state: Mapping[str, Mapping[str, TensorInfo]] = field(default_factory=dict)
    plain: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    class_of_group: Mapping[Hashable, int] = field(default_factory=dict)
    sorted_names: bool = False

    @property
    def label(self) -> str:
        """As it is called on pages and in messages."""
        return " / ".join(self.path) or "the file itself"

    @property
    def order(self) -> dict[str, int]:
        """Position of each mapped parameter among the weights as the file lists them."""
        return {name: number for number, name in enumerate(self.listed)}

    @property
    def names(self) -> tuple[str, ...]:
        """Every mapped parameter, group by group."""
        return tuple(name for group in self.groups for name in group.names)


@dataclass(slots=True)
class _Raw:
    """What the file keeps: groups of keys, and per key the tensors and plain values of its state."""

    groups: list[tuple[list[str], Value]]
    tensors: dict[str, dict[str, TensorInfo]]
    plain: dict[str, dict[str, Value]]
    named: bool
    given: list[list[str]]


def map_optimizers(
    checkpoint: Checkpoint, state: StateDict, buffers: Collection[str] = (), *, by_kind: bool = False
) -> tuple[OptimizerMap, ...]:
    """Every optimizer of the file against one of its state dicts, in the file's order.

    buffers: tensors of the state dict that are known to be none of the model's parameters. by_kind: the visitor's yes
    to groups by kind of parameter (`deal`). Raises nothing: what cannot be mapped says why.
    """
    found = [s for s in checkpoint.state_dicts if s.role is StateRole.OPTIMIZER and s.tensors]
    return tuple(_map(checkpoint, other, state, buffers, by_kind) for other in sorted(found, key=lambda s: s.path))


def _map(
    checkpoint: Checkpoint, other: StateDict, state: StateDict, buffers: Collection[str], by_kind: bool
) -> OptimizerMap:
    kind = "an optimizer"
    try:
        raw = _read(checkpoint, other)
        kind = _kind(raw)
        if state.role is StateRole.EMA:
            raise NotMapped("its moments belong to the trained weights, and these are averaged ones")
        parameters = parameters_of(state, buffers)
        sizes = {key: list(_sizes(raw, key).values()) for key in raw.tensors}
        classes: dict[Hashable, int] = {}
        if raw.named:
            groups = _by_names([keys for keys, _ in raw.groups], raw, parameters)
        elif raw.given:
            groups = _by_names(raw.given, raw, parameters)
        else:
            if not state.ordered:
                raise NotMapped("the weights are not in the model's order, so an index says nothing")
            shapes = {name: tensor.shape for name, tensor in parameters.items()}
            groups, classes = deal([keys for keys, _ in raw.groups], sizes, shapes, by_kind=by_kind)
    except NotMapped as error:
        says = f"{' / '.join(other.path)}: {kind}, cannot be mapped to parameters: {error}."
        return OptimizerMap(
            path=other.path,
            kind=kind,
            says=says,
            refusal=str(error),
            asks=error.kinds if isinstance(error, GroupsByKind) else "",
        )
    key_of = {
        n: key for (keys, _), names in zip(raw.groups, groups, strict=True) for key, n in zip(keys, names, strict=True)
    }
    by = "name" if raw.named or raw.given else "index and shape"
    checked = sum(1 for key in key_of.values() if sizes.get(key))
    says = (
        f"{' / '.join(other.path)}: {kind}, {checked:,} of {counted(len(parameters), 'parameter')} mapped by {by}"
        + (f" in {counted(len(groups), 'group')}." if len(groups) > 1 else ".")
    )
    return OptimizerMap(
        path=other.path,
        kind=kind,
        says=says,
        by=by,
        checked=checked,
        listed=tuple(parameters),
        by_name=raw.named,
        groups=tuple(
            ParamGroup(names=tuple(names), keys=tuple(keys), settings=settings)
            for names, (keys, settings) in zip(groups, raw.groups, strict=True)
        ),
        state={name: raw.tensors.get(key, {}) for name, key in key_of.items()},
        plain={name: raw.plain.get(key, {}) for name, key in key_of.items()},
        class_of_group=classes,
        sorted_names=by != "name" and sorted_by_name(list(parameters)),
    )


def parameters_of(state: StateDict, buffers: Collection[str] = ()) -> dict[str, TensorInfo]:
    """The parameters of a state dict in its order, by name: no buffers, and tensors of one memory once."""
    found: dict[str, TensorInfo] = {}
    seen: set[tuple[object, ...]] = set()
    names = {tensor.name for tensor in state.tensors}
    for tensor in state.tensors:
        # Of a spectral norm, both vectors are buffers; weight_v alone is a weight norm's direction.
        if tensor.name.endswith("weight_v") and f"{tensor.name[:-1]}u" in names:
            continue
        if tensor.is_parameter is False or tensor.name in buffers or not _could_train(tensor.name, tensor.dtype):
            continue
        place = (tensor.storage_id, tensor.offset, tensor.shape, tensor.stride)
        if tensor.storage_id is not None and tensor.numel and place in seen:
            continue
        seen.add(place)
        found[tensor.name] = tensor
    return found


def _could_train(name: str, dtype: str) -> bool:
    kind = find_dtype(dtype)
    trains = dtype.startswith(("complex", "bcomplex")) or (kind is not None and kind.floating)
    return trains and not _is_buffer(name.rpartition(".")[2])


@lru_cache(maxsize=1024)
def _is_buffer(last: str) -> bool:
    return _BUFFERS.fullmatch(last) is not None


def may_be_parameter(name: str, dtype: str | None, is_buffer: bool | None) -> bool:
    """The same of a target's tensor, which may know it."""
    return _could_train(name, dtype or "float32") if is_buffer is None else not is_buffer


def _read(checkpoint: Checkpoint, other: StateDict) -> _Raw:
    parts = dict(value_at(checkpoint.root, other.path).children)
    if not {"state", "param_groups"} <= set(parts):
        raise NotMapped("it is kept in pieces without its parameter groups, as sharded trainings save it")
    groups: list[tuple[list[str], Value]] = []
    given: list[list[str]] = []
    kinds = set()
    for group in _items(parts["param_groups"]):
        settings = dict(group.children)
        if "params" not in settings:
            raise NotMapped("a group of it does not list its parameters")
        keys = _items(settings["params"])
        kinds |= {key.kind for key in keys}
        groups.append(([key.says for key in keys], group))
        names = settings.get("param_names")
        if names is not None:
            given.append([name.says for name in _items(names)])
    every = [key for keys, _ in groups for key in keys]
    if kinds - {ValueKind.NUMBER} and kinds - {ValueKind.TEXT}:
        raise NotMapped("its parameters are listed neither by number nor by name")
    if len(set(every)) != len(every) or not every:
        raise NotMapped("it lists no parameter, or one twice")
    if [len(names) for names in given] != [len(keys) for keys, _ in groups]:
        given = []
    raw = _Raw(groups=groups, tensors={}, plain={}, named=ValueKind.TEXT in kinds, given=given)
    for key, fields in parts["state"].children:
        if fields.kind is not ValueKind.MAPPING or len(fields.children) != fields.size:
            raise NotMapped(f"the state of parameter {key} is no mapping, or not shown in full")
        raw.plain[key] = {name: v for name, v in fields.children if v.kind is not ValueKind.TENSOR}
    if len(parts["state"].children) != parts["state"].size:
        raise NotMapped("its state is not shown in full")
    start = (*other.path, "state")
    for tensor in other.tensors:
        if tensor.path[: len(start)] != start:
            continue
        if len(tensor.path) != len(start) + 2:
            raise NotMapped(f"it keeps nested state ({'.'.join(tensor.path[len(start) :])[:80]})")
        raw.tensors.setdefault(tensor.path[-2], {})[tensor.path[-1]] = tensor
    strangers = (set(raw.tensors) | set(raw.plain)) - set(every)
    if strangers:
        raise NotMapped(f"it has state for a parameter that no group lists ({sorted(strangers)[0][:80]})")
    return raw


def _items(value: Value) -> list[Value]:
    if value.kind is not ValueKind.SEQUENCE or len(value.children) != value.size:
        raise NotMapped("a list of it is not shown in full")
    return [child for _, child in value.children]


def value_at(value: Value, path: Sequence[str]) -> Value:
    """What lies below there; an empty value where nothing does."""
    nothing = Value(kind=ValueKind.NONE, type_name="", says="")
    for key in path:
        value = next((child for label, child in value.children if label == key), nothing)
    return value


def _kind(raw: _Raw) -> str:
    counts = Counter(name for fields in raw.tensors.values() for name in fields)
    for names, kind in _KINDS:
        if names <= set(counts):
            return kind
    return "an optimizer"


def _sizes(raw: _Raw, key: str) -> dict[str, tuple[int, ...]]:
    fields = raw.tensors.get(key, {})
    found = {name: t.shape for name, t in fields.items() if _is_elementwise(name)}
    # torch's Adafactor keeps means of rows (..., r, 1) and of columns (..., 1, c) of a parameter (..., r, c).
    if "row_var" in fields and "col_var" in fields and fields["row_var"].shape and fields["col_var"].shape:
        found["row_var"] = (*fields["row_var"].shape[:-1], fields["col_var"].shape[-1])
    return found


@lru_cache(maxsize=1024)
def _is_elementwise(name: str) -> bool:
    """Thousands of parameters have the same few fields."""
    return ELEMENTWISE.fullmatch(name) is not None


def _by_names(names: list[list[str]], raw: _Raw, parameters: Mapping[str, TensorInfo]) -> list[list[str]]:
    every = [name for mine in names for name in mine]
    if len(set(every)) != len(every):
        raise NotMapped("it names a parameter twice")
    for mine, (keys, _) in zip(names, raw.groups, strict=True):
        for name, key in zip(mine, keys, strict=True):
            if name not in parameters:
                raise NotMapped(f"it names {name[:80]}, which is no parameter of these weights")
            if any(shape != parameters[name].shape for shape in _sizes(raw, key).values()):
                raise NotMapped(f"its state of {name[:80]} has another shape than the parameter")
    return names
