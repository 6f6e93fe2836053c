"""Files cut short: where they end, what of which tensor is lost, and that the rest can be read and written."""

from __future__ import annotations

import io
import json
from collections import OrderedDict
from pathlib import Path

import pytest
import safetensors.torch
import torch

from inspector.checkpoint.data import read_array
from inspector.checkpoint.types import Checkpoint
from inspector.cli.main import run
from inspector.errors import ExportError, InspectorError
from inspector.exports.convert import export_as_is
from inspector.findings import Finding
from inspector.readers import open_checkpoint
from inspector.units import human_bytes

STATE = OrderedDict(
    a=torch.arange(1, 31, dtype=torch.float32), b=torch.arange(100, 112).reshape(3, 4), c=torch.full((9,), 7.25)
)

KINDS = ["zip", "legacy", "safetensors"]


def whole(kind: str, state: dict[str, torch.Tensor] = STATE) -> bytes:
    if kind == "safetensors":
        return safetensors.torch.save(state)
    buffer = io.BytesIO()
    torch.save(state, buffer, _use_new_zipfile_serialization=kind == "zip")
    return buffer.getvalue()


def cut_finding(checkpoint: Checkpoint) -> Finding:
    (finding,) = [f for f in checkpoint.findings if f.id == "cut-short"]
    return finding


def present(data: bytes, n: int) -> dict[str, int]:
    """Bytes of each tensor among the first n bytes, found by looking for the numbers themselves."""
    raw = {name: t.numpy().tobytes() for name, t in STATE.items()}
    return {name: max(0, min(n - data.index(r), len(r))) for name, r in raw.items()}


def torch_says(data: bytes) -> str:
    try:
        torch.load(io.BytesIO(data), weights_only=True)
    except (RuntimeError, ValueError, EOFError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("kind", KINDS)
def test_every_cut_among_the_numbers_tells_each_tensors_loss(kind: str) -> None:
    data = whole(kind)
    total = {name: t.numel() * t.itemsize for name, t in STATE.items()}
    first = min(data.index(t.numpy().tobytes()) for t in STATE.values())
    for n in range(first, len(data)):
        checkpoint = open_checkpoint(data[:n], name="half")
        finding, there = cut_finding(checkpoint), present(data, n)
        evidence = dict(finding.evidence)
        cut = {name for name in STATE if 0 < there[name] < total[name]}
        lost = {name for name in STATE if not there[name]}
        assert evidence["ends_at"] == n and f"it ends at byte {n:,}" in finding.says
        assert evidence["present_nbytes"] == sum(there.values())
        counts = (evidence["tensors_whole"], evidence["tensors_cut"], evidence["tensors_lost"])
        assert counts == (3 - len(cut) - len(lost), len(cut), len(lost)), n
        assert set(finding.subjects) == cut | lost
        for name in cut:
            gone = 100 * (total[name] - there[name]) / total[name]
            assert evidence[f"percent gone of {name}"] == pytest.approx(gone, abs=0.006)
        if kind == "zip":
            assert evidence["missing_nbytes"] == sum(total.values()) - sum(there.values())
        else:
            assert evidence["missing_nbytes"] == len(data) - n
        for info in checkpoint.tensors:
            if info.name not in cut | lost:
                assert read_array(checkpoint, info).tolist() == STATE[info.name].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_the_words_are_those_of_the_formats_own_loader(kind: str) -> None:
    data = whole(kind)
    first = min(data.index(t.numpy().tobytes()) for t in STATE.values())
    for n in range(first, len(data), 3):
        says = str(dict(cut_finding(open_checkpoint(data[:n])).evidence)["error"])
        if kind == "safetensors":
            with pytest.raises(safetensors.SafetensorError) as caught:
                safetensors.torch.load(data[:n])
            # load_file and load differ in one word of it.
            assert says.replace(" header", "") in str(caught.value).replace(" header", "")
        elif kind == "legacy":
            assert says == torch_says(data[:n]), n
        else:
            assert says in torch_says(data[:n])


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_at_every_byte_is_an_error_of_ours_or_a_finding(kind: str) -> None:
    data = whole(kind)
    for n in range(len(data)):
        try:
            checkpoint = open_checkpoint(data[:n])
        except InspectorError as error:
            assert error.says
            continue
        assert {f.id for f in checkpoint.findings} & {"cut-short", "broken-pickle"}, n
        evidence = [dict(f.evidence) for f in checkpoint.findings if f.id == "cut-short"]
        for found in evidence:
            kept = found["tensors_whole"] + found["tensors_cut"] + found["tensors_lost"]
            assert kept == len(checkpoint.tensors)


def test_a_cut_at_every_boundary_of_a_larger_archive() -> None:
    state = OrderedDict((f"w{n}", torch.full((40 + n,), float(n + 1))) for n in range(12))
    data = whole("zip", state)
    starts = [data.index(t.numpy().tobytes()) for t in state.values()]
    for number, start in enumerate(starts):
        end = start + 4 * (40 + number)
        for n, cut, lost in ((start, 0, 12 - number), (start + 1, 1, 11 - number), (end - 1, 1, 11 - number)):
            evidence = dict(cut_finding(open_checkpoint(data[:n])).evidence)
            assert (evidence["tensors_cut"], evidence["tensors_lost"]) == (cut, lost), (number, n)
        assert dict(cut_finding(open_checkpoint(data[:end])).evidence)["tensors_whole"] == number + 1


def test_tied_tensors_and_slices_are_counted_each_by_its_own_bytes() -> None:
    block = torch.arange(100, dtype=torch.float32)
    state = {"head": block[:25], "tail": block[75:], "all": block, "again": block, "every_other": block[::2]}
    data = whole("zip", state)
    checkpoint = open_checkpoint(data[: data.index(block.numpy().tobytes()) + 200])
    evidence = dict(cut_finding(checkpoint).evidence)
    # 200 of 400 bytes: the head is whole, the tail (bytes 300 to 400) lost, two have 50 % and one 196 of 396 less.
    assert (evidence["tensors_whole"], evidence["tensors_cut"], evidence["tensors_lost"]) == (1, 3, 1)
    assert evidence["percent gone of all"] == evidence["percent gone of again"] == 50.0
    assert evidence["percent gone of every_other"] == 49.49  # (396 - 200) / 396
    head = next(t for t in checkpoint.tensors if t.name == "head")
    assert read_array(checkpoint, head).tolist() == list(range(25))


def test_a_cut_inside_the_pickle_says_that_more_may_have_followed() -> None:
    data = whole("zip")
    finding = cut_finding(open_checkpoint(data[: data.index(b"_rebuild_tensor_v2") + 160]))
    assert "more tensors may have followed" in finding.says


@pytest.mark.parametrize(("kind", "of"), [("zip", "the tensors"), ("legacy", "the file"), ("safetensors", "the file")])
def test_a_cut_says_of_what_the_missing_bytes_are_and_how_many_tensors_it_does_not_name(kind: str, of: str) -> None:
    data = whole(kind)
    first = min(data.index(t.numpy().tobytes()) for t in STATE.values())
    finding = cut_finding(open_checkpoint(data[:first]))
    missing = sum(t.numel() * t.itemsize for t in STATE.values()) if kind == "zip" else len(data) - first
    assert f"Of {of} {human_bytes(missing)} are missing." in finding.says
    assert f"3 tensors are lost ({finding.subjects[0]} and 2 more), 0 whole." in finding.says


def test_a_cut_inside_the_list_of_storages() -> None:
    data = whole("legacy")
    first = min(data.index(t.numpy().tobytes()) for t in STATE.values())
    finding = cut_finding(open_checkpoint(data[: first - 12]))
    assert "its list of storages" in finding.says and "3 tensors are lost" in finding.says
    assert "salvage" not in finding.remedy


@pytest.mark.parametrize("kind", KINDS)
def test_whole_files_are_not_said_to_be_cut(kind: str) -> None:
    assert "cut-short" not in {f.id for f in open_checkpoint(whole(kind)).findings}


# -- the way out ------------------------------------------------------------------------------------------------------


def cut_file(tmp_path: Path, kind: str) -> Path:
    """All of one tensor and a part of another; the third as the format orders them."""
    data = whole(kind)
    path = tmp_path / f"half.{'safetensors' if kind == 'safetensors' else 'pth'}"
    second = sorted(data.index(t.numpy().tobytes()) for t in STATE.values())[1]
    path.write_bytes(data[: second + 8])
    return path


@pytest.mark.parametrize("writer", ["pth", "safetensors"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_whole_is_written_and_the_rest_is_named(kind: str, writer: str, tmp_path: Path) -> None:
    checkpoint = open_checkpoint(cut_file(tmp_path, kind))
    out = tmp_path / "out.file"
    report = export_as_is(checkpoint, checkpoint.weights, out, writer=writer, salvage=True)
    again = safetensors.torch.load(out.read_bytes()) if writer == "safetensors" else torch.load(out, weights_only=True)
    assert len(again) == report.tensors == 1
    for name, tensor in again.items():
        assert tensor.dtype is STATE[name].dtype and torch.equal(tensor, STATE[name])
    left = {line.partition(":")[0] for line in report.lost}
    assert left | set(again) == set(STATE) and not left & set(again)
    assert any("100 % of it is not in the file" in line for line in report.lost)
    assert report.verification.holds


def test_a_whole_file_is_written_whole(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(whole("zip"))
    report = export_as_is(checkpoint, checkpoint.weights, tmp_path / "out.pth", salvage=True)
    assert report.lost == () and report.tensors == 3
    assert list(torch.load(tmp_path / "out.pth", weights_only=True)) == list(STATE)


def test_nothing_whole_writes_nothing(tmp_path: Path) -> None:
    data = whole("zip")
    checkpoint = open_checkpoint(data[: data.index(STATE["a"].numpy().tobytes()) + 1])
    with pytest.raises(ExportError, match="none of 3 tensors"):
        export_as_is(checkpoint, checkpoint.weights, tmp_path / "out.pth", salvage=True)
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_asks_for_it_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = cut_file(tmp_path, "zip"), tmp_path / "out.safetensors"
    (tmp_path / "keys.txt").write_text("a\nb\nc\n")
    assert run(["repair", str(path), "--target", f"keys:{tmp_path / 'keys.txt'}", "-o", str(out)]) != 0
    assert not out.exists()
    capsys.readouterr()
    assert run(["convert", str(path), "--salvage", "-o", str(out), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)["export"]
    assert [line.partition(":")[0] for line in report["lost"]] == ["b", "c"]
    assert list(safetensors.torch.load_file(out)) == ["a"]
    assert run(["convert", str(path), "-o", str(tmp_path / "x.pth")]) == 1 and not (tmp_path / "x.pth").exists()
