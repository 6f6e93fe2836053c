"""What goes in and what comes out: widths that nothing in the file puts out, and widths that nothing in it takes."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from inspector.architectures.structure.attention import is_joint
from inspector.architectures.structure.joins import cells
from inspector.architectures.structure.tables import maybe_tables
from inspector.architectures.structure.types import (
    BOTH_DIRECTIONS,
    CONVOLUTIONS,
    RECURRENT,
    Claim,
    Layer,
    LayerKind,
    Topic,
)

_PLANES = {1: "one channel", 2: "two channels", 3: "three channels", 4: "four channels"}
# Of pictures, whose kernels have two dimensions.
_MEANT = {1: " (as a grey picture has)", 3: " (as RGB has)"}
_MOST_PLANES = 4
# Numbers of a point or a place as they come, before any layer.
_MOST_RAW = 16
_WEIGHTED = CONVOLUTIONS | {LayerKind.LINEAR, LayerKind.MATRIX}
# What takes and puts out as well, though no width of it is an end.
_OTHERS = RECURRENT | {LayerKind.ATTENTION, LayerKind.BILINEAR}
_MOST_ENDS, MOST_RECURRENT = 4, 4
_MOST_TABLES, _MOST_ROWS, _LEAST_TOGETHER = 8, 12, 3
_NUMBER = re.compile(r"\d+")
_ENDS = re.compile(
    r"(?:final|out|output|last)(?:_?(?:conv|layer|linear|proj|projection|head|fc))?|(?:\w+_)?head|proj_out|conv_out|"
    r"to_?rgbs?|unembed(?:ding)?|classifier|projection|\w+_linear|out_tr|conv_post|logits",
    re.I,
)
# Shifts and scales for other layers (Peebles 2023, section 3.2).
_MODULATES = re.compile(r"ada_?ln|modulation", re.I)
# What comes of a width on its way to the next layer without a layer: halves (gates), thirds, quarters.
_SPLITS = (2, 3, 4)


def takes(layers: Sequence[Layer], ordered: bool) -> Iterator[Claim]:
    """Inputs: pictures, tokens, features. A width that comes from outside, and need not be the network's input, is said
    of its layer alone (`Topic.FED`)."""
    given = {layer.outputs for layer in layers if layer.outputs}
    weighted = [layer for layer in layers if layer.kind in _WEIGHTED | RECURRENT and layer.inputs]
    tables = [layer for layer in layers if layer.kind is LayerKind.EMBEDDING and layer.inputs]
    yield from _lookups(tables)
    yield from maybe_tables(layers)
    planes = [layer for layer in weighted if _takes_planes(layer, given, first=ordered and layer is weighted[0])]
    # One of several numbered alike that take other widths: so many are left at that place.
    numbered: dict[str, set[int | None]] = {}
    for layer in weighted:
        numbered.setdefault(_NUMBER.sub("*", layer.path), set()).add(layer.inputs)
    planes = [one for one in planes if one is weighted[0] or not _is_narrowing(numbered[_NUMBER.sub("*", one.path)])][
        :2
    ]
    rivals = _rivals(planes[0], weighted, given) if planes else []
    for layer in [*planes, *rivals]:
        assert layer.inputs is not None
        read = _reads(layer, tables)
        if read:
            yield Claim(topic=Topic.FED, says=read, evidence=layer.evidence, value=layer.inputs, path=layer.path)
            continue
        meant = _MEANT.get(layer.inputs, "") if len(layer.kernel) == 2 and not rivals and not tables else ""
        if layer.inputs == 1 and max(layer.kernel) > 1:
            meant += ", unless it is depthwise"
        count = _PLANES.get(layer.inputs, f"{layer.inputs:,} channels")
        why = "" if layer.inputs in given else "; no layer puts out so many"
        yield Claim(
            topic=Topic.FED if rivals else Topic.TAKES,
            says=f"{layer.name} takes {count}{meant}{', which nothing in the file puts out' if rivals else ''}.",
            evidence=layer.evidence + why,
            value=layer.inputs,
            path=layer.path,
        )
    if not planes and ordered and weighted:
        yield from _first(weighted[0], layers, given)


def _is_narrowing(widths: Collection[int | None]) -> bool:
    return len(widths) > 1 and all(width is not None and width <= _MOST_PLANES for width in widths)


def _lookups(tables: Sequence[Layer]) -> Iterator[Claim]:
    """Each table; those of one list or module, and those alike in many blocks, together."""
    beside = Counter((layer.path.rpartition(".")[0], layer.outputs) for layer in tables)
    groups: dict[tuple[object, ...], list[Layer]] = {}
    for layer in tables:
        parent, _, last = layer.path.rpartition(".")
        together = parent and (last.isdecimal() or beside[parent, layer.outputs] >= _LEAST_TOGETHER)
        where = _NUMBER.sub("*", parent if together else layer.path)
        groups.setdefault((where, layer.outputs if together else 0), []).append(layer)
    for group in list(groups.values())[:_MOST_TABLES]:
        first = group[0]
        yield Claim(
            topic=Topic.TAKES, says=_tables_text(group), evidence=first.evidence, value=first.inputs, path=first.path
        )
    rest = sum(map(len, list(groups.values())[_MOST_TABLES:]))
    if rest:
        yield Claim(topic=Topic.TAKES, says=f"{rest:,} more look up vectors.", evidence="their names and shapes")


def _tables_text(group: Sequence[Layer]) -> str:
    first = group[0]
    parent = first.path.rpartition(".")[0]
    here = [layer for layer in group if layer.path.rpartition(".")[0] == parent]
    if len(group) == 1 and first.inputs == 1:
        return f"{first.name} keeps one vector of {first.outputs:,}."
    if len(group) == 1:
        return f"{first.name} looks up one of {first.inputs:,} vectors of {first.outputs:,}."
    if len(here) > 1:
        again = f"; so in {len(group) // len(here):,} modules" if len(group) > len(here) else ""
        named = [(layer.path.rpartition(".")[2], f"{layer.inputs:,}") for layer in here[:_MOST_ROWS]]
        sizes = ", ".join(size if name.isdecimal() else f"{name} {size}" for name, size in named)
        sizes += f" and {len(here) - _MOST_ROWS:,} more" if len(here) > _MOST_ROWS else ""
        return f"{parent} has {len(here):,} tables of vectors of {first.outputs:,}, with as many rows: {sizes}{again}."
    sizes = ", ".join(f"{layer.name} {layer.inputs:,} x {layer.outputs:,}" for layer in group[:_MOST_ENDS])
    sizes += f" and {len(group) - _MOST_ENDS:,} more" if len(group) > _MOST_ENDS else ""
    return f"{len(group):,} tables look up vectors: {sizes}."


def _reads(layer: Layer, tables: Sequence[Layer]) -> str:
    """A kernel as wide as the vectors of a table, over one channel: it reads several of them at a time."""
    if len(layer.kernel) != 2 or layer.inputs != 1:
        return ""
    table = next((one for one in tables if one.outputs == layer.kernel[1]), None)
    if table is None:
        return ""
    return (
        f"{layer.name} takes one channel with a kernel as wide as the {table.outputs:,} of {table.name}: "
        f"it likely reads {layer.kernel[0]:,} of its vectors at a time."
    )


def _rivals(layer: Layer, weighted: Sequence[Layer], given: set[int]) -> list[Layer]:
    """Convolutions of a module around this one's that take another width from outside: then this one's module may be a
    side branch, made before what it serves."""
    parent = layer.path.rpartition(".")[0]
    outer = [
        other
        for other in weighted
        if other.kind is LayerKind.CONVOLUTION
        and other.inputs not in given | {layer.inputs}
        and (layer.inputs or 0) < (other.inputs or 0) <= _MOST_RAW
        and parent.startswith(other.path.rpartition(".")[0])
        and parent != other.path.rpartition(".")[0]
    ]
    return outer[:1]


def _first(first: Layer, layers: Sequence[Layer], given: set[int]) -> Iterator[Claim]:
    """What the first layer of the file takes, where no layer puts out so many."""
    if first.kind is LayerKind.EITHER_CONVOLUTION and first.inputs in _MEANT and first.outputs not in _MEANT:
        yield Claim(
            topic=Topic.FED,
            says=f"{first.name}, the first layer of the file, takes {_PLANES[first.inputs]}, unless it is transposed "
            "and puts them out.",
            evidence=first.evidence,
            value=first.inputs,
            path=first.path,
        )
    if first.inputs is None or first.inputs in given or first.kind in {LayerKind.MATRIX, LayerKind.EITHER_CONVOLUTION}:
        return
    cell = cells(layers, ordered=True)
    width = cell.value if cell is not None and cell.value and cell.path == first.path else first.inputs
    what = "channels" if first.kind in CONVOLUTIONS else "values"
    topic, says = Topic.TAKES, f"{first.name} takes {width:,} {what if width != 1 else what[:-1]}"
    if width != first.inputs:
        says += f" beside its state of {first.inputs - width:,}"
    own = next((one for one in layers if one.kind is LayerKind.TENSOR and _row(one) == first.inputs), None)
    taken = {layer.inputs for layer in layers}
    joined = next(
        (
            one
            for one in layers
            if one.kind is LayerKind.EMBEDDING
            and 1 < (one.outputs or 0) < first.inputs
            and one.outputs not in taken
            and not one.path.rpartition(".")[2].isdecimal()
        ),
        None,
    )
    halves = [one for one in layers if one.kind in _WEIGHTED and one.inputs == first.inputs]
    if own is None and len(halves) > 1 and 2 * first.inputs in given - taken:
        # Each block of a flow sees a half and puts out a factor and a shift for the other.
        topic = Topic.FED
        says += f", as {len(halves) - 1:,} more do, half of the {2 * first.inputs:,} that layers put out"
    elif own is not None:
        topic, says = Topic.FED, f"{says}, as wide as {own.name} ({own.more})"
    elif joined is not None:
        assert joined.outputs is not None
        topic = Topic.FED
        says += f", the {joined.outputs:,} of {joined.name} perhaps among them ({first.inputs:,} = "
        says += f"{first.inputs - joined.outputs:,} + {joined.outputs:,})"
    yield Claim(
        topic=topic,
        says=f"{says}.",
        evidence=f"{first.evidence}: the first layer of the file, and no layer puts out so many",
        value=width,
        path=first.path,
    )


def _row(layer: Layer) -> int | None:
    """The last size of a tensor of two sizes or more."""
    sizes = layer.more.split("x")
    return int(sizes[-1]) if len(sizes) > 1 and sizes[-1].isdecimal() else None


def _takes_planes(layer: Layer, given: set[int], *, first: bool) -> bool:
    """Three channels that nothing puts out, or few and the first layer of all: of other small numbers a later layer may
    as well be grouped, or look at a mean and a maximum. What may be transposed may put them out."""
    if (layer.kind is not LayerKind.CONVOLUTION and not layer.is_square) or layer.inputs is None:
        return False
    return (first and layer.inputs <= _MOST_PLANES) or (layer.inputs == 3 and 3 not in given)


def recurrent(layers: Sequence[Layer], *, ordered: bool) -> Iterator[Claim]:
    """What each recurrent layer takes and gives in a step."""
    cell = cells(layers, ordered=ordered)
    if cell is not None:
        yield cell
    for layer in [layer for layer in layers if layer.kind in RECURRENT][:MOST_RECURRENT]:
        each = f" ({layer.outputs // 2:,} each way)" if layer.outputs and BOTH_DIRECTIONS in layer.more else ""
        yield Claim(
            topic=Topic.RECURRENT,
            says=f"{layer.name}: {layer.says}{each}.",
            evidence=layer.evidence,
            value=layer.outputs,
            path=layer.path,
        )


def ends(layers: Sequence[Layer], ordered: bool) -> Iterator[Claim]:
    """Linear layers of a width that no layer takes, and the last layer of the file; at most four."""
    weighted = [layer for layer in layers if layer.kind in _WEIGHTED and layer.outputs]
    # A modulated convolution's factors are no output of their own.
    modulated = {layer.path for layer in layers if layer.kind is LayerKind.MODULATED}
    weighted = [layer for layer in weighted if layer.path.rpartition(".")[0] not in modulated]
    weighted = [layer for layer in weighted if not _MODULATES.search(layer.path)]
    if len(layers) < 2 or not weighted:
        return
    # A table has rows and takes none.
    taken = Counter(layer.inputs for layer in layers if layer.inputs and layer.kind is not LayerKind.EMBEDDING)
    last = weighted[-1] if ordered and not _has_more_behind(layers, weighted[-1]) else None
    again = _put_out_again(layers)
    found = [layer for layer in weighted if _is_end(layer, taken, again, last=layer is last)]
    # The last of them are the likelier ones, wherever heads are made after what they stand on.
    # Heads of one kind beside the last are ends like it.
    beside = [one for one in weighted if found and one is not found[-1] and found[-1] is last and _is_like(one, last)]
    for layer in found[-_MOST_ENDS:]:
        assert layer.outputs is not None
        if layer is last and beside and taken.get(layer.outputs, 0) == 0:
            yield _each(layer, beside)
            continue
        what = "value" if layer.outputs == 1 else "values"
        where = " at every place" if layer.kind in CONVOLUTIONS else ""
        yield Claim(
            topic=Topic.ENDS_IN,
            says=f"{layer.name} puts out {layer.outputs:,} {what}{where}, and no other layer takes so many.",
            evidence=layer.evidence + (": the last layer of the file" if layer is last else ""),
            value=layer.outputs,
            path=layer.path,
        )
    # What is certain needs no guess beside it.
    if ordered and not any(layer is last for layer in found):
        yield from _likely(layers, weighted, {layer.path for layer in found}, last)


def _is_like(layer: Layer, last: Layer) -> bool:
    return (layer.kind, layer.kernel, layer.outputs) == (last.kind, last.kernel, last.outputs)


def _each(last: Layer, beside: Sequence[Layer]) -> Claim:
    """Heads that put out as many as the last layer."""
    assert last.outputs is not None
    what = "value" if last.outputs == 1 else "values"
    where = " at every place" if last.kind in CONVOLUTIONS else ""
    names = ", ".join(layer.name for layer in beside[:_MOST_ENDS])
    more = f" and {len(beside) - _MOST_ENDS:,} more" if len(beside) > _MOST_ENDS else ""
    return Claim(
        topic=Topic.ENDS_IN,
        says=f"{last.name} puts out {last.outputs:,} {what}{where}, and so {'do' if len(beside) > 1 else 'does'} "
        f"{names}{more}; no layer takes so many.",
        evidence=f"{last.evidence}: the last layer of the file",
        value=last.outputs,
        path=last.path,
    )


def _likely(
    layers: Sequence[Layer], weighted: Sequence[Layer], said: Collection[str], last: Layer | None
) -> Iterator[Claim]:
    """The last layer of the file, and those that are called an output at the top, where other layers take as many."""
    # A head may be the first of all, and what an output module begins with is not its end.
    late = list(pairwise(weighted))[len(weighted) * 2 // 3 :]
    named = [
        layer
        for layer, behind in late
        if layer.path.count(".") < 2
        and _is_called_end(layer)
        and (not layer.path.count(".") or behind.path.rpartition(".")[0] != layer.path.rpartition(".")[0])
    ]
    if last is None and weighted[-1] not in named and _is_called_end(weighted[-1]):
        named.append(weighted[-1])
    for layer in [*named[-_MOST_ENDS:], *([last] if last is not None else [])]:
        assert layer.outputs is not None
        if layer.path in said or (layer.kind is LayerKind.EITHER_CONVOLUTION and not layer.is_square):
            continue
        what = "value" if layer.outputs == 1 else "values"
        where = " at every place" if layer.kind in CONVOLUTIONS else ""
        reading = " as a linear layer" if layer.kind is LayerKind.MATRIX else ""
        if layer is last:
            kept = weighted[0].inputs == layer.outputs
            called = _is_called_end(layer)
            hedge = ", likely the output" if called else ", as many as the first takes" if kept else ""
            says = (
                f"{layer.name}, the last layer in the file, puts out {layer.outputs:,} {what}{where}{reading}{hedge}."
            )
        else:
            says = f"{layer.name} puts out {layer.outputs:,} {what}{where}{reading}: by its name likely an output."
        yield Claim(topic=Topic.LIKELY_END, says=says, evidence=layer.evidence, value=layer.outputs, path=layer.path)


def _is_called_end(layer: Layer) -> bool:
    return any(_ENDS.fullmatch(name) for name in layer.path.split("."))


def _is_end(layer: Layer, taken: Mapping[int, int], again: Collection[str], *, last: bool) -> bool:
    if layer.outputs is None or is_joint(layer):
        return False
    if taken.get(layer.outputs, 0) > (layer.inputs == layer.outputs):
        return False
    if last:
        return layer.kind in {LayerKind.LINEAR, LayerKind.CONVOLUTION} and layer.path not in again
    # Inside a network a width may be split, joined or reshaped on its way.
    parts = {layer.outputs // n for n in _SPLITS if layer.outputs % n == 0} | {layer.outputs * n for n in _SPLITS}
    return layer.kind is LayerKind.LINEAR and not parts & taken.keys() and layer.path not in again


def _has_more_behind(layers: Sequence[Layer], layer: Layer) -> bool:
    """Whether layers of another sort, or tensors that are in no layer, follow: they may take what it puts out."""
    behind = layers[list(layers).index(layer) + 1 :]
    # A modulated convolution's factors stand in its own module.
    inside = f"{layer.path}."
    return any(
        (one.kind is LayerKind.TENSOR and sum(size != "1" for size in one.more.split("x")) > 1)
        or one.kind in _OTHERS
        or (one.kind in _WEIGHTED and _MODULATES.search(one.path) is not None and not one.path.startswith(inside))
        for one in behind
    )


def _put_out_again(layers: Sequence[Layer]) -> frozenset[str]:
    """Paths of layers behind which something as wide stands: a norm after the last layer belongs to it."""
    last = {layer.outputs: place for place, layer in enumerate(layers) if layer.kind is not LayerKind.TENSOR}
    return frozenset(layer.path for place, layer in enumerate(layers) if last.get(layer.outputs, -1) > place)


def flattened(layers: Sequence[Layer]) -> Iterator[Claim]:
    """A linear layer right behind a convolution that takes a square of its channels, and nothing else puts out so
    many."""
    wide = [layer for layer in layers if layer.kind in _WEIGHTED and layer.outputs]
    for before, layer in pairwise(wide):
        if layer.kind is not LayerKind.LINEAR or before.kind not in CONVOLUTIONS:
            continue
        assert before.outputs is not None and layer.inputs is not None
        places, rest = divmod(layer.inputs, before.outputs)
        side = math.isqrt(places)
        if rest or side < 2 or side * side != places:
            continue
        earlier = layers[: list(layers).index(layer) + 1]
        if all(one.outputs != layer.inputs for one in earlier):
            yield Claim(
                topic=Topic.POSITIONS,
                says=f"{layer.name} takes {layer.inputs:,} values: as many as {before.outputs:,} channels of {side} x "
                f"{side} places.",
                evidence=f"{layer.evidence}; {before.path} puts out {before.outputs:,}",
                value=side,
                path=layer.path,
            )
