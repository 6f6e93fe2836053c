"""State dicts of modules, and what they are recognised as."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import nn

from inspector.architectures.build import build_model
from inspector.architectures.families.specs import confirm_all
from inspector.architectures.recognise import recognise
from inspector.architectures.targets import parse_spec, target_of
from inspector.architectures.types import Candidate
from inspector.checkpoint.types import Checkpoint

See = Callable[[nn.Module], Candidate | None]


def comes_back(see: See, module: nn.Module, label: str, given: tuple[int, ...] | None = None) -> Candidate:
    """Recognise a module, check its label, its target and, by equal outputs, the model that is built for it.

    given: the shape of an input on which both must answer alike; None where nothing builds the family.
    """
    module = module.eval()
    found = see(module)
    assert found is not None
    assert (found.spec.label, found.exact, found.missing) == (label, True, ())
    assert parse_spec(label) == found.spec
    target = target_of(found.spec)
    state = module.state_dict()
    assert [(t.name, t.shape, t.dtype) for t in target.tensors] == [
        (name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")) for name, tensor in state.items()
    ]
    buffers = {name for name, _ in module.named_buffers()}
    assert {t.name for t in target.tensors if t.is_buffer} == buffers & set(state)
    if given is not None:
        built = build_model(confirm_all(found.spec))
        built.load_state_dict(state, strict=True)
        picture = torch.randn(given, generator=torch.Generator().manual_seed(1))
        with torch.inference_mode():
            assert torch.equal(built(picture), module(picture))
    return found


@pytest.fixture
def recognised(checkpoint: Callable[..., Checkpoint]) -> See:
    """What a module's names and shapes are recognised as."""

    def see(module: nn.Module) -> Candidate | None:
        shapes = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
        return recognise(checkpoint(shapes)).best

    return see


@pytest.fixture
def check(recognised: See) -> Callable[..., Candidate]:
    return partial(comes_back, recognised)
