"""Average drop and increase in confidence: the answer when only what is hot is shown.

Source: Chattopadhay and others, "Grad-CAM++", WACV 2018 (arXiv 1710.11063), section 4.1. Over several pictures the mean
of both is taken.
"""

from __future__ import annotations

import math

import torch

from inspector.cam.trust.measure import Case, Measure, Measured


def drop(case: Case) -> Measured:
    """max(0, p - p of the picture times the heat) / p; 0 to 1, NaN where p is 0: nothing can be lost."""
    whole, shown = _both(case)
    if math.isnan(shown) or not whole > 0:
        return Measured(value=math.nan)
    return Measured(value=max(0.0, whole - shown) / whole)


def increase(case: Case) -> Measured:
    """1 where the class is more probable of the picture times the heat than of the picture, else 0."""
    whole, shown = _both(case)
    return Measured(value=math.nan if math.isnan(shown - whole) else float(shown > whole))


def _both(case: Case) -> tuple[float, float]:
    pictures = torch.stack([case.picture, case.picture * case.heat.to(case.picture)])
    whole, shown = case.probabilities(pictures).tolist()
    return whole, shown


DROP = Measure(
    id="average-drop",
    title="Average drop",
    paper="Chattopadhay 2018, arXiv 1710.11063",
    says="Share of the probability that is lost when only what is hot is shown.",
    higher=False,
    compute=drop,
    passes=2,
    of_share=True,
)
INCREASE = Measure(
    id="increase-in-confidence",
    title="Increase in confidence",
    paper="Chattopadhay 2018, arXiv 1710.11063",
    says="1 where the class grows more probable when only what is hot is shown, else 0.",
    higher=True,
    compute=increase,
    passes=2,
    of_share=True,
)
