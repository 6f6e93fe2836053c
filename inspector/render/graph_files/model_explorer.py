"""The JSON that model-explorer opens: every operator with its namespace, not folded.

Source: github.com/google-ai-edge/model-explorer, wiki "2. User guide", "JSON format"; GraphNode of
src/ui/src/components/visualizer/common/input_graph.ts.
"""

from __future__ import annotations

from collections import defaultdict

from inspector.graph.types import Edge, Graph
from inspector.render.graph_files.words import shape_words


def as_model_explorer(graph: Graph, name: str) -> dict[str, object]:
    """A graph collection of one graph. name: of the file."""
    arriving: dict[str, list[Edge]] = defaultdict(list)
    leaving: dict[str, dict[str, Edge]] = defaultdict(dict)
    for edge in graph.edges:
        arriving[edge.target].append(edge)
        leaving[edge.source].setdefault(edge.tensor, edge)
    places = {(source, tensor): str(n) for source, ends in leaving.items() for n, tensor in enumerate(ends)}
    nodes = [
        {
            "id": node.id,
            "label": node.label,
            "namespace": _namespace(node.group),
            "incomingEdges": [
                {
                    "sourceNodeId": edge.source,
                    "sourceNodeOutputId": places[edge.source, edge.tensor],
                    "targetNodeInputId": str(number),
                }
                for number, edge in enumerate(arriving[node.id])
            ],
            "attrs": [
                *({"key": key, "value": text} for key, text in node.attributes),
                *({"key": "reads", "value": parameter.name} for parameter in node.parameters),
            ],
            "outputsMetadata": [
                {"id": places[node.id, edge.tensor], "attrs": _told(edge)} for edge in leaving[node.id].values()
            ],
        }
        for node in graph.nodes
    ]
    classes = {_namespace(group.path): {"class": group.kind} for group in graph.groups if group.kind}
    return {"label": name, "graphs": [{"id": name, "nodes": nodes, "groupNodeAttributes": classes}]}


def _told(edge: Edge) -> list[dict[str, str]]:
    told = [("tensor_name", edge.tensor), ("tensor_shape", f"{edge.dtype} {shape_words(edge.shape)}".strip())]
    return [{"key": key, "value": text} for key, text in told if text]


def _namespace(group: str) -> str:
    return "/".join(part.replace("/", "_").replace(";", "_") for part in group.split(".")) if group else ""
