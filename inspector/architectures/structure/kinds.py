"""What kind of network it is, where names and shapes show it together; each kind with what shows it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from inspector.architectures.structure.blocks import numbers_text
from inspector.architectures.structure.flow import goes_on_into
from inspector.architectures.structure.heads import taken_widths
from inspector.architectures.structure.parts import kinds_text
from inspector.architectures.structure.paths import above
from inspector.architectures.structure.projections import by_module
from inspector.architectures.structure.types import (
    CONVOLUTIONS,
    MAYBE_TABLES,
    RECURRENT,
    Claim,
    Layer,
    LayerKind,
    Stack,
    Topic,
)

_WEIGHTED = CONVOLUTIONS | RECURRENT | {LayerKind.LINEAR, LayerKind.MATRIX, LayerKind.ATTENTION}
_ACTOR = re.compile(r"(?:^|[._])(?:actor|policy|pi|action|advantage|adv)(?:$|[._\d])|actor|policy", re.I)
_CRITIC = re.compile(r"(?:^|[._])(?:critic|value|vf|v|baseline|q|qf|q_?net\w*)(?:$|[._\d])|critic|value", re.I)
_MEAN = re.compile(r"(?:^|[._])(?:\w+_)?(?:mu|mean|loc)(?:$|[._])", re.I)
_SPREAD = re.compile(r"(?:^|[._])(?:\w+_)?(?:log_?)?(?:var|std|sigma|scale|sd)(?:iance)?(?:$|[._])", re.I)
_GRAPH_WORDS = re.compile(
    r"(?:e?gnn|gcn|(?<!photo)graph|mpnn)|(?:(?<=^)|(?<=[._]))(?:nodes?|edges?|atoms?|bonds?|interactions?|distance\w*|rbf|radial\w*)(?=$|[._])",
    re.I,
)
_ATTENTION = re.compile(r"(?:^|[._])(?:self_?|cross_?)?att(?:n|ention)?(?:$|[._\d])", re.I)
_REAL = re.compile(r"(?<![a-z])(real|re|r)(?![a-z])", re.I)
_IMAGINARY = {"real": "imag", "re": "im", "r": "i"}
_THINGS = ("node", "edge", "atom", "bond", "interaction", "distance", "rbf", "radial")
_LEAST_TABLES, _LEAST_POINTWISE, _LEAST_PAIRS, _LEAST_PROJECTIONS = 8, 6, 3, 3


@dataclass(frozen=True, kw_only=True)
class _Network:
    layers: Sequence[Layer]
    weighted: Sequence[Layer]
    stacks: Sequence[Stack]
    ordered: bool

    def of(self, *kinds: LayerKind) -> list[Layer]:
        return [layer for layer in self.layers if layer.kind in kinds]

    @cached_property
    def graph_words(self) -> Counter[str]:
        """Words of graphs in the layers' paths, and how often."""
        return Counter(m[0].lower().rstrip("s") for layer in self.layers for m in _GRAPH_WORDS.finditer(layer.path))


def kinds(layers: Sequence[Layer], stacks: Sequence[Stack], *, ordered: bool) -> Iterator[Claim]:
    """A claim of each rule that holds."""
    network = _Network(
        layers=layers,
        weighted=[layer for layer in layers if layer.kind in _WEIGHTED and layer.inputs and layer.outputs],
        stacks=stacks,
        ordered=ordered,
    )
    if network.weighted:
        yield from (claim for rule in _RULES if (claim := rule(network)) is not None)


def _kind(says: str, evidence: str, path: str = "") -> Claim:
    return Claim(topic=Topic.KIND, says=says, evidence=evidence, path=path)


def _actor_critic(network: _Network) -> Claim | None:
    """One value beside several actions, both called so."""
    taken = taken_widths(network.layers, ordered=network.ordered)
    ends = [one for one in network.weighted if one.kind is LayerKind.LINEAR and not taken[one.outputs or 0]]
    critic = next((one for one in ends if one.outputs == 1 and _CRITIC.search(one.path)), None)
    actor = next((one for one in ends if one is not critic and _ACTOR.search(one.path)), None)
    if critic is None or actor is None or _CRITIC.search(actor.path.rpartition(".")[2]):
        return None
    shared = ", both on the same width" if actor.inputs == critic.inputs else ""
    return _kind(
        f"An actor and a critic by their names and widths: {actor.name} puts out {actor.outputs:,}, {critic.name} one "
        f"value{shared} (reinforcement learning).",
        f"{actor.evidence}; {critic.evidence}",
        critic.path,
    )


def _two_heads_of_games(network: _Network) -> Claim | None:
    """A policy's and a value's head behind convolutions."""
    if network.weighted[0].kind not in CONVOLUTIONS:
        return None
    tops = {part for one in network.weighted for part in one.path.split(".")[:-1]}
    policy = next((top for top in tops if re.fullmatch(r"policy_?head\w*", top, re.I)), None)
    value = next((top for top in tops if re.fullmatch(r"value_?head\w*", top, re.I)), None)
    if policy is None or value is None:
        return None
    trunk = max((one for one in network.stacks), key=lambda one: one.count, default=None)
    body = f" behind {trunk.path.rstrip('.')}" if trunk is not None else ""
    return _kind(
        f"A policy's and a value's head ({policy}, {value}){body}, by their names: as of a network that plays a game.",
        "modules of these names with layers that end in few values",
    )


def _recommender(network: _Network) -> Claim | None:
    """Many tables of one width and nothing else but linear layers that end in a few values."""
    tables = Counter(layer.outputs for layer in network.of(LayerKind.EMBEDDING))
    if not tables or any(one.kind is not LayerKind.LINEAR for one in network.weighted):
        return None
    width, number = tables.most_common(1)[0]
    last = network.weighted[-1]
    if number < _LEAST_TABLES or (last.outputs or 0) > 2 or _is_graph(network):
        return None
    return _kind(
        f"Categories looked up and a score: {number:,} tables of vectors of {width:,}, then linear layers that end in "
        f"{last.outputs:,} {'value' if last.outputs == 1 else 'values'} ({last.name}), as of a recommender or of a "
        "predictor of clicks; no order of tokens is in it.",
        f"{number:,} tables of one width; {last.evidence}",
        last.path,
    )


def _users_and_items(network: _Network) -> Claim | None:
    """Tables called users' and items', then linear layers that end in a few values."""
    tables = network.of(LayerKind.EMBEDDING)
    last = network.weighted[-1]
    rest = any(one.kind is not LayerKind.LINEAR for one in network.weighted)
    both = [[one for one in tables if word in one.path.lower()] for word in ("user", "item")]
    if not all(both) or rest or (last.outputs or 0) > 2:
        return None
    users, items = (group[0].inputs for group in both)
    return _kind(
        f"A recommender by its names: tables of {users:,} users and {items:,} items ({len(tables):,} tables), and "
        f"{last.outputs:,} {'value' if last.outputs == 1 else 'values'} for a pair of them.",
        f"{both[0][0].evidence}; {both[1][0].evidence}; {last.evidence}",
        last.path,
    )


def _mean_and_spread(network: _Network) -> Claim | None:
    """Two layers of equal widths side by side, called a mean and a spread."""
    linear = [one for one in network.weighted if one.kind in CONVOLUTIONS | {LayerKind.LINEAR}]
    for one, other in pairwise(linear):
        same = (one.kind, one.inputs, one.outputs) == (other.kind, other.inputs, other.outputs)
        if not same or not _MEAN.search(one.path) or not _SPREAD.search(other.path):
            continue
        taker = next((x for x in linear[linear.index(other) + 1 :] if x.inputs == one.outputs), None)
        if taker is not None:
            what = f"{taker.name} takes as many: numbers drawn from them, as in a variational autoencoder (VAE)"
        else:
            what = "nothing takes as many: a distribution comes out, as of a Gaussian policy or of a density"
        return _kind(
            f"{one.name} and {other.name} are by their names a mean and a spread of {one.outputs:,} numbers; {what}.",
            f"{one.evidence}; {other.evidence}",
            one.path,
        )
    return None


def _gates(network: _Network) -> Claim | None:
    """Two layers of a single place side by side to one width, and one from it to a single value: how much of each place
    goes on (Oktay 2018, eq. 1)."""
    found = []
    for stack in network.stacks:
        wide = [one for one in stack.layers if one.kind in CONVOLUTIONS]
        if len(wide) == 3 and all(set(one.kernel) == {1} for one in wide):
            first, second, last = wide
            if first.outputs == second.outputs == last.inputs and last.outputs == 1 and (last.inputs or 0) > 1:
                found.append((stack, wide))
    if not found:
        return None
    stack, wide = found[0]
    return _kind(
        f"{numbers_text(stack)} are attention gates by their shapes: two 1x1 convolutions to one width and one from it "
        f"to a single value at every place ({wide[0].inputs:,}-{wide[0].outputs:,}, {wide[1].inputs:,}-"
        f"{wide[1].outputs:,}, {wide[2].inputs:,}-1 the first).",
        "; ".join(one.evidence for one in wide),
        stack.path,
    )


def _is_graph(network: _Network) -> bool:
    """Called one, or with names of two of its things: edges alone may be a picture's."""
    words = network.graph_words
    return len(words) > 1 or any(not word.startswith(_THINGS) for word in words)


def _graph(network: _Network) -> Claim | None:
    """Blocks of linear layers without kernels whose names speak of graphs."""
    wide = any(max(layer.kernel, default=1) > 1 for layer in network.weighted)
    if wide or not _is_graph(network):
        return None
    paths = [layer.path for layer in network.layers]
    words = network.graph_words
    blocks = [stack for stack in network.stacks if stack.count > 1]
    largest = max(blocks, key=lambda stack: stack.count, default=None)
    steps = f": {numbers_text(largest)} are {largest.count:,} steps of it" if largest is not None else ""
    eps = [one for one in network.of(LayerKind.TENSOR) if one.path.rpartition(".")[2] == "eps"]
    isomorphism = f", each with a number eps beside its layers (GIN, {len(eps):,} times)" if len(eps) > 1 else ""
    called = ", ".join(f'"{word}"' for word in list(words)[:4])
    return _kind(
        f"A network over a graph by its names ({called}), with no kernel that looks at neighbours in space{steps}"
        f"{isomorphism}. Who is whose neighbour is in no weight.",
        f"names of {sum(bool(_GRAPH_WORDS.search(path)) for path in paths):,} of {len(paths):,} layers; no kernel "
        "larger than 1",
    )


def is_over_points(weighted: Sequence[Layer]) -> bool:
    """Whether nothing in it looks at neighbours, and most of it are convolutions of a single place."""
    convolutions = [one for one in weighted if one.kind in CONVOLUTIONS]
    rest = any(one.kind not in CONVOLUTIONS | {LayerKind.LINEAR} for one in weighted)
    pointwise = all(set(one.kernel) == {1} for one in convolutions)
    many = len(convolutions) >= _LEAST_POINTWISE and 2 * len(convolutions) >= len(weighted)
    return many and pointwise and not rest


def _points(network: _Network) -> Claim | None:
    """Convolutions of a single place alone: the same layers for every point."""
    if not is_over_points(network.weighted):
        return None
    convolutions = [one for one in network.weighted if one.kind in CONVOLUTIONS]
    first = network.weighted[0]
    space = first.inputs is not None and first.inputs >= 3 and first.inputs <= 16
    points = "a network over points, as of a point cloud or of keypoints" if space else "a network over single places"
    return _kind(
        f"All {len(convolutions):,} convolutions have kernels of a single place: shared layers (MLPs) for every point; "
        f"{points}, {first.name} takes {first.inputs:,} values of each.",
        "no kernel larger than 1",
        first.path,
    )


def _language(network: _Network) -> Claim | None:
    """As many come out as can be looked up."""
    inside = {path for stack in network.stacks for number in stack.numbers for path in (f"{stack.path}{number}",)}
    tables = [
        one
        for one in network.layers
        if (one.kind is LayerKind.EMBEDDING or one.more in MAYBE_TABLES) and not inside.intersection(above(one.path))
    ]
    cells = [one for one in network.weighted if one.kind in RECURRENT]
    ends = [one for one in network.weighted if one.kind in {LayerKind.LINEAR, LayerKind.MATRIX}]
    for table in tables[:8]:
        rows = table.inputs if table.kind is LayerKind.EMBEDDING else table.outputs
        width = table.outputs if table.kind is LayerKind.EMBEDDING else table.inputs
        end = next((one for one in reversed(ends) if one.outputs == rows and one is not table), None)
        if end is None or not rows or rows < 16 or not width:
            continue
        if cells and width == cells[0].inputs:
            widths = ", ".join(f"{one.inputs:,}-{one.outputs:,}" for one in cells[:6])
            kind = cells[0].kind.value
            return _kind(
                f"A recurrent language model by its shapes: {table.name} has vectors for {rows:,} tokens, "
                f"{len(cells):,} {kind}{'s' if len(cells) > 1 else ''} {widths} follow, and {end.name} gives each of "
                f"the {rows:,} a score.",
                f"{table.evidence}; {cells[0].evidence}; {end.evidence}",
                table.path,
            )
        if not cells and by_module(network.layers) and width == end.inputs:
            return _kind(
                f"Scores for as many as can be looked up: {table.name} has vectors for {rows:,} tokens, and {end.name} "
                f"gives each of the {rows:,} a score, with attention between: as of a language model.",
                f"{table.evidence}; {end.evidence}",
                table.path,
            )
    return None


def _convolutions_then_cells(network: _Network) -> Claim | None:
    cells = [n for n, one in enumerate(network.weighted) if one.kind in RECURRENT]
    convolutions = [n for n, one in enumerate(network.weighted) if one.kind in CONVOLUTIONS]
    if not network.ordered or not cells or not convolutions or convolutions[0] > cells[0]:
        return None
    last = network.weighted[-1]
    named = network.weighted[cells[0]].kind.value
    what = f"{len(cells):,} {named}{'s' if len(cells) > 1 else ''}"
    count = f"{len(convolutions):,} convolution{'s' if len(convolutions) > 1 else ''}"
    between = [n for n in convolutions if n > cells[0]]
    attended = any(one.kind is LayerKind.ATTENTION for one in network.weighted)
    sort = "convolutional, attention-based and recurrent" if attended else "convolutional and recurrent"
    if goes_on_into(network.layers, last) is not None:
        return _kind(
            f"A {sort} network: {count} and {what}; which of them come first the widths do not "
            f"say, and {last.name}, the last in the file, puts out the {last.outputs:,} that a part before it takes.",
            "kinds of layers, and their widths",
        )
    if between:
        return _kind(f"A {sort} network: {count} around {what}.", "kinds of layers in their order")
    return _kind(
        f"A {sort} network: {count}, then {what}; the last layer, {last.name}, puts out {last.outputs:,}.",
        "kinds of layers in the file's order",
    )


def _listed_projections(network: _Network) -> Claim | None:
    """Three projections of one width in a list, and one that merges, in a module called attention."""
    modules: dict[str, list[Layer]] = {}
    for layer in network.weighted:
        parent, _, last = layer.path.rpartition(".")
        if last.isdecimal() and layer.inputs == layer.outputs and max(layer.kernel, default=1) == 1:
            modules.setdefault(parent, []).append(layer)
    found = [
        (parent, group)
        for parent, group in modules.items()
        if len(group) >= _LEAST_PROJECTIONS and _ATTENTION.search(parent) and len({x.inputs for x in group}) == 1
    ]
    if not found:
        return None
    parent, group = found[0]
    four = len(group) > _LEAST_PROJECTIONS
    return Claim(
        topic=Topic.PROJECTIONS,
        says=f"{len(found):,} modules like {parent} have {len(group)} projections {group[0].inputs:,}-"
        f"{group[0].outputs:,} in a list, in a module called attention: queries, keys and values"
        f"{' and what merges the heads' if four else ''}, in which order no shape tells.",
        evidence="; ".join(layer.evidence for layer in group[:4]),
        value=len(found),
        path=parent,
    )


def _complex(network: _Network) -> Claim | None:
    """Layers of equal shapes called real and imaginary beside each other."""
    by_path = {layer.path: layer for layer in network.layers}
    pairs: list[tuple[Layer, Layer]] = []
    for layer in network.weighted:
        parent, _, last = layer.path.rpartition(".")
        match = _REAL.search(last.replace("_", " ")) or _REAL.search(last)
        if match is None:
            continue
        other = _IMAGINARY[match[1].lower()]
        name = f"{last[: match.start()]}{other}{last[match.end() :]}"
        twin = by_path.get(f"{parent}.{name}".lstrip("."))
        same = twin is not None and (twin.kind, twin.inputs, twin.outputs) == (layer.kind, layer.inputs, layer.outputs)
        if twin is not None and same:
            pairs.append((layer, twin))
    # Gates are called r and i as well.
    if len(pairs) < _LEAST_PAIRS or not any("re" in one.path.rpartition(".")[2].lower() for one, _ in pairs):
        return None
    told = kinds_text([one for one, _ in pairs], 5)
    real, imaginary = pairs[0]
    return _kind(
        f"Complex numbers by names and shapes: {len(pairs):,} pairs of equal layers called "
        f"{real.path.rpartition('.')[2]} and {imaginary.path.rpartition('.')[2]} or alike, a real and an imaginary "
        f"part each (so {told} over complex numbers).",
        f"{real.path} {real.evidence}; {imaginary.path} {imaginary.evidence}",
        real.path,
    )


def _perceptron(network: _Network) -> Claim | None:
    """Linear layers alone, most of one width."""
    if len(network.weighted) < 3 or any(one.kind is not LayerKind.LINEAR for one in network.weighted):
        return None
    if network.of(LayerKind.EMBEDDING, LayerKind.TENSOR) or _is_graph(network) or by_module(network.layers):
        return None
    width, number = Counter(one.outputs for one in network.weighted).most_common(1)[0]
    of_one = f", {number:,} of them {width:,} wide" if number > 2 else ""
    return _kind(
        f"A multi-layer perceptron (MLP): {len(network.weighted):,} linear layers{of_one}, and nothing that looks at "
        "neighbours.",
        "only linear layers",
    )


Rule = Callable[[_Network], Claim | None]
_RULES: tuple[Rule, ...] = (
    *(_actor_critic, _two_heads_of_games, _recommender, _users_and_items, _graph, _points, _language),
    *(_mean_and_spread, _gates),
    *(_convolutions_then_cells, _complex, _perceptron, _listed_projections),
)
