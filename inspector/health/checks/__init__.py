"""The checks, in the order in which equals are shown. A new one is a file and a name here."""

from __future__ import annotations

from inspector.findings import Check
from inspector.health.checks import constant, large, non_finite
from inspector.health.subject import Subject

CHECKS: tuple[Check[Subject], ...] = (non_finite.CHECK, constant.CHECK, large.CHECK)
