"""Tensors as the years before 0.4 pickled them, lists of TorchScript, and handles of other processes.

torch 0.1 to 0.3 made an empty `torch.FloatTensor` and set its state with BUILD; `Variable` and `Parameter` came from
their data and a state. Source: torch/tensor.py and torch/autograd/variable.py of v0.1.12 and v0.3.1;
torch/jit/_pickle.py; torch/multiprocessing/reductions.py.
"""

from __future__ import annotations

from inspector.checkpoint.dtypes import STORAGE_DTYPES, find_dtype
from inspector.readers.unpickle.machine.arguments import dtype_of, no_data, plausible, said, sizes_of, strided
from inspector.readers.unpickle.stand_ins import (
    NOT_UNDERSTOOD,
    WRAPPERS,
    GlobalRef,
    Labelled,
    Mapping,
    Meaning,
    Named,
    NotUnderstood,
    StorageRef,
    TensorStub,
    text_of,
)

_SHARED = "torch.multiprocessing storage"
_ELSEWHERE = "shared memory of the process that saved it: data not in the file"
_EMPTY = "empty tensor"


def _empty_tensor(dtype: str, kind: str) -> Meaning:
    def meaning(args: tuple[object, ...]) -> object:
        if args:
            return NotUnderstood(f"its arguments are {text_of(args, 60)}; old pickles make it empty and fill it")
        return TensorStub(storage=None, dtype=dtype, shape=(0,), kind=kind, note=_EMPTY)

    return meaning


def build_tensor(target: TensorStub, state: object) -> bool:
    """BUILD on a tensor: (storage, offset, size, stride); (requires_grad, volatile, hooks); the same with its data in
    front and the gradient behind; or attributes. A state that fits none of them is noted on the tensor."""
    if isinstance(state, Mapping):
        target.extra += [Labelled(text_of(key, 60).strip("'"), value) for key, value in state.pairs]
        return True
    if not isinstance(state, tuple):
        return False
    if len(state) == 4 and (target.note == _EMPTY or isinstance(state[0], StorageRef)):
        _fill(target, state)
        return True
    if len(state) == 5 and isinstance(state[0], TensorStub):
        _take(target, state[0])
        state = (state[3], state[4], state[2])
    if len(state) == 3 and isinstance(state[0], bool):
        target.requires_grad = state[0]
        target.extra += said(state[2:])
        return True
    if len(state) == 2 and all(half is None or isinstance(half, Mapping) for half in state):
        target.extra += said(state)
        return True
    return False


def _fill(target: TensorStub, state: tuple[object, ...]) -> None:
    made = strided(*state)
    wanted = target.dtype if target.note == _EMPTY else None
    if isinstance(made, TensorStub) and wanted not in (None, made.dtype):
        made = NotUnderstood(f"a {target.kind} is set to a storage of {made.dtype}")
    if isinstance(made, TensorStub):
        _take(target, made)
        return
    target.why = made.why
    target.storage, target.note = None, f"not made: {made.why}"
    target.extra.append(Labelled("state", state))


def _take(target: TensorStub, data: TensorStub) -> None:
    """The data of another tensor, under the class and flags of this one."""
    target.storage, target.dtype, target.shape = data.storage, data.dtype, data.shape
    target.stride, target.offset, target.device = data.stride, data.offset, data.device
    target.note, target.recipe, target.layout = data.note, data.recipe, data.layout


def _variable(args: tuple[object, ...]) -> object:
    if not args or not isinstance(args[0], TensorStub):
        # Variable() is made empty where the state brings the data along.
        return NOT_UNDERSTOOD if args else TensorStub(storage=None, dtype="float32", shape=(0,), note=_EMPTY)
    args[0].kind = "torch.autograd.variable.Variable"
    return args[0]


def _new_object(args: tuple[object, ...]) -> object:
    """copyreg.__newobj__(class, *arguments), which protocols 0 and 1 wrote for Variables."""
    cls = args[0] if args else None
    if isinstance(cls, GlobalRef) and cls.meaning is not None and cls.full in _MADE_OF_DATA:
        return cls.meaning(args[1:])
    return NOT_UNDERSTOOD


def _reconstructed(args: tuple[object, ...]) -> object:
    """copyreg._reconstructor(class, object, None): how protocols 0 and 1 make an empty object."""
    cls = args[0] if len(args) == 3 and args[2] is None else None
    if isinstance(cls, GlobalRef) and cls.meaning is not None and cls.full in _MADE_EMPTY:
        cls.use.calls += 1
        return cls.meaning(())
    return NOT_UNDERSTOOD


_MADE_EMPTY = frozenset(
    {
        *("uuid.UUID", "torch.autograd.variable.Variable"),
        *WRAPPERS,
    }
)
_MADE_OF_DATA = frozenset(
    {
        "torch.autograd.variable.Variable",
        "torch.nn.parameter.Parameter",
        "torch.nn.Parameter",
        "torch.nn.parameter.Buffer",
    }
)


def _backend(args: tuple[object, ...]) -> object:
    return Named("torch.nn backend", "THNN") if not args else NOT_UNDERSTOOD


# -- TorchScript ---------------------------------------------------------------------------------------------------


def _typed_list(args: tuple[object, ...]) -> object:
    return args[0] if len(args) == 1 and isinstance(args[0], list) else NOT_UNDERSTOOD


def _type_tag(args: tuple[object, ...]) -> object:
    """restore_type_tag(value, type): the value itself."""
    return args[0] if len(args) == 2 and type(args[1]) is str else NOT_UNDERSTOOD


def _tensor_id(args: tuple[object, ...]) -> object:
    if len(args) == 1 and type(args[0]) is int:
        return Named("tensor number", str(args[0])[:40])
    return args[0] if len(args) == 1 and isinstance(args[0], TensorStub) else NOT_UNDERSTOOD


# -- other processes -----------------------------------------------------------------------------------------------


def _shared_storage(args: tuple[object, ...]) -> object:
    """rebuild_storage_fd, rebuild_storage_filename: a handle, of which only the name is shown."""
    return Named(_SHARED, f"handle {text_of(args[1:], 80)}")


def _typed_storage(args: tuple[object, ...]) -> object:
    dtype = dtype_of(args[1]) if len(args) == 2 else None
    return Named(_SHARED, dtype) if dtype and isinstance(args[0], Named) else NOT_UNDERSTOOD


def _shared_tensor(args: tuple[object, ...]) -> object:
    """rebuild_tensor(class, storage, (offset, size, stride, requires_grad))."""
    metadata = args[2] if len(args) == 3 else None
    if not isinstance(metadata, tuple) or len(metadata) < 3:
        return NotUnderstood(f"its size and strides are {text_of(metadata, 60)}")
    storage = args[1]
    if isinstance(storage, StorageRef):
        return strided(storage, *metadata[:3])
    shape = sizes_of(metadata[1])
    found = find_dtype(storage.text) if isinstance(storage, Named) and storage.kind == _SHARED else None
    if found is None:
        return NotUnderstood("its numbers are in another process, and the type of its elements is not told")
    if shape is None or not plausible(shape):
        return NotUnderstood(f"its size is {text_of(metadata[1], 60)}")
    return TensorStub(storage=None, dtype=found.name, shape=shape, note=_ELSEWHERE)


def _cuda_tensor(args: tuple[object, ...]) -> object:
    """rebuild_cuda_tensor(class, size, stride, offset, storage class, dtype, device, handle ...)."""
    if len(args) < 8:
        return NotUnderstood(f"it has {len(args)} arguments, torch writes 15")
    device = f"cuda:{args[6]}" if type(args[6]) is int and 0 <= args[6] < 4096 else "cuda"
    return no_data(args[5], args[1], args[2], _ELSEWHERE, device=device)


def _meta_tensor(args: tuple[object, ...]) -> object:
    """rebuild_meta_tensor(class, size, stride, offset, dtype, nbytes, requires_grad)."""
    if len(args) != 7:
        return NotUnderstood(f"it has {len(args)} arguments, torch writes 7")
    return no_data(args[4], args[1], args[2], "meta tensor: no data in the file")


_CLASSES = {name.removesuffix("Storage") + "Tensor": dtype for name, dtype in STORAGE_DTYPES.items()}

OLD_MEANINGS: dict[str, Meaning] = {
    **{f"torch.{name}": _empty_tensor(dtype, f"torch.{name}") for name, dtype in _CLASSES.items()},
    **{f"torch.cuda.{name}": _empty_tensor(dtype, f"torch.cuda.{name}") for name, dtype in _CLASSES.items()},
    "torch.autograd.variable.Variable": _variable,
    "copyreg.__newobj__": _new_object,
    "copyreg._reconstructor": _reconstructed,
    "torch.nn.backends.thnn._get_thnn_function_backend": _backend,
    "torch.jit._pickle.build_intlist": _typed_list,
    "torch.jit._pickle.build_tensorlist": _typed_list,
    "torch.jit._pickle.build_doublelist": _typed_list,
    "torch.jit._pickle.build_boollist": _typed_list,
    "torch.jit._pickle.build_tensor_from_id": _tensor_id,
    "torch.jit._pickle.restore_type_tag": _type_tag,
    "torch.multiprocessing.reductions.rebuild_tensor": _shared_tensor,
    "torch.multiprocessing.reductions.rebuild_cuda_tensor": _cuda_tensor,
    "torch.multiprocessing.reductions.rebuild_meta_tensor": _meta_tensor,
    "torch.multiprocessing.reductions.rebuild_storage_fd": _shared_storage,
    "torch.multiprocessing.reductions.rebuild_storage_filename": _shared_storage,
    "torch.multiprocessing.reductions.rebuild_storage_empty": _shared_storage,
    "torch.multiprocessing.reductions.rebuild_typed_storage": _typed_storage,
}
