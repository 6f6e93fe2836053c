"""One tensor that the file has under two names: a module that was registered twice, or saved with `module.` and bare.

Both names show the same elements of one storage, which the file says itself. Where one of them has its place and the
other has none, nothing is lost by leaving that out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from inspector.checkpoint.types import TensorInfo
from inspector.keys.placing.tree import Leaf, exchanged
from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Rule

# Tensors under one prefix that are a module's, and no tie of two layers.
_LEAST = 2


def of_one_storage(tensors: Sequence[TensorInfo]) -> dict[str, int]:
    """A number for each name that shares all its elements with another name, the same for both."""
    stored = Counter([tensor.storage_id for tensor in tensors])
    if len(stored) == len(tensors):
        return {}
    seen: dict[tuple[object, ...], int] = {}
    found: dict[str, int] = {}
    first: list[str] = []
    for tensor in tensors:
        if (
            tensor.storage_id is None
            or stored[tensor.storage_id] == 1
            or not tensor.numel
            or tensor.encoding is not None
        ):
            continue
        same = (tensor.storage_id, tensor.offset, tensor.shape, tensor.stride, tensor.dtype)
        number = seen.setdefault(same, len(first))
        if number == len(first):
            first.append(tensor.name)
        else:
            found[first[number]] = found[tensor.name] = number
    return found


def second_names(leaves: Sequence[Leaf], places: Sequence[Leaf], shared: Mapping[str, int]) -> set[str]:
    """Of names of one tensor those that the target has no place for.

    What bears a place's own name stays; where none does, the first. The shapes of what stays must be the target's: one
    that registers the module twice as well has a place for both.
    """
    if not shared:
        return set()
    named = {place.name for place in places}
    stays: dict[int, str] = {}
    for leaf in leaves:
        if (number := shared.get(leaf.name)) is not None and (number not in stays or leaf.name in named):
            stays[number] = leaf.name
    away = {x.name: stays[shared[x.name]] for x in leaves if x.name in shared and x.name not in named}
    away = {name: other for name, other in away.items() if name != other}
    # A module that is there twice. One matrix of two layers is a tie, whose second name may have its place.
    exchanges = Counter(exchanged(*pair) for pair in away.items())
    if not away or min(exchanges.values()) < _LEAST:
        return set()
    kept = Counter(leaf.shape for leaf in leaves if leaf.name not in away)
    return set(away) if kept == Counter(place.shape for place in places) else set()


def _steps(left: Leftovers) -> Iterator[Step]:
    placed: dict[int, str] = {}
    for link in (*left.settled, *left.reshaped):
        if (number := left.shared.get(link.source.name)) is not None:
            placed.setdefault(number, link.source.name)
    for leaf in left.extra:
        other = placed.get(left.shared.get(leaf.name, -1))
        if other is not None:
            yield Step(
                kind=StepKind.DROP,
                source=leaf.name,
                target=None,
                rule=RULE.id,
                reason=f"It is {other} under another name: both show the same elements of one storage.",
                cost=Cost.LOSSLESS,
                evidence=Evidence.RULE,
                value="copy",
                beside=(other,),
                declared=True,
            )


RULE = Rule(
    id="one-storage",
    title="One tensor, two names",
    says="Leaves out the second name of a tensor that the file stores once, where the first has its place.",
    cost=Cost.LOSSLESS,
    done="second names of {tensors} are left out",
    steps=_steps,
)
