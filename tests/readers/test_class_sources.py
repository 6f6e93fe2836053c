"""The source text of classes in legacy files, as torch 1.1 wrote it: shown as it stands, within bounds, never run."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path

from inspector.readers import open_checkpoint
from inspector.readers.formats.torch_legacy import MAGIC
from inspector.readers.unpickle.meanings.class_sources import source_texts

_HEAD = pickle.dumps(MAGIC, 2) + pickle.dumps(1001, 2) + pickle.dumps({"little_endian": True}, 2)


def _legacy(*sources: tuple[str, str]) -> bytes:
    """A list of objects whose classes carry a source text, and no storages."""
    main = b"\x80\x02("
    for name, text in sources:
        raw = text.encode("utf-8", "surrogatepass")
        main += b"(X\x06\x00\x00\x00module" + f"cmodels\n{name}\n".encode() + b"X\x06\x00\x00\x00net.py"
        main += b"X" + struct.pack("<I", len(raw)) + raw + b"tQ)\x81"
    return _HEAD + main + b"l." + pickle.dumps([], 2)


def test_the_source_of_each_class_is_shown_once() -> None:
    text = "class Net(nn.Module):\n    pass  # \u00e9\n"
    checkpoint = open_checkpoint(_legacy(("Net", text), ("Head", "class Head: ..."), ("Net", text)))
    assert checkpoint.format == "torch-legacy"
    assert [(s.name, s.text, s.nbytes) for s in checkpoint.code] == [
        ("models.Net", text, len(text) + 1),
        ("models.Head", "class Head: ...", 15),
    ]
    assert not [said for said in checkpoint.skipped if "source" in said]


def test_a_source_that_would_act_stays_text(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    checkpoint = open_checkpoint(_legacy(("Net", f"open({str(marker)!r}, 'w')")))
    assert checkpoint.code[0].text.startswith("open(")
    assert not marker.exists()


def test_a_file_without_sources_has_no_code() -> None:
    checkpoint = open_checkpoint(_legacy())
    assert checkpoint.code == ()


def test_half_a_character_is_spelled_out() -> None:
    ((shown,), _) = source_texts([("a.B", "x\udc80")])
    assert shown.text == "x\\udc80"


def test_very_long_sources_are_cut_and_said() -> None:
    shown, said = source_texts([("a.A", "x" * 3_000_000), ("a.B", "y" * 3_000_000), ("a.C", "z")])
    assert [len(s.text) for s in shown] == [3_000_000, 1_000_000]
    assert [s.nbytes for s in shown] == [3_000_000, 3_000_000]
    assert said == ["The source text of 2 module classes was not read whole."]
