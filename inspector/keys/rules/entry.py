"""What a rule is, and what it is given to look at.

Two kinds. A *name rule* looks at one pair of places (a node of the file's tree, a node of the target's) and proposes
routes: "this subtree of the file goes there". A *tensor rule* looks at what the names left over: tensors without a
place, places without a tensor, pairs whose shapes differ. Rules propose; `align.py` and `plan.py` apply and check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from inspector.architectures.types import Target
from inspector.keys.keytree import Leaf, Node
from inspector.keys.layouts import Elsewhere
from inspector.keys.report import Ambiguity, Cost, Evidence, RuleUse, Step, StepKind


@dataclass(frozen=True, slots=True)
class Move:
    """What a rule does to every key below a node. says: 'drop the segment "module"'; parameters: for the code.

    sure: False when what lies below merely fits into gaps; the user is then asked (see `doubts.py`).
    """

    rule: str
    says: str
    parameters: tuple[tuple[str, str], ...] = ()
    sure: bool = True


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
    answers: option by question id, from the user. open: asked and not answered. asked: every id that came up.
    """

    answers: Mapping[str, str]
    open: list[Ambiguity] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)

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
        known = next((q for q in self.open if q.id == ambiguity.id), None)
        if ambiguity.id in self.answers:
            # That answer is another place's; this one needs its own.
            self.open.append(replace(ambiguity, id=here))
        elif known is None:
            self.open.append(replace(ambiguity, places=(place,) if place else ()))
        elif known.options == ambiguity.options and place:
            places = (*known.places, place)
            self.open[self.open.index(known)] = replace(known, question=_also(known, places[1:]), places=places)
        elif known.options != ambiguity.options:
            self.open.append(replace(ambiguity, id=here))
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
            self.open += other.open


def _also(asked: Ambiguity, places: Sequence[str]) -> str:
    first = asked.question.partition(" The same is asked of ")[0]
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""
    return f"{first} The same is asked of {', '.join(places[:3])}{more}; {asked.id}:{places[0]} answers for one alone."


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
    questions: where a rule asks what shapes do not tell. turned: the target names whose axes a rule has put in order.
    elsewhere: something shows another library's layout (`layouts.py`), so that a square matrix proves nothing.
    """

    target: Target
    settled: Sequence[Link]
    reshaped: Sequence[Link]
    extra: Sequence[Leaf]
    missing: Sequence[Leaf]
    questions: Questions
    turned: frozenset[str] = frozenset()
    elsewhere: Elsewhere = Elsewhere.NOTHING

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


@dataclass(frozen=True, slots=True)
class Phrase:
    """One way to write a rule's renaming in Python. line: uses `key` and assigns it; apply: the same, for checking."""

    line: str
    apply: Callable[[str], str]


def substitution(pattern: str, put: str) -> Phrase:
    """`re.sub` in a line; put is a replacement template, so a literal backslash in it must come doubled."""
    return Phrase(f"key = re.sub({pattern!r}, {put!r}, key)", lambda key: re.sub(pattern, put, key))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One entry of `RULES`.

    id: stable, what `--accept` names. title: a few words. says: what it does and when, one sentence (docs).
    cost: lossy rules need the user's yes; consent: so does this one, although it loses nothing.
    done: what it did, as part of a sentence (see `sentences.py`).
    spells: for rules on how names are written, before anything is compared (see `spelling.py`).
    routes: for name rules; leaf_links: for rules on the tensors of one module; steps: for tensor rules.
    phrases: ways to write a use as Python, the plainest first.
    """

    id: str
    title: str
    says: str
    cost: Cost
    done: str
    consent: bool = False
    spells: Callable[[Sequence[Leaf], Sequence[Leaf], Questions], Iterable[Spelling]] | None = None
    routes: Callable[[Pair], Iterable[Route]] | None = None
    leaf_links: Callable[[Pair], Iterable[Link]] | None = None
    steps: Callable[[Leftovers], Iterable[Step]] | None = None
    phrases: Callable[[RuleUse], tuple[Phrase, ...]] | None = None
