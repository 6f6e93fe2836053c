"""Which layers of a target may take in a flattened picture, and which may give one that is unfolded: by their widths.

A matrix that takes in several numbers for each channel that convolutions give may stand behind a flattened picture;
one that gives several for each that they take in may stand in front of an unfolded one. Which convolutions a layer
stands behind is read from the order of the target where that is its model's own. Where it is not (sorted names), or a
layer is listed before every convolution, those channels count that a run of convolutions ends on, and a width counts
as another layer's where one puts out just so many.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum, auto
from functools import cached_property

from inspector.keys.placing.layouts import Voucher, is_table, may_be_table, voucher_of
from inspector.keys.placing.own_order import keeps_order
from inspector.keys.placing.roles import roles_of, split_name
from inspector.keys.placing.tree import Leaf
from inspector.keys.rules.channel_steps import COLOURS, ends_of, sinks_of
from inspector.keys.rules.entry import Link

# What a transposed convolution may be called.
UPWARD = re.compile(r"transpose|deconv|upconv|tconv|convt|unpool|(^|[._])(up|dec|decoder|upsample)([._]|[0-9]|$)", re.I)
_PLAIN = re.compile(r"(^|[._/])conv([123]d)?_?[0-9]*([._/]|$)", re.I)
_RECURRENT = re.compile(r"weight_(?P<way>ih|hh)(?:_l(?P<layer>[0-9]+))?(_reverse)?")
# How many dimensions a kernel has.
_KERNELS = (3, 4, 5)
_MOST = 5
# Of what a layer puts out the next may take a half, where the rest is its gate, or a third: the query.
_PARTS = (1, 2, 3)
_STATISTICS = frozenset({"weight", "bias", "mean", "variance"})


class Kind(StrEnum):
    """What a layer is, as far as its tensors' shapes and names tell."""

    KERNEL = auto()
    MATRIX = auto()
    TABLE = auto()
    NORM = auto()


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of the target. place: its weight; of a norm the first of its tensors, which are all in `norms`.

    takes, gives: channels of a kernel, numbers of a matrix, 0 for what is not told; of a norm how many it scales.
    """

    kind: Kind
    place: Leaf
    takes: int
    gives: int
    norms: tuple[Leaf, ...] = ()
    # It may be a transposed convolution, whose two numbers are the other way round.
    either: bool = False

    @property
    def module(self) -> str:
        """The name of its module."""
        return split_name(self.place.name)[0]


@dataclass(frozen=True, slots=True)
class Picture:
    """A layer and the channels that it may read pictures of (or give them with), the likeliest first.

    sure: it stands right behind these convolutions (or in front of them), as far as the target's order tells.
    norms: norms of as many numbers that stand between it and the picture.
    """

    layer: Layer
    channels: tuple[int, ...]
    sure: bool
    norms: tuple[Layer, ...] = ()


def layers_of(tensors: Sequence[Leaf], links: Mapping[str, Link]) -> list[Layer]:
    """The target's layers in its order. links: by the target's names, for what the file calls them."""
    deep = {split_name(x.name)[0] for x in tensors if len(x.shape or ()) > 1}
    norms: dict[str, list[Leaf]] = {}
    found: list[Layer | str] = []
    for place in tensors:
        shape = place.shape or ()
        module, last = split_name(place.name)
        if len(shape) == 1 and module not in deep and roles_of([place])[0] in _STATISTICS:
            if module not in norms:
                found.append(module)
            norms.setdefault(module, []).append(place)
        elif len(shape) > 1 and 0 not in shape and (layer := _weighing(place, last, links)) is not None:
            found.append(layer)
    given = {x.gives for x in found if isinstance(x, Layer) and x.kind is Kind.KERNEL and x.takes != 1}
    layers = []
    for x in found:
        if not isinstance(x, Layer):
            size = (norms[x][0].shape or (0,))[0]
            x = Layer(Kind.NORM, norms[x][0], size, size, tuple(norms[x]))
        elif x.kind is Kind.KERNEL and x.takes == 1 and x.gives in given:
            x = replace(x, takes=x.gives)  # one filter per channel: (channels, 1, h, w)
        layers.append(x)
    return layers


def _weighing(place: Leaf, last: str, links: Mapping[str, Link]) -> Layer | None:
    shape = place.shape or ()
    link = links.get(place.name)
    is_rows = _is_rows(place, link, links)
    recurrent = _RECURRENT.fullmatch(last)
    if recurrent is not None and len(shape) == 2:
        first = recurrent["way"] == "ih" and recurrent["layer"] in (None, "0")
        return Layer(Kind.MATRIX, place, shape[1] if first else 0, shape[1] if recurrent["way"] == "hh" else 0)
    if roles_of([place])[0] != "weight" and not is_rows:
        return None
    if len(shape) == 2:
        return Layer(Kind.TABLE if is_rows else Kind.MATRIX, place, shape[1], shape[is_rows])
    if len(shape) not in _KERNELS or is_rows:
        return None
    names = [place.name, *([link.source.name] if link is not None else [])]
    if any(UPWARD.search(name) for name in names):
        return Layer(Kind.KERNEL, place, shape[0], shape[1])
    return Layer(Kind.KERNEL, place, shape[1], shape[0], either=not any(_PLAIN.search(name) for name in names))


def _is_rows(place: Leaf, link: Link | None, links: Mapping[str, Link]) -> bool:
    """Whether rows are looked up there: by either side's word, or called so, without a bias, and not turned round."""
    if is_table(place) or link is None:
        return is_table(place)
    if voucher_of(link.source, place) is Voucher.EMBEDDING:
        return True
    module = split_name(place.name)[0]
    called = may_be_table(Leaf(split_name(module)[1], None))
    return called and link.source.shape == place.shape and f"{module}.bias" not in links


def divides(channels: int, numbers: int) -> bool:
    """Whether there are several numbers for each of several channels."""
    return 1 < channels < numbers and numbers % channels == 0


@dataclass(frozen=True)
class Pictures:
    """The layers of a target and what they may have to do with pictures. in_order: they come in the model's order."""

    layers: Sequence[Layer]
    in_order: bool

    @cached_property
    def _kernels(self) -> list[Layer]:
        return [x for x in self.layers if x.kind is Kind.KERNEL]

    @cached_property
    def _widths(self) -> frozenset[int]:
        return frozenset(x.gives for x in self._kernels)

    @cached_property
    def _joined(self) -> frozenset[int]:
        """Channels that several convolutions give together, as a kernel that takes them in shows."""
        return frozenset(x.takes for x in self._kernels) - self._widths

    @cached_property
    def _around(self) -> dict[str, list[Layer]]:
        """The kernels below each module."""
        below: dict[str, list[Layer]] = {"": self._kernels}
        for kernel in self._kernels:
            module = kernel.module
            while module:
                below.setdefault(module, []).append(kernel)
                module = split_name(module)[0]
        return below

    def _scopes(self, layer: Layer) -> Iterable[list[Layer]]:
        """The kernels of the smallest module around a layer that has any, then all."""
        module = layer.module
        while module and module not in self._around:
            module = split_name(module)[0]
        return (self._around[module], self._kernels) if module else (self._kernels,)

    @cached_property
    def _giving(self) -> frozenset[str]:
        """Matrices in front of an unfolded picture, by name: what they read is more likely a code than a picture."""
        return frozenset(x.layer.place.name for x in self.unfolded if max(x.channels) > COLOURS)

    @cached_property
    def _given(self) -> frozenset[int]:
        """Numbers that layers put out which a row of layers reaches that begins at a table, at channels one by one, or
        at what no other layer puts out. What only gives back itself (an autoencoder's two sides) is not among them."""
        matrices = [x for x in self.layers if x.kind is Kind.MATRIX]
        known = {x.gives for x in self.layers if x.kind is Kind.TABLE}
        givers: dict[int, set[str]] = {}
        for x in matrices:
            if x.gives:
                givers.setdefault(x.gives, set()).add(x.module)
        left = [x for x in matrices if x.place.name not in self._giving]
        given = set(known)
        while True:
            new = [
                x
                for x in left
                if _is_put_out(x.takes, given) or x.takes in self._widths or not givers.get(x.takes, set()) - {x.module}
            ]
            if not new:
                return frozenset(given)
            given |= {x.gives for x in new}
            left = [x for x in left if x not in new]

    @cached_property
    def flattened(self) -> tuple[Picture, ...]:
        """Matrices that may read a flattened picture."""
        found: list[Picture] = []
        near, since, asked = 0, set[int](), set[int]()
        norms: list[Layer] = []
        for layer in self.layers:
            if layer.kind is Kind.KERNEL:
                near, since, norms = layer.gives if self.in_order else 0, set(), []
                asked = set() if self.in_order else asked
            elif layer.kind is Kind.NORM:
                norms.append(layer)
            elif layer.kind is Kind.TABLE:
                since.add(layer.gives)
            else:
                channels = self._channels(layer, near)
                behind = bool(near) and near in channels
                told = _is_put_out(layer.takes, since if behind else since | self._given if near else self._given)
                if channels and (layer.takes in asked or not told):
                    asked.add(layer.takes)
                    between = [x for x in norms if x.gives == layer.takes] if self.in_order else []
                    sure = behind and len(channels) == 1 and not since
                    found.append(Picture(layer, channels, sure, tuple(between)))
                norms = []
                since |= {layer.gives, *((2 * layer.gives,) if _RECURRENT.search(layer.place.name) else ())}
        if not self.in_order:
            # What is listed before the first that is asked about.
            first = {x.layer.place.name for x in found}
            found += [
                Picture(x, channels, sure=False)
                for x in self.layers
                if x.kind is Kind.MATRIX and x.takes in asked and x.place.name not in first
                for channels in [self._channels(x, 0)]
                if channels
            ]
        return tuple(found)

    def _channels(self, layer: Layer, near: int) -> tuple[int, ...]:
        """Channels of pictures that a matrix may read, the likeliest first. near: of the kernel before it."""
        numbers = layer.takes
        if numbers == near:
            return ()
        likely = [near] if divides(near, numbers) else []
        if not likely and numbers in self._joined:
            return ()
        if self.in_order and not near and layer.place.name in self._giving:
            return ()  # a decoder's first layer
        for scope in self._scopes(layer):
            ends = ends_of([(x.takes, x.gives) for x in scope])
            if not likely and any(numbers in group for group in ends):
                return ()  # one number for each channel
            ends = [group for group in ends if any(divides(width, numbers) for width in group)]
            flat = all(len(x.place.shape or ()) != 4 for x in scope)
            if likely and len(ends) == 1 and near in ends[0] and (flat or _is_square(numbers // near)):
                break
            found = [width for group in ends for width in sorted(group, reverse=True) if divides(width, numbers)]
            likely += found
            if found and len(ends) == 1 and (flat or _is_square(numbers // found[0])):
                break
            if likely or (numbers not in self._widths and layer.place.name not in self._giving):
                # Taken from between others, as a detector's or an auxiliary head's: as high as wide.
                widths = sorted({x.gives for x in scope}, reverse=True)
                likely += [x for x in widths if x > COLOURS and divides(x, numbers) and _is_square(numbers // x)]
            if likely:
                break
        return tuple(dict.fromkeys(likely))[:_MOST]

    def loose_norms(self, numbers: Collection[int], known: Collection[Layer]) -> list[Layer]:
        """Norms of so many numbers as a picture has, of which no order tells that they are another layer's."""
        norms = [x for x in self.layers if x.kind is Kind.NORM and x.gives in numbers and x not in known]
        if not self.in_order:
            kernels = Counter((_parent(k), n) for k in self._kernels for n in {k.takes, k.gives})
            beside_them = Counter((_parent(x), x.gives) for x in norms)
            return [x for x in norms if kernels[_parent(x), x.gives] < beside_them[_parent(x), x.gives]]
        beside: dict[str, set[int]] = {}
        for layers, side in ((self.layers, "gives"), (self.layers[::-1], "takes")):
            last = 0
            for x in layers:
                if x.kind is Kind.NORM:
                    beside.setdefault(x.place.name, set()).add(last)
                elif side == "gives" or x.kind is Kind.KERNEL:
                    last = getattr(x, side)
        return [x for x in norms if x.gives not in beside[x.place.name]]

    @cached_property
    def unfolded(self) -> tuple[Picture, ...]:
        """Matrices that may give a picture that is unfolded."""
        found: list[Picture] = []
        before: Layer | None = None
        norms: list[Layer] = []
        for at, layer in enumerate(self.layers) if self.in_order else ():
            if layer.kind is Kind.MATRIX:
                before, norms = layer, []
            elif layer.kind is Kind.NORM:
                norms.append(layer)
            elif layer.kind is Kind.KERNEL:
                following = next((x for x in self.layers[at + 1 :] if x.kind is Kind.KERNEL), None)
                if before is not None and (channels := _unfolded_to(before, norms, layer, following)):
                    between = tuple(x for x in norms if x.gives == before.gives)
                    found.append(Picture(before, channels, len(channels) == 1, between))
                before = None
        known = {x.layer.place.name for x in found}
        taken = {x.takes * parts for x in self.layers if x.kind is Kind.MATRIX for parts in _PARTS}
        for layer in self.layers:
            if layer.kind is not Kind.MATRIX or layer.gives in taken or layer.place.name in known:
                continue
            channels = self._starts(layer)
            if channels:
                found.append(Picture(layer, channels, sure=False))
        return tuple(found)

    def _starts(self, layer: Layer) -> tuple[int, ...]:
        """Channels that a run of kernels begins with, as far as a matrix may give pictures of them."""
        for scope in self._scopes(layer):
            if any(layer.gives == x.takes for x in scope):
                return ()
            steps = [(x.takes, x.gives) for x in scope]
            # What begins with a picture's few colours begins with no unfolded one.
            found = [w for group in sinks_of([(b, a) for a, b in steps]) for w in sorted(group, reverse=True)]
            if not self.in_order and any(x.either for x in scope):
                # Were these transposed, the other end would be theirs to begin with.
                ends = [w for group in ends_of(steps) if len(group) == 1 for w in group]
                found += [w for w in ends if divides(w, layer.gives) and _is_square(layer.gives // w)]
            found = [w for w in dict.fromkeys(found) if w > COLOURS and divides(w, layer.gives)]
            if found:
                return tuple(found[:_MOST])
        return ()


def _unfolded_to(before: Layer, norms: Sequence[Layer], kernel: Layer, following: Layer | None) -> tuple[int, ...]:
    """Channels of the picture that a matrix right in front of a kernel gives: of a norm between, or of the kernel.

    following: the next kernel, which takes in what this one gives: so it tells a transposed convolution.
    """
    scaled = [x.gives for x in norms if divides(x.gives, before.gives)]
    if scaled:
        return (scaled[-1],)
    takes = [kernel.takes]
    if kernel.gives == (kernel.place.shape or (0,))[0]:
        takes.append(kernel.gives)  # it is not called a transposed one, and may be one
        on = {following.takes, following.gives} if following is not None else set()
        if len(on & set(takes)) == 1:
            takes = [x for x in takes if x not in on]
    if takes[:1] == [before.gives]:
        return ()  # one number for each channel
    return tuple(x for x in dict.fromkeys(takes) if divides(x, before.gives))


def _is_put_out(numbers: int, given: Collection[int]) -> bool:
    return any(numbers * parts in given for parts in _PARTS)


def _parent(layer: Layer) -> str:
    return split_name(layer.module)[0]


def _is_square(places: int) -> bool:
    return math.isqrt(places) ** 2 == places


def pictures_of(tensors: Sequence[Leaf], links: Mapping[str, Link], *, ordered: bool) -> Pictures:
    """What a target's layers may have to do with pictures. ordered: whether its container keeps the order."""
    return Pictures(layers_of(tensors, links), in_order=keeps_order(tensors, ordered))
