"""Parameters that are taken the exponential of, and have grown so far that it overflows.

CLIP (Radford et al. 2021, 2103.00020) multiplies its cosines by exp(logit_scale) and clips that at 100; a Gaussian
policy's deviation is exp(log_std); Mamba's decay is exp(A_log) (Gu and Dao 2023, 2312.00752). exp(88.7) is float32's
largest number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import shown
from inspector.health.subject import Subject

EXPONENT = FindingKind(
    "exponent-overflows", Severity.WARNING, "A parameter in an exponential has run away", also=(Severity.NOTICE,)
)

_LOGARITHM = re.compile(
    r"logit_scale|log_(logit_)?(scale|std|sigma|var|variance|alpha|temp\w*|tau|beta|gamma|lambda\w*|prec\w*)"
    r"|(\w+_)?(logstd|logvar|logsigma)|(\w+_)?log_?(std|sigma|var|alpha)|A_log|A_logs"
)
_OVERFLOWS = math.log(3.4028234663852886e38)
# Beyond it a softmax is a maximum: CLIP clips at log(100) = 4.6, SigLIP's came to 4.8.
_SHARP = 6.0


def _find(subject: Subject) -> Iterator[Finding]:
    for one, t in subject.measured_called(_LOGARITHM.fullmatch):
        if not t.finite or t.maximum <= 0:
            continue
        overflows = t.maximum > _OVERFLOWS
        # Some keep the factor itself under this name, and fixed: 16, 30, 64, 100, 128.
        meant = one.last == "logit_scale" and t.numel == 1 and _is_round(t.maximum)
        if meant or not (overflows or (one.last == "logit_scale" and t.numel == 1 and t.maximum > _SHARP)):
            continue
        becomes = "is infinite in float32" if overflows else f"is {math.exp(t.maximum):,.0f}"
        yield EXPONENT.found(
            f"{shown(one.name)} has come to {t.maximum:.4g}: where its exponential is taken, that {becomes}.",
            severity=Severity.WARNING if overflows else Severity.NOTICE,
            subjects=[one.name],
            evidence=(("largest", t.maximum), ("threshold", _OVERFLOWS)),
            remedy="CLIP's code clips logit_scale at log(100) = 4.6 after each step, and others clamp theirs: was that "
            "left out? Harmless where the forward clamps it, or uses the number itself and no exponential of it.",
        )


def _is_round(number: float) -> bool:
    return number % 10 == 0 or math.log2(number) % 1 == 0


CHECK = Check(kinds=(EXPONENT,), find=_find)
