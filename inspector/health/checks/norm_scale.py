"""Channels that a batch norm all but switches off: what network slimming prunes (Liu 2017, arXiv 1708.06519)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.norms import batch_norms
from inspector.health.phrases import listed
from inspector.health.roles import Role
from inspector.health.subject import Subject
from inspector.units import human_share

PRUNABLE = FindingKind("norm-scale-near-zero", Severity.NOTICE, "Batch norms switch channels off")


def _find(subject: Subject) -> Iterator[Finding]:
    limit = subject.thresholds.norm_scale_rests
    names: list[str] = []
    resting = channels = 0
    for norm in batch_norms(subject):
        # All of them zero is how the last norm of a residual branch begins (Goyal 2017, arXiv 1706.02677).
        if norm.scale is None or not np.any(norm.scale) or not np.all(np.isfinite(norm.scale)):
            continue
        channels += norm.channels
        near = int(np.count_nonzero(np.abs(norm.scale) < limit * np.abs(norm.scale).max()))
        if near:
            resting += near
            names.append(norm.name_of(Role.NORM_SCALE))
    if not resting or resting < subject.thresholds.norm_scale_share * channels:
        return
    yield PRUNABLE.found(
        f"{resting:,} of {channels:,} channels of batch norms ({human_share(resting / channels)}) have a scale below "
        f"{limit:g} of their layer's largest, in {listed(names)}.",
        subjects=names,
        evidence=(("channels", resting), ("of", channels), ("limit", limit)),
        remedy="Weight decay and training for sparsity bring this about, and nothing is wrong with it: these channels "
        "could be pruned with little loss.",
    )


CHECK = Check(kinds=(PRUNABLE,), find=_find)
