"""What is known about a file apart from where its tensors go: reasons to refuse, in order, and remarks.

The first reason that holds is the sentence. Those about the numbers come first: they hold whatever the names do.
"""

from __future__ import annotations

from inspector.findings import Finding
from inspector.keys.remarks import adapters, conventions, origins, packed, passengers, pieces, sizes
from inspector.keys.remarks.entry import Remark, Seen

REMARKS: tuple[Remark, ...] = (
    pieces.FLAT,
    pieces.PLACEHOLDERS,
    pieces.LOCAL,
    packed.QUANTISED,
    packed.INTEGERS,
    adapters.ALONE,
    origins.CAFFE2,
    pieces.RANK,
    sizes.VARIANT,
    sizes.OTHER,
    sizes.DEPTH,
    sizes.BACKGROUND,
    conventions.TWINS,
    conventions.ROTARY,
    conventions.FUSED,
    conventions.GATED,
    conventions.EXPERTS,
    adapters.BESIDE,
    packed.COMPLEX,
    origins.STATISTICS,
    origins.COUNTERS,
    origins.ESRGAN,
    passengers.MOMENTS,
    passengers.EXTRA_STATES,
    passengers.LOSSES,
    passengers.BRANCHES,
    passengers.PROJECTIONS,
)


def reason(seen: Seen) -> str:
    """The sentence that refuses: a particular one where a remark knows better, else the one that there is."""
    for remark in REMARKS:
        if remark.reason is not None and (text := remark.reason(seen)):
            return text
    return seen.refusal


def notice(seen: Seen) -> tuple[Finding, ...]:
    """Everything else that is to be said about this file and this target."""
    return tuple(finding for remark in REMARKS if remark.find is not None for finding in remark.find(seen))
