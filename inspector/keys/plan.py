"""From an alignment to a plan: what the names left over is settled by the tensor rules, and everything is checked.

Nothing here decides by likelihood. A tensor of the file goes to one place, a place takes one tensor, and shapes agree;
what does not is left open and makes the plan incomplete.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from inspector.architectures.types import Target
from inspector.keys.aside import with_own_rows, with_the_targets_classes, without_place
from inspector.keys.draft import Draft
from inspector.keys.operations import by_operation
from inspector.keys.operations.entry import Operation
from inspector.keys.placing.added_words import settle_added_words
from inspector.keys.placing.by_name import place
from inspector.keys.placing.by_order import Sides, lost_order
from inspector.keys.placing.layouts import Elsewhere, is_oblong, lies_as_torch, shown_by, where_from, written_as_paths
from inspector.keys.placing.odd_names import settle_odd_names
from inspector.keys.placing.other_numbers import settle_other_numbers
from inspector.keys.placing.own_order import keeps_order
from inspector.keys.placing.provenance import is_from_the_right, said_by, written_by
from inspector.keys.placing.spelling import give_back, respell
from inspector.keys.placing.tree import Leaf, grow
from inspector.keys.placing.uneven_names import settle_uneven_names
from inspector.keys.report import Cost, Evidence, RuleUse, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link, Move, Questions, Rule
from inspector.keys.rules.one_storage import second_names
from inspector.keys.stand_ins import give_back_whole, stand_in

_EXAMPLES = 3
_MOST_PLACES = 8


def draft(
    leaves: Sequence[Leaf],
    target: Target,
    *,
    rules: Sequence[Rule],
    questions: Questions,
    ordered: bool = True,
    stated: Elsewhere = Elsewhere.NOTHING,
    writers: Sequence[str] = (),
    around: Sequence[str] = (),
    shared: Mapping[str, int] = MappingProxyType({}),
) -> Draft:
    """Every tensor of the file and every place of the target, settled as far as the rules and answers go.

    ordered: whether the file's container keeps the model's own order. stated: what it says of another layout than
    torch's. writers: what its metadata call the library. around: the keys that the state dict lies under in the file.
    shared: a number for each name that shares its storage with another one (`rules/one_storage.py`).
    """
    places = [Leaf(t.name, t.shape) for t in target.tensors]
    own_names = [leaf.name for leaf in leaves]
    leaves, spelled = respell(leaves, places, rules=rules, questions=questions)
    own_leaves, own_places = leaves, places
    read_as = {name: leaf.name for name, (leaf, _) in spelled.items()}
    twice = (
        {x.name: shared[under] for x in leaves if (under := read_as.get(x.name, x.name)) in shared} if shared else {}
    )
    aside = without_place(leaves, places) | second_names(leaves, places, twice)
    leaves = [leaf for leaf in leaves if leaf.name not in aside] if aside else leaves
    heads = with_the_targets_classes(
        leaves, places, in_order=lambda: keeps_order(own_leaves, ordered) and keeps_order(own_places, target.ordered)
    )
    leaves = [heads.get(leaf.name, leaf) for leaf in leaves] if heads else leaves
    # In which order parts lie in a whole changes nothing of where they go: it is no doubt about names.
    inside = questions.again()
    stands = stand_in(leaves, places, rules=rules, questions=inside)
    leaves, places = stands.leaves, stands.places
    names_only = any(place.shape is None for place in places)
    source = grow(leaves, names_only=names_only, in_order=keeps_order(leaves, ordered))
    goal = grow(places, names_only=names_only, in_order=keeps_order(places, target.ordered))
    made = Draft(source=source, target=goal, rules={rule.id: rule for rule in rules})
    sides = Sides(leaves, places, ordered, target.ordered, target.ties)
    links, dropped, made.held = place(sides, source, goal, rules, questions)
    questions.take(inside)
    links, doubted = settle_other_numbers(links, read_as, around, questions)
    made.held = [*made.held, *doubted]
    links, doubted = settle_odd_names(links, questions)
    made.held = [*made.held, *doubted]
    links, doubted = settle_added_words(links, questions)
    made.held = [*made.held, *doubted]
    links, doubted = settle_uneven_names(links, questions)
    made.held = [*made.held, *doubted]
    if aside or heads:
        # As the file itself has them, from here on.
        own = {leaf.name: leaf for leaf in own_leaves if leaf.name in aside or leaf.name in heads}
        leaves = [*(own.get(leaf.name, leaf) for leaf in leaves), *(own[name] for name in own if name in aside)]
        links = with_own_rows(links, own)
        made.held = [own.get(leaf.name, leaf) for leaf in made.held]
    made.lost_order = lost_order(replace(sides, leaves=leaves)) if not links else ""
    linked = {link.source.name for link in links}
    away = linked | {leaf.name for leaf in made.held} | {leaf.name for leaf, _ in dropped}
    filled = {link.target.name for link in links}
    made.reshaped = [link for link in links if not _same_shape(link)]
    made.placed = [link for link in links if _same_shape(link)]
    made.elsewhere = where_from(leaves, places, stated)
    made.writer = written_by(own_names) or said_by(writers, own_names)
    made.reader = written_by(place.name for place in places)
    told = bool(made.reshaped) and any(is_oblong(link.target) for link in made.placed)
    for link in made.reshaped:
        if not is_from_the_right(link.source, link.target, made.writer, made.reader):
            made.elsewhere |= shown_by(link.source, link.target, told=told)
    if any(stands.shown_in_out(link.source.name) for link in links):
        made.elsewhere |= Elsewhere.IN_OUT
    made.elsewhere = made.elsewhere or written_as_paths(own_names, places)
    if made.writer is not None and made.writer.in_out and lies_as_torch((x.source, x.target) for x in made.placed):
        made.writer = None
    # What links of one subtree have in common: their moves, what these are called, and in words.
    said: dict[int, tuple[list[str], str]] = {}
    for link in made.placed:
        if id(link.moves) not in said:
            said[id(link.moves)] = _said_of(link.moves)
    made.steps += [_placing(link, *said[id(link.moves)]) for link in made.placed]
    made.steps += [_leaving(leaf, move) for leaf, move in dropped]
    made.missing = [place for place in places if place.name not in filled]
    extra = [leaf for leaf in leaves if leaf.name not in away]
    shown = {x.target.name for x in links if stands.shown_axes(x.source.name, x.target.name)}
    for rule in rules:
        if rule.steps is not None:
            extra = _settle(made, rule, extra, target, questions, shown, twice, read_as)
    order = {place.name: i for i, place in enumerate(places)}
    # In the target's order, then what is dropped in the file's.
    made.steps.sort(key=lambda step: order.get(step.target or "", len(order)))
    # A tied tensor has a place of its own besides.
    at = {x.source: x.target for x in made.steps if x.source is not None and x.kind is not StepKind.TIE}
    # Whole subtrees have one move: its key is worked out once.
    uses: dict[int, list[tuple[Link, Move]]] = {}
    for link in links:
        # What a tensor rule left out after all (another head) is not counted as renamed.
        if at.get(link.source.name, link.target.name) is not None:
            read = spelled.get(link.source.name)
            for move in (*link.moves, read[1]) if read is not None else link.moves:
                if id(move) not in uses:
                    uses[id(move)] = made.moves.setdefault(move.key, [])
                uses[id(move)].append((link, move))
    give_back_whole(made, stands, own_leaves, own_places)
    give_back(made, spelled)
    return made


def _same_shape(link: Link) -> bool:
    return link.target.shape is None or link.source.shape == link.target.shape


def _said_of(moves: Sequence[Move]) -> tuple[list[str], str]:
    """(ids of the rules, what they do)."""
    says = "; ".join(dict.fromkeys(move.says for move in moves))
    return list(dict.fromkeys(move.rule for move in moves)), f"{says[:1].upper()}{says[1:]}."


def _placing(link: Link, ids: Sequence[str], reason: str) -> Step:
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
    return Step(
        kind=StepKind.RENAME if link.source.name != link.target.name else StepKind.KEEP,
        source=link.source.name,
        target=link.target.name,
        rule=ids[0],
        also=tuple(ids[1:]),
        reason=reason,
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


def _settle(
    made: Draft,
    rule: Rule,
    extra: list[Leaf],
    target: Target,
    questions: Questions,
    shown: Collection[str],
    shared: Mapping[str, int],
    spelled: Mapping[str, str],
) -> list[Leaf]:
    if rule.steps is None:
        return extra
    left = Leftovers(
        target=target,
        settled=made.placed,
        reshaped=tuple(made.reshaped),
        extra=tuple(extra),
        missing=tuple(made.missing),
        questions=questions,
        permuted=tuple(made.permuted),
        turned=made.turned,
        oriented=frozenset(shown),
        elsewhere=made.elsewhere,
        writer=made.writer,
        reader=made.reader,
        shared=shared,
        spelled=spelled,
    )
    steps = list(rule.steps(left))
    if not steps:
        return extra
    sources = {source for step in steps for source in step.takes}
    targets = {step.target for step in steps if step.target is not None}
    made.steps = [step for step in made.steps if step.source not in sources or step.source is None] + steps
    # What a rule took away from its place and put nowhere: the place is empty again.
    there = (*made.placed, *made.permuted)
    emptied = [x.target for x in there if x.source.name in sources and x.target.name not in targets]
    gone = set(emptied)
    made.placed = [x for x in made.placed if x.target not in gone] if gone else made.placed
    put = {step.source for step in steps if step.kind is StepKind.PERMUTE}
    made.permuted += [x for x in made.reshaped if x.source.name in put]
    made.permuted = [x for x in made.permuted if x.target not in gone]
    made.reshaped = [x for x in made.reshaped if x.source.name not in sources]
    made.missing = [place for place in made.missing if place.name not in targets] + emptied
    made.turned = frozenset(s.target for s in made.steps if s.kind is StepKind.PERMUTE and s.target is not None)
    return [leaf for leaf in extra if leaf.name not in sources]


def group(made: Draft, accept: Collection[str]) -> tuple[RuleUse, ...]:
    """The rules that the plan uses, with what each explains, in the order in which they were asked."""
    uses: list[RuleUse] = []
    done: dict[str, list[Step]] = {}
    for step in made.steps:
        done.setdefault(step.rule, []).append(step)
    for rule in made.rules.values():
        uses += [
            RuleUse(
                id=rule.id,
                says=moved[0][1].says,
                cost=Cost.LOSSLESS,
                count=len({link.source.name for link, _ in moved}),
                examples=tuple((x.source.name, x.target.name) for x, _ in moved[:_EXAMPLES]),
                accepted=not rule.consent or rule.id in accept,
                parameters=_parameters(move for _, move in moved),
            )
            for moved in made.moves.values()
            if moved[0][1].rule == rule.id
        ]
        steps = changes_by(rule, done.get(rule.id, ()))
        if steps:
            uses.append(
                RuleUse(
                    id=rule.id,
                    says="; ".join(
                        operation.says.format(listed(names)) for operation, names in by_operation_named(rule, steps)
                    ),
                    cost=_cost(rule, steps),
                    count=len(steps),
                    examples=tuple(_example(step) for step in steps[:_EXAMPLES]),
                    accepted=rule.is_accepted
                    or rule.id in accept
                    or rule.is_choice
                    or all(step.declared for step in steps),
                )
            )
    return tuple(uses)


def _cost(rule: Rule, steps: Sequence[Step]) -> Cost:
    """Of a rule that may lose something where names do not prove otherwise, what it does here."""
    if any(step.cost is Cost.LOSSY for step in steps):
        return Cost.LOSSY
    return Cost.LOSSLESS if all(step.declared for step in steps) else rule.cost


def _parameters(moves: Iterable[Move]) -> tuple[tuple[str, str], ...]:
    pairs = dict.fromkeys(pair for move in moves for pair in move.parameters)
    places = [pair for pair in pairs if pair[0] == "place"]
    return tuple(pair for pair in pairs if pair[0] != "place") + tuple(places[:_MOST_PLACES])


def changes_by(rule: Rule, steps: Iterable[Step]) -> list[Step]:
    """The rule's steps that do more than give a tensor its name."""
    return [step for step in steps if step.rule == rule.id and step.kind not in (StepKind.KEEP, StepKind.RENAME)]


def by_operation_named(rule: Rule, steps: Iterable[Step]) -> Iterator[tuple[Operation, list[str]]]:
    """Each operation with the tensors that it is done to: by their full names, or last names where layers repeat."""
    for operation, ours in by_operation(steps):
        # A tied tensor has a place of its own: what is filled is the other one.
        names = [(step.target if step.kind is StepKind.TIE else step.source) or step.target or "" for step in ours]
        yield operation, list(dict.fromkeys(n.rpartition(".")[2] if rule.one_per_layer else n for n in names))


def listed(names: Sequence[str]) -> str:
    """The first four, and how many more."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4:,} more" if names[4:] else "")


def _example(step: Step) -> tuple[str, str]:
    if step.kind is StepKind.FILL:
        return (f"({step.value})", step.target or "")
    return (step.source or "", step.target or "(left out)")
