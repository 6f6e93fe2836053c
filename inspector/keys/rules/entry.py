"""What a rule is, and what it is given to look at.

Two kinds. A *name rule* looks at one pair of places (a node of the file's tree, a node of the target's) and proposes
routes: "this subtree of the file goes there". A *tensor rule* looks at what the names left over: tensors without a
place, places without a tensor, pairs whose shapes differ. Rules propose; `placing/align.py` and `keys/plan.py` apply
and check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from inspector.architectures.types import Target
from inspector.findings import FindingKind, Severity
from inspector.keys.placing.layouts import Elsewhere
from inspector.keys.placing.provenance import Library
from inspector.keys.placing.tree import Leaf, Node, Path
from inspector.keys.recast import Recast
from inspector.keys.report import Ambiguity, Cost, Evidence, RuleUse, Step, StepKind


@dataclass(frozen=True, slots=True)
class Move:
    """What a rule does to every key below a node."""

    # Id of the rule.
    rule: str
    # 'drop the segment "module"'
    says: str
    # For the exported code: what is done, and under "place" where.
    parameters: tuple[tuple[str, str], ...] = ()
    # False when what lies below merely fits into gaps; the user is then asked (see `placing/ambiguities.py`).
    sure: bool = True
    # What is inside proves the other name, which no shape that was left over suggested.
    proved: bool = False
    # What tells it from the rule's other moves, where the parameters do not.
    change: tuple[str | int, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for moves that do the same, wherever they do it: they are one use of the rule."""
        return (self.rule, self.change or tuple(pair for pair in self.parameters if pair[0] != "place"))


# Among the segments that a route takes or fills: the place's own leaves. No segment has a dot in it.
OWN_LEAVES = "."


@dataclass(frozen=True, slots=True)
class Route:
    """A subtree of the file and where it goes in the target.

    takes: children of the pair's source that are settled by it; fills: children of the target, likewise.
    target None: it goes nowhere, by the user's choice (with a move that says so) or until it is made (without).
    """

    source: Node
    target: Node | None
    moves: tuple[Move, ...]
    takes: tuple[str, ...]
    fills: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """One tensor of the file on one place of the target, with the moves that brought it there.

    evidence: None for what the moves themselves are: an exact name without any, a rule with some.
    """

    source: Leaf
    target: Leaf
    moves: tuple[Move, ...] = ()
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Spelling:
    """A name of the file as the target would write it: nothing about where it belongs is settled by this."""

    leaf: Leaf
    name: str
    move: Move


@dataclass(slots=True)
class Questions:
    """Where a rule asks what the file does not tell.

    One question may come up at several places. ID:PLACE answers it for one of them, ID for all that have the option.
    """

    # Option by question id, from the user.
    answers: Mapping[str, str]
    # Asked and not answered, as it was put at the first place, with all the places so far.
    unanswered: list[Ambiguity] = field(default_factory=list)
    # Every id that came up.
    asked: set[str] = field(default_factory=set)
    # Ids of the answers that were taken.
    used: set[str] = field(default_factory=set)

    @property
    def open(self) -> tuple[Ambiguity, ...]:
        """What is asked and not answered, in full: with the other places that it is asked of."""
        return tuple(_in_full(ambiguity) for ambiguity in self.unanswered)

    def ask(self, ambiguity: Ambiguity, *, place: str = "") -> str | None:
        """The user's option, None while there is no valid answer. The question is then kept open.

        Asked again with the same options at another place, it is one question that names both; with others it is a
        question of its own, whose id has the place in it.
        """
        here = ambiguity.at(place) if place else ambiguity.id
        self.asked |= {ambiguity.id, here}
        options = {option for option, _ in ambiguity.options}
        for key in (here, ambiguity.id):
            answer = self.answers.get(key)
            if answer in options:
                self.used.add(key)
                return answer
        known = next((q for q in self.unanswered if q.id == ambiguity.id), None)
        if ambiguity.id in self.answers:
            # That answer is another place's; this one needs its own.
            self.unanswered.append(replace(ambiguity, id=here))
        elif known is None:
            self.unanswered.append(replace(ambiguity, places=(place,) if place else ()))
        elif known.options == ambiguity.options and place:
            self.unanswered[self.unanswered.index(known)] = replace(known, places=(*known.places, place))
        elif known.options != ambiguity.options:
            self.unanswered.append(replace(ambiguity, id=here))
        return None

    def told(self, ident: str, options: Sequence[str]) -> str | None:
        """The user's answer to what is not asked by itself, since only the numbers can raise it; None without one."""
        self.asked.add(ident)
        answer = self.answers.get(ident)
        if answer not in options:
            return None
        self.used.add(ident)
        return answer

    def again(self) -> Questions:
        """The same answers, nothing asked yet: for a way that may be given up."""
        return Questions(answers=self.answers)

    def take(self, other: Questions, *, open_too: bool = True) -> None:
        """What came up on another way; open_too False when that way was given up and needs no answer any more."""
        self.asked |= other.asked
        self.used |= other.used
        if open_too:
            self.unanswered += other.unanswered


def _in_full(asked: Ambiguity) -> Ambiguity:
    others = asked.places[1:]
    if not others:
        return asked
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    same = f"The same is asked of {', '.join(others[:3])}{more}; {asked.id}:{others[0]} answers for one alone."
    return replace(asked, question=f"{asked.question} {same}")


@dataclass(slots=True)
class Pair:
    """Two places that correspond: what is not settled of them yet, and all of them. Rules read it."""

    source: Node
    target: Node
    whole_source: Node
    whole_target: Node
    questions: Questions


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What names alone did not settle.

    links: all placed pairs; reshaped: those of them whose shapes differ. extra: tensors without a place.
    missing: places without a tensor. settled: every other pair; a step for one of them replaces its placing.
    permuted: pairs whose shapes differed until a rule put their axes in order; as with `settled`, a step replaces that.
    questions: where a rule asks what shapes do not tell. turned: the target names whose axes a rule has put in order;
    oriented: parts of a matrix whose shape shows which way round it lies.
    elsewhere: something shows another library's layout (`placing/layouts.py`), so that a square matrix proves nothing.
    writer, reader: the libraries that the names of the file and of the target prove (`placing/provenance.py`).
    shared: a number for each name of the file that shares its storage with another one, the same for both.
    spelled: the file's own names by those that they read as, where the two differ.
    """

    target: Target
    settled: Sequence[Link]
    reshaped: Sequence[Link]
    extra: Sequence[Leaf]
    missing: Sequence[Leaf]
    questions: Questions
    permuted: Sequence[Link] = ()
    turned: frozenset[str] = frozenset()
    oriented: frozenset[str] = frozenset()
    elsewhere: Elsewhere = Elsewhere.NOTHING
    writer: Library | None = None
    reader: Library | None = None
    shared: Mapping[str, int] = field(default_factory=dict)
    spelled: Mapping[str, str] = field(default_factory=dict)

    def proves_rows(self, *leaves: Leaf) -> bool:
        """Whether rows of these are rows in the target: a square one from elsewhere may be the other way round."""
        return not (self.turned or self.elsewhere) or all(
            len(x.shape or ()) != 2 or len(set(x.shape or ())) == 2 for x in leaves
        )


def settle(
    link: Link,
    *,
    rule: str,
    kind: StepKind,
    reason: str,
    cost: Cost = Cost.LOSSLESS,
    shape: tuple[int, ...] | None = None,
    axes: tuple[int, ...] = (),
    value: str = "",
) -> Step:
    """A step that changes the tensor of a link, and keeps what brought it there and by what evidence."""
    return Step(
        kind=kind,
        source=link.source.name,
        target=link.target.name,
        rule=rule,
        reason=reason,
        cost=cost,
        evidence=link.evidence or (Evidence.CHOSEN if cost is Cost.LOSSY else Evidence.RULE),
        shape=shape,
        axes=axes,
        value=value,
        also=tuple(dict.fromkeys(move.rule for move in link.moves)),
    )


def leave_out(link: Link, *, rule: str, reason: str) -> Step:
    """A step that takes a tensor from its place again, by the user's word that nothing offered is right."""
    return Step(
        kind=StepKind.DROP,
        source=link.source.name,
        target=None,
        rule=rule,
        reason=reason,
        cost=Cost.LOSSY,
        evidence=Evidence.CHOSEN,
    )


def adapt(link: Link, *, rule: str, reason: str, value: str) -> Step:
    """A step that makes a tensor of another shape into the target's, at the cost of what it held."""
    return settle(
        link,
        rule=rule,
        kind=StepKind.ADAPT,
        reason=reason,
        cost=Cost.LOSSY,
        shape=link.target.shape,
        value=value,
    )


@dataclass(frozen=True, slots=True)
class Phrase:
    """One way to write a rule's renaming in Python. line: uses `key` and assigns it; apply: the same, for checking."""

    line: str
    apply: Callable[[str], str]


def substitution(pattern: str, put: str) -> Phrase:
    """`re.sub` in a line; put is a replacement template, so a literal backslash in it must come doubled."""
    return Phrase(f"key = re.sub({pattern!r}, {put!r}, key)", lambda key: re.sub(pattern, put, key))


# What no shape of a matrix shows that holds query, key and value.
QKV_ORDER = "qkv-order"


class Renames(IntEnum):
    """What of a name a rule changes, in the order in which several are done one after the other."""

    # Whole levels, which are taken off or put in. First: places below a leading wrapper are named without it.
    LEVELS = 1
    # What a level or a tensor is called.
    PARTS = 2
    # The numbers of layers. Last: they are named by the target's paths.
    NUMBERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One entry of `RULES`: what it is called, what the engine must know about it, and what it proposes.

    The engine knows no rule by its id. Each proposes in one way: by `spells`, `recasts`, `routes`, `leaf_links` or
    `steps`.
    """

    # Stable: what `--accept` names, and the id of its finding.
    id: str
    # A few words that hold for every file: the title of its finding.
    title: str
    # What it does and when, one sentence (docs).
    says: str
    # A lossy rule needs the user's yes.
    cost: Cost
    # What it did, as part of a sentence (see `keys/sentences.py`).
    done: str
    # It needs the user's yes although it loses nothing.
    consent: bool = False
    # How much it matters that a file needs it.
    severity: Severity = Severity.WARNING

    # The tensors that it leaves out were not chosen: the answer is the acceptance itself.
    is_choice: bool = False
    # It leaves out what no other rule has a place for. Running the model needs no yes to that; writing a file does.
    drops_unplaced: bool = False
    # It takes a head for other classes off, and leaves the target's untrained.
    replaces_head: bool = False
    # Its tensors come one per layer, and are spoken of by their last name.
    one_per_layer: bool = False
    # Names without shapes are enough for it, as an error message has them (`error_messages/`).
    names_suffice: bool = False
    # What no shape shows and its steps rest on, "" when nothing: what a finding "cannot-tell" is about.
    rests_on: str = ""

    # What it changes of a name.
    renames: Renames = Renames.PARTS
    # A name of either side without what this rule accounts for, so that two can be compared apart from it.
    plain: Callable[[Path], Path] | None = None
    # Ways to write a use as Python, the plainest first.
    phrases: Callable[[RuleUse], tuple[Phrase, ...]] | None = None

    # How names are written, before anything is compared (see `placing/spelling.py`).
    spells: Callable[[Sequence[Leaf], Sequence[Leaf], Questions], Iterable[Spelling]] | None = None
    # What one side has as one tensor and the other in several (see `keys/recast.py`).
    recasts: Callable[[Sequence[Leaf], Sequence[Leaf], Questions], Iterable[Recast]] | None = None
    # Where subtrees go (name rules).
    routes: Callable[[Pair], Iterable[Route]] | None = None
    # Where the tensors of one module go.
    leaf_links: Callable[[Pair], Iterable[Link]] | None = None
    # What becomes of tensors that the names left over (tensor rules).
    steps: Callable[[Leftovers], Iterable[Step]] | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether nobody has to be asked for it."""
        return self.cost is Cost.LOSSLESS and not self.consent

    @property
    def can_be_accepted(self) -> bool:
        """Whether `--accept` may name it: what a name rule leaves out is asked about instead."""
        return self.consent or (self.cost is Cost.LOSSY and self.steps is not None)

    @property
    def kind(self) -> FindingKind:
        """Of the finding that says what it did."""
        return FindingKind(self.id, self.severity, self.title)
