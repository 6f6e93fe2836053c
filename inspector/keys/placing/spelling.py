"""Names that were mangled as text, put right before anything is compared, and given back afterwards.

A separator that was left out or exchanged, a prefix that was cut by length: no level of the tree corresponds then, so
no rule about trees can help. Rules with `spells` say how the name reads; every other rule sees that name, the plan has
the file's own again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from inspector.keys.placing.tree import Leaf, Node
from inspector.keys.report import Evidence, Step, StepKind
from inspector.keys.rules.entry import Link, Move, Questions, Rule

if TYPE_CHECKING:
    from inspector.keys.draft import Draft

# Spelled name -> the tensor as the file names it, and what was done to the name.
Spelled = dict[str, tuple[Leaf, Move]]


def respell(
    leaves: Sequence[Leaf], places: Sequence[Leaf], *, rules: Sequence[Rule], questions: Questions
) -> tuple[list[Leaf], Spelled]:
    """The tensors under the names that they read as. The first rule that says something is the only one."""
    if {leaf.name for leaf in leaves} <= {place.name for place in places}:
        return list(leaves), {}
    for rule in rules:
        found = list(rule.spells(leaves, places, questions)) if rule.spells is not None else []
        if not found:
            continue
        names = {spelling.leaf.name: spelling for spelling in found}
        made = [Leaf(names[x.name].name, x.shape) if x.name in names else x for x in leaves]
        # Two tensors of one name would be one tensor less.
        if len({leaf.name for leaf in made}) == len(leaves):
            return made, {s.name: (s.leaf, s.move) for s in found}
    return list(leaves), {}


def give_back(made: Draft, spelled: Spelled) -> None:
    """The file's own names in a draft that was made with others."""
    if not spelled:
        return
    links = {id(link): link for link in (*made.placed, *made.reshaped)}
    links |= {id(link): link for moved in made.moves.values() for link, _ in moved}
    own = {key: _own_link(link, spelled) for key, link in links.items()}
    made.steps = [_own_step(step, spelled) for step in made.steps]
    made.placed = [own[id(link)] for link in made.placed]
    made.reshaped = [own[id(link)] for link in made.reshaped]
    made.held = [_own_leaf(leaf, spelled) for leaf in made.held]
    made.moves = {key: [(own[id(link)], move) for link, move in moved] for key, moved in made.moves.items()}
    pending: list[Node] = [made.source]
    while pending:
        node = pending.pop()
        pending.extend(node.children.values())
        for segment, leaf in node.leaves.items():
            node.leaves[segment] = _own_leaf(leaf, spelled)


def _own_leaf(leaf: Leaf, spelled: Spelled) -> Leaf:
    return spelled[leaf.name][0] if leaf.name in spelled else leaf


def _own_link(link: Link, spelled: Spelled) -> Link:
    if link.source.name not in spelled:
        return link
    leaf, move = spelled[link.source.name]
    return Link(leaf, link.target, (move, *link.moves), link.evidence)


def _own_step(step: Step, spelled: Spelled) -> Step:
    sources = step.sources
    if spelled.keys().isdisjoint(sources) and spelled.keys().isdisjoint(step.beside):
        return step
    names, beside = (
        tuple([spelled[name][0].name if name in spelled else name for name in of]) for of in (sources, step.beside)
    )
    move = next((spelled[name][1] for name in sources if name in spelled), None)
    if move is None or step.target is None:
        return replace(step, source=names[0], more=names[1:], beside=beside)
    if not step.rule:
        return replace(
            step,
            source=names[0],
            more=names[1:],
            beside=beside,
            kind=StepKind.RENAME,
            rule=move.rule,
            reason=f"{move.says[:1].upper()}{move.says[1:]}.",
            evidence=Evidence.RULE,
        )
    return replace(step, source=names[0], more=names[1:], beside=beside, also=(*step.also, move.rule))
