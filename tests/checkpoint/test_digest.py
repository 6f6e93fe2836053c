"""What a sha256 is one of, against hashlib over the bytes that the sentence names."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import torch
from safetensors.torch import save_file

from inspector.checkpoint.digest import digested, with_digest
from inspector.readers import open_checkpoint


def test_each_digest_says_what_it_is_one_of(tmp_path: Path) -> None:
    single = tmp_path / "a.safetensors"
    save_file({"w": torch.ones(2)}, single)
    plain = hashlib.sha256(single.read_bytes()).hexdigest()
    checkpoint = with_digest(open_checkpoint(single))
    assert (checkpoint.origin.sha256, digested(checkpoint)) == (plain, "")
    (tmp_path / "a.safetensors.gz").write_bytes(gzip.compress(single.read_bytes()))
    checkpoint = with_digest(open_checkpoint(tmp_path / "a.safetensors.gz"))
    assert checkpoint.origin.sha256 == plain
    assert "not of the archive" in digested(checkpoint)
    folder = tmp_path / "model"
    folder.mkdir()
    parts = [folder / f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    for n, part in enumerate(parts):
        save_file({f"w{n}": torch.ones(2)}, part)
    checkpoint = with_digest(open_checkpoint(folder))
    assert checkpoint.origin.sha256 == hashlib.sha256(b"".join(p.read_bytes() for p in parts)).hexdigest()
    assert "one behind the other" in digested(checkpoint)
    parts[1].unlink()
    parts[0].rename(folder / "model.safetensors")
    checkpoint = with_digest(open_checkpoint(folder))
    assert digested(checkpoint) == "of model.safetensors"
