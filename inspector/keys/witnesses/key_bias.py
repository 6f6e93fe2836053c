"""Which part of a fused bias is the key's: it gets no gradient, and stays where it began.

A key's bias adds one number to all scores of a query, which the softmax does not see. That holds only where places are
added to what comes in: with rotary positions, or where keys are normalised, a key's bias counts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from inspector.keys.rules.entry import QKV_ORDER
from inspector.keys.rules.fused_attention import KV_ORDER
from inspector.keys.rules.fused_order import FUSED_ORDER
from inspector.keys.witnesses.attentions import attentions_of, keys_get_no_gradient
from inspector.keys.witnesses.entry import Scene, Witness, some
from inspector.keys.witnesses.judging import bearings
from inspector.keys.witnesses.types import Statement

#: So many times as large as the key's are the two others.
_TIMES = 2.0
#: In this share of the layers, and in no fewer layers than these.
_AGREEING, _FEWEST_LAYERS = 0.9, 2


def _listens(scene: Scene) -> Statement | None:
    if not keys_get_no_gradient(scene):
        return None
    known = {a.parts: a for a in attentions_of(scene, "bias") if a.whole or len(a.parts) == 3}
    layers: list[Mapping[str, tuple[float, float, float]]] = []
    for parts in some(list(known)):
        found = {}
        for option in scene.plans:
            # A key's bias may be zero throughout: BEiT and BLIP-2 have none.
            biases = known[parts].rows(scene, option, dense=False)
            if biases is not None and len(biases) == 3:
                q, k, v = (float(np.sqrt(np.mean(part**2))) for part in biases)
                found[option] = (q, k, v)
        scene.forget()
        if found:
            layers.append(found)
    if len(layers) < _FEWEST_LAYERS:
        return None
    asked = frozenset.intersection(*(frozenset(layer) for layer in layers))
    agree = {o: sum(_is_smallest(*layer[o]) for layer in layers) for o in asked}
    winners = {o for o in asked if agree[o] >= _AGREEING * len(layers)}
    # One part is the key's: options of two minds about it cannot all be right, and then something else is small.
    if not winners or len({tuple(layer[o][1] for layer in layers) for o in winners}) > 1:
        return None
    best = next(iter(winners))
    ratio = float(np.median([min(layer[best][0], layer[best][2]) / max(layer[best][1], 1e-30) for layer in layers]))
    says = (
        f"In {agree[best]:,} of {len(layers):,} layers the bias that is the key's then is by far the smallest of the "
        f"three ({_said(ratio)} in the middle), as a key's is, which gets no gradient without rotary positions."
    )
    return Statement(
        question=scene.question.id,
        witness=WITNESS.id,
        options=bearings((option for option, _ in scene.question.options), winners, asked),
        agree=agree[best],
        layers=len(layers),
        says=says,
    )


def _is_smallest(q: float, k: float, v: float) -> bool:
    return min(q, v) > 0 and min(q, v) >= _TIMES * k


def _said(ratio: float) -> str:
    return f"the others are {ratio:.1f} times as large" if ratio < 1000 else "the others are over 1,000 times as large"


WITNESS = Witness(
    id="key-bias",
    title="The bias that gets no gradient",
    questions=frozenset({QKV_ORDER, KV_ORDER, FUSED_ORDER}),
    listens=_listens,
    source="softmax(x + c) = softmax(x)",
)
