"""Which rows of a fused matrix are the value's: each meets one column of the matrix behind the heads.

What a value's row puts out is read by one column of the output projection alone. Training scales both together (the
gradient of each is proportional to the other), so that the norm of a row goes with the norm of its column; query and
key meet each other, and no column. Query and key are never told apart by it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from inspector.keys.certificate.ranks import fisher, ranked
from inspector.keys.rules.entry import QKV_ORDER
from inspector.keys.rules.fused_attention import KV_ORDER
from inspector.keys.rules.fused_order import FUSED_ORDER
from inspector.keys.rules.inner_order import AS_IT_IS
from inspector.keys.witnesses.attentions import Attention, attentions_of
from inspector.keys.witnesses.entry import Floats, Scene, Witness, some
from inspector.keys.witnesses.judging import bearings, judge
from inspector.keys.witnesses.types import Statement

#: Fewer rows than these tell too little of one layer.
_FEWEST = 16
#: Of a rank correlation. What agrees less is not said, however many layers there are.
_LEAST = 0.3
# Orders that the question does not offer are held against those that it does, so that one that is right in part cannot
# win for want of the right one.
_NOT_OFFERED = "\0"
# What leaves the rows as the file has them.
_IN_ORDER = ("q-k-v", "k-v", AS_IT_IS)


def _listens(scene: Scene) -> Statement | None:
    scores: list[Mapping[str, float]] = []
    deviations: list[float] = []
    for attention in _some(scene):
        found = _scores(scene, attention)
        scene.forget()
        if found is not None:
            scores.append(found[0])
            deviations.append(found[1])
    if not scores:
        return None
    shared = set.intersection(*(set(layer) for layer in scores))
    verdict = judge([{o: layer[o] for o in layer if o in shared} for layer in scores], deviations)
    options = [option for option, _ in scene.question.options]
    asked = frozenset(shared & set(options))
    if verdict is None or np.tanh(verdict.best) < _LEAST or not verdict.winners & asked:
        return None
    says = (
        f"In {verdict.agree:,} of {verdict.layers:,} layers the rows that are the value's then go best with the "
        "columns of the matrix behind the heads, as a trained value's do (rank correlation "
        f"{np.tanh(verdict.best):.2f} on average, {max(0.0, np.tanh(verdict.next_best)):.2f} in the next best order). "
        "Query and key are not told apart."
    )
    return Statement(
        question=scene.question.id,
        witness=WITNESS.id,
        options=bearings(options, verdict.winners, asked),
        agree=verdict.agree,
        layers=verdict.layers,
        says=says,
    )


def _some(scene: Scene) -> Iterator[Attention]:
    known = {attention.parts: attention for attention in attentions_of(scene) if attention.out}
    return (known[parts] for parts in some(list(known)))


def _scores(scene: Scene, attention: Attention) -> tuple[dict[str, float], float] | None:
    """(Fisher's z of each option in this layer, its deviation). None where the layer has nothing to say."""
    out: Floats | None = None
    values: dict[str, Floats] = {}
    base: list[Floats] = []
    for option in scene.plans:
        parts = attention.rows(scene, option)
        out = scene.tensor(option, attention.out) if out is None else out
        if parts is None or out is None:
            continue
        norms = [np.linalg.norm(part, axis=1) for part in parts]
        if min(norm.min() for norm in norms) <= 0:
            return None
        values[option] = np.log(norms[-1])
        if option in _IN_ORDER:
            base = [np.log(norm) for norm in norms]
    rows = len(next(iter(values.values()), ()))
    columns = _columns(out, rows) if out is not None and rows >= _FEWEST else []
    if not columns or any(len(value) != rows for value in values.values()):
        return None
    values |= _others(base)
    names = list(values)
    agreements = np.max([ranked(np.stack([values[n] for n in names], 1)).T @ ranked(one)[:, 0] for one in columns], 0)
    z = fisher(agreements, rows)
    # Of Fisher's z of ranks (Fieller 1957).
    return dict(zip(names, map(float, z), strict=True)), math.sqrt(1.06 / (rows - 3))


def _columns(out: Floats, rows: int) -> list[Floats]:
    """Log norms of the columns that read each row of the value.

    With fewer heads of value than of query several columns share a row; which, the size of a head tells, that no shape
    shows: one array for each size.
    """
    times, rest = divmod(math.prod(out.shape[1:]), rows)
    if rest or not times or out.shape[1] != times * rows:
        return []
    squares = (out.reshape(len(out), -1) ** 2).sum(axis=0)
    if squares.min() <= 0:
        return []
    groups = [1] if times == 1 else [n for n in range(1, rows + 1) if rows % n == 0]
    return [np.log(squares.reshape(n, times, -1).mean(axis=1).reshape(-1)) for n in groups]


def _others(base: Sequence[Floats]) -> dict[str, Floats]:
    """The value's rows in every run and for every number of heads, offered or not. base: the parts as the file has them
    below each other; () for not known."""
    if not base:
        return {}
    whole, rows = np.concatenate(base), len(base[-1])
    equal = len({len(part) for part in base}) == 1
    found = {}
    for number in range(1, rows + 1):
        if any(len(part) % number for part in base):
            continue
        turns = whole.reshape(number, -1)
        size = rows // number
        for place in range(len(base)) if equal else (len(base) - 1,):
            start = place * size if equal else turns.shape[1] - size
            found[f"{_NOT_OFFERED}{number}/{place}"] = turns[:, start : start + size].reshape(-1)
    return found


WITNESS = Witness(
    id="value-rows",
    title="Rows of the value and columns behind the heads",
    questions=frozenset({QKV_ORDER, KV_ORDER, FUSED_ORDER}),
    listens=_listens,
    source="gradients of a product of two matrices are balanced row by column (Du, Hu and Lee 2018, theorem 2.1)",
)
