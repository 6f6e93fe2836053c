"""Kinds of networks that words in the names and the numbers at the ends show together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import permutations

from inspector.architectures.structure.blocks import numbers_text
from inspector.architectures.structure.types import CONVOLUTIONS, Claim, Layer, LayerKind, Stack, Topic

_WEIGHTED = CONVOLUTIONS | {LayerKind.LINEAR}
_PROPOSALS = re.compile(r"(?:^|[._])rpn(?:$|[._])", re.I)
_SCORES = re.compile(r"(?:^|[._])(?:cls|class\w*|logits?|score|objectness)(?:$|[._])", re.I)
_BOXES = re.compile(r"(?:^|[._])(?:loc|reg\w*|bbox\w*|box\w*|delta\w*)(?:$|[._])", re.I)
_DENSITY = re.compile(r"(?:^|[._])(?:alpha|density|sigma)(?:$|[._])", re.I)
_COLOUR = re.compile(r"(?:^|[._])(?:rgb|colou?r)(?:$|[._])", re.I)
_ENCODER = re.compile(r"enc(?:oder)?(?:$|[_s\d])", re.I)
_DECODER = re.compile(r"dec(?:oder)?(?:$|[_s\d])", re.I)
_COORDINATES, _COLOURS = 4, 3
_MOST_ANCHORS = 64


def kinds_by_names(layers: Sequence[Layer], stacks: Sequence[Stack], *, coded: bool) -> Iterator[Claim]:
    """A claim of each rule that holds. coded: whether an encoder-decoder is told already."""
    weighted = [one for one in layers if one.kind in _WEIGHTED and one.inputs and one.outputs]
    yield from _anchors(weighted)
    yield from _radiance(layers, weighted)
    if not coded:
        yield from _encoder_and_decoder(stacks)


def _encoder_and_decoder(stacks: Sequence[Stack]) -> Iterator[Claim]:
    """Blocks of one module called an encoder's and of one called a decoder's beside it."""
    outer = [one for one in stacks if one.count > 1]
    for encoder, decoder in permutations(outer, 2):
        names = [one.path.rstrip(".").rpartition(".") for one in (encoder, decoder)]
        beside = names[0][0] == names[1][0]
        if beside and _ENCODER.match(names[0][2]) and _DECODER.match(names[1][2]):
            yield Claim(
                topic=Topic.KIND,
                says=f"An encoder and a decoder by their names: {encoder.count:,} blocks {numbers_text(encoder)}, and "
                f"{decoder.count:,} {numbers_text(decoder)}.",
                evidence="names of blocks beside each other",
                path=encoder.path.rstrip("."),
            )
            return


def _anchors(weighted: Sequence[Layer]) -> Iterator[Claim]:
    """In a module called RPN scores and boxes of as many anchors: one or two scores and four numbers for each (Ren
    2015, section 3.1)."""
    inside = [one for one in weighted if _PROPOSALS.search(one.path)]
    scores = next((one for one in reversed(inside) if _SCORES.search(one.path)), None)
    boxes = next((one for one in reversed(inside) if _BOXES.search(one.path)), None)
    if scores is None or boxes is None or scores is boxes:
        return
    anchors, rest = divmod(boxes.outputs or 0, _COORDINATES)
    each, left = divmod(scores.outputs or 0, anchors) if anchors else (0, 1)
    if rest or left or each not in (1, 2) or not 1 < anchors <= _MOST_ANCHORS:
        return
    yield Claim(
        topic=Topic.KIND,
        says=f"Proposals of boxes (an RPN) by the names: {scores.name} puts out {scores.outputs:,} = {each} x "
        f"{anchors:,}, {boxes.name} {boxes.outputs:,} = {_COORDINATES} x {anchors:,}: {each} "
        f"{'score' if each == 1 else 'scores'} and {_COORDINATES} coordinates for each of {anchors:,} anchors.",
        evidence=f"{scores.evidence}; {boxes.evidence}",
        value=anchors,
        path=scores.path,
    )


def _radiance(layers: Sequence[Layer], weighted: Sequence[Layer]) -> Iterator[Claim]:
    """Linear layers that end in one density and three colours (Mildenhall 2020, section 3)."""
    if not weighted or any(one.kind is not LayerKind.LINEAR for one in layers):
        return
    taken = {one.inputs for one in weighted}
    ends = [one for one in weighted if one.outputs not in taken]
    density = next((one for one in ends if one.outputs == 1 and _DENSITY.search(one.path.replace("_", "."))), None)
    colours = next(
        (one for one in ends if one.outputs == _COLOURS and _COLOUR.search(one.path.replace("_", "."))), None
    )
    if density is None or colours is None:
        return
    yield Claim(
        topic=Topic.KIND,
        says=f"A radiance field (NeRF) by its names and widths: linear layers that end in one density ({density.name}) "
        f"and {_COLOURS} colours ({colours.name}).",
        evidence=f"{density.evidence}; {colours.evidence}",
        path=density.path,
    )
