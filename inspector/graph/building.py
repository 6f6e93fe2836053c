"""A graph while it is made from a file: names that are unique, and bounds on what a file could make large."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from inspector.graph.types import Edge, Graph, GraphSource, Group, Node, NodeKind, Parameter, Size
from inspector.limits import Limits
from inspector.readers.plain_json import whole
from inspector.units import counted

MOST_NODES = 50_000
MOST_EDGES = 250_000
DEEPEST = 48
_NAME = 200
_PATH = 1_000
_TEXT = 200
_MOST_ATTRIBUTES = 64
_MOST_DIMENSIONS = 64
# A node, an edge and a group with their texts, by measurement.
_NODE_NBYTES, _EDGE_NBYTES, _GROUP_NBYTES = 800, 400, 300


class GraphBuilder:
    """Takes nodes in the order in which they run. Ids and paths of groups that it gives back are the ones to use."""

    def __init__(self, origin: GraphSource, limits: Limits) -> None:
        self.origin = origin
        self.limits = limits
        self.full = False
        self._nodes: list[Node] = []
        self._ids: dict[str, int] = {}
        self._edges: dict[tuple[str, str, str], Edge] = {}
        self._fed: set[str] = set()
        self._groups: dict[str, str] = {}
        self._no_modules: set[str] = set()
        self._remarks: dict[str, None] = {}
        self._repeats: dict[str, int] = {}
        self._left_out = 0

    def remark(self, text: str) -> None:
        """Say once what the source does not tell, or what was left out."""
        if len(self._remarks) < 40:
            self._remarks[whole(text)[:500]] = None

    def group(self, path: str, kind: str = "") -> str:
        """The group of a module's path: the same each time it is asked for. "" is the network itself."""
        path = whole(path)[:_PATH]
        if path.count(".") >= DEEPEST:
            path = ".".join(path.split(".")[:DEEPEST])
            self.remark(f"Modules are nested deeper than {DEEPEST} levels; what lies deeper is drawn at that level.")
        if path not in self._groups:
            if len(self._groups) >= MOST_NODES:
                return ""
            self._charge(_GROUP_NBYTES + len(path))
            self._groups[path] = ""
        if kind and not self._groups[path]:
            self._groups[path] = whole(kind)[:_NAME]
        return path

    def new_group(self, parent: str, name: str, kind: str = "") -> str:
        """A group of its own below another, which is no module: "name", "name (2)" for the second of that name."""
        name = whole(name)[:_NAME].replace(".", "_") or "_"
        path = self.group(self._free(f"{parent}.{name}" if parent else name, self._groups), kind)
        if path != parent:
            self._no_modules.add(path)
        return path

    def node(
        self,
        label: str,
        *,
        name: str = "",
        kind: NodeKind = NodeKind.OPERATOR,
        group: str = "",
        attributes: Sequence[tuple[str, str]] = (),
        parameters: Sequence[Parameter] = (),
    ) -> str:
        """The id of a new node, "" where there are too many. name: what its id is made of, else the label."""
        if len(self._nodes) >= MOST_NODES:
            self.full = True
            self._left_out += 1
            return ""
        label = whole(label)[:_NAME] or "?"
        id_ = self._free(whole(name)[:_NAME] or label, self._ids)
        shown = tuple((whole(key)[:_NAME], whole(text)[:_TEXT]) for key, text in attributes[:_MOST_ATTRIBUTES])
        read = tuple(replace(p, name=whole(p.name)[:_PATH]) for p in dict.fromkeys(parameters[:_MOST_ATTRIBUTES]))
        self._charge(_NODE_NBYTES + sum(len(text) for _, text in shown) + sum(200 + len(p.name) for p in read))
        self._ids[id_] = len(self._ids)
        self._nodes.append(Node(id=id_, label=label, kind=kind, group=group, attributes=shown, parameters=read))
        return id_

    def edge(
        self, source: str, target: str, tensor: str = "", shape: tuple[Size, ...] | None = None, dtype: str = ""
    ) -> None:
        """An arrow, once for each tensor between two nodes; nothing where one of them was left out.

        Raises ValueError for one that leads to an earlier node: whatever draws a graph relies on their order.
        """
        if not source or not target:
            return
        if self._ids[source] >= self._ids[target]:
            raise ValueError(f"{source} runs behind {target}")
        key = (source, target, whole(tensor)[:_NAME])
        if key in self._edges:
            return
        if len(self._edges) >= MOST_EDGES:
            self.remark(f"Only the first {MOST_EDGES:,} edges are shown.")
            return
        self._charge(_EDGE_NBYTES)
        shape = shape[:_MOST_DIMENSIONS] if shape is not None else None
        self._fed.add(target)
        self._edges[key] = Edge(source=source, target=target, tensor=key[2], shape=shape, dtype=dtype)

    def is_fed(self, id_: str) -> bool:
        """Whether an edge leads into a node."""
        return id_ in self._fed

    def finish(self) -> Graph:
        """The graph. Nodes whose id is also a module's path are told from it by their operator."""
        if self._left_out:
            left_out = counted(self._left_out, "operator")
            self.remark(f"Only the first {MOST_NODES:,} operators are shown; {left_out} behind them are left out.")
        renamed: dict[str, str] = {}
        taken = {*self._ids, *self._groups}
        for node in self._nodes:
            if node.id in self._groups:
                renamed[node.id] = self._free(f"{node.id}:{node.label}", taken)
                taken.add(renamed[node.id])
        nodes = [replace(n, id=renamed[n.id]) if n.id in renamed else n for n in self._nodes]
        edges = [
            replace(e, source=renamed.get(e.source, e.source), target=renamed.get(e.target, e.target))
            if e.source in renamed or e.target in renamed
            else e
            for e in self._edges.values()
        ]
        return Graph(
            origin=self.origin,
            nodes=tuple(nodes),
            groups=tuple(
                Group(path=path, kind=kind, is_module=path not in self._no_modules)
                for path, kind in self._groups.items()
                if path or kind
            ),
            edges=tuple(edges),
            remarks=tuple(self._remarks),
        )

    def _free(self, name: str, taken: Container[str]) -> str:
        """The name, or with the next number behind it: each search goes on where the last one for it ended."""
        if name not in taken:
            return name
        number = self._repeats.get(name, 1)
        while True:
            number += 1
            if (free := f"{name} ({number})") not in taken:
                self._repeats[name] = number
                return free

    def _charge(self, nbytes: int) -> None:
        self.limits.charge(nbytes, "The drawing")
