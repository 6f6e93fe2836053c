"""Files made so that one program reads one content and torch.load another, which would run code.

Each payload is harmless: it would create a marker. Where torch.load runs it, the control shows so; our report has to
name it whichever format it takes the file for.
"""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import struct
import tarfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hostile import call, torch_zip
from safetensors.torch import load, save

from inspector.checkpoint.types import Checkpoint, GlobalVerdict
from inspector.errors import LimitExceeded
from inspector.limits import Limits
from inspector.readers import open_checkpoint
from inspector.readers.folder import leads_outside
from inspector.readers.formats.export.program import _WORD
from inspector.readers.unpickle.nested.nested_pickles import _BASE64

LEGACY_MAGIC = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
VERSION = {"a/version": b"3\n"}
BENIGN = pickle.dumps({"epoch": 1}, 2)


def evil(marker: Path) -> bytes:
    return b"\x80\x02" + call("os", "system", f"touch {marker}") + b"."


def tar(*entries: tuple[str, bytes | str]) -> bytes:
    """A tar of (name, content) or (name, "hard ..." or "soft ..." and what it links to)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type = tarfile.LNKTYPE if content.startswith("hard ") else tarfile.SYMTYPE
                info.linkname = content[5:]
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def old_tar(*pickles: tuple[str, bytes | str], first: tuple[tuple[str, bytes], ...] = ()) -> bytes:
    """As torch 0.1 wrote it, without tensors."""
    return tar(
        *first, ("storages", pickle.dumps(0, 2) + pickle.dumps([], 2)), ("tensors", pickle.dumps(0, 2)), *pickles
    )


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def with_checksum(head: bytearray) -> bytes:
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


def legacy_and_tar(marker: Path) -> bytes:
    """The first tar header is a legacy file's magic number and a text constant over everything up to the end."""
    made = old_tar(("pickle", evil(marker)), first=(("x", b"--"),))
    start = LEGACY_MAGIC + pickle.dumps(1001, 2) + b"\x80\x02}X\x01\0\0\0aB"
    start += struct.pack("<I", len(made) - len(start) - 4)
    head = bytearray(start.ljust(100, b"\0") + made[100:512])
    return with_checksum(head) + made[512:] + b"s." + BENIGN + pickle.dumps([], 2)


def safetensors_and_tar(marker: Path) -> bytes:
    """The first tar header is a JSON text, with spaces where tar programs write zeros."""
    made = old_tar(("pickle", evil(marker)), first=(("x", b"--"),))
    head = bytearray(b" " * 512)
    head[:36] = struct.pack("<Q", 504) + b'{"__metadata__":{"a":"bbbbbb'
    head[100:148] = b"000644  0000000 0000000 00000000002 00000000000 "
    head[156:161] = b'0"}} '
    head[148:156] = b"%06o  " % sum(head)
    return bytes(head) + made[512:]


def safetensors_and_pickle(marker: Path) -> bytes:
    """The length of the header is PROTO 4 and the begin of a float; the first tensor's name is opcodes in UTF-8.

    An opcode over 0x7f is the second byte of a character whose first is the argument of a BINPUT. Texts in JSON have no
    characters below 0x20, so that all constants are longer than 32 bytes.
    """

    def opcode(code: int) -> bytes:
        return b"q\xc2" + bytes([code])

    def short(value: str) -> bytes:
        raw = value.encode()
        assert 0x20 <= len(raw) < 0x7F
        return opcode(0x8C) + bytes([len(raw)]) + raw

    name = short("torch.distributed.elastic.multiprocessing.api") + short("os.path.os.path.os.path.os.path.os.system")
    name += opcode(0x93) + short(f"touch {marker.name} ;".ljust(40)) + opcode(0x85) + b"R."
    n = int.from_bytes(b"\x80\x04G\0\0\0\0\0", "little")
    header = b'{"x' + name + b'":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    return struct.pack("<Q", n) + header.ljust(n) + bytes(4)


def program_and_save(marker: Path) -> bytes:
    """torch.export's layout, with what torch.load reads in it."""
    return zipped({"a/archive_format": b"pt2", "a/data.pkl": evil(marker), "a/models/model.json": b"{}", **VERSION})


CASES = {
    "tar, another ./pickle": lambda m: old_tar(("pickle", evil(m)), ("./pickle", BENIGN)),
    "tar, pickle is a hard link": lambda m: old_tar(("pickle", BENIGN), ("pickle", "hard x"), first=(("x", evil(m)),)),
    "tar, pickle is a soft link": lambda m: old_tar(("pickle", BENIGN), ("pickle", "soft x"), first=(("x", evil(m)),)),
    "legacy and tar": legacy_and_tar,
    "safetensors and tar": safetensors_and_tar,
    "safetensors and pickle": safetensors_and_pickle,
    "torch.export and torch.save": program_and_save,
    "tar, whose checksum only Python reads": lambda m: python_number(old_tar(("pickle", evil(m)))),
}


def python_number(made: bytes) -> bytes:
    """int() takes "0o12345" for an octal number."""
    total = sum(made[:148]) + 256 + sum(made[156:512])
    return made[:148] + b"0o%05o\0" % total + made[156:]


def bad_names(checkpoint: Checkpoint) -> list[str]:
    return [use.name for use in checkpoint.globals if use.verdict is not GlobalVerdict.KNOWN]


def really_runs(data: bytes, marker: Path) -> bool:
    """The control: torch.load on a file of that content."""
    file = marker.parent / "model.bin"
    file.write_bytes(data)
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.load(file, weights_only=False)
    ran = marker.exists()
    marker.unlink(missing_ok=True)
    return ran


@pytest.mark.parametrize("case", CASES)
def test_what_torch_would_run_is_named_whatever_else_the_file_is(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    marker = tmp_path / "marker"
    data = CASES[case](marker)
    checkpoint = open_checkpoint(data)
    assert not marker.exists()
    assert any(name.endswith("os.system") for name in bad_names(checkpoint))
    assert "dangerous-global" in {f.id for f in checkpoint.findings}
    assert really_runs(data, marker)


def test_a_safetensors_file_that_is_a_pickle_opens_as_safetensors_elsewhere(tmp_path: Path) -> None:
    data = safetensors_and_pickle(tmp_path / "marker")
    assert len(load(data)) == 1
    found = {f.id: f for f in open_checkpoint(data).findings}
    assert "at once" in found["two-formats"].says and "pickle" in found["two-formats"].says


def array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


WEIGHTS = save({"a": torch.ones(2)})


@pytest.mark.parametrize(
    "head",
    [array(), WEIGHTS, tar(("model.safetensors", WEIGHTS)), pickle.dumps([1])],
    ids=["npy", "safetensors", "tar", "pickle"],
)
def test_an_archive_at_the_end_is_told_for_every_format(head: bytes, tmp_path: Path) -> None:
    checkpoint = open_checkpoint(head + torch_zip(evil(tmp_path / "marker")))
    assert bad_names(checkpoint) == ["os.system"]
    assert {"two-formats", "hidden-pickle"} <= {f.id for f in checkpoint.findings}


@pytest.mark.parametrize("behind", [b"\xff\xff", b"c\xff\n\xff\n0.", b"0cnot importable\nat all\n."])
def test_a_payload_among_numbers_is_found_whatever_follows_it(behind: bytes, tmp_path: Path) -> None:
    numbers = (evil(tmp_path / "marker")[:-1] + behind).ljust(256, b"\0")
    buffer = io.BytesIO()
    torch.save({"w": torch.frombuffer(bytearray(numbers), dtype=torch.uint8)}, buffer)
    checkpoint = open_checkpoint(buffer.getvalue())
    assert "os.system" in bad_names(checkpoint)
    assert "hidden-pickle" in {f.id for f in checkpoint.findings}


def test_a_letter_that_only_looks_like_k_is_no_data_pkl(tmp_path: Path) -> None:
    files = {"a/data.p\u212al": BENIGN, "a/data.pkl": evil(tmp_path / "marker"), **VERSION}
    checkpoint = open_checkpoint(zipped(files))
    assert checkpoint.format == "torch-zip" and bad_names(checkpoint) == ["os.system"]
    assert [label for label, _ in checkpoint.root.children] != ["epoch"]


@pytest.mark.parametrize(
    "data",
    [
        WEIGHTS,
        array(),
        old_tar(("pickle", BENIGN)),
        tar(("model.safetensors", WEIGHTS)),
        tar(("model.pt", torch_zip(BENIGN))),
        zipped({"model.safetensors": WEIGHTS, "config.json": json.dumps({"a": 1}).encode()}),
        torch_zip(BENIGN),
    ],
    ids=["safetensors", "npy", "old tar", "tar", "tar of a zip", "zip", "torch zip"],
)
def test_files_of_one_format_are_not_said_to_be_two(data: bytes) -> None:
    checkpoint = open_checkpoint(data)
    assert not {"two-formats", "hidden-pickle", "ambiguous-archive"} & {f.id for f in checkpoint.findings}
    assert not bad_names(checkpoint)


# -- memory: what a list of names becomes ---------------------------------------------------------------------------


def test_the_directory_of_an_archive_counts_against_the_memory(tmp_path: Path) -> None:
    data = zipped({f"a/{'😀' * 20}{n}": b"" for n in range(3000)} | {"a/data.pkl": BENIGN, **VERSION})
    assert open_checkpoint(data).format == "torch-zip"
    with pytest.raises(LimitExceeded, match="The directory of these bytes would take"):
        open_checkpoint(data, limits=Limits(memory_nbytes=1_000_000))


def test_an_index_counts_against_the_memory_by_its_widest_character(tmp_path: Path) -> None:
    for filler, fits in (("aaaa", True), ("\U0001f600", False)):
        index = {"weight_map": {f"{n}{filler * 20}": "model.safetensors" for n in range(1000)}}
        folder = tmp_path / str(fits)
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(WEIGHTS)
        (folder / "model.safetensors.index.json").write_text(json.dumps(index, ensure_ascii=False), encoding="utf-8")
        limits = Limits(memory_nbytes=800_000)
        if fits:
            assert open_checkpoint(folder, limits=limits).format == "sharded"
        else:
            with pytest.raises(LimitExceeded, match="would take"):
                open_checkpoint(folder, limits=limits)


def test_folders_within_folders_take_no_more_than_the_memory() -> None:
    deep = "/".join(f"{n:03}" for n in range(60))
    data = tar(*((f"{deep}/{n}", b"") for n in range(2000)))
    with pytest.raises(LimitExceeded, match="The list of files of these bytes"):
        open_checkpoint(data, limits=Limits(memory_nbytes=10_000_000))


# -- time: what a pattern makes of a long text ----------------------------------------------------------------------


def test_a_text_of_spaces_is_tried_once_as_base64() -> None:
    """Quadratic it took ten seconds for these, and hours for the two megabytes that are looked into."""
    spaces = "a" * 16 + " " * 1_000_000 + "!"
    checkpoint = open_checkpoint(b"\x80\x02" + call("foo", "bar", spaces) + b".")
    assert bad_names(checkpoint) == ["foo.bar"]
    assert _BASE64.fullmatch("QUJD" * 8 + "=\n ") and not _BASE64.fullmatch("QUJD" * 8 + "!")


def test_a_guard_of_one_long_word_is_looked_at_once() -> None:
    assert _WORD.findall("a" * 1_000_000) == []
    assert _WORD.findall("max (a, b.c) + x__y - lambda: f(1)(2)") == ["max", ".c", "x__y", "lambda", "f", ")"]


def test_a_program_inside_a_pickle_is_not_followed_as_a_save() -> None:
    """torch.storage._load_from_bytes gives a TorchScript archive to torch.jit.load, and that runs __setstate__."""
    for extra, verdict in ({}, "known"), ({"archive/constants.pkl": pickle.dumps((), 2)}, "dangerous"):
        inner = torch_zip(BENIGN, extra)
        constant = b"B" + struct.pack("<I", len(inner)) + inner
        checkpoint = open_checkpoint(b"\x80\x03ctorch.storage\n_load_from_bytes\n" + constant + b"\x85R.")
        assert {u.name: u.verdict.value for u in checkpoint.globals}["torch.storage._load_from_bytes"] == verdict


@pytest.mark.parametrize(
    "name",
    ["../x", "a/../../x", "/x", "", "a//b", "./x", ".. /x", "... /x", "a/. ./x/..", "..\\x", "C:x", "a\0b", ".../x"],
)
def test_names_that_lead_outside_on_any_system(name: str) -> None:
    assert leads_outside(name)
    assert not leads_outside(".hidden/..data/x.pt") and not leads_outside("a/b .c/d..e")


def test_the_pickles_of_a_package_share_one_limit_of_values() -> None:
    files = {f"a/{n}.pkl": pickle.dumps([[] for _ in range(50)], 2) for n in range(6)}
    data = zipped({"a/.data/extern_modules": b"", **files})
    assert len(open_checkpoint(data).root.children) == 6
    checkpoint = open_checkpoint(data, limits=Limits(nodes=120))
    assert len(checkpoint.root.children) == 3
    assert sum("was not followed" in said for said in checkpoint.skipped) == 3


def test_the_first_bytes_that_deserve_a_second_look_are_those_of_pickle() -> None:
    from inspector.readers import polyglot as second_look
    from inspector.readers.unpickle.machine.opcodes import OPCODES

    assert set(OPCODES) - {ord("P")} == second_look._FIRST
