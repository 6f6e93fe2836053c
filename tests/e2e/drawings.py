"""Networks to draw, as boxes made here: the page of drawing_app.py shows one of them by its name."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from inspector.graph.types import Box, BoxEdge

_SHAPE = (1, 64, 56, 56)


def leaf(path: str, kind: str, *, shape: tuple[int, ...] | None = _SHAPE) -> Box:
    """A module without children."""
    return Box(path=path, label=path.rpartition(".")[2], kind=kind, module=path, shape=shape)


def node(path: str, label: str) -> Box:
    """An operator."""
    return Box(path=path, label=label, kind=label, shape=_SHAPE)


def chain(count: int) -> tuple[BoxEdge, ...]:
    """Each to the next."""
    return tuple(BoxEdge(source=at, target=at + 1, shape=_SHAPE) for at in range(count - 1))


def group(path: str, kind: str, children: Sequence[Box], *, edges: Iterable[BoxEdge] = (), repeat: int = 1) -> Box:
    """A module with children, in a chain unless edges are given."""
    given = tuple(edges) or chain(len(children))
    parent, _, name = path.rpartition(".")
    first = int(name) if name.isdigit() else 0
    return Box(
        path=path,
        label=name,
        kind=kind,
        module=path,
        shape=_SHAPE,
        repeat=repeat,
        repeated=tuple(f"{parent}.{first + at}" for at in range(repeat)) if repeat > 1 else (),
        children=tuple(children),
        edges=given,
        entries=(0,) if given else (),
        exits=(len(children) - 1,) if given else (),
    )


def whole(label: str, children: Sequence[Box], edges: Iterable[BoxEdge]) -> Box:
    """The network itself."""
    return Box(path="", label=label, kind=label, children=tuple(children), edges=tuple(edges))


def _bottleneck(path: str, *, repeat: int = 1, has_shortcut: bool = False) -> Box:
    names = ("conv1", "bn1", "relu", "conv2", "bn2", "conv3", "bn3")
    kinds = ("Conv2d", "BatchNorm2d", "ReLU", "Conv2d", "BatchNorm2d", "Conv2d", "BatchNorm2d")
    inside = [leaf(f"{path}.{name}", kind) for name, kind in zip(names, kinds, strict=True)]
    edges = list(chain(len(inside)))
    if has_shortcut:
        shortcut = [leaf(f"{path}.downsample.0", "Conv2d"), leaf(f"{path}.downsample.1", "BatchNorm2d")]
        inside.append(group(f"{path}.downsample", "Sequential", shortcut))
    inside.append(node(f"{path}/add", "add"))
    last = len(inside) - 1
    edges.append(BoxEdge(source=6, target=last, shape=_SHAPE))
    if has_shortcut:
        edges.append(BoxEdge(source=7, target=last, shape=_SHAPE))
    block = group(path, "Bottleneck", inside, edges=edges, repeat=repeat)
    # The shortcut's own start, or the sum, takes what comes in as well.
    return Box(
        path=block.path, label=block.label, kind=block.kind, module=block.module, shape=block.shape,
        repeat=block.repeat, repeated=block.repeated, children=block.children, edges=block.edges,
        entries=(0, 7), exits=(last,),
    )  # fmt: skip


def residual() -> Box:
    """As resnet50 is built."""
    layers = [
        group(
            f"layer{at}",
            "Sequential",
            [_bottleneck(f"layer{at}.0", has_shortcut=True), _bottleneck(f"layer{at}.1", repeat=blocks - 1)],
        )
        for at, blocks in enumerate((3, 4, 6, 3), 1)
    ]
    children = [
        node("x", "input"), replace(leaf("conv1", "Conv2d"), weight=(64, 3, 7, 7)),
        leaf("bn1", "BatchNorm2d"), leaf("relu", "ReLU"),
        leaf("maxpool", "MaxPool2d"), *layers, leaf("avgpool", "AdaptiveAvgPool2d"), node("flatten", "flatten"),
        leaf("fc", "Linear", shape=(1, 1000)), node("output", "output"),
    ]  # fmt: skip
    return whole("resnet50", children, chain(len(children)))


def dense(layers: int = 48) -> Box:
    """A block whose layers read the outputs of all before them: densenet201's third has 48."""
    inside = [node("x", "input"), *(leaf(f"block.denselayer{at + 1}", "_DenseLayer") for at in range(layers))]
    edges = [
        BoxEdge(source=source, target=target, shape=(1, 32, 14, 14))
        for target in range(1, layers + 1)
        for source in range(target)
    ]
    block = group("block", "_DenseBlock", inside, edges=edges)
    children = [leaf("stem", "Conv2d"), block, leaf("norm", "BatchNorm2d"), leaf("classifier", "Linear")]
    return whole("dense", children, chain(4))


def large(groups: int = 2000, leaves: int = 5) -> Box:
    """Stages of layers of modules, 2,000 groups and 10,000 leaves, their insides of many kinds."""
    stages, each = 20, groups // 20 - 1
    built = []
    for s in range(stages):
        layers = []
        for at in range(each):
            path = f"stage{s}.{at}"
            names = [f"part{n}_{'abc'[(s + at) % 3] * ((at + n) % 4)}" for n in range(leaves)]
            inside = [leaf(f"{path}.{name}", "Linear") for name in names]
            skip = BoxEdge(source=at % (leaves - 1), target=leaves - 1, shape=_SHAPE)
            layers.append(group(path, "Layer", inside, edges=[*chain(leaves), skip]))
        skips = [BoxEdge(source=at, target=at + 3, shape=_SHAPE) for at in range(0, each - 3, 7)]
        built.append(group(f"stage{s}", "Stage", layers, edges=[*chain(each), *skips]))
    return whole("large", built, chain(stages))


def different(groups: int = 2000, leaves: int = 5) -> Box:
    """As large, but no two insides are alike: every group is laid out for itself."""
    drawn = random.Random(11)
    stages, each = 20, groups // 20 - 1
    built = []
    for s in range(stages):
        layers = []
        for at in range(each):
            path = f"stage{s}.{at}"
            inside = [leaf(f"{path}.{'n' * drawn.randint(1, 24)}{n}", "Linear") for n in range(leaves)]
            pairs = {tuple(sorted(drawn.sample(range(leaves), 2))) for _ in range(drawn.randint(1, 3))}
            pairs |= {(n, n + 1) for n in range(leaves - 1) if drawn.random() < 0.8}
            edges = [BoxEdge(source=a, target=b, shape=_SHAPE) for a, b in sorted(pairs)]
            layers.append(group(path, "Layer", inside, edges=edges))
        skips = [BoxEdge(source=at, target=at + drawn.randint(2, 4), shape=_SHAPE) for at in range(0, each - 4, 7)]
        built.append(group(f"stage{s}", "Stage", layers, edges=[*chain(each), *skips]))
    return whole("different", built, chain(stages))


def unknown() -> Box:
    """Names and shapes alone: no arrows."""
    parts = [
        Box(
            path=f"body.{at}", label=str(at), kind="", module=f"body.{at}",
            children=tuple(leaf(f"body.{at}.{name}", "", shape=None) for name in ("conv", "norm", "se")),
        )
        for at in range(9)
    ]  # fmt: skip
    body = Box(path="body", label="body", kind="", module="body", children=tuple(parts))
    return whole("unknown", [leaf("stem", "", shape=None), body, leaf("head", "", shape=None)], ())


NETWORKS: dict[str, Callable[[], Box]] = {
    "residual": residual,
    "dense": dense,
    "large": large,
    "different": different,
    "unknown": unknown,
}


def costs(box: Box) -> dict[str, dict[str, float]]:
    """Made-up numbers of each module, of two columns."""
    modules: list[str] = []
    waiting = [box]
    while waiting:
        here = waiting.pop()
        if here.module:
            modules.append(here.module)
        waiting.extend(here.children)
    return {
        "parameters": {path: float(10 ** (len(path) % 6)) for path in modules},
        "MACs": {path: float(3 + len(path) % 40) for path in modules},
    }
