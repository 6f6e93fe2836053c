"""From the tensors of one module to the layer that they are, where names and shapes leave no second reading."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from inspector.architectures.structure.types import CONVOLUTIONS, Layer, LayerKind
from inspector.checkpoint.bookkeeping import BOOKKEEPING
from inspector.checkpoint.types import ModuleNode, Shape, TensorInfo
from inspector.units import human_shape

# Names under which tables are looked up: Embedding and Linear without bias have the same one tensor.
_LOOKED_UP = re.compile(r"(?:^|[._])(?:\w*embed(?:ding|dings|der|s)?|wte|wpe|emb|token_emb\w*|lookup|vocab)\d*$", re.I)
_RECURRENT = re.compile(r"(weight|bias)_(ih|hh|hr)(?:_l(\d+)(_reverse)?)?")
_BY_GATES = {4: LayerKind.LSTM, 3: LayerKind.GRU, 1: LayerKind.RNN}
# What older and newer weight and spectral norms put in place of a weight.
_REPARAMETRISED = ("weight_v", "weight_orig", "parametrizations.weight.original1", "parametrizations.weight.original")
_WIDEST_KERNEL = 127

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
    found = tuple(layer for layer in _all(tree) if layer.path not in again)
    return _with_neighbours(found) if ordered else found


def _all(node: ModuleNode) -> Iterator[Layer]:
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
    yield from _layers(node.path, tensors)
    for child in children:
        yield from _all(child)


def _layers(path: str, tensors: Tensors) -> Iterator[Layer]:
    left = {name: shape for name, shape in tensors.items() if name not in BOOKKEEPING}
    for read in (_recurrent, _attention, _norm, _weighted):
        found = read(path, left)
        if found is not None:
            layer, used = found
            yield layer
            left = {name: shape for name, shape in left.items() if name not in used}
    for name, shape in left.items():
        own = f"{path}.{name}".lstrip(".")
        yield Layer(path=own, kind=LayerKind.TENSOR, evidence=_said({name: shape}), more=human_shape(shape))


def _said(tensors: Tensors) -> str:
    return ", ".join(f"{name} {human_shape(shape)}" for name, shape in tensors.items())


def _recurrent(path: str, tensors: Tensors) -> tuple[Layer, set[str]] | None:
    used = {name for name in tensors if _RECURRENT.fullmatch(name)}
    # A cell has no number behind its names.
    end = "" if "weight_ih" in tensors else "_l0"
    first, hidden = tensors.get(f"weight_ih{end}"), tensors.get(f"weight_hh{end}")
    if first is None or hidden is None or len(first) != 2 or len(hidden) != 2 or first[0] != hidden[0] or not hidden[1]:
        return None
    projected = tensors.get("weight_hr_l0")
    width = hidden[0] if projected is None else 4 * projected[1] if len(projected) == 2 else 0
    size = projected[1] if projected is not None and len(projected) == 2 else hidden[1]
    kind = _BY_GATES.get(width // size) if size and width % size == 0 else None
    if kind is None:
        return None
    depth = 1 + max(int(m[3] or 0) for name in used if (m := _RECURRENT.fullmatch(name)))
    both = any(name.endswith("_reverse") for name in used)
    more = [f"{depth} layers"] if depth > 1 else [] if end else ["one step at a time"]
    more += ["both directions"] if both else []
    layer = Layer(
        path=path,
        kind=kind,
        inputs=first[1],
        outputs=hidden[1] * (2 if both else 1),
        evidence=_said({f"weight_ih{end}": first, f"weight_hh{end}": hidden}),
        more=", ".join(more),
    )
    return layer, used


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
    if running is not None and len(running) == 1 and tensors.get("running_var") == running:
        used = {name for name in (scale, shift, "running_mean", "running_var") if name in tensors}
        kind, width = LayerKind.BATCH_NORM, running[0]
    elif weight is not None and len(weight) == 1 and bias in (None, weight):
        used = {scale} | ({shift} if bias is not None else set())
        kind, width = (LayerKind.NORM if bias is not None else LayerKind.SCALE), weight[0]
    else:
        return None
    layer = Layer(
        path=path, kind=kind, inputs=width, outputs=width, evidence=_said({n: tensors[n] for n in sorted(used)})
    )
    return layer, used


def _weighted(path: str, tensors: Tensors) -> tuple[Layer, set[str]] | None:
    name = next((name for name in ("weight", *_REPARAMETRISED) if len(tensors.get(name, ())) >= 2), None)
    if name is None:
        return None
    weight, bias = tensors[name], tensors.get("bias")
    used = {n for n in tensors if n.startswith(("weight", "parametrizations.weight"))} | ({"bias"} & set(tensors))
    evidence = _said({n: tensors[n] for n in (name, "bias") if n in tensors})
    if len(weight) == 2:
        return _matrix(path, weight, bias, evidence), used
    if len(weight) > 5 or max(weight[2:]) > _WIDEST_KERNEL or not all(weight):
        return None
    out, seen, *kernel = weight
    layer = Layer(path=path, kind=LayerKind.EITHER_CONVOLUTION, kernel=tuple(kernel), evidence=evidence)
    if len(weight) == 3 and kernel[0] == seen > 1 and bias == (out,):
        # Two inputs of one width each, or as wide a kernel as there are channels.
        return replace(layer, kind=LayerKind.BILINEAR, inputs=None, outputs=out, kernel=()), used
    if bias == (out,) and out != seen:
        layer = replace(layer, kind=LayerKind.CONVOLUTION, inputs=seen, outputs=out)
    elif bias == (seen,) and out != seen:
        layer = replace(layer, kind=LayerKind.TRANSPOSED, inputs=out, outputs=seen)
    elif out == seen:
        # As wide as deep: both readings take and give the same. Upsampling by two wants an even kernel.
        either = any(size % 2 == 0 for size in kernel)
        kind = LayerKind.EITHER_CONVOLUTION if either else LayerKind.CONVOLUTION
        layer = replace(layer, kind=kind, inputs=seen, outputs=out)
    else:
        layer = replace(layer, inputs=seen, outputs=out, more="by the places of its sizes")
    return layer, used


def _matrix(path: str, weight: Shape, bias: Shape | None, evidence: str) -> Layer:
    rows, columns = weight
    if bias == (rows,):
        return Layer(path=path, kind=LayerKind.LINEAR, inputs=columns, outputs=rows, evidence=evidence)
    if bias == (columns,):
        return Layer(
            path=path, kind=LayerKind.LINEAR, inputs=rows, outputs=columns, evidence=evidence, more="stored transposed"
        )
    if bias is None and _LOOKED_UP.search(path):
        kind, evidence = LayerKind.EMBEDDING, f"{evidence}, and its name"
        return Layer(path=path, kind=kind, inputs=rows, outputs=columns, evidence=evidence)
    return Layer(path=path, kind=LayerKind.MATRIX, inputs=columns, outputs=rows, evidence=evidence)


def _with_neighbours(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """Which way a convolution without a bias runs, by the widths on both sides of it; a filter that sees one channel of
    as many as there are is depthwise.

    A norm behind a layer may be the next one's own, so it alone proves nothing: transposed is said where both sides
    say so, forwards where one does and none says otherwise.
    """
    made = list(layers)
    for place, layer in enumerate(made):
        if layer.kind is not LayerKind.EITHER_CONVOLUTION or layer.inputs == layer.outputs:
            continue
        before, behind = (_width(layers, made, place, step) for step in (-1, 1))
        forwards = (before == layer.inputs) + (behind == layer.outputs)
        backwards = (before == layer.outputs) + (behind == layer.inputs)
        # Equal on both sides: a residual's branch. What runs backwards upsamples, mostly by an even kernel.
        is_branch = forwards == backwards == 1 and all(size % 2 for size in layer.kernel)
        if (forwards and not backwards) or is_branch:
            said = f"{before:,} before it" if before == layer.inputs else f"{behind:,} behind it"
            made[place] = replace(layer, kind=LayerKind.CONVOLUTION, evidence=f"{layer.evidence}; {said}", more="")
        elif backwards == 2 and not forwards and max(layer.kernel) > 1:
            made[place] = replace(
                layer,
                kind=LayerKind.TRANSPOSED,
                inputs=layer.outputs,
                outputs=layer.inputs,
                evidence=f"{layer.evidence}; {before:,} before it, {behind:,} behind it",
                more="",
            )
    for place, layer in enumerate(made):
        if layer.kind in CONVOLUTIONS and layer.inputs == 1 and (layer.outputs or 0) > 1 and max(layer.kernel) > 1:
            before = _width(layers, made, place, -1)
            if before == layer.outputs:
                evidence = f"{layer.evidence}: a filter sees one channel, and there are {before:,} before it"
                # Of how many channels there are no filters tell: two filters may share one.
                made[place] = replace(layer, kind=LayerKind.DEPTHWISE, inputs=None, evidence=evidence, more="")
    return tuple(made)


def _width(layers: tuple[Layer, ...], made: list[Layer], place: int, step: int) -> int | None:
    """What the neighbour before puts out, or the norm behind has."""
    at = place + step
    if not 0 <= at < len(layers):
        return None
    if step < 0:
        return made[at].outputs if made[at].kind is not LayerKind.TENSOR else None
    return layers[at].outputs if layers[at].kind in (LayerKind.BATCH_NORM, LayerKind.NORM) else None
