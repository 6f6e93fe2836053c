"""Is a map more than rounding? For `maps.py`, which measures it, and `cam/empty_maps.py`, which says it.

Two ways in which numbers of a map mean nothing, both relative, so that a model whose scores are scaled is judged alike:
terms that cancel when they are added up, and a whole map that is lost in the score it explains.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from inspector.cam.engine.tensors import channel_axis, peak
from inspector.cam.method import Method, Unit
from inspector.findings import Finding, FindingKind, Severity
from inspector.units import counted

if TYPE_CHECKING:
    from inspector.cam.report import Maps, Score

FAINT_MAP = FindingKind("faint-map", Severity.WARNING, "The map is lost in the score")
ROUNDING_MAP = FindingKind("rounding-map", Severity.WARNING, "The map is rounding")
EQUAL_WEIGHTS = FindingKind("equal-weights", Severity.WARNING, "The method weighs all channels alike")

# Weights that differ by less than this, relatively, are one weight.
ALIKE = 1e-3
# A score that is so near to its bias, relatively, is called that; whether to say anything is decided before.
_SAME = 1e-2


def rounding_share(
    method: Method, activation: Tensor, gradient: Tensor, added: Tensor, *, stored: torch.dtype
) -> Tensor:
    """(N,) how much of a map's largest magnitude rounding alone can make; from 1 on nothing of it is known.

    method: one that is arithmetic. activation, gradient: (N, C, h, w), in the precision that is added up in. added:
    (N, h, w), the sum over the channels. stored: the precision in which the model keeps them.
    A sum of C terms is off by at most C u of their magnitudes (Higham, Accuracy and Stability of Numerical Algorithms,
    section 4.2). Half precisions come rounded already: what each channel adds is off by about one unit in the last
    place, on its own, so these errors add up as squares do, and twice that is taken. NaN for maps of zeros and what is
    not finite.
    """
    assert method.arithmetic is not None
    magnitudes = method.arithmetic(activation.abs(), gradient.abs())
    bound = activation.shape[1] * torch.finfo(activation.dtype).eps / 2 * peak(magnitudes.sum(dim=1))
    if stored != activation.dtype:
        bound = bound + 2 * torch.finfo(stored).eps * peak(magnitudes.square().sum(dim=1).sqrt())
    highest = peak(added)
    return torch.where(highest > 0, bound / highest, torch.nan)


def score_share(raw: Tensor, unit: Unit, score: float, activation_peak: float) -> float | None:
    """How much of a score a map's numbers are in all, None where they are no part of it or there is no score.

    raw: (h, w). activation_peak: the largest magnitude of what the map is of.
    """
    sizes = raw.double().abs()
    if unit in (Unit.NONE, Unit.OTHER) or score == 0 or not math.isfinite(score) or not sizes.numel():
        return None
    if unit is Unit.SHARES:
        return float(sizes.max()) / activation_peak if activation_peak else None
    found = {
        Unit.PARTS: sizes.sum(),
        Unit.MEAN: sizes.mean(),
        Unit.FALLS: sizes.max(),
        Unit.SLOPES: sizes.sum() * activation_peak,
    }[unit]
    return float(found) / abs(score)


def is_probabilities(logits: Tensor) -> bool:
    """Whether scores (K,) can be probabilities as they are: those of boxes, or behind a softmax or sigmoid."""
    return float(logits.min()) >= 0 and float(logits.max()) <= 1


def findings_of_size(model: nn.Module, maps: Maps, index: int, target: Score, method: Method) -> Iterator[Finding]:
    """Whether a map's numbers are rounding, or too small beside the score to be anything in it."""
    raw, logits = maps.raw[index], maps.logits[index].double()
    subjects = (maps.layer.path,) if maps.layer.path else ()
    highest = float(raw.double().abs().max())
    rounding = float(maps.rounding_share[index])
    if rounding >= 1:
        channels = maps.layer.shape[channel_axis(maps.layer) - 1]
        yield ROUNDING_MAP.found(
            subjects=subjects,
            says=f"The map is rounding: what the {counted(channels, 'channel')} of {maps.layer.path} add cancels out, "
            f"to {1 / rounding:.2g} of what rounding alone can make of it.",
            evidence=(("raw_magnitude", highest), ("rounding_share", rounding)),
            remedy="A normalisation behind the layer takes out what this method adds up: choose the layer behind it, "
            "or LayerCAM.",
        )
        return
    spread = float(maps.weight_spread[index])
    if spread <= ALIKE:
        yield EQUAL_WEIGHTS.found(
            subjects=subjects,
            says=f"{method.title} weighs all channels of {maps.layer.path} alike, to {spread:.1g}: the score of "
            f"{target.name or f'class {target.index}'} is the same whatever is masked. The map is the layer's mean, "
            "and says nothing of the answer.",
            evidence=(("weight_spread", spread), ("limit", ALIKE)),
            remedy="Its softmax sees differences of about 1: of smaller ones, and of an answer that is surely right or "
            "never trained, ask a method that reads gradients.",
        )
        return
    # A probability near 1 leaves little to add by itself, so only one that is 1 but for rounding is meant there;
    # of any other score, what would lose more than half of its digits by being added to the rest.
    epsilon = torch.finfo(maps.precision).eps
    limit = epsilon if is_probabilities(logits) else math.sqrt(epsilon)
    share = score_share(raw, method.unit, target.logit, float(maps.activation_peak[index]))
    head = None if method.unit is Unit.NONE else _head_of(model, logits)
    limit_of_biases = math.sqrt(epsilon) * float(logits.abs().max())
    biases = head is not None and float((logits - head[1]).abs().max()) <= limit_of_biases
    if not biases and (share is None or share > limit):
        return
    why, remedy = _where_from(head, logits, target)
    come_to = "" if share is None else f" and come to {share:.2g} of it"
    yield FAINT_MAP.found(
        subjects=subjects,
        says=f"The map is lost in the score of {target.logit:.4g}: its numbers are {highest:.2g} at most{come_to}. "
        f"{why}",
        evidence=(
            ("raw_magnitude", highest),
            ("score", target.logit),
            *((("share_of_score", share),) if share is not None else ()),
            ("limit", limit),
        ),
        remedy=remedy,
    )


def _where_from(head: tuple[str, Tensor] | None, logits: Tensor, target: Score) -> tuple[str, str]:
    """(where the score comes from instead, remedy). head: the last layer and its biases."""
    untrained = "check that the weights are trained and all loaded, and how the picture is prepared."
    own = float(head[1][target.index]) if head is not None and target.index < len(head[1]) else math.nan
    if head is not None and abs(own - target.logit) <= _SAME * abs(target.logit):
        return f"The score is the bias of {head[0]}, {own:.4g}, whatever the picture shows.", untrained.capitalize()
    if is_probabilities(logits):
        return (
            "The answer is probabilities, and a softmax or sigmoid that is this sure passes next to nothing back.",
            "Explain the model without its last softmax or sigmoid.",
        )
    return "The score is next to the same whatever the layer sees.", f"Try another layer or class; {untrained}"


def _head_of(model: nn.Module, logits: Tensor) -> tuple[str, Tensor] | None:
    """The last layer with a bias for each score, and its biases in float64."""
    for name, module in reversed(list(model.named_modules())):
        bias = getattr(module, "bias", None)
        if isinstance(module, nn.Linear | nn.Conv2d) and isinstance(bias, Tensor) and bias.numel() == logits.numel():
            return name, bias.detach().double().cpu()
    return None
