"""What is asked of a network's tree, and what becomes of it: steps of `keys/` that the exports prove and write."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from inspector.architectures.types import Target
from inspector.keys.report import RepairPlan


class Initial(StrEnum):
    """How a new head begins. DEFAULT: as torch's own layer does (`reset_parameters` of Linear and Conv)."""

    DEFAULT = "default"
    ZEROS = "zeros"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Leave out the module of that path, with everything below it."""

    module: str

    @property
    def says(self) -> str:
        """For the preview."""
        return f"drop {self.module}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """Keep the module of that path alone. keep_prefix: under the names it has in the whole network."""

    module: str
    keep_prefix: bool = False

    @property
    def says(self) -> str:
        """For the preview."""
        return f"extract {self.module}{', names as they are' if self.keep_prefix else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewHead:
    """Another number of classes. module: the head, or what all heads of a known architecture are below.

    classes: as the architecture counts them; a network that nobody knows gets as many outputs. seed: of DEFAULT.
    """

    module: str
    classes: int
    how: Initial = Initial.DEFAULT
    seed: int = 0

    @property
    def says(self) -> str:
        """For the preview."""
        start = "zeros" if self.how is Initial.ZEROS else f"torch's default, seed {self.seed}"
        return f"new head {self.module} for {self.classes:,} classes ({start})"


Operation = Drop | Extract | NewHead


class Fate(StrEnum):
    """What becomes of tensors."""

    KEPT = "kept"
    RENAMED = "renamed"
    DROPPED = "dropped"
    NEW = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRow:
    """Tensors of one fate whose names fold to one pattern. becomes: where the first of them goes, "" where it keeps its
    name. nbytes: of their elements."""

    fate: Fate
    pattern: str
    tensors: int
    nbytes: int
    becomes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Of a state dict. nbytes: each memory once, as far as tensors show it."""

    tensors: int
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SurgeryReport:
    """The state dict before and after, and the plan that leads there.

    plan, target: what `export_repaired` takes; the target is the architecture that the result is, where there is one.
    goes_into: what is known of who takes the result, one sentence. notes: what else is to be said, each a sentence:
    a path found below a wrapper, memory that stays shared, state of optimizers that is left out.
    """

    plan: RepairPlan
    target: Target
    steps: tuple[str, ...]
    before: Size
    after: Size
    rows: tuple[PreviewRow, ...]
    goes_into: str
    notes: tuple[str, ...] = ()

    def count(self, fate: Fate) -> int:
        """How many tensors."""
        return sum(row.tensors for row in self.rows if row.fate is fate)
