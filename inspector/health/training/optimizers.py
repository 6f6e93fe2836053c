"""An optimizer as the file keeps it: which of torch's it is, its groups, and the state of each of its parameters.

Read from the keys that torch writes (torch/optim, 2.15): what the settings of a group are called, and what the state of
a parameter holds. Which parameter an entry belongs to is `keys/optimizer/map.py`'s to prove.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from inspector.checkpoint.types import Checkpoint, StateDict, StateRole, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.health.training.numbers import MOST, Measured, Path, find_mappings
from inspector.keys.optimizer.map import OptimizerMap, map_optimizers

_MOST_STATES = 8  # Sets of weights that an optimizer is held against.


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerKind:
    """One optimizer of torch.optim, by its keys.

    settings: names that a group of it has; lacks: and that it has not. state: what a parameter's state then holds.
    squares: of these, never negative. gradients: all zero for as long as no gradient but zero has come.
    """

    name: str
    settings: frozenset[str]
    lacks: frozenset[str] = frozenset()
    state: frozenset[str]
    squares: frozenset[str] = frozenset()
    gradients: frozenset[str] = frozenset()


def _kind(name: str, settings: str, state: str, *, lacks: str = "", squares: str = "", zero: str = "") -> OptimizerKind:
    return OptimizerKind(
        name=name,
        settings=frozenset(settings.split()),
        lacks=frozenset(lacks.split()),
        state=frozenset(state.split()),
        squares=frozenset(squares.split()),
        gradients=frozenset(zero.split()),
    )


_ADAM = ("exp_avg exp_avg_sq", "exp_avg_sq max_exp_avg_sq", "exp_avg_sq")
# The first whose settings are there, and whose state does not contradict. Adamax keeps |g| + eps, which is never zero;
# Rprop the last gradient alone; ASGD no gradient.
KINDS = (
    _kind("NAdam", "betas momentum_decay", _ADAM[0], squares=_ADAM[1], zero=_ADAM[2]),
    _kind("Muon", "ns_steps ns_coefficients momentum", "momentum_buffer", zero="momentum_buffer"),
    _kind("LBFGS", "history_size tolerance_grad", "func_evals n_iter"),
    _kind("Rprop", "etas step_sizes", "prev step_size", squares="step_size"),
    _kind("ASGD", "lambd t0", "ax eta mu"),
    _kind("Adafactor", "beta2_decay d", "step", squares="row_var col_var variance", zero="row_var variance"),
    _kind("Adadelta", "rho eps", "square_avg acc_delta", squares="square_avg acc_delta", zero="square_avg"),
    _kind("Adagrad", "lr_decay eps", "sum", squares="sum", zero="sum"),
    _kind("RMSprop", "alpha centered", "square_avg", squares="square_avg", zero="square_avg"),
    _kind("SGD", "dampening nesterov", "momentum_buffer", zero="momentum_buffer"),
    _kind("Adamax", "betas eps weight_decay", "exp_avg exp_inf", lacks="amsgrad", squares="exp_inf"),
    _kind("Adam", "betas amsgrad", _ADAM[0], squares=_ADAM[1], zero=_ADAM[2]),
    _kind(
        "RAdam",
        "betas eps weight_decay foreach",
        _ADAM[0],
        lacks="amsgrad fused",
        squares=_ADAM[1],
        zero=_ADAM[2],
    ),
    _kind("SparseAdam", "betas eps", _ADAM[0], lacks="weight_decay", squares=_ADAM[1], zero=_ADAM[2]),
)
# Of whatever else keeps moments under Adam's names: LAMB, Lion, 8-bit and fused variants.
_LIKE_ADAM = _kind("", "", "", squares="exp_avg_sq max_exp_avg_sq exp_inf", zero="exp_avg_sq")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The state of one parameter. key: as the file numbers or names it. name: the parameter's, "" where not proved."""

    key: str
    name: str = ""
    tensors: Mapping[str, TensorInfo]
    plain: Mapping[str, Value]

    @property
    def label(self) -> str:
        """What it is called in sentences."""
        return self.name or f"entry {self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One parameter group. path: to it. lr: None where it has none. keys: of its parameters."""

    path: Path
    settings: Mapping[str, Value]
    lr: float | None
    initial_lr: float | None
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """One optimizer of the file.

    kind: which of torch's it is by its keys; its name is "" for others, of which only Adam's names are known.
    entries: parameters with state, by key. listed: how many its groups list. names: key -> parameter, where proved.
    weights: path of the state dict that these are in. steps: key -> how often it was stepped. whole: whether its state
    and groups are shown in full.
    """

    path: Path
    kind: OptimizerKind
    groups: tuple[Group, ...]
    entries: Mapping[str, Entry] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    weights: Path | None = None
    steps: Mapping[str, float] = field(default_factory=dict)
    whole: bool = True

    @property
    def label(self) -> str:
        """As it is called on pages and in messages."""
        return " / ".join(self.path) or "the file itself"

    @property
    def called(self) -> str:
        """ "AdamW in optimizer"."""
        return f"{self.kind.name or 'The optimizer'} in {self.label}"

    @property
    def listed(self) -> int:
        """Parameters in its groups."""
        return sum(len(group.keys) for group in self.groups)

    @property
    def most_steps(self) -> float | None:
        """Of the parameter that was stepped most often; None where it does not count."""
        return max(self.steps.values(), default=None)


def find_kind(settings: frozenset[str], state: frozenset[str], *, decoupled: bool = False) -> OptimizerKind:
    """Which optimizer has groups with these settings, and parameters with this state (nothing: not yet stepped)."""
    for kind in KINDS:
        if not kind.settings <= settings or kind.lacks & settings or (state and not kind.state <= state):
            continue
        if kind.name == "Adam" and decoupled:
            return _kind("AdamW", "", _ADAM[0], squares=_ADAM[1], zero=_ADAM[2])
        return kind
    return _LIKE_ADAM


def read_optimizers(measured: Measured, state: StateDict | None) -> tuple[Optimizer, ...]:
    """Every optimizer of the file, in its order. state: the weights that its entries may belong to."""
    checkpoint = measured.checkpoint
    found = list(islice(find_mappings(checkpoint.root, _is_optimizer), MOST))
    tensors = _tensors_below([path for path, _ in found], checkpoint)
    maps = _maps(checkpoint, state) if found else {}
    return tuple(_read(measured, path, parts, tensors[path], maps.get(path)) for path, parts in found)


def _is_optimizer(parts: Mapping[str, Value]) -> bool:
    groups, state = parts.get("param_groups"), parts.get("state")
    return (
        groups is not None
        and groups.kind is ValueKind.SEQUENCE
        and state is not None
        and state.kind is ValueKind.MAPPING
        and all(child.kind is ValueKind.MAPPING for _, child in groups.children)
    )


def _maps(checkpoint: Checkpoint, state: StateDict | None) -> dict[Path, tuple[StateDict, OptimizerMap]]:
    """The one set of trained weights that each optimizer fits; none where it fits several (two equal networks)."""
    weights = [one for one in checkpoint.state_dicts if one.role is StateRole.WEIGHTS and one.tensors]
    if state is not None and state.role is not StateRole.EMA and state not in weights:
        weights.append(state)
    found: dict[Path, list[tuple[StateDict, OptimizerMap]]] = defaultdict(list)
    for one in weights[:_MOST_STATES]:
        for mapped in map_optimizers(checkpoint, one):
            if not mapped.refusal:
                found[mapped.path].append((one, mapped))
    return {path: maps[0] for path, maps in found.items() if len(maps) == 1}


def _tensors_below(paths: Sequence[Path], checkpoint: Checkpoint) -> dict[Path, dict[str, dict[str, TensorInfo]]]:
    """optimizer -> key of the entry -> field -> tensor."""
    found: dict[Path, dict[str, dict[str, TensorInfo]]] = {path: defaultdict(dict) for path in paths}
    lengths = sorted({len(path) for path in paths})
    for tensor in checkpoint.tensors if paths else ():
        for n in lengths:
            if len(tensor.path) == n + 3 and tensor.path[n] == "state" and tensor.path[:n] in found:
                found[tensor.path[:n]][tensor.path[-2]][tensor.path[-1]] = tensor
    return found


def _read(
    measured: Measured,
    path: Path,
    parts: Mapping[str, Value],
    tensors: Mapping[str, Mapping[str, TensorInfo]],
    fits: tuple[StateDict, OptimizerMap] | None,
) -> Optimizer:
    groups = tuple(
        _group(measured, (*path, "param_groups", label), dict(child.children))
        for label, child in parts["param_groups"].children
    )
    names = (
        {key: name for group in fits[1].groups for key, name in zip(group.keys, group.names, strict=True)}
        if fits is not None
        else {}
    )
    entries: dict[str, Entry] = {}
    steps: dict[str, float] = {}
    for key, fields in parts["state"].children:
        if fields.kind is not ValueKind.MAPPING:
            continue
        plain = {name: value for name, value in fields.children if value.kind is not ValueKind.TENSOR}
        entries[key] = Entry(key=key, name=names.get(key, ""), tensors=tensors.get(key, {}), plain=plain)
        inside = dict(fields.children)
        step = measured.number(inside.get("step"), (*path, "state", key, "step"))
        if step is not None and math.isfinite(step):
            steps[key] = step
    settings = frozenset(name for group in groups for name in group.settings)
    state = frozenset(name for one in entries.values() for name in (*one.tensors, *one.plain))
    decoupled = any(
        (value := group.settings.get("decoupled_weight_decay")) is not None and value.says == "True" for group in groups
    )
    return Optimizer(
        path=path,
        kind=find_kind(settings, state, decoupled=decoupled),
        groups=groups,
        entries=entries,
        names=names,
        weights=fits[0].path if fits is not None else None,
        steps=steps,
        whole=all(len(parts[part].children) == parts[part].size for part in ("state", "param_groups"))
        and all(len(group.keys) == _size(group.settings.get("params")) for group in groups),
    )


def _group(measured: Measured, path: Path, settings: Mapping[str, Value]) -> Group:
    params = settings.get("params")
    return Group(
        path=path,
        settings=settings,
        lr=measured.number(settings.get("lr"), (*path, "lr")),
        initial_lr=measured.number(settings.get("initial_lr"), (*path, "initial_lr")),
        keys=tuple(child.says for _, child in params.children) if params is not None else (),
    )


def _size(value: Value | None) -> int:
    return value.size if value is not None else 0
