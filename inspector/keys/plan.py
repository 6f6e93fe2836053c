"""From an alignment to a plan: what the names left over is settled by the tensor rules, and everything is checked.

Nothing here decides by likelihood. A tensor of the file goes to one place, a place takes one tensor, and shapes agree;
what does not is left open and makes the plan incomplete.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from inspector.architectures.types import Target
from inspector.keys.align import Alignment, align
from inspector.keys.doubts import settle_doubts
from inspector.keys.keytree import Leaf, Node, grow
from inspector.keys.report import Ambiguity, Cost, RuleUse, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link, Move, Questions, Rule

_EXAMPLES = 3
_MOST_PLACES = 8


@dataclass(slots=True)
class Draft:
    """A plan in the making. reshaped and missing: what no rule settled; held: waits for the user's choice."""

    source: Node
    target: Node
    steps: list[Step] = field(default_factory=list)
    placed: list[Link] = field(default_factory=list)
    moves: dict[tuple[str, str], list[Link]] = field(default_factory=dict)
    reshaped: list[Link] = field(default_factory=list)
    missing: list[Leaf] = field(default_factory=list)
    held: list[Leaf] = field(default_factory=list)


def draft(leaves: Sequence[Leaf], target: Target, *, rules: Sequence[Rule], questions: Questions) -> Draft:
    """Every tensor of the file and every place of the target, settled as far as the rules and answers go."""
    places = [Leaf(t.name, t.shape) for t in target.tensors]
    names_only = any(place.shape is None for place in places)
    source, goal = grow(leaves, names_only=names_only), grow(places, names_only=names_only)
    found = align(source, goal, rules=rules, questions=questions)
    made = Draft(source=source, target=goal)
    links = _one_each(found, questions)
    linked = {link.source.name for link in links}
    links, held = settle_doubts(links, [leaf for leaf in leaves if leaf.name not in linked], places, questions)
    made.held = found.held = [*found.held, *held]
    linked = {link.source.name for link in links}
    away = linked | {leaf.name for leaf in found.held} | {leaf.name for leaf, _ in found.dropped}
    filled = {link.target.name for link in links}
    made.reshaped = [link for link in links if not _same_shape(link)]
    made.placed = [link for link in links if _same_shape(link)]
    made.steps += [_placing(link) for link in made.placed]
    made.steps += [_leaving(leaf, move) for leaf, move in found.dropped]
    made.missing = [place for place in places if place.name not in filled]
    extra = [leaf for leaf in leaves if leaf.name not in away]
    for rule in rules:
        if rule.steps is not None:
            extra = _settle(made, rule, extra, target)
    order = {place.name: i for i, place in enumerate(places)}
    # In the target's order, then what is dropped in the file's.
    made.steps.sort(key=lambda step: order.get(step.target or "", len(order)))
    for link in [*made.placed, *made.reshaped]:
        for move in link.moves:
            made.moves.setdefault((move.rule, move.says), []).append(link)
    return made


def _same_shape(link: Link) -> bool:
    return link.target.shape is None or link.source.shape == link.target.shape


def _one_each(found: Alignment, questions: Questions) -> list[Link]:
    """One tensor per place. Where several landed on one, the user is asked which prefix is meant."""
    by_place: dict[str, list[Link]] = {}
    for link in found.links:
        by_place.setdefault(link.target.name, []).append(link)
    links = []
    contests: dict[tuple[str, ...], list[list[Link]]] = {}
    for contenders in by_place.values():
        if len(contenders) == 1:
            links.append(contenders[0])
        else:
            contests.setdefault(tuple(sorted(_prefixes(contenders))), []).append(contenders)
    for prefixes, places in sorted(contests.items()):
        rivals = " and ".join(x.source.name for x in places[0])
        options = tuple((prefix or "no-prefix", f'the tensors under "{prefix}"') for prefix in prefixes)
        chosen = questions.ask(
            Ambiguity(
                id="collision",
                question=f"{rivals} both fit {places[0][0].target.name}. Which one?",
                options=options,
            ),
            place=" or ".join(prefix or "no-prefix" for prefix in prefixes),
        )
        for contenders in places:
            for prefix, link in zip(_prefixes(contenders), contenders, strict=True):
                if chosen is None:
                    found.held.append(link.source)
                elif (prefix or "no-prefix") == chosen:
                    links.append(link)
                else:
                    found.dropped.append((link.source, Move("twins", "leave out what was not chosen")))
    return links


def _prefixes(contenders: Sequence[Link]) -> list[str]:
    names = [link.source.name.split(".") for link in contenders]
    shared = 0
    while all(len(n) > shared for n in names) and len({n[len(n) - 1 - shared] for n in names}) == 1:
        shared += 1
    return [".".join(n[: len(n) - shared]) for n in names]


def _placing(link: Link) -> Step:
    ids = list(dict.fromkeys(move.rule for move in link.moves))
    if not ids:
        return Step(
            kind=StepKind.KEEP,
            source=link.source.name,
            target=link.target.name,
            rule="",
            reason="The name and the shape agree.",
            cost=Cost.LOSSLESS,
            evidence="exact name",
        )
    says = "; ".join(dict.fromkeys(move.says for move in link.moves))
    return Step(
        kind=StepKind.RENAME if link.source.name != link.target.name else StepKind.KEEP,
        source=link.source.name,
        target=link.target.name,
        rule=ids[0],
        also=tuple(ids[1:]),
        reason=says[:1].upper() + says[1:] + ".",
        cost=Cost.LOSSLESS,
        evidence="rule",
    )


def _leaving(leaf: Leaf, move: Move) -> Step:
    return Step(
        kind=StepKind.DROP,
        source=leaf.name,
        target=None,
        rule=move.rule,
        reason=move.says[:1].upper() + move.says[1:] + ".",
        cost=Cost.LOSSY,
        evidence="chosen",
    )


def _settle(made: Draft, rule: Rule, extra: list[Leaf], target: Target) -> list[Leaf]:
    if rule.steps is None:
        return extra
    left = Leftovers(
        target=target,
        settled=made.placed,
        reshaped=tuple(made.reshaped),
        extra=tuple(extra),
        missing=tuple(made.missing),
    )
    steps = list(rule.steps(left))
    made.steps += steps
    sources = {step.source for step in steps if step.source is not None}
    targets = {step.target for step in steps if step.target is not None}
    made.reshaped = [x for x in made.reshaped if x.source.name not in sources]
    made.missing = [place for place in made.missing if place.name not in targets]
    return [leaf for leaf in extra if leaf.name not in sources]


def group(made: Draft, rules: Sequence[Rule], accept: Collection[str]) -> tuple[RuleUse, ...]:
    """The rules that the plan uses, with what each explains, in the order of `rules`."""
    uses: list[RuleUse] = []
    costs = {rule.id: rule.cost for rule in rules}
    for rule in rules:
        for (rule_id, says), links in made.moves.items():
            if rule_id == rule.id:
                uses.append(
                    RuleUse(
                        id=rule_id,
                        says=says,
                        cost=Cost.LOSSLESS,
                        count=len({link.source.name for link in links}),
                        examples=tuple((x.source.name, x.target.name) for x in links[:_EXAMPLES]),
                        accepted=True,
                        parameters=_parameters(links, rule_id, says),
                    )
                )
        steps = [s for s in made.steps if s.rule == rule.id and s.evidence != "rule"]
        if steps:
            uses.append(
                RuleUse(
                    id=rule.id,
                    says=_say_steps(steps),
                    cost=costs[rule.id],
                    count=len(steps),
                    examples=tuple(_example(step) for step in steps[:_EXAMPLES]),
                    # A choice among twins is itself the acceptance.
                    accepted=rule.cost is Cost.LOSSLESS or rule.id in accept or rule.id == "twins",
                )
            )
    return tuple(uses)


def _parameters(links: Sequence[Link], rule_id: str, says: str) -> tuple[tuple[str, str], ...]:
    found = dict.fromkeys(
        pair
        for link in links
        for move in link.moves
        if (move.rule, move.says) == (rule_id, says)
        for pair in move.parameters
    )
    places = [pair for pair in found if pair[0] == "place"]
    return tuple(pair for pair in found if pair[0] != "place") + tuple(places[:_MOST_PLACES])


def _say_steps(steps: Sequence[Step]) -> str:
    made = {
        StepKind.DROP: "leave out {}",
        StepKind.FILL: "fill in {}",
        StepKind.RESHAPE: "reshape {}",
        StepKind.ADAPT: "adapt {}",
    }
    parts = []
    for kind, text in made.items():
        names = list(dict.fromkeys(_subject(s) for s in steps if s.kind is kind))
        if names:
            parts.append(text.format(", ".join(names[:4]) + (f" and {len(names) - 4:,} more" if names[4:] else "")))
    return "; ".join(parts)


def _subject(step: Step) -> str:
    """A tensor by its full name; counters, which come one per layer, by what they are."""
    name = step.source or step.target or ""
    last = name.rpartition(".")[2]
    return last if step.rule == "bookkeeping-buffers" else name


def _example(step: Step) -> tuple[str, str]:
    if step.kind is StepKind.FILL:
        return (f"({step.value})", step.target or "")
    return (step.source or "", step.target or "(left out)")
