"""A tensor's digest: equal exactly where type, shape and bytes are, however it lies in whichever file."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from inspector import open_checkpoint
from inspector.weights.measure import read_tensors


def digests(path: Path) -> dict[str, tuple[str, bool]]:
    checkpoint = open_checkpoint(path)
    try:
        readings = read_tensors(checkpoint, checkpoint.tensors, digests=True)
        return {tensor.name: readings.digest(tensor) for tensor in checkpoint.tensors}
    finally:
        checkpoint.source.close()


def saved(path: Path, **tensors: torch.Tensor) -> dict[str, tuple[str, bool]]:
    if path.suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path)
    return digests(path)


def test_the_digest_is_of_type_shape_and_bytes_in_row_major_order(tmp_path: Path) -> None:
    torch.manual_seed(0)
    value = torch.randn(300, 1000)
    expected = hashlib.blake2b(b"float32 [300, 1000] strided \n" + value.numpy().tobytes(), digest_size=16).hexdigest()
    for name in ("a.safetensors", "a.pth"):
        assert saved(tmp_path / name, w=value) == {"w": (expected, False)}
    # A view with other strides shows the same elements; two names of one storage are read once.
    turned = value.t().contiguous().t()
    assert not turned.is_contiguous()
    assert saved(tmp_path / "t.pth", w=turned, tied=turned) == {"w": (expected, False), "tied": (expected, False)}


def test_whatever_differs_has_another_digest(tmp_path: Path) -> None:
    torch.manual_seed(0)
    value = torch.randn(4, 6)
    changed = value.clone()
    changed.view(torch.int32)[3, 5] ^= 1
    found = saved(
        tmp_path / "a.pth",
        w=value,
        shape=value.reshape(6, 4),
        kind=value.view(torch.int32).clone(),
        bit=changed,
        sign=torch.zeros(4, 6),
        minus=-torch.zeros(4, 6),
        half=value.to(torch.bfloat16),
    )
    assert len({digest for digest, _ in found.values()}) == len(found) == 7
    assert all(len(digest) == 32 for digest, _ in found.values())
    assert [name for name, (_, constant) in found.items() if constant] == ["sign", "minus"]


def test_what_its_bytes_alone_do_not_tell_has_none(tmp_path: Path) -> None:
    quantised = torch.quantize_per_tensor(torch.randn(4, 4), 0.1, 0, torch.qint8)
    found = saved(
        tmp_path / "a.pth",
        sparse=torch.eye(4).to_sparse(),
        quantised=quantised,
        conjugated=torch.view_as_complex(torch.randn(3, 2)).conj(),
        plain=torch.view_as_complex(torch.randn(3, 2)),
        none=torch.empty(0, 3),
        meta=torch.empty(3, device="meta"),
    )
    # The dense tensors that a sparse one is made of have their own.
    assert [name for name, (digest, _) in found.items() if digest] == ["sparse.indices", "sparse.values", "plain"]


def test_a_cut_file_has_no_digest_of_what_is_not_whole(tmp_path: Path) -> None:
    saved(tmp_path / "a.safetensors", a=torch.ones(4), b=torch.arange(1024.0))
    raw = (tmp_path / "a.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(raw[:-100])
    found = digests(tmp_path / "cut.safetensors")
    assert found["a"][1] and not found["b"][0]


def test_blocks_of_gguf_are_known_by_their_bytes_and_their_kind(tmp_path: Path) -> None:
    import gguf

    def write(name: str, kind: gguf.GGMLQuantizationType, seed: int) -> dict[str, tuple[str, bool]]:
        rng = np.random.default_rng(seed)
        writer = gguf.GGUFWriter(tmp_path / name, "llama")
        quantised = gguf.quants.quantize(rng.standard_normal((4, 64)).astype(np.float32), kind)
        writer.add_tensor("blk.0.w", quantised, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return digests(tmp_path / name)

    q8 = gguf.GGMLQuantizationType.Q8_0
    (one,), (two,), (other,), (kind,) = (
        write(name, of, seed).values()
        for name, of, seed in (
            ("a.gguf", q8, 0),
            ("b.gguf", q8, 0),
            ("c.gguf", q8, 1),
            ("d.gguf", gguf.GGMLQuantizationType.Q4_0, 0),
        )
    )
    assert one[0] and one == two and len({one[0], other[0], kind[0]}) == 3
