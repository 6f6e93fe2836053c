"""The chains of an architecture that can be built: its graph of one pass without values."""

from __future__ import annotations

import torch

from inspector.architectures.build import build_model
from inspector.architectures.facts import usual_inputs
from inspector.architectures.types import ArchitectureSpec
from inspector.graph.from_forward import ForwardError, graph_of_forward
from inspector.keys.certificate.from_graph import wiring_of
from inspector.keys.certificate.types import Wiring


def wiring_of_spec(spec: ArchitectureSpec) -> Wiring | None:
    """None where nobody knows what it takes, or where the pass fails. Raises as `build_model`."""
    usual = usual_inputs(spec)
    if not usual:
        return None
    given = {one.name: torch.empty(one.shape, dtype=getattr(torch, one.dtype), device="meta") for one in usual}
    named = {name: tensor for name, tensor in given.items() if name}
    model = build_model(spec, device="meta").eval()
    try:
        return wiring_of(graph_of_forward(model, [given[""]] if "" in given else [], named))
    except ForwardError:
        return None
