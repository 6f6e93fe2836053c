"""When a part of a network may be repaired alone, and when it only looks like one.

A whole repair proves itself: a tensor on a wrong place leaves another place empty. A part leaves places empty by its
nature, so what that proof would have caught is looked for here: a shallower network, which fits block for block and has
fewer of them; a tower that the target has twice; a handful of equal names in another network; an order that is no
longer whole. Where the file does not tell, the user is asked; where it tells, the part is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.architectures.types import Target
from inspector.checkpoint.bookkeeping import BOOKKEEPING
from inspector.checkpoint.types import Shape
from inspector.keys.checks.entry import Context, refusing
from inspector.keys.draft import Draft
from inspector.keys.placing.stacks import is_block, stacks
from inspector.keys.placing.tree import Leaf, Node, before_shared_end
from inspector.keys.report import Ambiguity, Evidence, StepKind
from inspector.keys.rules.entry import Link, Questions
from inspector.units import counted

PART, SHALLOWER = "part", "shallower"
AS_PLACED, NOT_THERE, LEAVE_OUT = "as-placed", "not-there", "leave-out"
# Less than one weight in so many is no part worth the name.
_LEAST = 10


def refuse_part(draft: Draft, target: Target, leaves: Sequence[Leaf], questions: Questions) -> str:
    """Why the tensors that are placed are no part of the target worth loading, "" when they are.

    Asks about what the file does not tell: with an open question, too, nothing is written. Judged when the questions of
    the repair itself are answered, since until then tensors wait without a place.
    """
    if questions.open or draft.held:
        return ""
    placed = [step for step in draft.steps if step.source is not None and step.target is not None]
    ours = sum(1 for leaf in leaves if _weighs(leaf.name))
    theirs = sum(1 for tensor in target.tensors if _weighs(tensor.name))
    used = len({name for step in placed for name in step.sources if _weighs(name)})
    filled = len({step.target for step in placed if _weighs(step.target or "")})
    would = f"strict=False would load {filled:,} of {counted(theirs, 'weight')} of {target.label}"
    if _LEAST * filled < theirs:
        return f"{would}: too little to be called a part of it. The others would stay at their initial value."
    if 2 * used < ours and 2 * filled < theirs:
        return (
            f"{would}, and {ours - used:,} of {counted(ours, 'weight')} of the file have no place there: these are two "
            "networks that share some names."
        )
    by_order = [s for s in placed if s.evidence in (Evidence.ORDER_ONLY, Evidence.SYMMETRIC, Evidence.UNIQUE_TOKEN)]
    if by_order:
        return (
            f"{counted(len(by_order), 'tensor')} would be placed by order, {by_order[0].source} first, and "
            f"{len(draft.missing):,} places stay empty: order proves a placing only where nothing is missing."
        )
    return _ask_depth(draft, target, questions) or _ask_places(draft, questions) or _ask_leftovers(draft, questions)


def _part(context: Context) -> str:
    if not context.partial:
        return ""
    return refuse_part(context.draft, context.target, context.leaves, context.questions)


PARTS = (refusing(_part),)


def _weighs(name: str) -> bool:
    return name.rpartition(".")[2] not in BOOKKEEPING


def _ask_depth(draft: Draft, target: Target, questions: Questions) -> str:
    """Blocks that the target has behind the file's last one: a part that was cut off, or a network with fewer."""
    filled = {step.target for step in draft.steps if step.source is not None and step.target}
    missing = {place.name for place in draft.missing}
    for place, inside, outside in _cut_stacks(draft.target, filled, missing):
        answer = questions.ask(
            Ambiguity(
                id="depth",
                question=(
                    f"{place} has {inside} of its {inside + outside} blocks in the file, and the last {outside} are "
                    f"missing. Is the file a part of {target.label}, or a network of its own with fewer blocks?"
                ),
                options=(
                    (PART, "a part: the missing blocks stay at their initial value, to be trained"),
                    (SHALLOWER, "a shallower network: untrained blocks in it would make its answers worthless"),
                ),
            ),
            place=place,
        )
        if answer == SHALLOWER:
            return (
                f"{place} has {inside} blocks in the file and {inside + outside} in {target.label}: this is a "
                "shallower network, and untrained blocks in it would make its answers worthless."
            )
    return ""


def _cut_stacks(root: Node, filled: set[str], missing: set[str]) -> Iterator[tuple[str, int, int]]:
    """(place, blocks that the file has, blocks missing behind the last of them), from the top."""
    for stack in stacks(root):
        have = {n: block for n, block in stack.blocks.items() if any(x.name in filled for x in _weights(block))}
        last = max(have, default=-1)
        behind = [b for n, b in stack.blocks.items() if n > last and _all_missing(b, missing)]
        alike = [block for block in behind if any(_alike(block, other) for other in have.values())]
        if have and alike:
            yield stack.place or "The network", len(have), len(behind)


def _weights(node: Node) -> list[Leaf]:
    return [leaf for _, leaf in node.walk() if _weighs(leaf.name)]


def _all_missing(block: Node, missing: set[str]) -> bool:
    weights = _weights(block)
    return bool(weights) and all(leaf.name in missing for leaf in weights)


def _alike(one: Node, other: Node) -> bool:
    # What is smaller repeats by chance, as linear layers of a Sequential do: it must have equal shapes, too.
    return one.forms == other.forms and (is_block(one) or one.bag == other.bag)


def _ask_places(draft: Draft, questions: Questions) -> str:
    """Tensors under another name that would fill an empty place of the target just as well."""
    empty = {place.name: place.shape for place in draft.missing if _weighs(place.name)}
    tails: dict[str, list[str]] = {}
    for name in empty:
        tails.setdefault(name.rpartition(".")[2], []).append(name)
    groups: dict[tuple[str, str], list[Link]] = {}
    for link in [*draft.placed, *draft.reshaped]:
        if link.moves and _weighs(link.source.name):
            groups.setdefault(_exchanged(link), []).append(link)
    for (ours, theirs), group in groups.items():
        rival = _rival(theirs, group, tails, empty)
        if rival is None:
            continue
        first = group[0]
        answer = questions.ask(
            Ambiguity(
                id="place",
                question=(
                    f"{counted(len(group), 'tensor')}, {first.source.name} first, would become {first.target.name} by "
                    f"a new name; the empty {rival} has the same shape and name below. Is {first.target.name} right?"
                ),
                options=(
                    (AS_PLACED, f"yes, {first.target.name}"),
                    (NOT_THERE, "no: then the part is not repaired"),
                ),
            ),
            place=ours or theirs,
        )
        if answer == NOT_THERE:
            return f"{first.source.name} does not belong on {first.target.name}, as was answered; no other name fits."
    return ""


def _ask_leftovers(draft: Draft, questions: Questions) -> str:
    """Weights that are left out and have the shape of an empty place: perhaps the same under another name."""
    shapes = {leaf.name: leaf.shape for _, leaf in draft.source.walk()}
    chosen = draft.not_chosen
    gone = [
        s.source for s in draft.steps if s.kind is StepKind.DROP and s.source is not None and s.source not in chosen
    ]
    empty = {place.shape for place in draft.missing if len(place.shape or ()) >= 2}
    alike = [name for name in gone if shapes.get(name) in empty]
    if not alike:
        return ""
    answer = questions.ask(
        Ambiguity(
            id="leftover",
            question=(
                f"{counted(len(alike), 'tensor')} that would be left out, {alike[0]} first, have the shape of places "
                f"that would stay empty. Are they something else?"
            ),
            options=(
                (LEAVE_OUT, "yes: leave them out, and the places at their initial value"),
                (NOT_THERE, "no, they are these places' under another name: then the part is not repaired"),
            ),
        )
    )
    if answer == NOT_THERE:
        return f"{alike[0]} belongs on one of the {len(draft.missing):,} empty places, and no name tells which."
    return ""


def _exchanged(link: Link) -> tuple[str, str]:
    ours, theirs = before_shared_end([tuple(leaf.name.split(".")) for leaf in (link.source, link.target)])
    return ".".join(ours), ".".join(theirs)


def _rival(
    theirs: str, group: Sequence[Link], tails: dict[str, list[str]], empty: dict[str, Shape | None]
) -> str | None:
    """An empty place for the first of the group, below which all the others of the group have one, too."""
    start = len(theirs) + 1 if theirs else 0
    below = [(link.target.name[start:], link.source.shape) for link in group]
    first = below[0][0]
    if not first:
        return None  # The leaf itself was renamed: there is no prefix to exchange.
    for name in tails.get(first.rpartition(".")[2], ()):
        if name != first and not name.endswith(f".{first}"):
            continue
        prefix = name[: len(name) - len(first)]
        if all(f"{prefix}{rest}" in empty and empty[f"{prefix}{rest}"] in (None, shape) for rest, shape in below):
            return name
    return None
