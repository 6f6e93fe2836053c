"""What goes in: widths that nothing in the file puts out, tables that are looked up, the first layer of all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from inspector.architectures.structure.concatenations import gathers_siblings
from inspector.architectures.structure.flow import start_of, unmade
from inspector.architectures.structure.fourier import is_of_sound
from inspector.architectures.structure.joins import cells
from inspector.architectures.structure.kinds import is_over_points
from inspector.architectures.structure.tables import is_called_linear, maybe_tables
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
MOST_RECURRENT = 4
_MOST_ENDS = 4
_MOST_TABLES, _MOST_ROWS, _LEAST_TOGETHER = 8, 12, 3
# A picture's kernels are not so long on one side.
_LONGEST = 16
_MOST_FURTHER, _DEEPEST = 3, 1
_FURTHER = frozenset({LayerKind.LINEAR, LayerKind.MATRIX})
_NUMBER = re.compile(r"\d+")


def takes(layers: Sequence[Layer], ordered: bool) -> Iterator[Claim]:
    """Inputs: pictures, tokens, features. A width that comes from outside, and need not be the network's input, is said
    of its layer alone (`Topic.FED`)."""
    given = {layer.outputs for layer in layers if layer.outputs}
    weighted = [layer for layer in layers if layer.kind in _WEIGHTED | RECURRENT and layer.inputs]
    tables = [layer for layer in layers if layer.kind is LayerKind.EMBEDDING and layer.inputs]
    yield from _lookups(tables)
    yield from maybe_tables(layers)
    start = start_of(layers) if ordered else None
    begins = start or (weighted[0] if weighted else None)
    planes = [layer for layer in weighted if _takes_planes(layer, given, first=ordered and layer is begins)]
    # One of several numbered alike that take other widths: so many are left at that place.
    numbered: dict[str, set[int | None]] = {}
    for layer in weighted:
        numbered.setdefault(_NUMBER.sub("*", layer.path), set()).add(layer.inputs)
    planes = [one for one in planes if one is begins or not _is_narrowing(numbered[_NUMBER.sub("*", one.path)])]
    planes = planes[:2]
    rivals = _rivals(planes[0], weighted, given) if planes else []
    rivals = [one for one in rivals if not gathers_siblings(one, layers)]
    sound = is_of_sound(layers)
    points = is_over_points([one for one in weighted if one.outputs])
    for layer in [*planes, *rivals]:
        assert layer.inputs is not None
        read = _reads(layer, tables) or _spans(layer, weighted)
        if read:
            yield Claim(topic=Topic.FED, says=read, evidence=layer.evidence, value=layer.inputs, path=layer.path)
            continue
        of_picture = (
            len(layer.kernel) == 2 and len(set(layer.kernel)) == 1 and not (rivals or tables or sound or points)
        )
        meant = _MEANT.get(layer.inputs, "") if of_picture else ""
        if sound and layer.inputs == 1 and len(layer.kernel) == 2:
            meant = ", as of a spectrogram"
        if layer.inputs == 1 and max(layer.kernel) > 1:
            meant += ", unless it is depthwise"
        count = _PLANES.get(layer.inputs, f"{layer.inputs:,} channels")
        why = "" if layer.inputs in given else "; no layer puts out so many"
        why += _not_the_first(start, weighted)
        yield Claim(
            topic=Topic.FED if rivals or sound else Topic.TAKES,
            says=f"{layer.name} takes {count}{meant}{', which nothing in the file puts out' if rivals else ''}.",
            evidence=layer.evidence + why,
            value=layer.inputs,
            path=layer.path,
        )
    if planes or not weighted or (sound and weighted[0].kind in CONVOLUTIONS):
        return
    if start is not None:
        yield Claim(
            topic=Topic.TAKES,
            says=f"{start.name} takes {start.inputs:,} channels.",
            evidence=f"{start.evidence}; no layer puts out so many{_not_the_first(start, weighted)}",
            value=start.inputs,
            path=start.path,
        )
    elif ordered:
        yield from _first(weighted[0], layers, given)
    else:
        yield from _unmade(layers)


def _not_the_first(start: Layer | None, weighted: Sequence[Layer]) -> str:
    """Why what the first of the file takes is not what the network takes."""
    if start is None:
        return ""
    first = weighted[0]
    return f", and the {first.inputs:,} of {first.path}, the first in the file, are widths put out that add up"


def _unmade(layers: Sequence[Layer]) -> Iterator[Claim]:
    """Widths that come from outside whatever the order is; of more than a few, joined ones are among them."""
    found = unmade(layers)
    for layer in found if len(found) <= _MOST_FURTHER else ():
        what = "channels" if layer.kind in CONVOLUTIONS else "values"
        # In a block or a part of one of several it may be coordinates, or a condition.
        if layer.path.count(".") > _DEEPEST and _is_in_a_row(layer):
            continue
        alone = len(found) == 1
        yield Claim(
            topic=Topic.TAKES if alone else Topic.FED,
            says=f"{layer.name} takes {layer.inputs:,} {what}"
            + ("." if alone else ", which nothing in the file puts out: an input, or joined with one."),
            evidence=f"{layer.evidence}; no layer puts out so many, and no two or three together",
            value=layer.inputs,
            path=layer.path,
        )


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
    """All sizes of a few; of very many the first, the smallest and the largest."""
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
        rows = [layer.inputs or 0 for layer in here]
        if len(here) > _MOST_ROWS:
            sizes += f" and {len(here) - _MOST_ROWS:,} more (from {min(rows):,} to {max(rows):,} rows)"
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


def _spans(layer: Layer, weighted: Sequence[Layer]) -> str:
    """A kernel over one channel that is as long on one side as a layer puts out values: it sees all of a step."""
    if len(layer.kernel) != 2 or layer.inputs != 1 or max(layer.kernel) < _LONGEST:
        return ""
    steps, width = min(layer.kernel), max(layer.kernel)
    end = next((one for one in reversed(weighted) if one.kind is LayerKind.LINEAR and one.outputs == width), None)
    if end is None or steps == width:
        return ""
    return (
        f"{layer.name} takes one channel with a kernel of {steps:,} x {width:,}, as long as the {width:,} that "
        f"{end.name} puts out: it sees {width:,} series at once, {steps:,} steps of each."
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
    if first.kind is LayerKind.EITHER_CONVOLUTION or (first.kind is LayerKind.MATRIX and not _multiplies(first)):
        return
    if first.inputs is None or first.inputs in given:
        yield from _comes_again(first, layers)
        return
    cell = cells(layers, ordered=True)
    width = cell.value if cell is not None and cell.value and cell.path == first.path else first.inputs
    what = "channels" if first.kind in CONVOLUTIONS else "values"
    if _is_of_tables(first, layers):
        return
    topic, says = Topic.TAKES, f"{first.name} takes {width:,} {what if width != 1 else what[:-1]}"
    if width != first.inputs:
        says += f" beside its state of {first.inputs - width:,}"
    own = next((one for one in layers if one.kind is LayerKind.TENSOR and _row(one) == first.inputs), None)
    numbers = next(
        (one for one in layers if one.kind is LayerKind.TENSOR and one.more == str(first.inputs) and width > _MOST_RAW),
        None,
    )
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
    elif numbers is not None:
        says += f", as many as {numbers.name} has numbers"
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


def _is_of_tables(first: Layer, layers: Sequence[Layer]) -> bool:
    """Whether it takes as many as vectors of several tables of one width."""
    widths = Counter(layer.outputs for layer in layers if layer.kind is LayerKind.EMBEDDING)
    return any(number > 1 and width and number * width == first.inputs for width, number in widths.items())


def _multiplies(layer: Layer) -> bool:
    """Whether its name says that it is no table; a number says nothing."""
    return is_called_linear(layer.path) and not layer.path.rpartition(".")[2].isdecimal()


def _comes_again(first: Layer, layers: Sequence[Layer]) -> Iterator[Claim]:
    """A first layer of a width that later layers put out, and only layers at its place in other blocks take: what comes
    out is as wide as what goes in, as of an autoencoder or of blocks that give back what they took."""
    weighted = [layer for layer in layers if layer.kind in _WEIGHTED and layer.inputs]
    pattern = _NUMBER.sub("*", first.path)
    takers = [one for one in weighted if one.inputs == first.inputs and _NUMBER.sub("*", one.path) != pattern]
    makers = [one for one in weighted if one.outputs == first.inputs]
    if takers or not makers or first.kind is not LayerKind.LINEAR or first.inputs == first.outputs:
        return
    patterns = dict.fromkeys(_NUMBER.sub("*", one.path) for one in makers)
    last = makers[-1]
    each = f", as in {len(makers):,} modules" if len(makers) > 1 and len(patterns) == 1 else ""
    yield Claim(
        topic=Topic.TAKES,
        says=f"{first.name} takes {first.inputs:,} values; {last.name} puts out as many again{each}.",
        evidence=f"{first.evidence}: the first layer of the file; {last.evidence}",
        value=first.inputs,
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


def further(layers: Sequence[Layer], told: str, *, ordered: bool) -> Iterator[Claim]:
    """Later layers at most two modules deep that take what nothing puts out, and no sum explains: a second input."""
    weighted = [layer for layer in layers if layer.kind in CONVOLUTIONS | _FURTHER and layer.inputs and layer.outputs]
    given = {layer.outputs for layer in layers}
    said: set[int | None] = {layer.inputs for layer in weighted[:1]}
    # Of one row of layers of other widths nobody knows which are joined; a map laid flat is no input.
    for before, layer in pairwise(weighted) if ordered else ():
        flat = layer.kind is LayerKind.LINEAR and (layer.inputs or 0) % (before.outputs or 1) == 0
        if layer.inputs in given | said or flat or layer.path in told or layer.path.count(".") > _DEEPEST:
            continue
        if len(said) > _MOST_FURTHER or (layer.inputs or 0) > (layer.outputs or 0) or _is_in_a_row(layer):
            continue
        said.add(layer.inputs)
        yield Claim(
            topic=Topic.FED,
            says=f"{layer.name} takes {layer.inputs:,}, which nothing in the file puts out: a further input, or widths "
            "joined.",
            evidence=f"{layer.evidence}; no layer puts out so many",
            value=layer.inputs,
            path=layer.path,
        )


def _is_in_a_row(layer: Layer) -> bool:
    """Whether a module that it is in has a number: one of several stages or blocks."""
    parent, _, last = layer.path.rpartition(".")
    return _NUMBER.search(parent if last.isdecimal() else layer.path) is not None


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
