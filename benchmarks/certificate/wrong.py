"""Every way to put the tensors of a network in a wrong place that shapes let pass, as new state dicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

State = Mapping[str, NDArray[np.generic]]
LEAVES = ("weight", "bias", "running_mean", "running_var")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """kind: of the fault. changed: the tensors that are not their own any more, with what stands there."""

    kind: str
    changed: State


def all_wrong(state: State) -> Iterator[Wrong]:
    """Pairs of everything of one shape, exhaustively; transposes; channels in a random order (seeded)."""
    norms = [name.removesuffix(".running_mean") for name in state if name.endswith(".running_mean")]
    kernels = [n for n, t in state.items() if t.ndim > 1]
    by_shape: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name in kernels:
        by_shape[state[name].shape].append(name)
    for alike in by_shape.values():
        for a, b in combinations(alike, 2):
            yield _exchanged("two kernels", state, [(a, b)])
    widths: dict[int, list[str]] = defaultdict(list)
    for norm in norms:
        widths[len(state[f"{norm}.running_mean"])].append(norm)
    for alike in widths.values():
        for a, b in combinations(alike, 2):
            yield _exchanged("two norms", state, [(f"{a}.{leaf}", f"{b}.{leaf}") for leaf in LEAVES])
            for leaf in LEAVES:
                yield _exchanged(f"two {leaf}", state, [(f"{a}.{leaf}", f"{b}.{leaf}")])
    for norm in norms:
        for a, b in combinations(LEAVES, 2):
            yield _exchanged("within a norm", state, [(f"{norm}.{a}", f"{norm}.{b}")])
    rng = np.random.default_rng(0)
    for name in kernels:
        tensor = state[name]
        if tensor.shape[0] == tensor.shape[1]:
            yield Wrong(kind="transposed", changed={name: tensor.swapaxes(0, 1)})
        yield Wrong(kind="rows in another order", changed={name: tensor[rng.permutation(len(tensor))]})
        if tensor.shape[1] > 1:
            columns = tensor[:, rng.permutation(tensor.shape[1])]
            yield Wrong(kind="columns in another order", changed={name: columns})
    for norm in norms:
        for leaf in LEAVES:
            vector = state[f"{norm}.{leaf}"]
            order = rng.permutation(len(vector))
            yield Wrong(kind="a vector in another order", changed={f"{norm}.{leaf}": vector[order]})
        order = rng.permutation(len(state[f"{norm}.weight"]))
        yield Wrong(
            kind="a norm in another order",
            changed={f"{norm}.{leaf}": state[f"{norm}.{leaf}"][order] for leaf in LEAVES},
        )


def _exchanged(kind: str, state: State, pairs: list[tuple[str, str]]) -> Wrong:
    changed: dict[str, NDArray[np.generic]] = {}
    for a, b in pairs:
        changed[a], changed[b] = state[b], state[a]
    return Wrong(kind=kind, changed=changed)


def shuffled(state: State, seed: int) -> State:
    """All tensors of each shape among one another, the counters left alone."""
    rng = np.random.default_rng(seed)
    by_shape: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name, tensor in state.items():
        if tensor.ndim:
            by_shape[tensor.shape].append(name)
    made = dict(state)
    for names in by_shape.values():
        for name, other in zip(names, rng.permutation(len(names)), strict=True):
            made[name] = state[names[other]]
    return made
