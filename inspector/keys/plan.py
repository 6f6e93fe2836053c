"""From an alignment to a plan: what the names left over is settled by the tensor rules, and everything is checked.

Nothing here decides by likelihood. A tensor of the file goes to one place, a place takes one tensor, and shapes agree;
what does not is left open and makes the plan incomplete.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from inspector.architectures.types import Target
from inspector.keys.draft import Draft
from inspector.keys.keytree import Leaf, grow
from inspector.keys.layouts import shown_by, where_from
from inspector.keys.operations import by_operation
from inspector.keys.order import Sides, lost_order
from inspector.keys.placing import place
from inspector.keys.report import Cost, Evidence, RuleUse, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link, Move, Questions, Rule
from inspector.keys.spelling import give_back, respell

_EXAMPLES = 3
_MOST_PLACES = 8


def draft(
    leaves: Sequence[Leaf],
    target: Target,
    *,
    rules: Sequence[Rule],
    questions: Questions,
    ordered: bool = True,
    written_elsewhere: bool = False,
) -> Draft:
    """Every tensor of the file and every place of the target, settled as far as the rules and answers go.

    ordered: whether the file's container keeps the model's own order. written_elsewhere: whether it is another
    library's.
    """
    places = [Leaf(t.name, t.shape) for t in target.tensors]
    leaves, spelled = respell(leaves, places, rules=rules, questions=questions)
    names_only = any(place.shape is None for place in places)
    source, goal = grow(leaves, names_only=names_only), grow(places, names_only=names_only)
    made = Draft(source=source, target=goal)
    sides = Sides(leaves, places, ordered, target.ordered)
    links, dropped, made.held = place(sides, source, goal, rules, questions)
    made.lost_order = lost_order(sides) if not links else ""
    linked = {link.source.name for link in links}
    away = linked | {leaf.name for leaf in made.held} | {leaf.name for leaf, _ in dropped}
    filled = {link.target.name for link in links}
    made.reshaped = [link for link in links if not _same_shape(link)]
    made.placed = [link for link in links if _same_shape(link)]
    made.elsewhere = where_from(leaves, places, written_elsewhere=written_elsewhere)
    for link in made.reshaped:
        made.elsewhere |= shown_by(link.source, link.target)
    made.steps += [_placing(link) for link in made.placed]
    made.steps += [_leaving(leaf, move) for leaf, move in dropped]
    made.missing = [place for place in places if place.name not in filled]
    extra = [leaf for leaf in leaves if leaf.name not in away]
    for rule in rules:
        if rule.steps is not None:
            extra = _settle(made, rule, extra, target, questions)
    order = {place.name: i for i, place in enumerate(places)}
    # In the target's order, then what is dropped in the file's.
    made.steps.sort(key=lambda step: order.get(step.target or "", len(order)))
    at = {source: step.target for step in made.steps for source in step.takes[:1]}
    for link in links:
        # What a tensor rule left out after all (another head) is not counted as renamed.
        if at.get(link.source.name, link.target.name) is not None:
            for move in link.moves:
                made.moves.setdefault((move.rule, move.says), []).append(link)
    give_back(made, spelled)
    return made


def _same_shape(link: Link) -> bool:
    return link.target.shape is None or link.source.shape == link.target.shape


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
            evidence=Evidence.EXACT_NAME,
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
        evidence=link.evidence or Evidence.RULE,
    )


def _leaving(leaf: Leaf, move: Move) -> Step:
    return Step(
        kind=StepKind.DROP,
        source=leaf.name,
        target=None,
        rule=move.rule,
        reason=move.says[:1].upper() + move.says[1:] + ".",
        cost=Cost.LOSSY,
        evidence=Evidence.CHOSEN,
    )


def _settle(made: Draft, rule: Rule, extra: list[Leaf], target: Target, questions: Questions) -> list[Leaf]:
    if rule.steps is None:
        return extra
    left = Leftovers(
        target=target,
        settled=made.placed,
        reshaped=tuple(made.reshaped),
        extra=tuple(extra),
        missing=tuple(made.missing),
        questions=questions,
        turned=frozenset(s.target for s in made.steps if s.kind is StepKind.PERMUTE and s.target is not None),
        elsewhere=made.elsewhere,
    )
    steps = list(rule.steps(left))
    sources = {source for step in steps for source in step.takes}
    targets = {step.target for step in steps if step.target is not None}
    made.steps = [step for step in made.steps if step.source not in sources or step.source is None] + steps
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
                        accepted=not rule.consent or rule.id in accept,
                        parameters=_parameters(links, rule_id, says),
                    )
                )
        steps = [s for s in made.steps if s.rule == rule.id and s.kind not in (StepKind.KEEP, StepKind.RENAME)]
        if steps:
            uses.append(
                RuleUse(
                    id=rule.id,
                    says=_say_steps(steps),
                    cost=Cost.LOSSY if any(s.cost is Cost.LOSSY for s in steps) else costs[rule.id],
                    count=len(steps),
                    examples=tuple(_example(step) for step in steps[:_EXAMPLES]),
                    # A choice among twins is itself the acceptance.
                    accepted=(rule.cost is Cost.LOSSLESS and not rule.consent)
                    or rule.id in accept
                    or rule.id == "twins"
                    or all(step.declared for step in steps),
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
    parts = []
    for operation, ours in by_operation(steps):
        names = list(dict.fromkeys(_subject(s) for s in ours))
        parts.append(
            operation.says.format(", ".join(names[:4]) + (f" and {len(names) - 4:,} more" if names[4:] else ""))
        )
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
