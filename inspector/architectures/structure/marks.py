"""Somebody's own tensors that names and the widths around them tell: codebooks, transitions, capsules, kept keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from inspector.architectures.structure.projections import Role, by_module
from inspector.architectures.structure.tables import EDGES
from inspector.architectures.structure.types import CONVOLUTIONS, Claim, Layer, LayerKind, Topic
from inspector.checkpoint.types import Shape, TensorInfo
from inspector.units import human_shape

_COUNTS = re.compile(r"(?:^|_)cluster_size$")
_TRANSITIONS = re.compile(r"(?:^|[._])trans(?:itions?|_matrix|ition_matrix)?$", re.I)
_ROUTES = re.compile(r"(?:^|[._])(?:route|routing)|caps", re.I)
_KEPT = re.compile(r"(?:^|_)(?:mem|null)_kv$")
_MOST, _LEAST_SQUEEZES, _LEAST_RATIO = 8, 2, 2
_NUMBER = re.compile(r"\d+")
_LEAST_FACTORS = 3


def marks(tensors: Sequence[TensorInfo], layers: Sequence[Layer]) -> Iterator[Claim]:
    """Each names its tensors; what a name alone would tell is not said."""
    own = [(t.name, t.shape) for t in tensors]
    yield from _codebooks(own)
    loose = [(layer.path, shape) for layer in layers if layer.kind is LayerKind.TENSOR if (shape := _shape(layer))]
    yield from _transitions(loose, layers)
    yield from _capsules(loose, layers)
    yield from _squeezes(layers)
    yield from _factors(layers)
    yield from _gates(layers)
    yield from _bins(loose, layers)


def kept_keys(tensors: Sequence[TensorInfo], layers: Sequence[Layer]) -> Iterator[Claim]:
    """Keys and values kept beside the projections: (2, heads, ...), heads times their width as one projection's."""
    modules = by_module(layers)
    found = []
    for tensor in tensors:
        parent, _, last = tensor.name.rpartition(".")
        joint = modules.get(parent, {}).get(Role.ALL)
        if not _KEPT.search(last) or len(tensor.shape) != 4 or tensor.shape[0] != 2 or joint is None:
            continue
        heads, *rest = tensor.shape[1:]
        each, over = divmod((joint.outputs or 0) // 3, heads) if heads else (0, 1)
        if not over and each in rest and heads > 1:
            other = rest[0] if rest[1] == each else rest[1]
            found.append((parent, heads, each, other, tensor))
    if found:
        parent, heads, each, other, tensor = found[0]
        same = [one for one in found if one[1:4] == found[0][1:4]]
        again = f", as {len(same) - 1:,} more modules have" if len(same) > 1 else ""
        yield Claim(
            topic=Topic.HEADS,
            says=f"{parent} has {heads:,} heads of {each:,}, and keeps {other:,} keys and values for each{again}.",
            evidence=f"{tensor.name} {human_shape(tensor.shape)}; {heads:,} x {each:,} is a third of its projection",
            value=heads,
            path=parent,
        )


def is_kept(path: str) -> bool:
    """Whether it is called keys and values that are kept."""
    return _KEPT.search(path.rpartition(".")[2]) is not None


def _shape(layer: Layer) -> Shape:
    sizes = layer.more.split("x")
    return tuple(map(int, sizes)) if all(size.isdecimal() for size in sizes) else ()


def _codebooks(own: Sequence[tuple[str, Shape]]) -> Iterator[Claim]:
    """A count for each code beside a matrix with a row or a column for each (van den Oord 2017, appendix A.1)."""
    beside: dict[str, list[tuple[str, Shape]]] = {}
    for name, shape in own:
        beside.setdefault(name.rpartition(".")[0], []).append((name.rpartition(".")[2], shape))
    said = 0
    for parent, group in beside.items():
        counts = [shape for name, shape in group if _COUNTS.search(name)]
        codes = sum(size for size in counts[0] if size != 1) if counts else 0
        if not codes or said >= _MOST:
            continue
        for name, shape in group:
            sizes = [size for size in shape if size != 1]
            if len(sizes) == 2 and codes in sizes:
                width = sizes[0] if sizes[1] == codes else sizes[1]
                average = next((other for other, size in group if other != name and size == shape), "")
                means = f", with moving averages ({average})" if average else ""
                yield Claim(
                    topic=Topic.OWN,
                    says=f"{parent} has a codebook of {codes:,} vectors of {width:,}{means}: a vector quantiser.",
                    evidence=f"{name} {human_shape(shape)}, cluster_size {codes}",
                    value=codes,
                    path=parent,
                )
                said += 1
                break


def _transitions(own: Sequence[tuple[str, Shape]], layers: Sequence[Layer]) -> Iterator[Claim]:
    """A square as wide as a linear layer's outputs, called transitions (Lafferty 2001, section 3)."""
    squares = ((n, s) for n, s in own if len(s) == 2 and s[0] == s[1] and _TRANSITIONS.search(n))
    for name, shape in islice(squares, _MOST):
        layer = next((one for one in layers if one.kind is LayerKind.LINEAR and one.outputs == shape[0]), None)
        if layer is not None:
            yield Claim(
                topic=Topic.OWN,
                says=f"{name} has a number for each pair of the {shape[0]:,} that {layer.name} puts out, as the "
                "transitions of a conditional random field (CRF).",
                evidence=f"{name} {human_shape(shape)}, its name; {layer.evidence}",
                value=shape[0],
                path=name,
            )
            return


def _capsules(own: Sequence[tuple[str, Shape]], layers: Sequence[Layer]) -> Iterator[Claim]:
    """A matrix for each pair of capsules (Sabour 2017, eq. 2), where a layer takes all that come out side by side."""
    for name, shape in islice(((n, s) for n, s in own if len(s) > 3 and _ROUTES.search(n)), _MOST):
        if len(shape) == 5 and shape[0] == 1:
            shape = shape[1:]
        if len(shape) != 4:
            continue
        for out, inputs in ((shape[0], shape[1]), (shape[1], shape[0])):
            for before, width in ((shape[2], shape[3]), (shape[3], shape[2])):
                taker = next(
                    (one for one in layers if one.kind is LayerKind.LINEAR and one.inputs == out * width), None
                )
                if taker is None or inputs < out:
                    continue
                yield Claim(
                    topic=Topic.OWN,
                    says=f"{name} fits {inputs:,} capsules of {before:,} routed to {out:,} capsules of {width:,}: "
                    f"{taker.name} takes {out * width:,} = {out:,} x {width:,}.",
                    evidence=f"{name} {human_shape(shape)}, its name; {taker.evidence}",
                    value=out,
                    path=name,
                )
                return


def _squeezes(layers: Sequence[Layer]) -> Iterator[Claim]:
    """Two layers of a single place beside each other that narrow and widen again, by one ratio (Hu 2018, section 3)."""
    weighted = [layer for layer in layers if layer.inputs and layer.kind in CONVOLUTIONS | {LayerKind.LINEAR}]
    found: list[tuple[Layer, Layer]] = []
    for before, first, second in zip(weighted, weighted[1:], weighted[2:], strict=False):
        beside = first.path.rpartition(".")[0] == second.path.rpartition(".")[0]
        single = all(layer.kind in CONVOLUTIONS and set(layer.kernel) == {1} for layer in (first, second))
        if (
            beside
            and single
            and first.inputs == second.outputs == before.outputs
            and before.kind in CONVOLUTIONS
            and set(before.kernel) != {1}
            and first.outputs == second.inputs
            and (first.inputs or 0) >= _LEAST_RATIO * (first.outputs or 1)
        ):
            found.append((first, second))
    ratios = {(first.inputs or 0) / (first.outputs or 1) for first, _ in found}
    if len(found) < _LEAST_SQUEEZES or len(ratios) > 1:
        return
    first, second = found[0]
    yield Claim(
        topic=Topic.JOINS,
        says=f"{len(found):,} modules narrow {ratios.pop():g} times and widen again at a single place, behind a larger "
        f"kernel, as squeeze-and-excitation or channel attention does: {first.path.rpartition('.')[0]} "
        f"{first.inputs:,}-{first.outputs:,}-{second.outputs:,} the first.",
        evidence=f"{first.evidence}; {second.evidence}",
        value=len(found),
        path=first.path,
    )


def _factors(layers: Sequence[Layer]) -> Iterator[Claim]:
    """Linear layers of one input that put out twice what the convolution behind each puts out (Perez 2018, eq. 1)."""
    weighted = [layer for layer in layers if layer.kind in CONVOLUTIONS | {LayerKind.LINEAR}]
    found = [
        (linear, behind)
        for linear, behind in pairwise(weighted)
        if linear.kind is LayerKind.LINEAR
        and behind.kind in CONVOLUTIONS
        and behind.outputs
        and linear.outputs == 2 * behind.outputs
        and _share_a_module(linear.path, behind.path)
    ]
    if len(found) < _LEAST_FACTORS or len({linear.inputs for linear, _ in found}) > 1:
        return
    linear, behind = found[0]
    yield Claim(
        topic=Topic.JOINS,
        says=f"{len(found):,} linear layers take {linear.inputs:,} and put out twice what the convolution behind each "
        f"puts out, as a factor and a shift for each channel: {linear.name} {linear.outputs:,} = 2 x "
        f"{behind.outputs:,} the first.",
        evidence=f"{linear.evidence}; {behind.evidence}",
        value=len(found),
        path=linear.path,
    )


def _share_a_module(one: str, other: str) -> bool:
    """Whether a module at most two above the first holds both, and is not the network."""
    parent = ".".join(one.split(".")[:-2])
    return bool(parent) and other.startswith(f"{parent}.")


def _gates(layers: Sequence[Layer]) -> Iterator[Claim]:
    """Convolutions called z, r and q, each of one input that holds the state it puts out (Ballas 2016, eq. 1)."""
    modules: dict[str, list[Layer]] = {}
    for layer in layers:
        if layer.kind in CONVOLUTIONS:
            modules.setdefault(layer.path.rpartition(".")[0], []).append(layer)
    for path, group in modules.items():
        names = {
            _NUMBER.sub("", layer.path.rpartition(".")[2]).lower().removeprefix("conv").strip("_") for layer in group
        }
        if names not in ({"z", "r", "q"}, {"z", "r", "h"}) or len({(one.inputs, one.outputs) for one in group}) > 1:
            continue
        inputs, state = group[0].inputs or 0, group[0].outputs or 0
        if inputs <= state:
            continue
        kernels = " and ".join(dict.fromkeys(one.size for one in group))
        yield Claim(
            topic=Topic.RECURRENT,
            says=f"{path} fits a convolutional GRU by the names {', '.join(sorted(names))}: a state of {state:,} "
            f"channels beside {inputs - state:,} that come ({inputs:,} = {inputs - state:,} + {state:,}), "
            f"kernels {kernels}.",
            evidence="; ".join(one.evidence for one in group[:3]),
            value=state,
            path=path,
        )
        return


def _bins(own: Sequence[tuple[str, Shape]], layers: Sequence[Layer]) -> Iterator[Claim]:
    """One number fewer than a table beside it has rows, called bins: the edges between them."""
    tables = [layer for layer in layers if layer.kind is LayerKind.EMBEDDING]
    rows = ((n, s) for n, s in own if len(s) == 1 and EDGES.search(n.rpartition(".")[2]))
    for name, shape in islice(rows, _MOST):
        parent, _, last = name.rpartition(".")
        words = last.lower().split("_")[0]
        table = next(
            (
                one
                for one in tables
                if one.inputs == shape[0] + 1 and one.path.removeprefix(f"{parent}.").startswith(words)
            ),
            None,
        )
        if table is not None:
            yield Claim(
                topic=Topic.OWN,
                says=f"{name} has {shape[0]:,} numbers, as edges between the {table.inputs:,} rows of {table.name}.",
                evidence=f"{name} {human_shape(shape)}; {table.evidence}",
                value=shape[0],
                path=name,
            )
