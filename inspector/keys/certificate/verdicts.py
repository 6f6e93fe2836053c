"""From what was found of the chains to what is said of each tensor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.keys.certificate.examine import CHANCE, Chain, Examiner
from inspector.keys.certificate.slots import BESIDE, Tried
from inspector.keys.certificate.types import Certificate, Standing, Testimony

# A chain that does not hold speaks against the places where so many others do, and so large a share of all.
_HELD, _SHARE = 5, 0.8
# Without a graph the order of definition has to have shown itself to be the order of running.
_SHOWN = 3
_NO_NORM = "no batch norm comes behind it"
_VARIANCE = "variances follow from how channels go together, which nobody wrote down"
_FEW_HOLD = "fewer than half of the chains hold, so that none vouches for a place"
_OWN_MEAN = "the means of its own norm are not proved"
_PAIR = "with its norm's other vector in its place it would fit as well"
_UNREAD = "no kernel with a batch norm behind it reads what it makes"
_FAINT = "what it changes is too little to be told from another order"


class _Said:
    """Collects what speaks for, against, and why nothing does."""

    def __init__(self) -> None:
        self.proved: dict[str, str] = {}
        self.against: dict[str, str] = {}
        self.open: dict[str, str] = {}
        self.doubted: dict[str, str] = {}

    def take(self, name: str, tried: Tried | None, why: str) -> None:
        """What one slot says of a tensor."""
        if not name or tried is None:
            return
        if tried.proves:
            self.proved.setdefault(name, why)
        else:
            self.open.setdefault(name, _FAINT)


def certify(examiner: Examiner, names: Iterable[str]) -> Certificate:
    """What all chains together say of every tensor. names: of the target, in its order."""
    said, level = _Said(), examiner.level
    chains = examiner.chains
    full = [c for c in chains if c.tried and c.full and c.link.kernel]
    held = [c for c in full if c.mean.log_chance < level]
    certain = all(c.link.certain for c in chains)
    testable = [c for c in full if c.link.certain]
    firm = [c for c in testable if c.mean.log_chance < level]
    usual = min((c.mean.z for c in firm), default=0.0)
    sound = len(firm) >= _HELD and len(firm) >= _SHARE * len(testable)
    by_order = [c for c in chains if c.tried and c.link.kernel and not c.link.certain]
    kept = [c for c in by_order if c.mean.log_chance < level]
    shown = len(kept) >= _SHOWN and 2 * len(kept) > len(by_order)
    broken: list[str] = []
    for chain in chains:
        _say_open(said, chain)
        if not chain.tried:
            continue
        if chain.mean.log_chance < level:
            _say_held(said, chain, level)
        if chain.link.certain or shown:
            clear = _say_against(said, chain, level, broken)
            random = chain.mean.log_chance > -4.6 and chain.mean.z < usual / 2
            if not clear and sound and chain in testable and random:
                broken.append(_broken(chain, firm, testable))
    if not shown and by_order:
        broken += _scattered(by_order, level)
    tried = [c for c in chains if c.tried and c.link.kernel]
    if 2 * sum(c.mean.log_chance < level for c in tried) < len(tried):
        # In a shuffled file a kernel and its norm may meet again by accident, at a place that is neither's.
        said.open.update(dict.fromkeys(said.proved, _FEW_HOLD))
        said.proved.clear()
    for norm in {feed.norm for c in chains for feed in c.link.feeds if feed.norm is not None}:
        if norm.mean not in said.proved:
            # Means and biases go together in some networks: a norm whose mean is not its own vouches for nothing.
            for name in (norm.weight, norm.bias):
                if said.proved.pop(name, None) is not None:
                    said.open[name] = _OWN_MEAN
    for name, why in said.doubted.items():
        said.proved.pop(name, None)
        said.open[name] = why
    for name in said.against:
        said.proved.pop(name, None)
    return Certificate(
        tensors=tuple(_testimony(name, said) for name in names),
        chains=len(full),
        held=len(held),
        broken=tuple(dict.fromkeys(broken)),
        certain=certain,
        chance=CHANCE,
    )


def _say_held(said: _Said, chain: Chain, level: float) -> None:
    """A kernel and the norm behind it go together; whether in the order of the input too is asked of the slots."""
    link, norm = chain.link, chain.link.norm
    what = f"predicted from {link.kernel}" if link.kernel else "predicted from the norm before"
    if chain.mean.proves(level):
        said.proved.setdefault(norm.mean, f"its channels are {what}")
    said.open.setdefault(norm.var, _VARIANCE)
    if link.kernel:
        rows = chain.mean.proves(level) and chain.kernel.z - chain.kernel.rival_z >= 3 * chain.kernel.deviation
        if rows and chain.order is not None and chain.order.proves:
            said.proved.setdefault(link.kernel, f"{norm.mean} remembers what it makes of its input, in this order")
        elif rows:
            why = link.missing or "what the order of its input changes is too little"
            said.open[link.kernel] = f"its rows are those that {norm.mean} remembers; its other axis is open: {why}"
    if not link.certain:
        # What feeds a kernel is only guessed: its rows and the norm behind are sure, what stands before is not.
        return
    said.take(link.bias, chain.bias, f"a part of what {norm.mean} remembers")
    for slots, leaf in ((chain.weights, "weight"), (chain.biases, "bias")):
        for before, (tried, _) in slots.items():
            whole = chain.entry[before][0]
            if tried.proves and whole.own - whole.best < BESIDE:
                # Another pair of vectors does as well: an exchange of both would not show in one of them.
                said.open.setdefault(getattr(before, leaf), _PAIR)
                continue
            said.take(getattr(before, leaf), tried, f"{norm.mean} is what follows from it")


def _say_against(said: _Said, chain: Chain, level: float, broken: list[str]) -> bool:
    """Where another tensor of the file fits by far better. Returns whether anything was found."""
    link, norm = chain.link, chain.link.norm
    found = False
    kernel, mean, var = chain.kernel, chain.mean, chain.var
    by_kernel = bool(link.kernel) and kernel.contradicts(level)
    if mean.contradicts(level):
        # That the kernel agrees with the variances vouches for it; else it may as well be the kernel that is wrong.
        if var.log_chance < level and not var.contradicts(level):
            said.against[norm.mean] = f"{mean.rival} fits there, this does not"
        else:
            also = f", and {norm.mean} what {kernel.rival} makes" if by_kernel else ""
            what = link.kernel or "the norm before it"
            broken.append(f"{mean.rival} remembers what {what} makes{also}: they do not stand in their places.")
        found = True
    elif by_kernel:
        said.against[link.kernel] = f"{kernel.rival} fits there, this does not"
        found = True
    if chain.exact and link.certain and mean.log_chance < level:
        _doubt(said, chain)
    return found


def _doubt(said: _Said, chain: Chain) -> None:
    """Vectors of the norm before in whose place others fit better: not proved, and not contradicted either.

    In some trained networks a norm's own running mean predicts what follows better than its bias does.
    """
    for slots, leaf in ((chain.weights, "weight"), (chain.biases, "bias")):
        for before, (tried, others) in slots.items():
            if tried.contradicts and tried.other is not None:
                said.doubted[getattr(before, leaf)] = f"{others[tried.other]} would fit there as well"
    for before, (tried, others) in chain.entry.items():
        if tried.contradicts and tried.other is not None:
            why = f"in its norm's place {others[tried.other]} would fit as well"
            said.doubted |= {name: why for name in (before.weight, before.bias) if name}


def _broken(chain: Chain, firm: Sequence[Chain], testable: Sequence[Chain]) -> str:
    link = chain.link
    before = " and ".join(feed.norm.weight or feed.norm.mean for feed in link.feeds if feed.norm is not None)
    return (
        f"{before}, {link.kernel} and {link.norm.mean} do not belong together as they stand, "
        f"as in {len(firm):,} of {len(testable):,} chains of this network they do."
    )


def _scattered(chains: Sequence[Chain], level: float) -> list[str]:
    """Kernels whose norm stands somewhere else, each somewhere else: no order of definition does that."""
    elsewhere = [c for c in chains if c.mean.contradicts(level)]
    held = sum(1 for c in chains if c.mean.log_chance < level)
    if len(elsewhere) < _SHOWN or len(elsewhere) <= held:
        return []
    place: Mapping[str, int] = {c.link.norm.mean: i for i, c in enumerate(chains)}
    steps = Counter(place[c.mean.rival] - i for i, c in enumerate(chains) if c in elsewhere and c.mean.rival in place)
    if not steps or 2 * steps.most_common(1)[0][1] >= len(elsewhere):
        return []
    return [
        f"What {c.link.kernel} makes is remembered by {c.mean.rival}, not by {c.link.norm.mean}." for c in elsewhere
    ]


def _say_open(said: _Said, chain: Chain) -> None:
    link = chain.link
    why = chain.why_not or link.missing
    if why == chain.why_not and why:
        for name in (link.norm.mean, link.norm.var):
            said.open.setdefault(name, why)
    if chain.tried and not chain.why_not:
        said.open.setdefault(link.norm.mean, f"{link.kernel or 'what comes in'} does not predict it")
        said.open.setdefault(link.norm.var, f"{link.kernel or 'what comes in'} does not predict it")
    if link.kernel:
        said.open.setdefault(link.kernel, why or f"{link.norm.mean} is not what it makes of its input")
        if link.bias:
            said.open.setdefault(link.bias, why or _FAINT)
    for feed in link.feeds:
        if feed.norm is not None and chain.tried:
            for name in (feed.norm.weight, feed.norm.bias):
                if name:
                    said.open.setdefault(
                        name, link.missing or f"{link.kernel or link.norm.mean} does not follow from it"
                    )


def _testimony(name: str, said: _Said) -> Testimony:
    if name in said.against:
        return Testimony(name=name, standing=Standing.CONTRADICTED, reason=said.against[name])
    if name in said.proved:
        return Testimony(name=name, standing=Standing.PROVED, reason=said.proved[name])
    if is_bookkeeping(name):
        return Testimony(name=name, standing=Standing.OPEN, reason="a count of batches, the same everywhere")
    leaf = name.rpartition(".")[2]
    usual = (
        _UNREAD if f"{name.removesuffix(leaf)}running_mean" in said.open or leaf.startswith("running_") else _NO_NORM
    )
    return Testimony(name=name, standing=Standing.OPEN, reason=said.open.get(name, usual))
