"""Pictures that a file whose kernels lie channels last flattens, or unfolds, place by place; torch does it channel by
channel. No shape shows which, so it is asked about every layer that may read or give such a picture (`pictures.py`), a
recurrent one as well, and about norms of as many numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inspector.keys.placing.roles import split_name
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import FILE, Ambiguity, Step, StepKind
from inspector.keys.rules.channel_steps import COLOURS
from inspector.keys.rules.entry import Leftovers, Link, leave_out, settle
from inspector.keys.rules.pictures import Layer, Picture, pictures_of
from inspector.keys.rules.transposed import is_square, is_turned, lies_turned, shown_ways

CHANNELS_FIRST, CHANNELS_LAST = "channels-first", "channels-last"
# What no shape shows of a matrix behind a flattened picture, and of one in front of an unfolded one.
FLATTEN_ORDER, UNFOLD_ORDER = "flatten-order", "unfold-order"


def last_with(channels: int) -> str:
    """The option that it is flattened place by place with so many channels, where several are possible."""
    return f"{CHANNELS_LAST}-{channels}"


def flattened_steps(left: Leftovers, rule: str) -> Iterator[Step]:
    """Steps for layers that read a flattened picture and those that give an unfolded one, as the user answers."""
    links = {x.target.name: x for x in (*left.settled, *left.reshaped)}
    places = [Leaf(x.name, x.shape) for x in left.target.tensors]
    pictures = pictures_of(places, links, ordered=left.target.ordered)
    read = [x for x in pictures.flattened if _is_whole(links.get(x.layer.place.name))]
    # A head that is listed before its convolutions gives no picture of their few colours.
    heads = {x.layer.place.name for x in read if not x.sure}
    given = [
        x
        for x in pictures.unfolded
        if _is_whole(links.get(x.layer.place.name))
        and x.layer.place.name not in left.turned
        and not (x.layer.place.name in heads and max(x.channels) <= COLOURS)
    ]
    reordered: dict[str, int] = {}
    for picture in read:
        link = links[picture.layer.place.name]
        channels = _ask(FLATTEN_ORDER, link, picture, picture.layer.takes, left)
        if channels:
            reordered[link.target.name] = channels
            yield from _norms(picture.norms, channels, links, rule)
    for picture in given:
        link, rows = links[picture.layer.place.name], picture.layer.gives
        channels = _ask(UNFOLD_ORDER, link, picture, rows, left)
        if channels and link.target.name in reordered:
            del reordered[link.target.name]
            yield leave_out(link, rule=rule, reason="Both its rows and its columns lie place by place in the file.")
        elif channels:
            yield from _unfold(link, rows // channels, channels, links, left, rule)
            yield from _norms(picture.norms, channels, links, rule)
    for name, channels in reordered.items():
        yield _reorder(links[name], channels, left, rule)
    for ident, asked, sizes in (
        (FLATTEN_ORDER, read, [x.layer.takes for x in read]),
        (UNFOLD_ORDER, given, [x.layer.gives for x in given]),
    ):
        known = [norm for x in (*read, *given) for norm in x.norms]
        done = {x.layer.takes for x in read} if ident == UNFOLD_ORDER else set()
        for norm in pictures.loose_norms(set(sizes) - done, known):
            first = asked[sizes.index(norm.gives)]
            if norm.place.name in links:
                of_norm = Picture(norm, first.channels, sure=False)
                channels = _ask(ident, links[norm.place.name], of_norm, norm.gives, left)
                yield from _norms((norm,), channels, links, rule)


def _is_whole(link: Link | None) -> bool:
    """Whether the file has this layer with the target's sizes: a head for other classes is not reordered."""
    return link is not None and (link.source.shape == link.target.shape or is_turned(link))


def _ask(ident: str, link: Link, picture: Picture, numbers: int, left: Leftovers) -> int:
    """How many channels the places have whose numbers stand together in the file; 0 where they do not, or while it is
    not answered."""
    flat = ident == FLATTEN_ORDER
    several = len(picture.channels) > 1
    options = [
        (CHANNELS_FIRST, f"channel by channel, as torch does, or it is no {'flattened picture' if flat else _UNFOLDED}")
    ]
    for channels in picture.channels:
        says = "as Keras does: reorder it as" if flat else "as Keras does: reorder"
        option = last_with(channels) if several else CHANNELS_LAST
        options.append((option, f"place by place, {says} {numbers // channels} places x {channels} channels"))
    each = " or ".join([f"{numbers // n:,} numbers for each of {n:,} channels" for n in picture.channels])
    if picture.layer.norms:
        says = f"{link.source.name} may belong to a norm of a flattened picture, {each}"
        order = "In which order does it expect the picture?"
    elif flat:
        says = f"{link.source.name} {'takes in' if picture.sure else 'may read a flattened picture,'} {each}"
        order = "In which order does it expect the flattened picture?"
    else:
        says = f"{link.source.name} {'gives' if picture.sure else 'may give a picture,'} {each}"
        says += " of the convolutions behind it" if picture.sure else ""
        order = "In which order does it give them?"
    answer = left.questions.ask(
        Ambiguity(
            id=ident,
            question=f"{says}, and the file stores its kernels channels last. {order} Either loads.",
            options=tuple(options),
            side=FILE if flat else "",
        ),
        place=picture.layer.module if picture.layer.norms else link.target.name,
    )
    return next((n for n in picture.channels if answer in (last_with(n), CHANNELS_LAST)), 0)


_UNFOLDED = "picture that is unfolded"


def _norms(norms: Iterable[Layer], channels: int, links: dict[str, Link], rule: str) -> Iterator[Step]:
    """The tensors of norms of a flattened picture, in the order that its layer is put into."""
    for leaf in (leaf for norm in norms for leaf in norm.norms):
        link, size = links.get(leaf.name), (leaf.shape or (0,))[0]
        if not channels or link is None or link.source.shape != link.target.shape:
            continue
        yield settle(
            link,
            rule=rule,
            kind=StepKind.PERMUTE,
            reason=f"Of a picture that lies place by place in the file, {size // channels} x {channels}.",
            shape=link.target.shape,
            value=f"rows:{size // channels},{channels}",
        )


def _lies_other_way(link: Link, left: Leftovers) -> bool:
    if is_turned(link):
        return True
    known = link.target.name in left.oriented
    return not known and is_square(link) and lies_turned(link, shown_ways(left), left)


def _unfold(
    link: Link, places: int, channels: int, links: dict[str, Link], left: Leftovers, rule: str
) -> Iterator[Step]:
    module, last = split_name(link.target.name)
    own = f"{last.removesuffix('weight')}bias"
    bias = links.get(f"{module}.{own}" if module else own)
    says = f"Unfolded place by place in the file, {places} x {channels}; torch unfolds channel by channel."
    for one in (link, bias):
        if one is None or (one is bias and one.source.shape != (places * channels,)):
            continue
        value = f"rows:{places},{channels}" + (",turned" if one is link and _lies_other_way(one, left) else "")
        yield settle(one, rule=rule, kind=StepKind.PERMUTE, reason=says, shape=one.target.shape, value=value)


def _reorder(link: Link, channels: int, left: Leftovers, rule: str) -> Step:
    places = (link.target.shape or (0, 0))[1] // channels
    turned = ",turned" if _lies_other_way(link, left) else ""
    says = f"Flattened place by place in the file, {places} x {channels}; torch flattens channel by channel."
    return settle(
        link,
        rule=rule,
        kind=StepKind.PERMUTE,
        reason=says,
        shape=link.target.shape,
        value=f"flattened:{channels},1,{places}{turned}",
    )
