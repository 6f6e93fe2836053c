"""A wrong file is named for what it is; a broken one says how much is missing and shows the rest."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
from pathlib import Path

import pytest
import torch
from crafted_zip import Member, build
from hostile import torch_zip
from safetensors.torch import save as safetensors_save

from inspector.checkpoint.data import read_array
from inspector.errors import CorruptFile, InspectorError, LimitExceeded, ReadError, RefusedContent, UnknownFormat
from inspector.findings import Severity
from inspector.limits import Limits
from inspector.readers import open_checkpoint


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab" * 32 + b"\nsize 46830571\n"

WRONG = [
    (b"", "empty: it has 0 bytes"),
    (b"<!DOCTYPE html><html><head><title>Sign in</title>", 'web page titled "Sign in"'),
    (b"\n\n  <html><body>404</body></html>", "web page"),
    (LFS, r"Git LFS pointer .* 46,830,571 bytes with the sha256 abababababab"),
    (b'<?xml version="1.0"?><Error><Code>AccessDenied</Code>', "XML document"),
    (b'{"hidden_size": 768}', "JSON text"),
    (b'{"weight_map": {"a": "model-00001.safetensors"}}', "index of 1 tensor in 1 file"),
    (b"layer1.weight\nlayer1.bias\n", 'text file that begins "layer1.weight"'),
    ("Über die Gewichte".encode(), "text file"),
    (b"\x89PNG\r\n\x1a\n" + b"\0" * 20, "PNG image"),
    (b"\xff\xd8\xff\xe0" + b"\0" * 20, "JPEG image"),
    (b"GIF89a" + b"\0" * 20, "GIF image"),
    (gzip.compress(b"notes"), "gzip archive, and there is no checkpoint to open in it"),
    (b"7z\xbc\xaf\x27\x1c" + b"\0" * 20, "7-Zip archive"),
    (b"\0" * 257 + b"ustar\x0000", "tar archive"),
    (b"\x89HDF\r\n\x1a\n" + b"\0" * 20, "HDF5 file"),
    (b"\x7fELF" + b"\0" * 20, "executable program"),
    (b"\0" * 5000, "only zero bytes"),
    (bytes(range(200, 256)), "begins with the bytes c8 c9"),
    (zipped({"model.weights.h5": b"", "config.json": b"{}"}), "Keras model"),
    (zipped({"a/archive_format": b"pt2"}), "torch.export program"),
    (zipped({"run/best.pth": b"x", "run/log.txt": b""}), "without a checkpoint: run/best.pth is a text file"),
    (zipped({"a.txt": b"x"}), "zip archive of 1 file without a checkpoint, first a.txt"),
    (b"junk" + torch_zip(b"N."), "4 bytes before a zip archive begins"),
]


@pytest.mark.parametrize(("data", "words"), WRONG, ids=[words[:24] for _, words in WRONG])
def test_wrong_files_are_named(data: bytes, words: str) -> None:
    with pytest.raises(UnknownFormat, match=words) as caught:
        open_checkpoint(data, name="best.pth")
    assert caught.value.says.startswith("best.pth ")
    assert caught.value.hint


def test_encrypted_archives_are_refused() -> None:
    data = bytearray(torch_zip(b"\x80\x02N."))
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    with pytest.raises(RefusedContent, match=r"encrypted archive by its flags alone: archive/data\.pkl is marked"):
        open_checkpoint(bytes(data))
    locked = Member(name="archive/data.pkl", data=b"\x80\x02N.", packed=bytes(16), nbytes=4, flags=1)
    with pytest.raises(RefusedContent, match="is an encrypted archive\\."):
        open_checkpoint(build([locked]))


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="is an empty folder"):
        open_checkpoint(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ReadError, match=r"folder of 1 file without a checkpoint, first notes\.txt"):
        open_checkpoint(tmp_path)
    with pytest.raises(ReadError, match=r"no file nothing\.pt"):
        open_checkpoint(tmp_path / "nothing.pt")


# -- cut short ----------------------------------------------------------------------------------------------------

STATE = {"a": torch.arange(200, dtype=torch.float32), "b": torch.ones(7, 3), "c": torch.arange(5)}


def whole(kind: str) -> bytes:
    if kind == "safetensors":
        return safetensors_save(STATE)
    buffer = io.BytesIO()
    torch.save(STATE, buffer, _use_new_zipfile_serialization=kind == "zip")
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["zip", "legacy", "safetensors"])
def test_truncation_at_every_byte(kind: str) -> None:
    """Every prefix gives our own error or a checkpoint that says so; what it says is there is right."""
    data = whole(kind)
    shown = 0
    for n in range(len(data)):
        try:
            checkpoint = open_checkpoint(data[:n])
        except InspectorError as error:
            assert error.says
            continue
        errors = {f.id for f in checkpoint.findings if f.severity is Severity.ERROR}
        assert errors & {"cut-short", "broken-pickle", "storage-missing"}, n
        for info in checkpoint.tensors:
            storage = checkpoint.storages[info.storage_id or ""]
            assert 0 <= storage.present_nbytes <= storage.nbytes
            if storage.present_nbytes == storage.nbytes:
                assert read_array(checkpoint, info).tolist() == STATE[info.name].tolist(), (n, info.name)
            else:
                with pytest.raises(ReadError):
                    read_array(checkpoint, info)
            shown += 1
    assert shown > 300


def test_a_cut_zip_says_how_much_is_there() -> None:
    data = whole("zip")
    at = data.index(STATE["a"].numpy().tobytes())
    checkpoint = open_checkpoint(data[: at + 500], name="half.pt")
    finding = next(f for f in checkpoint.findings if f.id == "cut-short")
    evidence = dict(finding.evidence)
    assert (evidence["present_nbytes"], evidence["declared_nbytes"]) == (500, 800 + 84 + 40)
    assert (evidence["missing_nbytes"], evidence["tensors_whole"], evidence["percent gone of a"]) == (424, 0, 37.5)
    assert [t.shape for t in checkpoint.tensors] == [(200,), (7, 3), (5,)]


def test_a_damaged_directory_is_done_without() -> None:
    data = whole("zip")
    at = data.index(b"PK\x01\x02")
    checkpoint = open_checkpoint(data[:at] + b"XX" + data[at + 2 :])
    (finding,) = checkpoint.findings
    assert finding.id == "damaged-directory" and "breaks off after 0 of 9 members" in finding.says
    for info in checkpoint.tensors:
        assert read_array(checkpoint, info).tolist() == STATE[info.name].tolist()


@pytest.mark.parametrize("kind", ["zip", "legacy", "safetensors"])
def test_a_whole_file_has_no_findings(kind: str) -> None:
    checkpoint = open_checkpoint(whole(kind))
    assert checkpoint.findings == ()
    assert checkpoint.format == {"zip": "torch-zip", "legacy": "torch-legacy"}.get(kind, kind)


# -- zips that two programs read differently ----------------------------------------------------------------------


def directory_swap(data: bytes, old: bytes, new: bytes) -> bytes:
    at = data.index(b"PK\x01\x02")
    return data[:at] + data[at:].replace(old, new)


def named_root(data: bytes) -> str:
    return open_checkpoint(data).root.says


def test_duplicates_are_said_and_all_are_examined() -> None:
    """Which of two equal names torch reads depends on its sorting; zipfile reads the last."""
    first, second = b"\x80\x02X\x05\x00\x00\x00first.", b"\x80\x02X\x06\x00\x00\x00second0cos\nsystem\n."
    with pytest.warns(UserWarning, match="Duplicate name"):
        twice = torch_zip(first, {"archive/data.pkl": second})
    cases = {"twice": twice, "case": torch_zip(first, {"archive/DATA.PKL": second})}
    cases["joined"] = torch_zip(first) + torch_zip(second)
    for name, data in cases.items():
        checkpoint = open_checkpoint(data)
        ids = {f.id for f in checkpoint.findings}
        assert "ambiguous-archive" in ids, name
        assert checkpoint.root.says == "first", name
        if name != "joined":
            assert [g.name for g in checkpoint.globals] == ["os.system"], name
    same_length = torch_zip(first) + torch_zip(first.replace(b"first", b"other"))
    assert open_checkpoint(same_length).root.says == torch.load(io.BytesIO(same_length), weights_only=True) == "first"
    quiet = open_checkpoint(torch_zip(first))
    assert not {f.id for f in quiet.findings} & {"ambiguous-archive", "trailing-data"}


def test_upper_case_data_pkl_is_found() -> None:
    data = torch_zip(b"\x80\x02X\x05\x00\x00\x00shown.").replace(b"archive/data.pkl", b"archive/DATA.PKL")
    assert named_root(data) == "shown"


def test_a_declared_size_that_does_not_fit_is_an_error() -> None:
    data = whole("zip")
    wrong = data.replace(b"X\x01\x00\x00\x000q", b"X\x01\x00\x00\x001q", 1)
    checkpoint = open_checkpoint(wrong)
    assert "storage-size" in {f.id for f in checkpoint.findings}


def test_compressed_archives_read_the_same() -> None:
    data = whole("zip")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    checkpoint = open_checkpoint(buffer.getvalue())
    assert {f.id for f in checkpoint.findings} == {"compressed-archive"}
    for info in checkpoint.tensors:
        assert read_array(checkpoint, info).tolist() == STATE[info.name].tolist()


def test_big_endian_archives_are_turned() -> None:
    tensor = torch.tensor([1.5, -2.25, 1e-3])
    buffer = io.BytesIO()
    torch.save({"w": tensor}, buffer)
    big = tensor.numpy().astype(">f4").tobytes()
    data = buffer.getvalue().replace(b"little", b"big\0\0\0").replace(tensor.numpy().tobytes(), big)
    with zipfile.ZipFile(io.BytesIO(buffer.getvalue())) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    members["archive/byteorder"] = b"big"
    members["archive/data/0"] = big
    for packed in (zipped(members),):
        checkpoint = open_checkpoint(packed)
        assert read_array(checkpoint, checkpoint.tensors[0]).tolist() == tensor.tolist()
    assert len(data) == len(buffer.getvalue())


# -- safetensors headers ------------------------------------------------------------------------------------------


def header(entries: object, data: bytes = b"", n: int | None = None) -> bytes:
    raw = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(raw) if n is None else n) + raw + data


GOOD = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def test_safetensors_headers_that_lie() -> None:
    for entry, words in (
        ({**GOOD, "shape": [3]}, "needs 12 bytes, its offsets span 8"),
        ({**GOOD, "shape": [-2]}, "no list of sizes"),
        ({**GOOD, "dtype": "F31"}, "dtype 'F31' is unknown"),
        ({**GOOD, "data_offsets": [8, 0]}, "no pair of positions"),
        ({**GOOD, "shape": [1 << 40, 1 << 40]}, "needs"),
        ([1], "no object"),
    ):
        with pytest.raises(CorruptFile, match=words):
            open_checkpoint(header({"w": entry}, b"\0" * 8))
        checkpoint = open_checkpoint(header({"v": GOOD, "w": entry}, b"\0" * 8))
        assert [t.name for t in checkpoint.tensors] == ["v"]
        assert "unusable-entry" in {f.id for f in checkpoint.findings}
    with pytest.raises(CorruptFile, match='names "a" twice'):
        open_checkpoint(header(b'{"a":{"dtype":"F32"},"a":{"dtype":"F32"}}'))
    with pytest.raises(CorruptFile, match="no valid JSON"):
        open_checkpoint(header(b'{"a":' + b"[" * 100_000))
    with pytest.raises(LimitExceeded, match="the limit is 10"):
        open_checkpoint(header({"v": GOOD}, b"\0" * 8), limits=Limits(header_nbytes=10))


def test_safetensors_data_that_does_not_tile() -> None:
    two = {"v": GOOD, "w": {**GOOD, "data_offsets": [12, 20]}}
    assert {f.id for f in open_checkpoint(header(two, b"\0" * 20)).findings} == {"data-holes"}
    assert {f.id for f in open_checkpoint(header({"v": GOOD}, b"\0" * 9)).findings} == {"trailing-data"}
    lapped = {"v": GOOD, "w": {**GOOD, "data_offsets": [4, 12]}}
    assert {f.id for f in open_checkpoint(header(lapped, b"\0" * 12)).findings} == {"data-overlaps"}


def test_safetensors_metadata_and_small_types() -> None:
    entries = {
        "__metadata__": {"format": "pt", "epoch": "3"},
        "f4": {"dtype": "F4", "shape": [3, 4], "data_offsets": [0, 6]},
        "f6": {"dtype": "F6_E2M3", "shape": [4], "data_offsets": [6, 9]},
    }
    checkpoint = open_checkpoint(header(entries, bytes(range(9))))
    assert checkpoint.metadata == (("format", "pt"), ("epoch", "3"))
    four, six = checkpoint.tensors
    assert (four.dtype, four.shape, four.nbytes) == ("float4_e2m1fn_x2", (3, 2), 6)
    assert (six.dtype, six.shape) == ("uint8", (3,)) and "F6_E2M3" in six.note
    assert read_array(checkpoint, six).tolist() == [6, 7, 8]


@pytest.mark.parametrize("nbytes", range(4, 24))
def test_an_end_record_that_breaks_off_is_no_crash(nbytes: int) -> None:
    """Found by a million damaged files: an archive that is nothing but the start of its own end."""
    with pytest.raises(ReadError):
        open_checkpoint(b"PK\x05\x06".ljust(nbytes, b"\0"))
