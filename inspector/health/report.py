"""What was examined, what was found, and what was not looked at."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.findings import Finding
from inspector.health.roles import Role
from inspector.health.spectrum_report import SpectrumReport
from inspector.short_repr import short_repr
from inspector.weights.report import WeightsReport


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class HealthReport:
    """weights: the numbers. findings: worst first. roles: (name, role) in the state dict's order.

    not_examined: (what, why): tensors without numbers, then what checks passed over. beyond: tensors of the rest of the
    file (an optimizer's moments, a second set of weights) that were read as well; beyond_skipped: (name, why) of those
    that could not be read. spectra: None unless asked for; its
    findings and what it passed over are among the others.
    """

    __repr__ = short_repr

    weights: WeightsReport
    findings: tuple[Finding, ...]
    roles: tuple[tuple[str, Role], ...]
    not_examined: tuple[tuple[str, str], ...] = ()
    beyond: int = 0
    beyond_skipped: tuple[tuple[str, str], ...] = ()
    spectra: SpectrumReport | None = None

    @property
    def unread(self) -> tuple[tuple[str, str], ...]:
        """(name, why) of tensors without numbers, those of the rest of the file last."""
        return (*self.weights.skipped, *self.beyond_skipped)

    @property
    def passed_over(self) -> tuple[tuple[str, str], ...]:
        """(what, why) of `not_examined` that has numbers, and that a check left out all the same."""
        unread = set(self.unread)
        return tuple(one for one in self.not_examined if one not in unread)
