"""What is handed on about one file: the facts of all slices, small enough to send and stable enough to keep.

This is what `docs/schema/report-1.json` publishes. Within a version fields may be added, with a default; whatever
renames one, takes one away or changes its meaning begins a new version and says in `versions.py` how the old one is
read.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from inspector.cam.report import Preprocessing, Score
from inspector.findings import Finding, Severity
from inspector.installed import own_version
from inspector.keys.report import Proof, RuleUse
from inspector.overview import Answer
from inspector.params.report import ModuleCount, RoleSource
from inspector.short_repr import short_repr
from inspector.weights.report import Fingerprint

#: What names the schema, and its version behind the slash.
SCHEMA_NAME = "model-inspector/report"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Which program wrote a report."""

    name: str = "model-inspector"
    version: str = field(default_factory=own_version)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFacts:
    """One of several files that a checkpoint is made of. nbytes: its length. says: what it is."""

    name: str
    nbytes: int
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """Which file it is.

    name: what the person called it. format: id of the reader; format_says: the same in words. nbytes: its length.
    sha256: hex digits, "" where its bytes were not read. digest_of: what the digest is one of where it is not simply
    the file's. producer: the program that wrote it, "" where nothing tells. metadata: (key, value as text) beside the
    weights. state_dict: keys from the root to the weights that the rest is about.
    """

    name: str
    format: str
    format_says: str
    nbytes: int
    sha256: str
    digest_of: str
    producer: str
    tensors: int
    state_dict: tuple[str, ...]
    metadata: tuple[tuple[str, str], ...]
    parts: tuple[PartFacts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What the weights were recognised as. label: "torchvision/resnet18?num_classes=4". says: with its evidence.

    exact: every tensor fits and nothing is left over. score: 0..1, the share of names that fit. twins: other builders
    with the same names and shapes. official: the published file that this is, byte for byte, "" for others.
    macs: multiply-accumulates of one forward pass of an input of the shape macs_input, without its batch; None where
    they were not counted.
    """

    label: str
    says: str
    exact: bool
    score: float
    twins: tuple[str, ...]
    official: str
    macs: int | None = None
    macs_input: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeShare:
    """One element type: how many elements and bytes are of it."""

    dtype: str
    elements: int
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterFacts:
    """How large it is. modules: depth first, the whole model first, each with everything below it. role_source: how
    parameters were told from buffers. optimizer_nbytes: bytes of optimizer state in the same file."""

    modules: tuple[ModuleCount, ...]
    dtypes: tuple[TypeShare, ...]
    role_source: RoleSource
    optimizer_nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorNumbers:
    """What its elements are. minimum .. rms: over the finite ones, None where none is (or, of the figures, where one is
    beyond float64). std: of the population. nan, infinite, zero: element counts."""

    minimum: float | None
    maximum: float | None
    mean: float | None
    std: float | None
    rms: float | None
    nan: int
    infinite: int
    zero: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFacts:
    """One tensor of the weights. role: what it is for ("convolution"), "" where it was not asked. numbers: None where
    they were not read."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    role: str = ""
    numbers: TensorNumbers | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceCount:
    """How many placed tensors rest on which evidence."""

    evidence: str
    tensors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairFacts:
    """How the file fits what it was recognised as, or a target that was named.

    target: its label. says: the diagnosis. refusal: why it cannot be repaired, "" when it can. loads: a strict load
    passes as it is. complete: what `rules` say makes it pass. matched .. reshaped: tensors as the file is;
    left_over: names that nothing settles. placed: why tensors belong where the plan puts them. findings: of the
    comparison. proofs: what was verified, () where nothing was; not_verified: why. code: Python lines that load the
    file, "" where none would.
    """

    target: str
    says: str
    refusal: str
    loads: bool
    complete: bool
    matched: int
    missing: int
    unexpected: int
    reshaped: int
    left_over: tuple[str, ...]
    rules: tuple[RuleUse, ...]
    placed: tuple[EvidenceCount, ...]
    findings: tuple[Finding, ...]
    proofs: tuple[Proof, ...]
    not_verified: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MapFacts:
    """One heat map that somebody kept. picture: its name; picture_sha256: of its bytes. layer: as the command names it.

    command: makes the map again. scores: top classes, best first. findings: what is wrong with the map.
    png: the map over the picture; it stands in the page and not in the JSON.
    """

    picture: str
    picture_sha256: str
    method: str
    layer: str
    asked: str
    target: Score
    scores: tuple[Score, ...]
    preprocessing: Preprocessing
    command: str
    findings: tuple[Finding, ...]
    png: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """The report about one file.

    schema: "model-inspector/report/1". answers: the Overview's sentences in their order. severity: of the worst
    finding, None without one. findings: worst first, of the file, its recognition and its numbers. claims: what names
    and shapes tell of a network that nobody knows. tensors: of the weights, in the file's order. fingerprint: rows of
    at most a few hundred tensors, neighbours joined. repair: None where there is nothing to compare with. numbers_read:
    whether `tensors` have theirs. not_examined: (what, why).
    """

    __repr__ = short_repr

    schema: str = f"{SCHEMA_NAME}/{VERSION}"
    engine: Engine = field(default_factory=Engine)
    file: FileFacts
    answers: tuple[Answer, ...]
    severity: Severity | None
    findings: tuple[Finding, ...]
    model: ModelFacts | None
    claims: tuple[str, ...]
    parameters: ParameterFacts | None
    numbers_read: bool
    tensors: tuple[TensorFacts, ...]
    fingerprint: Fingerprint | None
    repair: RepairFacts | None
    maps: tuple[MapFacts, ...] = ()
    not_examined: tuple[tuple[str, str], ...] = ()
