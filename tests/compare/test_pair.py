"""What one tensor is to another, for every kind of tensor that a file can hold."""

from __future__ import annotations

import math
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from inspector.compare import pair
from inspector.compare.diff import compare_checkpoints
from inspector.compare.report import Diff, Relation, Reshape, TensorDiff
from inspector.readers import open_checkpoint
from tests.compare.files import bf16, compare, compare_one, opened, write

R = Relation


def saved(folder: Path, name: str, state: object) -> Path:
    path = folder / name
    torch.save(state, path)
    return path


def pickled(folder: Path, a: object, b: object) -> Diff:
    return compare_checkpoints(opened(saved(folder, "a.pth", a)), opened(saved(folder, "b.pth", b)))


def one(diff: Diff, name: str = "w") -> TensorDiff:
    return next(t for t in diff.tensors if t.name == name)


@pytest.mark.parametrize(
    "value",
    [
        np.float32(3), np.zeros((0, 4), np.float32), np.array([math.nan, 1], np.float32), np.arange(5),
        np.array([True, False]), np.array([1 + 2j], np.complex64), ("BF16", np.arange(6, dtype=np.uint16)),
        ("F8_E4M3", np.arange(256, dtype=np.uint8)), np.float16([1, 2]), np.uint8([1]),
    ],
    ids=str,
)  # fmt: skip
def test_equal_bytes_are_the_same(tmp_path: Path, value: object) -> None:
    found = compare_one(tmp_path, value, value)
    assert (found.relation, found.numbers, found.note) == (R.SAME, None, "")


def test_a_pickle_and_a_safetensors_file_of_the_same_weights_are_the_same(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = {"b": torch.randn(3, 4), "a": torch.arange(5), "h": torch.randn(4).bfloat16(), "s": torch.tensor(1.5)}
    path = saved(tmp_path, "a.pth", state)
    arrays = {
        "s": np.float32(1.5), "h": ("BF16", state["h"].view(torch.int16).numpy().view(np.uint16)),
        "a": state["a"].numpy(), "b": state["b"].numpy(),
    }  # fmt: skip
    found = compare_checkpoints(opened(path), opened(write(tmp_path / "b.safetensors", arrays)))
    assert [t.relation for t in found.tensors] == [R.SAME] * 4
    assert not found.differs()
    assert {other.kind.is_container for other in found.others} == {True}


def test_views_are_compared_as_they_show_their_elements(tmp_path: Path) -> None:
    base = torch.arange(24.0).reshape(4, 6)
    found = pickled(
        tmp_path,
        {"w": base.t(), "v": base[::2], "e": base[:1].expand(4, 6)},
        {"w": base.t().contiguous(), "v": base[::2].clone(), "e": base[:1].expand(4, 6).clone()},
    )
    assert {t.name: t.relation for t in found.tensors} == {"w": R.SAME, "v": R.SAME, "e": R.SAME}
    other = one(pickled(tmp_path, {"w": base.t()}, {"w": base.t() + 1}))
    assert other.numbers is not None
    assert (other.relation, other.numbers.square_delta) == (R.CHANGED, 24.0)


def test_a_big_endian_file_holds_the_same_numbers(tmp_path: Path) -> None:
    values = np.arange(10, dtype=np.float32)
    np.savez(tmp_path / "little.npz", w=values.astype("<f4"))
    np.savez(tmp_path / "big.npz", w=values.astype(">f4"))
    found = compare_checkpoints(opened(tmp_path / "little.npz"), opened(tmp_path / "big.npz"))
    assert one(found).relation is R.SAME
    np.savez(tmp_path / "big.npz", w=(values + 1).astype(">f4"))
    other = one(compare_checkpoints(opened(tmp_path / "little.npz"), opened(tmp_path / "big.npz")))
    assert other.numbers is not None
    assert other.numbers.square_delta == 10


def test_only_the_sign_of_a_zero_differs(tmp_path: Path) -> None:
    found = compare_one(tmp_path, np.array([0.0, 1.0]), np.array([-0.0, 1.0]))
    assert (found.relation, found.note) == (R.CHANGED, "only signs of zeros, or bits of NaN, differ")
    assert found.differs()
    assert not found.differs(0.0)


@pytest.mark.parametrize(
    ("a", "b", "reshape", "axes", "rows"),
    [
        (np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(2, 6), Reshape.ROW_MAJOR, (), 0),
        (np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4, 1, 1), Reshape.ROW_MAJOR, (), 0),
        (np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4).T, Reshape.TRANSPOSED, (1, 0), 0),
        (np.arange(24.0).reshape(2, 3, 4, 1), np.arange(24.0).reshape(2, 3, 4, 1).transpose(2, 3, 1, 0),
         Reshape.TRANSPOSED, (2, 3, 1, 0), 0),
        (np.arange(12.0).reshape(3, 4), np.arange(20.0).reshape(5, 4), Reshape.FIRST_ROWS, (), 3),
        (np.arange(20.0).reshape(5, 4), np.arange(12.0).reshape(3, 4), Reshape.FIRST_ROWS, (), 3),
        (np.arange(12.0).reshape(3, 4), np.arange(1, 21.0).reshape(5, 4), Reshape.OTHER, (), 3),
        (np.arange(12.0).reshape(3, 4), np.arange(1, 13.0).reshape(4, 3), Reshape.OTHER, (), 0),
        (np.arange(12.0).reshape(3, 4), np.arange(10.0), Reshape.OTHER, (), 0),
        (np.arange(12.0).reshape(3, 4), np.zeros((0, 4)), Reshape.OTHER, (), 0),
        (np.arange(3.0), np.float64(1), Reshape.OTHER, (), 0),
    ],
)  # fmt: skip
def test_another_shape(
    tmp_path: Path, a: object, b: object, reshape: Reshape, axes: tuple[int, ...], rows: int
) -> None:
    found = compare_one(tmp_path, a, b)
    assert (found.relation, found.reshape, found.axes, found.rows) == (R.RESHAPED, reshape, axes, rows)
    assert found.differs(1.0)


def test_rows_that_both_have_are_measured_where_they_differ(tmp_path: Path) -> None:
    a = np.ones((3, 4), np.float32)
    b = np.concatenate([a + np.eye(3, 4, dtype=np.float32), a])
    found = compare_one(tmp_path, a, b)
    assert found.numbers is not None
    assert (found.numbers.n, found.numbers.square_delta) == (12, 3)


def test_axes_of_large_tensors_are_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair, "MOST_TRANSPOSED_NBYTES", 10)
    a = np.arange(12.0).reshape(3, 4)
    found = compare_one(tmp_path, a, a.T)
    assert found.reshape is Reshape.UNKNOWN
    assert "is looked at up to" in found.note


def test_quantised_by_torch(tmp_path: Path) -> None:
    torch.manual_seed(0)
    weight = torch.randn(4, 5)
    made = torch.quantize_per_tensor(weight, 0.1, 3, torch.qint8)
    again = torch.quantize_per_tensor(weight, 0.2, 3, torch.qint8)
    diff = pickled(tmp_path, {"w": made, "v": made, "x": made}, {"w": made, "v": again, "x": made.dequantize()})
    assert one(diff, "w").relation is R.SAME
    scaled = one(diff, "v")
    exact = (again.dequantize().double() - made.dequantize().double()).square().sum().item()
    assert scaled.numbers is not None
    assert scaled.relation is R.CHANGED
    assert scaled.numbers.square_delta == pytest.approx(exact, rel=1e-13)
    assert (one(diff, "x").relation, one(diff, "x").note) == (R.CAST, "every number as it was")


def test_scales_of_channels_count(tmp_path: Path) -> None:
    weight = torch.randn(3, 4)
    zeros = torch.zeros(3, dtype=torch.int64)
    a, b = (
        torch.quantize_per_channel(weight, torch.tensor(s), zeros, 0, torch.qint8) for s in ([0.1] * 3, [0.1, 0.1, 0.1])
    )
    c = torch._make_per_channel_quantized_tensor(a.int_repr(), torch.tensor([0.1, 0.1, 0.3]).double(), zeros, 0)
    diff = pickled(tmp_path, {"w": a, "v": a}, {"w": b, "v": c})
    assert one(diff, "w").relation is R.SAME
    found = one(diff, "v")
    assert found.numbers is not None
    assert found.relation is R.CHANGED
    assert found.numbers.largest is not None
    assert found.numbers.largest.index >= 8


def test_sparse(tmp_path: Path) -> None:
    def sparse(places: list[int], values: list[float]) -> torch.Tensor:
        return torch.sparse_coo_tensor(torch.tensor([places]), torch.tensor(values), (9,)).coalesce()

    first = sparse([1, 5], [1.0, 2.0])
    diff = pickled(
        tmp_path,
        {"w": first, "v": first, "x": first},
        {"w": sparse([1, 5], [1.0, 2.0]), "v": sparse([1, 5], [1.0, 4.0]), "x": sparse([1, 6], [1.0, 2.0])},
    )
    assert one(diff, "w").relation is R.SAME
    values = one(diff, "v")
    assert values.numbers is not None
    assert (values.relation, values.numbers.square_delta) == (R.CHANGED, 4.0)
    # The same stored values at another place are two elements that differ.
    elsewhere = one(diff, "x").numbers
    assert elsewhere is not None
    assert (elsewhere.n, elsewhere.equal, elsewhere.square_delta) == (9, 7, 8.0)


def test_ggml_blocks(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((4, 64)).astype(np.float32)

    def file(name: str, values: np.ndarray, kind: gguf.GGMLQuantizationType | None) -> Path:
        writer = gguf.GGUFWriter(tmp_path / name, "llama")
        raw = gguf.quants.quantize(values, kind) if kind is not None else values
        writer.add_tensor("blk.0.attn_q.weight", raw, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return tmp_path / name

    kind = gguf.GGMLQuantizationType.Q8_0
    a = file("a.gguf", weight, kind)
    meant = gguf.quants.dequantize(gguf.quants.quantize(weight, kind), kind)
    same = compare_checkpoints(opened(a), opened(file("b.gguf", weight, kind)))
    assert same.tensors[0].relation is R.SAME
    plain = compare_checkpoints(opened(a), opened(file("c.gguf", weight, None))).tensors[0]
    assert plain.numbers is not None
    assert plain.a is not None
    assert (plain.relation, plain.a.dtype) == (R.CHANGED, "Q8_0")
    exact = math.fsum(((weight.astype(np.float64) - meant) ** 2).ravel())
    assert plain.numbers.square_delta == pytest.approx(exact, rel=1e-12)
    decoded = compare_checkpoints(opened(a), opened(file("d.gguf", meant, None))).tensors[0]
    assert (decoded.relation, decoded.note) == (R.CAST, "every number as it was")


def test_packed_codes_are_no_numbers_of_another_type(tmp_path: Path) -> None:
    codes = np.arange(6, dtype=np.int32).reshape(2, 3)
    diff = compare(tmp_path, {"qweight": codes}, {"qweight": codes.astype(np.float32)})
    assert diff.tensors[0].relation is R.UNREAD
    assert "packed codes" in diff.tensors[0].note


def test_real_and_complex_are_not_measured(tmp_path: Path) -> None:
    found = compare_one(tmp_path, np.ones(3, np.complex64), np.ones(3, np.float32))
    assert found.relation is R.UNREAD
    assert found.differs(1e9)


def test_a_cut_file_is_unread_where_it_is_cut(tmp_path: Path) -> None:
    a = write(tmp_path / "a.safetensors", {"w": np.arange(8.0), "v": np.arange(800.0)})
    whole = a.read_bytes()
    b = tmp_path / "b.safetensors"
    b.write_bytes(whole[:-100])
    found = compare_checkpoints(opened(a), opened(b))
    assert {t.name: t.relation for t in found.tensors} == {"w": R.SAME, "v": R.UNREAD}
    assert found.unread[0].note
    assert found.differs(1e9)


def test_meta_tensors_are_unread(tmp_path: Path) -> None:
    found = pickled(tmp_path, {"w": torch.empty(3, device="meta")}, {"w": torch.ones(3)})
    assert one(found).relation is R.UNREAD


def test_shared_storages_are_read_once(tmp_path: Path) -> None:
    weight = torch.randn(100, 100)
    found = pickled(tmp_path, {"w": weight, "v": weight}, {"w": weight * 2, "v": weight * 2})
    assert [t.relation for t in found.tensors] == [R.CHANGED] * 2
    tied = pickled(tmp_path, {"w": weight, "v": weight}, (lambda x: {"w": x, "v": x})(weight + 1))
    assert tied.read_nbytes < 1.6 * found.read_nbytes
    assert tied.read_nbytes <= 2 * 2 * weight.nbytes


def test_two_state_dicts_of_one_file(tmp_path: Path) -> None:
    weight = torch.randn(50)
    path = saved(tmp_path, "a.pth", {"model": {"w": weight, "v": weight + 0}, "ema": {"w": weight, "v": weight + 1}})
    checkpoint = opened(path)
    states = {state.label: state for state in checkpoint.state_dicts}
    found = compare_checkpoints(checkpoint, checkpoint, a_state=states["model"], b_state=states["ema"])
    assert {t.name: (t.relation, t.note) for t in found.tensors} == {
        "w": (R.SAME, "one tensor of one file"),
        "v": (R.CHANGED, ""),
    }


def test_known_digests_spare_the_read(tmp_path: Path) -> None:
    from dataclasses import replace

    checkpoint = opened(write(tmp_path / "a.safetensors", {"w": np.arange(8.0)}))
    other = opened(write(tmp_path / "b.safetensors", {"w": np.arange(8.0)}))
    known = [replace(c, origin=replace(c.origin, sha256="0" * 64)) for c in (checkpoint, other)]
    found = compare_checkpoints(known[0], known[1])
    assert (found.read_nbytes, found.tensors[0].by_digest, found.tensors[0].relation) == (0, True, R.SAME)
    unknown = compare_checkpoints(checkpoint, known[1])
    assert (unknown.read_nbytes, unknown.tensors[0].by_digest) == (128, False)


def test_threads_give_the_same_report(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a = {f"l{i}.weight": rng.standard_normal((50, 40)).astype(np.float32) for i in range(12)}
    b = {name: value + 0.1 if i % 3 else value for i, (name, value) in enumerate(a.items())}
    x, y = opened(write(tmp_path / "a.safetensors", a)), opened(write(tmp_path / "b.safetensors", b))
    found = [compare_checkpoints(x, y, workers=n) for n in (1, 4)]
    assert repr(found[0].tensors) == repr(found[1].tensors)


def test_bytes_come_from_any_source(tmp_path: Path) -> None:
    """Of a buffer as of a path: only the path reads into memory that is there already."""
    from inspector.checkpoint.source import BufferSource

    rng = np.random.default_rng(0)
    a = write(tmp_path / "a.safetensors", {"w": rng.standard_normal(70_000).astype(np.float32)})
    b = write(tmp_path / "b.safetensors", {"w": rng.standard_normal(70_000).astype(np.float32)})
    by_path = compare_checkpoints(opened(a), opened(b))
    held = [open_checkpoint(BufferSource(path.read_bytes(), path.name)) for path in (a, b)]
    by_bytes = compare_checkpoints(held[0], held[1])
    assert by_path.tensors == by_bytes.tensors


def test_a_report_pickles_without_torch(tmp_path: Path) -> None:
    import pickle
    import subprocess
    import sys

    found = compare(tmp_path, {"w": np.ones(3)}, {"w": np.zeros(3)})
    (tmp_path / "report").write_bytes(pickle.dumps(found))
    code = "import pickle, sys; r = pickle.load(open(sys.argv[1], 'rb')); print(r.says, 'torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code, tmp_path / "report"], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == f"{found.says} False"


def test_progress_can_stop_it(tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def stop(done: int, total: int | None, note: str) -> None:
        raise Enough

    a = opened(write(tmp_path / "a.safetensors", {"w": np.ones(3)}))
    with pytest.raises(Enough):
        compare_checkpoints(a, opened(write(tmp_path / "b.safetensors", {"w": np.zeros(3)})), progress=stop)


def test_hostile_names(tmp_path: Path) -> None:
    names = ["a\nb", "\x1b[31mred", "../../etc/passwd", "x" * 5000, ".".join(["d"] * 500), "", "ü.weight"]
    arrays = {name: np.full(3, float(i)) for i, name in enumerate(names)}
    found = compare(tmp_path, arrays, {name: value + 1 for name, value in arrays.items()})
    assert found.totals.count(R.CHANGED) == len(names)
    assert len(found.modules) < 200


def test_the_bf16_helper_is_right() -> None:
    assert (bf16(np.array([1.0, -2.0])) == [0x3F80, 0xC000]).all()
