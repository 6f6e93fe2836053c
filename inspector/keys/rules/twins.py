"""Two sets of weights of one network in one dict: model.* beside ema_model.*, student.* beside teacher.*.

Both fit, and they are not the same numbers. Which one is wanted is not in the file, so this is asked; but where PEFT
trained a copy of a module (modules_to_save beside original_module), the copy is what its model runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.keys.placing.tree import Node, is_most, numbered, overlap
from inspector.keys.report import Ambiguity, Cost
from inspector.keys.rules import wrapper_segment
from inspector.keys.rules.entry import Move, Pair, Route, Rule
from inspector.units import counted

# PEFT's ModulesToSaveWrapper: the copy that was trained, and the module that it stands for.
_TRAINED, _ORIGINAL = "modules_to_save", "original_module"


def _cover(segment: str, child: Node, pair: Pair) -> int:
    same = pair.target.children.get(segment)
    if same is not None:
        return overlap(child, same)
    own = numbered(segment)
    if own is not None and any((numbered(s) or ("-", 0))[0] == own[0] for s in pair.target.children):
        return 0  # layer1.2 where the target has layer1.0 and layer1.1: another depth, not a twin
    # A twin of a child that the target has by name competes for that child's place.
    return overlap(child, pair.target)


def _routes(pair: Pair) -> Iterator[Route]:
    if len(pair.source.children) < 2 or not (needed := pair.target.size):
        return
    fitting = [
        (segment, child)
        for segment, child in pair.source.children.items()
        if is_most(child.size, needed) and is_most(_cover(segment, child, pair), needed)
    ]
    fitting = _without_others(fitting, pair)
    if len(fitting) == 1 and fitting[0][0] not in pair.target.children:
        yield from _beside_the_rest(*fitting[0], pair)
    if len(fitting) < 2:
        return
    options = tuple(
        (".".join(child.path), f'{counted(child.size, "tensor")} under "{".".join(child.path)}."')
        for _, child in fitting
    )
    names = " and ".join(f'"{option}."' for option, _ in options)
    question = f"{counted(len(fitting), 'set')} of weights in this file fit the same place: {names}. Which one?"
    trained = {segment: ".".join(child.path) for segment, child in fitting}
    chosen = trained[_TRAINED] if trained.keys() == {_TRAINED, _ORIGINAL} else _ask(question, options, pair)
    yield from (_left_out(s, child, chosen) for s, child in fitting if ".".join(child.path) != chosen)
    picked = next(((s, c) for s, c in fitting if ".".join(c.path) == chosen), None)
    named = [s for s, _ in fitting if s in pair.target.children]
    if picked is not None and named and picked[0] not in pair.target.children:
        # The chosen twin takes the place that the other one has by name.
        place = pair.target.children[named[0]]
        if overlap(picked[1], pair.target) > overlap(picked[1], place):
            return  # ema_model.lm_head beside ema_model.model: the whole network, whose level a wrapper rule takes off
        parent = ".".join(picked[1].path[:-1])
        moves = (
            wrapper_segment.drop_move(picked[0], place=parent),
            wrapper_segment.add_move(named[0], place=".".join(place.path[:-1])),
        )
        yield Route(picked[1], place, moves, takes=(picked[0],), fills=(named[0],))


def _beside_the_rest(segment: str, child: Node, pair: Pair) -> Iterator[Route]:
    """A set under a name of its own beside one that has none: old.fc.weight and fc.weight."""
    rest = pair.source.only(lambda name: name != segment)
    # What the target has by name is what is meant; whether the other fills its gaps is asked elsewhere.
    if not is_most(_by_name(child, rest), pair.target.size) or is_most(_by_name(rest, pair.target), rest.size):
        return
    path, beside = ".".join(child.path), ".".join((*pair.source.path, "*"))
    options = (
        (path, f'{counted(child.size, "tensor")} under "{path}."'),
        (beside, f'{counted(rest.size, "tensor")} beside "{path}."'),
    )
    question = (
        f'Two sets of weights in this file fit the same place: those under "{path}." and, under the same names, those '
        "beside it. Which one?"
    )
    chosen = _ask(question, options, pair)
    if chosen != path:
        yield _left_out(segment, child, chosen)
    if chosen != beside:
        yield from (_left_out(name, other, chosen) for name, other in rest.children.items())


def _left_out(segment: str, child: Node, chosen: str | None) -> Route:
    """What goes nowhere, because another set was chosen, or until one is."""
    path = ".".join(child.path)
    moves = () if chosen is None else (Move(RULE.id, f'leave out "{path}." as chosen', (("prefix", path),)),)
    return Route(child, None, moves, takes=(segment,))


def _without_others(fitting: list[tuple[str, Node]], pair: Pair) -> list[tuple[str, Node]]:
    """Beside what the target has by name, tensor for tensor, no twin is what has neither all of it nor most by name:
    the decoder of an autoencoder, whose shapes are the encoder's in another order."""
    exact = [
        s for s, child in fitting if s in pair.target.children and child.signature == pair.target.children[s].signature
    ]
    if len(exact) != 1:
        return fitting
    place = pair.target.children[exact[0]]
    return [
        (segment, child)
        for segment, child in fitting
        if segment in exact or overlap(child, place) == place.size or is_most(_by_name(child, place), place.size)
    ]


def _by_name(child: Node, place: Node) -> int:
    there = place.shapes
    return sum(there.get(name, ()) == leaf.shape for name, leaf in child.walk() if name in there)


def _ask(question: str, options: tuple[tuple[str, str], ...], pair: Pair) -> str | None:
    ambiguity = Ambiguity(id=RULE.id, question=question, options=options)
    return pair.questions.ask(ambiguity, place=".".join(pair.source.path))


RULE = Rule(
    id="twins",
    title="Twins",
    says="Asks which of several complete sets of weights in one dict is meant, and leaves out the others.",
    cost=Cost.LOSSY,
    done="the other set of weights is left out",
    is_choice=True,
    routes=_routes,
)
# Where two prefixes of the file fit one place, and the user took another.
NOT_CHOSEN = Move(RULE.id, "leave out what was not chosen")
