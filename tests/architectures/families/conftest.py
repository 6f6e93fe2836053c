"""State dicts of modules, and what they are recognised as."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn

from inspector.architectures.build import build_model
from inspector.architectures.families.specs import confirm_all
from inspector.architectures.recognise import recognise
from inspector.architectures.targets import parse_spec, target_of
from inspector.architectures.types import Candidate


def _make_checkpoint() -> ModuleType:
    name = "families_make_checkpoint"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).resolve().parents[1] / "conftest.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def see(module: nn.Module, prefix: str = "") -> Candidate | None:
    """What a module's names and shapes are recognised as."""
    shapes = {prefix + name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    return recognise(_make_checkpoint().make_checkpoint(shapes)).best


def comes_back(module: nn.Module, label: str, given: tuple[int, ...] | None = None) -> Candidate:
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
def recognised() -> Callable[..., Candidate | None]:
    return see


@pytest.fixture
def check() -> Callable[..., Candidate]:
    return comes_back
