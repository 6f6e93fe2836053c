"""All chains of a network, a kernel at a time: the norms' vectors are held, a kernel only while it is looked at."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inspector.keys.certificate.chains import (
    Given,
    Sums,
    Vectors,
    given_by,
    moments_of,
    spread,
    sums_of,
    through,
    vectors_of,
)
from inspector.keys.certificate.ranks import fisher, log_chance, ranked
from inspector.keys.certificate.slots import ABOVE, FAR, FEWEST, Tried, try_slot
from inspector.keys.certificate.types import NEVER_TRAINED, Feed, Link, Norm, Wiring

Floats = NDArray[np.float64]

#: Of any proof of a file by ranks being an accident; spread over all that is tried.
CHANCE = 1e-3


@dataclass(slots=True)
class Agreement:
    """Of what a kernel puts out with what a norm remembers. z: Fisher's. rival: the best of the others of its kind."""

    z: float = 0.0
    log_chance: float = 0.0
    rival_z: float = -math.inf
    rival_log_chance: float = 0.0
    rival: str = ""
    channels: int = 0

    def take_rival(self, z: float, chance: float, name: str) -> None:
        """Keep the best."""
        if z > self.rival_z:
            self.rival_z, self.rival_log_chance, self.rival = z, chance, name

    @property
    def deviation(self) -> float:
        """Of Fisher's z of ranks (Fieller 1957)."""
        return math.sqrt(1.06 / max(1, self.channels - 3))

    def proves(self, level: float) -> bool:
        """level: the logarithm of the chance that is allowed."""
        above = self.z - self.rival_z >= ABOVE * self.deviation
        return self.channels >= FEWEST and self.log_chance < level and above

    def contradicts(self, level: float) -> bool:
        """Another one fits by far, and far better."""
        above = self.rival_z - self.z >= FAR * math.sqrt(2) * self.deviation
        return self.channels >= FEWEST and self.rival_log_chance < level and above


@dataclass(slots=True)
class Chain:
    """What was found of one link. tried: whether its numbers could be looked at, why_not otherwise.

    mean: the kernel against the norm's running mean, the rivals being other norms' means; var likewise; kernel: the
    same agreement, the rivals being kernels of its shape. entry: the order of the input, and whole norms in place of
    the one before, by feed. weights, biases: of the norm before, by feed. bias: of the kernel.
    """

    link: Link
    full: bool = False
    exact: bool = False
    tried: bool = False
    why_not: str = ""
    mean: Agreement = field(default_factory=Agreement)
    var: Agreement = field(default_factory=Agreement)
    kernel: Agreement = field(default_factory=Agreement)
    entry: dict[Norm, tuple[Tried, tuple[str, ...]]] = field(default_factory=dict)
    weights: dict[Norm, tuple[Tried, tuple[str, ...]]] = field(default_factory=dict)
    biases: dict[Norm, tuple[Tried, tuple[str, ...]]] = field(default_factory=dict)
    order: Tried | None = None
    bias: Tried | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Reading:
    """One way to take a chain. sums: None without a kernel. activation: of a feed's, None for the same everywhere."""

    sums: Sums | None
    given: Given
    activation: int | None

    def through(self, columns: Floats, groups: int) -> Floats:
        return columns if self.sums is None else through(self.sums.plain, columns, groups)

    def spread(self, columns: Floats, groups: int) -> Floats:
        return columns if self.sums is None else spread(self.sums, columns, groups)

    def column_size(self, groups: int) -> Floats:
        """How much of each input channel gets through, (in,)."""
        if self.sums is None:
            return np.ones(len(self.given.mean))
        parts = self.sums.plain.reshape(groups, -1, self.sums.plain.shape[1])
        size: Floats = np.sqrt((parts**2).sum(axis=1)).reshape(len(self.given.mean))
        return size


class Examiner:
    """Takes the vectors at once and the kernels one after the other, in any order."""

    def __init__(
        self, wiring: Wiring, read: Callable[[str], Floats | None], shapes: Mapping[str, tuple[int, ...]]
    ) -> None:
        """read: a vector of the target by its name, as float64; None where it has no plain numbers. shapes: of the
        kernels, so that each can stand in for those of its shape.
        """
        self.wiring = wiring
        self.norms: dict[Norm, Vectors] = {}
        self._read = read
        for norm in dict.fromkeys(norm for link in wiring.links for norm in _norms_of(link)):
            vectors = vectors_of(norm, read)
            if vectors is not None:
                self.norms[norm] = vectors
        self.chains = [Chain(link=link) for link in wiring.links]
        tests = sum(5 * len(link.feeds) + 4 for link in wiring.links)
        self.level = math.log(CHANCE / max(1, tests))
        self._shapes = shapes
        for chain in self.chains:
            self._begin(chain)

    @property
    def kernels(self) -> tuple[str, ...]:
        """What `look` wants to be given."""
        return tuple(dict.fromkeys(c.link.kernel for c in self.chains if c.link.kernel and not c.why_not))

    def look(self, name: str, kernel: NDArray[np.generic]) -> None:
        """One kernel: in its own chains, and as a rival in those of kernels of its shape."""
        made: dict[tuple[bool, int], tuple[Sums, ...] | None] = {}
        for number, chain in enumerate(self.chains):
            link = chain.link
            if not link.kernel or chain.why_not:
                continue
            own = link.kernel == name
            if not own and self._shapes.get(link.kernel) != kernel.shape:
                continue
            way = (link.transposed, link.groups)
            if way not in made:
                made[way] = _finite(sums_of(kernel, transposed=link.transposed, groups=link.groups))
            sums = made[way]
            if sums is None:
                chain.why_not = chain.why_not or ("its kernel is not finite" if own else "")
            elif own:
                self._examine(chain, sums, number)
            else:
                self._stand_in(chain, sums, name)

    def _begin(self, chain: Chain) -> None:
        link = chain.link
        own = self.norms.get(link.norm)
        if own is None:
            chain.why_not = "its norm has no finite numbers"
        elif own.untrained:
            chain.why_not = NEVER_TRAINED
        elif not np.ptp(own.mean):
            chain.why_not = "its norm's means are all the same"
        given = self._given(link, 0)
        chain.full = given is not None
        chain.exact = chain.full and all(feed.exact for feed in link.feeds)
        if not link.kernel and not chain.why_not:
            self._examine(chain, (), len(link.norm.mean))

    def _given(self, link: Link, activation: int) -> Given | None:
        return given_by(link, self.norms, activation)

    def _goal(self, link: Link, channels: int) -> tuple[Floats, Floats] | None:
        own = self.norms[link.norm]
        if link.offset + channels > len(own.mean):
            return None
        part = slice(link.offset, link.offset + channels)
        return own.mean[part], own.var[part]

    def _readings(self, link: Link, sums: tuple[Sums, ...], inner: int) -> list[_Reading]:
        """What may come in and how it goes through: by each side of the picture (the likeliest is told without any
        order of the input), by each activation that is thought of; and behind a kernel also the same of every channel,
        as behind a ReLU.
        """
        made: list[_Reading] = []
        for activation in range(max(len(feed.activations) for feed in link.feeds)):
            given = self._given(link, activation)
            if given is not None and len(given.mean) == inner:
                made += [_Reading(sums=one, given=given, activation=activation) for one in sums or (None,)]
        same = Given(mean=np.ones(inner), var=np.ones(inner))
        return made + [_Reading(sums=one, given=same, activation=None) for one in sums]

    def _examine(self, chain: Chain, sums: tuple[Sums, ...], seed: int) -> None:
        link = chain.link
        channels, inner = _sizes(link, sums)
        goal = self._goal(link, channels)
        if goal is None or inner == 0 or channels % link.groups:
            chain.why_not = "its sizes do not fit the norm"
            return
        bias = self._bias(link, channels)
        readings = self._readings(link, sums, inner)
        if not readings:
            chain.why_not = link.missing or "what comes in is not known"
            return
        chain.tried = True
        chain.full = chain.full and readings[0].activation is not None
        means = np.concatenate([r.through(r.given.mean[:, None], link.groups) for r in readings], axis=1)
        means += bias[:, None]
        spreads = np.concatenate([r.spread(r.given.var[:, None], link.groups) for r in readings], axis=1)
        self._agree(chain.mean, means, link, channels, "mean")
        self._agree(chain.var, spreads, link, channels, "var")
        chain.kernel.z, chain.kernel.log_chance = chain.mean.z, chain.mean.log_chance
        chain.kernel.channels = channels
        if sums and link.groups == 1 and channels == inner:
            turned = tuple(Sums(plain=one.plain.T, square=one.square.T) for one in sums)
            self._stand_in(chain, turned, f"{link.kernel} transposed")
        if chain.full:
            agreed = ranked(means).T @ ranked(goal[0])[:, 0]
            self._enter(chain, goal, _likeliest(readings, agreed), bias, seed)

    def _bias(self, link: Link, channels: int) -> Floats:
        held = self._read(link.bias) if link.bias else None
        return held if held is not None and held.shape == (channels,) else np.zeros(channels)

    def _agree(self, found: Agreement, made: Floats, link: Link, channels: int, leaf: str) -> None:
        """Fill in how columns that are thought of agree with a norm's vector, and with those of other norms."""
        columns = ranked(made)
        own = self.norms[link.norm]
        part = slice(link.offset, link.offset + channels)
        found.channels = channels
        more = math.log(made.shape[1])

        def best(vector: Floats) -> tuple[float, float]:
            agreement = float((ranked(vector)[:, 0] @ columns).max())
            chance = min(0.0, log_chance(agreement, channels) + more)
            return float(fisher(np.array(agreement), channels)), chance

        found.z, found.log_chance = best(getattr(own, leaf)[part])
        if len(own.mean) != channels:
            return
        others = {
            name: vec for name, vec in ((n, getattr(v, leaf)) for n, v in self.norms.items()) if name != link.norm
        }
        for norm, vector in others.items():
            if len(vector) == channels:
                found.take_rival(*best(vector), getattr(norm, leaf))
        for other in ("weight", "bias", "mean", "var"):
            if other != leaf and getattr(link.norm, other):
                found.take_rival(*best(getattr(own, other)), getattr(link.norm, other))

    def _stand_in(self, chain: Chain, sums: tuple[Sums, ...], name: str) -> None:
        """Another kernel of its shape in a chain."""
        link = chain.link
        channels, inner = _sizes(link, sums)
        goal = self._goal(link, channels)
        if goal is None:
            return
        bias = self._bias(link, channels)
        readings = self._readings(link, sums, inner)
        means = np.concatenate([r.through(r.given.mean[:, None], link.groups) for r in readings], axis=1)
        agreement = float((ranked(goal[0])[:, 0] @ ranked(means + bias[:, None])).max())
        chance = min(0.0, log_chance(agreement, channels) + math.log(len(readings)))
        chain.kernel.take_rival(float(fisher(np.array(agreement), channels)), chance, name)

    def _enter(
        self,
        chain: Chain,
        goal: tuple[Floats, Floats],
        reading: _Reading,
        bias: Floats,
        seed: int,
    ) -> None:
        """The input's side: the order of the channels, and each vector of the norms before."""
        link, given, mean = chain.link, reading.given, goal[0]
        size = reading.column_size(link.groups)

        def remembered(columns: Floats) -> Floats:
            return reading.through(columns, link.groups) + bias[:, None]

        chain.order = try_slot(given.mean, (), remembered, mean, (given.mean - given.mean.mean()) * size, seed=seed)
        if link.bias and np.ptp(bias):
            plain = reading.through(given.mean[:, None], link.groups)
            chain.bias = try_slot(bias, (), lambda columns: plain + columns, mean, bias - bias.mean(), seed=seed)
        start = 0
        for place, feed in enumerate(link.feeds):
            part = slice(start, start + feed.width)
            start += feed.width
            if feed.norm is None or feed.width < FEWEST:
                continue
            # Names alone cannot be told from one another where a norm feeds twice.
            self._enter_feed(chain, reading, feed, part, goal, bias, size, seed + 31 * place)

    def _enter_feed(
        self,
        chain: Chain,
        reading: _Reading,
        feed: Feed,
        part: slice,
        goal: tuple[Floats, Floats],
        bias: Floats,
        size: Floats,
        seed: int,
    ) -> None:
        link, norm, given, activation = chain.link, feed.norm, reading.given, reading.activation
        assert norm is not None and activation is not None
        own = self.norms[norm]
        width = len(own.weight)
        others = [(n, v) for n, v in self.norms.items() if n != norm and len(v.weight) == width]

        def within(vector: Floats, columns: Floats) -> Floats:
            every = np.repeat(vector[:, None], columns.shape[1], axis=1)
            every[part] = columns
            return every

        def means(columns: Floats) -> Floats:
            return reading.through(within(given.mean, columns), link.groups) + bias[:, None]

        here = size[part]
        swapped = moments_of(feed, own.bias, own.weight, activation)[0]
        whole = [moments_of(feed, v.weight, v.bias, activation)[0] for _, v in others]
        level = given.mean[part].mean()
        entry = try_slot(
            given.mean[part], [*whole, swapped], means, goal[0], (given.mean[part] - level) * here, seed=seed
        )
        chain.entry[norm] = (entry, (*(n.weight for n, _ in others), f"{norm.bias} and {norm.weight} exchanged"))
        for leaf, kept, found in (("weight", own.bias, chain.weights), ("bias", own.weight, chain.biases)):
            name = getattr(norm, leaf)
            if not name:
                continue
            vector = getattr(own, leaf)
            leaves = [other for other in ("weight", "bias", "mean", "var") if other != leaf and getattr(norm, other)]
            rivals = [*(getattr(v, leaf) for _, v in others), *(getattr(own, other) for other in leaves)]
            names = (*(getattr(n, leaf) for n, _ in others), *(getattr(norm, other) for other in leaves))
            rivals, names = _kept(rivals, names)
            beside = kept[:, None]

            def predict(columns: Floats, leaf: str = leaf, beside: Floats = beside) -> Floats:
                weight, shift = (columns, beside) if leaf == "weight" else (beside, columns)
                return moments_of(feed, weight, shift, activation)[0]

            flat = np.full((width, 1), vector.mean())
            share = (predict(vector[:, None]) - predict(flat))[:, 0] * here
            tried = try_slot(vector, rivals, _both(means, predict), goal[0], share, seed=seed + 1)
            found[norm] = (tried, names)


def _both(outer: Callable[[Floats], Floats], inner: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    return lambda columns: outer(inner(columns))


def _kept(rivals: list[Floats], names: tuple[str, ...]) -> tuple[list[Floats], tuple[str, ...]]:
    pairs = [(r, n) for r, n in zip(rivals, names, strict=True) if n]
    return [r for r, _ in pairs], tuple(n for _, n in pairs)


def _norms_of(link: Link) -> Iterator[Norm]:
    yield link.norm
    yield from (feed.norm for feed in link.feeds if feed.norm is not None)


def _finite(sums: tuple[Sums, ...]) -> tuple[Sums, ...] | None:
    return sums if all(np.isfinite(one.plain).all() and np.isfinite(one.square).all() for one in sums) else None


def _sizes(link: Link, sums: tuple[Sums, ...]) -> tuple[int, int]:
    """Channels out and in."""
    if not sums:
        width = sum(feed.width for feed in link.feeds)
        return width, width
    outer, inner = sums[0].plain.shape
    return outer, inner * link.groups


def _likeliest(readings: Sequence[_Reading], agreed: Floats) -> _Reading:
    """The side by what agrees best with the same of every channel; then the activation by what agrees best."""
    alike = {id(r.sums): float(a) for r, a in zip(readings, agreed, strict=True) if r.activation is None}
    best = max(
        (i for i, r in enumerate(readings) if r.activation is not None),
        key=lambda i: (alike.get(id(readings[i].sums), 0.0), float(agreed[i])),
    )
    return readings[best]
