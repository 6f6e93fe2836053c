"""Half a surrogate pair in a name is shown escaped: as it is, no table, terminal or browser could be given it."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import torch

from inspector.readers import open_checkpoint


def test_half_a_surrogate_pair_in_a_pickle_is_escaped(tmp_path: Path) -> None:
    file = tmp_path / "half.pth"
    torch.save({"a\ud800.weight": torch.ones(2), "whole \U0001f600": torch.ones(1), "note": "v\udfff"}, file)
    checkpoint = open_checkpoint(file)
    assert [t.name for t in checkpoint.tensors] == ["a\\xed\\xa0\\x80.weight", "whole \U0001f600"]
    repr(checkpoint).encode("utf-8")


def test_the_text_opcode_of_old_pickles_cannot_spell_one_either(tmp_path: Path) -> None:
    file = tmp_path / "half.pkl"
    file.write_bytes(b"\x80\x02}V\\ud800\nV\\u00e9\ns.")
    repr(open_checkpoint(file)).encode("utf-8")
    assert open_checkpoint(file).root.children[0][0].encode("utf-8") == b"\\ud800"


def test_half_a_surrogate_pair_in_a_safetensors_header_is_escaped(tmp_path: Path) -> None:
    header = {"a\ud800": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "__metadata__": {"k": "\udfff"}}
    raw = json.dumps(header).encode()
    file = tmp_path / "half.safetensors"
    file.write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(4))
    checkpoint = open_checkpoint(file)
    assert [t.name for t in checkpoint.tensors] == ["a\\ud800"]
    repr(checkpoint).encode("utf-8")
