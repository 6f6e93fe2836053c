"""Whose names are these? The known builders that agree with both lists of an error.

The lists are hard evidence: every missing name is the model's and not the file's, every unexpected one the other way
round, and what is in neither list both have. With whole lists, a model and a file are a pair only if what remains of
each is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from inspector.architectures.index import Layout, load_index
from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.types import Shape
from inspector.error_messages.report import KeyLists

# More kinds of network than this say nothing.
MOST_NAMED = 40
# Fewer names than this are no evidence: every network has an "fc.weight".
LEAST_NAMES = 6
_DEEPEST_PREFIX = 3


@dataclass(frozen=True, slots=True)
class _Known:
    """One builder in one variant. free: (name, dimension) that follows class count, input channels or picture size."""

    name: str
    shapes: Mapping[str, Shape]
    free: frozenset[tuple[str, int]]

    def allows(self, name: str, shape: Shape) -> bool:
        """Whether it could have a tensor of this name and shape."""
        own = self.shapes.get(name)
        return (
            own is not None
            and len(own) == len(shape)
            and all(a == b or (name, i) in self.free for i, (a, b) in enumerate(zip(own, shape, strict=True)))
        )


@lru_cache(maxsize=1)
def _known() -> tuple[_Known, ...]:
    made = []
    for entry in load_index().entries:
        free = [
            *((i, dim) for i, dim, *_ in entry.heads),
            *((i, 1) for i in entry.first),
            *((i, dim) for i, dim, *_ in entry.positions),
        ]
        made.append(
            _Known(
                name=entry.label,
                shapes=_weighty_shapes(entry.layout),
                free=frozenset((entry.layout.names[i], dim) for i, dim in free),
            )
        )
    return tuple(made)


@cache
def _weighty_shapes(layout: Layout) -> Mapping[str, Shape]:
    """name -> shape without bookkeeping; builders with the same tensors share it."""
    pairs = zip(layout.names, layout.shapes, strict=True)
    return {name: shape for name, shape in pairs if not is_bookkeeping(name)}


@lru_cache(maxsize=32)
def suspect(lists: KeyLists) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(builders that the model may be, builders that the file may be), each () when there are none or too many."""
    missing, unexpected = _weighty(lists.missing), _weighty(lists.unexpected)
    in_file = {name: shape for name, shape, _ in lists.reshaped}
    in_model = {name: shape for name, _, shape in lists.reshaped}
    models = _candidates(missing, in_model, unexpected)
    files = _candidates(unexpected, in_file, missing)
    if not lists.cut and models and files:
        pairs = _pairs(models, files, lists)
        if pairs:
            return _names(m for m, _ in pairs), _names(f for _, f in pairs)
    enough_model = len(missing) + len(in_model) >= LEAST_NAMES
    enough_file = len(unexpected) + len(in_file) >= LEAST_NAMES
    return _names(models if enough_model else ()), _names(files if enough_file else ())


def _candidates(has: frozenset[str], shapes: Mapping[str, Shape], lacks: frozenset[str]) -> list[_Known]:
    """Builders with all of `has`, these shapes, and nothing of `lacks`; whole matches alone where there are any.

    Names may lie under a prefix, as when nothing fits for a wrapper's sake.
    """
    if not has and not shapes:
        # Nothing to go by of its own; only a counterpart can single one out.
        return [known for known in _known() if not any(name in known.shapes for name in lacks)]
    for prefix in ("", *_prefixes([*has, *shapes])):
        mine = {name.removeprefix(prefix) for name in has}
        sized = {name.removeprefix(prefix): shape for name, shape in shapes.items()}
        not_mine = {name.removeprefix(prefix) for name in lacks if name.startswith(prefix)}
        fitting = [known for known in _known() if _agrees(known, mine, sized, not_mine)]
        whole = [known for known in fitting if len(mine) + len(sized) >= len(known.shapes)]
        if fitting:
            return whole or fitting
    return []


def _agrees(known: _Known, has: set[str], shapes: Mapping[str, Shape], lacks: set[str]) -> bool:
    return (
        all(name in known.shapes for name in has)
        and not any(name in known.shapes for name in lacks)
        and all(known.allows(name, shape) for name, shape in shapes.items())
    )


def _pairs(models: Sequence[_Known], files: Sequence[_Known], lists: KeyLists) -> list[tuple[_Known, _Known]]:
    """Those of which the same names are left, and of the same shapes, once the lists are taken away."""
    different = {name for name, *_ in lists.reshaped}
    ours: dict[tuple[int, frozenset[str]], list[_Known]] = {}
    gone, extra = {*lists.missing, *different}, {*lists.unexpected, *different}
    n_missing, n_unexpected = len(_weighty(lists.missing)), len(_weighty(lists.unexpected))
    for model in models:
        key = len(model.shapes) - n_missing, frozenset(model.shapes.keys() - gone)
        ours.setdefault(key, []).append(model)
    found: list[tuple[_Known, _Known]] = []
    for file in files:
        rest = frozenset(file.shapes.keys() - extra)
        found += [
            (model, file)
            for model in ours.get((len(file.shapes) - n_unexpected, rest), ())
            if model.shapes != file.shapes
            and all(model.allows(n, file.shapes[n]) or file.allows(n, model.shapes[n]) for n in rest)
        ]
    return found


def _prefixes(names: Sequence[str]) -> list[str]:
    """What all names begin with, segment by segment: "module.", "module.model."."""
    first = names[0].split(".")[:-1][:_DEEPEST_PREFIX]
    prefixes = [".".join(first[: i + 1]) + "." for i in range(len(first))]
    return [prefix for prefix in prefixes if all(name.startswith(prefix) for name in names)]


def _plainest(known: _Known) -> tuple[bool, bool, int]:
    """Plain before quantised, torchvision's before others', the shorter name first."""
    return "/quantized_" in known.name, not known.name.startswith("torchvision/"), len(known.name)


def _weighty(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name for name in names if not is_bookkeeping(name))


def _names(found: Iterable[_Known]) -> tuple[str, ...]:
    """One name for each kind of network, the first of those with the same names and shapes: a quantised builder that
    was not quantised is the plain one, and so are twins that differ in what they compute alone.
    """
    kinds: dict[frozenset[tuple[str, Shape]], str] = {}
    for known in sorted(found, key=_plainest):
        kinds.setdefault(frozenset(known.shapes.items()), known.name)
    names = dict.fromkeys(kinds.values())
    return tuple(names) if len(names) <= MOST_NAMED else ()
