"""What was written, and how it was checked."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.keys.report import Verification


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """One written file.

    name: base name. writer: entry id ("pth", "safetensors"). sha256: of the written bytes.
    lost: what the format cannot carry ("epoch", "_metadata"). verification: proofs on the file read back.
    stays_initial: names of the target that the file does not fill, for a part.
    """

    name: str
    writer: str
    nbytes: int
    sha256: str
    tensors: int
    lost: tuple[str, ...]
    verification: Verification
    stays_initial: tuple[str, ...] = ()
