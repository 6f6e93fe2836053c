"""A new head: which tensors it has, in which shapes, and whether it can be told at all that this is a head.

Of a known architecture, its own word is taken: which tensors follow the number of classes, and how (a box predictor has
four numbers per class). Of any other, a module is a head where it is one layer and nothing after it takes its outputs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from inspector.architectures.targets import target_of
from inspector.architectures.types import Candidate, Target
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.layout import row_major
from inspector.checkpoint.raw_tensor import read_raw
from inspector.checkpoint.types import Shape, TensorInfo
from inspector.errors import ExportError, ReadError, UsageError
from inspector.keys.operations import fill_default, fill_zeros
from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.surgery.report import Initial, NewHead
from inspector.surgery.rules import HEAD
from inspector.surgery.tensors import Item, Table, leading_wrapper, share_memory, table_of
from inspector.units import human_shape

_MOST_CLASSES = 1 << 20
_LAYER = {"weight", "bias"}
_DIMENSIONS = range(2, 6)  # Linear, and Conv of one to three dimensions


@dataclass(slots=True)
class Heads:
    """What the new heads of one surgery are to the architecture, where it is known.

    candidate: what the tensors were when the first head was asked for. asked: head tensor, as the architecture names
    it, -> the number of classes asked for.
    """

    candidate: Candidate | None
    around: str = ""
    target: Target | None = None
    asked: dict[str, int] = field(default_factory=dict)


def heads_of(table: Table) -> Heads:
    """What is known before the first of them is done: of what is there now, else of the file before anything was left
    out of it, whose names these still are."""
    names = [item.name for item in table.kept]
    around = leading_wrapper(names)
    candidates = [table.recognised]
    if all(item.name == item.source for item in table.kept):
        candidates.append(table_of(table.checkpoint, table.state).recognised)
    for recognised in candidates:
        candidate = recognised()
        if candidate is not None and candidate.exact and candidate.wrapper == around:
            return Heads(candidate=candidate, around=around, target=target_of(candidate.spec))
    return Heads(candidate=None)


def new_head(table: Table, step: NewHead, heads: Heads) -> None:
    """Leave out the head's tensors and put new ones in their places. Raises UsageError, ExportError."""
    if not 1 <= step.classes <= _MOST_CLASSES:
        raise UsageError(f"{step.classes:,} is no number of classes.", hint=f"Give 1 to {_MOST_CLASSES:,}.")
    module = table.find(step.module)
    if heads.target is not None:
        shapes = _known_shapes(module, step, heads, {item.name for item in table.kept})
    else:
        shapes = _own_shapes(table, module, step)
    layers: dict[str, Shape] = {}
    for name, shape in shapes.items():
        _check_leaf(name, shape)
        if name.endswith(".weight"):
            layers[name.rpartition(".")[0]] = shape
    items = {item.name: item for item in table.kept}
    for name in shapes:
        _check_alone(table, items[name], shapes)
    made = [_made(items[name], shape, layers, step) for name, shape in shapes.items()]
    for name in shapes:
        items[name].gone, items[name].rule = f"Another head stands in its place: {step.says}.", HEAD.id
    after = {item.name: item for item in made}
    table.items = [new for old in table.items for new in ([old, after[old.name]] if _replaced(old, after) else [old])]


def _replaced(old: Item, after: dict[str, Item]) -> bool:
    return old.source is not None and old.rule == HEAD.id and old.name in after


def _known_shapes(module: str, step: NewHead, heads: Heads, there: Collection[str]) -> dict[str, Shape]:
    """Name -> new shape, by the architecture's own word. there: the names that are left."""
    assert heads.target is not None and heads.candidate is not None
    inside = [n for n in heads.target.heads if (name := heads.around + n) in there and name.startswith(f"{module}.")]
    label = heads.candidate.spec.label
    if not inside:
        modules = list(dict.fromkeys(heads.around + n.rpartition(".")[0] for n in heads.target.heads))
        known = f"Its number of classes decides {', '.join(modules)}." if modules else "No head of it is known."
        raise ExportError(f"Nothing was written: {module} is no head of {label}.", hint=known)
    goal = target_of(replace(heads.candidate.spec, num_classes=step.classes))
    shapes = {tensor.name: tensor.shape for tensor in goal.tensors}
    heads.asked.update(dict.fromkeys(inside, step.classes))
    return {heads.around + name: shapes[name] or () for name in inside}


def check_whole(table: Table, heads: Heads) -> None:
    """Raise ExportError where one number of classes decides several heads of the architecture, and only some got it."""
    if heads.target is None or heads.candidate is None or not heads.asked:
        return
    counts = sorted(set(heads.asked.values()))
    label = heads.candidate.spec.label
    if len(counts) > 1:
        several = " and ".join(f"{count:,}" for count in counts)
        raise ExportError(
            f"Nothing was written: {label} has one number of classes, and its heads were given {several}.",
            hint="Give all of them the same.",
        )
    goal = target_of(replace(heads.candidate.spec, num_classes=counts[0]))
    wanted = {tensor.name: tensor.shape for tensor in goal.tensors}
    had = {tensor.name: tensor.shape for tensor in heads.target.tensors}
    there = {item.source for item in table.kept}
    left = [
        name
        for name in heads.target.heads
        if name not in heads.asked and wanted[name] != had[name] and heads.around + name in there
    ]
    if left:
        modules = list(dict.fromkeys(heads.around + name.rpartition(".")[0] for name in left))
        raise ExportError(
            f"Nothing was written: the number of classes of {label} also decides {', '.join(modules)}, which would "
            "stay at another one.",
            hint=f"Give {modules[0]} a new head for {counts[0]:,} as well, or drop it.",
        )


def _own_shapes(table: Table, module: str, step: NewHead) -> dict[str, Shape]:
    """Name -> new shape of a layer of a network that nobody knows. Raises ExportError where it is no head for sure."""
    below = table.below(module)
    leaves = {item.name[len(module) + 1 :]: item.info for item in below}
    if any("." in leaf for leaf in leaves):
        inner = list(dict.fromkeys(item.name.rpartition(".")[0] for item in below))[:4]
        raise _cannot_tell(f"{module} is no single layer, it holds {', '.join(inner)}", "Name the layer itself.")
    if not leaves.keys() <= _LAYER or "weight" not in leaves:
        listed = ", ".join(list(leaves)[:5])
        raise _cannot_tell(f"{module} holds {listed}, and of a weight and a bias alone it is told which axis is which")
    weight, bias = leaves["weight"], leaves.get("bias")
    rows = weight.shape[0] if weight.shape else 0
    if len(weight.shape) not in _DIMENSIONS:
        raise _cannot_tell(f"{module}.weight is {human_shape(weight.shape)}, which is no linear layer or convolution")
    if bias is not None and bias.shape != (rows,):
        says = f"{module}.weight is {human_shape(weight.shape)}, its bias {human_shape(bias.shape)}"
        raise _cannot_tell(f"{says}: no axis of outputs comes first, as in a transposed convolution")
    kernel = any(size > 1 for size in weight.shape[2:])
    if kernel and (bias is None or weight.shape[0] == weight.shape[1]):
        raise _cannot_tell(f"{module}.weight, {human_shape(weight.shape)}, could be a transposed convolution's")
    _check_last(table, module, weight.shape, sure=bias is not None)
    own = {"weight": (step.classes, *weight.shape[1:]), "bias": (step.classes,)}
    return {f"{module}.{leaf}": own[leaf] for leaf in leaves}


def _check_last(table: Table, module: str, weight: Shape, *, sure: bool) -> None:
    """Raise ExportError where a layer takes as many numbers as this one puts out: one that stands later, or where the
    file's order is not the model's, any. sure: a bias shows that it is a layer; without, it may be an embedding's
    table."""
    rows = weight[0]
    modules: dict[str, list[TensorInfo]] = {}
    for item in table.kept:
        modules.setdefault(item.name.rpartition(".")[0], []).append(item.info)
    order = list(modules)
    at = order.index(module)
    others = order[at + 1 :] if table.state.ordered else [name for name in order if name != module]
    if not sure and (others or not table.state.ordered):
        raise _cannot_tell(
            f"{module} has no bias and is not the last module of the file, so it may be a table of embeddings"
        )
    # A single number, such as a PReLU's, takes whatever comes and hands it on.
    following = next((name for name in others if any(t.numel > 1 for t in modules[name])), "")
    for other in others:
        for tensor in _taking(modules[other]):
            if _takes(tensor.shape, rows) or (other == following and _may_take(tensor.shape, weight)):
                name = f"{other}.{tensor.name.rpartition('.')[2]}"
                raise ExportError(
                    f"Nothing was written: {module} is no head for sure: it has {rows:,} outputs, and {name}, "
                    f"{human_shape(tensor.shape)}, {'takes' if _takes(tensor.shape, rows) else 'may take'} them.",
                    hint="Drop what comes after it, or name the last layer.",
                )


def _taking(tensors: Sequence[TensorInfo]) -> list[TensorInfo]:
    """Those of a module that tell how many numbers come in: matrices and kernels, or a norm's vectors."""
    return [tensor for tensor in tensors if len(tensor.shape) > 1] or list(tensors)


def _takes(shape: Shape, rows: int) -> bool:
    return shape == (rows,) if len(shape) < 2 else shape[1] == rows


def _may_take(shape: Shape, weight: Shape) -> bool:
    """Whether the next layer takes the outputs in groups (depthwise), or those of a convolution flattened."""
    rows = weight[0]
    if len(shape) > 2 and shape[1]:
        groups, rest = divmod(rows, shape[1])
        return not rest and groups > 0 and shape[0] % groups == 0
    return len(shape) == 2 and len(weight) > 2 and rows > 1 and shape[1] > rows and shape[1] % rows == 0


def _check_leaf(name: str, shape: Shape) -> None:
    leaf = name.rpartition(".")[2]
    fits = len(shape) in _DIMENSIONS if leaf == "weight" else leaf == "bias" and len(shape) == 1
    if not fits:
        raise _cannot_tell(f"{name}, {human_shape(shape)}, is neither a layer's weight nor its bias")


def _check_alone(table: Table, item: Item, shapes: dict[str, Shape]) -> None:
    """Raise ExportError for a tensor that the network has in another place too, or whose numbers are no plain ones."""
    kind = DTYPES.get(item.info.dtype)
    if kind is None or not kind.floating or item.info.dtype.startswith("complex") or item.info.layout != "strided":
        raise _cannot_tell(f"{item.name} is {item.info.dtype}, not plain floating-point numbers")
    if item.source is None:
        return
    for other in table.kept:
        if other is item or other.source is None or other.name in shapes:
            continue
        tied = share_memory(item.info, other.info)
        if tied or (_alike(item, other) and _same_numbers(table, item.info, other.info)):
            what = "are one memory" if tied else "hold the same numbers"
            raise ExportError(
                f"Nothing was written: {item.name} and {other.name} {what}: the head is used in another place too.",
                hint="A new head there would change the other as well, or part them.",
            )


def _alike(one: Item, other: Item) -> bool:
    a, b = one.info, other.info
    return len(a.shape) > 1 and a.numel > 1 and (a.shape, a.dtype) == (b.shape, b.dtype)


def _same_numbers(table: Table, one: TensorInfo, other: TensorInfo) -> bool:
    """Whether two tensors of one shape are copies, and not of one constant each."""
    try:
        first, second = read_raw(table.checkpoint, one).raw_bytes, read_raw(table.checkpoint, other).raw_bytes
    except ReadError:
        return False
    return np.array_equal(first, second) and bool((first != first[0]).any())


def _made(old: Item, shape: Shape, layers: dict[str, Shape], step: NewHead) -> Item:
    module, _, leaf = old.name.rpartition(".")
    dtype = old.info.dtype
    weight = layers.get(module)
    if weight is None:
        raise _cannot_tell(f"{old.name} has no weight beside it that follows the number of classes")
    zeros = step.how is Initial.ZEROS
    fill = Step(
        kind=StepKind.FILL,
        source=None,
        target=None,
        rule=HEAD.id,
        reason=f"New: {human_shape(shape)} {dtype}, {_begins(step)}.",
        cost=Cost.LOSSY,
        evidence=Evidence.CHOSEN,
        shape=shape,
        value=fill_zeros.value_of(dtype) if zeros else fill_default.value_of(step.seed, dtype, weight),
    )
    info = replace(
        old.info,
        path=(),
        shape=shape,
        stride=row_major(shape),
        offset=0,
        storage_id=None,
        nbytes=_numel(shape) * DTYPES[dtype].itemsize,
        encoding=None,
        note="",
    )
    return Item(name=f"{module}.{leaf}", info=info, source=None, fill=fill)


def _begins(step: NewHead) -> str:
    return "zeros" if step.how is Initial.ZEROS else f"torch's default with seed {step.seed}"


def _numel(shape: Sequence[int]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def _cannot_tell(says: str, hint: str = "Only one linear layer or convolution can be told a head.") -> ExportError:
    return ExportError(f"Nothing was written: {says}.", hint=hint)
