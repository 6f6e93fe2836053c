"""When a file is not the target's network, in one sentence. A refused repair changes nothing.

Unlike missing tensors, which can be listed and left, these say that placing what happens to fit would make a wrong
model: other widths, another depth, or nothing in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.types import Shape
from inspector.keys.checks.entry import Context, refusing
from inspector.keys.placing.roles import split_name
from inspector.keys.placing.stacks import Stack, is_block, side_by_side, stacks
from inspector.keys.placing.tree import Node, stands_around
from inspector.keys.placing.words import all_words, is_no_part
from inspector.keys.report import Ambiguity, StepKind
from inspector.keys.rules.prefix_tokens import say_tokens
from inspector.units import counted, human_shape

ALL_BLOCKS, FIRST_BLOCKS = "all", "first"


def _empty(context: Context) -> str:
    return "" if context.state.tensors else "The file has no tensors to place."


def _nothing_in_common(context: Context) -> str:
    draft, target = context.draft, context.target
    moved = any(step.source is not None and step.target is not None for step in draft.steps)
    if moved or draft.reshaped or draft.held:
        return ""
    if unlike := [name for name, shape in context.places.items() if _differs(context, name, shape)]:
        # Names that are equal have something in common: their shapes have not.
        return (
            f"{_of(len(unlike), len(target.tensors), 'tensor')} {_have(len(unlike))} another shape than {target.label} "
            f"needs, {_first_of(context, unlike[0])}. This is another size or another network."
        )
    both = {split_name(name)[0] for name in context.tensors} & {split_name(name)[0] for name in context.places}
    same = "modules of both have equal names, their tensors have not" if both - {""} else _in_common(context)
    return (
        f"None of the file's {counted(len(context.state.tensors), 'tensor')} can be placed in {target.label} by name: "
        f"{same or 'the names of both have nothing in common'} "
        f"(first are {_first(draft.source)} and {_first(draft.target)}), and "
        f"strict=False would load 0 of {len(target.tensors):,} and say nothing. {draft.lost_order}"
    ).rstrip()


def _in_common(context: Context) -> str:
    """What names of both share that gives no tensor a place, "" for nothing."""
    shapes = {name: tensor.shape for name, tensor in context.tensors.items()}
    for one, other in ((shapes, context.places), (context.places, shapes)):
        behind = next(((name, end) for name in one for end in _ends(name) if end in other), None)
        if behind is not None:
            apart = one[behind[0]] != other[behind[1]]
            return (
                f"names of both are equal behind a prefix ({behind[0]}), {'with other shapes' if apart else 'too few'}"
            )
    ours, theirs = (
        {word for name in names for word in all_words(tuple(split_name(name)[0].split(".")))}
        for names in (context.tensors, context.places)
    )
    shared = sorted(word for word in ours & theirs if len(word) > 1 and word.isalpha() and not is_no_part(word))
    said = ", ".join(f'"{word}"' for word in shared[:3])
    return f"both have words in common ({said}), which tell no tensor's place" if said else ""


def _ends(name: str) -> Iterator[str]:
    """The name without its first segment, without its first two, as long as a module is left."""
    segments = name.split(".")
    return (".".join(segments[at:]) for at in range(1, len(segments) - 1))


def _differs(context: Context, name: str, shape: Shape | None) -> bool:
    ours = context.tensors.get(name)
    return ours is not None and shape is not None and ours.shape != shape


def _of(number: int, total: int, noun: str) -> str:
    return f"{number:,} of {counted(total, noun)}" if total > 1 else f"The one {noun}"


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _first_of(context: Context, name: str) -> str:
    ours, theirs = context.tensors[name].shape, context.places[name] or ()
    return say_shapes(name, ours, theirs)


def say_shapes(name: str, ours: Shape, theirs: Shape) -> str:
    """'word.weight first: 56x8 in the file, 50x8 in the target'."""
    return f"{name} first: {human_shape(ours)} in the file, {human_shape(theirs)} in the target"


def _first(node: Node) -> str:
    return next((leaf.name for _, leaf in node.walk()), "nothing")


def _other_shapes(context: Context) -> str:
    reshaped, target = context.draft.reshaped, context.target
    if not reshaped:
        return ""
    if tokens := next((says for link in reshaped if (says := say_tokens(link))), ""):
        return tokens
    first = reshaped[0]
    # The draft may place another tensor of the right shape where the one of that name does not fit.
    shapes = {tensor.name: tensor.shape for tensor in context.state.tensors}
    by_name = sum(one.shape is not None and shapes.get(one.name, one.shape) != one.shape for one in target.tensors)
    number = max(len(reshaped), by_name)
    return (
        f"{_of(number, len(target.tensors), 'tensor')} {_have(number)} another shape than {target.label} needs, "
        f"{say_shapes(first.target.name, first.source.shape or (), first.target.shape or ())}. This is another size or "
        "another network."
    )


def _deeper(context: Context) -> str:
    draft = context.draft
    left_out = set(draft.unplaced)
    # A block's tables go by rules of their own; what the user chose to leave out is no deeper network.
    dropped = {step.source for step in draft.steps if step.kind is StepKind.DROP} - draft.not_chosen
    placed = {link.source.name for link in draft.placed}
    if not left_out:
        return ""
    for stack in stacks(draft.source):
        blocks = list(stack.blocks.values())
        outside = [b for b in blocks if is_block(b) and all(x.name not in placed for _, x in b.walk())]
        outside = [b for b in outside if all(x.name in dropped for _, x in b.walk() if not is_bookkeeping(x.name))]
        outside = [b for b in outside if any(x.name in left_out for _, x in b.walk())]
        inside = [b for b in blocks if b not in outside and any(x.name in placed for _, x in b.walk())]
        kinds = {b.forms for b in inside}
        # The first block of a stage often has a shortcut more than those that repeat it.
        if any(b.forms <= kind for b in outside for kind in kinds) and not _are_named(context, stack, inside):
            where = f"{stack.place} has" if stack.place else "There are"
            says = (
                f"{where} {len(blocks)} blocks in the file and {len(inside)} in {context.target.label}: this is a "
                "deeper network, and leaving blocks out would change what it computes."
            )
            return says if _keeps_all_blocks(context, stack, inside, outside, says) else ""
    return ""


def _are_named(context: Context, stack: Stack, inside: Sequence[Node]) -> bool:
    """Whether these stand side by side, and the target has them under their own numbers: q1 of q1 and q2."""
    own = {leaf.name for block in inside for _, leaf in block.walk()}
    ends = {block.path[-1] for block in inside}
    return side_by_side(stack) and all(
        not ends.isdisjoint(link.target.name.split(".")) for link in context.draft.placed if link.source.name in own
    )


def _keeps_all_blocks(
    context: Context, stack: Stack, inside: Sequence[Node], outside: Sequence[Node], says: str
) -> bool:
    """Whether the file must keep all blocks. Where all else has its own name, and the blocks left over are the last of
    one row of equal ones, the user may want the first alone: a student begins so, and is trained further.
    """
    draft = context.draft
    last = {number for number, block in stack.blocks.items() if block in outside}
    equal = len({block.signature for block in stack.blocks.values()}) == 1
    around = stands_around((link.source, link.target) for link in draft.placed)
    others = set(draft.unplaced) - {leaf.name for block in outside for _, leaf in block.walk()}
    whole = not (draft.missing or draft.reshaped or draft.held or others) and len(around) == 1
    if not (whole and equal and min(last) > max(set(stack.blocks) - last)):
        return True
    few = counted(len(inside), "block")
    answer = context.questions.ask(
        Ambiguity(
            id="fewer-blocks",
            question=f"{says} All else fits. Is a network of the first {few} wanted, to be trained further?",
            options=(
                (ALL_BLOCKS, "no: the target must be built with as many blocks as the file has"),
                (FIRST_BLOCKS, f"yes, as a student begins: the first {few}, without the others"),
            ),
        ),
        place=stack.place,
    )
    return answer == ALL_BLOCKS


def _norms_of_convolutions(context: Context) -> str:
    """A batch norm that would be left out behind a layer that computes with it, or a bias that stands for one.

    Where such layers have a norm of their own in the target, another set of norms beside them may come off.
    """
    draft = context.draft
    if draft.held:
        return ""  # what waits for an answer may be the norm that seems to be missing
    away = {step.source for step in draft.steps if step.kind is StepKind.DROP and step.source is not None}
    places = {link.source.name: link.target.name for link in draft.placed}
    gone = [name for name in away & set(draft.unplaced) if name.endswith(_VARIANCE)]
    missing = [place for place in draft.missing if place.name.endswith(_VARIANCE)]
    for name in sorted(gone):
        weight = name.removesuffix(_VARIANCE) + ".weight"
        if weight in places or weight not in context.tensors:
            # The norm is placed and only its statistics are not, or it has no weight: `unused-statistics` tells that.
            continue
        size = context.tensors[name].shape
        parent = split_name(name.removesuffix(_VARIANCE))[0]
        beside = [x for x in draft.placed if _is_below(x.source.name, parent)]
        layers = [x for x in beside if len(x.source.shape or ()) > 1 and (x.source.shape or ())[:1] == size]
        norms = [x for x in beside if x.source.name.endswith(_VARIANCE) and x.source.shape == size]
        # A norm of the target that nothing fills may be this one under another name.
        waiting = [place for place in missing if place.shape == size]
        if len(layers) > len(norms) + len(waiting):
            return (
                f"{name.removesuffix(_VARIANCE)} is a batch norm that {context.target.label} does not have, behind "
                f"{layers[0].source.name} or its like, which is placed ({counted(len(gone), 'such norm')} in all). "
                "Leaving it out would change what the network computes: it has to be folded into that layer first "
                "(torch.nn.utils.fusion.fuse_conv_bn_weights)."
            )
    for name in sorted(away & set(draft.unplaced)) if missing else ():
        weight = name.removesuffix("bias") + "weight" if name.endswith(".bias") else ""
        # A norm's own bias stands for no other norm.
        place = places.get(weight, "")
        place = place if place and len(context.tensors[weight].shape or ()) > 1 else ""
        norm = _norm_behind(place, context.tensors[name].shape, context) if place else ""
        if norm:
            return (
                f"{name} has no place in {context.target.label}, whose {norm} is not in the file: the batch norms are "
                "folded into the layers of the file, so that it cannot be filled into a network that has them. Build "
                "the target with biases and without batch norms."
            )
    return ""


_VARIANCE = ".running_var"


def _is_below(name: str, parent: str) -> bool:
    """Whether this tensor's module stands in that one."""
    return split_name(split_name(name)[0])[0] == parent


def _norm_behind(place: str, size: Shape | None, context: Context) -> str:
    """The batch norm beside a layer of the target that the file lacks."""
    parent = split_name(split_name(place)[0])[0]
    for norm in context.draft.missing:
        if norm.name.endswith(_VARIANCE) and norm.shape == size and _is_below(norm.name, parent):
            return norm.name.removesuffix(_VARIANCE)
    return ""


MISFITS = (
    refusing(_empty),
    refusing(_nothing_in_common),
    refusing(_other_shapes),
    refusing(_deeper),
    refusing(_norms_of_convolutions),
)
