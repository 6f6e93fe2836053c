"""Weights in two parts: pruning masks and spectral norm that were not folded before saving (weight norm: its own file).

Such a file loads only into a module that was wrapped the same way (torch.nn.utils.prune, spectral_norm and their
parametrizations).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import listed
from inspector.health.subject import Examined, Subject
from inspector.units import counted, human_share

PRUNED = FindingKind("pruning-not-folded", Severity.INFO, "Pruned weights with their masks beside them")
MASK_VALUES = FindingKind("pruning-mask-values", Severity.NOTICE, "A pruning mask is not made of zeros and ones")
MASK_OF_ZEROS = FindingKind("pruning-mask-of-zeros", Severity.WARNING, "A pruning mask takes a whole layer away")
SPECTRAL_NORM = FindingKind("spectral-norm-not-folded", Severity.INFO, "Weights with the vectors of a spectral norm")
SPECTRAL_VECTORS = FindingKind(
    "spectral-vector-length",
    Severity.NOTICE,
    "A spectral norm's vector is not of length one",
    also=(Severity.WARNING,),
)

_UNIT = 1e-2  # Half precision moves a length of one by less.
_PARAMETRIZED = "parametrizations."


def _find(subject: Subject) -> Iterator[Finding]:
    yield from _pruned(subject)
    yield from _spectral_norm(subject)


def _pruned(subject: Subject) -> Iterator[Finding]:
    pairs = [
        (one, mask)
        for one in subject.tensors
        if one.last.endswith("_orig")
        and (mask := subject.beside(one, f"{one.last.removesuffix('_orig')}_mask")) is not None
        and mask.tensor.shape == one.tensor.shape
    ]
    if not pairs:
        return
    masks = [mask.statistics for _, mask in pairs if mask.statistics is not None]
    zero, total = sum(t.zero for t in masks), sum(t.numel for t in masks)
    names = [one.name for one, _ in pairs]
    yield PRUNED.found(
        f"{counted(len(pairs), 'weight')} kept with a pruning mask, {human_share(zero / max(1, total))} of it "
        f"masked: {listed(names)}.",
        subjects=names,
        evidence=(("weights", len(pairs)), ("masked", zero), ("of", total)),
        remedy="Call torch.nn.utils.prune.remove(module, name) before saving: weight = weight_orig * weight_mask. The "
        "file then loads into a plain model.",
    )
    gone = [mask.name for _, mask in pairs if (t := mask.statistics) is not None and t.numel and t.zero == t.numel]
    if gone:
        yield MASK_OF_ZEROS.found(
            f"{counted(len(gone), 'pruning mask')} of {len(pairs):,} {'is' if len(gone) == 1 else 'are'} zero "
            f"throughout: {listed(gone)}.",
            subjects=gone,
            evidence=(("masks", len(gone)), ("of", len(pairs))),
            remedy="The layer is cut off: nothing comes through but its bias. The weight under the mask is still in "
            "the file: take the mask from an earlier checkpoint, or prune this layer again. Global pruning of nearly "
            "all weights may end like this.",
        )
    odd = [
        mask.name
        for _, mask in pairs
        if (t := mask.statistics) is not None and (t.minimum < 0 or t.maximum > 1 or _between(t.zero, t.mean, t.numel))
    ]
    if odd:
        yield MASK_VALUES.found(
            f"{counted(len(odd), 'pruning mask')} of {len(pairs):,} hold other numbers than 0 and 1: {listed(odd)}.",
            subjects=odd,
            evidence=(("masks", len(odd)), ("of", len(pairs))),
            remedy="It multiplies the weight, so that what it keeps changes too. A soft mask on purpose is harmless.",
        )


def _between(zero: int, mean: float, numel: int) -> bool:
    """Of zeros and ones, the mean is the share of ones."""
    return numel > 0 and not math.isclose(mean, 1 - zero / numel, rel_tol=1e-9, abs_tol=1e-9)


def _spectral_norm(subject: Subject) -> Iterator[Finding]:
    vectors = [*_vectors(subject)]
    if not vectors:
        return
    names = list(dict.fromkeys(weight.name for weight, _ in vectors))
    yield SPECTRAL_NORM.found(
        f"{counted(len(names), 'weight')} kept with the vectors of a spectral norm: {listed(names)}.",
        subjects=names,
        evidence=(("weights", len(names)),),
        remedy="Call torch.nn.utils.remove_spectral_norm, or parametrize.remove_parametrizations, before saving for "
        "use: weight = original / (u W v). To train on, keep it.",
    )
    odd = _odd_lengths([vector for _, vector in vectors])
    if odd:
        zero = [name for name, length in odd if length == 0]
        if zero:
            yield _without_length(zero, len(vectors))
        odd = [(name, length) for name, length in odd if length > 0]
    if odd:
        worst = max((length for _, length in odd), key=lambda length: abs(length - 1))
        yield SPECTRAL_VECTORS.found(
            f"{counted(len(odd), 'vector')} of spectral norms are not of length 1, the farthest of {worst:.3g}: "
            f"{listed([name for name, _ in odd])}.",
            subjects=[name for name, _ in odd],
            evidence=(("vectors", len(odd)), ("length", worst), ("threshold", _UNIT)),
            remedy="The weight is divided by u W v, so that its scale is off by as much until a training step makes "
            "the vector new. Averaged weights have such vectors.",
        )


def _without_length(names: Sequence[str], of: int) -> Finding:
    return SPECTRAL_VECTORS.found(
        f"{counted(len(names), 'vector')} of spectral norms of {of:,} {'is' if len(names) == 1 else 'are'} zero "
        f"throughout: {listed(names)}.",
        severity=Severity.WARNING,
        subjects=names,
        evidence=(("vectors", len(names)), ("length", 0.0), ("threshold", _UNIT)),
        remedy="The weight is divided by u W v, which is 0 now, so that it is infinite or NaN in evaluation. They are "
        "buffers, which building a network on the meta device and loading without them leaves empty: restore them, or "
        "run batches in training mode from vectors of random numbers.",
    )


def _vectors(subject: Subject) -> Iterator[tuple[Examined, Examined]]:
    """(weight, u or v)."""
    for one in subject.tensors:
        if len(one.tensor.shape) != 1:
            continue
        if one.last in ("_u", "_v") and _PARAMETRIZED in one.name:
            # parametrizations.weight.0._u beside parametrizations.weight.original
            weight = subject.by_name.get(f"{one.module.rpartition('.')[0]}.original")
        elif one.last.endswith(("_u", "_v")):
            weight = subject.beside(one, f"{one.last[:-2]}_orig")
        else:
            continue
        if weight is not None and len(weight.tensor.shape) > 1:
            yield weight, one


def _odd_lengths(vectors: Sequence[Examined]) -> list[tuple[str, float]]:
    found = []
    for one in vectors:
        t = one.statistics
        if t is not None and t.numel and t.finite == t.numel:
            length = t.rms * math.sqrt(t.numel)
            if abs(length - 1) > _UNIT:
                found.append((one.name, length))
    return found


CHECK = Check(kinds=(PRUNED, MASK_VALUES, MASK_OF_ZEROS, SPECTRAL_NORM, SPECTRAL_VECTORS), find=_find)
