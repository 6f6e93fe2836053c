"""repair --reference and --pair: what answers otherwise is not written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision

from inspector.cli.main import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("proofs")
    torch.manual_seed(0)
    model = torchvision.models.shufflenet_v2_x0_5(num_classes=3).eval()
    state = model.state_dict()
    torch.save({f"module.{n}": t for n, t in state.items()}, made / "wrapped.pth")
    torch.save(state, made / "good.pth")
    torch.save({n: t * 1.1 if n == "fc.weight" else t for n, t in state.items()}, made / "other.pth")
    given = torch.randn(1, 3, 64, 64)
    with torch.inference_mode():
        np.savez(made / "pair.npz", input=given.numpy(), output=model(given).numpy())
        np.savez(made / "wrong.npz", input=given.numpy(), output=model(given).numpy() + 1)
    return made


def _repair(folder: Path, out: Path, *more: str) -> int:
    return run(["repair", str(folder / "wrapped.pth"), "-o", str(out), *more])


def test_an_equal_reference_and_pair_are_proven_and_written(folder, tmp_path, capsys):
    out = tmp_path / "out.pth"
    given = ("--reference", str(folder / "good.pth"), "--pair", str(folder / "pair.npz"))
    assert _repair(folder, out, *given) == 0
    said = capsys.readouterr().out
    assert "Answers as good.pth does, bit for bit." in said
    assert "Answers as pair.npz does, bit for bit." in said
    assert out.exists()


@pytest.mark.parametrize("given", [("--reference", "other.pth"), ("--pair", "wrong.npz")])
def test_other_answers_are_refused(folder, tmp_path, capsys, given):
    out = tmp_path / "out.pth"
    assert _repair(folder, out, given[0], str(folder / given[1])) == 1
    assert f"Does not answer as {given[1]} does" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("shape", ["3xx4", "0x3", "-1", "99999x99999x9999", "²x3"])
def test_a_shape_that_is_none_is_refused(folder, tmp_path, capsys, shape):
    assert _repair(folder, tmp_path / "out.pth", "--input-shape", shape) == 2
    assert "input" in capsys.readouterr().err


def test_a_file_that_is_no_pair_says_what_it_holds(folder, tmp_path, capsys):
    assert _repair(folder, tmp_path / "out.pth", "--pair", str(folder / "good.pth")) == 2
    assert "good.pth is no pair: it holds" in capsys.readouterr().err
