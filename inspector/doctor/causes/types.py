"""Element types and devices: operands that torch does not put together."""

from __future__ import annotations

import re

import torch
from torch import Tensor, nn

from inspector.doctor.causes.entry import Cause
from inspector.doctor.causes.repairs import BATCH, REPAIRS, input_name, lacks_batch, named_code
from inspector.doctor.causes.statements import written_argument
from inspector.doctor.own_layers import named_plain_tensors
from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.scene import Scene

_MIXED = re.compile(
    r"(?:[Ii]nput type|dtype|scalar type|data type|[Tt]ensor for argument|same type|mat1 and mat2 must have|"
    r"not implemented for|expected .{0,40} but (?:got|found)|Expected .{0,60}type|"
    r"ComplexFloat|computation in the same)",
)
_LACKS = re.compile(r"not implemented for '(\w+)'")
_INDICES = re.compile(
    r"'?indices'?.{0,80}(?:scalar types|Long|Int)|must be long, byte|only integer tensors|used as indices"
)


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _as_named(scene: Scene, tensor: Tensor, line: str) -> str:
    """A line with what the failing one calls this tensor; what has no name there is written as it stands."""
    name = scene.variable_of(tensor) or written_argument(scene) or "x"
    return line.format(name) if name.isidentifier() else line.partition(" = ")[2].format(f"({name})")


def find_index_type(scene: Scene) -> Diagnosis | None:
    """An embedding, or an indexing, that was given numbers which are no integers."""
    indices: Tensor | None = None
    if isinstance(scene.layer, nn.Embedding | nn.EmbeddingBag) and isinstance(scene.given, Tensor):
        indices = scene.given
    elif scene.operator == "embedding" and len(scene.operands) > 1:
        indices = scene.operands[1]
    elif _INDICES.search(scene.text):
        indices = next((t for t in scene.operands[1:] if t.is_floating_point()), None)
    if indices is None or not (indices.is_floating_point() or indices.is_complex()):
        return None
    return Diagnosis(
        cause="index-type",
        says=f"{scene.path} looks up rows by whole numbers and received {_short(indices.dtype)}: "
        f"{scene.told(indices)}.",
        fix="Make them integers.",
        code=_as_named(scene, indices, "{0} = {0}.long()"),
    )


def find_type(scene: Scene) -> Diagnosis | None:
    """Operands of different element types, or one that the operator does not know."""
    lacking = _LACKS.search(scene.text)
    if not isinstance(scene.error, RuntimeError | TypeError | NotImplementedError) or not _MIXED.search(scene.text):
        return None
    operands = scene.operands or [t for t in (scene.given,) if isinstance(t, Tensor)]
    own = [p for p in scene.layer._parameters.values() if p is not None]
    pool = [t for t in (*operands, *own) if not (t.dtype is torch.int64 and t.dim() == 0)]
    types = {t.dtype for t in pool}
    if len(types) < 2 and not lacking:
        return None
    weights = next((t for t in pool if isinstance(t, nn.Parameter)), None)
    other = next((t for t in pool if weights is not None and t.dtype != weights.dtype), None)
    if weights is None or other is None:
        if len(types) > 1:
            first = pool[0]
            second = next(t for t in pool if t.dtype != first.dtype)
            of_model = _of_model(scene, first, second)
            if of_model is not None:
                return of_model
            return Diagnosis(
                cause="type",
                says=f"Two tensors of different types meet: {scene.told(first)} is {_short(first.dtype)}, "
                f"{scene.told(second)} is {_short(second.dtype)}.",
                fix="Bring both to one type.",
                code=f"{scene.variable_of(second) or 'b'} = {scene.variable_of(second) or 'b'}.to("
                f"{scene.variable_of(first) or 'a'}.dtype)",
            )
        if lacking and pool:
            return Diagnosis(
                cause="type",
                says=f"torch has no {scene.operator or 'such operator'} for {_short(pool[0].dtype)} on this device: "
                f"{scene.told(pool[0])}.",
                fix="Compute in float32.",
                code=_as_named(scene, pool[0], "{0} = {0}.float()"),
            )
        return None
    target = weights.dtype
    entered = scene.before_all_weights or scene.maker_of(other) == "the input"
    at_input = entered and any(one.dtype == other.dtype for one in scene.inputs)
    name = input_name(scene) if at_input else (scene.variable_of(other) or written_argument(scene) or "x")
    start = f"{name} = " if name.isidentifier() else ""
    code = f"{start}{name}.float() / 255" if other.dtype is torch.uint8 else f"{start}{name}.to(torch.{_short(target)})"
    if target in (torch.float16, torch.bfloat16) and other.dtype is torch.float32:
        code += "  # or model.float()"
    fix = "Convert it before."
    if other.dtype is torch.uint8:
        fix = "Pictures become numbers between 0 and 1 first, as torchvision.transforms.ToTensor() does."
    elif other.is_complex():
        fix = "These weights are real: take the size or both parts."
        code = f"{start}{name}.abs()  # or torch.view_as_real({name})"
    elif other.dtype is torch.float64:
        fix = "Arrays from NumPy are float64."
    tried: tuple[str, ...] = ()
    if at_input:
        tried, extra = _tried(scene, target)
        code, fix = (code + extra, "Convert it, and put its dimensions right as well.") if extra else (code, fix)
    source = "" if at_input else _brought_by(scene, other.dtype)
    if source:
        fix, code = f"{source} is {_short(other.dtype)}, and what meets it becomes so.", f"{source} = {source}.float()"
        code = code if target is torch.float32 else ""
    kinds = {p.dtype for p in scene.model.parameters() if p.is_floating_point()}
    if not source and not at_input and len(kinds) > 1 and other.dtype in kinds:
        named = " and ".join(sorted(map(_short, kinds)))
        fix, code = f"The model's own weights are of {named}: bring all to one.", "model = model.float()"
    return Diagnosis(
        cause="type",
        says=f"{scene.path} has weights of {_short(target)} and received {_short(other.dtype)}: {scene.told(other)}.",
        fix=fix,
        code=code,
        tried=tried,
    )


def _of_model(scene: Scene, *pair: Tensor) -> Diagnosis | None:
    """float64 beside float32, where it is a buffer or parameter of the model's; what it is a view of is named, too."""
    if {t.dtype for t in pair} != {torch.float64, torch.float32}:
        return None
    double, other = sorted(pair, key=lambda t: t.dtype is not torch.float64)
    name = scene.recorder.model_tensor(double)
    if not name:
        return None
    path, _, own = name.rpartition(".")
    module = scene.model.get_submodule(path)
    is_buffer = own in module._buffers
    as_float = module._buffers[own].float() if is_buffer else None  # type: ignore[union-attr]
    ran = is_buffer and scene.trials.runs_set(module, own, as_float, (scene.args, scene.kwargs))
    return Diagnosis(
        cause="type",
        says=f"The {'buffer' if is_buffer else 'parameter'} {name} is float64 and meets float32: {scene.told(other)}.",
        fix="Arrays from NumPy are float64: make it float32 where it is set.",
        code=f'self.register_buffer("{own}", {own}.float())' if is_buffer else f"{own} = {own}.float()",
        tried=(f"{name} in float32: runs through",) if ran else (),
    )


def _brought_by(scene: Scene, dtype: torch.dtype) -> str:
    """The only buffer, parameter or plain attribute of that type; "" where there is none, or more than one."""
    model = scene.model
    every = (*model.named_parameters(), *model.named_buffers(), *named_plain_tensors(model))
    named = [name for name, tensor in every if tensor.dtype == dtype]
    return named[0] if len(named) == 1 and dtype.is_floating_point else ""


def _tried(scene: Scene, target: torch.dtype) -> tuple[tuple[str, ...], str]:
    """What came of the conversion alone, else with one more change of the input; the line of that change."""

    def change(x: Tensor) -> Tensor | None:
        return None if x.dtype == target else (x.abs() if x.is_complex() else x).to(target)

    if scene.runs_with(change, numbers=True):
        return (f"the input in {_short(target)}: runs through",), ""
    for repair in REPAIRS:

        def both(x: Tensor, repair=repair) -> Tensor | None:  # type: ignore[no-untyped-def]
            made = repair.change(x)
            return None if made is None else (made.abs() if made.is_complex() else made).to(target)

        if (repair is not BATCH or lacks_batch(scene) is not None) and scene.runs_with(both):
            code = named_code(scene, repair)
            return (f"that and {code.partition('  #')[0]}: runs through",), "\n" + code
    return (), ""


def find_meta(scene: Scene) -> Diagnosis | None:
    """Weights without numbers, and an input with some."""
    bare = [name for name, t in (*scene.model.named_parameters(), *scene.model.named_buffers()) if t.is_meta]
    if not bare or all(t.is_meta for t in scene.inputs):
        return None
    return Diagnosis(
        cause="weights-on-meta",
        says=f"{len(bare)} of the model's tensors are on meta, that is without values: {', '.join(bare[:3])}"
        + (" ..." if len(bare) > 3 else "")
        + ".",
        fix="Make memory for them and load the weights.",
        code="model.to_empty(device='cpu')\nmodel.load_state_dict(state_dict)  # or load_state_dict(..., assign=True)",
    )


def find_device(scene: Scene) -> Diagnosis | None:
    """Operands on several devices."""
    operands = [*scene.operands, *(p for p in scene.layer._parameters.values() if p is not None)]
    devices = {str(t.device) for t in operands if not (t.dim() == 0 and t.device.type == "cpu")}
    if len(devices) < 2 or ("device" not in scene.text and "meta" not in scene.text):
        return None
    first = operands[0]
    other = next((t for t in operands if str(t.device) != str(first.device)), first)
    plain = {id(tensor): path for path, tensor in reversed([*named_plain_tensors(scene.model)])}
    path = next((plain[id(t)] for t in operands if id(t) in plain), "")
    fix, code = "Bring both to one device.", "x = x.to(next(model.parameters()).device)"
    if path:
        fix = f"{path} is a plain attribute, which model.to(device) leaves behind: make it a buffer."
        code = f'self.register_buffer("{path.rpartition(".")[2]}", tensor)'
    return Diagnosis(
        cause="device",
        says=f"Two devices meet in {scene.path}: {scene.told(first)} is on {first.device}, {scene.told(other)} on "
        f"{other.device}.",
        fix=fix,
        code=code,
    )


def find_quantised(scene: Scene) -> Diagnosis | None:
    """Quantised layers that were given plain numbers, or the other way round."""
    if "quantized" not in scene.text.lower() or "Could not run" not in scene.text:
        return None
    return Diagnosis(
        cause="quantised",
        says=f"Quantised and plain tensors meet in {scene.path}: {scene.first_line}",
        fix="A quantised network begins with QuantStub and ends with DeQuantStub; quantize_dynamic needs neither.",
        sureness=Sureness.LIKELY,
    )


CAUSES = (
    Cause(kinds=("weights-on-meta",), find=find_meta),
    Cause(kinds=("device",), find=find_device),
    Cause(kinds=("quantised",), find=find_quantised),
    Cause(kinds=("index-type",), find=find_index_type),
    Cause(kinds=("type",), find=find_type),
)
