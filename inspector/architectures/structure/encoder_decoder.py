"""Widths that grow and shrink again, or only shrink: encoder-decoders, decoders alone, stacks that upsample."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

from inspector.architectures.structure.blocks import layers_by_block, numbers_text
from inspector.architectures.structure.stages import Stages
from inspector.architectures.structure.types import CONVOLUTIONS, Claim, Layer, LayerKind, Stack, Topic
from inspector.architectures.structure.wording import widths_text

_LEAST, _LEAST_UPS, _LEAST_SKIPS = 3, 2, 3
_DOWN = re.compile(r"enc|down|contract|backbone", re.I)
_UP = re.compile(r"dec|(?:^|_)up|expan", re.I)
_WEIGHTED = CONVOLUTIONS | {LayerKind.LINEAR}
_MOST_SHOWN, _MOST_COARSE, _MOST_ROWS = 4, 8, 24


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """Blocks or stages of one numbering: what each takes and puts out. place: of the first in the file."""

    where: str
    name: str
    takes: tuple[int, ...]
    puts: tuple[int, ...]
    first: Layer
    place: int


def encoder_decoder(
    layers: Sequence[Layer], stacks: Sequence[Stack], staged: Sequence[Stages], *, ordered: bool
) -> Iterator[Claim]:
    """One claim at most of the kind, and one of what is joined."""
    weighted = [layer for layer in layers if layer.kind in _WEIGHTED and layer.inputs and layer.outputs]
    rows = _rows(layers, stacks, staged)
    found = [*_mirrored(rows)] if ordered else []
    found = found or [*_by_steps(rows, weighted)]
    if not ordered:
        yield from found
        return
    found = found or [*_decoder_alone(weighted)]
    found = found or [*_transposed(weighted)]
    yield from found or _bottleneck(weighted)


def _kind(says: str, evidence: str, layer: Layer) -> Claim:
    return Claim(topic=Topic.KIND, says=says, evidence=evidence, path=layer.path)


def _rows(layers: Sequence[Layer], stacks: Sequence[Stack], staged: Sequence[Stages]) -> list[_Row]:
    places = {layer.path: place for place, layer in enumerate(layers)}
    rows = []
    long = [stack for stack in stacks if stack.count >= _LEAST]
    for stack, inside in zip(long, layers_by_block(layers, long), strict=True):
        blocks = [[one for one in inside[n] if one.kind in _WEIGHTED and one.outputs] for n in sorted(inside)]
        if all(blocks):
            rows.append(_row(numbers_text(stack), stack.path, blocks, places))
    rows += [
        _row(one.where, f"{one.parent}.{one.names[0]}".lstrip("."), [list(x) for x in one.layers], places)
        for one in staged
    ]
    return sorted(rows, key=lambda row: row.place)[:_MOST_ROWS]


def _row(where: str, name: str, blocks: Sequence[Sequence[Layer]], places: dict[str, int]) -> _Row:
    blocks = sorted(blocks, key=lambda block: places[block[0].path])
    return _Row(
        where=where,
        name=name,
        takes=tuple(block[0].inputs or 0 for block in blocks),
        puts=tuple(block[-1].outputs or 0 for block in blocks),
        first=blocks[0][0],
        place=places[blocks[0][0].path],
    )


def _mirrored(rows: Sequence[_Row]) -> Iterator[Claim]:
    """Stages that take, beside what comes, what the stages before them put out, the last of those first."""
    for place, down in enumerate(rows):
        for up in rows[place + 1 :]:
            grows = all(a <= b for a, b in pairwise(down.puts))
            shrinks = all(a >= b for a, b in pairwise(up.puts))
            # Rows inside blocks are no stages of the network, and agree by chance.
            if _parent(down) != _parent(up) or not all((*down.puts, *up.takes, *up.puts)):
                continue
            if not grows or not shrinks or abs(len(down.puts) - len(up.puts)) > 1:
                continue
            beside = next(
                (row for row in rows if row is not up and len(row.puts) == len(up.puts) and row is not down), None
            )
            comes = (down.puts[-1], *up.puts)
            if beside is not None and beside.place < up.place and _is_joined(up, beside.puts, down):
                comes = beside.puts
            joined = [taken - come for taken, come in zip(up.takes, comes, strict=False)]
            skips = _is_joined(up, comes, down)
            named = _DOWN.search(down.name) is not None and _UP.search(up.name) is not None
            if not skips and not (named and down.puts[-1] > down.puts[0] and up.puts[0] > up.puts[-1]):
                continue
            half = f", of which the next sees half ({widths_text(down.takes[1:])})" if _is_halved(down) else ""
            widths = f"{down.where} put out {widths_text(down.puts)}{half}, {up.where} {widths_text(up.puts)}"
            if skips:
                sums = ", ".join(
                    f"{taken:,} = {come:,} + {more:,}"
                    for taken, come, more in [*zip(up.takes, comes, joined, strict=False)][:_MOST_SHOWN]
                )
                yield _kind(
                    f"An encoder-decoder with joins (a U-shape): {widths}; each of the latter takes what comes and, "
                    f"joined, what the former put out, the last first ({sums}).",
                    "widths of the stages, and sums that fit all of them",
                    down.first,
                )
            else:
                yield _kind(
                    f"An encoder-decoder by its names and widths: {widths}.",
                    "names and widths of the stages",
                    down.first,
                )
            return


def _by_steps(rows: Sequence[_Row], weighted: Sequence[Layer]) -> Iterator[Claim]:
    """Stages that take what a list of transposed convolutions puts out and, joined, what others put out, the last of
    those first, whichever of them were made first."""
    lists: dict[str, list[Layer]] = {}
    for layer in weighted:
        parent, _, last = layer.path.rpartition(".")
        if layer.kind is LayerKind.TRANSPOSED and last.isdecimal():
            lists.setdefault(parent, []).append(layer)
    steps = next((group for group in lists.values() if len(group) >= _LEAST), [])
    comes = [layer.outputs or 0 for layer in steps]
    for down, up in permutations(rows, 2):
        size = len(up.takes)
        grows = all(a < b for a, b in pairwise(down.puts))
        if not steps or size > len(comes) or size < _LEAST or not grows or _parent(down) != _parent(up):
            continue
        if not _is_joined(up, comes, down):
            continue
        sums = ", ".join(
            f"{taken:,} = {come:,} + {taken - come:,}"
            for taken, come in [*zip(up.takes, comes, strict=False)][:_MOST_SHOWN]
        )
        yield _kind(
            f"An encoder-decoder with joins (a U-shape): {down.where} put out {widths_text(down.puts)}, {up.where} "
            f"{widths_text(up.puts)}; each of the latter takes what a step up puts out ({steps[0].name} to "
            f"{steps[-1].name}) and, joined, as many as the former put out, the last first ({sums}).",
            "widths of the stages, and sums that fit all of them",
            down.first,
        )
        return


def _is_halved(row: _Row) -> bool:
    return len(row.takes) >= _LEAST and all(a == 2 * b for a, b in zip(row.puts, row.takes[1:], strict=False))


def _parent(row: _Row) -> str:
    return row.name.rstrip(".").rpartition(".")[0]


def _is_joined(up: _Row, comes: Sequence[int], down: _Row) -> bool:
    joined = [taken - come for taken, come in zip(up.takes, comes, strict=False)]
    backwards = list(down.puts[::-1])
    return any(joined == backwards[start : start + len(joined)] for start in (0, 1))


def _decoder_alone(weighted: Sequence[Layer]) -> Iterator[Claim]:
    """Pairs of convolutions of which the second takes more than the first puts out, and nothing before it puts that
    out: maps come from outside."""
    chain = [layer for layer in weighted if layer.kind in CONVOLUTIONS]
    joined: list[tuple[Layer, int]] = []
    given: set[int] = set()
    for before, layer in pairwise(chain):
        more = (layer.inputs or 0) - (before.outputs or 0)
        # Both put out the same: the second fuses. A head beside takes an earlier width.
        if more > 0 and layer.outputs == before.outputs and before is chain[2 * len(joined)]:
            joined.append((layer, more))
        given.add(before.outputs or 0)
    first = chain[0] if chain else None
    if first is None or len(joined) < _LEAST_SKIPS or first is not weighted[0] or (first.inputs or 0) in given:
        return
    mores = [more for _, more in joined]
    if any(a < b for a, b in pairwise([first.inputs or 0, *mores])):
        return
    sums = ", ".join(f"{layer.inputs:,} = {(layer.inputs or 0) - more:,} + {more:,}" for layer, more in joined)
    taken = {layer.inputs for layer in chain}
    falling = [layer.outputs for layer in chain if layer.outputs in taken | {joined[-1][0].outputs}]
    own = list(dict.fromkeys([*falling, *(one.outputs for one in chain if one.outputs == one.inputs)]))
    widths = widths_text(own)
    maps, outside = ", ".join(f"{more:,}" for more in mores), widths_text([*mores[::-1], first.inputs])
    yield _kind(
        f"A decoder without its encoder: it takes {first.inputs:,} channels, and {len(joined):,} convolutions take "
        f"more than the one before puts out ({sums}), as maps of {maps} channels that an encoder puts out (its widths "
        f"then are {outside}); its own stages go {widths}.",
        "; ".join(layer.evidence for layer, _ in joined[:_MOST_SHOWN]),
        first,
    )


def _transposed(weighted: Sequence[Layer]) -> Iterator[Claim]:
    """Transposed convolutions of falling width: behind convolutions of growing width an encoder-decoder, alone a stack
    that upsamples."""
    ups = [layer for layer in weighted if layer.kind is LayerKind.TRANSPOSED and layer.inputs != layer.outputs]
    steps = _with_maps(weighted, ups)
    if steps:
        yield _kind(steps, "; ".join(layer.evidence for layer in ups[:_MOST_SHOWN]), ups[0])
        return
    if len(ups) < _LEAST_UPS or any((a.outputs or 0) < (b.outputs or 0) for a, b in pairwise(ups)):
        return
    # Each takes what the one before puts out, or more of it joined: others are of branches.
    chained = all((b.inputs or 0) % (a.outputs or 1) == 0 and b.inputs != a.inputs for a, b in pairwise(ups))
    behind = [(a, b) for a, b in pairwise(weighted) if a.kind is LayerKind.TRANSPOSED]
    skips = sum((b.inputs or 0) > (a.outputs or 0) and b.kind in CONVOLUTIONS for a, b in behind)
    # Joins behind nearly all of them say as much.
    chained = chained or skips >= max(_LEAST_UPS, len(ups) - 1)
    if (ups[0].inputs or 0) <= (ups[-1].outputs or 0) or not chained:
        return
    begin, end = weighted.index(ups[0]), weighted.index(ups[-1])
    before = [layer.outputs or 0 for layer in weighted[:begin] if layer.kind in CONVOLUTIONS]
    grows = len(set(before)) >= _LEAST and before[-1] == max(before) and before[0] == min(before)
    widths = widths_text([ups[0].inputs, *(layer.outputs for layer in ups)])
    if grows:
        joins = " with joins (a U-shape)" if skips >= min(_LEAST_UPS, len(ups)) else ""
        more = ", each joined with more on the way" if joins else ""
        seen = dict.fromkeys(before)
        yield _kind(
            f"An encoder-decoder{joins}: convolutions put out {widths_text(list(seen))}, then {len(ups):,} transposed "
            f"ones {widths_text([layer.outputs for layer in ups])}{more}.",
            f"{weighted[0].evidence} ... {ups[-1].evidence}",
            weighted[0],
        )
        return
    if any(a > b for a, b in pairwise(before)) or any(a.outputs != b.inputs for a, b in pairwise(ups)):
        return
    last = weighted[-1]
    dimensions = f"{len(ups[0].kernel)}-d "
    between = weighted[begin : end + 1]
    sound = len(ups[0].kernel) == 1 and last.outputs == 1 and (weighted[0].inputs or 0) > 1
    meant = ", as a vocoder makes a waveform of a spectrogram's bands" if sound else ""
    meant = meant or (", as a generator or a decoder makes a picture" if last.outputs in (1, 3) else "")
    yield _kind(
        f"A stack that upsamples: {len(ups):,} {dimensions}transposed convolutions {widths}, from the "
        f"{weighted[0].inputs:,} that {weighted[0].name} takes to {last.outputs:,}{meant}.",
        f"{between[0].evidence} ... {between[-1].evidence}; no layer before them narrows",
        ups[0],
    )


def _with_maps(weighted: Sequence[Layer], ups: Sequence[Layer]) -> str:
    """Transposed convolutions of which each takes what the one before puts out, what a convolution put out on the way
    down, and a few channels more, as a coarse answer that is joined too (Dosovitskiy 2015, fig. 3)."""
    downs = {layer.outputs or 0 for layer in weighted if layer.kind in CONVOLUTIONS - {LayerKind.TRANSPOSED}}
    small = sorted({layer.outputs or 0 for layer in weighted if (layer.outputs or 0) <= _MOST_COARSE})
    falls = len(ups) > _LEAST_UPS and all((a.outputs or 0) > (b.outputs or 0) for a, b in pairwise(ups))
    for more in (*small, 0) if falls else ():
        rests = [(b.inputs or 0) - (a.outputs or 0) - more for a, b in pairwise(ups)]
        if all(rest in downs and rest > _MOST_COARSE for rest in rests) and all(a >= b for a, b in pairwise(rests)):
            sums = ", ".join(
                f"{b.inputs:,} = {a.outputs:,} + {rest:,}" + (f" + {more:,}" if more else "")
                for (a, b), rest in zip(pairwise(ups), rests, strict=True)
            )
            coarse = f" and {more:,} channels of a coarser answer" if more else ""
            return (
                f"An encoder-decoder with joins (a U-shape): {len(ups):,} transposed convolutions {ups[0].inputs:,} to "
                f"{ups[-1].outputs:,}, each taking what the one before puts out, as many as a convolution put out on "
                f"the way down{coarse} ({sums})."
            )
    return ""


def _bottleneck(weighted: Sequence[Layer]) -> Iterator[Claim]:
    """Linear layers that narrow to a code and widen again to what they took."""
    if len(weighted) < _LEAST or any(layer.kind is not LayerKind.LINEAR for layer in weighted):
        return
    first, last = weighted[0], weighted[-1]
    code = min(layer.outputs or 0 for layer in weighted)
    place = next(n for n, layer in enumerate(weighted) if layer.outputs == code)
    down = [first.inputs or 0, *(layer.outputs or 0 for layer in weighted[: place + 1])]
    twin = [layer for layer in weighted[place + 1 : place + 2] if layer.inputs == weighted[place].inputs]
    up = [layer.outputs or 0 for layer in weighted[place + 1 + len(twin) :]]
    if (
        last.outputs != first.inputs
        or not up
        or any(a < b for a, b in pairwise(down))
        or any(a > b for a, b in pairwise(up))
        or weighted[place + 1 + len(twin)].inputs != code
    ):
        return
    both = f" ({weighted[place].name} and {twin[0].name} side by side, as a mean and a spread)" if twin else ""
    yield _kind(
        f"An autoencoder by its widths: {widths_text(down)} and up again {widths_text([code, *up])}{both}.",
        f"{first.evidence} ... {last.evidence}",
        first,
    )
