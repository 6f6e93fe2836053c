"""Tensors of a checkpoint as torch tensors, and raw tensors as torch's and back, sharing their memory.

Bytes go from the file into a fresh storage; torch.load is not involved. Tensors that share a storage in the file
share one here, so tied weights stay tied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch

from inspector.checkpoint.data import read_storage
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.layout import row_major, span_of
from inspector.checkpoint.raw_tensor import RawTensor, bare_tensor, check_dense
from inspector.checkpoint.types import Checkpoint, Encoding, StateDict, Storage, TensorInfo
from inspector.errors import CorruptFile, LimitExceeded, ReadError

_MOST_NBYTES = 1 << 40
_MOST_EXPANDED = 16
_PIECE = 8 << 20


def to_torch(checkpoint: Checkpoint, tensor: TensorInfo) -> torch.Tensor:
    """One tensor on the CPU with the file's shape, strides and dtype; requires_grad is False.

    Raises ReadError when it has no dense bytes in the file (meta, sparse, quantised: see `rebuild_tensor`), CorruptFile
    when they are cut. Conjugated and negated views come as the values that they show.
    """
    return _load(checkpoint, [tensor])[0]


def rebuild_tensor(checkpoint: Checkpoint, tensor: TensorInfo) -> torch.Tensor:
    """The same for quantised and sparse tensors too, whose parts are read and checked first.

    An export writes dense tensors only, since its proof compares row after row of bytes; here nothing is proved.
    Raises ReadError for nested tensors, whose sizes torch would believe unchecked, and for wrappers without data;
    CorruptFile when the indices of a sparse tensor point outside it or a quantiser is none.
    """
    encoding = tensor.encoding
    if encoding is None or not encoding.scheme:
        return to_torch(checkpoint, tensor)
    parts = _load(checkpoint, encoding.parts)
    try:
        if encoding.scheme == "sparse_coo":
            indices, values = parts
            known = encoding.coalesced
            return torch.sparse_coo_tensor(indices, values, tensor.shape, is_coalesced=known, check_invariants=True)
        if encoding.scheme.startswith("sparse_"):
            starts, inner, values = parts
            layout = getattr(torch, encoding.scheme)
            size = list(tensor.shape)
            return torch.sparse_compressed_tensor(starts, inner, values, size, layout=layout, check_invariants=True)
        return _quantized(checkpoint, tensor, encoding, parts)
    except (RuntimeError, ValueError, TypeError) as error:
        first = str(error).partition("\n")[0][:200]
        raise CorruptFile(f"{tensor.name} cannot be made of its parts: {first}") from error


def _quantized(
    checkpoint: Checkpoint, tensor: TensorInfo, encoding: Encoding, parts: Sequence[torch.Tensor]
) -> torch.Tensor:
    """As torch/_utils.py, _rebuild_qtensor, makes it: empty with its quantiser, then set to the storage."""
    storage = checkpoint.storages.get(tensor.storage_id or "")
    if storage is None:
        raise CorruptFile(f"{checkpoint.origin.name} lacks storage {tensor.storage_id}.")
    itemsize = DTYPES[tensor.dtype].itemsize
    if tensor.numel * itemsize > _MOST_EXPANDED * max(storage.nbytes, 1 << 20):
        raise LimitExceeded(f"{tensor.name} would take {tensor.numel * itemsize:,} bytes.")
    dtype = getattr(torch, tensor.dtype)
    if encoding.scheme == "per_tensor_affine":
        made = torch._empty_affine_quantized(
            tensor.shape, scale=encoding.scale, zero_point=encoding.zero_point, dtype=dtype
        )
    elif encoding.scheme == "per_channel_affine" and len(parts) == 2:
        made = torch._empty_per_channel_affine_quantized(
            tensor.shape, scales=parts[0], zero_points=parts[1], axis=encoding.axis, dtype=dtype
        )
    else:
        raise ReadError(f"{tensor.name} is quantised by {encoding.scheme}, which this program does not rebuild.")
    end = span_of(tensor)[1] * itemsize
    raw = _read(checkpoint, storage.id, 0, end)
    block = torch.storage.TypedStorage(wrap_storage=raw, dtype=dtype, _internal=True)  # type: ignore[no-untyped-call]
    stride = tensor.stride if tensor.stride is not None else row_major(tensor.shape)
    result: torch.Tensor = made.set_(block, tensor.offset, tensor.shape, stride)
    return result


def to_state_dict(checkpoint: Checkpoint, state: StateDict) -> dict[str, torch.Tensor]:
    """Every tensor of a state dict by its name, in the file's order. Raises as `to_torch` does."""
    tensors = _load(checkpoint, state.tensors)
    return {info.name: tensor for info, tensor in zip(state.tensors, tensors, strict=True)}


def tensor_of(raw: RawTensor) -> torch.Tensor:
    """The same memory as a torch tensor; a bare one on the device "meta"."""
    dtype: torch.dtype = getattr(torch, raw.dtype)
    if raw.bare:
        return torch.empty_strided(raw.shape, raw.stride, dtype=dtype, device="meta")
    # torch takes whole numbers of every size, and no memory that may not be written.
    held = raw.array.view(f"i{raw.array.itemsize}") if raw.array.itemsize <= 8 else raw.array
    return torch.from_numpy(held if held.flags.writeable else held.copy()).view(dtype)


def raw_of(tensor: torch.Tensor, *, shows: str = "") -> RawTensor:
    """The same memory, or none where torch's tensor has none, as a raw tensor."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.device.type == "meta":
        return bare_tensor(dtype, tuple(tensor.shape), tensor.stride(), shows=shows)
    held = tensor.detach()
    if held.itemsize > 8:
        return RawTensor(dtype, held.numpy(), shows=shows)
    whole = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[held.itemsize]
    return RawTensor(dtype, held.view(whole).numpy().view(DTYPES[dtype].raw), shows=shows)


def by_torch(compute: Callable[..., torch.Tensor], *given: RawTensor) -> RawTensor:
    """What one of torch's own functions makes of these."""
    return raw_of(compute(*map(tensor_of, given)))


def _load(checkpoint: Checkpoint, infos: Iterable[TensorInfo]) -> list[torch.Tensor]:
    wanted = list(infos)
    spans: dict[str, tuple[int, int]] = {}
    for info in wanted:
        check_dense(info)
        itemsize = DTYPES[info.dtype].itemsize
        first, end = span_of(info)
        key = info.storage_id or ""
        low, high = spans.get(key, (first * itemsize, end * itemsize))
        spans[key] = (min(low, first * itemsize), max(high, end * itemsize))
    # A saved slice of a large storage is read alone; the start is kept on 16 bytes, a multiple of every itemsize.
    blocks = {key: _read(checkpoint, key, low - low % 16, high) for key, (low, high) in spans.items()}
    made: list[torch.Tensor] = []
    for info in wanted:
        key = info.storage_id or ""
        itemsize = DTYPES[info.dtype].itemsize
        start = spans[key][0] - spans[key][0] % 16
        empty = torch.empty(0, dtype=getattr(torch, info.dtype))
        stride = info.stride if info.stride is not None else row_major(info.shape)
        made.append(_resolve(empty.set_(blocks[key], info.offset - start // itemsize, info.shape, stride), info))
    return made


def _resolve(tensor: torch.Tensor, info: TensorInfo) -> torch.Tensor:
    """A lazily conjugated or negated view as values of its own; it can no longer share what it is a view of."""
    encoding = info.encoding
    if encoding is None or not (encoding.conjugated or encoding.negated):
        return tensor
    values = tensor.conj().resolve_conj() if encoding.conjugated else tensor.clone()
    return -values if encoding.negated else values


def _read(checkpoint: Checkpoint, key: str, start: int, end: int) -> torch.UntypedStorage:
    storage = checkpoint.storages.get(key)
    if storage is None:
        raise CorruptFile(f"{checkpoint.origin.name} lacks storage {key}.")
    if end > storage.nbytes:
        raise CorruptFile(f"A tensor needs {end:,} bytes of storage {key}, which has {storage.nbytes:,}.")
    if end - start > _MOST_NBYTES:
        raise LimitExceeded(f"Storage {key} would take {end - start:,} bytes.")
    if end == start:
        return torch.empty(0, dtype=torch.uint8).untyped_storage()
    raw = _bytes(checkpoint, storage, start, end - start)
    if storage.big_endian:
        _swap(raw, checkpoint, storage)
    return torch.frombuffer(raw, dtype=torch.uint8).untyped_storage()


def _bytes(checkpoint: Checkpoint, storage: Storage, start: int, nbytes: int) -> bytearray:
    """Piece by piece into the one buffer, so that a large tensor is not in memory twice."""
    if storage.deflated_nbytes is not None or nbytes <= _PIECE:
        return bytearray(read_storage(checkpoint, storage, start, nbytes))
    read_storage(checkpoint, storage, start + nbytes, 0)  # Raises before anything is allocated that is not there.
    raw = bytearray(nbytes)
    for at in range(0, nbytes, _PIECE):
        size = min(_PIECE, nbytes - at)
        raw[at : at + size] = read_storage(checkpoint, storage, start + at, size)
    return raw


def _swap(raw: bytearray, checkpoint: Checkpoint, storage: Storage) -> None:
    """Turn big-endian elements over in place; all tensors of one storage have one element size."""
    names = {t.dtype for t in checkpoint.tensors if t.storage_id == storage.id}
    sizes = {DTYPES[n].itemsize // (2 if n.startswith(("complex", "bcomplex")) else 1) for n in names}
    if len(sizes) != 1:
        raise ReadError(f"Storage {storage.id} is big-endian and has elements of several sizes.")
    size = sizes.pop()
    if size > 1:
        numbers = np.frombuffer(raw, dtype=f"u{size}", count=len(raw) // size)
        numbers.byteswap(inplace=True)
