"""What names and shapes alone decide, kept for the next file of the same network: a fleet has many files of few."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from inspector.checkpoint.types import Shape

Answer = TypeVar("Answer")

_MOST_NETWORKS = 64
# An answer grows with the network: of larger ones none is kept.
_MOST_TENSORS = 2_000


def once_per_network(
    work: Callable[..., Sequence[Answer]],
) -> Callable[..., list[Answer]]:
    """work, asked once for the same names, shapes and further arguments, in the same order.

    work: a function of them alone, (name -> shape, what can be hashed...), whose answers nobody changes.
    """

    @lru_cache(maxsize=_MOST_NETWORKS)
    def kept(tensors: tuple[tuple[str, Shape], ...], *more: Hashable) -> tuple[Answer, ...]:
        return tuple(work(dict(tensors), *more))

    def ask(shapes: Mapping[str, Shape], *more: Hashable) -> list[Answer]:
        return list(work(shapes, *more) if len(shapes) > _MOST_TENSORS else kept(tuple(shapes.items()), *more))

    return ask
