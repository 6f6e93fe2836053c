"""One tensor at a time, and the same bytes as torch.save writes with all of them in memory."""

from __future__ import annotations

import io
import weakref
import zipfile
from collections import OrderedDict

import pytest
import torch
from safetensors.torch import load_file

from inspector.checkpoint.raw_tensor import read_raw
from inspector.errors import ExportError
from inspector.exports import sources
from inspector.exports.convert import export_as_is
from inspector.exports.sources import stream_of_tensors
from inspector.progress import Stopped
from inspector.readers import open_checkpoint


def odd_state() -> OrderedDict[str, torch.Tensor]:
    """Every way in which tensors lie in memory that torch.save keeps, and every element type that is written apart."""
    torch.manual_seed(0)
    base = torch.randn(6, 4)
    state: OrderedDict[str, torch.Tensor] = OrderedDict(
        a=torch.randn(3, 5),
        tied=base,
        turned=base.t(),
        row=base[2],
        last=torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
        expanded=torch.tensor([2.5]).expand(7, 3),
        again=base.detach(),
        scalar=torch.tensor(7),
        empty=torch.empty(0, 3),
        flag=torch.tensor([True, False]),
        half=torch.randn(5).half(),
        brain=torch.randn(5).bfloat16(),
        eight=torch.randn(5).to(torch.float8_e4m3fn),
        wide=torch.randn(2, dtype=torch.complex64),
        nan=torch.tensor([float("nan"), -0.0, float("inf")]),
        unsigned=torch.tensor([1, 65535], dtype=torch.uint16),
    )
    state._metadata = OrderedDict({"": {"version": 1}, "norm": {"version": 2}})
    return state


def bits(tensor: torch.Tensor) -> bytes:
    flat = tensor.contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def same(one, other) -> bool:
    return list(one) == list(other) and all(
        one[n].dtype is other[n].dtype and one[n].shape == other[n].shape and bits(one[n]) == bits(other[n])
        for n in one
    )


def convert(path, out, **options):
    checkpoint = open_checkpoint(path)
    return export_as_is(checkpoint, checkpoint.weights, out, **options)


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def members(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {n.partition("/")[2]: archive.read(n) for n in archive.namelist()}


def test_the_zip_is_the_one_that_torch_save_writes(tmp_path):
    """torch's own file of the same state is the oracle, member by member: pickle, keys, order, bytes."""
    state = odd_state()
    torch.save(state, tmp_path / "in.pth")
    report = convert(tmp_path / "in.pth", tmp_path / "out.pth")
    again = torch.load(tmp_path / "out.pth", weights_only=True)
    assert same(again, state) and dict(again._metadata) == dict(state._metadata)
    ours, theirs = members(tmp_path / "out.pth"), members(tmp_path / "in.pth")
    identity = ".data/serialization_id"  # a hash over the archive's own names
    assert list(ours) == list(theirs)
    assert all(ours[name] == theirs[name] for name in theirs if name != identity)
    assert report.tensors == len(state) and report.lost == ()


def test_the_zip_is_laid_out_as_torch_lays_it_out(tmp_path):
    """Byte for byte what torch.save writes to a buffer, but for the hash of names that its own library computes."""
    torch.save(odd_state(), tmp_path / "in.pth")
    convert(tmp_path / "in.pth", tmp_path / "out.pth")
    buffer = io.BytesIO()
    torch.save(odd_state(), buffer)
    ours, theirs = (tmp_path / "out.pth").read_bytes(), buffer.getvalue()
    assert len(ours) == len(theirs)
    last = theirs.index(b"archive/.data/serialization_id")
    directory = theirs.index(b"PK\x01\x02")
    entry = theirs.index(b"archive/.data/serialization_id", directory)
    assert ours[:last] == theirs[:last] and ours[directory : entry - 30] == theirs[directory : entry - 30]
    # Behind them the checksum of the hash, which the directory repeats in its last entry.
    assert ours[entry - 26 :] == theirs[entry - 26 :]


def test_strides_and_ties_come_back_as_they_were(tmp_path):
    torch.save(odd_state(), tmp_path / "in.pth")
    convert(tmp_path / "in.pth", tmp_path / "out.pth")
    again = torch.load(tmp_path / "out.pth", weights_only=True)
    one = {again[n].untyped_storage().data_ptr() for n in ("tied", "turned", "row", "again")}
    assert len(one) == 1 and again["last"].is_contiguous(memory_format=torch.channels_last)
    again["tied"][2, 1] = 99.0
    assert again["turned"][1, 2] == 99.0 and again["row"][1] == 99.0 and again["again"][2, 1] == 99.0


def test_the_legacy_file_loads_as_torch_saved_it(tmp_path):
    state = odd_state()
    for name in ("eight", "unsigned", "wide"):
        del state[name]
    torch.save(state, tmp_path / "in.pth")
    convert(tmp_path / "in.pth", tmp_path / "out.pth", writer="pth-legacy")
    torch.save(state, tmp_path / "theirs.pth", _use_new_zipfile_serialization=False)
    again = torch.load(tmp_path / "out.pth", weights_only=True)
    assert same(again, state) and again["row"].untyped_storage().data_ptr() == again["tied"].data_ptr()
    assert (tmp_path / "out.pth").stat().st_size == pytest.approx((tmp_path / "theirs.pth").stat().st_size, abs=200)


def test_safetensors_holds_the_same_and_declares_ties(tmp_path):
    import json

    import safetensors

    state = odd_state()
    torch.save(state, tmp_path / "in.pth")
    report = convert(tmp_path / "in.pth", tmp_path / "out.safetensors", writer="safetensors")
    again = load_file(tmp_path / "out.safetensors")
    assert all(again[n].dtype is t.dtype and bits(again[n]) == bits(t) for n, t in state.items())
    with safetensors.safe_open(tmp_path / "out.safetensors", "pt") as opened:
        declared = json.loads(opened.metadata()["tied_tensors"])
    assert declared == {"turned": "tied", "row": "tied", "again": "tied"}
    assert "row shares memory with tied; the file holds both." in report.lost
    assert any(line.startswith("_metadata") for line in report.lost)


def test_a_saved_slice_leaves_its_large_storage_behind(tmp_path):
    big = torch.arange(10_000.0).reshape(100, 100)
    torch.save({"w": big[3:5], "gaps": torch.arange(4_000.0)[::2]}, tmp_path / "in.pth")
    report = convert(tmp_path / "in.pth", tmp_path / "out.pth")
    again = torch.load(tmp_path / "out.pth", weights_only=True)
    assert torch.equal(again["w"], big[3:5]) and again["w"].untyped_storage().nbytes() == 800
    assert again["gaps"].untyped_storage().nbytes() == 8_000 and again["gaps"].is_contiguous()
    # 40,000 - 800 bytes of the one, and the last element of the other; gaps between elements are no storage's end.
    assert "39.2 kB of storages that no tensor shows" in report.lost
    assert (tmp_path / "out.pth").stat().st_size < 12_000 < 56_000 < (tmp_path / "in.pth").stat().st_size


def test_slices_side_by_side_are_no_tie(tmp_path):
    """Quiet twin of the ties: rows of one storage that do not overlap are written apart, and nothing is said."""
    q, k = torch.arange(24.0).reshape(6, 4).split(3)
    torch.save({"q": q, "k": k}, tmp_path / "in.pth")
    report = convert(tmp_path / "in.pth", tmp_path / "out.safetensors", writer="safetensors")
    assert report.lost == ()
    convert(tmp_path / "in.pth", tmp_path / "out.pth")
    again = torch.load(tmp_path / "out.pth", weights_only=True)
    assert torch.equal(again["k"], k) and again["k"].untyped_storage().data_ptr() != again["q"].data_ptr()


@pytest.mark.parametrize("writer", ["pth", "safetensors", "pth-legacy"])
def test_no_two_tensors_are_in_memory_at_once(writer, tmp_path, monkeypatch):
    torch.save({f"w{n}": torch.randn(50, 50) for n in range(12)}, tmp_path / "in.pth")
    alive: list[int] = [0]
    most: list[int] = []

    def counted(checkpoint, info):
        made = read_raw(checkpoint, info)
        alive[0] += 1
        most.append(alive[0])
        weakref.finalize(made.array, lambda: alive.__setitem__(0, alive[0] - 1))
        return made

    monkeypatch.setattr(sources, "read_raw", counted)
    convert(tmp_path / "in.pth", tmp_path / "out.pth", writer=writer)
    # Python lets go of a loop's tensor when it has the next: two, however many there are.
    assert len(most) == 24 and max(most) <= 2


@pytest.mark.parametrize("writer", ["pth", "safetensors", "pth-legacy"])
@pytest.mark.parametrize("shard_nbytes", [None, 2_000])
@pytest.mark.parametrize("stop_at", [0, 2, 5, 7])
def test_stopping_leaves_nothing(writer, shard_nbytes, stop_at, tmp_path):
    torch.save({f"w{n}": torch.randn(10, 10) for n in range(4)}, tmp_path / "in.pth")
    seen = []

    def stop(done, total, note):
        seen.append((done, total, note))
        if done == stop_at:
            raise Stopped

    with pytest.raises(Stopped):
        convert(tmp_path / "in.pth", tmp_path / "out", writer=writer, shard_nbytes=shard_nbytes, progress=stop)
    assert files(tmp_path) == ["in.pth"]
    assert seen[-1] == (stop_at, 8, f"w{stop_at % 4}")


def test_a_file_cut_short_is_refused_with_the_way_on(tmp_path):
    torch.save({"a": torch.ones(64), "b": torch.ones(64)}, tmp_path / "in.pth")
    data = (tmp_path / "in.pth").read_bytes()
    cut = data[: data.rindex(torch.ones(64).numpy().tobytes()) + 100]
    (tmp_path / "cut.pth").write_bytes(cut)
    with pytest.raises(ExportError, match=r"Nothing was written: b: 60.9 % of it is not in the file.*--salvage"):
        convert(tmp_path / "cut.pth", tmp_path / "out.pth")
    assert files(tmp_path) == ["cut.pth", "in.pth"]


def test_a_file_that_changes_while_it_is_copied_is_not_written(tmp_path):
    """What is compared is read from the source once more: the copy of a moving file is no copy."""
    torch.save({f"w{n}": torch.full((10,), float(n)) for n in range(3)}, tmp_path / "in.pth")
    data = (tmp_path / "in.pth").read_bytes()
    other = data.replace(torch.full((10,), 1.0).numpy().tobytes(), torch.full((10,), 5.0).numpy().tobytes())

    def meddle(done, total, note):
        if done == 3:
            (tmp_path / "in.pth").write_bytes(other)

    with pytest.raises(ExportError, match=r"w1 reads back otherwise"):
        convert(tmp_path / "in.pth", tmp_path / "out.pth", progress=meddle)
    assert files(tmp_path) == ["in.pth"]


def test_a_stream_knows_shapes_before_numbers(tmp_path):
    torch.save(odd_state(), tmp_path / "in.pth")
    checkpoint = open_checkpoint(tmp_path / "in.pth")
    stream = stream_of_tensors(checkpoint, checkpoint.weights.tensors)
    assert stream.shapes == {n: tuple(t.shape) for n, t in odd_state().items()}
    assert stream.ties() == (("turned", "tied"), ("row", "tied"), ("again", "tied"))


def plan_for(path, model, spec=None):
    from inspector.architectures.types import Target, TargetKind, TargetTensor
    from inspector.keys.diagnose import diagnose

    tensors = tuple(TargetTensor(name=n, shape=tuple(t.shape)) for n, t in model.items())
    kind = TargetKind.ARCHITECTURE if spec else TargetKind.FILE
    goal = Target(label="the model", kind=kind, tensors=tensors, spec=spec)
    checkpoint = open_checkpoint(path)
    return checkpoint, diagnose(checkpoint, goal).plan, goal


def test_a_repair_is_proved_on_the_written_file_without_being_held(tmp_path, monkeypatch):
    from inspector.exports import export

    monkeypatch.setattr(export, "verify_plan", lambda *_, **__: pytest.fail("the whole state dict was made"))
    state = {"a.weight": torch.randn(4, 3), "bn.running_var": torch.rand(5), "bn.num_batches_tracked": torch.tensor(2)}
    torch.save({f"module.{n}": t for n, t in state.items()}, tmp_path / "in.pth")
    checkpoint, plan, goal = plan_for(tmp_path / "in.pth", state)
    report = export.export_repaired(checkpoint, plan, goal, tmp_path / "out.pth")
    proofs = {p.id: p for p in report.verification.proofs}
    assert list(proofs) == ["bijection", "strict-load", "bytes", "values", "forward", "reread", "library"]
    assert proofs["bytes"].says == "3 tensors bit for bit the file's." and proofs["forward"].passed is None
    assert same(torch.load(tmp_path / "out.pth", weights_only=True), state)
    ill = {**state, "bn.running_var": torch.tensor([0.5, -0.25, 1, 1, 1])}
    torch.save({f"module.{n}": t for n, t in ill.items()}, tmp_path / "in.pth")
    with pytest.raises(ExportError, match=r"bn.running_var has negative variances"):
        export.export_repaired(*plan_for(tmp_path / "in.pth", state), tmp_path / "other.pth")
    assert files(tmp_path) == ["in.pth", "out.pth"]


def test_a_step_that_goes_wrong_while_streaming_is_caught_by_the_source_bytes(tmp_path, monkeypatch):
    """Wrong in writing and in reading back alike: only the file's own bytes tell."""
    from inspector.exports.export import export_repaired

    real = sources.read_raw
    monkeypatch.setattr(sources, "read_raw", lambda checkpoint, info: real(checkpoint, info).flip((0,)))
    state = {"a.weight": torch.arange(6.0)}
    torch.save({f"module.{n}": t for n, t in state.items()}, tmp_path / "in.pth")
    with pytest.raises(ExportError, match=r"a.weight does not hold the bytes of module.a.weight"):
        export_repaired(*plan_for(tmp_path / "in.pth", state), tmp_path / "out.pth")
    assert files(tmp_path) == ["in.pth"]


def test_above_the_stated_size_no_model_is_built(tmp_path):
    import torchvision

    from inspector.architectures.types import ArchitectureSpec
    from inspector.exports.export import export_repaired

    state = torchvision.models.squeezenet1_1(num_classes=3).state_dict()
    torch.save({f"module.{n}": t for n, t in state.items()}, tmp_path / "in.pth")
    spec = ArchitectureSpec(library="torchvision", name="squeezenet1_1", num_classes=3)
    plan = plan_for(tmp_path / "in.pth", state, spec)
    report = export_repaired(*plan, tmp_path / "out.pth", model_nbytes=1_000_000)
    proofs = {p.id: p for p in report.verification.proofs}
    assert proofs["forward"].passed is None and "above 1.00 MB none is built" in proofs["forward"].says
    assert same(torch.load(tmp_path / "out.pth", weights_only=True), state)


def test_what_cannot_fit_is_refused_before_a_byte_is_written(tmp_path, monkeypatch):
    from collections import namedtuple

    from inspector.exports import write

    torch.save({"w": torch.ones(1000)}, tmp_path / "in.pth")
    monkeypatch.setattr(write.shutil, "disk_usage", lambda _: namedtuple("Usage", "free")(100))
    monkeypatch.setattr(write, "new_file", lambda *_, **__: pytest.fail("a file was made"))
    with pytest.raises(ExportError, match=r"out.pth takes 4.00 kB, and 100 B are free there"):
        convert(tmp_path / "in.pth", tmp_path / "out.pth")


@pytest.mark.parametrize("writer", ["pth", "safetensors"])
def test_a_disk_that_fills_up_leaves_no_shard(writer, tmp_path, monkeypatch):
    torch.save({f"w{n}": torch.ones(100) for n in range(6)}, tmp_path / "in.pth")
    from inspector.exports.writers import WRITERS

    entry = next(w for w in WRITERS if w.id == writer)
    count = []

    def full(stream, path, text, tick):
        count.append(path)
        if len(count) == 3:
            raise OSError(28, "No space left on device")
        return entry.write(stream, path, text, tick)

    from dataclasses import replace

    with pytest.raises(ExportError, match=r"out cannot be written: No space left on device"):
        convert(
            tmp_path / "in.pth",
            tmp_path / "out",
            writer=writer,
            shard_nbytes=1000,
            writers=(replace(entry, write=full),),
        )
    assert len(count) == 3 and files(tmp_path) == ["in.pth"]
