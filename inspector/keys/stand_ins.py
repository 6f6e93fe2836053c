"""Tensors that one side has as one and the other in several: cut in thought before they are placed.

A fused matrix (query, key and value; gate and value; a stack of experts) is looked at as the parts that the other
side has: stand-ins with the names and shapes of these. So they are placed as every other tensor is, by names, words or
order, whatever else has changed. Afterwards the stand-ins that landed become one step: a part taken out of the file's
tensor, or the file's parts put into the target's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from inspector.checkpoint.name_forms import behind_shared_levels
from inspector.checkpoint.types import Shape
from inspector.keys.draft import Draft
from inspector.keys.operations import flattened, gates
from inspector.keys.operations.grouped import with_turned_parts
from inspector.keys.placing.layouts import Voucher, voucher_of
from inspector.keys.placing.tree import Leaf, grow
from inspector.keys.recast import Piece, Recast
from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Questions, Rule

_PLAIN = (StepKind.KEEP, StepKind.RENAME)


@dataclass(slots=True)
class StandIns:
    """leaves, places: both sides with stand-ins for what is cut. by_name: the recast and piece behind each of these."""

    leaves: list[Leaf]
    places: list[Leaf]
    ours: dict[str, tuple[Recast, int]] = field(default_factory=dict)
    theirs: dict[str, tuple[Recast, int]] = field(default_factory=dict)

    def shown_axes(self, source: str, target: str) -> bool:
        """Whether the whole shows which way round this matrix lies."""
        return any(
            known is not None and (known[0].oriented or _is_shown_turned(known))
            for known in (self.ours.get(source), self.theirs.get(target))
        )

    def shown_in_out(self, source: str) -> bool:
        """Whether the shape of the file's whole shows that it lies (in, out)."""
        return _is_shown_turned(self.ours.get(source))


def _is_shown_turned(known: tuple[Recast, int] | None) -> bool:
    return known is not None and known[0].turned and known[0].whole.shape != (known[0].whole.shape or ())[::-1]


def stand_in(
    leaves: Sequence[Leaf], places: Sequence[Leaf], *, rules: Sequence[Rule], questions: Questions
) -> StandIns:
    """Both sides with what the rules cut."""
    made = StandIns(list(leaves), list(places))
    if any(place.shape is None for place in places) or _correspond(leaves, places):
        return made
    for rule in rules:
        if rule.recasts is None:
            continue
        for recast in rule.recasts(made.leaves, made.places, questions):
            side, known = (made.places, made.theirs) if recast.in_target else (made.leaves, made.ours)
            names = {leaf.name for leaf in side}
            if recast.whole.name not in names or any(piece.leaf.name in names for piece in recast.pieces):
                continue
            at = next(i for i, leaf in enumerate(side) if leaf.name == recast.whole.name)
            side[at : at + 1] = [piece.leaf for piece in recast.pieces]
            known.update({piece.leaf.name: (recast, i) for i, piece in enumerate(recast.pieces)})
    return made


def _correspond(leaves: Sequence[Leaf], places: Sequence[Leaf]) -> bool:
    """Whether both sides have the same names and shapes but for what stands before all of one side's."""
    if len(leaves) != len(places):
        return False
    ours, theirs = (
        set(zip(behind_shared_levels([leaf.name for leaf in side]), [leaf.shape for leaf in side], strict=True))
        for side in (leaves, places)
    )
    return ours == theirs


def give_back_whole(made: Draft, stands: StandIns, leaves: Sequence[Leaf], places: Sequence[Leaf]) -> None:
    """Both sides' own tensors in a draft that was made with stand-ins. leaves, places: those."""
    if not stands.ours and not stands.theirs:
        return
    steps: list[Step] = []
    cut: dict[str, list[Step]] = {}
    joined: dict[str, dict[int, Step]] = {}
    for step in made.steps:
        ours = [stands.ours[name] for name in step.sources if name in stands.ours]
        theirs = stands.theirs.get(step.target or "")
        if not ours and theirs is None:
            steps.append(step)
        elif (
            ours
            and theirs is None
            and (step.kind in (*_PLAIN, StepKind.DROP) or _turns(step) or _picture_of(step, ours[0][0]))
            and len(step.sources) == 1
        ):
            cut.setdefault(ours[0][0].whole.name, []).append(step)
        elif theirs is not None and not ours and (step.kind in _PLAIN or _turns(step)) and len(step.sources) == 1:
            joined.setdefault(theirs[0].whole.name, {})[theirs[1]] = step
    wholes = {recast.whole.name: recast for recast, _ in stands.ours.values()}
    for name, found in cut.items():
        steps += _taken_apart(wholes[name], found, made, stands)
    for name, landed in joined.items():
        recast = next(r for r, _ in stands.theirs.values() if r.whole.name == name)
        alike = len({_turns(step) for step in landed.values()}) == 1
        if alike and len(landed) == len(recast.pieces) and _lies_right(recast, landed, made):
            steps.append(_put_together(recast, [landed[i] for i in range(len(landed))]))
    order = {place.name: i for i, place in enumerate(places)}
    made.steps = sorted(steps, key=lambda step: order.get(step.target or "", len(order)))
    made.placed = [x for x in made.placed if x.source.name not in stands.ours and x.target.name not in stands.theirs]
    made.reshaped = [
        x for x in made.reshaped if x.source.name not in stands.ours and x.target.name not in stands.theirs
    ]
    filled = {step.target for step in made.steps} | {link.target.name for link in made.reshaped}
    made.missing = [place for place in places if place.name not in filled]
    made.held = list(dict.fromkeys(_own(leaf, stands) for leaf in made.held))
    moves = {
        key: [(x, move) for x, move in moved if x.source.name not in stands.ours and x.target.name not in stands.theirs]
        for key, moved in made.moves.items()
    }
    made.moves = {key: moved for key, moved in moves.items() if moved}
    made.source = grow(leaves, names_only=made.source.names_only, in_order=made.source.in_order)
    made.target = grow(places, names_only=made.target.names_only, in_order=made.target.in_order)


def _own(leaf: Leaf, stands: StandIns) -> Leaf:
    return stands.ours[leaf.name][0].whole if leaf.name in stands.ours else leaf


def _taken_apart(recast: Recast, found: Sequence[Step], made: Draft, stands: StandIns) -> list[Step]:
    """Steps for the parts of one tensor of the file, none where not all of them have found a place."""
    if len(found) < len(recast.pieces):
        return []
    if all(step.target is None for step in found):
        return [replace(found[0], source=recast.whole.name)]
    if any(step.target is None for step in found) or (_is_square(recast.whole.shape) and _doubted(made)):
        return []
    return [
        _step(recast, step, StepKind.SPLIT, source=recast.whole.name, target=step.target or "", piece=piece)
        for step in found
        for piece in [recast.pieces[stands.ours[step.source or ""][1]]]
    ]


def _put_together(recast: Recast, landed: Sequence[Step]) -> Step:
    more = tuple(step.source or "" for step in landed[1:])
    made = _step(recast, landed[0], StepKind.MERGE, source=landed[0].source or "", target=recast.whole.name)
    return replace(made, more=more, shape=recast.whole.shape)


def _picture_of(step: Step, recast: Recast) -> tuple[int, int] | None:
    """(channels, places) where the inputs of gates are put into torch's order as well; of other parts none are."""
    if step.kind is not StepKind.PERMUTE or not recast.value.startswith(f"{gates.OPERATION.way}:"):
        return None
    way, _, sizes = step.value.partition(":")
    if way != flattened.OPERATION.way or not sizes or sizes.endswith("turned"):
        return None
    channels, height, width = map(int, sizes.split(","))
    return channels, height * width


def _turns(step: Step) -> bool:
    return step.kind is StepKind.PERMUTE and step.axes == (1, 0) and not step.value


def _step(
    recast: Recast, landed: Step, kind: StepKind, *, source: str, target: str, piece: Piece | None = None
) -> Step:
    named = landed.evidence in (Evidence.EXACT_NAME, Evidence.RULE)
    also = tuple(dict.fromkeys(rule for rule in (landed.rule, *landed.also) if rule))
    value = "" if recast.plain else recast.value
    picture = _picture_of(landed, recast)
    if picture is not None:
        value = gates.flattened(value, *picture)
    return Step(
        kind=kind,
        source=source,
        target=target,
        rule=recast.rule,
        also=also,
        reason=recast.reason,
        cost=Cost.LOSSLESS,
        evidence=Evidence.RULE if named else landed.evidence,
        shape=piece.leaf.shape if piece is not None else None,
        value=with_turned_parts(recast.value) if _turns(landed) else value,
        rows=piece.rows if piece is not None else (0, 0),
        declared=recast.proved,
    )


def _lies_right(recast: Recast, landed: dict[int, Step], made: Draft) -> bool:
    """Whether the file's square parts lie as torch has them where the target's whole does not."""
    squares = any(_is_square(piece.leaf.shape) for piece in recast.pieces)
    if not squares or not recast.turned or any(_turns(step) for step in landed.values()):
        return True
    # The target is (in, out). Matrices of the file that go to such places say which way round the file has them.
    ways = {
        link.source.shape == (link.target.shape or ())[::-1]
        for link in (*made.placed, *made.reshaped)
        if len(set(link.target.shape or ())) == len(link.target.shape or ()) == 2
        and voucher_of(link.target, link.source) is Voucher.CONV1D
    }
    turned = {step.target for step in made.steps if step.kind is StepKind.PERMUTE}
    ways |= {True for name in turned if name and voucher_of(Leaf(name, None), Leaf(name, None)) is Voucher.CONV1D}
    return ways == {True}


def _doubted(made: Draft) -> bool:
    """Whether something shows that matrices of the file are not all as torch has them."""
    return bool(made.elsewhere) or any(step.kind is StepKind.PERMUTE for step in made.steps)


def _is_square(shape: Shape | None) -> bool:
    return shape is not None and len(shape) == 2 and shape[0] == shape[1] > 1
