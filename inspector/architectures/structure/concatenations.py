"""Widths joined of several layers, or of one and something from outside: branches, heads, coordinates, interactions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from inspector.architectures.structure.blocks import blocks_of, layers_by_block
from inspector.architectures.structure.paths import above
from inspector.architectures.structure.projections import role_of
from inspector.architectures.structure.types import CONVOLUTIONS, RECURRENT, Claim, Layer, LayerKind, Stack, Topic

_WEIGHTED = CONVOLUTIONS | RECURRENT | {LayerKind.LINEAR, LayerKind.MATRIX}
_MATRICES = frozenset({LayerKind.LINEAR, LayerKind.MATRIX})
_NUMBER = re.compile(r"\d+")
_MOST, _MOST_LAYERS, _MOST_NAMED = 4, 4000, 4
# Each is held against all layers before it.
_MOST_ASKED, _MOST_BRANCHES = 32, 200
# Coordinates, a normal, a time: what is joined to the width of a block from outside.
_MOST_CONSTANT = 16
_LEAST_TABLES, _LEAST_BRANCHES = 3, 3
_TIMES = (2, 3, 4)
_BETWEEN = frozenset({LayerKind.DEPTHWISE, LayerKind.TENSOR})
_FOLDED_CLOUD = 3  # dimensions of a kernel over a volume


def concatenations(layers: Sequence[Layer], stacks: Sequence[Stack], told: str, *, ordered: bool) -> Iterator[Claim]:
    """Only where the file keeps its order. told: sentences about sums already."""
    if ordered and len(layers) <= _MOST_LAYERS:
        yield from (claim for claim in _all(layers, stacks) if claim.topic is Topic.FED or claim.path not in told)


def _all(layers: Sequence[Layer], stacks: Sequence[Stack]) -> Iterator[Claim]:
    weighted = [layer for layer in layers if layer.kind in _WEIGHTED and layer.inputs and layer.outputs]
    yield from _branches(weighted)
    yield from _heads_fed_back(weighted)
    yield from _constants(layers, stacks)
    yield from _interactions(layers, weighted)
    yield from _skipped_steps(weighted)
    yield from _volumes(weighted)
    yield from _multiples(stacks, weighted)
    yield from _frequencies(weighted)


def _claim(says: str, layer: Layer, *more: Layer, value: int | None = None) -> Claim:
    evidence = "; ".join(one.evidence for one in (layer, *more[:_MOST_NAMED]))
    return Claim(topic=Topic.JOINS, says=says, evidence=evidence, value=value or layer.inputs, path=layer.path)


def gathers_siblings(layer: Layer, layers: Sequence[Layer]) -> bool:
    """Whether it takes as many as layers of one numbering before it put out together."""
    weighted = [one for one in layers if one.kind in _WEIGHTED and one.inputs and one.outputs]
    place = next((n for n, one in enumerate(weighted) if one is layer), 0)
    groups = _siblings(weighted[:place])
    return any(
        group[-1] is weighted[place - 1] and sum(x.outputs or 0 for x in group) == layer.inputs for group in groups
    )


def _siblings(weighted: Sequence[Layer]) -> list[list[Layer]]:
    """The last layers of modules that differ by one number in their names, as they stand in the file."""
    last: dict[str, tuple[str, Layer]] = {}
    for layer in weighted:
        names = layer.path.split(".")
        for depth, name in enumerate(names):
            if name[-1:].isdecimal() and (depth or not name.isdecimal()):
                last[".".join(names[: depth + 1])] = (_NUMBER.sub("*", ".".join(names[: depth + 1])), layer)
                break
    groups: dict[str, list[Layer]] = {}
    for pattern, layer in last.values():
        groups.setdefault(pattern, []).append(layer)
    # Of those that take the same; what takes another's output stands behind it.
    found = [
        group
        if len({one.outputs for one in group}) == 1 and len({one.inputs for one in group}) == len(group)
        else [one for one in group if one.inputs == group[0].inputs]
        for group in groups.values()
    ]
    chained = [all(a.outputs == b.inputs for a, b in pairwise(group)) for group in found]
    return [group for group, row in zip(found, chained, strict=True) if len(group) >= _LEAST_BRANCHES and not row]


def _is_within(layer: Layer, group: Sequence[Layer]) -> bool:
    """Whether it stands in the numbered module of one of them."""
    names = {_NUMBER.sub("*", name) for one in group for name in (one.path, *above(one.path)) if name}
    return any(_NUMBER.sub("*", name) in names for name in (layer.path, *above(layer.path)) if _NUMBER.search(name))


def _named(group: Sequence[Layer]) -> str:
    return f"{group[0].name} to {group[-1].name}" if len(group) > 2 else " and ".join(one.name for one in group)


def _added(widths: Sequence[int]) -> str:
    """ "4 x 32", "128 + 64"."""
    return f"{len(widths):,} x {widths[0]:,}" if len(set(widths)) == 1 else " + ".join(f"{w:,}" for w in widths)


def _branches(weighted: Sequence[Layer]) -> Iterator[Claim]:
    """A layer behind branches that takes all that they put out, or that and what was put out before them."""
    given = {layer.outputs for layer in weighted}
    said = 0
    asked = 0
    for place, layer in enumerate(weighted):
        if (
            layer.inputs in given
            or asked >= _MOST_BRANCHES
            or said >= _MOST
            or layer.kind in RECURRENT
            or place < _LEAST_BRANCHES
        ):
            continue
        asked += 1
        for group in _siblings(weighted[:place]):
            if weighted[place - 1] is not group[-1] or _is_within(layer, group):
                continue
            widths = [one.outputs or 0 for one in group]
            total, more = sum(widths), (layer.inputs or 0) - sum(widths)
            if more == 0:
                yield _claim(
                    f"{layer.name} takes {layer.inputs:,} = {_added(widths)}: all that {_named(group)} put out.",
                    layer,
                    *group,
                )
                said += 1
                break
            alike = len({(one.inputs, one.outputs) for one in group}) == 1
            if more > 0 and alike:
                before = sorted({one.outputs or 0 for one in weighted[:place]}, reverse=True)
                rest = (
                    f"{more:,}"
                    if more in before
                    else next((f"{a:,} + {b:,}" for a, b in combinations(before, 2) if a + b == more), "")
                )
                if rest:
                    yield _claim(
                        f"{layer.name} takes {layer.inputs:,} = {rest} + {_added(widths)}: {total:,} by "
                        f"{_named(group)} side by side, likely joined with widths put out before them.",
                        layer,
                        *group,
                    )
                    said += 1
                    break


def _heads_fed_back(weighted: Sequence[Layer]) -> Iterator[Claim]:
    """A later stage that takes what heads before it put out, which nothing takes alone, beside an earlier width."""
    taken = {layer.inputs for layer in weighted}
    given: set[int] = set()
    loose: list[Layer] = []
    for layer in weighted:
        heads = [one for one in loose if one.path.partition(".")[0] != layer.path.partition(".")[0]]
        widths = list(dict.fromkeys(one.outputs or 0 for one in heads))
        more = (layer.inputs or 0) - sum(widths)
        if len(widths) > 1 and more in given and layer.inputs not in given:
            parts = " + ".join(f"{width:,}" for width in (more, *widths))
            yield _claim(
                f"{layer.name} takes {layer.inputs:,} = {parts}: what {', '.join(one.name for one in heads)} put out, "
                f"joined with {more:,} that layers before them put out.",
                layer,
                *heads,
            )
            return
        given.add(layer.outputs or 0)
        if layer.outputs not in taken:
            loose.append(layer)


def _constants(layers: Sequence[Layer], stacks: Sequence[Stack]) -> Iterator[Claim]:
    """Blocks of which each takes as many more than the one before puts out."""
    unequal = [stack for stack in stacks if not stack.equal and stack.count > 2]
    for stack, inside in zip(unequal, layers_by_block(layers, unequal), strict=True):
        blocks = [[one for one in inside[n] if one.kind in _WEIGHTED] for n in sorted(inside)]
        if len(blocks) < 3 or not all(blocks):
            continue
        growth = {(b[0].inputs or 0) - (a[0].inputs or 0) for a, b in pairwise(blocks)}
        if len(growth) == 1 and growth == {block[-1].outputs for block in blocks}:
            yield _claim(
                f"{stack.block_name(0)} to {stack.block_name(-1)} each take {growth.pop():,} more than the one before "
                "takes, as many as each puts out: all that was put out before is joined (a dense block).",
                blocks[0][0],
            )
            continue
        more = {(b[0].inputs or 0) - (a[-1].outputs or 0) for a, b in pairwise(blocks)}
        if len(more) == 1 and 0 < (constant := more.pop()) <= _MOST_CONSTANT:
            sums = ", ".join(f"{b[0].inputs:,} = {a[-1].outputs:,} + {constant:,}" for a, b in pairwise(blocks[:5]))
            meant = ", as coordinates of points in space joined to them" if constant == 3 else ""
            yield _claim(
                f"{stack.block_name(1)} to {stack.block_name(-1)} each take {constant:,} more than the one before puts "
                f"out ({sums}){meant}.",
                blocks[1][0],
                value=constant,
            )


def _interactions(layers: Sequence[Layer], weighted: Sequence[Layer]) -> Iterator[Claim]:
    """A number for each pair of vectors, as factorisation machines and recommenders make (Naumov 2019, section 2)."""
    tables = Counter(layer.outputs or 0 for layer in layers if layer.kind is LayerKind.EMBEDDING)
    given = {layer.outputs for layer in weighted}
    for width, number in tables.most_common(_MOST):
        if number < _LEAST_TABLES:
            yield from _beside_tables(width, number, layers, weighted)
            continue
        of_width = [one for one in weighted if one.outputs == width][:2]
        for layer in weighted:
            if layer.kind is not LayerKind.LINEAR or layer.inputs in given:
                continue
            for beside in (0, 1):
                vectors = number + beside
                pairs = vectors * (vectors - 1) // 2
                maker = next((one for one in of_width if one is not layer), None)
                if (layer.inputs or 0) - pairs not in (0, width) or (beside and maker is None):
                    continue
                dense = f"{width:,} + " if layer.inputs != pairs else ""
                whose = f"{number:,} tables" + (f" and {maker.name}" if beside and maker else "")
                yield _claim(
                    f"{layer.name} takes {layer.inputs:,} = {dense}{vectors:,} x {vectors - 1:,} / 2: a number for "
                    f"each pair of {vectors:,} vectors of {width:,} ({whose})"
                    + (f", beside the {width:,} themselves." if dense else "."),
                    layer,
                )
                return
            if (layer.inputs or 0) == number * width:
                yield _claim(
                    f"{layer.name} takes {layer.inputs:,} = {number:,} x {width:,}: the vectors of {number:,} tables "
                    "side by side.",
                    layer,
                )
                return


def _beside_tables(width: int, number: int, layers: Sequence[Layer], weighted: Sequence[Layer]) -> Iterator[Claim]:
    """A layer that takes the vectors of the tables of one width side by side, or one of them beside what the layer
    before it puts out."""
    given = {layer.outputs for layer in weighted}
    taken = {layer.inputs for layer in weighted}
    tables = [one.name for one in layers if one.kind is LayerKind.EMBEDDING and one.outputs == width]
    for before, layer in pairwise([None, *weighted]):
        if layer is None or layer.kind is not LayerKind.LINEAR:
            continue
        loose = before is not None and before.outputs not in taken
        if number > 1 and layer.inputs == number * width and layer.inputs not in given and not loose:
            yield _claim(
                f"{layer.name} takes {layer.inputs:,} = {number:,} x {width:,}: the vectors of "
                f"{' and '.join(tables[:_MOST_NAMED])} side by side.",
                layer,
            )
        elif (
            before is not None
            and loose
            and before.kind is LayerKind.LINEAR
            and layer.inputs == (before.outputs or 0) + width
        ):
            yield _claim(
                f"{layer.name} takes {layer.inputs:,} = {before.outputs:,} + {width:,}: what {before.name} puts out "
                f"and as many as a vector of {tables[0]} has, likely joined.",
                layer,
                before,
            )


def _skipped_steps(weighted: Sequence[Layer]) -> Iterator[Claim]:
    """A linear layer behind two recurrent ones that takes the last step of one and several of the other."""
    cells = [layer for layer in weighted if layer.kind in RECURRENT]
    given = {layer.outputs for layer in weighted}
    taken = {layer.inputs for layer in weighted}
    for one, other in pairwise(cells[:_MOST_ASKED]):
        if one.inputs != other.inputs or not one.outputs or not other.outputs:
            continue
        for layer in weighted[weighted.index(other) + 1 :]:
            times, rest = divmod((layer.inputs or 0) - one.outputs, other.outputs)
            if layer.kind is LayerKind.LINEAR and layer.inputs not in given and times > 1 and not rest:
                beside = f"; {times:,} is what another layer takes" if times in taken else ""
                yield _claim(
                    f"{layer.name} takes {layer.inputs:,} = {one.outputs:,} + {times:,} x {other.outputs:,}: what "
                    f"{one.name} puts out and {times:,} steps of {other.name}{beside}.",
                    layer,
                    one,
                    other,
                )
                return


def _volumes(weighted: Sequence[Layer]) -> Iterator[Claim]:
    """The first 3-d convolution behind 2-d ones that takes twice what the last of them puts out (Chang 2018)."""
    plain = [layer for layer in weighted if layer.kind in CONVOLUTIONS]
    for before, layer in pairwise(plain):
        if len(before.kernel) + 1 == len(layer.kernel) == _FOLDED_CLOUD and layer.inputs == 2 * (before.outputs or 0):
            yield _claim(
                f"{layer.name}, the first 3-d convolution, takes {layer.inputs:,} = 2 x {before.outputs:,}: twice what "
                f"{before.name}, the last 2-d one, puts out, as the maps of two pictures joined in a cost volume.",
                layer,
                before,
            )
            return


def _multiples(stacks: Sequence[Stack], weighted: Sequence[Layer]) -> Iterator[Claim]:
    """In blocks of one width a layer that takes several of it, which the layer before it does not put out, and nothing
    before the blocks."""
    said = 0
    places = {layer.path: place for place, layer in enumerate(weighted)}
    blocks = blocks_of(stacks)

    def in_blocks(path: str) -> bool:
        return any(one in blocks for one in above(path))

    for stack in stacks[:_MOST_ASKED]:
        wide = [one for one in stack.layers if one.kind in _WEIGHTED and one.inputs and one.outputs]
        if not stack.equal or len(wide) < 3 or said >= _MOST:
            continue
        width = wide[-1].outputs or 0
        found: list[tuple[Layer, int]] = []
        before_all = [one for one in weighted[: places[wide[0].path]] if not in_blocks(one.path)]
        for place, layer in enumerate(wide):
            before = wide[place - 1].outputs if place else width
            at = stack.layers.index(layer)
            # What is of no such kind between, as filters of one channel each, may widen or narrow.
            odd = any(one.kind in _BETWEEN for one in stack.layers[max(0, at - 3) : at])
            times, rest = divmod(layer.inputs or 0, width)
            is_own = any(one.outputs == layer.inputs for one in (*before_all, *wide[:place]))
            if not rest and times in _TIMES and before == width and not (is_own or odd) and role_of(layer) is None:
                found.append((layer, times))
        # What the block takes is told by most of its layers.
        plain = sum(one.inputs == width for one in wide)
        if not found or plain < 2:
            continue
        root = f"{stack.path}{stack.numbers[0]}."
        told = [f"{one.path.removeprefix(root)} {one.inputs:,} = {n} x {width:,}" for one, n in found[:_MOST_NAMED]]
        yield _claim(
            f"In each of {stack.block_name(0)} to {stack.block_name(-1)} some take several vectors of the block's "
            f"width side by side: {', '.join(told)}.",
            found[0][0],
        )
        said += 1


def _frequencies(weighted: Sequence[Layer]) -> Iterator[Claim]:
    """Three coordinates with sines and cosines of several frequencies: 3 + 3 x 2 x n (Mildenhall 2020, eq. 4). Told
    where two inputs from outside are of that form: one such number may be any."""
    if not weighted or any(layer.kind is not LayerKind.LINEAR for layer in weighted):
        return
    first = weighted[0]
    outside = [first.inputs or 0]
    given = {layer.outputs or 0 for layer in weighted}
    for before, layer in pairwise(weighted):
        more = (layer.inputs or 0) - (before.outputs or 0)
        if layer.inputs not in given and more > 0 and more not in outside and layer.inputs != first.inputs:
            outside.append(more)
    parts = []
    for width in outside[:2]:
        pairs, rest = divmod(width - 3, 6)
        if rest or pairs < 2:
            return
        parts.append(f"{width:,} = 3 + 3 x 2 x {pairs:,}")
    if len(parts) > 1:
        yield Claim(
            topic=Topic.FED,
            says=f"{' and '.join(parts)}: as many as three coordinates with sines and cosines of so many frequencies.",
            evidence=first.evidence,
            value=first.inputs,
            path=first.path,
        )
