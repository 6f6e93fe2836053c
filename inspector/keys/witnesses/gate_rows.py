"""Which half of a gated layer is the gate: its rows lean the same way, the value's do not.

What is activated works best on one side of zero, so that training moves all gates' rows along one direction of the
input. The value's row and its column behind may change sign together, so that nothing favours a direction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from inspector.keys.inner_orders import gates
from inspector.keys.rules.fused_gates import FORMS, GATE_UP_ORDER
from inspector.keys.witnesses.entry import Floats, Scene, Witness, some
from inspector.keys.witnesses.judging import bearings, judge
from inspector.keys.witnesses.types import Statement

_FEWEST = 16  # rows
#: The gate's rows have to lean at least so far: mean cosine of two of them.
_LEAST = 1e-3


def _listens(scene: Scene) -> Statement | None:
    scores: list[Mapping[str, float]] = []
    leanings: list[Mapping[str, tuple[float, float]]] = []
    for gate, value in some(list(dict.fromkeys(_gates_of(scene)))):
        found, raw = {}, {}
        for option in scene.plans:
            pair = _halves(scene, option, gate, value)
            if pair is not None:
                a, b = (_leaning(half) for half in pair)
                found[option] = a[0] / a[1] - b[0] / b[1]
                raw[option] = (a[0], b[0])
        scene.forget()
        if found:
            scores.append(found)
            leanings.append(raw)
    if not scores:
        return None
    asked = frozenset.intersection(*(frozenset(layer) for layer in scores))
    verdict = judge(
        [{o: layer[o] for o in scene.plans if o in asked} for layer in scores], [math.sqrt(2)] * len(scores)
    )
    if verdict is None:
        return None
    best = next(iter(verdict.winners))
    gate_mean, value_mean = (float(np.mean([layer[best][i] for layer in leanings])) for i in (0, 1))
    if gate_mean < _LEAST:
        return None
    says = (
        f"In {verdict.agree:,} of {verdict.layers:,} layers the rows that are the gate's then lean one way more than "
        f"the value's (mean cosine of two rows {gate_mean:.4f}, of the value's {value_mean:.4f}), as activated rows do."
    )
    return Statement(
        question=scene.question.id,
        witness=WITNESS.id,
        options=bearings((option for option, _ in scene.question.options), verdict.winners, asked),
        agree=verdict.agree,
        layers=verdict.layers,
        says=says,
    )


def _gates_of(scene: Scene) -> Iterator[tuple[str, str]]:
    """(gate, value) by the target's names; one name twice where one matrix holds both, the gate in the half that its
    library has it in."""
    for name in scene.shapes:
        module, _, leaf = name.rpartition(".")
        parent, dot, own = module.rpartition(".")
        if leaf != "weight":
            continue
        if scene.question.id.partition(":")[0] == gates.INNER_ORDER.id:
            if gates.first_of(name) and scene.differs(name):
                yield name, name
            continue
        for form in FORMS:
            other = f"{parent}{dot}{form[1]}.weight"
            if own == form[0] and other in scene.shapes and scene.differs(name) and scene.differs(other):
                yield name, other
                break


def _halves(scene: Scene, option: str, gate: str, value: str) -> tuple[Floats, Floats] | None:
    first = scene.tensor(option, gate)
    if first is None or first.ndim != 2:
        return None
    if gate == value:
        top, bottom = np.split(first, 2)
        pair = (top, bottom) if gates.first_of(gate) == gates.GATE else (bottom, top)
    else:
        second = scene.tensor(option, value)
        if second is None or second.shape != first.shape:
            return None
        pair = first, second
    sized = all(len(half) >= _FEWEST and np.linalg.norm(half, axis=1).min() > 0 for half in pair)
    return pair if sized else None


def _leaning(rows: Floats) -> tuple[float, float]:
    """(Mean cosine of two rows, its deviation for rows that point anywhere).

    Rows do not fill all directions alike: the deviation is that of as many as the eigenvalues of their covariance are
    worth, (sum)^2 / sum of squares.
    """
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    count = len(units)
    mean = float((np.square(units.sum(axis=0)).sum() - count) / (count * (count - 1)))
    centred = units - units.mean(axis=0)
    gram = centred.T @ centred if units.shape[1] <= count else centred @ centred.T
    worth = float(np.trace(gram) ** 2 / max(float((gram**2).sum()), 1e-300))
    return mean, math.sqrt(2 / (count * (count - 1) * max(worth, 1.0)))


WITNESS = Witness(
    id="gate-rows",
    title="Rows that lean one way",
    questions=frozenset({GATE_UP_ORDER, gates.INNER_ORDER.id}),
    listens=_listens,
    source="the sign of a value's row and of its column behind may change together; an activated row's may not",
)
