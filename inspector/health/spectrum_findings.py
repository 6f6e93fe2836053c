"""What spectra say: a layer far stronger than its like, few directions at work, tails."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np

from inspector.findings import Finding, FindingKind, Severity
from inspector.health.phrases import listed
from inspector.health.roles import Role
from inspector.health.spectrum_report import Spectrum
from inspector.health.thresholds import Thresholds
from inspector.units import counted, human_share

STRONG = FindingKind("spectral-norm-outlier", Severity.NOTICE, "A layer is far stronger than its like")
LOW_RANK = FindingKind("low-rank", Severity.WARNING, "Weights use few directions", also=(Severity.NOTICE,))
TAILS = FindingKind("spectral-tails", Severity.INFO, "Spectra fall off unlike those of trained networks")
SPECTRUM_KINDS = (STRONG, LOW_RANK, TAILS)

# Tables are as smooth as they like; an adapter's are thin; of the rest nobody knows what it is for.
_LOW_ROLES = (Role.EMBEDDING, Role.POSITION, Role.LORA_A, Role.LORA_B, Role.OTHER)
_FEWEST_ALIKE = 5
# Low rank is how these work: attention's scores, adapters and bottlenecks multiplied out, answers of few classes.
_MAY_BE_LOW = re.compile(
    r"(^|[._])(q|k|qk|query|key|q_proj|k_proj|qkv|in_proj|c_attn|to_q|to_k|head|heads|fc|classifier|lm_head|lora)([._]|$)"
    r"|in_proj_weight",
    re.IGNORECASE,
)


def find_in_spectra(spectra: Sequence[Spectrum], limits: Thresholds) -> Iterator[Finding]:
    """One finding per kind and severity."""
    yield from _strong(spectra, limits)
    yield from _low_rank(spectra, limits)
    yield from _tails(spectra, limits)


def _strong(spectra: Sequence[Spectrum], limits: Thresholds) -> Iterator[Finding]:
    by_role: dict[Role, list[Spectrum]] = defaultdict(list)
    for one in spectra:
        by_role[one.role].append(one)
    for role, alike in by_role.items():
        middle = median(one.spectral_norm for one in alike)
        strong = [one for one in alike if one.spectral_norm > limits.spectral_ratio * middle]
        if len(alike) < _FEWEST_ALIKE or not strong:
            continue
        largest = max(one.spectral_norm for one in strong)
        names = [one.name for one in strong]
        yield STRONG.found(
            f"{counted(len(strong), f'{role} weight')} ({listed(names)}) of {len(alike):,} "
            f"{'has' if len(strong) == 1 else 'have'} a spectral norm up to {largest:.4g}, {largest / middle:.3g} "
            f"times the median of {middle:.4g}.",
            subjects=names,
            evidence=(("largest", largest), ("median", middle), ("limit", limits.spectral_ratio)),
            remedy="It can blow up what comes in by that factor. Harmless before a norm layer, which takes the scale "
            "out again, and where the norm is that of one direction alone (see its stable rank).",
        )


def _low_rank(spectra: Sequence[Spectrum], limits: Thresholds) -> Iterator[Finding]:
    meant: list[tuple[Spectrum, float]] = []
    lost: list[tuple[Spectrum, float]] = []
    for one in spectra:
        if one.living < limits.rank_side or one.effective_rank is None:
            continue
        share = one.effective_rank / one.living
        values = np.frombuffer(one.values, np.float64)
        vanished = 1 - float(np.count_nonzero(values >= limits.rank_vanished * values[0])) / one.living
        few = share < limits.rank_share or vanished >= limits.rank_vanished_share
        if few and one.role not in _LOW_ROLES and not _MAY_BE_LOW.search(one.name):
            lost.append((one, share))
        elif few or one.stable_rank < limits.rank_stable:
            meant.append((one, share))
    for found, severity in ((lost, Severity.WARNING), (meant, Severity.NOTICE)):
        if not found:
            continue
        first, share = min(found, key=lambda pair: pair[1])
        names = [one.name for one, _ in sorted(found, key=lambda pair: pair[1])]
        yield LOW_RANK.found(
            f"{counted(len(found), 'weight')} ({listed(names)}) {'uses' if len(found) == 1 else 'use'} few directions: "
            f"{first.name} has an effective rank of {first.effective_rank:.1f} of {first.living:,} "
            f"({human_share(share)}) and a stable rank of {first.stable_rank:.3g}.",
            severity=severity,
            subjects=names,
            evidence=(
                *(("weights", len(found)), ("effective rank", first.effective_rank or 0.0), ("of", first.living)),
                *(("stable rank", first.stable_rank), ("limit of the share", limits.rank_share)),
                ("limit of the stable rank", limits.rank_stable),
            ),
            remedy="Long training on changing targets wears directions out (Dohare 2024), and such a layer could be "
            "stored as two thin ones. Meant in adapters and factored layers; usual in attention's queries and keys, "
            "heads of few classes, and where all weights share one sign.",
        )


def _tails(spectra: Sequence[Spectrum], limits: Thresholds) -> Iterator[Finding]:
    fitted = [(one, one.power_law) for one in spectra if one.power_law is not None]
    light = [one.name for one, law in fitted if law.alpha > limits.alpha_most]
    heavy = [one.name for one, law in fitted if law.alpha < limits.alpha_least]
    if not light and not heavy:
        return
    alphas = [law.alpha for _, law in fitted]
    yield TAILS.found(
        f"Of {counted(len(fitted), 'fitted spectrum', 'fitted spectra')}, {len(light):,} "
        f"{'has' if len(light) == 1 else 'have'} a power-law exponent above {limits.alpha_most:g} and {len(heavy):,} "
        f"below {limits.alpha_least:g} ({listed(light + heavy)}); the median is {median(alphas):.2f}.",
        subjects=light + heavy,
        evidence=(
            *(("spectra", len(fitted)), ("above", len(light)), ("below", len(heavy))),
            *(("median", median(alphas)), ("limit above", limits.alpha_most), ("limit below", limits.alpha_least)),
        ),
        remedy="Above, a spectrum looks like a random matrix's, as before training; below, few directions outweigh all "
        "others. The theory is contested and fits to small matrices are unstable: a hint where to look, no verdict.",
    )
