"""Trees of views on a few storages, in every container: paths, strides, bytes and sharing equal torch's own loader."""

from __future__ import annotations

import io
from collections import OrderedDict
from typing import Any

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.checkpoint.data import read_bytes
from inspector.checkpoint.torch_bridge import to_torch
from inspector.readers import open_checkpoint

NAMES = st.text("abc.", min_size=1, max_size=4)
LEAVES = st.one_of(
    st.none(), st.integers(-9, 9), NAMES, st.sets(st.integers(0, 9), max_size=3), st.frozensets(NAMES, max_size=2)
)
DTYPES = (torch.float32, torch.int64, torch.bfloat16)


@st.composite
def views(draw: st.DrawFn) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
    """(storage, offset, shape, stride) inside 60 elements."""
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    stride = tuple(draw(st.integers(0, 6)) for _ in shape)
    return draw(st.integers(0, 2)), draw(st.integers(0, 20)), shape, stride


TREES = st.recursive(
    st.one_of(LEAVES, views().map(lambda v: ("view", v))),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(NAMES, inner, max_size=4),
        st.dictionaries(NAMES, inner, max_size=4).map(OrderedDict),
        st.tuples(inner, inner, inner),
    ),
    max_leaves=16,
)


def made(plan: Any, pool: list[torch.Tensor]) -> Any:
    if isinstance(plan, tuple) and len(plan) == 2 and plan[0] == "view":
        storage, offset, shape, stride = plan[1]
        return torch.as_strided(pool[storage], shape, stride, offset)
    if isinstance(plan, dict):
        return type(plan)((key, made(value, pool)) for key, value in plan.items())
    if isinstance(plan, list | tuple):
        return type(plan)(made(value, pool) for value in plan)
    return plan


def walk(value: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        return [(path, value)]
    if isinstance(value, dict):
        return [hit for k, v in value.items() for hit in walk(v, (*path, k))]
    if isinstance(value, list | tuple):
        return [hit for i, v in enumerate(value) for hit in walk(v, (*path, str(i)))]
    return []


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=TREES, legacy=st.booleans(), protocol=st.sampled_from([1, 2, 3, 4, 5]))
def test_views_in_any_tree(plan: Any, legacy: bool, protocol: int) -> None:
    pool = [torch.arange(60).to(dtype) for dtype in DTYPES]
    buffer = io.BytesIO()
    torch.save(made(plan, pool), buffer, _use_new_zipfile_serialization=not legacy, pickle_protocol=protocol)
    expected = walk(torch.load(io.BytesIO(buffer.getvalue()), weights_only=False))
    checkpoint = open_checkpoint(buffer.getvalue())
    assert [t.path for t in checkpoint.tensors] == [path for path, _ in expected]
    owners: dict[str, int] = {}
    for info, (path, tensor) in zip(checkpoint.tensors, expected, strict=True):
        assert (info.shape, info.stride, info.offset) == (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
        assert torch.equal(to_torch(checkpoint, info), tensor), path
        flat = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor).view(-1)
        assert read_bytes(checkpoint, info) == (flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
        assert owners.setdefault(info.storage_id or "", tensor.untyped_storage().data_ptr()) == (
            tensor.untyped_storage().data_ptr()
        )
    assert len(set(owners.values())) == len(owners)
    assert not [f for f in checkpoint.findings if f.severity.rank >= 2 and f.id != "saved-slice"]
