"""Which parameter an optimizer's i-th entry is, where the file keeps numbers and no names.

A script goes through `model.parameters()` and puts each one into a group; the numbers then run group by group. So each
group has its parameters in the model's order. One group, or one for each parameter, leaves nothing open. Several groups
are believed where the shapes allow one way of dealing. Where groups of whole modules are out of the question and
exactly one division by leaf name and dimensions fits (weight decay for all but biases), that is asked about: groups put
together by hand can look the same. Fewer entries than parameters are believed where the shapes allow one way of
choosing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import groupby, product

from inspector.checkpoint.types import Shape
from inspector.units import counted, human_shape

Groups = list[list[str]]
_MOST_READINGS = 1024
_MOST_STATES = 300_000
_MOST_COMPARED = 4_000_000


class NotMapped(Exception):
    """Why entries cannot be mapped, as the end of a sentence."""


class GroupsByKind(NotMapped):
    """The groups go by leaf name and dimensions, if somebody who knows says so. kinds: "5 bias in group 1; ..."."""

    def __init__(self, kinds: str) -> None:
        super().__init__(
            f"its groups can be read in several ways that fit equally well; one is by kind of parameter, with {kinds}"
        )
        self.kinds = kinds


def class_of(name: str, ndim: int) -> Hashable:
    """What weight decay goes by: the leaf's name, and whether it is more than a vector."""
    return name.rpartition(".")[2], ndim > 1


def agrees(sizes: Mapping[str, Sequence[Shape]], key: str, shape: Shape) -> bool:
    """Whether the state under this key could be a parameter's of this shape; none contradicts nothing."""
    return all(size == shape for size in sizes.get(key, ()))


def deal(
    queues: Sequence[Sequence[str]],
    sizes: Mapping[str, Sequence[Shape]],
    parameters: Mapping[str, Shape],
    *,
    by_kind: bool = False,
) -> tuple[Groups, dict[Hashable, int]]:
    """(names per group, group of each class of parameters that lies in one group).

    queues: keys per group; sizes: shapes of the state under each key; parameters: shapes, in the model's order.
    by_kind: somebody said that the groups go by leaf name and dimensions, where the shapes alone do not decide.
    Raises NotMapped.
    """
    total = sum(map(len, queues))
    known = sum(1 for queue in queues for key in queue if sizes.get(key))
    if 2 * known < total:
        raise NotMapped(f"only {known:,} of its {total:,} entries have a shape to check them by")
    if total > len(parameters):
        raise NotMapped(f"it has {counted(total, 'parameter')}, these weights have {len(parameters):,}")
    if total < len(parameters):
        return [_chosen(queues, sizes, parameters)], {}
    names = list(parameters)
    # Groups of one parameter each are no groups of modules, unless every module has but one.
    single = all(len(queue) == 1 for queue in queues) and any(len(run) > 1 for run in _modules(names))
    if len(queues) == 1 or single:
        left = iter(parameters)
        groups = [[next(left) for _ in queue] for queue in queues]
        wrong = _first_wrong(groups, queues, sizes, parameters)
        if wrong:
            raise NotMapped(wrong)
        return groups, {}
    ways, dealt = _dealt(queues, sizes, parameters, [[name] for name in names])
    if not ways:
        raise NotMapped("no way of dealing the parameters out to its groups gives its entries their shapes")
    found = [dealt] if ways == 1 else []
    # Not by the shapes alone: but if whole modules cannot be it, and one division by what parameters are can.
    if ways > 1 and not _dealt(queues, sizes, parameters, _modules(names))[0]:
        found = _dealt_by_class(queues, sizes, parameters)
    if len(found) != 1:
        raise NotMapped("its groups can be read in several ways that fit equally well")
    if ways > 1 and not by_kind:
        raise GroupsByKind(_kinds(found[0]))
    classes: dict[Hashable, int] = {}
    for number, members in enumerate(found[0]):
        for name in members:
            kind = class_of(name, len(parameters[name]))
            # -1: of several groups, so that it does not tell where a new one belongs.
            classes[kind] = number if classes.get(kind, number) == number else -1
    return found[0], {kind: number for kind, number in classes.items() if number >= 0}


def _first_wrong(
    groups: Groups,
    queues: Sequence[Sequence[str]],
    sizes: Mapping[str, Sequence[Shape]],
    parameters: Mapping[str, Shape],
) -> str:
    for names, queue in zip(groups, queues, strict=True):
        for name, key in zip(names, queue, strict=True):
            if not agrees(sizes, key, parameters[name]):
                return (
                    f"entry {key} is {human_shape(sizes[key][0])}, and {name}, which would be its parameter, "
                    f"{human_shape(parameters[name])}"
                )
    return ""


def _dealt(
    queues: Sequence[Sequence[str]],
    sizes: Mapping[str, Sequence[Shape]],
    parameters: Mapping[str, Shape],
    runs: Sequence[Sequence[str]],
) -> tuple[int, Groups]:
    """(in how many ways the shapes allow to deal the runs out, none of them torn; the way, where it is one).

    2 stands for two and more, and for too many to count.
    """
    layers: list[dict[tuple[int, ...], tuple[int, int]]] = [{(0,) * len(queues): (1, -1)}]
    work = 0
    for run in runs:
        following: dict[tuple[int, ...], tuple[int, int]] = {}
        for at, (ways, _) in layers[-1].items():
            for number, queue in enumerate(queues):
                keys = queue[at[number] : at[number] + len(run)]
                fits = len(keys) == len(run)
                if fits and all(agrees(sizes, k, parameters[n]) for k, n in zip(keys, run, strict=True)):
                    then = (*at[:number], at[number] + len(run), *at[number + 1 :])
                    following[then] = (min(2, following.get(then, (0, 0))[0] + ways), number)
        work += len(following)
        if work > _MOST_STATES:
            return 2, []
        layers.append(following)
    at = tuple(map(len, queues))
    ways = layers[-1].get(at, (0, 0))[0]
    if ways != 1:
        return ways, []
    groups: Groups = [[] for _ in queues]
    for run, layer in zip(reversed(runs), reversed(layers[1:]), strict=True):
        number = layer[at][1]
        groups[number] += reversed(run)
        at = (*at[:number], at[number] - len(run), *at[number + 1 :])
    return 1, [group[::-1] for group in groups]


def _modules(names: Sequence[str]) -> Groups:
    """Neighbours of one module together."""
    return [list(run) for _, run in groupby(names, key=lambda name: name.rpartition(".")[0])]


def _kinds(groups: Groups) -> str:
    """ "5 bias in group 1; 7 weight in group 2"."""
    said = []
    for number, names in enumerate(groups, start=1):
        kinds = Counter(name.rpartition(".")[2] for name in names)
        most = ", ".join(f"{count:,} {kind[:40]}" for kind, count in kinds.most_common(4))
        said.append(f"{most}{' and others' if len(kinds) > 4 else ''} in group {number}")
    return "; ".join(said)


def _dealt_by_class(
    queues: Sequence[Sequence[str]], sizes: Mapping[str, Sequence[Shape]], parameters: Mapping[str, Shape]
) -> list[Groups]:
    """The ways in which groups made by leaf name and dimensions fit: biases here, everything else there."""
    lengths = [len(queue) for queue in queues]
    kind_of = {name: class_of(name, len(shape)) for name, shape in parameters.items()}
    counts = Counter(kind_of.values())
    if len(queues) ** len(counts) > _MOST_READINGS:
        return []
    found = []
    for dealt in product(range(len(queues)), repeat=len(counts)):
        group_of = dict(zip(counts, dealt, strict=True))
        if [sum(c for kind, c in counts.items() if group_of[kind] == g) for g in range(len(queues))] != lengths:
            continue
        groups: Groups = [[] for _ in queues]
        for name, kind in kind_of.items():
            groups[group_of[kind]].append(name)
        if not _first_wrong(groups, queues, sizes, parameters):
            found.append(groups)
    return found


def _chosen(
    queues: Sequence[Sequence[str]], sizes: Mapping[str, Sequence[Shape]], parameters: Mapping[str, Shape]
) -> list[str]:
    """Fewer entries than parameters, since some were frozen: the one way in which their shapes follow one another."""
    few = f"it has {sum(map(len, queues)):,} of {counted(len(parameters), 'parameter')}"
    if len(queues) > 1:
        raise NotMapped(f"{few}, in several groups")
    keys, names = list(queues[0]), list(parameters)
    if any(not sizes.get(key) for key in keys):
        raise NotMapped(f"{few}, and not every entry has a shape to find its parameter by")
    if len(keys) * len(names) > _MOST_COMPARED:
        raise NotMapped(f"{few}, too many to compare")
    first = _greedy(keys, names, sizes, parameters)
    last = _greedy(keys[::-1], names[::-1], sizes, parameters)
    if first is None or last is None:
        raise NotMapped(f"{few}, and their shapes do not follow one another there")
    if first != last[::-1]:
        raise NotMapped(f"{few}, and their shapes fit in more than one way")
    return first


def _greedy(
    keys: Sequence[str], names: Sequence[str], sizes: Mapping[str, Sequence[Shape]], parameters: Mapping[str, Shape]
) -> list[str] | None:
    """Each entry on the first parameter that fits it. From either end the same: there is no other way."""
    found: list[str] = []
    left = iter(names)
    for key in keys:
        name = next((name for name in left if agrees(sizes, key, parameters[name])), None)
        if name is None:
            return None
        found.append(name)
    return found
