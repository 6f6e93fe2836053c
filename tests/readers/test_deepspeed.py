""" "deepspeed-zero": fp32 weights of ZeRO folders, stage 1 to 3 and universal, against what went in and by hand."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from zero_saves import Model, example, save_universal, save_zero2, save_zero3

from inspector.checkpoint.data import read_bytes
from inspector.checkpoint.types import Checkpoint, StateDict, StateRole
from inspector.errors import CorruptFile, InspectorError
from inspector.findings import Severity
from inspector.readers import open_checkpoint


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def weights_of(checkpoint: Checkpoint) -> StateDict:
    found = checkpoint.weights
    assert found is not None and found.path[0].startswith("fp32 weights")
    return found


def compare(checkpoint: Checkpoint, expected: dict[str, torch.Tensor]) -> None:
    found = weights_of(checkpoint)
    assert {t.name for t in found.tensors} == set(expected)
    for info in found.tensors:
        theirs = expected[info.name]
        assert (info.shape, f"torch.{info.dtype}") == (tuple(theirs.shape), str(theirs.dtype))
        assert read_bytes(checkpoint, info) == bits(theirs)


def says(checkpoint: Checkpoint, ident: str) -> str:
    return next(f.says for f in checkpoint.findings if f.id == ident)


def errors(checkpoint: Checkpoint) -> set[str]:
    return {f.id for f in checkpoint.findings if f.severity is Severity.ERROR}


@pytest.mark.parametrize("ranks", [1, 3, 8])
@pytest.mark.parametrize(("stage", "lean"), [(1, True), (2, True), (2, False)])
def test_stage_1_and_2(stage: int, lean: bool, ranks: int, tmp_path: Path) -> None:
    """With 8 ranks some hold no element of the smaller group at all."""
    save_zero2(tmp_path, example(), ranks, stage=stage, lean=lean)
    checkpoint = open_checkpoint(tmp_path)
    assert (checkpoint.format, errors(checkpoint)) == ("deepspeed-zero", set())
    compare(checkpoint, example().whole())
    assert [t.name for t in weights_of(checkpoint).tensors] == list(example().whole())
    assert dict(checkpoint.metadata)["ds_version"] == "0.19.8"


@pytest.mark.parametrize(("ranks", "flat_groups"), [(1, 1), (2, 1), (4, 3), (7, 2)])
def test_stage_3(ranks: int, flat_groups: int, tmp_path: Path) -> None:
    save_zero3(tmp_path, example(), ranks, flat_groups=flat_groups)
    checkpoint = open_checkpoint(tmp_path)
    assert errors(checkpoint) == set()
    compare(checkpoint, example().whole())
    module = next(s for s in checkpoint.state_dicts if s.path[-1] == "module")
    assert module.role is StateRole.OTHER and "placeholders" in module.why


def test_beside_the_16_bit_weights_and_the_optimizer_states(tmp_path: Path) -> None:
    save_zero2(tmp_path, example(), 2)
    checkpoint = open_checkpoint(tmp_path)
    module = next(s for s in checkpoint.state_dicts if s.path == ("mp_rank_00_model_states.pt", "module"))
    assert module.role is StateRole.WEIGHTS
    half = next(t for t in module.tensors if t.name == "scale")
    assert read_bytes(checkpoint, half) == bits(example().whole()["scale"].bfloat16())
    states = [s for s in checkpoint.state_dicts if s.role is StateRole.OPTIMIZER]
    assert len(states) == 2 and any("exp_avg" in t.name for t in states[0].tensors)
    assert {p.name for p in checkpoint.parts} == {
        "global_step5/mp_rank_00_model_states.pt",
        "global_step5/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
        "global_step5/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
    }
    tied = {t.name: t.storage_id for t in weights_of(checkpoint).tensors}
    assert tied["head.weight"] == tied["embed.weight"]


def test_universal(tmp_path: Path) -> None:
    save_universal(tmp_path, example())
    checkpoint = open_checkpoint(tmp_path)
    compare(checkpoint, {n: p for group in example().groups for n, p in group.items()})
    states = next(s for s in checkpoint.state_dicts if s.path == ("optimizer states",))
    assert len(states.tensors) == 15 and "scale.exp_avg_sq" in {t.name for t in states.tensors}


def write(folder: Path, shapes: Any, parts: list[list[torch.Tensor]], key: str, **more: Any) -> Path:
    """The least that a ZeRO folder holds."""
    stage = 3 if key == "fp32_flat_groups" else 2
    folder.mkdir(exist_ok=True)
    first = "zero_pp_rank_0_mp_rank_00" if stage == 3 else "mp_rank_00"
    model = {"module": {}, "buffer_names": [], "param_shapes": shapes, "shared_params": {}}
    torch.save(model, folder / f"{first}_model_states.pt")
    for rank, groups in enumerate(parts):
        inner = {"zero_stage": stage, "partition_count": len(parts), key: groups, **more}
        torch.save({"optimizer_state_dict": inner}, folder / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
    return folder


def shapes(**sizes: list[int]) -> list[Any]:
    return [OrderedDict((name, torch.Size(size)) for name, size in sizes.items())]


def numbers(checkpoint: Checkpoint) -> dict[str, tuple[float, ...]]:
    return {t.name: struct.unpack(f"<{t.numel}f", read_bytes(checkpoint, t)) for t in weights_of(checkpoint).tensors}


def test_stage_2_by_hand(tmp_path: Path) -> None:
    """1 2 3 4 | 5 6 7 (and one of padding, left out): a takes five of them, b two."""
    parts = [[torch.tensor([1.0, 2, 3, 4])], [torch.tensor([5.0, 6, 7])]]
    folder = write(tmp_path / "x", shapes(a=[5], b=[2, 1]), parts, "single_partition_of_fp32_groups")
    assert numbers(open_checkpoint(folder)) == {"a": (1, 2, 3, 4, 5), "b": (6, 7)}


def test_stage_2_with_padding_behind_each_parameter(tmp_path: Path) -> None:
    """a is 1 2 3 and one of padding, b is 5 6 and two of padding."""
    parts = [[torch.tensor([1.0, 2, 3, 0])], [torch.tensor([5.0, 6, 0, 0])]]
    folder = write(
        tmp_path / "x",
        shapes(a=[3], b=[2]),
        parts,
        "single_partition_of_fp32_groups",
        param_alignment_paddings=[[1, 2]],
    )
    assert numbers(open_checkpoint(folder)) == {"a": (1, 2, 3), "b": (5, 6)}


def test_stage_3_by_hand(tmp_path: Path) -> None:
    """Five elements on two ranks: three and two and one of padding; then one element each of b."""
    parts = [[torch.tensor([1.0, 2, 3, 8])], [torch.tensor([4.0, 5, 0, 9])]]
    folder = write(tmp_path / "x", shapes(a=[5], b=[1, 2]), parts, "fp32_flat_groups")
    assert numbers(open_checkpoint(folder)) == {"a": (1, 2, 3, 4, 5), "b": (8, 9)}


def test_a_missing_rank(tmp_path: Path) -> None:
    parts = [[torch.tensor([1.0, 2, 3, 4])], [torch.tensor([5.0, 6, 7, 8])], [torch.tensor([9.0, 10])]]
    folder = write(tmp_path / "x", shapes(a=[3], b=[4], c=[3]), parts, "single_partition_of_fp32_groups")
    (folder / "zero_pp_rank_1_mp_rank_00_optim_states.pt").unlink()
    checkpoint = open_checkpoint(folder)
    found = next(f for f in checkpoint.findings if f.id == "optimizer-files")
    assert "cut into 3 partitions; there are 2 optimizer files" in found.says
    assert dict(found.evidence)["lost of b"] == 0.75
    a, b, c = weights_of(checkpoint).tensors
    assert struct.unpack("<3f", read_bytes(checkpoint, a)) == (1, 2, 3)
    assert checkpoint.storages[b.storage_id or ""].present_nbytes == 4
    for tensor in (b, c):
        with pytest.raises(CorruptFile):
            read_bytes(checkpoint, tensor)


def test_a_missing_rank_of_stage_3_takes_a_part_of_everything(tmp_path: Path) -> None:
    save_zero3(tmp_path, Model(groups=[{"w": torch.arange(8.0)}]), 4)
    (tmp_path / "global_step5/zero_pp_rank_2_mp_rank_00_optim_states.pt").unlink()
    checkpoint = open_checkpoint(tmp_path)
    assert "most w: 25.0 %" in says(checkpoint, "optimizer-files")
    assert checkpoint.storages[weights_of(checkpoint).tensors[0].storage_id or ""].present_nbytes == 16


@pytest.mark.parametrize(("quarters", "some_left"), [(1, False), (3, True)])
def test_a_file_cut_short(quarters: int, some_left: bool, tmp_path: Path) -> None:
    """The moments of Adam come first in it, the flat fp32 groups last."""
    save_zero3(tmp_path, Model(groups=[{"w": torch.arange(80_000.0), "v": torch.arange(4.0)}]), 2)
    path = tmp_path / "global_step5/zero_pp_rank_0_mp_rank_00_optim_states.pt"
    path.write_bytes(path.read_bytes()[: path.stat().st_size * quarters // 4])
    checkpoint = open_checkpoint(tmp_path)
    assert "cut-short" in errors(checkpoint)
    w = next(t for t in weights_of(checkpoint).tensors if t.name == "w")
    present = checkpoint.storages[w.storage_id or ""].present_nbytes
    assert 0 < present < 160_000 if some_left else present == 0
    left = checkpoint.source.read(checkpoint.storages[w.storage_id or ""].offset or 0, present)
    assert left == bits(torch.arange(80_000.0))[:present]


def test_numbers_that_do_not_fit_are_not_guessed(tmp_path: Path) -> None:
    parts = [[torch.ones(4)], [torch.ones(4)]]
    folder = write(tmp_path / "x", shapes(a=[3], b=[40]), parts, "single_partition_of_fp32_groups")
    checkpoint = open_checkpoint(folder)
    assert "group 0 needs 43 elements, the files hold 8" in says(checkpoint, "weights-not-assembled")
    third = write(tmp_path / "y", shapes(a=[9]), parts, "fp32_flat_groups")
    assert "every rank needs 5 elements, rank 0 holds 4" in says(open_checkpoint(third), "weights-not-assembled")


def test_the_save_that_latest_names(tmp_path: Path) -> None:
    save_zero2(tmp_path, example(1), 2, tag="global_step10")
    save_zero2(tmp_path, example(2), 2, tag="global_step9")
    checkpoint = open_checkpoint(tmp_path)
    compare(checkpoint, example(2).whole())
    assert "global_step10" in checkpoint.skipped[0]
    (tmp_path / "latest").write_text("../../global_step11")
    checkpoint = open_checkpoint(tmp_path)
    compare(checkpoint, example(1).whole())
    assert "names the save '../../global_step11', which is not in the folder; shown is 'global_step10'" in says(
        checkpoint, "latest-missing"
    )
    compare(open_checkpoint(tmp_path / "global_step9"), example(2).whole())


def test_tensor_parallel_ranks_are_shown_one_by_one(tmp_path: Path) -> None:
    save_zero2(tmp_path, example(1), 2, mp=0)
    save_zero2(tmp_path, example(2), 2, mp=1)
    checkpoint = open_checkpoint(tmp_path)
    assert "2 tensor-parallel ranks (mp_rank_00 to mp_rank_01)" in says(checkpoint, "tensor-parallel-ranks")
    compare(checkpoint, example(1).whole())
    second = next(s for s in checkpoint.state_dicts if s.path == ("fp32 weights (mp_rank_01)",))
    assert read_bytes(checkpoint, second.tensors[0]) == bits(example(2).whole()[second.tensors[0].name])


def test_the_program_in_the_folder_is_shown_and_never_run(tmp_path: Path) -> None:
    save_zero2(tmp_path, example(), 1)
    marker = tmp_path / "marker"
    (tmp_path / "zero_to_fp32.py").write_text(f"open({str(marker)!r}, 'w')\n")
    checkpoint = open_checkpoint(tmp_path)
    assert not marker.exists()
    assert checkpoint.code[0].name == "zero_to_fp32.py" and "marker" in checkpoint.code[0].text
    assert "It was not run" in says(checkpoint, "program-in-folder")


class Payload:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return (os.system, (f"touch {self.marker}",))


def test_nothing_runs(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    parts = [[torch.ones(2)]]
    folder = write(tmp_path / "x", shapes(a=[2]), parts, "fp32_flat_groups", loss_scaler=Payload(marker))
    checkpoint = open_checkpoint(folder)
    assert numbers(checkpoint) == {"a": (1, 1)} and not marker.exists()
    assert "dangerous-global" in errors(checkpoint)


LOOP: dict[str, Any] = {}
LOOP["again"] = LOOP


@pytest.mark.parametrize(
    ("param_shapes", "groups", "more"),
    [
        ([{"a": (1 << 61, 4)}], [torch.ones(2)], {}),
        ([{"a": (-2,)}], [torch.ones(2)], {}),
        ([{3: (2,)}], [torch.ones(2)], {}),
        ([{"a": "two"}], [torch.ones(2)], {}),
        ([LOOP], [torch.ones(2)], {}),
        (LOOP, LOOP, {}),
        (None, None, {}),
        ([{"a": (2,)}], [torch.ones(2)], {"partition_count": 1 << 39}),
        ([{"a": (2,)}], [torch.ones(2)], {"partition_count": 60_000}),
        ([{"a": (2,)}], [torch.ones(2)], {"partition_count": [[]]}),
        ([{"a": (1 << 39,)}], [torch.ones(1).expand(1 << 30)], {}),
        ([{"a": (2,)}], [torch.ones(2), torch.ones(2).double()], {}),
        ([{"a": (2,)}], [torch.ones(2)], {"param_alignment_paddings": [[1 << 39]]}),
        ([{"a": (2,)}], [torch.ones(2)], {"param_alignment_paddings": LOOP}),
        ([{"a": (2,)}] * 1000, [torch.ones(2)], {}),
    ],
)
@pytest.mark.parametrize("key", ["single_partition_of_fp32_groups", "fp32_flat_groups"])
def test_hostile_headers(param_shapes: Any, groups: Any, more: dict[str, Any], key: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "x", param_shapes, [groups], key, **more)
    checkpoint = open_checkpoint(folder)
    assert checkpoint.format == "deepspeed-zero"
    for info in checkpoint.tensors:
        if info.path[0] == "fp32 weights" and info.numel < 100:
            try:
                read_bytes(checkpoint, info)
            except InspectorError:
                continue


def test_cut_at_every_boundary(tmp_path: Path) -> None:
    folder = write(tmp_path / "x", shapes(a=[5]), [[torch.ones(5)]], "fp32_flat_groups")
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for n in range(0, len(whole), 61):
            path.write_bytes(whole[:n])
            try:
                open_checkpoint(folder)
            except InspectorError:
                continue
        path.write_bytes(whole)
    assert numbers(open_checkpoint(folder)) == {"a": (1, 1, 1, 1, 1)}


def test_many_files_hold_few_open(tmp_path: Path) -> None:
    """A universal checkpoint of 300 files, read where a process may have 64 open."""
    model = Model(groups=[{f"w{i}": torch.full((3,), float(i)) for i in range(100)}])
    save_universal(tmp_path, model)
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "from inspector.readers import open_checkpoint\n"
        "from inspector.checkpoint.data import read_bytes\n"
        "c = open_checkpoint(sys.argv[1])\n"
        "print(sum(len(read_bytes(c, t)) for t in c.weights.tensors))\n"
    )
    root = Path(__file__).resolve().parents[2]
    out = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, cwd=root)
    assert out.stdout.strip() == "1200", out.stderr


def test_packed_into_one_file(tmp_path: Path) -> None:
    save_zero3(tmp_path / "run", example(), 3)
    checkpoint = open_checkpoint(shutil.make_archive(str(tmp_path / "packed"), "tar", tmp_path, "run"))
    assert checkpoint.format == "deepspeed-zero"
    compare(checkpoint, example().whole())


def test_other_folders_are_not_claimed(tmp_path: Path) -> None:
    torch.save({"weight": torch.ones(2)}, tmp_path / "model.pt")
    (tmp_path / "latest").write_text("model.pt")
    assert open_checkpoint(tmp_path).format == "torch-zip"
    shutil.rmtree(tmp_path)
