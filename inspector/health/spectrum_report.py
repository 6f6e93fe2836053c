"""What the singular values of the weights are, and what was not looked at."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.findings import Finding
from inspector.health.power_law import PowerLaw
from inspector.health.roles import Role

#: Singular values below this part of the largest are rounding: float32's of the file, and the square root of float64's.
ROUNDING = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class Spectrum:
    """Of one weight as a matrix (rows, columns).

    living: the fewer of its rows and its columns that are not zero throughout.
    spectral_norm: the largest singular value. stable_rank: squared Frobenius over squared spectral norm.
    effective_rank: exp of the entropy of the singular values; values: all of them, float64, largest first, native byte
    order; power_law: how the squares of those above rounding fall off. None, b"" and None of a matrix whose shorter
    side is too long; no power_law of small ones.
    """

    name: str
    role: Role
    rows: int
    columns: int
    living: int
    spectral_norm: float
    stable_rank: float
    effective_rank: float | None
    values: bytes
    power_law: PowerLaw | None

    @property
    def side(self) -> int:
        """The shorter side: the most that any rank can be."""
        return min(self.rows, self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpectrumReport:
    """spectra: in the state dict's order. findings: worst first. skipped: (name, why)."""

    spectra: tuple[Spectrum, ...]
    findings: tuple[Finding, ...]
    skipped: tuple[tuple[str, str], ...]

    @property
    def not_examined(self) -> tuple[tuple[str, str], ...]:
        """(name, why) of `skipped`, and of what has a norm and a stable rank alone, for its size."""
        long = [one for one in self.spectra if one.effective_rank is None]
        return (
            *((name, f"no spectrum: {why}") for name, why in self.skipped),
            *((one.name, f"norm and stable rank alone: its shorter side is {one.side:,}") for one in long),
        )
