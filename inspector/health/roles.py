"""What a tensor is for, from its name, shape, type and siblings: most false alarms are mistaken roles.

A role is claimed where something shows it; `OTHER` is an honest answer, and checks leave it alone. Names are those of
torch, torchvision, timm, transformers, diffusers, detectron2, PEFT, GGUF, Keras and Flax (`role_names.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from inspector.checkpoint.adapter_names import is_adapter_tensor, is_beside_adapter
from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.types import Shape, TensorInfo
from inspector.health import role_names as words


class Role(StrEnum):
    """What a tensor is for."""

    CONV = "convolution"
    DEPTHWISE = "depthwise convolution"
    TRANSPOSED = "transposed convolution"
    LINEAR = "linear"
    EMBEDDING = "embedding"
    POSITION = "position"
    TOKEN = "learned token"
    RECURRENT = "recurrent"
    NORM_SCALE = "norm scale"
    NORM_SHIFT = "norm shift"
    RUNNING_MEAN = "running mean"
    RUNNING_VAR = "running variance"
    LAYER_SCALE = "layer scale"
    BIAS = "bias"
    LORA_A = "LoRA A"
    LORA_B = "LoRA B"
    MASK = "mask"
    QUANTISED = "quantised payload"
    SCALE = "scale"
    BUFFER = "buffer"
    COUNTER = "counter"
    MOMENT = "optimizer moment"
    OTHER = "other"

    @property
    def is_weight(self) -> bool:
        """Whether it multiplies what comes in: a matrix or kernels."""
        return self in _WEIGHTS


#: A layer's own weights, not an adapter's.
LAYERS = (Role.CONV, Role.DEPTHWISE, Role.TRANSPOSED, Role.LINEAR, Role.RECURRENT)
_WEIGHTS = frozenset({*LAYERS, Role.LORA_A, Role.LORA_B})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """One tensor among its siblings.

    last: what is behind the name's last point. module: the segment before it, lower case. beside: the tensors of the
    same module by their last names. before: the first size of what the module before it holds, 0 for the first.
    after: the width of the batch norm that follows next under the same parent, 0 without one. single: how many kernels
    of the file read one channel only. pattern: the name with 0 for its numbers, of which no word knows one (`NUMBER`).
    """

    tensor: TensorInfo
    last: str
    module: str
    beside: Mapping[str, TensorInfo]
    before: int
    after: int
    single: int
    pattern: str

    @property
    def shape(self) -> Shape:
        return self.tensor.shape

    @property
    def ndim(self) -> int:
        return len(self.tensor.shape)

    @property
    def lowered(self) -> str:
        return self.tensor.name.lower()

    def has(self, *lasts: str) -> bool:
        """Whether one of these lies in the same module."""
        return any(last in self.beside for last in lasts)


def roles_of(tensors: Sequence[TensorInfo]) -> Mapping[tuple[str, ...], Role]:
    """The role of every tensor of one state dict, by its path. Only names, shapes and types are looked at."""
    modules: defaultdict[str, dict[str, TensorInfo]] = defaultdict(dict)
    hidden: list[tuple[str, TensorInfo]] = []
    for tensor in tensors:
        module, _, last = tensor.name.rpartition(".")
        inside = modules[module]
        if last in inside:
            hidden.append((module, inside[last]))
        inside[last] = tensor
    single = sum(len(t.shape) >= 3 and t.shape[1] == 1 and t.name.endswith("weight") for t in tensors)
    places = _places(modules)
    # Thousands of modules are of a few kinds: what is asked of a name is the same for every number in it.
    kinds: dict[tuple[object, ...], tuple[Role, ...]] = {}
    found: dict[tuple[str, ...], Role] = {}
    for module, tensor in hidden:
        found[tensor.path] = _role(_scene(tensor, modules[module], places[module], single))
    for module, inside in modules.items():
        place = places[module]
        kind = (place, *((last, *_asked(tensor)) for last, tensor in inside.items()))
        roles = kinds.get(kind)
        if roles is None:
            roles = tuple(_role(_scene(tensor, inside, place, single)) for tensor in inside.values())
            kinds[kind] = roles
        for tensor, role in zip(inside.values(), roles, strict=True):
            found[tensor.path] = role
    return found


# What a module's name says with 0 for each number, `before` and `after` of a `_Scene`.
_Place = tuple[str, int, int]


def _places(modules: Mapping[str, Mapping[str, TensorInfo]]) -> Mapping[str, _Place]:
    widths = [_width(beside) for beside in modules.values()]
    norms = [s.shape[0] if (s := b.get("running_var")) and s.shape else 0 for b in modules.values()]
    parts = [module.rpartition(".") for module in modules]
    heads = {head: words.NUMBER.sub("0", head) for head in {parent + dot for parent, dot, _ in parts}}
    found: dict[str, _Place] = {}
    for i, (module, (parent, dot, last)) in enumerate(zip(modules, parts, strict=True)):
        kin = i + 1 < len(parts) and parts[i + 1][0] == parent
        before = next((width for width in widths[max(0, i - 3) : i][::-1] if width), 0)
        pattern = heads[parent + dot] + ("0" if last.isdecimal() else last)
        found[module] = pattern, before, norms[i + 1] if kin else 0
    return found


def _asked(tensor: TensorInfo) -> tuple[object, ...]:
    """All that is asked of a tensor besides its name."""
    coded = tensor.encoding is not None and bool(tensor.encoding.scheme)
    return tensor.shape, tensor.dtype, tensor.is_parameter, tensor.layout, coded


def _scene(tensor: TensorInfo, beside: Mapping[str, TensorInfo], place: _Place, single: int) -> _Scene:
    module, _, last = tensor.name.rpartition(".")
    _, before, after = place
    return _Scene(
        tensor=tensor,
        last=last,
        module=module.rpartition(".")[2].lower(),
        beside=beside,
        before=before,
        after=after,
        single=single,
        pattern=words.NUMBER.sub("0", tensor.name),
    )


def _width(beside: Mapping[str, TensorInfo]) -> int:
    """What a module puts out, as the first size of its weight tells."""
    weight = beside.get("weight") or beside.get("running_var") or beside.get("bias")
    return weight.shape[0] if weight is not None and weight.shape else 0


def _role(scene: _Scene) -> Role:
    for read in (_payload, _integer, _kept, _adapter, _beside_weights, _table, _bias, _scale, _weight):
        found = read(scene)
        if found is not None:
            return found
    return Role.BUFFER if scene.tensor.is_parameter is False else Role.OTHER


def _payload(scene: _Scene) -> Role | None:
    """Codes that stand for numbers: blocks of GGUF, GPTQ's, AWQ's and bitsandbytes' packed integers."""
    tensor = scene.tensor
    dtype = find_dtype(tensor.dtype)
    coded = tensor.encoding is not None and tensor.encoding.scheme and not tensor.layout.startswith("sparse")
    if coded or dtype is None or (not dtype.native and not dtype.floating):
        return Role.QUANTISED
    if tensor.dtype.endswith("_x2") or scene.last in words.PAYLOADS or "quant_state" in scene.last:
        return Role.QUANTISED
    small = dtype.bits <= 8 or tensor.dtype in ("int32", "uint32")
    if small and scene.ndim >= 2 and scene.last == "weight":
        scaled = any(name.rpartition(".")[2] in words.SCALES for name in scene.beside)
        if scaled or (tensor.dtype in ("int8", "uint8")) or dtype.floating:
            return Role.QUANTISED
    return None


def _integer(scene: _Scene) -> Role | None:
    dtype = find_dtype(scene.tensor.dtype)
    if dtype is not None and dtype.floating:
        return None
    if scene.last in words.COUNTER_NAMES or scene.tensor.numel == 1:
        return Role.COUNTER
    if scene.tensor.dtype == "bool" or _is_mask(scene):
        return Role.MASK
    return Role.BUFFER


def _kept(scene: _Scene) -> Role | None:
    """What is kept beside the parameters: statistics, counters, moments, masks, tables that nobody trains."""
    last = scene.last
    if last in words.MOMENTS or scene.tensor.name.partition(".")[0] in words.MOMENTS:
        return Role.MOMENT
    if last in words.RUNNING_MEANS or (last == "mean" and scene.has("var")):
        return Role.RUNNING_MEAN
    if last in words.RUNNING_VARS or (last == "var" and scene.has("mean")):
        return Role.RUNNING_VAR
    if last in words.COUNTER_NAMES and scene.tensor.numel == 1:
        return Role.COUNTER
    if _is_mask(scene):
        return Role.MASK
    if last.lower() in words.BUFFERS or _is_buffer(scene.pattern):
        return Role.BUFFER
    return None


@lru_cache(maxsize=4096)
def _is_buffer(pattern: str) -> bool:
    return words.BUFFER.search(pattern.lower()) is not None


@lru_cache(maxsize=4096)
def _is_adapter(pattern: str) -> bool:
    return is_adapter_tensor(pattern)


def _is_mask(scene: _Scene) -> bool:
    if words.MASK.fullmatch(scene.last.lower()):
        return True
    # GPT-2's causal mask is its attention's "bias": (1, 1, n, n).
    shape = scene.shape
    square = scene.ndim == 4 and shape[:2] == (1, 1) and shape[2] == shape[3] and shape[2] > 1
    return square and scene.last == "bias"


def _adapter(scene: _Scene) -> Role | None:
    name = scene.tensor.name
    if _is_adapter(scene.pattern):
        if "magnitude_vector" in name or scene.last == "bias":
            return Role.SCALE if scene.last != "bias" else Role.BIAS
        return Role.LORA_B if words.ADAPTER_SECOND.search(name) else Role.LORA_A
    if scene.tensor.numel and is_beside_adapter(name) and scene.last != "diff_b":
        return Role.SCALE
    return None


def _beside_weights(scene: _Scene) -> Role | None:
    """What re-parametrisations and quantisation put beside a weight."""
    last = scene.last
    if last in words.SCALES or (last in ("biases", "zero", "zeros") and scene.has("scales", "scale", "W_q")):
        return Role.SCALE
    if last in ("weight_g", "original0") or (last == "scale" and scene.has("zero_point", "W_q")):
        return Role.SCALE
    # Spectral norm keeps two vectors; weight norm's "weight_v" is the weight itself.
    if last in ("weight_u", "_u", "_v") or (last == "weight_v" and scene.ndim == 1):
        return Role.BUFFER
    return None


def _table(scene: _Scene) -> Role | None:
    """Tables of rows that are looked up: positions, tokens, words."""
    last = scene.last.lower()
    if scene.ndim == 0:
        return None
    if last in words.TOKENS or words.TOKEN.fullmatch(last):
        return Role.TOKEN
    if words.POSITION.fullmatch(last) and not last.endswith(("proj_weight", "proj_bias")):
        return Role.POSITION
    if last in ("weight", "embedding", "embeddings") and scene.ndim == 2 and not scene.has("bias"):
        if words.POSITION.fullmatch(scene.module):
            return Role.POSITION
        if words.TOKEN.fullmatch(scene.module) or words.EMBEDDING.fullmatch(scene.module) or last != "weight":
            return Role.EMBEDDING
    if scene.ndim == 2 and words.EMBEDDING.fullmatch(last):
        return Role.EMBEDDING
    return None


def _bias(scene: _Scene) -> Role | None:
    last = scene.last.lower()
    if last in ("beta", "offset") and scene.has("gamma", "scale"):
        return Role.NORM_SHIFT
    if last == "layer_norm_bias":
        return Role.NORM_SHIFT
    if last == "b" and scene.has("w", "W", "g"):
        return Role.BIAS if scene.has("w", "W") else Role.NORM_SHIFT
    if not words.BIAS.fullmatch(last):
        return None
    if last == "bias" and _is_norm(scene):
        return Role.NORM_SHIFT
    return Role.BIAS


def _is_norm(scene: _Scene) -> bool:
    """Whether the module is a norm: its own statistics, a name that says so, or a weight shaped as its bias."""
    if scene.has(*words.RUNNING_VARS):
        return True
    weight, bias = scene.beside.get("weight"), scene.beside.get("bias")
    if weight is None:
        weight = scene.beside.get("scale") or scene.beside.get("gamma")
    if weight is not None and bias is not None and weight.shape == bias.shape:
        return weight.numel > 1 and not words.ACTIVATION.search(scene.module)
    flat = weight is None or weight.numel == max(weight.shape, default=1)
    return flat and words.NORM.search(scene.module) is not None


def _scale(scene: _Scene) -> Role | None:
    last = scene.last.lower()
    if words.LAYER_SCALE.fullmatch(last) or (last in ("gamma", "scale") and words.LAYER_SCALE.fullmatch(scene.module)):
        return Role.LAYER_SCALE
    vector = scene.ndim >= 1 and scene.tensor.numel == max(scene.shape, default=1)
    if last == "gamma":
        norm = scene.has("beta") or words.NORM.search(scene.module)
        return Role.NORM_SCALE if norm else Role.LAYER_SCALE if vector else None
    if last == "layer_norm_weight" or (last == "g" and vector):
        return Role.NORM_SCALE
    if last in ("weight", "scale", "w") and _is_norm(scene):
        return Role.NORM_SCALE
    if last in words.FACTORS:
        return Role.SCALE
    return None


def _weight(scene: _Scene) -> Role | None:
    last, shape, ndim = scene.last, scene.shape, scene.ndim
    if ndim < 2 or 0 in shape:
        return None
    if words.RECURRENT.fullmatch(last) or (last == "kernel" and scene.has("recurrent_kernel")):
        return Role.RECURRENT
    if last == "depthwise_kernel":
        return Role.DEPTHWISE
    # Experts lie one behind the other in a third dimension.
    stacked = ndim == 3 and (words.EXPERTS.search(scene.lowered) or not words.WEIGHT.fullmatch(last))
    if ndim == 2 or stacked:
        return Role.LINEAR if words.MATRIX.fullmatch(last.lower()) or words.WEIGHT.fullmatch(last) else None
    if ndim > 5 or not words.WEIGHT.fullmatch(last):
        return None
    return Role.CONV if last == "kernel" else _convolution(scene)


def _convolution(scene: _Scene) -> Role:
    """Kernels in torch's order: (out, in / groups, *kernel), transposed (in, out / groups, *kernel)."""
    out, within = scene.shape[:2]
    bias = scene.beside.get("bias")
    width = bias.shape[0] if bias is not None and bias.shape else 0
    if words.UPWARDS.search(scene.module) or (width and width != out and width % within == 0):
        return Role.TRANSPOSED
    # A norm of its second size behind it, and one of its first size, or nothing, before it.
    if not width and scene.after != out and scene.after == within and scene.before in (0, out):
        return Role.TRANSPOSED
    if within == 1 and out > 1:
        # The first layer for one-channel pictures and sound has one input too.
        # One channel before it is no more than it reads: an ordinary convolution, of one group.
        fed = scene.before > 1 and (out % scene.before == 0 or scene.before == 2 * out or scene.single > 2)
        if words.DEPTHWISE.search(scene.module) or fed:
            return Role.DEPTHWISE
    return Role.CONV
