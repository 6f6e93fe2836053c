"""The class count and input channels that a file's shapes show, whatever its tensors are called.

Names say which tensor is the head only where a network is known by them. Shapes say it without: what the file has
beside all that follows no setting must be what does, and one number makes its shapes. Axes and axes of length one do
not count, so that kernels of other libraries are read like torch's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from inspector.architectures.index import Law
from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.types import Shape, StateDict

# Numbers that are tried for one setting.
_MOST_TRIED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a builder takes, and what follows it. value: with which the shapes at hand were made.

    laws: (position in the shapes, dimension, factor, offset): size = factor x setting + offset.
    """

    name: str
    value: int
    laws: tuple[Law, ...]

    def at(self, value: int, shapes: Sequence[Shape]) -> dict[int, Shape]:
        """position -> shape with that value, of what follows it."""
        found: dict[int, list[int]] = {}
        for i, dim, factor, offset in self.laws:
            found.setdefault(i, list(shapes[i]))[dim] = factor * value + offset
        return {i: tuple(shape) for i, shape in found.items()}


def shapes_of(state: StateDict) -> tuple[Shape, ...]:
    """Shapes of what is learned in a state dict: no counters, no scalars."""
    return tuple(t.shape for t in state.tensors if t.shape and not is_bookkeeping(t.name))


def followed(shapes: Sequence[Shape], settings: Iterable[Setting], ours: Iterable[Shape]) -> Mapping[str, int]:
    """Setting -> the one value under which all that follows it is in the file; without those that fit as they are.

    shapes: the target's at the settings' own values. ours: the file's. Empty where the rest of the target is not in
    the file either: of another network no number says anything.
    """
    settings = list(settings)
    follows = {i for setting in settings for i, *_ in setting.laws}
    rest = Counter(_key(shape) for i, shape in enumerate(shapes) if i not in follows and shape)
    left = Counter(map(_key, ours))
    if 2 * (left & rest).total() < rest.total() or not rest:
        return {}
    left -= rest
    found: dict[str, int] = {}
    for setting in settings:
        value = _value(setting, shapes, left)
        if value is None:
            continue
        left -= _bag(setting, value, shapes)
        if value != setting.value:
            found[setting.name] = value
    return found


def _value(setting: Setting, shapes: Sequence[Shape], left: Counter[Shape]) -> int | None:
    """The value under which everything fits; the setting's own where that does, None where none or several do."""
    if _bag(setting, setting.value, shapes) <= left:
        return setting.value
    tried = sorted(_tried(setting, shapes, left))[:_MOST_TRIED]
    fitting = [value for value in tried if _bag(setting, value, shapes) <= left]
    return fitting[0] if len(fitting) == 1 else None


def _bag(setting: Setting, value: int, shapes: Sequence[Shape]) -> Counter[Shape]:
    return Counter(map(_key, setting.at(value, shapes).values()))


def _tried(setting: Setting, shapes: Sequence[Shape], left: Counter[Shape]) -> set[int]:
    """Values that would give some tensor of the file its size."""
    found = set()
    for i, dim, factor, offset in setting.laws:
        rest = Counter(_key(shapes[i][:dim] + shapes[i][dim + 1 :]))
        for shape in left:
            sizes = list((Counter(shape) - rest).elements())
            if rest <= Counter(shape) and len(sizes) <= 1:
                value, over = divmod((sizes[0] if sizes else 1) - offset, factor)
                if value > 0 and not over:
                    found.add(value)
    return found


def _key(shape: Shape) -> Shape:
    return tuple(sorted(n for n in shape if n != 1))
