"""What differs between two checkpoints: one object per pair of files. Frozen, without torch, so that it pickles."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from inspector.checkpoint.types import Shape, StateRole
from inspector.compare.numbers import Change, PairNumbers

__all__ = [
    "MEASURED",
    "Alignment",
    "Change",
    "Diff",
    "ModuleDiff",
    "OtherChange",
    "OtherKind",
    "PairNumbers",
    "Relation",
    "Reshape",
    "Side",
    "TensorDiff",
    "TensorSide",
    "Totals",
    "Unpaired",
    "Verdict",
    "Way",
]


class Relation(StrEnum):
    """What the second tensor is to the first, in the order in which tables count them.

    SAME: type, shape and bytes. CAST: the same numbers in another type: rounded to the nearest that it has, or widened
    exactly. TRUNCATED: another type, whose low bits were cut off instead of rounded. CHANGED: same shape, other
    numbers. RESHAPED: another shape. ADDED, REMOVED: only in the second, only in the first. UNREAD: not compared, and
    the note says why.
    """

    SAME = "same"
    CAST = "cast"
    TRUNCATED = "truncated"
    CHANGED = "changed"
    RESHAPED = "reshaped"
    ADDED = "added"
    REMOVED = "removed"
    UNREAD = "unread"


#: Pairs of one shape whose bytes are not the same: they have numbers, unless the note says why not.
MEASURED = (Relation.CAST, Relation.TRUNCATED, Relation.CHANGED)


class Reshape(StrEnum):
    """What the numbers of a tensor of another shape are to the first one's.

    ROW_MAJOR: as many, equal one after the other. TRANSPOSED: equal once the axes are exchanged. FIRST_ROWS: the rows
    that both have are equal, one has more of them. OTHER: none of these. UNKNOWN: not looked at.
    """

    ROW_MAJOR = "same numbers in row-major order"
    TRANSPOSED = "axes exchanged"
    FIRST_ROWS = "first rows equal"
    OTHER = "other numbers"
    UNKNOWN = "not compared"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSide:
    """One tensor of a pair as its file declares it. name: its key in its state dict."""

    name: str
    shape: Shape
    dtype: str
    numel: int
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorDiff:
    """Two tensors that belong together, or one that has no counterpart.

    a, b: None for what only the other file has. numbers: of CAST, TRUNCATED and CHANGED pairs, and of the rows that
    both of a RESHAPED pair have where those differ; None for all others.
    reshape: of a RESHAPED pair. axes: which of the first one's axes each of the second one's is, where that is all that
    differs: of a RESHAPED pair (TRANSPOSED), and of a CHANGED square matrix.
    rows: of a RESHAPED pair that differs along its first axis alone, how many rows both have.
    parts: numbers for one element, 2 of complex ones: real and imaginary parts are counted, and places in them.
    by_digest: known beforehand, so that nothing was read.
    note: what else is to be said, a clause: how it was cast, why it was not read; "" for nothing.
    """

    a: TensorSide | None
    b: TensorSide | None
    relation: Relation
    numbers: PairNumbers | None = None
    reshape: Reshape | None = None
    axes: tuple[int, ...] = ()
    rows: int = 0
    parts: int = 1
    by_digest: bool = False
    note: str = ""

    @property
    def name(self) -> str:
        """The first file's name of it; the second's where only that has it."""
        side = self.a or self.b
        return side.name if side is not None else ""

    @property
    def renamed(self) -> bool:
        """Whether the files name it differently."""
        return self.a is not None and self.b is not None and self.a.name != self.b.name

    @property
    def is_only_renamed(self) -> bool:
        """Whether the name is all that differs."""
        return self.renamed and self.relation is Relation.SAME

    def differs(self, tolerance: float | None = None) -> bool:
        """Whether it counts as different: anything but SAME. tolerance: relative L2 up to which numbers of one shape
        count as the same, in whatever type they are; NaN and infinities must be the same ones."""
        if self.relation is Relation.SAME:
            return False
        numbers = self.numbers if self.relation in MEASURED else None
        if tolerance is None or numbers is None:
            return True
        # What is not finite is in no sum.
        return numbers.odd_equal != numbers.n - numbers.finite or not numbers.relative <= tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Tensors of some part of the files.

    counts: (relation, tensors), in the order of `Relation`, without those that none has.
    parameters_a, parameters_b: elements. elements: of the pairs that were compared, two for a complex
    number that changed. equal: those of them with the same value. numbers: of CAST, TRUNCATED and CHANGED
    pairs of floating-point or complex tensors, added up; None without. Counters are never among them, other integers
    where no other tensor differs. without_norm: such pairs that were left out of numbers.
    """

    counts: tuple[tuple[Relation, int], ...] = ()
    parameters_a: int = 0
    parameters_b: int = 0
    elements: int = 0
    equal: int = 0
    numbers: PairNumbers | None = None
    without_norm: int = 0

    def count(self, *relations: Relation) -> int:
        """Tensors of these relations."""
        return sum(number for relation, number in self.counts if relation in relations)

    @property
    def tensors(self) -> int:
        """All of them; a pair counts once."""
        return sum(number for _, number in self.counts)

    @property
    def relative(self) -> float | None:
        """|b - a| / |a| over the tensors that are not the same and have a norm; None without any."""
        return None if self.numbers is None else self.numbers.relative

    @property
    def share_changed(self) -> float:
        """Elements with another value, of those compared; 0 without any."""
        return (self.elements - self.equal) / self.elements if self.elements else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleDiff:
    """A module with everything below it, by the first file's names. path: "" for the whole. depth: 0 for the whole."""

    path: str
    depth: int
    totals: Totals


class Way(StrEnum):
    """By what the tensors of two files were paired, the strongest first."""

    NAMES = "names"
    PREFIX = "a prefix"
    TABLE = "a table of names"
    PLAN = "the repair plan"
    BYTES = "equal bytes"
    ORDER = "shapes and order"
    NONE = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpaired:
    """Tensors that could be each other's counterpart in more than one way, and so are nobody's. why: a clause."""

    a: tuple[str, ...]
    b: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """How tensors of one file were found in the other.

    way: the weakest thing that a pair rests on. says: one sentence. rules: how names were changed, each in words.
    by_name, by_other: pairs of the same name, and others. only_a, only_b: without counterpart.
    ambiguous: refused rather than guessed; they are in only_a and only_b too.
    """

    way: Way
    says: str
    by_name: int = 0
    by_other: int = 0
    rules: tuple[str, ...] = ()
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    ambiguous: tuple[Unpaired, ...] = ()

    @property
    def pairs(self) -> int:
        """Tensors that have a counterpart."""
        return self.by_name + self.by_other


class OtherKind(StrEnum):
    """What beside the weights' numbers can differ. The first three are of the container."""

    FORMAT = "container"
    ORDER = "order of names"
    SHARING = "shared memory"
    METADATA = "metadata"
    HYPERPARAMETER = "hyperparameter"
    OPTIMIZER = "optimizer"
    MODULE_CLASS = "class of a module"
    CLASS_NAMES = "names of classes"
    CODE = "code"
    VERSION = "version of a module"
    STATE_DICT = "other tensors"

    @property
    def is_container(self) -> bool:
        """Whether it is only of how the file is written."""
        return self in (OtherKind.FORMAT, OtherKind.ORDER, OtherKind.SHARING)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherChange:
    """One thing beside the weights that differs. a, b: as text, None where that file has none. parameter: which one an
    optimizer's entry belongs to, "" where that is not told."""

    kind: OtherKind
    where: str
    a: str | None
    b: str | None
    parameter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two files.

    state: label of the state dict that was compared, "" where the file has none and all its tensors were. role, why:
    what that is taken for. path: keys from the root to it. choices: labels of the state dicts that could be chosen.
    parameters: elements of those that are parameters, tied ones once, nbytes: bytes of all tensors.
    """

    name: str
    format_says: str
    file_nbytes: int
    sha256: str | None
    state: str
    path: tuple[str, ...]
    role: StateRole | None
    why: str
    choices: tuple[str, ...]
    tensors: int
    parameters: int
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One thing that the comparison says of the two files as a whole.

    id: the entry in `compare/verdicts/`. title: a few words. says: a sentence with its numbers.
    proved: True where the numbers leave no other reading, False for a likeness. test: what was tested, a clause.
    number, threshold: what came out, and from where on it is said; None for a test without a number.
    refuted_by: what would have to be seen for it to be wrong. subjects: the tensors or modules that it is about.
    """

    id: str
    title: str
    says: str
    proved: bool
    test: str
    number: float | None
    threshold: float | None
    refuted_by: str
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """The second file held against the first.

    tensors: in the first file's order, then what only the second has. modules: every module before those in it, the
    whole first. totals: of the whole. says: the answer in a sentence. others: what differs beside the numbers.
    verdicts: the exact ones first. skipped: what was not compared, and why. evidence: one equal tensor that only a
    common past explains, "" where there is none or it was not looked for. incomplete: what is missing of either file (a
    shard, its end), a sentence each: nothing is proved of such a pair. read_nbytes: tensor bytes of both files
    that were read; what known digests spared is not in it.
    seconds: how long it took.
    """

    a: Side
    b: Side
    alignment: Alignment
    tensors: tuple[TensorDiff, ...]
    modules: tuple[ModuleDiff, ...]
    totals: Totals
    says: str = ""
    others: tuple[OtherChange, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    skipped: tuple[str, ...] = ()
    evidence: str = ""
    incomplete: tuple[str, ...] = ()
    read_nbytes: int = 0
    seconds: float = 0.0

    def differs(self, tolerance: float | None = None) -> bool:
        """Whether the weights differ: another number, type, shape or tensor, or one that could not be read.

        Another name for the same numbers is no difference of weights. tolerance: relative L2 per tensor up to which
        numbers count as the same, in whatever type.
        """
        return any(tensor.differs(tolerance) for tensor in self.tensors)

    @property
    def unread(self) -> tuple[TensorDiff, ...]:
        """What could not be compared."""
        return tuple(tensor for tensor in self.tensors if tensor.relation is Relation.UNREAD)
