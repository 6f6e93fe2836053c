"""Numbers of a Sequential that are in no name: modules without tensors stand there, activations or pooling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.architectures.structure.types import Claim, Layer, Topic

_MOST_MODULES, _MOST_NUMBERS, _MOST_SPAN = 4, 6, 1000


def left_out(layers: Sequence[Layer]) -> Iterator[Claim]:
    """One claim for all lists whose layers are their own numbers; a list of blocks may leave numbers out as well."""
    numbers: dict[str, set[int]] = {}
    every: dict[str, set[int]] = {}
    for layer in layers:
        names = layer.path.split(".")
        for place, name in enumerate(names):
            if name.isdecimal() and len(name) <= len(str(_MOST_SPAN)):
                parent = ".".join(names[:place])
                every.setdefault(parent, set()).add(int(name))
                if place == len(names) - 1:
                    numbers.setdefault(parent, set()).add(int(name))
    gaps = {
        parent: [n for n in range(min(every[parent]), max(every[parent])) if n not in every[parent]]
        for parent, own in numbers.items()
        if len(own) > 1 and parent
    }
    found = [(parent, left) for parent, left in gaps.items() if left]
    if not found:
        return
    texts = []
    for parent, left in found[:_MOST_MODULES]:
        more = f" and {len(left) - _MOST_NUMBERS:,} more" if len(left) > _MOST_NUMBERS else ""
        texts.append(f"{parent} {', '.join(str(n) for n in left[:_MOST_NUMBERS])}{more}")
    rest = f"; and in {len(found) - _MOST_MODULES:,} more modules" if len(found) > _MOST_MODULES else ""
    yield Claim(
        topic=Topic.LEFT_OUT,
        says=f"Numbers of no layer between others: {'; '.join(texts)}{rest}. Likely modules without weights stand "
        "there, as activations, pooling or dropout.",
        evidence="numbers that no name has",
        value=sum(len(left) for _, left in found),
        path=found[0][0],
    )
