"""What comes out: widths that nothing in the file takes, the last layer of all; and maps laid flat."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from inspector.architectures.structure.attention import is_joint
from inspector.architectures.structure.flow import beside, given_widths, goes_on_into, is_made
from inspector.architectures.structure.heads import heads, is_called_head, is_head_name, taken_widths
from inspector.architectures.structure.other_axis import along_another_axis
from inspector.architectures.structure.projections import role_of
from inspector.architectures.structure.types import (
    CONVOLUTIONS,
    RECURRENT,
    Claim,
    Layer,
    LayerKind,
    Topic,
)

_WEIGHTED = CONVOLUTIONS | {LayerKind.LINEAR, LayerKind.MATRIX}
# What takes and puts out as well, though no width of it is an end.
_OTHERS = RECURRENT | {LayerKind.ATTENTION, LayerKind.BILINEAR}
_MOST_ENDS = 4
_ENDS = re.compile(
    r"(?:final|out|output|last)(?:_?(?:conv|layer|linear|proj|projection|head|fc))?|(?:\w+_)?head|proj_out|conv_out|"
    r"to_?rgbs?|unembed(?:ding)?|classifier|projection|\w+_linear|out_tr|conv_post|logits",
    re.I,
)
_NUMBER = re.compile(r"\d+")
# Shifts and scales for other layers (Peebles 2023, section 3.2).
_MODULATES = re.compile(r"ada_?ln|modulation", re.I)
# What comes of a width on its way to the next layer without a layer: halves (gates), thirds, quarters.
_SPLITS = (2, 3, 4)


def ends(layers: Sequence[Layer], ordered: bool) -> Iterator[Claim]:
    """Heads together; linear layers of a width that no layer takes, and the last layer of the file; at most four."""
    several = heads(layers, ordered=ordered)
    if several is not None:
        yield several
    told = several.says if several is not None else ""
    yield from (claim for claim in _single(layers, ordered) if not _names(told, claim.path))


def _names(told: str, path: str) -> bool:
    return f" {path}," in told or f" {path} " in told


def _single(layers: Sequence[Layer], ordered: bool) -> Iterator[Claim]:
    weighted = [layer for layer in layers if layer.kind in _WEIGHTED and layer.outputs]
    # A modulated convolution's factors are no output of their own.
    modulated = {layer.path for layer in layers if layer.kind is LayerKind.MODULATED}
    weighted = [layer for layer in weighted if layer.path.rpartition(".")[0] not in modulated]
    weighted = [layer for layer in weighted if not _MODULATES.search(layer.path)]
    if len(layers) < 2 or not weighted:
        return
    # A table has rows and takes none.
    # A picture that comes out as it went in is told with a hedge; what the first takes is no later layer's.
    taken, every = taken_widths(layers, ordered=ordered), taken_widths(layers, ordered=False)
    last = weighted[-1] if ordered and not _has_more_behind(layers, weighted[-1]) else None
    goes_on = goes_on_into(layers, last) if last is not None else None
    if goes_on is not None:
        last = None
    again = _put_out_again(layers)
    joined = _joined_behind(weighted) if ordered else {}
    found = [
        layer
        for layer in weighted
        if _is_end(layer, taken if layer.kind is LayerKind.LINEAR else every, again, last=layer is last)
        and (layer is last or joined.get(layer.path, 0) <= (layer.outputs or 0))
    ]
    if goes_on is not None and goes_on not in found:
        found.append(goes_on)
    if not ordered:
        found = [*(one for one in _unmatched(layers, weighted, every) if one not in found), *found]
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
        only = layer.outputs == weighted[0].inputs and layer is not weighted[0] and ordered
        why = ": the last layer of the file" if layer is last else ""
        if layer is goes_on:
            why = f"; its part takes the {weighted[-1].outputs:,} that {weighted[-1].path}, the last in the file, gives"
        rest = "; of the others only the first takes so many" if only else ", and no other layer takes so many"
        yield Claim(
            topic=Topic.ENDS_IN,
            says=f"{layer.name} puts out {layer.outputs:,} {what}{where}{rest}.",
            evidence=layer.evidence + why,
            value=layer.outputs,
            path=layer.path,
        )
    if goes_on is not None:
        return
    # What is certain needs no guess beside it.
    if ordered and not any(layer is last for layer in found):
        yield from _likely(layers, weighted, {layer.path for layer in found}, last)


def _unmatched(layers: Sequence[Layer], weighted: Sequence[Layer], every: Mapping[int, int]) -> Iterator[Layer]:
    """Convolutions whose width nothing takes in a file without an order, where no width that comes from nowhere may
    have it in it."""
    given = given_widths(layers)
    open_ = {one.inputs or 0 for one in weighted if one.inputs not in given and one.inputs != 1}
    for layer in weighted:
        width = layer.outputs or 0
        split = any(width % n == 0 and width // n > 1 and width // n in every for n in _SPLITS)
        if layer.kind is not LayerKind.CONVOLUTION or width in every or width < 2 or split or is_joint(layer):
            continue
        # Inside a block or a stage it goes on to what is added or joined there.
        inside = _NUMBER.search(layer.path.rpartition(".")[0]) is not None and not is_called_head(layer)
        if inside or any(name.isdecimal() for name in layer.path.split(".")[:-1]) or role_of(layer) is not None:
            continue
        if not any(is_made(one, {width}) or is_made(one, given) for one in open_):
            yield layer


def _joined_behind(weighted: Sequence[Layer]) -> dict[str, int]:
    """Of each layer the largest width that a later one takes and nothing puts out: it may be among what is joined."""
    given = {layer.outputs for layer in weighted}
    found: dict[str, int] = {}
    largest = 0
    for layer in reversed(weighted):
        found[layer.path] = largest
        if layer.inputs and layer.inputs not in given:
            largest = max(largest, layer.inputs)
    return found


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
    fed = _fed_back(weighted, last) if last is not None else []
    if fed:
        yield _answers(fed, weighted[-1])
        return
    inner = {one.path for one in along_another_axis(layers)}
    named = [one for one in named if one is last or one.path not in inner]
    for layer in [*named[-_MOST_ENDS:], *([last] if last is not None else [])]:
        assert layer.outputs is not None
        if layer.path in said or (layer.kind is LayerKind.EITHER_CONVOLUTION and not layer.is_square):
            continue
        what = "value" if layer.outputs == 1 else "values"
        where = " at every place" if layer.kind in CONVOLUTIONS else ""
        reading = " as a linear layer" if layer.kind is LayerKind.MATRIX else ""
        if layer is last:
            maps = layer.kind in CONVOLUTIONS and weighted[0].kind in CONVOLUTIONS
            kept = weighted[0].inputs == layer.outputs and (maps or layer.kind not in CONVOLUTIONS)
            # As wide as what it takes: something may be computed of it still.
            called = _is_called_end(layer) and layer.inputs != layer.outputs
            hedge = ", likely the output" if called else ", as many as the first takes" if kept else ""
            hedge = _embedding(layers, layer) or hedge
            says = (
                f"{layer.name}, the last layer in the file, puts out {layer.outputs:,} {what}{where}{reading}{hedge}."
            )
        else:
            says = f"{layer.name} puts out {layer.outputs:,} {what}{where}{reading}: by its name likely an output."
        yield Claim(topic=Topic.LIKELY_END, says=says, evidence=layer.evidence, value=layer.outputs, path=layer.path)


def _fed_back(weighted: Sequence[Layer], last: Layer) -> list[Layer]:
    """Layers that are called outputs, where the last of the file takes as many, is called none, and puts out what
    others take: it gives an answer back (Newell 2016, section 3.2)."""
    if not any(one.inputs == last.outputs for one in weighted[1:] if one is not last):
        return []
    outputs = [
        one
        for one in weighted
        if one.outputs == last.inputs
        and one.kind is last.kind
        and is_head_name(beside(one.path, last.path).rpartition(".")[2])
        and not is_head_name(beside(last.path, one.path).rpartition(".")[2])
    ]
    pattern = _NUMBER.sub("*", last.path)
    takers = [one for one in weighted if one.inputs == last.inputs and _NUMBER.sub("*", one.path) != pattern]
    makers = [one for one in weighted if one.outputs == last.inputs and one not in outputs]
    return [] if takers or makers else outputs


def _answers(outputs: Sequence[Layer], last: Layer) -> Claim:
    first = outputs[0]
    what = "value" if first.outputs == 1 else "values"
    where = " at every place" if first.kind in CONVOLUTIONS else ""
    names = ", ".join(one.name for one in outputs[:_MOST_ENDS])
    more = f" and {len(outputs) - _MOST_ENDS:,} more" if len(outputs) > _MOST_ENDS else ""
    several = len(outputs) > 1
    return Claim(
        topic=Topic.LIKELY_END,
        says=f"{names}{more} {'put' if several else 'puts'} out {first.outputs:,} {what}{' each' if several else ''}"
        f"{where}: by {'their names likely outputs' if several else 'its name likely an output'}. {last.name}, the "
        "last layer in the file, takes as many, as where an answer is fed back.",
        evidence=f"{first.evidence}; {last.evidence}; no other layer takes {first.outputs:,}",
        value=first.outputs,
        path=first.path,
    )


def _embedding(layers: Sequence[Layer], last: Layer) -> str:
    """A norm of its width behind the last linear layer: what it puts out is not scores of classes."""
    behind = layers[list(layers).index(last) + 1 :]
    norm = next((one for one in behind if one.kind in {LayerKind.BATCH_NORM, LayerKind.NORM}), None)
    if norm is None or last.kind is not LayerKind.LINEAR or norm.outputs != last.outputs:
        return ""
    what = "batch norm" if norm.kind is LayerKind.BATCH_NORM else "norm"
    return f", and a {what} of as many stands behind it ({norm.path}): as of an embedding, not of classes"


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
    wide = [layer for layer in layers if layer.kind in _WEIGHTED | RECURRENT and layer.outputs]
    for before, layer in pairwise(wide):
        if layer.kind in RECURRENT and before.kind in CONVOLUTIONS and (layer.inputs or 0) > (before.outputs or 0):
            yield from _steps(before, layer, layers)
            continue
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


def _steps(before: Layer, layer: Layer, layers: Sequence[Layer]) -> Iterator[Claim]:
    """A recurrent layer right behind a convolution that takes all of its channels at several places in a step."""
    places, rest = divmod(layer.inputs or 0, before.outputs or 1)
    if rest or any(one.outputs == layer.inputs for one in layers):
        return
    yield Claim(
        topic=Topic.POSITIONS,
        says=f"{layer.name} takes {layer.inputs:,} values in a step: as many as {before.outputs:,} channels of "
        f"{places:,} places.",
        evidence=f"{layer.evidence}; {before.path} puts out {before.outputs:,}",
        value=places,
        path=layer.path,
    )
