"""What a ZeRO file's pickle says about the pieces in it: shapes by name, counts, stage. Only inert records are read.

Source: deepspeed/runtime/engine.py and deepspeed/runtime/zero (0.19).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from inspector.checkpoint.source import ByteSource
from inspector.errors import CorruptFile, LimitExceeded
from inspector.limits import Limits
from inspector.readers.archives.zip_directory import find_member, read_directory
from inspector.readers.formats.torch_archive import unpickle_member
from inspector.readers.unpickle.machine.arguments import sizes_of
from inspector.readers.unpickle.stand_ins import Call, Group, Mapping

_MOST_NAME = 4096
_MOST_COUNT = 1 << 40
Named = list[tuple[str, tuple[int, ...]]]


@dataclass(slots=True, kw_only=True)
class ModelFacts:
    """groups: (name, shape) of each optimizer group, in the order of its flat vector. shared: (name, equal name)."""

    groups: list[Named] = field(default_factory=list)
    frozen: Named = field(default_factory=list)
    buffers: list[str] = field(default_factory=list)
    shared: list[tuple[str, str]] = field(default_factory=list)
    version: str = ""
    expert_partitioned: bool = False


@dataclass(slots=True, kw_only=True)
class OptimFacts:
    """stage: None where the file does not say. partitions: how many ranks share a vector. paddings: elements behind
    each parameter, per group, None for none."""

    stage: int | None = None
    partitions: int | None = None
    paddings: list[list[int]] | None = None
    key: str = ""


def records_of(source: ByteSource, limits: Limits) -> Mapping:
    """The mapping that a file of torch.save holds. Raises CorruptFile when it holds none."""
    directory = read_directory(source, limits)
    prefix = directory.members[0].name.partition("/")[0] if directory.members else ""
    main = find_member(directory, f"{prefix}/data.pkl")
    if main is None:
        raise CorruptFile(f"{source.name} has no data.pkl.")
    outcome = unpickle_member(source, main, limits).outcome
    limits.spend(-outcome.nbytes)  # What is taken out of it is small, and the rest is let go of.
    if not isinstance(outcome.value, Mapping):
        raise CorruptFile(f"{source.name} holds no mapping.")
    return outcome.value


def model_facts(record: Mapping, limits: Limits) -> ModelFacts:
    """Of a *_model_states.pt. Raises LimitExceeded."""
    found = ModelFacts()
    shapes = record.get("param_shapes")
    left = limits.tensors
    # Before 0.3.17 there was one mapping instead of a list of them.
    for group in shapes if isinstance(shapes, list) else [shapes]:
        if isinstance(group, Mapping):
            left -= len(group.pairs)
            if left < 0:
                raise LimitExceeded(f"param_shapes names more than {limits.tensors:,} parameters.")
            found.groups.append(_named(group))
    frozen = record.get("frozen_param_shapes")
    found.frozen = _named(frozen) if isinstance(frozen, Mapping) else []
    names = record.get("buffer_names")
    found.buffers = [n for n in names if type(n) is str and len(n) <= _MOST_NAME] if isinstance(names, list) else []
    shared = record.get("shared_params")
    found.shared = [
        (a, b) for a, b in (shared.pairs if isinstance(shared, Mapping) else []) if type(a) is str and type(b) is str
    ]
    version = record.get("ds_version")
    found.version = version[:40] if isinstance(version, str) else ""
    experts = record.get("ds_autoep_layers") or record.get("autoep_layers")
    found.expert_partitioned = isinstance(experts, list) and any(
        isinstance(e, Mapping) and e.get("checkpoint_format") == "zero3_partitioned" for e in experts
    )
    return found


def _named(mapping: Mapping) -> Named:
    found: dict[str, tuple[int, ...]] = {}
    for name, size in mapping.pairs:
        shape = sizes_of(size)
        if type(name) is str and len(name) <= _MOST_NAME and shape is not None and math.prod(shape) < _MOST_COUNT:
            found[name] = shape
        else:
            raise CorruptFile(f"The shape of {str(name)[:80]!r} is no list of sizes.")
    return list(found.items())


def optim_facts(record: Mapping) -> OptimFacts:
    """Of a *_optim_states.pt."""
    inner = record.get("optimizer_state_dict")
    found = OptimFacts()
    if not isinstance(inner, Mapping):
        return found
    found.stage = _number(inner.get("zero_stage"))
    count = inner.get("partition_count")
    # Groups of experts may have fewer partitions than the others; the largest is the number of ranks.
    counts = [n for n in map(_number, _items(count) if isinstance(count, list | tuple | Group) else [count]) if n]
    found.partitions = max(counts, default=None)
    paddings = inner.get("param_alignment_paddings")
    if isinstance(paddings, list):
        found.paddings = [[n or 0 for n in map(_number, _items(group))] for group in paddings[:100_000]]
    found.key = next((k for k in ("fp32_flat_groups", "single_partition_of_fp32_groups") if inner.get(k)), "")
    return found


def _items(value: object) -> Iterator[object]:
    items = value.items if isinstance(value, Group) else value
    if isinstance(items, list | tuple):
        yield from items


def _number(value: object) -> int | None:
    """A count, also as the member of an enumeration (ZeroStageEnum(2))."""
    if isinstance(value, Call) and isinstance(value.args, tuple) and len(value.args) == 1:
        value = value.args[0]
    return value if type(value) is int and 0 <= value < _MOST_COUNT else None
