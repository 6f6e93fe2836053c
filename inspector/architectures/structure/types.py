"""A network as its names and shapes tell it: claims with their evidence, and what no shape tells."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from inspector.architectures.structure.questions import Question


class LayerKind(StrEnum):
    """What a module is by the tensors in it. Where shapes leave two readings, both are in the name."""

    CONVOLUTION = "convolution"
    DEPTHWISE = "depthwise convolution"
    TRANSPOSED = "transposed convolution"
    EITHER_CONVOLUTION = "convolution or transposed convolution"
    MODULATED = "modulated convolution"
    BILINEAR = "bilinear layer or 1-d convolution"
    LINEAR = "linear layer"
    EMBEDDING = "embedding"
    MATRIX = "linear layer without bias or embedding"
    BATCH_NORM = "batch norm"
    NORM = "layer, group or instance norm"
    SCALE = "scale (a norm without bias, or one factor per channel)"
    PRELU = "PReLU"
    SLOPE = "scale or PReLU slope"
    LSTM = "LSTM"
    GRU = "GRU"
    RNN = "plain recurrent layer"
    ATTENTION = "multi-head attention"
    FOURIER = "Fourier basis"
    TENSOR = "tensor of its own"


CONVOLUTIONS = frozenset(
    {
        *(LayerKind.CONVOLUTION, LayerKind.DEPTHWISE, LayerKind.TRANSPOSED),
        *(LayerKind.EITHER_CONVOLUTION, LayerKind.MODULATED),
    }
)
RECURRENT = frozenset({LayerKind.LSTM, LayerKind.GRU, LayerKind.RNN})
# Norms, and what is like them a number for each channel, or one for all.
SCALES = frozenset({LayerKind.SCALE, LayerKind.SLOPE, LayerKind.PRELU})
NORMS = SCALES | {LayerKind.BATCH_NORM, LayerKind.NORM}
# What is said of a convolution whose two widths might as well be the other way round.
BY_PLACES = "by the places of its sizes"
EITHER_WAY = "either way"
MAYBE_DEPTHWISE = "unless depthwise"
MAYBE_TABLE = "or a table"
LIKELY_TABLE = "likely a table"
MAYBE_TABLES = (MAYBE_TABLE, LIKELY_TABLE)
BOTH_DIRECTIONS = "both directions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One module with tensors.

    path: its dotted name. inputs, outputs: widths (channels, features, entries of an embedding), None where the shapes
    leave it open; a convolution's inputs are what one filter sees, which is less than it takes where it is grouped.
    kernel: sizes of a convolution's, () for others. evidence: the tensors that say so. more: what else the shapes tell
    ("2 layers, both directions"). biased: whether there is a bias beside the weight; None for other layers.
    """

    path: str
    kind: LayerKind
    inputs: int | None = None
    outputs: int | None = None
    kernel: tuple[int, ...] = ()
    evidence: str
    more: str = ""
    biased: bool | None = None

    @property
    def is_square(self) -> bool:
        """Whether it is a convolution as wide as it is deep, so that its shape is the same either way."""
        return self.kind is LayerKind.EITHER_CONVOLUTION and self.inputs == self.outputs

    @property
    def name(self) -> str:
        """Its path; a state dict of one layer alone has none."""
        return self.path or "the one layer"

    @property
    def size(self) -> str:
        """ "3x3", "1-d, 80 wide"; "" without a kernel."""
        return f"1-d, {self.kernel[0]} wide" if len(self.kernel) == 1 else "x".join(map(str, self.kernel))

    @property
    def says(self) -> str:
        """ "3x3 convolution 64 to 128"."""
        size = f"{self.size} " if self.kernel else ""
        if self.kind is LayerKind.DEPTHWISE:
            return f"{size}{self.kind.value}, {self.outputs:,} filters"
        if self.kind in CONVOLUTIONS:
            channels = "1 channel" if self.inputs == 1 else f"{self.inputs:,} channels"
            return f"{size}{self.kind.value}, {self.outputs:,} filters of {channels}"
        if self.kind is LayerKind.FOURIER:
            return f"{self.kind.value}: {self.more}"
        widths = f" {self.inputs:,} to {self.outputs:,}" if self.inputs and self.outputs else ""
        if not widths and (self.inputs or self.outputs):
            widths = f" of {self.inputs or self.outputs:,}"
        return f"{size}{self.kind.value}{widths}" + (f", {self.more}" if self.more else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Modules of one build, one after the other by their numbers.

    path: what all their names begin with. first, count: their numbers. equal: whether all shapes are equal too.
    layers: of the first one. widths: what each puts out by its last layer with a width, () where that is not told.
    inner: stacks in the first block. extra: layers that only some of the blocks have, as a shortcut of another width.
    picked: their numbers where others stand between them, () where they follow each other.
    """

    path: str
    first: int
    count: int
    equal: bool
    layers: tuple[Layer, ...]
    widths: tuple[int, ...] = ()
    inner: tuple[Stack, ...] = ()
    extra: tuple[Layer, ...] = ()
    picked: tuple[int, ...] = ()

    @property
    def numbers(self) -> tuple[int, ...]:
        """Of its blocks, in their order."""
        return self.picked or tuple(range(self.first, self.first + self.count))

    def block_name(self, place: int) -> str:
        """The dotted path of one of its blocks."""
        return f"{self.path}{self.numbers[place]}"


class Topic(StrEnum):
    """What a claim is about.

    TAKES is said of the network's input. FED: a width that a layer takes and nothing in the file puts out, where it
    need not be the input's. LAYERS: the layers of one part with their widths. JOINS: widths that add up.
    KIND: of network, where names and shapes show it. ABSENT: what is in no tensor of the file.
    OWN: tensors in no layer of torch's, by their names and the widths around them. PROJECTIONS: attention's, by name.
    LIKELY_END: what the last layer puts out where others take as many, which ENDS_IN does not say.
    LEFT_OUT: numbers of a list that no name has.
    """

    TAKES = "takes"
    FED = "is fed"
    LAYERS = "layers"
    JOINS = "joins"
    RECURRENT = "recurrent"
    ENDS_IN = "ends in"
    REPEATS = "repeats"
    HEADS = "heads"
    ATTENTION = "attention"
    POSITIONS = "positions"
    NEAREST = "nearest"
    OWN = "own tensors"
    PROJECTIONS = "projections"
    LIKELY_END = "likely ends in"
    LEFT_OUT = "left out"
    KIND = "kind"
    ABSENT = "absent"


# How widths are written in claims of `Topic.LAYERS` and `Topic.REPEATS`.
CHAIN_NOTATION = '"3x3 convolutions 3-64-128" are one of 3 to 64 channels and one of 64 to 128, by place or number'
LINEAR_NOTATION = '"linear layers 3-64-128" are one of 3 to 64 and one of 64 to 128, by place or number'
BLOCK_NOTATION = '"64-128 / 128-256" are those of a block and of a later one, equal neighbours once'


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One thing that names and shapes determine. value: the number in it. path: the module that it is about."""

    topic: Topic
    says: str
    evidence: str
    value: int | None = None
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A module at the top of the network. says: what layers are in it."""

    path: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """says: the network in a few sentences. counts: how many layers of which kind, in one. open: what no shape tells.
    parts: at the top, in the file's order, which need not be the order of calls; more_parts: how many are not listed.
    layers: in the file's order; ordered: whether that is the order in which they were made. stacks: outermost first.
    blocks: the stacks with their widths, in a sentence; "" where there are none.
    """

    says: str
    counts: str
    claims: tuple[Claim, ...]
    open: tuple[Question, ...]
    parts: tuple[Part, ...]
    stacks: tuple[Stack, ...]
    layers: tuple[Layer, ...]
    ordered: bool
    more_parts: int = 0
    blocks: str = ""

    @property
    def short(self) -> str:
        """What it consists of, is like, takes and puts out, and its blocks with their widths, without its parts."""
        begins = self._said(Topic.NEAREST, Topic.KIND, most=2) + self._said(Topic.TAKES, most=2)
        ends = self._said(Topic.ENDS_IN, most=2) or self._said(Topic.LIKELY_END, most=1)
        return " ".join([self.counts, *begins, *([self.blocks] if self.blocks else []), *ends])

    @property
    def likeness(self) -> str:
        """Whose layers or body it has, and what it ends in where that is no layer of classes; "" where nobody's."""
        alike = self._said(Topic.NEAREST, most=1)
        return " ".join([*alike, *(self._said(Topic.LIKELY_END, most=1) if alike else [])])

    def _said(self, *topics: Topic, most: int) -> list[str]:
        return [claim.says for claim in self.claims if claim.topic in topics][:most]
