"""What was examined, what was found, and what was not looked at."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.findings import Finding
from inspector.health.roles import Role
from inspector.weights.report import WeightsReport


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """weights: the numbers. findings: worst first. roles: (name, role) in the state dict's order.

    not_examined: (what, why): tensors without numbers, checks that ended early. beyond: tensors of the rest of the
    file (an optimizer's moments, a second set of weights) that were read as well.
    """

    weights: WeightsReport
    findings: tuple[Finding, ...]
    roles: tuple[tuple[str, Role], ...]
    not_examined: tuple[tuple[str, str], ...] = ()
    beyond: int = 0
