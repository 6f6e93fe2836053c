"""What an export does not hold, or holds broken, is said, and the lines that load it fit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.errors import ExportError
from inspector.exports.convert import export_as_is
from inspector.exports.report import broken_line
from inspector.keys.written import written_code
from inspector.readers import open_checkpoint


def _broken(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    state = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.BatchNorm1d(4)).state_dict()
    state["0.weight"][1, 2] = float("nan")
    state["0.weight"][3, 0] = float("inf")
    state["1.running_var"][2] = float("nan")
    path = tmp_path / "broken.pth"
    torch.save(state, path)
    return path


def test_nan_that_an_export_carries_along_is_said_with_number_and_place(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(_broken(tmp_path))
    assert checkpoint.weights is not None
    report = export_as_is(checkpoint, checkpoint.weights, tmp_path / "out.pth")
    assert report.broken == (
        "0.weight: 1 NaN and 1 infinite number, the first at [1, 2]",
        "1.running_var: 1 NaN, the first at [2]",
    )
    assert report.left_out == ()
    assert broken_line(report.broken).startswith("2 tensors of what was written hold NaN or infinity")


def test_tensors_with_nan_are_left_out_and_the_lines_load_the_rest(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(_broken(tmp_path))
    assert checkpoint.weights is not None
    report = export_as_is(checkpoint, checkpoint.weights, tmp_path / "out.pth", without_broken=True)
    assert report.left_out == ("0.weight", "1.running_var") and report.broken == ()
    code = written_code([str(tmp_path / "out.pth")], left_out=report.left_out)
    assert "strict=False" in code and "strict=True" not in code and "'1.running_var'" in code
    model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.BatchNorm1d(4))
    exec(code, {"model": model})
    assert all(torch.isfinite(value).all() for value in model.state_dict().values())
    with pytest.raises(RuntimeError, match="not the one that this was made for"):
        exec(code, {"model": torch.nn.Sequential(torch.nn.Linear(6, 4))})


def test_a_file_of_nothing_but_nan_is_not_written(tmp_path: Path) -> None:
    torch.save({"weight": torch.full((4,), float("nan"))}, tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    assert checkpoint.weights is not None
    with pytest.raises(ExportError, match="every tensor"):
        export_as_is(checkpoint, checkpoint.weights, tmp_path / "out.pth", without_broken=True)


def test_a_healthy_file_is_loaded_strictly(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(6, 4).state_dict(), tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    assert checkpoint.weights is not None
    report = export_as_is(checkpoint, checkpoint.weights, tmp_path / "out.pth", without_broken=True)
    assert (report.left_out, report.broken) == ((), ())
    assert "strict=True" in written_code(["out.pth"], left_out=report.left_out)


def test_what_is_salvaged_of_half_a_file_is_not_loaded_strictly(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file({f"layer.{n}.weight": torch.randn(8, 8) for n in range(6)}, tmp_path / "a.safetensors")
    whole = (tmp_path / "a.safetensors").read_bytes()
    (tmp_path / "half.safetensors").write_bytes(whole[: len(whole) * 2 // 3])
    checkpoint = open_checkpoint(tmp_path / "half.safetensors")
    assert checkpoint.weights is not None
    report = export_as_is(
        checkpoint, checkpoint.weights, tmp_path / "out.safetensors", writer="safetensors", salvage=True
    )
    assert 0 < len(report.left_out) < 6 and report.tensors + len(report.left_out) == 6
    code = written_code(["out.safetensors"], left_out=report.left_out)
    assert "strict=False" in code and all(repr(name) in code for name in report.left_out)


def test_whole_sets_are_named_first_and_their_entries_not_one_by_one(tmp_path: Path) -> None:
    generator, critic = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
    optimizer = torch.optim.Adam(generator.parameters())
    generator(torch.randn(2, 4)).sum().backward()
    optimizer.step()
    saved = {"netG": generator.state_dict(), "netD": critic.state_dict(), "optG": optimizer.state_dict(), "epoch": 25}
    torch.save(saved, tmp_path / "gan.pth")
    checkpoint = open_checkpoint(tmp_path / "gan.pth")
    state = next(s for s in checkpoint.state_dicts if s.path == ("netD",))
    report = export_as_is(checkpoint, state, tmp_path / "out.pth")
    assert report.lost[0] == "netG: state dict of 2 tensors" and report.lost[-1] == "epoch"
    assert not [what for what in report.lost if what.startswith("optG.")]


def test_a_mask_of_minus_infinity_is_written_without_a_warning_and_never_left_out(tmp_path: Path) -> None:
    mask = torch.zeros(5, 5, dtype=torch.float16).masked_fill(torch.ones(5, 5, dtype=torch.bool).triu(1), float("-inf"))
    torch.save({"fc.weight": torch.randn(3, 3), "attn.hides": mask}, tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    assert checkpoint.weights is not None
    for without in (False, True):
        report = export_as_is(checkpoint, checkpoint.weights, tmp_path / "out.pth", without_broken=without)
        assert (report.broken, report.left_out) == ((), ())
        assert torch.equal(torch.load(tmp_path / "out.pth")["attn.hides"], mask)
