"""What one watched forward pass showed: each module's call, and where it failed or gave bad values, with the cause.

No torch here: workers hand this to pages, and the command line writes it as text and JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from inspector.findings import Finding


class Sureness(StrEnum):
    """How much stands behind a cause. CERTAIN: the shapes, types or names that were seen leave no other. LIKELY: they
    allow another. UNKNOWN: nothing here knows the failure."""

    CERTAIN = "certain"
    LIKELY = "likely"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFacts:
    """A tensor by what is not its values. made_by: the module that gave it out last, or "input"; "" if not known."""

    shape: tuple[int, ...]
    dtype: str
    device: str = "cpu"
    made_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The values of one tensor, in float64; complex ones by their size.

    minimum, maximum, mean, deviation (of the whole, not of a sample): of the finite values, None where there is none.
    zeros: share of exact zeros. nans, infinities, negative_infinities: counts. constant: all values are one number.
    """

    minimum: float | None
    maximum: float | None
    mean: float | None
    deviation: float | None
    zeros: float
    nans: int
    infinities: int
    negative_infinities: int
    constant: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A tensor that a module gave. statistics: None on meta, and of an empty one."""

    shape: tuple[int, ...]
    dtype: str
    statistics: Statistics | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One call of one module.

    number: order of beginning. time: which call of this module, from 1. depth: 0 for the model. inside: number of the
    call it was made from. settings: as torch writes a layer's ("3, 64, kernel_size=(7, 7)"). inputs, outputs: every
    tensor in and out. ended: False for those that were running when the pass failed.
    """

    number: int
    path: str
    kind: str
    time: int
    depth: int
    inside: int | None
    settings: str
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[Output, ...] = ()
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLine:
    """A line of somebody's code. file: its name without folders, behind its package if it is installed."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Where a pass ended.

    stack: numbers of the calls that were running, outermost first. error: its class. says: its first line, folders
    taken out. operator: of torch, "" where it was Python code. operands: what that operator was given. expects: what
    the innermost module takes ("Linear(25088 -> 4096)", ""). line: of the model's code, nearest to the failure.
    """

    stack: tuple[int, ...]
    error: str
    says: str
    operator: str
    operands: tuple[TensorFacts, ...]
    expects: str
    line: SourceLine | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Why a pass failed.

    cause: id of the entry that knew it; "unknown". says: one sentence. fix: what to do. code: Python lines, "" where
    none can be given. tried: which changes were run, with what came of it. change: the line that is to be changed,
    where it is another than the one that fails: where the layer is made.
    """

    cause: str
    says: str
    fix: str = ""
    code: str = ""
    sureness: Sureness = Sureness.CERTAIN
    tried: tuple[str, ...] = ()
    change: SourceLine | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadChannels:
    """Channels of a ReLU that gave nothing but zeros. positions: values seen of each channel, in this one input."""

    path: str
    dead: int
    channels: int
    positions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """Values of a sigmoid, tanh or softmax at the ends of its range. share: of them, where its slope is below 1 % of
    its greatest; of a softmax rows whose greatest probability is above 0.999. gap: of a softmax, how far the greatest
    logit of a row stands above the fifth (median of rows); None where that was not measured."""

    path: str
    function: str
    share: float
    count: int
    gap: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """The same input in training and in evaluation, with the same random numbers.

    modules: (class, how many) that read the mode. difference: greatest absolute difference of the outputs; relative:
    norm of the difference over the norm of the evaluation's. None where the outputs cannot be compared. failure: of the
    mode that was not asked for. random: evaluation gives another answer with other random numbers.
    """

    modules: tuple[tuple[str, int], ...]
    difference: float | None
    relative: float | None
    failure: Diagnosis | None = None
    random: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What made one of the answer's tensors. function: "softmax", "log_softmax", "sigmoid", "relu", "linear" (a layer
    without activation), "" for anything else. path: of the module that ran it. line: that makes or runs it."""

    function: str
    path: str
    line: SourceLine | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One forward pass.

    target: what ran. inputs: (name or position, its facts). input_from: how they were made. training: the mode.
    operators: how many ran. greatest: (path, value) of the largest finite magnitude. first_bad: path of the first
    module with a bad value. skipped: what was not looked at, and why. ends: of floating-point answers.
    """

    target: str
    inputs: tuple[tuple[str, TensorFacts], ...]
    input_from: str
    training: bool
    calls: tuple[CallRecord, ...]
    operators: int = 0
    failure: Failure | None = None
    diagnosis: Diagnosis | None = None
    findings: tuple[Finding, ...] = ()
    first_bad: str | None = None
    dead: tuple[DeadChannels, ...] = ()
    saturations: tuple[Saturation, ...] = ()
    greatest: tuple[str, float] | None = None
    modes: Modes | None = None
    skipped: tuple[str, ...] = ()
    ends: tuple[End, ...] = ()
