"""Initial values for the tensors that no file gives: the layer's own reset, seeded.

A new head must be a head that can be trained: neither zeros nor leftovers of memory. torch's reset of the layer class
is used; a builder's own further initialisation, where it has one, is not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch
from torch import Tensor

from inspector.architectures.types import ArchitectureSpec
from inspector.errors import KeysDoNotFit


def initial_values(spec: ArchitectureSpec, names: Collection[str], *, seed: int = 0) -> dict[str, Tensor]:
    """Freshly initialised tensors of the model by name, the same ones for the same seed.

    The global random state is left as it was. Raises KeysDoNotFit where a layer cannot be reset alone.
    """
    from inspector.architectures.build import build_model

    model = build_model(spec)
    found: dict[str, Tensor] = {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for path in dict.fromkeys(name.rpartition(".")[0] for name in names):
            module = model.get_submodule(path)
            reset: Callable[[], None] | None = getattr(module, "reset_parameters", None)
            if reset is None:
                raise KeysDoNotFit(f"{path} ({type(module).__name__}) has no initial value of its own.")
            reset()
    state = model.state_dict()
    for name in names:
        if name not in state:
            raise KeysDoNotFit(f"{spec.label} has no tensor {name}.")
        found[name] = state[name].detach().clone()
    return found
