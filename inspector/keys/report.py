"""How a file's keys relate to a target's, and the plan that makes them fit.

A plan is typed steps, each with its rule, its reason and its cost. The plan is the evidence shown, the code exported
and the thing applied: nothing happens to a tensor that is not a step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from inspector.checkpoint.types import Access, Gathered
from inspector.findings import Finding
from inspector.short_repr import short_repr


class Cost(StrEnum):
    """Whether a step keeps every number of the weights."""

    LOSSLESS = "lossless"
    LOSSY = "lossy"


class Evidence(StrEnum):
    """Why a tensor belongs where the plan puts it, the strongest first.

    EXACT_NAME: name and shape agree. RULE: a rule's renaming or change of shape leads there. WORDS: its name
    means the same as its place's, in one reading of all names. UNIQUE_TOKEN: no other
    tensor of the file and no other place of the target has this shape and role. ORDER_ONLY: its position in the
    sequence of tensors. SYMMETRIC: as ORDER_ONLY, but a neighbour could be in its place without any shape telling.
    CHOSEN: the user's word.
    """

    EXACT_NAME = "exact name"
    RULE = "rule"
    WORDS = "words"
    UNIQUE_TOKEN = "unique token"
    ORDER_ONLY = "order only"
    SYMMETRIC = "symmetric"
    CHOSEN = "chosen"


class StepKind(StrEnum):
    """What a step does to one tensor."""

    KEEP = "keep"
    RENAME = "rename"
    DROP = "drop"
    RESHAPE = "reshape"
    PERMUTE = "permute"
    MERGE = "merge"
    SPLIT = "split"
    ADAPT = "adapt"
    FILL = "fill"
    TIE = "tie"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One tensor's way from the file to the target.

    source: its key in the file, None for FILL. target: its key in the target, None for DROP.
    TIE puts a tensor that has a place of its own into a second one: one matrix as embedding and as output layer.
    shape: the target shape (RESHAPE: same elements in another shape; ADAPT and FILL: what is made).
    value: the way in which it is done, where a kind has several: its first word names the operation (`operations/`),
    what follows a colon is that operation's argument.
    axes: the file's axes in the target's order (PERMUTE). more: further tensors, put below the first (MERGE).
    rows: which rows of the file's tensor these are, from and up to (SPLIT, which uses one tensor in several steps, and
    DROP of the rows that none of them takes). beside: tensors that are only looked at, to check what the step rests on.
    declared: the target's own word for it, so that a rule that needs consent needs none here.
    rule: id of the rule that proposed it, "" when nothing needs doing; also: ids of further rules on the same tensor.
    reason: one sentence.
    evidence: why this tensor belongs there; for what is left out or filled in, by what right.
    """

    kind: StepKind
    source: str | None
    target: str | None
    rule: str
    reason: str
    cost: Cost
    evidence: Evidence
    shape: tuple[int, ...] | None = None
    value: str = ""
    also: tuple[str, ...] = ()
    axes: tuple[int, ...] = ()
    more: tuple[str, ...] = ()
    rows: tuple[int, int] = (0, 0)
    beside: tuple[str, ...] = ()
    declared: bool = False

    @property
    def sources(self) -> tuple[str, ...]:
        """Every tensor of the file that goes into this step."""
        return () if self.source is None else (self.source, *self.more)

    @property
    def takes(self) -> tuple[str, ...]:
        """The tensors that this step settles: a tied one is settled by the step that gives it its own place."""
        return () if self.kind is StepKind.TIE else self.sources


def used_sources(steps: Iterable[Step]) -> list[str]:
    """Every tensor of the file as often as it is used; one that is taken apart row by row, without gap, counts once."""
    found: list[str] = []
    cuts: dict[str, list[tuple[int, int]]] = {}
    for step in steps:
        if step.rows != (0, 0) and step.source is not None:
            cuts.setdefault(step.source, []).append(step.rows)
        elif step.source is not None and step.kind is not StepKind.TIE:
            found.append(step.source)
            found += step.more
    for source, rows in cuts.items():
        rows.sort()
        whole = rows[0][0] == 0 and all(a[1] == b[0] for a, b in pairwise(rows))
        found += [source] if whole else [source] * (len(rows) + 1)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleUse:
    """One rule of a plan with everything it explains, for the preview and the exported code.

    id: the rule. says: 'drop the segment "module."'. cost: of its worst step. count: how many tensors.
    examples: at most three (from, to). accepted: what is lossy or rests on order is applied only when the user said so.
    parameters: what the rule was instantiated with (("segment", "module"),).
    """

    id: str
    says: str
    cost: Cost
    count: int
    examples: tuple[tuple[str, str], ...]
    accepted: bool
    parameters: tuple[tuple[str, str], ...] = ()


#: Of the question which of the file's sets of weights is meant: its options are labels of state dicts.
WHICH_STATE = "state"


#: Whose order a question is about.
FILE, TARGET = "file", "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ambiguity:
    """A decision that the file does not make: two or more ways that fit equally well.

    id: what `--choose ID=OPTION` names. question: one sentence. options: (id, what it means).
    places: where it comes up, if it can be answered for each of them (`--choose ID:PLACE=OPTION`).
    side: of an order inside tensors, whose it is: FILE, of which numbers may say something (`witnesses/`), or TARGET;
    "" elsewhere.
    """

    id: str
    question: str
    options: tuple[tuple[str, str], ...]
    places: tuple[str, ...] = ()
    side: str = ""

    def at(self, place: str) -> str:
        """What names this question at one of its places."""
        return f"{self.id}:{place}".replace("=", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPlan:
    """How to turn one state dict of the file into the target's.

    state_dict: which one, by path. steps: one per tensor of the file and one per filled target tensor.
    rules: the same, grouped. ambiguities: open questions; needs_accept: ids of rules not accepted yet.
    missing: target names that nothing fills. complete: applying it gives a strict load, or, if partial, one with
    `strict=False` that lacks exactly `missing`. partial: the user asked for a part, and what is missing stays at the
    model's initial value.
    format: reader that the file needs, for the exported code, "" when it has to be exported first; files: what that
    reader is given, () for the file itself (`loading.py`). access: mapping keys and list indices from what that loader
    returns to the state dict. is_module: the state dict is a pickled module's. unpickles: no format, and torch.load
    with weights_only=False reads the file, running what it names.
    versions: torch's `_metadata` of the source, (module path, version), renamed as the tensors are.
    others: keys of the state dict whose values are no tensors; they are left out. odd_keys: keys that are no text, as
    Python writes them, left out with what lies under them. lost: how many of its tensors have
    not all their numbers in the file. state_option: what a command needs to take this state dict ("" where it takes it
    by itself); chosen: (question, option) of the answers that the plan rests on. gathered: the sets of the file that
    the state dict is made of, where they lie apart.
    """

    target: str
    state_dict: tuple[str, ...]
    steps: tuple[Step, ...]
    rules: tuple[RuleUse, ...]
    ambiguities: tuple[Ambiguity, ...]
    needs_accept: tuple[str, ...]
    missing: tuple[str, ...]
    complete: bool
    format: str = "torch-zip"
    files: tuple[str, ...] = ()
    access: Access = ()
    is_module: bool = False
    unpickles: bool = False
    versions: tuple[tuple[str, int], ...] = ()
    others: tuple[str, ...] = ()
    odd_keys: tuple[str, ...] = ()
    partial: bool = False
    lost: int = 0
    state_option: str = ""
    chosen: tuple[tuple[str, str], ...] = ()
    gathered: tuple[Gathered, ...] = ()

    @property
    def stays_initial(self) -> tuple[str, ...]:
        """Target names that keep the model's initial value: what a partial repair lacks, and what a step leaves so."""
        left = tuple(s.target for s in self.steps if s.kind is StepKind.FILL and s.value == "initial" and s.target)
        return left + (self.missing if self.partial else ())

    @property
    def certificate(self) -> tuple[tuple[Evidence, int], ...]:
        """How many placed tensors rest on which evidence, the strongest first; none that nothing rests on."""
        placed = [step.evidence for step in self.steps if step.source is not None and step.target is not None]
        return tuple((kind, placed.count(kind)) for kind in Evidence if kind in placed)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyReport:
    """The state dict as it is, against the target, before anything is changed.

    matched, missing, unexpected: names (matched and missing as the target spells them, unexpected as the file does).
    reshaped: (name, shape in the file, shape in the target). loads: `load_state_dict(strict=True)` would pass as it is.
    strict: the same where the numbers are not what the model means: it would pass, and `loads` is not said.
    says: the diagnosis in one sentence or two. compared: the part of it that names and shapes alone tell; the rest is
    what a plain load meets before (`plain_load.py`). refusal: why it cannot be repaired, "" when it can.
    plan: the repair; None only when refused outright. made_good: what a strict load that passes makes good of an older
    torch's file (`older_files.py`), a clause, "" for nothing.
    """

    __repr__ = short_repr

    target: str
    state_dict: tuple[str, ...]
    matched: tuple[str, ...]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    reshaped: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
    loads: bool
    says: str
    findings: tuple[Finding, ...]
    plan: RepairPlan | None
    refusal: str = ""
    compared: str = ""
    made_good: str = ""
    strict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """One thing that was verified about a repair. passed: None when it was not possible here; says: what and how."""

    id: str
    says: str
    passed: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Everything verified about a plan or an exported file. holds: no proof failed and the strict load passed."""

    proofs: tuple[Proof, ...]

    @property
    def holds(self) -> bool:
        """No proof failed and at least one passed."""
        return any(p.passed for p in self.proofs) and all(p.passed is not False for p in self.proofs)
