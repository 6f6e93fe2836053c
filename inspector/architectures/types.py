"""What a file is compared with (`Target`) and what it was recognised as (`Recognition`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from inspector.architectures.structure.types import Structure
from inspector.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTensor:
    """One entry of the state dict that a model expects.

    dtype: torch's name, None when a plain key list was given. shape: None then too.
    is_buffer: True for buffers, False for parameters, None when unknown.
    held: what the model's own code has computed or set in a buffer (`code_runner.held_in`), "" where nothing is known.
    """

    name: str
    shape: tuple[int, ...] | None
    dtype: str | None = None
    is_buffer: bool | None = None
    held: str = ""


OptionValue = bool | int | float | str | tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """An argument that names and shapes do not determine. name, value: as in a spec's options.

    why: where the value comes from: what is usual, or where it is stated.
    """

    name: str
    value: OptionValue
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One input of a forward pass, without its values.

    name: of the argument, "" for the first one. shape: with the batch dimension. below: for whole numbers, the first
    that is none (the vocabulary); 0 for any number.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    below: int = 0

    @property
    def is_picture(self) -> bool:
        """Whether this is one picture, given as the only argument."""
        return not self.name and len(self.shape) == 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchitectureSpec:
    """A model that can be built: a library's builder, or a family, and the arguments that the file determines.

    library: "torchvision", "timm", or a family's ("transformers"). name: the builder ("resnet18") or family ("bert").
    num_classes, in_channels: None for the builder's own default.
    options: the builder's other settings that change its names, shapes or arithmetic, sorted by name
    (("aux_loss", True), ("image_size", 384)); see `build.OPTIONS`. A family's are all its sizes (("layers", 12)).
    assumed: what a forward pass depends on and nobody has confirmed; written among the options it is confirmed.
    """

    library: str
    name: str
    num_classes: int | None = None
    in_channels: int | None = None
    options: tuple[tuple[str, OptionValue], ...] = ()
    assumed: tuple[Assumption, ...] = ()

    @property
    def image_size(self) -> int | None:
        """The picture's side that an option sets, None for the builder's own."""
        size = dict(self.options).get("image_size")
        return size if isinstance(size, int) else None

    @property
    def label(self) -> str:
        """As it is written on the command line: "torchvision/resnet18?num_classes=4&in_channels=1"."""
        pairs = (("num_classes", self.num_classes), ("in_channels", self.in_channels), *self.options)
        query = "&".join(f"{key}={_written(value)}" for key, value in pairs if value is not None)
        return f"{self.library}/{self.name}" + (f"?{query}" if query else "")


def _written(value: OptionValue) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


class TargetKind(StrEnum):
    """Where a target's names and shapes come from."""

    ARCHITECTURE = "architecture"
    FILE = "file"
    KEYS = "keys"
    CODE = "code"


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Target:
    """The state dict that should come out of a repair.

    label: as the user wrote it or as it was identified. tensors: in the model's own order.
    spec: how to build the model, for targets that are architectures.
    heads: names of the tensors whose size follows the class count; first_convolutions: those that follow the
    input channels. Both only where known. ties: groups of names that are one tensor there, where known.
    ordered: False when the tensors came in another order than the model's.
    """

    label: str
    kind: TargetKind
    tensors: tuple[TargetTensor, ...]
    spec: ArchitectureSpec | None = None
    heads: tuple[str, ...] = ()
    first_convolutions: tuple[str, ...] = ()
    ties: tuple[tuple[str, ...], ...] = ()
    ordered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An architecture with its evidence against one state dict.

    spec: with the class count and input channels that the file shows.
    twins: labels of other builders with the same names and shapes, which the file cannot tell apart.
    matched: names of the file's tensors that fit (in the target's spelling). missing, extra: target names absent from
    the file, file names unknown to the target (after the wrapper was taken off). reshaped: (name, shape in the file,
    shape in the target).
    wrapper: the prefix that had to be taken off to compare ("module."), "" when none; "…module." when the segment
    sits in the middle of names.
    score: 0..1, |matched| / |union of names|; adapted tensors (other class count, other input channels) count as
    matched. exact: every target tensor is there with the right shape and nothing is left over, but for bookkeeping.
    says: the evidence in one sentence. confirmed: which of the spec's options are stated somewhere, and where.
    """

    spec: ArchitectureSpec
    twins: tuple[str, ...]
    matched: tuple[str, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    reshaped: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
    wrapper: str
    score: float
    exact: bool
    says: str
    confirmed: tuple[Assumption, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """An architecture whose tensors have these shapes, whatever they are called. Claims nothing about names.

    label: "torchvision/resnet50". twins: builders with the same shapes in the same order. tensors: how many the
    architecture has, scalars left out; fitting: how many of them have a counterpart of their shape in the file.
    share: Jaccard similarity of the shapes as multisets; order: of pairs and triples of neighbours, 1.0 for the same
    order.
    """

    label: str
    twins: tuple[str, ...]
    share: float
    order: float
    tensors: int
    fitting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficialFile:
    """A published weights file that this file is, byte for byte, by its sha256.

    name: "ResNet18_Weights.IMAGENET1K_V1". categories: class names in output order, () where the publisher has none.
    """

    name: str
    spec: ArchitectureSpec
    file_name: str
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognition:
    """What a state dict was recognised as.

    state_dict: its path in the file. candidates: best first, at most five, only those worth showing.
    official: the published file it is, by digest. findings: what is odd about name, digest or match.
    says: the answer in one sentence, also when there is none. alike: asked only where no name says anything.
    part: what larger thing it is only a part of, in a sentence; "" for a whole model.
    structure: what names and shapes tell of a network that nothing fits exactly; None for others.
    """

    state_dict: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    official: OfficialFile | None
    findings: tuple[Finding, ...]
    says: str
    alike: tuple[Likeness, ...] = ()
    part: str = ""
    structure: Structure | None = None

    @property
    def answer(self) -> str:
        """The part first, then what it was recognised as. A part of a thing without a name is the whole answer."""
        known = self.candidates or self.official or self.alike
        return f"{self.part} {self.says}".strip() if known or not self.part else self.part

    @property
    def best(self) -> Candidate | None:
        """The first candidate, None when nothing is near enough to be named."""
        return self.candidates[0] if self.candidates else None
