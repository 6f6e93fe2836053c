"""Checkpoints made of names and shapes alone, and the two programs that are tested here."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from inspector.architectures.targets import parse_target
from inspector.checkpoint.source import BufferSource
from inspector.checkpoint.types import Checkpoint, ModuleNode, Origin, StateDict, StateRole, TensorInfo
from inspector.checkpoint.values import Value, ValueKind

Shapes = dict[str, tuple[int, ...]]
ROOT = Path(__file__).resolve().parents[2]


def make_checkpoint(
    shapes: Mapping[str, tuple[int, ...]], *, name: str = "weights.pth", sha256: str | None = None
) -> Checkpoint:
    tensors = tuple(
        TensorInfo(name=key, path=(key,), shape=shape, dtype="float32", nbytes=4, storage_id=None)
        for key, shape in shapes.items()
    )
    state = StateDict(
        path=("state_dict",),
        role=StateRole.WEIGHTS,
        why="a test",
        kind="dict",
        tensors=tensors,
        modules=ModuleNode(name="", path=""),
    )
    return Checkpoint(
        origin=Origin(name=name, nbytes=1, sha256=sha256),
        format="test",
        format_says="a test",
        root=Value(kind=ValueKind.MAPPING, type_name="dict", says=""),
        tensors=tensors,
        state_dicts=(state,) if tensors else (),
        source=BufferSource(b""),
    )


def shapes_of(target: str) -> Shapes:
    return {tensor.name: tensor.shape or () for tensor in parse_target(target).tensors}


def load_program(path: str) -> ModuleType:
    name = f"program_{Path(path).stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture
def checkpoint() -> Callable[..., Checkpoint]:
    return make_checkpoint


@pytest.fixture
def shapes() -> Callable[[str], Shapes]:
    """Names and shapes of a target, as a file of that model would have them."""
    return shapes_of


@pytest.fixture
def index_program() -> ModuleType:
    return load_program("scripts/build_index.py")


@pytest.fixture
def identify_benchmark() -> ModuleType:
    return load_program("benchmarks/bench_identify.py")
