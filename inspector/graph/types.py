"""A network's computation as a graph, and the same graph nested by modules for a drawing. No torch in here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

#: Readers whose files may hold a graph. Who reads it: sources.py, which takes longer to import.
CARRIES_GRAPH = ("torch-export", "onnx", "torchscript")

# A size that is known, the expression or name that stands for it ("s0", "batch"), or None.
Size = int | str | None


class GraphSource(StrEnum):
    """Where the edges come from."""

    FORWARD = "one forward pass on the meta device"
    PT2 = "the exported program in the file"
    ONNX = "the ONNX graph in the file"
    TORCHSCRIPT = "the TorchScript code in the file"


class NodeKind(StrEnum):
    """What a node is."""

    INPUT = "input"
    OPERATOR = "operator"
    CONSTANT = "constant"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """What a node reads of the file: a parameter, buffer or constant. name: its key there. shape: None if not known."""

    name: str
    shape: tuple[Size, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One call of an operator, or an input, constant or output of the whole.

    id: unique in the graph. label: the operator as its source names it ("conv2d", "Conv"). group: path of the module
    that called it, "" for the network itself. attributes: settings as text, no tensors' values. parameters: what it
    reads of the file's own tensors.
    """

    id: str
    label: str
    kind: NodeKind = NodeKind.OPERATOR
    group: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A module that nodes lie in, or the body of a branch or loop. path: "layer1.0"; its parents are the paths before
    each dot, "" is the network itself, and what is called again has a path of its own: "relu (2)". kind: its class,
    without its package. is_module: whether it is a module, or the inside of an operator or of a function.
    """

    path: str
    kind: str = ""
    is_module: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One tensor on its way from the node that makes it to one that takes it. shape: None where it is not known."""

    source: str
    target: str
    tensor: str = ""
    shape: tuple[Size, ...] | None = None
    dtype: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """origin: where the edges come from. nodes: in the order in which they run. Parameters are no nodes: they belong to
    the module that uses them.

    An operator with graphs of its own (a branch, a loop) has a group that holds these and, behind them, the operator
    itself, which hands out what they put out. What is handed to it also goes straight to those inside that read it, and
    what a loop hands to its next turn goes to the operator alone: edges lead from earlier nodes to later ones.
    remarks: what the source does not tell, or what was left out, as sentences.
    """

    origin: GraphSource
    nodes: tuple[Node, ...]
    groups: tuple[Group, ...]
    edges: tuple[Edge, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxEdge:
    """An arrow between two children of one box, by their places. count: how many tensors go this way."""

    source: int
    target: int
    shape: tuple[Size, ...] | None = None
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A module or a node as it is drawn: its children, and the arrows among them.

    path: unique in the drawing; a group's own path, a node's id otherwise. label: what stands in the box. kind: class
    or operator, "input", "constant" or "output". module: the path of the module it shows, without numbers of calls; ""
    for a node, the inside of an operator, or a section of a long row. node: the id of
    the node it shows, also of a module's only one. repeat: how many equal neighbours stand folded in it, 1 for none;
    repeated: the paths of all of them, in order. weight: of what a node reads, the shape of the first with two sizes or
    more. edges: in a box of very many arrows only those that no chain of others
    says as well; these are `implied`. entries, exits: places of the children that take something from outside this box,
    or hand something out.
    """

    path: str
    label: str
    kind: str
    module: str = ""
    shape: tuple[Size, ...] | None = None
    repeat: int = 1
    repeated: tuple[str, ...] = ()
    children: tuple[Box, ...] = ()
    edges: tuple[BoxEdge, ...] = ()
    entries: tuple[int, ...] = ()
    exits: tuple[int, ...] = ()
    node: str = ""
    implied: tuple[BoxEdge, ...] = ()
    weight: tuple[Size, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What a page shows of a graph. says: where it comes from, and what the source does not tell."""

    box: Box
    says: str
