"""Which files of a folder belong to a run, and what is behind links out of it."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from inspector.events.write import event_file
from inspector.readers import open_checkpoint
from inspector.run.files import RunFile, files_at
from inspector.run.measure import measure_run
from inspector.run.report import Measure
from inspector.run_files import files_below
from tests.run.made import save, save_all, states


def test_what_lies_behind_a_link_out_of_the_folder_is_named_and_not_read(tmp_path: Path) -> None:
    root, secret = tmp_path / "open", tmp_path / "secret"
    (root / "run").mkdir(parents=True)
    secret.mkdir()
    of = states(4)
    save_all(root / "run", of[:3])
    save(secret, "epoch_4.pth", of[3], epoch=4)
    with event_file(secret, 1e9) as log:
        log.scalar("loss", 1, 1.0)
    (root / "run" / "epoch_4.pth").symlink_to(secret / "epoch_4.pth")
    for path in secret.glob("*tfevents*"):
        (root / "run" / path.name).symlink_to(path)
    report = measure_run(*files_below(root / "run", within=root.resolve()))
    assert [member.name for member in report.members] == ["epoch_1.pth", "epoch_2.pth", "epoch_3.pth"]
    (left,) = report.left_out
    assert left.name == "epoch_4.pth" and "a link out of the folder" in left.why and report.logs == ()
    # On the command line a link is the file that it leads to.
    report = measure_run(*files_below(root / "run"))
    assert len(report.members) == 4 and len(report.logs) == 1


@pytest.mark.parametrize("sharded", [False, True], ids=["whole", "sharded"])
def test_folders_in_an_archive_are_members_with_what_lies_beside_their_weights(tmp_path: Path, sharded: bool) -> None:
    """As transformers' Trainer leaves them, dropped in a browser as one tar."""
    of = states(3)
    for n, state in enumerate(of):
        place = tmp_path / "run" / f"checkpoint-{n}"
        place.mkdir(parents=True)
        # Against the order of the names.
        (place / "trainer_state.json").write_text(json.dumps({"global_step": 30 - 10 * n, "epoch": 3 - n}))
        torch.save({"state": {}, "param_groups": []}, place / "optimizer.pt")
        names = list(state)
        cut = [names[:3], names[3:]] if sharded else [names]
        files = [f"model-0000{k}-of-0000{len(cut)}.safetensors" for k in range(1, len(cut) + 1)]
        for file, part in zip(files if sharded else ["model.safetensors"], cut, strict=True):
            save_file({name: state[name] for name in part}, place / file)
        if sharded:
            places = {name: file for file, part in zip(files, cut, strict=True) for name in part}
            index = {"metadata": {"total_size": 1136}, "weight_map": places}
            (place / "model.safetensors.index.json").write_text(json.dumps(index))
    packed = tmp_path / "run.tar"
    with tarfile.open(packed, "w") as tar:
        tar.add(tmp_path / "run", "run")
    files, logs = files_at(packed, "run.tar", RunFile(name="run.tar", opening=lambda: open_checkpoint(packed)))
    report = measure_run(files, logs)
    assert [member.name for member in report.members] == [f"run/checkpoint-{n}" for n in (2, 1, 0)]
    assert [member.at for member in report.members] == [10, 20, 30] and report.axis == "step"
    assert report.left_out == () and len(report.tensors) == 7
    moved = (of[0]["fc.weight"] - of[2]["fc.weight"]).double().norm()
    row = [tensor.name for tensor in report.tensors].index("fc.weight")
    assert report.series(Measure.FROM_FIRST)[row, -1] == pytest.approx(float(moved))
    # Of one checkpoint alone the parts are no members.
    with tarfile.open(packed, "w") as tar:
        tar.add(tmp_path / "run" / "checkpoint-0", "run")
    whole = RunFile(name="run.tar", opening=lambda: open_checkpoint(packed))
    files, _ = files_at(packed, "run.tar", whole)
    assert (files == [whole]) is sharded
