"""Archives of folders: opened where they lie, the bytes torch's own; bombs, links, lies and archives in archives."""

from __future__ import annotations

import bz2
import gc
import gzip
import io
import json
import lzma
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from crafted_zip import Member, build
from safetensors.torch import save as safetensors_save

from inspector.checkpoint.data import read_array
from inspector.checkpoint.types import Checkpoint
from inspector.errors import CorruptFile, InspectorError, LimitExceeded, RefusedContent, UnknownFormat
from inspector.findings import Severity
from inspector.readers import READERS, detect_format, open_checkpoint

Files = dict[str, bytes]
STATE = {"a.weight": torch.arange(12.0).reshape(3, 4), "b": torch.ones(5, dtype=torch.float16)}


def torch_file(state: object = STATE, *, legacy: bool = False) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer, _use_new_zipfile_serialization=not legacy)
    return buffer.getvalue()


def zipped(files: Files, method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(files: Files, extra: Iterable[tarfile.TarInfo] = ()) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in extra:
            archive.addfile(info)
    return buffer.getvalue()


PACKERS: dict[str, Callable[[Files], bytes]] = {
    "stored": zipped,
    "deflated": lambda files: zipped(files, zipfile.ZIP_DEFLATED),
    "tar": tarred,
    "tar.gz": lambda files: gzip.compress(tarred(files)),
    "tar.bz2": lambda files: bz2.compress(tarred(files)),
    "tar.xz": lambda files: lzma.compress(tarred(files)),
    "zip in tar": lambda files: tarred({"inner.zip": zipped(files)}),
    "tar in zip": lambda files: zipped({"x/inner.tar": tarred(files)}, zipfile.ZIP_DEFLATED),
}
KINDS: dict[str, bytes] = {"zip": torch_file(), "legacy": torch_file(legacy=True), "st": safetensors_save(STATE)}


def ids(checkpoint: Checkpoint) -> dict[str, Severity]:
    return {finding.id: finding.severity for finding in checkpoint.findings}


def same(checkpoint: Checkpoint, state: dict[str, torch.Tensor] = STATE) -> None:
    assert checkpoint.weights is not None
    found = {t.name: t for t in checkpoint.weights.tensors}
    assert set(found) == set(state)
    for name, tensor in state.items():
        np.testing.assert_array_equal(read_array(checkpoint, found[name]), tensor.numpy())


@pytest.mark.parametrize("pack", PACKERS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["best.pth", "run/deep/best.pth"])
def test_one_checkpoint_in_an_archive_opens(pack: str, kind: str, where: str) -> None:
    data = PACKERS[pack]({where: KINDS[kind], "run/notes.txt": b"hello"})
    found = detect_format(data)
    assert found is not None
    assert found[0].id == "packed"
    checkpoint = open_checkpoint(data, name="upload")
    same(checkpoint)
    assert checkpoint.origin.name == "upload"
    assert checkpoint.format == open_checkpoint(KINDS[kind]).format
    inside = next(f for f in checkpoint.findings if f.id == "opened-inside")
    assert inside.severity is Severity.INFO
    assert "best.pth" in inside.says
    assert [p.says.startswith("the checkpoint shown") for p in checkpoint.parts].count(True) >= 1


def lzma_alone(data: bytes) -> bytes:
    return lzma.compress(data, format=lzma.FORMAT_ALONE)


@pytest.mark.parametrize("packing", [gzip.compress, bz2.compress, lzma.compress, lzma_alone, zlib.compress])
@pytest.mark.parametrize("kind", KINDS)
def test_one_compressed_file_opens_without_findings(packing: Callable[[bytes], bytes], kind: str) -> None:
    checkpoint = open_checkpoint(packing(KINDS[kind]), name="best.pth.gz")
    same(checkpoint)
    assert checkpoint.findings == open_checkpoint(KINDS[kind], name="best.pth").findings


@pytest.mark.parametrize("pack", PACKERS)
def test_a_folder_in_an_archive_opens_as_the_folder(pack: str) -> None:
    files = {
        "llm/model-00001-of-00002.safetensors": safetensors_save({"a.weight": STATE["a.weight"]}),
        "llm/model-00002-of-00002.safetensors": safetensors_save({"b": STATE["b"]}),
        "llm/config.json": b'{"hidden_size": 4}',
        "llm/model.safetensors.index.json": json.dumps(
            {
                "metadata": {"total_size": 58},
                "weight_map": {
                    "a.weight": "model-00001-of-00002.safetensors",
                    "b": "model-00002-of-00002.safetensors",
                },
            }
        ).encode(),
    }
    checkpoint = open_checkpoint(PACKERS[pack](files))
    same(checkpoint)
    assert checkpoint.format == "sharded"
    assert ("config.json: hidden_size", "4") in [(k.rpartition("/")[2], v) for k, v in checkpoint.metadata]
    assert ids(checkpoint).keys() <= {"opened-inside"}


def test_torchs_own_archives_stay_with_their_reader() -> None:
    for data, reader in (
        (torch_file(), "torch-zip"),
        (zipped({"a/b.txt": b""}), "packed"),
        (b"PK\3\4cut", "torch-zip"),
    ):
        found = detect_format(data)
        assert found is not None
        assert found[0].id == reader
    assert [r.id for r in READERS].index("torch-zip") < [r.id for r in READERS].index("packed")


def test_several_independent_checkpoints_are_listed() -> None:
    for pack in (zipped, tarred):
        data = pack({"run/epoch=1.ckpt": KINDS["zip"], "run/last.ckpt": KINDS["zip"], "run/notes.txt": b""})
        with pytest.raises(
            UnknownFormat, match=r"2 checkpoints that do not belong together: epoch=1\.ckpt, last\.ckpt"
        ) as e:
            open_checkpoint(data, name="run.zip")
        assert "last.ckpt for the last state" in e.value.hint


def test_what_a_trainer_keeps_beside_the_weights_is_not_meant() -> None:
    files = {
        "c/model.safetensors": KINDS["st"],
        "c/optimizer.pt": KINDS["zip"],
        "c/rng_state_0.pth": KINDS["zip"],
        "c/training_args.bin": KINDS["zip"],
        "c/pytorch_model.bin": KINDS["zip"],
    }
    checkpoint = open_checkpoint(zipped(files))
    assert checkpoint.format == "safetensors"
    finding = next(f for f in checkpoint.findings if f.id == "opened-inside")
    assert finding.severity is Severity.NOTICE
    assert "pytorch_model.bin (by its name the same model in another format)" in finding.says
    assert ("not_opened", 4) in finding.evidence
    # Alone, an optimizer's file is what is meant.
    same(open_checkpoint(zipped({"c/optimizer.pt": KINDS["zip"]})))


def test_names_that_lead_outside_links_and_encrypted_members_are_left_out(tmp_path: Path) -> None:
    link = tarfile.TarInfo("model/link.pt")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    data = tarred({"../../evil.pt": KINDS["zip"], "/abs.pt": KINDS["zip"], "model/a.pt": KINDS["zip"]}, [link])
    checkpoint = open_checkpoint(data, name="x.tar")
    same(checkpoint)
    left = next(f for f in checkpoint.findings if f.id == "members-left-out")
    assert left.severity is Severity.WARNING
    assert set(left.subjects) == {"model/link.pt", "../../evil.pt", "/abs.pt"}
    assert ids(checkpoint)["leads-outside"] is Severity.ERROR
    same(open_checkpoint(zipped({"..\\evil.pt": KINDS["zip"], "C:/x.pt": KINDS["zip"], "a.pt": KINDS["zip"]})))
    assert not (tmp_path.parent / "evil.pt").exists()
    with pytest.raises(UnknownFormat, match="tar archive without a file that can be opened: s is a symbolic link"):
        soft = tarfile.TarInfo("s")
        soft.type = tarfile.SYMTYPE
        open_checkpoint(tarred({}, [soft]))


def test_encrypted_zips_are_refused() -> None:
    data = bytearray(zipped({"a.pt": KINDS["zip"]}))
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(RefusedContent, match="encrypted zip archive"):
        open_checkpoint(bytes(data))


@pytest.mark.parametrize("kind", ["plain", "deflated", "locked"])
def test_an_encryption_flag_over_plain_bytes_is_told(kind: str) -> None:
    """An encrypted member has 12 bytes more than it will have. Tools that look at the flag pass over the others."""
    raw = KINDS["zip"]
    ways: dict[str, dict[str, Any]] = {
        "plain": {}, "deflated": {"packed": zlib.compress(raw)[2:-4], "method": 8},
        "locked": {"packed": bytes(12) + raw, "nbytes": len(raw)},
    }  # fmt: skip
    with pytest.raises(RefusedContent) as caught:
        open_checkpoint(build([Member(name="a.pt", data=raw, flags=1, **ways[kind])]), name="x.zip")
    alone = "by its flags alone: a.pt is marked as encrypted, and its bytes are plain."
    assert (alone in caught.value.says) is (kind != "locked")


def test_a_link_to_a_member_is_no_error_and_one_out_of_the_archive_is() -> None:
    inside, outside = tarfile.TarInfo("c/last.pt"), tarfile.TarInfo("c/out.pt")
    for link, target in ((inside, "a.pt"), (outside, "../../a.pt")):
        link.type, link.linkname = tarfile.SYMTYPE, target
    files = {"c/a.pt": KINDS["zip"]}
    for link, severity in ((inside, None), (outside, Severity.ERROR)):
        found = ids(open_checkpoint(tarred(files, [link])))
        assert (found["members-left-out"], found.get("leads-outside")) == (Severity.WARNING, severity)
    for target, severity in (("a.pt", None), ("/etc/passwd", Severity.ERROR)):
        entry = zipfile.ZipInfo("last.pt")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        buffer = io.BytesIO(zipped({"a.pt": KINDS["zip"]}))
        with zipfile.ZipFile(buffer, "a") as archive:
            archive.writestr(entry, target)
        found = ids(open_checkpoint(buffer.getvalue()))
        assert (found["members-left-out"], found.get("leads-outside")) == (Severity.WARNING, severity)


def test_a_member_whose_own_header_says_otherwise_is_told() -> None:
    """Readers from the front, such as of a stream, believe the header before the member."""
    a = Member(name="a.pt", data=KINDS["zip"])
    for other in (replace(a, local_name="b.pt"), replace(a, local_method=8), replace(a, local_nbytes=3)):
        assert ids(open_checkpoint(build([other])))["archive-doubts"] is Severity.WARNING


def test_a_member_that_the_directory_does_not_list_is_an_error() -> None:
    a, hidden = Member(name="a.pt", data=KINDS["zip"]), Member(name="evil.pkl", data=bytes(99), listed=False)
    for members in ([hidden, a], [a, hidden], [a, hidden, Member(name="b.txt", data=b"b")]):
        found = open_checkpoint(build(members))
        assert ids(found)["members-left-out"] is Severity.ERROR
        assert next(f for f in found.findings if f.id == "members-left-out").subjects == ("evil.pkl",)


def test_a_name_twice_is_shown_as_each_kind_of_archive_is_unpacked() -> None:
    first, second = torch_file({"first": torch.ones(1)}), torch_file({"second": torch.ones(1)})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, pytest.warns(UserWarning):
        archive.writestr("m.pt", first)
        archive.writestr("m.pt", second)
    opened = open_checkpoint(buffer.getvalue())
    assert [t.name for t in opened.tensors] == ["first"]
    assert ids(opened)["archive-doubts"] is Severity.WARNING
    one, two = tarred({"m.pt": first}), tarred({"m.pt": second})
    opened = open_checkpoint(one[: -(-len(first) // 512) * 512 + 512] + two)
    assert [t.name for t in opened.tensors] == ["second"]
    assert "archive-doubts" in ids(opened)


def test_junk_of_other_systems_is_no_file() -> None:
    files = {"__MACOSX/._a.pt": b"x", "._a.pt": b"x", ".DS_Store": b"x", "a.pt": KINDS["zip"]}
    checkpoint = open_checkpoint(zipped(files))
    same(checkpoint)
    assert "1 file;" in next(f for f in checkpoint.findings if f.id == "opened-inside").says


# -- hostile ------------------------------------------------------------------------------------------------------


def test_a_member_of_zeros_is_a_bomb() -> None:
    data = zipped({"m.pt": bytes(64 << 20)}, zipfile.ZIP_DEFLATED)
    assert len(data) < 100_000
    with pytest.raises(InspectorError):
        open_checkpoint(data)
    with pytest.raises(LimitExceeded, match="unpacks from"):
        open_checkpoint(gzip.compress(bytes(64 << 20)))


def test_nested_archives_end() -> None:
    data = KINDS["zip"]
    for n in range(12):
        data = zipped({f"{n}.zip": data}, zipfile.ZIP_DEFLATED) if n % 2 else gzip.compress(data)
    with pytest.raises(LimitExceeded, match="archives deep"):
        open_checkpoint(data)


def test_levels_of_zips_are_counted_once_each() -> None:
    data = KINDS["zip"]
    for _ in range(6):
        data = zipped({"in.zip": data})
    assert open_checkpoint(data).tensors
    with pytest.raises(LimitExceeded, match=r"What is in in\.zip lies more than 6 archives deep"):
        open_checkpoint(zipped({"in.zip": data}))


# Russ Cox's r.gz construction needs a whole program; a tar that lists itself as a member does the same to a walker.
def test_an_archive_that_holds_itself_ends() -> None:
    head = tarfile.TarInfo("self.tar")
    head.size = 1 << 20
    data = head.tobuf()
    with pytest.raises(InspectorError):
        open_checkpoint(data * 64)
    # A zip whose only member's bytes are the archive from its beginning.
    inner = bytearray(zipped({"self.zip": b"x" * 400}))
    at = inner.rindex(b"PK\x01\x02")
    struct.pack_into("<I", inner, at + 42, 0)
    struct.pack_into("<II", inner, at + 20, len(inner), len(inner))
    with pytest.raises(InspectorError):
        open_checkpoint(bytes(inner))


def test_overlapping_members_are_said_and_share_one_budget() -> None:
    """After Fifield's zip bomb: many entries that point to the same compressed bytes."""
    kernel = KINDS["zip"]
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    raw = packer.compress(kernel) + packer.flush()
    local = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, 0, 8, 0, 0, zlib.crc32(kernel), len(raw), len(kernel), 4, 0)
    body = local + b"0.pt" + raw
    entries = b"".join(
        struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 8, 0, 0, 0, len(raw), len(kernel), 4, 0, 0, 0, 0, 0, 0) + name
        for name in (b"0.pt", b"1.tx", b"2.tx")
    )
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 3, 3, len(entries), len(body), 0)
    checkpoint = open_checkpoint(body + entries + end)
    same(checkpoint)
    doubt = next(f for f in checkpoint.findings if f.id == "archive-doubts")
    assert "2 members share bytes with another one" in doubt.says


def test_a_cut_tar_shows_what_is_there() -> None:
    data = tarred({"m.safetensors": KINDS["st"]})
    cut = data[: 512 + len(KINDS["st"]) - 6]
    checkpoint = open_checkpoint(cut)
    assert ids(checkpoint)["cut-short"] is Severity.ERROR
    whole = next(t for t in checkpoint.tensors if t.name == "a.weight")
    np.testing.assert_array_equal(read_array(checkpoint, whole), STATE["a.weight"].numpy())


def test_a_cut_gzip_shows_what_is_there() -> None:
    data = safetensors_save({"a": torch.randn(3000), "z": torch.randn(3000)})
    checkpoint = open_checkpoint(gzip.compress(data)[:-6000], name="m.safetensors.gz")
    assert [f.id for f in checkpoint.findings].count("cut-short") == 2
    assert "ends too early" in checkpoint.findings[0].says


@pytest.mark.parametrize("pack", ["stored", "deflated", "tar", "tar.gz"])
def test_cut_anywhere_is_an_error_or_a_checkpoint_that_says_so(pack: str) -> None:
    data = PACKERS[pack]({"run/m.safetensors": KINDS["st"], "run/config.json": b"{}"})
    for n in range(0, len(data) - 1, 3):
        try:
            checkpoint = open_checkpoint(data[:n])
        except InspectorError:
            continue
        if pack != "tar" or n < 512 + len(KINDS["st"]):  # A tar may lose its padding and its end without harm.
            assert any(f.severity is Severity.ERROR for f in checkpoint.findings), n


def test_nothing_is_written_and_nothing_left_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    gc.collect()  # What other tests left.
    before = len(list(Path("/proc/self/fd").iterdir()))
    data = zipped({"run/best.pth": KINDS["zip"]}, zipfile.ZIP_DEFLATED)
    checkpoint = open_checkpoint(data)
    same(checkpoint)
    assert list(tmp_path.iterdir()) == []
    del checkpoint
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_archives_of_nothing() -> None:
    for data, words in (
        (zipped({}), "empty zip archive"),
        (zipped({"a.txt": b"x", "b.md": b"y"}), "zip archive of 2 files without a checkpoint"),
        (tarred({"a.txt": b"x"}), "tar archive of 1 file without a checkpoint, first a.txt"),
        (tarred({"a.pt": b"<html><body>"}), "without a checkpoint: a.pt is a web page"),
        (tarred({"a.pt": b"x", "b.pt": b"y"}), "2 files named like a checkpoint"),
        (gzip.compress(b"text"), "gzip archive, and there is no checkpoint to open in it"),
    ):
        with pytest.raises(UnknownFormat, match=words):
            open_checkpoint(data)
    with pytest.raises(CorruptFile, match="cannot be unpacked"):
        open_checkpoint(b"\x1f\x8b\x08" + b"\0" * 20)
