"""Which norm feeds which kernel, from the graph of one pass: nothing is taken for granted that it does not show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from inspector.graph.types import Edge, Graph, Node, NodeKind, Size
from inspector.keys.certificate.activations import ACTIVATIONS
from inspector.keys.certificate.types import Feed, Link, Norm, Wiring

_NORMS = ("native_batch_norm", "batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit_no_training")
_KERNELS = ("convolution", "conv1d", "conv2d", "conv3d", "linear", "addmm", "mm")
# They leave the mean of a channel as it is, but for the border of the picture.
_SAME = (
    *("dropout", "native_dropout", "feature_dropout", "contiguous", "clone", "detach", "alias", "_to_copy"),
    *("avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d", "mean"),
    *("upsample_bilinear2d", "upsample_nearest2d", "flatten", "view", "reshape", "squeeze", "_unsafe_view"),
)
# They change it, and as a rule keep the order among the channels.
_ALIKE = ("max_pool1d", "max_pool2d", "max_pool2d_with_indices", "adaptive_max_pool2d", "constant_pad_nd")
_BLOCKED = {
    "add": "a sum comes in (a skip connection)",
    "add_": "a sum comes in (a skip connection)",
    "mul": "a product comes in (a gate)",
    "mul_": "a product comes in (a gate)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """What a kernel put out and no norm took yet."""

    width: int
    kernel: str
    bias: str
    feeds: tuple[Feed, ...]
    groups: int
    turned: bool
    exact: bool = True


_Signal = tuple[Feed | _Made, ...]


def wiring_of(graph: Graph) -> Wiring:
    """Every norm whose input the graph shows to be a kernel's, or a norm's own output."""
    into: dict[str, list[Edge]] = {}
    widths: dict[str, int] = {}
    for edge in graph.edges:
        into.setdefault(edge.target, []).append(edge)
        widths.setdefault(edge.tensor, _width(edge.shape))
    signals: dict[str, _Signal] = {}
    links: list[Link] = []
    for node in graph.nodes:
        edges = into.get(node.id, [])
        given = [signals.get(edge.tensor, ()) or _unknown(_width(edge.shape), "") for edge in edges]
        made = _after(node, given, widths.get(node.id, 0), links)
        signals[node.id] = made
    # A norm that runs more than once averages over what came in each time.
    runs = Counter(node.parameters[-1].name for node in graph.nodes if node.label in _NORMS and node.parameters)
    return Wiring(links=tuple(link for link in links if runs[link.norm.var] == 1))


def _after(node: Node, given: Sequence[_Signal], width: int, links: list[Link]) -> _Signal:
    """What a node puts out, by what comes in. links: gets those that end here."""
    label = node.label
    if node.kind is NodeKind.INPUT:
        return _unknown(width, "it reads the network's own input")
    if label in _NORMS and len(node.parameters) in (2, 4) and len(given) == 1:
        names = [parameter.name for parameter in node.parameters]
        weight, bias = names[:2] if len(names) == 4 else ("", "")
        norm = Norm(weight=weight, bias=bias, mean=names[-2], var=names[-1])
        links += _links(given[0], norm)
        return (Feed(width=sum(part.width for part in given[0]), norm=norm),)
    if label in _KERNELS and 1 <= len(node.parameters) <= 2 and len(given) == 1:
        return _through(node, given[0], width)
    if label == "cat" and sum(part.width for signal in given for part in signal) == width:
        return tuple(part for signal in given for part in signal)
    name = label.rstrip("_")
    known = name in ACTIVATIONS or name in _SAME or name in _ALIKE
    if known and len(given) == 1 and sum(part.width for part in given[0]) == width:
        return tuple(_applied(part, name, dict(node.attributes)) for part in given[0])
    return _unknown(width, _BLOCKED.get(label, f"{name} comes in"))


def _applied(part: Feed | _Made, name: str, settings: dict[str, str]) -> Feed | _Made:
    if name in _SAME:
        return part
    if name in _ALIKE:
        return replace(part, exact=False)
    if isinstance(part, _Made):
        return Feed(width=part.width, norm=None, why="no norm stands before the activation")
    usual = {"hardtanh": ("min_val", "0"), "elu": ("alpha", "1")}.get(name)
    odd = usual is not None and settings.get(usual[0], usual[1]).removesuffix(".0") != usual[1]
    odd = odd or (name == "hardtanh" and settings.get("max_val", "6").removesuffix(".0") != "6")
    if part.norm is None or part.activations != ("none",) or odd:
        return replace(part, norm=None, why=part.why or "two activations come in")
    slope = float(settings.get("negative_slope", "0.01"))
    return replace(part, activations=(name,), slope=slope)


def _through(node: Node, given: _Signal, width: int) -> _Signal:
    settings = dict(node.attributes)
    matrix = next((p for p in node.parameters if p.shape is not None and len(p.shape) >= 2), None)
    if matrix is None:
        return _unknown(width, "its kernel is computed")
    feeds = tuple(
        part if isinstance(part, Feed) else Feed(width=part.width, norm=None, why="no norm stands before it")
        for part in given
    )
    groups = settings.get("groups", "1")
    made = _Made(
        width=width,
        kernel=matrix.name,
        bias=next((p.name for p in node.parameters if p is not matrix), ""),
        feeds=feeds,
        groups=int(groups) if groups.isdecimal() else 1,
        turned=any(key.startswith("transpose") and text == "True" for key, text in settings.items()),
    )
    return (made,)


def _links(given: _Signal, norm: Norm) -> list[Link]:
    found, offset = [], 0
    for part in given:
        if isinstance(part, _Made):
            feeds = part.feeds if part.exact else tuple(replace(feed, exact=False) for feed in part.feeds)
            found.append(
                Link(
                    kernel=part.kernel,
                    bias=part.bias,
                    feeds=feeds,
                    norm=norm,
                    groups=part.groups,
                    transposed=part.turned,
                    offset=offset,
                )
            )
        elif part.norm is not None:
            found.append(Link(kernel="", bias="", feeds=(part,), norm=norm, offset=offset))
        offset += part.width
    return found


def _unknown(width: int, why: str) -> _Signal:
    return (Feed(width=width, norm=None, why=why or "what comes in is not known"),)


def _width(shape: tuple[Size, ...] | None) -> int:
    return shape[1] if shape is not None and len(shape) > 1 and isinstance(shape[1], int) else 0
