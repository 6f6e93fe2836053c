"""Pickles that files beside checkpoints spell or hide, and settings that call: errors; ordinary texts: nothing."""

from __future__ import annotations

import base64
import gzip
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save as save_safetensors

from inspector.readers.unpickle.nested import hidden_pickles
from inspector.survey import spelled
from inspector.survey.survey import survey_folder

CODE = "import os; os.system('id'); " + "# pad " * 40
EVIL = {
    "p0": b"cposix\nsystem\n(Vid\ntR.",
    "p0 long": b"cbuiltins\nexec\n(V" + CODE.encode() + b"\ntR.",
    "p3": b"\x80\x03X\x05\x00\x00\x00posixX\x06\x00\x00\x00system\x93X\x02\x00\x00\x00id\x85R.",
    "p4": b"\x80\x04\x8c\x08builtins\x8c\x04exec\x93X" + struct.pack("<I", len(CODE)) + CODE.encode() + b"\x85R.",
}


def _b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _lines(text: str, n: int = 76) -> str:
    return "\n".join(text[i : i + n] for i in range(0, len(text), n))


def _letters(text: str) -> str:
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


SPELLINGS: dict[str, tuple[str, Callable[[bytes], str]]] = {
    "a json value": ("a.json", lambda raw: json.dumps({"model": _b64(raw)})),
    "a json key": ("a.json", lambda raw: json.dumps({_b64(raw): 1})),
    "json with every letter escaped": ("a.json", lambda raw: f'{{"m":"{_letters(_b64(raw))}"}}'),
    "json with slashes escaped": ("a.json", lambda raw: json.dumps({"m": _b64(raw)}).replace("/", "\\/")),
    "json numbers": ("a.json", lambda raw: json.dumps({"m": list(raw)})),
    "json escapes": ("a.json", lambda raw: json.dumps({"m": raw.decode("latin-1")})),
    "a vocabulary": ("tokenizer.json", lambda raw: json.dumps({"model": {"vocab": {_b64(raw): 0}}})),
    "yaml": ("a.yaml", lambda raw: f"model: {_b64(raw)}\n"),
    "yaml binary": ("a.yaml", lambda raw: "m: !!binary |\n  " + _lines(_b64(raw), 20).replace("\n", "\n  ")),
    "text": ("a.txt", _b64),
    "lines": ("a.txt", lambda raw: _lines(_b64(raw), 20)),
    "without padding": ("a.txt", lambda raw: _b64(raw).rstrip("=")),
    "the alphabet of addresses": ("a.txt", lambda raw: base64.urlsafe_b64encode(raw).decode()),
    "behind prose": ("a.md", lambda raw: f"# hi\n\nsome words here\n\n{_b64(raw)}\n\nand more\n"),
    "behind a long word": ("a.md", lambda raw: f"see github.com/somebody/some-repository for\n{_b64(raw)}"),
    "behind a false start": ("a.md", lambda raw: f"gASVaaaaaaaaaaaaaaaaaaaaaaaa and more words\n{_b64(raw)}"),
    "python": ("a.py", lambda raw: f'x = "{_b64(raw)}"\n'),
    "python in pieces": ("a.py", lambda raw: "x = (\n'" + _lines(_b64(raw), 20).replace("\n", "'\n'") + "'\n)"),
    "a notebook": ("a.ipynb", lambda raw: json.dumps({"cells": [{"source": ["x\n", _b64(raw) + "\n"]}]})),
    "xml": ("a.xml", lambda raw: f"<a>{_b64(raw)}</a>"),
    "html": ("a.html", lambda raw: f"<html>{_b64(raw)}</html>"),
    "a data address": ("a.html", lambda raw: f'<html><a href="data:application/x;base64,{_b64(raw)}"></html>'),
    "csv": ("a.csv", lambda raw: f"a,b\n1,{_b64(raw)}\n"),
    "ini": ("a.ini", lambda raw: f"[a]\nb={_b64(raw)}"),
    "hexadecimal": ("a.txt", lambda raw: raw.hex()),
    "capitals": ("a.txt", lambda raw: raw.hex().upper()),
    "0x": ("a.txt", lambda raw: "0x" + raw.hex()),
    "0x each": ("a.txt", lambda raw: "{" + ", ".join(f"0x{b:02x}" for b in raw) + "}"),
    "colons": ("a.txt", lambda raw: raw.hex(":")),
    "spaces": ("a.json", lambda raw: json.dumps({"m": raw.hex(" ")})),
    "escapes": ("a.txt", lambda raw: "".join(f"\\x{b:02x}" for b in raw)),
    "a bytes literal": ("a.txt", lambda raw: f"x = {raw!r}"),
    "twice": ("a.txt", lambda raw: _b64(_b64(raw).encode())),
    "hexadecimal of base64": ("a.txt", lambda raw: _b64(raw).encode().hex()),
    "gzip": ("a.json", lambda raw: json.dumps({"m": _b64(gzip.compress(raw))})),
    "zlib": ("a.json", lambda raw: json.dumps({"m": _b64(zlib.compress(raw))})),
    "two bytes a letter": ("a.txt", lambda raw: "\ufeff" + _b64(raw)),
}  # fmt: skip


def findings(folder: Path) -> dict[str, tuple[str | None, str]]:
    return {row.path: (row.worst and row.worst.value, row.finding) for row in survey_folder(folder).rows}


@pytest.mark.parametrize("payload", EVIL)
@pytest.mark.parametrize("way", SPELLINGS)
def test_a_pickle_that_a_text_spells_is_an_error(way: str, payload: str, tmp_path: Path) -> None:
    name, write = SPELLINGS[way]
    text = write(EVIL[payload])
    (tmp_path / name).write_bytes(text.encode("utf-16-le" if text.startswith("\ufeff") else "utf-8"))
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.write(tmp_path / name, name)
    rows = findings(tmp_path)
    assert rows[name][0] == "error"
    assert rows[f"z.zip/{name}"][0] == "error"


def test_texts_that_spell_no_pickle_are_silent(tmp_path: Path) -> None:
    rng = random.Random(0)
    words = "".join(rng.choice("abcdefgh gASV _-/+0123 \n") for _ in range(200_000))
    files = {
        "words.txt": words,
        "hash.txt": "".join(f"{rng.randbytes(32).hex()}  a{i}.bin\n" for i in range(500)),
        "hashes.txt": "\n".join(rng.randbytes(32).hex() for _ in range(5000)),
        "picture.ipynb": json.dumps({"cells": [{"data": {"image/png": _b64(b"\x89PNG" + rng.randbytes(50_000))}}]}),
        "random.json": json.dumps([_b64(rng.randbytes(40)) for _ in range(3000)]),
        "numbers.csv": "\n".join(",".join(str(rng.randrange(256)) for _ in range(40)) for _ in range(500)),
        "pixels.json": json.dumps([128, 3, *[rng.randrange(256) for _ in range(500)]]),
        "gzip.json": json.dumps({"m": _b64(gzip.compress(b"some words, and nothing else" * 9))}),
        "vocabulary.json": json.dumps({f"gASV{i}collection_of_names": i for i in range(3000)}),
        "two words.txt": "cool\nsystem\n.",
        "config.json": json.dumps({"architectures": ["LlamaForCausalLM"]}),
        "a.yaml": "a: !!float 1\nb: !!python/tuple [1, 2]\nc: !!python/object:argparse.Namespace {lr: 1}\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert {path: found for path, found in findings(tmp_path).items() if found[0] is not None} == {}


def test_a_text_too_long_to_search_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("words and more words\n" * 1000)
    (tmp_path / "b.json").write_text(json.dumps({i: _b64(b"\x80\x04" + bytes([i, 0] * 20)) for i in range(9)}))
    monkeypatch.setattr(spelled, "_NBYTES", 4096)
    monkeypatch.setattr(spelled, "_MOST_NBYTES", 1 << 14)
    assert findings(tmp_path) == {
        "a.txt": ("notice", "text-not-searched"), "b.json": ("warning", "text-not-searched"),
    }  # fmt: skip


def test_a_text_across_two_windows_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spelled, "_WINDOW_NBYTES", 1000)
    (tmp_path / "a.txt").write_text("word " * 190 + _b64(EVIL["p4"]))
    assert findings(tmp_path)["a.txt"] == ("error", "spelled-pickle")


@pytest.mark.parametrize("payload", EVIL)
def test_a_pickle_behind_a_whole_file_is_an_error(payload: str, tmp_path: Path) -> None:
    raw = EVIL[payload]
    np.save(tmp_path / "a.npy", np.ones(3))
    (tmp_path / "a.npy").write_bytes((tmp_path / "a.npy").read_bytes() + raw)
    (tmp_path / "a.safetensors").write_bytes(save_safetensors({"a": torch.ones(3)}) + raw)
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + b"".join(
        struct.pack("<Q", len(t)) + t + struct.pack("<I", 8) * (n == 0) for n, t in enumerate((b"general.name", b"x"))
    )  # fmt: skip
    (tmp_path / "a.gguf").write_bytes(head + bytes(-len(head) % 32) + raw)
    (tmp_path / "b.gguf").write_bytes(head + raw)
    assert {path: worst for path, (worst, _) in findings(tmp_path).items()} == dict.fromkeys(
        ("a.gguf", "a.npy", "a.safetensors", "b.gguf"), "error"
    )


def test_a_whole_file_without_one_is_silent(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(3))
    (tmp_path / "a.npy").write_bytes((tmp_path / "a.npy").read_bytes() * 2)
    (tmp_path / "a.safetensors").write_bytes(save_safetensors({"a": torch.ones(3)}))
    assert {worst for worst, _ in findings(tmp_path).values()} <= {None, "notice"}


def test_a_pickle_in_a_key_of_safetensors_metadata_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(save_safetensors({"a": torch.ones(3)}, {_b64(EVIL["p4"]): "x"}))
    (tmp_path / "b.safetensors").write_bytes(
        save_safetensors({"a": torch.ones(3)}, {"chat_template": "{{ ''.__class__.__mro__[1] }}"})
    )
    assert findings(tmp_path) == {
        "a.safetensors": ("error", "pickle-in-metadata"),
        "b.safetensors": ("error", "template-reaches-out"),
    }


def _zip(path: Path, comment: bytes = b"", extra: bytes = b"") -> None:
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("a.txt")
        info.extra = struct.pack("<HH", 0x1234, len(extra)) + extra if extra else b""
        archive.writestr(info, "hello")
        archive.comment = comment


def test_a_pickle_in_a_comment_or_an_extra_field_of_a_zip_is_an_error(tmp_path: Path) -> None:
    raw = EVIL["p0"]
    _zip(tmp_path / "comment.zip", comment=raw)
    _zip(tmp_path / "extra.zip", extra=raw)
    torch.save({"a": torch.ones(2)}, tmp_path / "a.pt")
    plain = (tmp_path / "a.pt").read_bytes()
    (tmp_path / "a.pt").write_bytes(plain[:-2] + struct.pack("<H", len(raw)) + raw)
    assert {worst for worst, _ in findings(tmp_path).values()} == {"error"}


def test_comments_and_extra_fields_of_ordinary_zips_are_silent(tmp_path: Path) -> None:
    _zip(tmp_path / "a.zip", comment=b"made by a program", extra=b"abcd")
    assert findings(tmp_path)["a.zip"][0] is None


def test_a_later_member_of_a_gzip_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"hello") + gzip.compress(EVIL["p3"]))
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(json.dumps({"m": _b64(EVIL["p4"])}).encode()))
    (tmp_path / "c.gz").write_bytes(gzip.compress(b"hello") + gzip.compress(b" world"))
    assert {path: worst for path, (worst, _) in findings(tmp_path).items()} == {
        "a.gz": "error", "b.json.gz": "error", "c.gz": None,
    }  # fmt: skip


def test_a_pickle_deep_in_zeros_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hidden_pickles, "_BURIED_NBYTES", 1 << 10)
    (tmp_path / "a.dat").write_bytes(bytes(50_000) + EVIL["p3"] + bytes(50_000))
    (tmp_path / "b.dat").write_bytes(bytes(50_000) + b"words" + bytes(50_000))
    rows = findings(tmp_path)
    assert (rows["a.dat"], rows["b.dat"][0]) == (("error", "buried-pickle"), None)


CALLS = {
    "a.yaml": "!!python/object/apply:os.system ['id']",
    "b.yml": "a: !!python/name:os.system",
    "c.yaml": "a: !!python/object/new:subprocess.Popen [[id]]",
    "d.yaml": "a: !<tag:yaml.org,2002:python/object/apply:os.system> [id]",
    "e.yaml": "a: !!python/object/apply:%6f%73.system [id]",
    "f.yaml": "%TAG !e! tag:yaml.org,2002:python/object/apply:\n---\na: !e!os.system [id]",
    "g.yaml": "%TAG ! tag:yaml.org,2002:python/\n---\na: !object/apply:os.system [id]",
    "h.yaml": "a: !!python/module:os",
    "a.json": '{"py/reduce": [{"py/function": "os.system"}, {"py/tuple": ["id"]}]}',
    "b.json": '{"py/object": "subprocess.Popen"}',
    "c.json": '{"py\\/reduce": [{"py\\/type": "os.system"}]}',
    "d.json": '{"py/repr": "os/os.system(1)"}',
}


@pytest.mark.parametrize("name", CALLS)
def test_settings_that_call_python_are_an_error(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(CALLS[name])
    assert findings(tmp_path)[name] == ("error", "tagged-call")


def test_settings_that_name_a_class_of_their_own_are_a_warning_and_repository_code_a_notice(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: !!python/object:mine.Config {}\n")
    (tmp_path / "config.json").write_text(json.dumps({"auto_map": {"AutoModel": "modeling_mine.Mine"}}))
    rows = findings(tmp_path)
    assert rows["a.yaml"] == ("warning", "tagged-call")
    assert rows["config.json"] == ("notice", "repository-code")


_APPLY = '!!python/object/apply:os.system ["id"]'


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("wide.yaml", f"a: {_APPLY}\n".encode("utf-16")),
        ("marked.yml", f"a: {_APPLY}\n".encode("utf-8-sig")),
        ("yaml.json", f'{{"a": {_APPLY}}}'.encode()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_tags_are_told_however_the_text_is_written(name: str, raw: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(raw)
    assert findings(tmp_path)[name] == ("error", "tagged-call")


HYDRA = """
act: {_target_: hydra.utils.get_method, path: torch.nn.functional.relu}
kind: {_target_: hydra.utils.get_class, path: torch.nn.ReLU}
home: {_target_: os.getenv, key: HOME}
net: {_target_: torchvision.models.resnet18}
made: {_target_: mypackage.models.build_net}
"""


@pytest.mark.parametrize("packed", [False, True])
def test_an_ordinary_hydra_file_is_quiet_alone_and_in_an_archive(packed: bool, tmp_path: Path) -> None:
    if packed:
        with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
            archive.writestr("config.yaml", HYDRA)
    else:
        (tmp_path / "config.yaml").write_text(HYDRA)
    assert not [row for row in survey_folder(tmp_path).rows if row.worst is not None and row.worst.rank >= 2]
