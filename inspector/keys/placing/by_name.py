"""Every tensor of the file on a place of the target: by names, by what they mean, and by order where that does not do.

Order never overrules a name in silence: where the two contradict each other, the user decides. Where order contradicts
what the names mean, it is not offered at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from inspector.keys.placing.align import Alignment, align
from inspector.keys.placing.ambiguities import settle_ambiguities
from inspector.keys.placing.by_kind import counted_by_kind
from inspector.keys.placing.by_order import (
    BY_ORDER,
    Pairs,
    Sides,
    against_names,
    contest,
    gaps_in_order,
    place_by_order,
    place_by_shape,
    same_names,
    whole_order,
    why_no_order,
)
from inspector.keys.placing.by_words import Worded, agreed
from inspector.keys.placing.kinds import shown
from inspector.keys.placing.related import ask_related
from inspector.keys.placing.roles import is_counter, squeezed
from inspector.keys.placing.tree import Leaf, Node, before_shared_end
from inspector.keys.placing.worded import SAME, ask_words, confirm_words, place_by_words, words_of_both
from inspector.keys.report import Ambiguity, Evidence
from inspector.keys.rules import index_shift, other_words, related_names, same_order, same_shape, twins
from inspector.keys.rules.entry import Link, Move, Questions, Rule

# Fewer equal names than one in so many are chance.
_FEW = 10

Placed = tuple[list[Link], list[tuple[Leaf, Move]], list[Leaf]]


def place(sides: Sides, source: Node, goal: Node, rules: Sequence[Rule], questions: Questions) -> Placed:
    """(placed, left out by choice, held until an answer). source, goal: the trees of both sides."""
    asked = questions.again()
    found = align(source, goal, rules=rules, questions=asked)
    links = _one_each(found, asked)
    linked = {link.source.name for link in links}
    explained = len(links)
    # What waits for an answer is not left over yet: no doubt may rest on it.
    waits = {leaf.name for leaf in found.held}
    left = [leaf for leaf in sides.leaves if leaf.name not in linked and leaf.name not in waits]
    links, held = settle_ambiguities(links, left, sides.places, rules, asked)
    declined = linked - {link.source.name for link in links} - {leaf.name for leaf in held}
    held = [*found.held, *held]
    # What the user has left out is no part of what words or order place.
    gone = {leaf.name for leaf, _ in found.dropped} | declined
    sides = replace(sides, leaves=[leaf for leaf in sides.leaves if leaf.name not in gone]) if gone else sides
    lacks = _lacks(sides, links)
    counted = counted_by_kind(sides) if same_order.RULE in rules and lacks else None
    worded = None
    over = any(not is_counter(leaf) for leaf in left)
    wanted = (lacks and over) or bool(asked.open) or any(_has_other_sizes(link) for link in links)
    if other_words.RULE in rules and wanted and not questions.open:
        worded = words_of_both(sides, links, by_table_only=not _words_may_answer(asked))
        if counted is not None and worded is not None and not agreed(counted.pairs, worded.links):
            # Names that say what kind of layer each is, and count: which one it is, no word of theirs says.
            worded = None
        if worded is not None and worded.sure and not _order_doubts(worded, sides):
            # Names mean one thing: what was asked about single ones is settled by the reading of all.
            questions.take(asked, open_too=False)
            return place_by_words(sides, worded), found.dropped, []
    pairs = whole_order(sides) if same_order.RULE in rules and lacks and not why_no_order(sides) else ()
    if counted is not None and not pairs and not same_names(sides):
        questions.take(asked, open_too=False)
        return _by_order(counted.pairs, [], sides, questions, found.dropped, counted.kinds)
    if counted is not None and pairs and not agreed(pairs, counted.pairs):
        # The file lists its layers in another order than it counts them.
        pairs = ()
    if worded is not None and worded.strong and pairs and not agreed(pairs, worded.renamed):
        # Never against the words. Where equal names contradict the order, the user is asked which of them holds.
        pairs = ()
    # Which of a few layers is which is a better question than whether all of them stand in order.
    # How many the names alone explain.
    few = 2 * len(links) < len(sides.leaves)
    if worded is not None and worded.to_confirm and few and not (pairs or asked.open):
        # The names say nothing else, and something speaks against it that the user may know better.
        answer = confirm_words(worded, questions)
        if answer is None:
            questions.take(asked, open_too=False)
            placed = {link.source.name for link in links}
            return links, found.dropped, [leaf for leaf in sides.leaves if leaf.name not in placed]
        if answer == SAME:
            worded = replace(worded, unsure="")
            if worded.sure:
                questions.take(asked, open_too=False)
                made = place_by_words(sides, worded)
                return [replace(link, evidence=Evidence.CHOSEN) for link in made], found.dropped, []
    if worded is not None and worded.asks and (not pairs or (few and agreed(pairs, worded.links))):
        settled = ask_words(sides, worded, questions)
        if settled is not None:
            questions.take(asked, open_too=False)
            return settled[0], found.dropped, settled[1]
    if pairs:
        same = same_names(sides)
        if asked.open:
            explained = max(explained, _worth_asking(pairs, source, goal, rules, questions))
        if 2 * explained < len(pairs) and _FEW * len(same) < len(pairs):
            # Names explain next to nothing: their guesses and questions are given up for the one whole answer.
            questions.take(asked, open_too=False)
            return _by_order(pairs, same, sides, questions, found.dropped)
    questions.take(asked)
    if asked.open or held or not lacks:
        return links, found.dropped, held
    if related_names.RULE in rules and 2 * len(links) >= len(sides.places):
        related = ask_related(links, sides, pairs or (), questions)
        links = [*links, *related.links]
        # What waits for the user, or was declined, is not placed by order after all.
        if related.held or related.declined:
            return links, [*found.dropped, *related.dropped], related.held
    if pairs and not (asked.used and against_names(links, pairs)):
        return _by_order(pairs, links, sides, questions, found.dropped)
    if not pairs and same_order.RULE in rules and 2 * len(links) >= len(sides.places) and not why_no_order(sides):
        more, held = place_by_order(gaps_in_order(sides, links), links, sides, questions)
        links = [*links, *more]
    if not links and same_shape.RULE in rules:
        links = place_by_shape(sides)
    return links, found.dropped, held


# Questions about single names, which the reading of all of them may answer.
_OF_NAMES = frozenset({"rename", "rival"})


def _words_may_answer(asked: Questions) -> bool:
    """Whether nothing but single names is open. Whoever said that the numbers hold is not told otherwise by words."""
    hold = any(asked.answers[key] == index_shift.AS_NAMED and _is_of_numbers(key) for key in asked.used)
    return not hold and all(question.id.partition(":")[0] in _OF_NAMES for question in asked.open)


def _is_of_numbers(key: str) -> bool:
    return key.partition(":")[0] == index_shift.RULE.id


def _order_doubts(worded: Worded, sides: Sides) -> bool:
    """Whether a tensor that was only left over would be elsewhere by the order of the whole."""
    if len(worded.spoken) == len(worded.links) or why_no_order(sides):
        return False
    return not agreed(whole_order(sides) or (), worded.links)


def _worth_asking(pairs: Pairs, source: Node, goal: Node, rules: Sequence[Rule], questions: Questions) -> int:
    """How many tensors names would place if layer numbers had moved: then that is the better question.

    0 where the order contradicts it.
    """
    trial = Questions(answers={**questions.answers, index_shift.RULE.id: index_shift.SHIFTED})
    links = _one_each(align(source, goal, rules=rules, questions=trial), trial)
    return 0 if against_names(links, pairs) else len(links)


def _has_other_sizes(link: Link) -> bool:
    """Whether equal names stand for tensors that no order of axes makes alike."""
    if link.source.shape == link.target.shape:
        return False
    ours, theirs = squeezed(link.source.shape), squeezed(link.target.shape)
    return ours is not None and theirs is not None and sorted(ours) != sorted(theirs)


def _lacks(sides: Sides, links: Sequence[Link]) -> bool:
    """Whether a place that holds a weight stays empty."""
    filled = {link.target.name for link in links}
    return any(not is_counter(place) and place.name not in filled for place in sides.places)


def _by_order(
    pairs: Pairs,
    named: Sequence[Link],
    sides: Sides,
    questions: Questions,
    dropped: list[tuple[Leaf, Move]],
    kinds: Mapping[str, str] | None = None,
) -> Placed:
    """Everything by position, unless names say otherwise: then the user decides. kinds: see `place_by_order`."""
    against = against_names(named, pairs)
    if against:
        wrong = {link.source.name for link, _ in against}
        answer = questions.ask(contest(against, len(pairs)))
        kept = [link for link in named if link.source.name not in wrong]
        if answer is None:
            return kept, dropped, [link.source for link, _ in against]
        if answer != BY_ORDER:
            return list(named), dropped, []
        named = kept
    more, held = place_by_order(pairs, named, sides, questions, kinds)
    return [*named, *more], dropped, held


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
        goal = shown(places[0][0].target)
        options = tuple((prefix or "no-prefix", f'the tensors under "{prefix}"') for prefix in prefixes)
        chosen = questions.ask(
            Ambiguity(
                id="collision",
                question=f"{rivals} both fit {goal}. Which one?",
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
                    found.dropped.append((link.source, twins.NOT_CHOSEN))
    return links


def _prefixes(contenders: Sequence[Link]) -> list[str]:
    return [".".join(path) for path in before_shared_end([tuple(x.source.name.split(".")) for x in contenders])]
