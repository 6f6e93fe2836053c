"""Tensor subclasses that hold other tensors: DTensor, ShardedTensor, torchao's quantised weights and their like.

torch stores such a tensor as its shape alone (`_rebuild_wrapper_subclass`) with the object's attributes beside it. The
shape shown is the global one; the tensors among the attributes are listed under it and can be read.
Source: torch/_tensor.py, torch/distributed/tensor/_api.py and _dtensor_spec.py, placement_types.py,
torch/distributed/_shard/sharded_tensor/api.py (2.15, and the module names of 1.9 to 2.4).
"""

from __future__ import annotations

import math

from inspector.readers.unpickle.machine.arguments import device_of, layout_of, no_data, sizes_of
from inspector.readers.unpickle.stand_ins import (
    Call,
    GlobalRef,
    Labelled,
    Mapping,
    Meaning,
    NotUnderstood,
    TensorStub,
    text_of,
)
from inspector.units import counted, human_shape

_MOST_SHARDS = 4096


def _wrapper(args: tuple[object, ...]) -> object:
    """_rebuild_wrapper_subclass(class, dtype, size, stride, offset, layout, device, requires_grad)."""
    if len(args) != 8:
        return NotUnderstood(f"it has {len(args)} arguments, torch writes 8")
    cls = args[0].full if isinstance(args[0], GlobalRef) else text_of(args[0], 60)
    note = f"{cls}: a wrapper without data in the file"
    made = no_data(args[1], args[2], args[3], note, kind=cls, device=device_of(args[6]))
    if isinstance(made, TensorStub):
        made.layout = layout_of(args[5]) or "strided"
        made.requires_grad = args[7] if isinstance(args[7], bool) else None
    return made


def fill_wrapper(made: TensorStub, cls: GlobalRef, state: object) -> TensorStub:
    """A rebuilt tensor with the attributes of its object, as `_rebuild_from_type_v2` sets them."""
    if cls.module.startswith("torch.distributed") and cls.name == "DTensor":
        return _distributed(made, state)
    if cls.module.startswith("torch.distributed") and cls.name == "ShardedTensor":
        return _sharded(made, state)
    shown = {id(item.value) for item in made.extra if isinstance(item, Labelled)}
    pairs = attributes_of(state)
    if pairs is None:
        made.extra.append(Labelled("state", state))
        return made
    inner = 0
    for key, value in pairs:
        inner += isinstance(value, TensorStub)
        if id(value) not in shown:
            made.extra.append(Labelled(str(key)[:60] if type(key) is str else text_of(key, 60), value))
    if made.storage is None and inner and made.recipe is None and made.layout == "strided":
        made.note = f"{cls.full}: made of {counted(inner, 'tensor')} that the file holds under it"
    return made


def attributes_of(state: object) -> list[tuple[object, object]] | None:
    """Names and values of an object's state: a dict, or (dict or None, dict of slots)."""
    if isinstance(state, Mapping):
        return state.pairs
    if isinstance(state, tuple) and len(state) == 2:
        halves = [half for half in state if half is not None]
        if all(isinstance(half, Mapping) for half in halves):
            return [pair for half in halves if isinstance(half, Mapping) for pair in half.pairs]
    return None


def _fields(record: object) -> Mapping:
    """The attributes of an inert object, empty where it has none."""
    state = record.states[-1] if isinstance(record, Call) and record.states else None
    return Mapping(pairs=attributes_of(state) or [])


def _distributed(made: TensorStub, state: object) -> TensorStub:
    fields = Mapping(pairs=attributes_of(state) or [])
    local, spec = fields.get("_local_tensor"), fields.get("_spec")
    if not isinstance(local, TensorStub):
        made.extra.append(Labelled("state", state))
        made.note = "DTensor without its local shard"
        return made
    placements = _fields(spec).get("placements")
    placed = placements if isinstance(placements, tuple | list) else ()
    words = ", ".join(_placement(p) for p in placed[:8]) or "unknown placement"
    mesh = _mesh(_fields(spec).get("mesh"))
    held = f"{human_shape(local.shape)} of it" if local.shape != made.shape else "all of it"
    made.note = f"DTensor {words} over {mesh}; this file holds {held}"
    kinds = {_class(p) for p in placed}
    partial = bool(kinds - {"Shard", "Replicate", "_StridedShard"}) or not placed
    whole = local.shape == made.shape and local.dtype == made.dtype and not partial
    if whole and made.storage is None and local.recipe is None:
        # Replicated, or the only shard: the local tensor is the whole one, so its numbers can be read under its name.
        made.storage, made.stride, made.offset = local.storage, local.stride, local.offset
        made.device = local.device
    else:
        made.extra.append(Labelled("local shard", local))
    made.extra.append(Labelled("placement", spec))
    made.extra += [Labelled(text_of(k, 60), v) for k, v in fields.pairs if k not in ("_local_tensor", "_spec")]
    return made


def _class(record: object) -> str:
    return record.callee.name if isinstance(record, Call) and isinstance(record.callee, GlobalRef) else "unknown"


def _placement(record: object) -> str:
    """ "Shard(0)", "Replicate()", "Partial(sum)"."""
    fields = _fields(record)
    values = [v for _, v in fields.pairs if v is not None]
    if isinstance(record, Call) and not fields.pairs and isinstance(record.args, tuple):
        values = list(record.args)
    return f"{_class(record)[:40]}({', '.join(text_of(v, 20).strip(chr(39)) for v in values[:3])})"


def _mesh(record: object) -> str:
    """ "2x2 devices (dp, tp)"; the mesh as a tensor (to 2.8) or as a layout (since)."""
    fields = _fields(record)
    mesh, layout = fields.get("mesh"), _fields(fields.get("_layout"))
    names = fields.get("_mesh_dim_names") or fields.get("mesh_dim_names")
    axes = layout.get("axes")
    sizes: tuple[int, ...] | None = None
    if isinstance(mesh, TensorStub):
        sizes = mesh.shape
    elif isinstance(axes, tuple | list):
        each = [sizes_of(_fields(axis).get("shape")) for axis in axes[:8]]
        sizes = tuple(math.prod(s) for s in each if s is not None) if None not in each else None
    elif layout.pairs:
        sizes = sizes_of(layout.get("shape"))
    says = f"a mesh of {'x'.join(map(str, sizes))}" if sizes else "a mesh"
    listed = [n[:20] for n in names[:8] if type(n) is str] if isinstance(names, tuple | list) else []
    return f"{says} ({', '.join(listed)})" if listed else says


def _sharded(made: TensorStub, state: object) -> TensorStub:
    """ShardedTensor's state: (local shards, metadata, process group, sharding specification, flag)."""
    shards = state[0] if isinstance(state, tuple) and state else None
    if not isinstance(shards, list | tuple):
        made.extra.append(Labelled("state", state))
        made.note = "ShardedTensor without its local shards"
        return made
    held = 0
    tensors: list[tuple[TensorStub, tuple[int, ...] | None]] = []
    for shard in shards[:_MOST_SHARDS]:
        fields = _fields(shard)
        tensor, offsets = fields.get("tensor"), sizes_of(_fields(fields.get("metadata")).get("shard_offsets"))
        if not isinstance(tensor, TensorStub):
            made.extra.append(Labelled(f"shard {len(made.extra)}", shard))
            continue
        tensors.append((tensor, offsets))
        held += math.prod(tensor.shape)
        at = ", ".join(map(str, offsets)) if offsets is not None else "an unknown place"
        made.extra.append(Labelled(f"shard at ({at})", tensor))
        made.extra.append(Labelled(f"shard {len(tensors) - 1} metadata", fields.get("metadata")))
    made.extra += [
        Labelled(f"state {n}", item) for n, item in enumerate(state if isinstance(state, tuple) else ()) if n
    ]
    total = math.prod(made.shape)
    made.note = f"ShardedTensor: {counted(len(tensors), 'local shard')} with {held:,} of {total:,} elements"
    if len(tensors) == 1 and tensors[0][0].shape == made.shape and not any(tensors[0][1] or ()):
        only = tensors[0][0]
        if only.recipe is None and only.dtype == made.dtype and made.storage is None:
            made.storage, made.stride, made.offset, made.device = only.storage, only.stride, only.offset, only.device
    return made


WRAPPER_MEANINGS: dict[str, Meaning] = {"torch._utils._rebuild_wrapper_subclass": _wrapper}
