"""Matrices stored the other way round: (in, out) as Keras and GPT-2's Conv1D have them, where torch has (out, in).

A shape shows it unless the matrix is square. A square one is turned by itself only where its own name vouches for that
(`placing/layouts.py`): every other kernel of the file, or every other Conv1D, is turned too. Its neighbours' word is
not enough: a gate in a block of Conv1D is a linear layer. Where the names prove a library that stores every linear
layer so (`placing/provenance.py`), that decides. As soon as the file shows another layout or another
library than torch's, every other square one is asked about, since either way loads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from inspector.keys.placing.layouts import SETTLED, Voucher, is_weight, may_be_table, own_name, voucher_of
from inspector.keys.placing.provenance import is_from_the_right
from inspector.keys.placing.roles import own_role, split_name
from inspector.keys.report import Ambiguity, Cost, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link, Rule, settle
from inspector.keys.rules.wholes import squares_in
from inspector.units import counted, human_shape

TRANSPOSED, AS_IT_IS = "transposed", "as-it-is"
_OPTIONS = (
    (TRANSPOSED, "the file has it as (in, out): transpose"),
    (AS_IT_IS, "the file has it as (out, in), as torch does"),
)


def _is_matrix(link: Link) -> bool:
    return len(link.target.shape or ()) == 2 and own_role(link.target) == "weight"


def is_turned(link: Link) -> bool:
    """Whether the shape shows that this matrix lies the other way round."""
    ours, theirs = link.source.shape or (), link.target.shape or ()
    return ours != theirs and ours == theirs[::-1] and _is_matrix(link)


def is_square(link: Link) -> bool:
    """Whether this matrix has one shape either way round."""
    rows, *columns = link.target.shape or (0,)
    return link.source.shape == link.target.shape and columns == [rows] and rows > 1 and is_weight(link.target)


def has_bias(link: Link, there: Mapping[str, Link]) -> bool:
    """Whether a bias beside it says which of the two sizes is the layer's output."""
    module, leaf = split_name(link.target.name)
    name = leaf.removesuffix("weight") + "bias"
    bias = there.get(f"{module}.{name}" if module else name)
    # transformers' Conv1D in the target is (in, out) itself.
    turned = voucher_of(link.target, link.source) is Voucher.CONV1D
    shape = link.target.shape or ()
    return bias is not None and (bias.source.shape == shape[:1] or (turned and bias.source.shape == shape[1:]))


def _has_projections(left: Leftovers) -> bool:
    return any(library is not None and library.projections for library in (left.writer, left.reader))


def _from_the_right(link: Link, left: Leftovers) -> bool:
    return is_from_the_right(link.source, link.target, left.writer, left.reader)


def _steps(left: Leftovers) -> Iterator[Step]:
    turned = [link for link in left.reshaped if is_turned(link) and not _from_the_right(link, left)]
    if turned:
        there = {link.target.name: link for link in left.settled}
        # While it is not answered, the plan shows what would be done, and is open.
        told = any(_is_told(link, left) or has_bias(link, there) for link in turned)
        if not told and _ask_shapes(turned, left) == AS_IT_IS:
            return
        for link in turned:
            says = "(in, out) in the file, (out, in) in the target."
            yield settle(link, rule=RULE.id, kind=StepKind.PERMUTE, reason=says, axes=(1, 0))
    for link in (*left.settled, *left.reshaped) if _has_projections(left) else ():
        if _from_the_right(link, left):
            says = "CLIP multiplies by it from the right, (in, out), where a layer is (out, in)."
            yield settle(link, rule=RULE.id, kind=StepKind.PERMUTE, reason=says, axes=(1, 0))
    shown: dict[Kind, set[bool]] | None = None
    for link in left.settled:
        if not is_square(link) or link.target.name in left.turned or link.target.name in left.oriented:
            continue
        shown = shown_ways(left) if shown is None else shown
        if not _from_the_right(link, left) and lies_turned(link, shown, left):
            says = "Square, and stored the other way round as every other matrix of this name, or by the user's word."
            yield settle(link, rule=RULE.id, kind=StepKind.PERMUTE, reason=says, axes=(1, 0))


Kind = tuple[Voucher, str]


def shown_ways(left: Leftovers) -> dict[Kind, set[bool]]:
    """By kind of name: whether matrices whose shapes tell lie the other way round, or not, or both.

    Where anything shows another layout, what holds squares in one tells nothing by having torch's shape.
    """
    ways: dict[Kind, set[bool]] = {}
    matrices = [
        x for x in left.settled if _is_oblong(x) and is_weight(x.target) and not (left.elsewhere and squares_in(x))
    ]
    matrices += [x for x in (*left.reshaped, *left.permuted) if _is_oblong(x) and is_turned(x)]
    for link in matrices:
        ways.setdefault(_kind(link), set()).add(is_turned(link))
        if _goes_to_conv1d(link):
            ways.setdefault(_AT_CONV1D, set()).add(is_turned(link))
    return ways


def _is_oblong(link: Link) -> bool:
    shape = link.target.shape or ()
    return len(shape) == 2 and shape[0] != shape[1]


# What goes to places where transformers has a Conv1D, whatever the file calls it.
_AT_CONV1D: Kind = (Voucher.CONV1D, "place")


def _goes_to_conv1d(link: Link) -> bool:
    return voucher_of(link.target, link.source) is Voucher.CONV1D


def _kind(link: Link) -> Kind:
    """Matrices of one kind of name speak for each other."""
    voucher = voucher_of(link.source, link.target)
    return voucher, "" if voucher is Voucher.OTHER else own_name(link.source)[1]


def lies_turned(link: Link, shown: Mapping[Kind, set[bool]], left: Leftovers) -> bool:
    """Whether a square matrix is stored the other way round: by what its name vouches for, or by the user's word."""
    way = way_of(link, shown, left)
    return _ask_square(link, left) == TRANSPOSED if way is None else way


def way_of(link: Link, shown: Mapping[Kind, set[bool]], left: Leftovers) -> bool | None:
    """Whether its name vouches that a square matrix is stored the other way round, or as torch has it; None for
    neither."""
    kind = _kind(link)
    voucher, ways = kind[0], shown.get(kind, set())
    if voucher is Voucher.EMBEDDING:
        if own_name(link.source)[1] != "weight" or not _is_layer(link, left):
            return False
        voucher, ways = Voucher.NOTHING, shown.get((Voucher.NOTHING, "weight"), set())
    if voucher in (Voucher.IN_OUT, Voucher.CONV1D) and ways == {True}:
        return True
    if _goes_to_conv1d(link) and shown.get(_AT_CONV1D) == {True}:
        return True
    if voucher is not Voucher.NOTHING and ways == {False}:
        return False
    if _proves_turned(voucher, ways, left):
        return True
    if voucher is Voucher.NOTHING and _is_torn(link, left):
        others = (*left.settled, *left.reshaped, *left.permuted)
        ways = {is_turned(x) for x in others if _is_torn(x, left) and _is_oblong(x)}
        return False if ways == {False} else None
    if voucher is Voucher.NOTHING and (not left.elsewhere or _proves_torch(ways, left)):
        return False
    if left.elsewhere and not left.elsewhere & ~SETTLED and set().union(*shown.values()) == {False}:
        return False  # torch's first BERTs, a torch model's names as paths
    if voucher is Voucher.CONV1D and not left.elsewhere and set().union(*shown.values()) == {False}:
        return False
    return None


def _is_torn(link: Link, left: Leftovers) -> bool:
    """Whether a weight leaves the bias that it had beside it: conv1.weight to conv1.lin.weight, conv1.bias stays.

    In the file it is then no linear layer's but a parameter of its own, as PyG's graph convolutions had, (in, out).
    """
    (module, leaf), (place, own) = split_name(link.source.name), split_name(link.target.name)
    if module == place or leaf != "weight" or own != "weight" or not _is_matrix(link):
        return False
    bias = next((x for x in left.settled if x.source.name == f"{module}.bias"), None)
    return (
        bias is not None
        and split_name(bias.target.name)[0] != place
        and place.startswith(f"{split_name(bias.target.name)[0]}.")
    )


def _is_layer(link: Link, left: Leftovers) -> bool:
    """Whether a module that the file calls an embedding is a layer: a table has no bias, and is called one there."""
    bias = f"{own_name(link.target)[0]}.bias"
    return not may_be_table(link.target) or any(place.name == bias for place in left.target.tensors)


def _is_told(link: Link, left: Leftovers) -> bool:
    """Whether the library that wrote the file stores every matrix of this name (in, out)."""
    return _proves_turned(voucher_of(link.source, link.target), {True}, left)


def _proves_turned(voucher: Voucher, ways: set[bool], left: Leftovers) -> bool:
    """Whether the library that wrote the file stores every linear layer (in, out), and this name is that library's.

    "weight", as Paddle has it, is everybody's: a layer of torch's may have been put beside.
    """
    return left.writer is not None and left.writer.in_out and voucher is Voucher.IN_OUT and ways <= {True}


def _proves_torch(ways: set[bool], left: Leftovers) -> bool:
    """Whether the library that wrote the file stores them as torch does, and no shape of this name says otherwise."""
    return left.writer is not None and left.writer.as_torch and ways <= {False}


def _ask_shapes(links: Sequence[Link], left: Leftovers) -> str | None:
    """Whether shapes the other way round mean a transposed matrix, or another layer: an answer for these alone."""
    first = links[0]
    more = f" (and {counted(len(links) - 1, 'more matrix', 'more matrices')})" if links[1:] else ""
    return left.questions.ask(
        Ambiguity(
            id="transposed-shapes",
            question=(
                f"{first.source.name} is {human_shape(first.source.shape or ())} in the file and "
                f"{human_shape(first.target.shape or ())} in the target{more}, and no bias beside it tells which size "
                "is the output's. Is it the same layer, stored as (in, out)?"
            ),
            options=(
                (TRANSPOSED, "yes, it is stored as (in, out): transpose"),
                (AS_IT_IS, "no, it is another layer"),
            ),
        ),
        place=_place(first),
    )


def _ask_square(link: Link, left: Leftovers) -> str | None:
    return left.questions.ask(
        Ambiguity(
            id="transposed",
            question=(
                f"Is {link.source.name}, which is square, stored as (in, out), as Keras, Flax and Paddle do, the other "
                "way round than torch? Nothing beside it tells, and a wrong one loads just as well."
            ),
            options=_OPTIONS,
        ),
        place=_place(link),
    )


def _place(link: Link) -> str:
    return split_name(link.target.name)[0] or link.target.name


RULE = Rule(
    id="transposed",
    title="Transposed matrices",
    says=(
        "Transposes linear layers stored as (in, out), as Keras and Conv1D do; square ones only where every other "
        "matrix of that name is turned, else they are asked about in any file that is not torch's alone."
    ),
    cost=Cost.LOSSLESS,
    done="{tensors} {are} transposed",
    steps=_steps,
)
