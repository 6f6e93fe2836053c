"""`freshness_of` of many small tensors of one shape at once: the same answers.

Initialisers are those of the shape, so that edges and spreads are compared for all tensors side by side, and the
numbers of each are one stretch. The Kolmogorov-Smirnov distance is asked tensor by tensor, of the few that come so far.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from inspector.health import generator_of_many as many
from inspector.health.columns import Flags
from inspector.health.distributions import ROUNDING, distance_scaled, spread_matches, stored_as, within_edge_of
from inspector.health.freshness import (
    WINDOW,
    Freshness,
    Proof,
    but_for_a_factor,
    by_lattice,
    by_shape,
    cut_of,
    unless_partly,
)
from inspector.health.initialisers import Family, Initialiser, initialisers_of, is_recurrent
from inspector.health.subject import Examined
from inspector.health.thresholds import Thresholds
from inspector.weights.report import TensorStatistics

Member = tuple[Examined, TensorStatistics]
Values = NDArray[np.float32]
# By none of the candidates.
_NONE = -1


def freshness_of_stack(
    members: Sequence[Member], values: Values, limits: Thresholds
) -> Iterator[tuple[int, Freshness | None]]:
    """members: tensors of one shape, finite throughout. values: (members, numel). (place, answer) of each."""
    kinds: dict[tuple[str, bool], list[int]] = defaultdict(list)
    fit = [
        place
        for place, (_, t) in enumerate(members)
        if stored_as(t) in ROUNDING and t.numel >= limits.few and t.minimum != t.maximum
    ]
    varied = {place for place, repeats in zip(fit, _repeat(values[fit]).tolist(), strict=True) if not repeats}
    for place, (one, t) in enumerate(members):
        if place in varied:
            kinds[stored_as(t), is_recurrent(one.name)].append(place)
        else:
            yield place, None
    for (stored, _), places in kinds.items():
        first, t = members[places[0]]
        candidates = initialisers_of(first.name, t.shape)
        of = [members[place][1] for place in places]
        yield from zip(places, _alike(of, values[places], candidates, stored, limits), strict=True)


def _repeat(values: Values) -> Flags:
    """(members,): whether neighbours take a few values over and over, as in `freshness.py`."""
    count = values.shape[1] // WINDOW
    if not count:
        return np.zeros(len(values), bool)
    ordered = np.sort(values[:, : count * WINDOW].reshape(len(values), count, WINDOW), axis=2)
    distinct = np.sort(np.count_nonzero(ordered[:, :, 1:] != ordered[:, :, :-1], axis=2) + 1, axis=1)
    middle = (distinct[:, (count - 1) // 2] + distinct[:, count // 2]) / 2
    found: Flags = middle <= WINDOW / 2
    return found


def _alike(
    of: Sequence[TensorStatistics],
    values: Values,
    candidates: Sequence[Initialiser],
    stored: str,
    limits: Thresholds,
) -> Iterator[Freshness]:
    """Of one stored type, with the same candidates."""
    low, high, mean, std = (np.array([getattr(t, end) for t in of]) for end in ("minimum", "maximum", "mean", "std"))
    largest, numel = np.maximum(np.abs(low), np.abs(high)), of[0].numel
    uniform = [one.family is Family.UNIFORM for one in candidates]
    edges = {k: within_edge_of(largest, one.scale, numel, stored) for k, one in enumerate(candidates) if uniform[k]}
    spreads = [spread_matches(mean, std, one, numel, stored, limits) for one in candidates]
    known = stored == "float32"
    drawn = np.full(len(of), _NONE)
    normal: dict[int, Freshness] = {}
    if known:
        normal = _draw(drawn, of, values, candidates, edges, spreads, largest > 8 * std)
    shaped = [edges[k] & spreads[k] if uniform[k] else spreads[k] for k in range(len(candidates))]
    lattices = [by_lattice(by) for by in candidates]
    likely = np.stack(shaped, axis=1) if shaped else np.zeros((len(of), 0), bool)
    for place, (t, by, fits) in enumerate(zip(of, drawn.tolist(), likely, strict=True)):
        if place in normal or by != _NONE:
            yield normal[place] if place in normal else lattices[by]
            continue
        first = next((k for k in np.flatnonzero(fits).tolist() if _is_near(t, candidates[k], limits)), None)
        proof = None if first is None else Proof.EDGE if uniform[first] else Proof.SPREAD
        made = by_shape(t, None if first is None or proof is None else (candidates[first], proof), known=known)
        yield unless_partly(made, (values[place],) if known else ())


def _is_near(t: TensorStatistics, of: Initialiser, limits: Thresholds) -> bool:
    return distance_scaled(t, of) < limits.initial_ks


def _draw(
    drawn: NDArray[np.intp],
    of: Sequence[TensorStatistics],
    values: Values,
    candidates: Sequence[Initialiser],
    edges: dict[int, Flags],
    spreads: Sequence[Flags],
    alone: Flags,
) -> dict[int, Freshness]:
    """Sets by which candidate torch's generator made each, in the order of `freshness._on_lattice`; gives those that
    are normal numbers. alone: one large element among many."""
    for k, edge in edges.items():
        asked = np.flatnonzero((drawn == _NONE) & edge)
        if len(asked):
            drawn[asked[many.on_uniform_lattice(values[asked], candidates[k].scale)]] = k
    asked = np.flatnonzero((drawn == _NONE) & ~alone)
    named = [k for k in range(len(candidates)) if k not in edges]
    if not len(asked):
        return {}
    angles = many.pair_angles(values[asked])
    paired = many.in_normal_pairs(angles)
    for k in named:
        by, open_ = candidates[k], (drawn[asked] == _NONE) & spreads[k][asked]
        if by.family is Family.NORMAL and (open_ & paired).any():
            some = asked[open_ & paired]
            drawn[some[many.on_normal_radii(values[some], by.scale)]] = k
        elif by.family is Family.TRUNCATED and (open_ & ~paired).any():
            drawn[asked[open_ & ~paired & many.in_redrawn_pairs(angles, cut_of(by))]] = k
    for k in named:
        open_ = (drawn[asked] == _NONE) & spreads[k][asked] & ~paired
        if open_.any():
            some, by = asked[open_], candidates[k]
            drawn[some[many.of_truncated_uniform(values[some], by.scale, cut_of(by))]] = k
    rest = asked[paired & (drawn[asked] == _NONE)].tolist()
    return {place: but_for_a_factor(of[place], [candidates[k] for k in named if spreads[k][place]]) for place in rest}
