"""What was written, and how it was checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inspector.keys.report import Verification
from inspector.units import counted

_SAID = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """One file of an export. name: base name. sha256: of its bytes."""

    name: str
    nbytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CastReport:
    """What a cast did to the numbers; no tensor is left out by one.

    dtype: the new type. tensors: how many have it now and had another. largest_relative_error: |new - old| / |old| over
    the numbers that stay finite and do not become zero. overflows: finite numbers that became infinite. underflows:
    numbers that became zero. says: the same in one sentence.
    """

    dtype: str
    tensors: int
    largest_relative_error: float
    overflows: int
    underflows: int
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """One written file, or one folder of shards.

    name: base name. writer: entry id ("pth", "safetensors"). nbytes: of all files. sha256: of the written bytes, ""
    for several files, which have one each. files: what was written; of a folder, its index last.
    state: which of the file's state dicts was taken, "" where it is the file itself or several were put together.
    lost: what the format cannot carry ("epoch", "_metadata"). verification: proofs on the file read back.
    stays_initial: names of the target that the file does not fill, for a part. optimizers: what became of each
    optimizer of the file, a sentence each, where that was asked for. cast: None where every tensor kept its type.
    left_out: names of tensors that the state dict has and the file lacks. broken: of each tensor that was written with
    NaN or infinity, what it holds. notes: what else there is to know of what was written.
    """

    name: str
    writer: str
    nbytes: int
    sha256: str
    tensors: int
    lost: tuple[str, ...]
    verification: Verification
    stays_initial: tuple[str, ...] = ()
    optimizers: tuple[str, ...] = ()
    files: tuple[WrittenFile, ...] = ()
    state: str = ""
    cast: CastReport | None = None
    left_out: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_part(self) -> bool:
        """Whether tensors of the network are not in what was written."""
        return bool(self.stays_initial or self.left_out)


def broken_line(broken: Sequence[str]) -> str:
    """What an export carries along, in one sentence. broken: `BrokenTensor.says` of each."""
    more = f", and {len(broken) - _SAID:,} more" if len(broken) > _SAID else ""
    holds = "holds" if len(broken) == 1 else "hold"
    return (
        f"{counted(len(broken), 'tensor')} of what was written {holds} NaN or infinity, as in the file: "
        f"{'; '.join(broken[:_SAID])}{more}. A forward pass through one answers NaN."
    )
