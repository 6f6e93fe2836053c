"""Segments of training tools are named when the file is opened, and people's own names are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from inspector.checkpoint.types import Checkpoint
from inspector.findings import Finding
from inspector.readers import open_checkpoint

PLAIN = {"conv.weight": torch.zeros(2, 2), "conv.bias": torch.ones(2), "my_module.weight": torch.ones(3)}


def _found(checkpoint: Checkpoint) -> Finding | None:
    return next((f for f in checkpoint.findings if f.id == "wrapper-names"), None)


def _opened(tmp_path: Path, state: dict[str, torch.Tensor]) -> Finding | None:
    path = tmp_path / "x.safetensors"
    save_file(state, path)
    return _found(open_checkpoint(path))


@pytest.mark.parametrize(
    ("prefix", "tool"),
    [
        ("module.", "DataParallel"),
        ("module.module.", "DataParallel"),
        ("_orig_mod.module.", "torch.compile"),
        ("_forward_module.", "Lightning"),
    ],
)
def test_a_leading_wrapper_is_named_whole_with_its_tool(tmp_path: Path, prefix: str, tool: str) -> None:
    found = _opened(tmp_path, {prefix + name: tensor for name, tensor in PLAIN.items()})
    assert found is not None
    assert found.says.startswith(f'All 3 names of the file itself begin with "{prefix}"')
    assert tool in found.says


def test_fsdp_segments_in_the_middle_are_counted(tmp_path: Path) -> None:
    found = _opened(tmp_path, {"a._fsdp_wrapped_module.weight": torch.zeros(1), "b.weight": torch.ones(1)})
    assert found is not None
    assert '"_fsdp_wrapped_module" in 1 of 2 names' in found.says


def test_the_counter_of_an_averaged_model_does_not_hide_the_wrapper(tmp_path: Path) -> None:
    state = {"n_averaged": torch.tensor(3), **{f"module.{n}": t for n, t in PLAIN.items()}}
    assert _opened(tmp_path, state) is not None


@pytest.mark.parametrize(
    "names", [tuple(PLAIN), ("features.module.0.weight", "head.weight"), ("module", "weight"), ("submodule.module",)]
)
def test_names_that_people_chose_are_left_alone(tmp_path: Path, names: tuple[str, ...]) -> None:
    assert _opened(tmp_path, {name: torch.full((1,), i) for i, name in enumerate(names)}) is None


def test_lists_of_names_and_numbers_are_metadata(tmp_path: Path) -> None:
    path = tmp_path / "x.ckpt"
    classes = ['"quoted"', "Größe", "c"]
    settings = {"classes": classes, "mean": [0.5, 1e-3, 2], "mixed": ["a", 1], "nested": [[1]], "empty": []}
    torch.save({"state_dict": {"w": torch.zeros(2)}, "hyper_parameters": settings, "names": tuple(classes)}, path)
    metadata = dict(open_checkpoint(path).metadata)
    import json

    assert json.loads(metadata["hyper_parameters.classes"]) == classes
    assert json.loads(metadata["hyper_parameters.mean"]) == [0.5, 1e-3, 2]
    assert json.loads(metadata["names"]) == classes
    assert not {"hyper_parameters.mixed", "hyper_parameters.nested", "hyper_parameters.empty"} & metadata.keys()


def test_an_averaged_model_is_not_called_data_parallel(tmp_path: Path) -> None:
    found = _opened(tmp_path, {"n_averaged": torch.tensor(3), **{f"module.{n}": t for n, t in PLAIN.items()}})
    assert found is not None
    assert '"module" comes from AveragedModel' in found.says and "DataParallel" not in found.says
