"""What the known globals of checkpoints mean, without calling any of them.

Each meaning takes the arguments a pickle would call its global with, checks them, and returns an inert record, or a
NotUnderstood, whereupon the call stays an inert `Call`. Sources: torch/_utils.py, torch/_tensor.py (2.15 and the
argument lists of earlier releases), numpy's and Python's own `__reduce__` formats.
"""

from __future__ import annotations

from inspector.readers.unpickle.machine.arguments import (
    device_of,
    dtype_of,
    is_empty,
    no_data,
    said,
    sizes_of,
    strided,
    with_metadata,
)
from inspector.readers.unpickle.meanings.arrays import ARRAY_MEANINGS, build_array
from inspector.readers.unpickle.meanings.containers import CONTAINER_MEANINGS
from inspector.readers.unpickle.meanings.layouts import LAYOUT_MEANINGS
from inspector.readers.unpickle.meanings.old_tensors import OLD_MEANINGS, build_tensor
from inspector.readers.unpickle.meanings.plain import PLAIN_MEANINGS, build_plain
from inspector.readers.unpickle.meanings.wrappers import WRAPPER_MEANINGS, attributes_of, fill_wrapper
from inspector.readers.unpickle.stand_ins import (
    ArrayStub,
    GlobalRef,
    Meaning,
    Named,
    NotUnderstood,
    NumpyDtype,
    TensorStub,
    text_of,
)

_MARKS = 64
__all__ = ["MEANINGS", "build", "dtype_of", "sizes_of"]


def _tensor(args: tuple[object, ...]) -> object:
    if len(args) != 4:
        return NotUnderstood(f"it has {len(args)} arguments, torch writes 4")
    return strided(*args)


def _tensor_v2(args: tuple[object, ...]) -> object:
    if not 5 <= len(args) <= 7:
        return NotUnderstood(f"it has {len(args)} arguments, torch writes 6 or 7")
    return with_metadata(strided(*args[:4], requires_grad=args[4], extra=args[5:6]), args[6] if len(args) > 6 else None)


def _tensor_v3(args: tuple[object, ...]) -> object:
    if not 7 <= len(args) <= 8:
        return NotUnderstood(f"it has {len(args)} arguments, torch writes 7 or 8")
    dtype = dtype_of(args[6])
    if dtype is None:
        return NotUnderstood(f"its type of elements is {text_of(args[6], 40)}")
    made = strided(*args[:4], dtype=dtype, requires_grad=args[4], extra=args[5:6])
    return with_metadata(made, args[7] if len(args) > 7 else None)


def _parameter(args: tuple[object, ...]) -> object:
    if not 1 <= len(args) <= 4 or not isinstance(args[0], TensorStub):
        return NotUnderstood(f"it is made of {text_of(args[:1], 60)}, not of a tensor")
    data = args[0]
    data.is_parameter = True
    if data.kind == "torch.Tensor":  # A distributed or otherwise special tensor stays what it is.
        data.kind = "torch.nn.parameter.Parameter"
    data.requires_grad = args[1] if len(args) > 1 and isinstance(args[1], bool) else True if len(args) == 1 else None
    data.extra.extend(said(args[2:]))
    return data


def _buffer(args: tuple[object, ...]) -> object:
    """torch.nn.Buffer(data, persistent): a plain tensor with a mark."""
    if not 1 <= len(args) <= 2 or not isinstance(args[0], TensorStub):
        return NotUnderstood(f"it is made of {text_of(args[:1], 60)}, not of a tensor")
    args[0].is_parameter = False
    args[0].kind = "torch.nn.parameter.Buffer"
    return args[0]


def _uninitialised(kind: str, *, is_parameter: bool) -> Meaning:
    def meaning(args: tuple[object, ...]) -> object:
        if len(args) > 1 or not all(isinstance(a, bool) for a in args):
            return NotUnderstood(f"its arguments are {text_of(args, 60)}")
        what = "parameter" if is_parameter else "buffer"
        return TensorStub(
            storage=None,
            dtype="float32",
            shape=(0,),
            kind=kind,
            requires_grad=args[0] is True if args else None,
            is_parameter=is_parameter,
            note=f"lazy {what} without a shape yet: the model was saved before its first input",
        )

    return meaning


def _meta(args: tuple[object, ...]) -> object:
    if not 3 <= len(args) <= 4:
        return NotUnderstood(f"it has {len(args)} arguments, torch writes 4")
    made = no_data(args[0], args[1], args[2], "meta tensor: no data in the file")
    if isinstance(made, TensorStub) and len(args) > 3 and isinstance(args[3], bool):
        made.requires_grad = args[3]
    return made


def _from_type(args: tuple[object, ...]) -> object:
    """_rebuild_from_type_v2(function, type, arguments, state): a tensor subclass around a known rebuild."""
    if len(args) not in (3, 4):
        return NotUnderstood(f"it has {len(args)} arguments, torch writes 4")
    function, cls, inner = args[0], args[1], args[2]
    if not isinstance(function, GlobalRef) or not isinstance(inner, tuple) or not isinstance(cls, GlobalRef):
        return NotUnderstood(f"it calls {text_of(function, 60)} for {text_of(cls, 60)}")
    # Nesting is never written by torch, and would recurse as deep as a file likes.
    if function.meaning is None or function.meaning is _from_type:
        return NotUnderstood(f"it calls {function.full[:120]}, which is no known rebuild function")
    function.use.calls += 1
    made = function.meaning(inner)
    if not isinstance(made, TensorStub):
        return NotUnderstood(made.why if isinstance(made, NotUnderstood) else f"{function.full[:120]} makes no tensor")
    state = args[3] if len(args) == 4 else None
    if cls.full != "torch.Tensor":
        made.kind = cls.full
        made.is_parameter = True if cls.name == "Parameter" else made.is_parameter
    marks = {key for key, value in (attributes_of(state) or [])[:_MARKS] if value is True and type(key) is str}
    if "_is_param" in marks:
        made.is_parameter = True
    if "_is_buffer" in marks:
        made.is_parameter, made.kind = False, "torch.nn.parameter.Buffer"
    return fill_wrapper(made, cls, state) if not is_empty(state) else made


def _device_tensor(args: tuple[object, ...]) -> object:
    """_rebuild_device_tensor_from_numpy or _from_cpu_tensor(data, dtype, device, requires_grad): XLA, MTIA, HPU."""
    if not 3 <= len(args) <= 4:
        return NotUnderstood(f"it has {len(args)} arguments, torch writes 4")
    made = args[0].tensor if isinstance(args[0], ArrayStub) else args[0]
    if not isinstance(made, TensorStub):
        return NotUnderstood(f"its data are {text_of(args[0], 60)}, no array or tensor")
    wanted = dtype_of(args[1])
    if wanted is not None and wanted != made.dtype:
        # bfloat16 went through numpy as float32: the bytes are those of the array, the load converts them.
        made.note = f"stored as {made.dtype}, loaded as {wanted}"
    elif isinstance(args[0], ArrayStub):
        made.note = ""
    made.kind = "torch.Tensor"
    made.device = device_of(args[2]) or text_of(args[2], 40)
    made.requires_grad = args[3] if len(args) > 3 and isinstance(args[3], bool) else made.requires_grad
    return made


def build(target: object, state: object) -> bool:
    """What BUILD does to the records that know how to take a state. False when the state is not theirs."""
    if isinstance(target, TensorStub):
        return build_tensor(target, state)
    if isinstance(target, ArrayStub | NumpyDtype):
        return build_array(target, state)
    return isinstance(target, Named) and build_plain(target, state)


def _subclass(rebuild: Meaning) -> Meaning:
    """fastai's rebuilds: (class, *the arguments of torch's). Source: fastai/torch_core.py."""

    def meaning(args: tuple[object, ...]) -> object:
        if not args or not isinstance(args[0], GlobalRef):
            return NotUnderstood(f"its class is {text_of(args[:1], 60)}")
        made = rebuild(args[1:])
        if isinstance(made, TensorStub):
            made.kind = args[0].full
        return made

    return meaning


MEANINGS: dict[str, Meaning] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor_v2,
    "torch._utils._rebuild_tensor_v3": _tensor_v3,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_v2": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch.nn.parameter.Parameter": _parameter,
    "torch.nn.Parameter": _parameter,
    "torch.nn.parameter.Buffer": _buffer,
    "torch.nn.Buffer": _buffer,
    "torch.nn.parameter.UninitializedParameter": _uninitialised(
        "torch.nn.parameter.UninitializedParameter", is_parameter=True
    ),
    "torch.nn.parameter.UninitializedBuffer": _uninitialised(
        "torch.nn.parameter.UninitializedBuffer", is_parameter=False
    ),
    "torch._utils._rebuild_meta_tensor_no_storage": _meta,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": _device_tensor,
    "torch._utils._rebuild_device_tensor_from_numpy": _device_tensor,
    "torch._utils._rebuild_xla_tensor": _device_tensor,
    "torch._utils._rebuild_mlc_tensor": _device_tensor,
    "torch._tensor._rebuild_from_type": _from_type,
    "torch._tensor._rebuild_from_type_v2": _from_type,
    "fastai.torch_core._fa_rebuild_tensor": _subclass(_tensor_v2),
    "fastai.torch_core._fa_rebuild_qtensor": _subclass(LAYOUT_MEANINGS["torch._utils._rebuild_qtensor"]),
    "fastai.torch_core._rebuild_from_type": _from_type,
    **LAYOUT_MEANINGS,
    **WRAPPER_MEANINGS,
    **OLD_MEANINGS,
    **CONTAINER_MEANINGS,
    **PLAIN_MEANINGS,
    **ARRAY_MEANINGS,
}
