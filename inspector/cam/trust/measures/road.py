"""ROAD: remove the hottest or the coldest pixels so that their shape does not give the class away.

Source: Rong and others, "A Consistent and Efficient Evaluation Strategy for Attribution Methods", ICML 2022 (arXiv
2202.00449): removed pixels become the weighted mean of their neighbours (1/6 beside, 1/12 diagonally), plus a little
noise.
"""

from __future__ import annotations

import torch

from inspector.cam.trust.infill import impute
from inspector.cam.trust.measure import Case, Measure, Measured, by_heat

SHARES = (0.2, 0.4, 0.6, 0.8)
NOISE = 0.01


def road(case: Case) -> Measured:
    """Half the difference of the probability without the coldest and without the hottest pixels, over four shares."""
    order = by_heat(case.heat)
    points, differences = [], []
    for number, share in enumerate(SHARES):
        count = round(share * len(order))
        pictures = []
        for side, some in enumerate((order[len(order) - count :], order[:count])):
            done = 2 * number + side

            def pause(done: int = done) -> None:
                case.scene.progress(done, 2 * len(SHARES), "removing pixels")

            pause()
            mask = torch.zeros(len(order), dtype=torch.bool)
            mask[some.cpu()] = True
            mask = mask.reshape(case.heat.shape).to(case.picture.device)
            noise = NOISE * case.scene.noise(done)[0]
            pictures.append(torch.where(mask, impute(case.picture, mask, pause) + noise, case.picture))
        cold, hot = case.probabilities(torch.stack(pictures)).tolist()
        points.append((share, hot))
        differences.append((cold - hot) / 2)
    return Measured(value=sum(differences) / len(differences), curve=tuple(points))


MEASURE = Measure(
    id="road",
    title="ROAD",
    paper="Rong 2022, arXiv 2202.00449",
    says="How much more the hottest pixels matter than the coldest, removed without leaving their outline.",
    higher=True,
    compute=road,
    passes=2 * len(SHARES),
    fills=2 * len(SHARES),
)
