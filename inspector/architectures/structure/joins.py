"""Widths that add up: parts joined side by side, a step up joined with what went down, channels folded into places."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise, permutations

from inspector.architectures.structure.blocks import layers_by_block, numbers_text
from inspector.architectures.structure.projections import role_of
from inspector.architectures.structure.tables import first_matrices
from inspector.architectures.structure.types import CONVOLUTIONS, RECURRENT, Claim, Layer, LayerKind, Stack, Topic

_WEIGHTED = CONVOLUTIONS | RECURRENT | {LayerKind.LINEAR, LayerKind.MATRIX}
_LEAST_CELLS, _GATES = 2, 4
_LEAST_JOINED, _MOST_PARTS = 2, 16
_LEAST_DOUBLED = 3
# Four times as many: two by two places in their stead.
_MOST_SUMS = 4
_FORWARDS = frozenset({LayerKind.CONVOLUTION, LayerKind.EITHER_CONVOLUTION})
_MATRICES = frozenset({LayerKind.LINEAR})
_SHUFFLED = {4: 2, 9: 3, 16: 4}


def joins(layers: Sequence[Layer], stacks: Sequence[Stack] = (), *, ordered: bool) -> Iterator[Claim]:
    """Only where the file keeps its order: a sum that fits is little without it."""
    if not ordered:
        return
    weighted = [layer for layer in layers if layer.kind in _WEIGHTED and layer.inputs and layer.outputs]
    yield from _side_by_side(weighted)
    yield from _tables(layers, weighted)
    skips = [*_skips(weighted)]
    skips = skips or [*_beside_before(weighted)]
    yield from skips or _doubled(layers, stacks)
    yield from _fewer(weighted)
    yield from _squares(weighted)


def _claim(says: str, evidence: str, layer: Layer, value: int | None = None) -> Claim:
    return Claim(topic=Topic.JOINS, says=says, evidence=evidence, value=value or layer.inputs, path=layer.path)


def _part(path: str, depth: int) -> str:
    return ".".join(path.split(".")[:depth])


def _side_by_side(weighted: Sequence[Layer]) -> Iterator[Claim]:
    """A layer that takes as many as all the parts before it put out together; of some of them, where they take the
    same."""
    given = {layer.outputs for layer in weighted}
    tops: dict[str, list[Layer]] = {}
    for layer in weighted:
        top = _part(layer.path, 1)
        first = top not in tops and len(tops) <= _MOST_PARTS
        if first and layer.inputs not in given and layer.kind in CONVOLUTIONS | {LayerKind.LINEAR}:
            parts = list(tops)
            for start in range(len(parts) - _LEAST_JOINED + 1):
                joined = parts[start:]
                ends = [tops[part][-1].outputs or 0 for part in joined]
                begins = {tops[part][0].inputs for part in joined}
                # Parts that take as many as this one stand behind each other.
                if layer.inputs in begins:
                    continue
                if sum(ends) == layer.inputs and (len(begins) == 1 or start == 0):
                    total = " + ".join(f"{end:,}" for end in ends)
                    names = ", ".join(joined)
                    yield _claim(
                        f"{layer.name} takes {layer.inputs:,}: as many as {names} put out together ({total}).",
                        f"{layer.evidence}; all the parts before it" + (" take the same" if len(begins) == 1 else ""),
                        layer,
                    )
                    return
        tops.setdefault(top, []).append(layer)


def _tables(layers: Sequence[Layer], weighted: Sequence[Layer]) -> Iterator[Claim]:
    """Tables in the file's order, all of them, shared out among layers that take sums of their widths."""
    maybe = {layer.path for layer in first_matrices(layers)}
    tables = [
        (layer, (layer.outputs if layer.kind is LayerKind.EMBEDDING else layer.inputs) or 0)
        for layer in layers
        if layer.kind is LayerKind.EMBEDDING or layer.path in maybe
    ]
    given = {layer.outputs for layer in weighted if layer.path not in maybe}
    takers = [layer for layer in weighted if layer.path not in maybe and layer.inputs not in given]
    said: list[Claim] = []
    place = 0
    for layer in takers:
        start, total = place, 0
        while place < len(tables) and total < (layer.inputs or 0):
            total += tables[place][1]
            place += 1
        if total != layer.inputs or place - start < _LEAST_JOINED:
            return
        names = ", ".join(table.name for table, _ in tables[start:place])
        widths = " + ".join(f"{width:,}" for _, width in tables[start:place])
        says = f"{layer.name} takes {layer.inputs:,}: as many as vectors of {names} joined ({widths})."
        said.append(_claim(says, f"{layer.evidence}; all the tables are shared out so, in their order", layer))
    if place == len(tables):
        yield from said


def _skips(weighted: Sequence[Layer]) -> Iterator[Claim]:
    """Behind a transposed convolution a layer that takes its width and one that was put out before."""
    found: list[tuple[Layer, Layer, int]] = []
    given: set[int] = set()
    for before, layer in pairwise(weighted):
        more = (layer.inputs or 0) - (before.outputs or 0)
        if before.kind is LayerKind.TRANSPOSED and layer.kind in CONVOLUTIONS and more > 0 and more in given:
            found.append((before, layer, more))
        given.add(before.outputs or 0)
    ups = sum(layer.kind is LayerKind.TRANSPOSED for layer in weighted)
    if len(found) < _LEAST_JOINED or len(found) < ups:
        return
    before, layer, more = found[0]
    yield _claim(
        f"After each of {len(found):,} transposed convolutions the next takes more than it puts out: {layer.name} "
        f"{layer.inputs:,} = {before.outputs:,} of {before.name} and {more:,} more, as layers before put out.",
        "; ".join(f"{layer.inputs:,} = {before.outputs:,} + {more:,}" for before, layer, more in found[:4]),
        layer,
        len(found),
    )


def _beside_before(weighted: Sequence[Layer]) -> Iterator[Claim]:
    """Layers of a width that nothing puts out and that is the sum of what the one before puts out and of what the
    network takes or has put out before: joined beside it. Convolutions are told where all such widths are sums."""
    plain = [layer for layer in weighted if role_of(layer) is None]
    given = {layer.outputs for layer in plain}
    first = {layer.inputs for layer in weighted[:1]}
    place = {layer.path: number for number, layer in enumerate(weighted)}
    for kinds, what in ((_FORWARDS, "convolutions"), (_MATRICES, "layers")):
        chain = [layer for layer in plain if layer.kind in kinds]
        before: set[int | None] = set(first)
        found: list[tuple[Layer, Layer, int]] = []
        odd: list[tuple[Layer, Layer, int]] = []
        for last, layer in pairwise(chain):
            before.add(last.outputs)
            more = (layer.inputs or 0) - (last.outputs or 0)
            if layer.inputs in given | first or more <= 0:
                continue
            neighbours = what == "convolutions" or place[layer.path] == place[last.path] + 1
            if neighbours and more in (before if what == "convolutions" else first):
                found.append((last, layer, more))
            elif neighbours and all(one.inputs != layer.inputs for _, one, _ in found):
                odd.append((last, layer, more))
        if not found or (what == "convolutions" and (odd or len(found) < _LEAST_JOINED)):
            continue
        of_width = {(layer.inputs, more): (last, layer, more) for last, layer, more in reversed(found)}
        sums = [
            f"{layer.name} {layer.inputs:,} = {last.outputs:,} + {more:,}"
            for last, layer, more in reversed(of_width.values())
        ]
        listed = ", ".join(sums[:_MOST_SUMS])
        listed += f" and {len(found) - len(sums[:_MOST_SUMS]):,} more" if len(found) > len(sums[:_MOST_SUMS]) else ""
        besides = [
            f"; {layer.name} takes {layer.inputs:,}, {more:,} more than the {last.outputs:,} of the one before it"
            for last, layer, more in odd[:1]
        ]
        outside = what == "layers" or all(more in first and more not in given for _, _, more in found)
        whose = "what the network takes" if outside else "an earlier output"
        yield _claim(
            f"{listed}: as many as the one before puts out and {whose} joined, as by a skip connection or of "
            f"branches side by side"
            f"{''.join(besides)}.",
            found[0][1].evidence + "; no layer puts out so many",
            found[0][1],
            len(found),
        )


def _doubled(layers: Sequence[Layer], stacks: Sequence[Stack]) -> Iterator[Claim]:
    """Blocks of one numbering of which each takes twice what the one of its number before it puts out."""
    numbered = [stack for stack in stacks if not stack.equal and stack.count >= _LEAST_DOUBLED][:_MOST_PARTS]
    ends = [_convolutions(inside) for inside in layers_by_block(layers, numbered)]
    places = {layer.path: place for place, layer in enumerate(layers)}
    for (one, before), (other, behind) in permutations(zip(numbered, ends, strict=True), 2):
        if before.keys() != behind.keys() or len(before) != one.count or one.path == other.path:
            continue
        pairs = [(before[number][-1], behind[number][0]) for number in before]
        if all(b.inputs == 2 * (a.outputs or 0) and places[a.path] < places[b.path] for a, b in pairs):
            yield _claim(
                f"{numbers_text(other)} each take twice what "
                f"{one.path} of the same number puts out, as where as many from elsewhere are joined beside it.",
                "; ".join(f"{b.inputs:,} = 2 x {a.outputs:,}" for a, b in pairs[:4]),
                pairs[0][1],
                len(pairs),
            )
            return


def _convolutions(inside: Mapping[int, Sequence[Layer]]) -> dict[int, list[Layer]]:
    told = {number: [one for one in group if one.kind in _FORWARDS] for number, group in inside.items()}
    return {number: group for number, group in told.items() if group}


def _fewer(weighted: Sequence[Layer]) -> Iterator[Claim]:
    """Two neighbours in one Sequential of which the second sees a half or a quarter of what the first puts out."""
    halves: list[tuple[Layer, Layer]] = []
    shuffles: list[tuple[Layer, Layer]] = []
    taken = {layer.inputs for layer in weighted}
    for before, layer in pairwise(weighted):
        if not {before.kind, layer.kind} <= {LayerKind.CONVOLUTION, LayerKind.EITHER_CONVOLUTION}:
            continue
        assert before.outputs and layer.inputs and before.inputs
        times, rest = divmod(before.outputs, layer.inputs)
        if rest or layer.inputs == 1:
            continue
        beside = before.path.rpartition(".")[0] == layer.path.rpartition(".")[0]
        # Of equal shapes, each in a list is its own branch.
        is_list = (before.inputs, before.outputs) == (layer.inputs, layer.outputs)
        if times == 2 and beside and not is_list and layer.path.rpartition(".")[2].isdecimal():
            halves.append((before, layer))
        elif times in _SHUFFLED and layer.inputs == before.inputs and _may_shuffle(before, taken):
            shuffles.append((before, layer))
    if halves:
        listed = ", ".join(f"{layer.name} sees {layer.inputs:,} of {before.outputs:,}" for before, layer in halves[:4])
        yield _claim(
            f"{listed}: in two groups, or after a gate that halves them.",
            f"{halves[0][1].evidence}; {halves[0][0].outputs:,} before it",
            halves[0][1],
            2,
        )
    if shuffles:
        before, layer = shuffles[0]
        assert before.outputs and layer.inputs
        side = _SHUFFLED[before.outputs // layer.inputs]
        names = ", ".join(one.name for one, _ in shuffles[:4])
        total = ""
        if len(shuffles) > 1 and all(a.outputs == before.outputs for a, _ in shuffles):
            total = f", {len(shuffles)} times one behind the other: {side ** len(shuffles):,} times as high and wide"
        times = before.outputs // layer.inputs
        yield _claim(
            f"{names} {'puts' if len(shuffles) == 1 else 'put'} out {before.outputs:,}, {times} times the "
            f"{layer.inputs:,} that the next takes: as before a pixel shuffle by {side}{total}.",
            f"{before.evidence}; {layer.evidence}",
            before,
            side,
        )


def _may_shuffle(layer: Layer, taken: Collection[int | None]) -> bool:
    """Whether nothing takes what it puts out, and it looks at neighbours: a bottleneck's last puts out four
    times as many as well."""
    return len(layer.kernel) == 2 and min(layer.kernel) > 1 and layer.outputs not in taken


def _squares(weighted: Sequence[Layer]) -> Iterator[Claim]:
    """A module that ends in the square of what it takes: a matrix for each of its inputs (a T-Net, Qi 2017, fig. 2)."""
    inside: dict[str, list[Layer]] = {}
    for layer in weighted:
        inside.setdefault(layer.path.rpartition(".")[0], []).append(layer)
    found = [
        (path, group[0], group[-1])
        for path, group in inside.items()
        if path
        and len(group) > 2
        and group[0].kind in CONVOLUTIONS
        and group[-1].kind is LayerKind.LINEAR
        and (group[0].inputs or 0) > 2
        and group[-1].outputs == (group[0].inputs or 0) ** 2
    ]
    for path, first, last in found[:2]:
        yield _claim(
            f"{path} takes {first.inputs:,} channels and ends in {last.outputs:,} values, as many as a matrix of "
            f"{first.inputs:,} x {first.inputs:,} for them.",
            f"{first.evidence} ... {last.evidence}",
            first,
        )


def cells(layers: Sequence[Layer], *, ordered: bool) -> Claim | None:
    """Convolutional LSTM cells: each puts out four gates of its state and takes the state beside what comes, which is
    the state of the one before (Shi 2015, eq. 3)."""
    convolutions = [layer for layer in layers if layer.kind in CONVOLUTIONS]
    chain: list[Layer] = []
    for layer in convolutions if ordered else ():
        if not layer.outputs or not layer.inputs or layer.outputs % _GATES or layer.inputs <= layer.outputs // _GATES:
            break
        if chain and layer.inputs != (chain[-1].outputs or 0) // _GATES + layer.outputs // _GATES:
            break
        if max(layer.kernel) < 2 or (chain and layer.path.rpartition(".")[2] != chain[-1].path.rpartition(".")[2]):
            break
        chain.append(layer)
    # Of every width there is some state; that all the others fit says so.
    if len(chain) < _LEAST_CELLS or all(a.outputs == b.inputs for a, b in pairwise(chain)):
        return None
    states = [(layer.outputs or 0) // _GATES for layer in chain]
    sums = [f"{layer.inputs:,} = {(layer.inputs or 0) - n:,} + {n:,}" for layer, n in zip(chain, states, strict=True)]
    comes = (chain[0].inputs or 0) - states[0]
    return Claim(
        topic=Topic.RECURRENT,
        says=f"{chain[0].name} to {chain[-1].name} fit {len(chain)} convolutional LSTM cells with states of "
        f"{', '.join(f'{state:,}' for state in states)} channels: each takes what comes and its own state "
        f"({', '.join(sums)}) and puts out four gates; the first is given {comes:,}.",
        evidence="; ".join(layer.evidence for layer in chain[:3]),
        value=comes,
        path=chain[0].path,
    )
