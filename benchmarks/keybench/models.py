"""Answers of real models: the repaired weights must answer as the intact ones do, bit for bit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from benchmarks.keybench.architectures import Architecture
from inspector.architectures.build import build_model
from inspector.errors import InspectorError


def tables_of(architecture: Architecture) -> Mapping[str, Tensor] | None:
    """A built model's state where it has tables of whole numbers, such as relative positions; None without any.

    Random ones would be no such tables, and are refused where a repair leaves them out.
    """
    plain = all(t.dtype == "float32" or t.name.endswith("num_batches_tracked") for t in architecture.tensors)
    if plain or architecture.spec is None:
        return None
    try:
        return build_model(architecture.spec).state_dict()
    except (InspectorError, ImportError):
        return None


class Reference:
    """The built model of an architecture, None where it cannot be built here, and what it answers."""

    def __init__(self, architecture: Architecture) -> None:
        self.size = architecture.size
        self.model: nn.Module | None = None
        self._wanted: Tensor | None = None
        if architecture.spec is not None and architecture.size:
            try:
                self.model = build_model(architecture.spec).eval()
            except (InspectorError, ImportError):
                self.model = None

    def learn(self, intact: Mapping[str, Tensor]) -> None:
        """Take these weights' answer as the right one."""
        self._wanted = self.answer(intact)

    def agrees(self, state: Mapping[str, Tensor]) -> bool | None:
        """Whether these weights load strictly and give the same logits bit for bit; None without a model."""
        if self._wanted is None:
            return None
        try:
            found = self.answer(state)
        except RuntimeError:
            return False
        return found is not None and torch.equal(found.view(torch.int32), self._wanted.view(torch.int32))

    def answer(self, state: Mapping[str, Tensor]) -> Tensor | None:
        """Logits for a picture of noise."""
        if self.model is None:
            return None
        made = OrderedDict(state)
        # Some classes refuse a state dict without versions.
        made._metadata = getattr(self.model.state_dict(), "_metadata", {})  # type: ignore[attr-defined]
        self.model.load_state_dict(made, strict=True)
        noise = torch.empty(1, 3, self.size, self.size).uniform_(-1, 1, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            answer: Tensor = self.model(noise)
        return answer
