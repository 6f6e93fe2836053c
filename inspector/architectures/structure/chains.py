"""The layers of each part in one sentence, with kernels and widths, and blocks of one build in another."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from inspector.architectures.structure.blocks import blocks_of, equal_text, layers_by_block, numbers_text, unequal_text
from inspector.architectures.structure.paths import above
from inspector.architectures.structure.tables import first_matrices
from inspector.architectures.structure.takes import MOST_RECURRENT
from inspector.architectures.structure.twins import Twins, again_of, is_again
from inspector.architectures.structure.types import NORMS, RECURRENT, Claim, Layer, LayerKind, Stack, Topic
from inspector.architectures.structure.wording import is_weighty, layers_text, norms_text

_MOST_LINES = 20
_LEAST_ALIKE, _MOST_NORMS, _MOST_ROOTS = 3, 6, 8
_MOST_PERIOD = 4
_NUMBER = re.compile(r"\d+")


def repeats(layers: Sequence[Layer], stacks: Sequence[Stack], pairs: Sequence[Twins] = ()) -> Iterator[Claim]:
    """A sentence for each stack, or for many in modules numbered alike. Widths of its layers are said of equal blocks,
    of others what each puts out."""
    again = again_of(pairs)
    stacks = [stack for stack in stacks if not is_again(stack.path, again)]
    # Recurrent layers have sentences of their own.
    cells = {layer.path: layer.kind for layer in layers if layer.kind in RECURRENT}
    if cells and len(cells) <= MOST_RECURRENT:
        layers = [layer for layer in layers if layer.path not in cells]
        stacks = [replace(one, layers=tuple(x for x in one.layers if x.path not in cells)) for one in stacks]
    else:
        cells = {}
    inside = layers_by_block(layers, stacks)
    beside = _numbers(layers)
    told = [equal_text(stack) if stack.equal else unequal_text(stack, inside[n]) for n, stack in enumerate(stacks)]
    for _, group in groupby(enumerate(stacks), key=lambda one: _family(one[1])):
        alike = list(group)
        if len(alike) >= _LEAST_ALIKE and "*" in _family(alike[0][1])[0]:
            yield _in_each([stack for _, stack in alike], [told[place] for place, _ in alike])
            continue
        for place, stack in alike:
            where = numbers_text(stack)
            what = "equal blocks" if stack.equal else "blocks of one build"
            evidence = "the same tensors in the same modules, "
            evidence += "all shapes equal" if stack.equal else "the same kernels, other widths"
            if stack.extra:
                evidence = f"the same layers but for {len(stack.extra):,} more in some"
            parent, _, stem = stack.path.rpartition(".")
            all_ = len(beside[stack.path])
            # Numbers are left out where something without tensors stands.
            whole = all(str(number) in beside[stack.path] for number in range(all_))
            more = f" (of {all_:,} in {parent})" if parent and not stem and whole and all_ > stack.count else ""
            text = "; ".join(part for part in (told[place], _cells_text(stack, cells)) if part)
            says = f"{where}{more} are {stack.count:,} {what}: {text}."
            yield Claim(topic=Topic.REPEATS, says=says, evidence=evidence, value=stack.count, path=stack.path)


def _cells_text(stack: Stack, cells: Mapping[str, LayerKind]) -> str:
    held = sorted({kind for path, kind in cells.items() if path.startswith(f"{stack.path}{stack.first}.")})
    return f"{', '.join(held)} as told above" if held else ""


def _numbers(layers: Sequence[Layer]) -> dict[str, set[str]]:
    """The numbered modules that hold layers, by what their names begin with."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for layer in layers:
        for path in (layer.path, *above(layer.path)):
            number = path.rpartition(".")[2]
            if number.isdecimal():
                found[path[: len(path) - len(number)]].add(number)
    return found


def _family(stack: Stack) -> tuple[str, tuple[object, ...]]:
    """Stacks in modules that differ by a number: as many blocks of the same layers."""
    parent, _, stem = stack.path.rpartition(".")
    pattern = f"{_NUMBER.sub('*', parent)}.{stem}"
    return pattern, (stack.first, stack.count, stack.picked, stack.equal, len(stack.layers), bool(stack.inner))


def _in_each(stacks: Sequence[Stack], told: Sequence[str]) -> Claim:
    """What repeats in the modules is said by their place in it: "in turn 3-wide, 7-wide, 11-wide", each with one."""
    first, last = (stack.path.rpartition(".") for stack in (stacks[0], stacks[-1]))
    number, count = stacks[0].first, stacks[0].count
    what = "equal blocks" if stacks[0].equal else "blocks of one build"
    where = f"Each of {len(stacks):,} modules {first[0]} to {last[0]} has {count:,} {what} {first[2]}{number} to "
    where += f"{first[2]}{number + count - 1}"
    return Claim(
        topic=Topic.REPEATS,
        says=f"{where}: {_in_turn(told)}.",
        evidence="the same tensors in the same modules, in each of them",
        value=count * len(stacks),
        path=stacks[0].path,
    )


def _in_turn(told: Sequence[str]) -> str:
    """ "by turns A / B" where two or three texts, or what stands before their first space, come round."""
    unlike = [text for text, _ in groupby(told)]
    heads, tails = ([text.partition(" ")[place] for text in told] for place in (0, 2))
    for period in range(2, _MOST_PERIOD + 1):
        if len(told) < 2 * period or len(told) % period or len(set(heads[:period])) < 2:
            continue
        if all(told[n] == told[n % period] for n in range(len(told))):
            return f"by turns {' / '.join(told[:period])}"
        # Only what is written first changes within a round, the rest from round to round.
        rounds = [tails[start : start + period] for start in range(0, len(told), period)]
        if all(heads[n] == heads[n % period] for n in range(len(told))) and all(len(set(one)) == 1 for one in rounds):
            widths = " / ".join(tail for tail, _ in groupby(one[0] for one in rounds))
            return (
                f"by turns {', '.join(heads[:period])} (a kernel for each module, {period} modules in a round, "
                f"{len(rounds)} rounds): {widths}"
            )
    return " / ".join(unlike)


def lines(layers: Sequence[Layer], stacks: Sequence[Stack], pairs: Sequence[Twins] = ()) -> Iterator[Claim]:
    """A sentence for the layers of each module, in the file's order, that are in no stack; at most twenty."""
    elsewhere = {layer.path for layer in first_matrices(layers)}
    recurrent = [layer.path for layer in layers if layer.kind in RECURRENT]
    if len(recurrent) <= MOST_RECURRENT:
        elsewhere.update(recurrent)
    again = again_of(pairs)
    left = [layer for layer in layers if layer.path not in elsewhere and not is_again(layer.path, again)]
    groups = _groups(left, stacks)
    told = any(map(is_weighty, layers))
    # Of tensors at the top that nothing weighs beside, it is not known that they are a network's.
    in_modules = told or all("." in layer.path for layer in layers)
    kept = [
        (root, group) for root, group in groups if any(map(is_weighty, group)) or (in_modules and _own_matrices(group))
    ]
    alike: dict[object, list[str]] = {}
    for root, group in kept:
        alike.setdefault(_line_build(root, group), []).append(root)
    rows = []
    for root, group in kept:
        roots = alike[_line_build(root, group)]
        if root and len(roots) >= _LEAST_ALIKE and len(set(roots)) == len(roots):
            if root == roots[0]:
                rows.append((root, group, roots))
        else:
            rows.append((root, group, [root]))
    for root, group, roots in rows[:_MOST_LINES]:
        named = [layer for layer in group if is_weighty(layer)] or list(group)
        ends = [layer for layer in group if layer.kind not in NORMS]
        first, last = ends[0].name, ends[-1].name
        where = (
            root if root and not _is_split(root, groups, stacks) else first if first == last else f"{first} to {last}"
        )
        weights = [layer.evidence for layer in (named[0], named[-1])]
        evidence = weights[0] if len(named) == 1 else f"{weights[0]} ... {weights[1]}"
        yield Claim(
            topic=Topic.LAYERS,
            says=f"{where if len(roots) == 1 else _each_text(roots)}: {layers_text(group, root)}.",
            evidence=evidence,
            value=len(named),
            path=root or named[0].path,
        )
    if len(rows) > _MOST_LINES:
        rest = [layer for _, group, _ in rows[_MOST_LINES:] for layer in group if is_weighty(layer)]
        yield Claim(
            topic=Topic.LAYERS,
            says=f"And {len(rows) - _MOST_LINES:,} more modules with {len(rest):,} layers.",
            evidence="their names and shapes",
            value=len(rest),
        )

    if told:
        yield from _norms_alone([(root, group) for root, group in groups if all(x.kind in NORMS for x in group)])


def _line_build(root: str, group: Sequence[Layer]) -> object:
    """What rows of one sentence share: its words, and the layers that it leaves out."""
    return layers_text(group, root), tuple((one.kind, one.kernel, one.inputs, one.outputs) for one in group)


def _each_text(roots: Sequence[str]) -> str:
    *most, last = roots[:_MOST_ROOTS]
    left = len(roots) - _MOST_ROOTS
    if left > 0:
        return f"Each of {', '.join([*most, last])} and {left:,} more"
    return f"Each of {', '.join(most)} and {last}"


def _norms_alone(groups: Sequence[tuple[str, Sequence[Layer]]]) -> Iterator[Claim]:
    """Norms in no other sentence, by the modules that they are in."""
    if not groups:
        return
    modules: dict[str, list[Layer]] = {}
    for _, group in groups:
        for layer in group:
            parent, _, last = layer.path.rpartition(".")
            modules.setdefault(parent if last.isdecimal() else layer.path, []).append(layer)
    said = [f"{path or 'at the top'}: {norms_text(group)}" for path, group in list(modules.items())[:_MOST_NORMS]]
    more = f"; and in {len(modules) - _MOST_NORMS:,} more modules" if len(modules) > _MOST_NORMS else ""
    every = [layer for group in modules.values() for layer in group]
    yield Claim(
        topic=Topic.LAYERS,
        says=f"Beside them {'; '.join(said)}{more}.",
        evidence=every[0].evidence,
        value=len(every),
        path=every[0].path,
    )


def _own_matrices(group: Sequence[Layer]) -> bool:
    """Whether something in it is more than a row: a table, a picture; or a single number."""
    return any(layer.kind is LayerKind.TENSOR and ("x" in layer.more or layer.more == "scalar") for layer in group)


def _is_split(root: str, groups: Sequence[tuple[str, Sequence[Layer]]], stacks: Sequence[Stack]) -> bool:
    """Whether other sentences tell of the same module."""
    lines = sum(one == root or one.startswith(f"{root}.") for one, _ in groups)
    return lines > 1 or any(stack.path.startswith(f"{root}.") for stack in stacks)


def _groups(layers: Sequence[Layer], stacks: Sequence[Stack]) -> list[tuple[str, list[Layer]]]:
    """Neighbours under the innermost module that holds two layers with weights, without those in a stack."""
    weighty: Counter[str] = Counter()
    for layer in layers:
        if is_weighty(layer):
            weighty.update(above(layer.path))
    found: list[tuple[str, list[Layer]]] = []
    blocks = blocks_of(stacks)
    open_ = False
    for layer in layers:
        if layer.kind in {LayerKind.EMBEDDING, LayerKind.FOURIER} or any(
            path in blocks for path in (layer.path, *above(layer.path))
        ):
            open_ = False
            continue
        root = next((path for path in above(layer.path) if weighty[path] > 1), "")
        if not open_ or found[-1][0] != root:
            found.append((root, []))
        found[-1][1].append(layer)
        open_ = True
    return found
