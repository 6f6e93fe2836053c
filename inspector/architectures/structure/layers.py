"""From the tensors of one module to the layer that they are, where names and shapes leave no second reading."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from inspector.architectures.structure.directions import (
    with_first,
    with_neighbours,
    with_open_groups,
    with_open_squares,
)
from inspector.architectures.structure.directions_of_lists import with_lists
from inspector.architectures.structure.fourier import with_bases
from inspector.architectures.structure.names_of_directions import is_called_transposed, with_named
from inspector.architectures.structure.noisy import as_plain, is_part
from inspector.architectures.structure.recurrent import recurrent_layer, with_raw
from inspector.architectures.structure.tables import with_open_matrices, with_tables
from inspector.architectures.structure.types import BY_PLACES, Layer, LayerKind
from inspector.checkpoint.bookkeeping import BOOKKEEPING
from inspector.checkpoint.types import ModuleNode, Shape, TensorInfo
from inspector.units import human_shape

# What older and newer weight and spectral norms put in place of a weight.
_REPARAMETRISED = (
    *("weight_v", "weight_orig", "weight_bar", "weight_raw"),
    *("parametrizations.weight.original1", "parametrizations.weight.original"),
)
_NORM_KINDS = {
    "weight_v": "weight norm",
    "parametrizations.weight.original1": "weight norm",
    "weight_orig": "spectral norm",
    "weight_bar": "spectral norm",
    "weight_raw": "kept as weight_raw",
}
_WIDEST_KERNEL = 127
# Of a kernel's depth, where the weight may as well be a modulated convolution's of so many inputs.
_DEEPEST_KERNEL = 7

_ACTIVATION = re.compile(r"relu|act(?:ivation)?(?:$|[_\d])|(?:^|_)act", re.I)
_NORM_NAME = re.compile(r"norm|(?:^|[_\d])ln|rms|scale", re.I)
_GAINS = frozenset({"scale", "g", "gain", "gamma"})

_NUMBER = re.compile(r"[0-9]+")
_CONVOLVES = re.compile(r"conv|stft|sinc", re.I)

Tensors = Mapping[str, Shape]


def aliases(tensors: Sequence[TensorInfo]) -> frozenset[str]:
    """Modules of two tensors or more that are all another module's: the same one, listed a second time. One tensor that
    two modules share may be tied."""
    first: dict[tuple[object, ...], str] = {}
    others: defaultdict[str, set[str]] = defaultdict(set)
    count: Counter[str] = Counter()
    for tensor in tensors:
        parent = tensor.name.rpartition(".")[0]
        count[parent] += 1
        key = (tensor.storage_id, tensor.offset, tensor.shape, tensor.stride)
        if tensor.storage_id is not None and tensor.nbytes:
            others[parent].add(first.setdefault(key, parent))
        else:
            others[parent].add(parent)
    return frozenset(
        parent for parent, owners in others.items() if count[parent] > 1 and len(owners) == 1 and parent not in owners
    )


def layers_of(tree: ModuleNode, again: Collection[str] = (), *, ordered: bool) -> tuple[Layer, ...]:
    """All layers in the tree's order; then, where that is the order in which they were made, what only their neighbours
    tell. again: modules that are left out, as `aliases` finds them."""
    found = tuple(layer for layer in _all(tree, {}) if layer.path not in again)
    found = with_bases(_with_slopes(found))
    found = with_tables(found, ordered=ordered)
    found = with_named(found, ordered=ordered)
    found = with_open_squares(with_first(with_neighbours(found)) if ordered else found)
    found = with_lists(found)
    return with_open_matrices(with_open_groups(found, ordered=ordered))


def _with_slopes(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """A single number alone in its module is a PReLU's where others of the file are by their names."""
    some = any(layer.kind is LayerKind.PRELU and layer.outputs == 1 for layer in layers)
    return tuple(
        replace(layer, kind=LayerKind.PRELU, evidence=f"{layer.evidence}, as the PReLUs of the file have")
        if some and layer.kind is LayerKind.SLOPE and layer.outputs == 1
        else layer
        for layer in layers
    )


# By what is asked of a module besides the numbers in its name: the layers of the first such, with that one's path.
_Known = dict[tuple[object, ...], tuple[str, tuple[Layer, ...]]]


def _all(node: ModuleNode, known: _Known) -> Iterator[Layer]:
    node = with_raw(node) if node.tensors else node
    tensors = {t.name[len(node.path) :].lstrip("."): t.shape for t in node.tensors}
    children = node.children
    # Parametrisations are modules of their own, though the layer is their parent.
    parametrised = next((c for c in children if c.name == "parametrizations"), None)
    if parametrised is not None:
        children = tuple(c for c in children if c is not parametrised)
        tensors |= {
            f"parametrizations.{part.name}.{t.name.rpartition('.')[2]}": t.shape
            for part in parametrised.children
            for t in part.tensors
        }
    if "in_proj_weight" in tensors:
        # Its output projection is a module, and no layer of its own.
        children = tuple(c for c in children if c.name != "out_proj")
    if tensors:
        below = frozenset(t.shape[0] for child in children for t in child.tensors if len(t.shape) == 2)
        # Thousands of modules are of a few kinds.
        kind = (_NUMBER.sub("0", node.path), below, *tensors.items())
        if kind in known:
            path, layers = known[kind]
            yield from (replace(layer, path=node.path + layer.path[len(path) :]) for layer in layers)
        else:
            known[kind] = node.path, tuple(_layers(node.path, tensors, below))
            yield from known[kind][1]
    for child in children:
        yield from _all(child, known)


def _layers(path: str, tensors: Tensors, below: Collection[int]) -> Iterator[Layer]:
    """below: what matrices of the modules in this one put out."""
    left = {name: shape for name, shape in tensors.items() if name not in BOOKKEEPING}
    for read in (recurrent_layer, _attention, _norm, partial(_modulated, below=below), _weighted, _noisy):
        found = read(path, left)
        if found is not None:
            layer, used = found
            yield layer
            left = {name: shape for name, shape in left.items() if name not in used}
    for name, shape in left.items():
        own = f"{path}.{name}".lstrip(".")
        yield Layer(path=own, kind=LayerKind.TENSOR, evidence=_said({name: shape}), more=human_shape(shape))


def _said(tensors: Tensors) -> str:
    return _written(tuple(tensors.items()))


# Blocks that repeat say the same.
@lru_cache(maxsize=4096)
def _written(tensors: tuple[tuple[str, Shape], ...]) -> str:
    return ", ".join(f"{name} {human_shape(shape)}" for name, shape in tensors)


def _attention(path: str, tensors: Tensors) -> tuple[Layer, set[str]] | None:
    joint = tensors.get("in_proj_weight")
    if joint is None or len(joint) != 2 or joint[0] != 3 * joint[1]:
        return None
    layer = Layer(
        path=path,
        kind=LayerKind.ATTENTION,
        inputs=joint[1],
        outputs=joint[1],
        evidence=_said({"in_proj_weight": joint}),
    )
    return layer, {"in_proj_weight", "in_proj_bias"}


def _norm(path: str, tensors: Tensors) -> tuple[Layer, set[str]] | None:
    # gamma and beta: as TensorFlow and older BERTs call them.
    scale, shift = ("weight", "bias") if "weight" in tensors or "gamma" not in tensors else ("gamma", "beta")
    weight, bias = tensors.get(scale), tensors.get(shift)
    running = tensors.get("running_mean")
    spread = next((name for name in ("running_var", "running_std") if name in tensors), "")
    if running is not None and len(running) == 1 and tensors.get(spread) == running:
        names = {scale, shift, "running_mean", spread} | ({"gamma", "beta"} if spread != "running_var" else set())
        used = {name for name in names if name in tensors and math.prod(tensors[name]) == running[0]}
        kind, width = LayerKind.BATCH_NORM, running[0]
    elif weight is not None and len(weight) == 1 and bias in (None, weight):
        used = {scale} | ({shift} if bias is not None else set())
        kind, width = (LayerKind.NORM if bias is not None else LayerKind.SCALE), weight[0]
        if kind is LayerKind.SCALE and scale == "weight":
            kind = _scale_kind(path)
    else:
        return _scales(path, tensors)
    layer = Layer(
        path=path, kind=kind, inputs=width, outputs=width, evidence=_said({n: tensors[n] for n in sorted(used)})
    )
    return layer, used


def _scale_kind(path: str) -> LayerKind:
    """Of a row called "weight" alone in its module: a PReLU keeps its slopes so, and a norm without a bias."""
    last = path.rpartition(".")[2]
    # adn.A: MONAI's activation, dropout and norm.
    if _ACTIVATION.search(last) or path.endswith("adn.A"):
        return LayerKind.PRELU
    return LayerKind.SCALE if _NORM_NAME.search(last) else LayerKind.SLOPE


def _scales(path: str, tensors: Tensors) -> tuple[Layer, set[str]] | None:
    """What somebody's own norm keeps: gamma and beta of (1, C, 1), a gain alone in its module."""
    if tensors.keys() == {"gamma", "beta"} and tensors["gamma"] == tensors["beta"]:
        kind, shape = LayerKind.NORM, tensors["gamma"]
    elif len(tensors) == 1 and (name := next(iter(tensors))) in _GAINS:
        kind, shape = LayerKind.SCALE, tensors[name]
    else:
        return None
    sizes = [size for size in shape if size != 1] or list(shape[:1])
    if len(sizes) != 1 or not sizes[0] or not path:
        return None
    return Layer(path=path, kind=kind, inputs=sizes[0], outputs=sizes[0], evidence=_said(tensors)), set(tensors)


def _modulated(path: str, tensors: Tensors, below: Collection[int]) -> tuple[Layer, set[str]] | None:
    """(1, out, in, k, k): one filter bank that is scaled for each picture of a batch, as StyleGAN2 keeps it. A matrix
    in a module below puts out a factor for each of its inputs."""
    weight = tensors.get("weight", ())
    if len(weight) != 5 or weight[0] != 1 or weight[3] != weight[4] or weight[2] not in below or not all(weight):
        return None
    layer = Layer(
        path=path,
        kind=LayerKind.MODULATED,
        inputs=weight[2],
        outputs=weight[1],
        kernel=weight[3:],
        evidence=f"{_said({'weight': weight})}, and a factor for each of {weight[2]:,} from the module in it",
    )
    return layer, {"weight"}


def _weighted(path: str, tensors: Tensors) -> tuple[Layer, set[str]] | None:
    name = next((name for name in ("weight", *_REPARAMETRISED) if len(tensors.get(name, ())) >= 2), None)
    if name is None:
        return None
    weight, bias = tensors[name], tensors.get("bias")
    used = {n for n in tensors if n.startswith(("weight", "parametrizations.weight"))} | ({"bias"} & set(tensors))
    evidence = _said({n: tensors[n] for n in (name, "bias") if n in tensors})
    if len(weight) == 2:
        return replace(_matrix(path, weight, bias, evidence), biased=bias is not None), used
    if len(weight) > 5 or not all(weight):
        return None
    if max(weight[2:]) > _WIDEST_KERNEL and not _may_be_wide(path, weight, bias):
        return None
    if len(weight) == 5 and weight[0] == 1 and bias is None and weight[2] > _DEEPEST_KERNEL:
        return None
    out, seen, *kernel = weight
    layer = Layer(
        path=path,
        kind=LayerKind.EITHER_CONVOLUTION,
        kernel=tuple(kernel),
        evidence=evidence,
        more="pruned" if "weight_mask" in tensors else _NORM_KINDS.get(name, ""),
        biased=bias is not None,
    )
    if len(weight) == 3 and kernel[0] == seen > 1 and bias == (out,):
        # Two inputs of one width each, or as wide a kernel as there are channels.
        return replace(layer, kind=LayerKind.BILINEAR, inputs=None, outputs=out, kernel=()), used
    if bias == (out,) and out != seen:
        layer = replace(layer, kind=LayerKind.CONVOLUTION, inputs=seen, outputs=out)
    elif bias == (seen,) and out != seen:
        layer = replace(layer, kind=LayerKind.TRANSPOSED, inputs=out, outputs=seen)
    elif out == seen:
        # As wide as deep: both readings take and give the same, and of a single place they are one.
        either = any(size > 1 for size in kernel)
        kind = LayerKind.EITHER_CONVOLUTION if either else LayerKind.CONVOLUTION
        layer = replace(layer, kind=kind, inputs=seen, outputs=out)
    else:
        layer = replace(layer, inputs=seen, outputs=out, more=BY_PLACES)
    return layer, used


def _may_be_wide(path: str, weight: Shape, bias: Shape | None) -> bool:
    """Whether a kernel as long as a window of sound or as a whole axis is one: filters over one channel, a bias for
    each filter of a picture's, or a name that says so. Somebody's own matrices, one for each of several, are none."""
    out, seen, *kernel = weight
    biased = bias in ((out,), (seen,)) and (len(kernel) > 1 or seen == 1)
    single = seen == 1 and out > 1
    return biased or single or _CONVOLVES.search(path) is not None or is_called_transposed(path, kernel)


def _noisy(path: str, tensors: Tensors) -> tuple[Layer, set[str]] | None:
    """A layer whose weights are kept as a mean and a spread."""
    found = as_plain(tensors)
    made = _weighted(path, found[0]) if found is not None else None
    if found is None or made is None:
        return None
    _, names, word = found
    used = {name for name in tensors if is_part(name)}
    layer = made[0]
    more = ", ".join(part for part in (word, layer.more) if part)
    evidence = _said({name: tensors[name] for name in tensors if is_part(name) and name not in names.values()})
    centres = _said({name: tensors[name] for name in names.values()})
    return replace(layer, more=more, evidence=f"{centres}; {evidence}"), used


def _matrix(path: str, weight: Shape, bias: Shape | None, evidence: str) -> Layer:
    rows, columns = weight
    if bias == (rows,):
        return Layer(path=path, kind=LayerKind.LINEAR, inputs=columns, outputs=rows, evidence=evidence)
    if bias == (columns,):
        return Layer(
            path=path, kind=LayerKind.LINEAR, inputs=rows, outputs=columns, evidence=evidence, more="stored transposed"
        )
    return Layer(path=path, kind=LayerKind.MATRIX, inputs=columns, outputs=rows, evidence=evidence)
