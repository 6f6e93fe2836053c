"""Batch norms whose running statistics are those that they began with: evaluation differs from training then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.norms import BatchNorm, batch_norms
from inspector.health.phrases import listed
from inspector.health.roles import Role
from inspector.health.subject import Subject
from inspector.units import counted

NEVER_UPDATED = FindingKind(
    "norm-never-updated", Severity.WARNING, "Running statistics were never updated", also=(Severity.NOTICE,)
)

# So many times fewer batches than so many of the norms counted.
_BEHIND = 10
_MOST = 0.5


def _find(subject: Subject) -> Iterator[Finding]:
    norms = batch_norms(subject)
    default = [norm for norm in norms if norm.stats_default]
    # Scale and shift have moved, or batches were counted: the network was trained, and these means are not its means.
    trained = [norm for norm in default if norm.affine_moved or norm.batches]
    if trained:
        yield NEVER_UPDATED.found(
            f"{counted(len(trained), 'batch norm')} of {len(norms):,} ({_names(trained)}) "
            f"{'has' if len(trained) == 1 else 'have'} running means of 0 and variances of 1 throughout, beside a "
            "scale and shift that were trained or batches that were counted.",
            subjects=[norm.name_of(Role.RUNNING_MEAN) for norm in trained],
            evidence=(("norms", len(trained)), ("of", len(norms))),
            remedy="In evaluation it normalises by these and answers otherwise than in training. Averaged weights need "
            "torch.optim.swa_utils.update_bn; else run training batches through it in training mode. Harmless where "
            "it is never run in evaluation mode.",
        )
    rest = [norm for norm in default if not (norm.affine_moved or norm.batches)]
    if rest and len(rest) < len(norms):
        yield NEVER_UPDATED.found(
            f"{counted(len(rest), 'batch norm')} of {len(norms):,} ({_names(rest)}) "
            f"{'is' if len(rest) == 1 else 'are'} as initialised, while others hold statistics.",
            severity=Severity.NOTICE,
            subjects=[norm.name_of(Role.RUNNING_MEAN) for norm in rest],
            evidence=(("norms", len(rest)), ("of", len(norms))),
            remedy="No batch went through it: a branch that is not used, a new part, or a norm folded into its layer.",
        )
    uncounted = [norm for norm in norms if not norm.stats_default and norm.batches == 0]
    if uncounted and any(norm.batches for norm in norms):
        yield NEVER_UPDATED.found(
            f"{counted(len(uncounted), 'batch norm')} of {len(norms):,} ({_names(uncounted)}) "
            f"{'holds' if len(uncounted) == 1 else 'hold'} statistics, but counted 0 batches; others counted some.",
            severity=Severity.NOTICE,
            subjects=[norm.name_of(Role.COUNTER) for norm in uncounted],
            evidence=(("norms", len(uncounted)), ("of", len(norms)), ("batches", 0)),
            remedy="Statistics from another file, frozen since, look like this. The counter matters only to a norm "
            "with momentum=None.",
        )
    yield from _behind(norms)


def _behind(norms: Sequence[BatchNorm]) -> Iterator[Finding]:
    """Norms that counted far fewer batches than nearly all others."""
    counts = [norm.batches for norm in norms if norm.batches]
    usual, times = Counter(counts).most_common(1)[0] if counts else (0, 0)
    behind = [norm for norm in norms if norm.batches and norm.batches * _BEHIND <= usual]
    if not behind or times <= _MOST * len(counts):
        return
    fewest = min(norm.batches or 0 for norm in behind)
    yield NEVER_UPDATED.found(
        f"{counted(len(behind), 'batch norm')} of {len(norms):,} ({_names(behind)}) counted {fewest:,} "
        f"{'batch' if fewest == 1 else 'batches'}{' or more' if len(behind) > 1 else ''}; {times:,} others counted "
        f"{usual:,}.",
        severity=Severity.NOTICE,
        subjects=[norm.name_of(Role.COUNTER) for norm in behind],
        evidence=(("norms", len(behind)), ("of", len(norms)), ("batches", fewest), ("usual", usual)),
        remedy="A norm that was added or reset late, or a branch that seldom runs, looks like this. Otherwise it comes "
        "from another file.",
    )


def _names(norms: list[BatchNorm]) -> str:
    return listed([norm.module or "the root" for norm in norms])


CHECK = Check(kinds=(NEVER_UPDATED,), find=_find)
