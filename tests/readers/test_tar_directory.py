"""The members of a tar against tarfile, and headers that lie."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.checkpoint.source import BufferSource
from inspector.errors import CorruptFile, InspectorError, LimitExceeded
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.readers.archives.tar_directory import BLOCK, TarDirectory, is_tar, read_tar_directory

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def packed(files: dict[str, bytes], kind: str = "gnu", extra: list[tarfile.TarInfo] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=FORMATS[kind]) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in extra or []:
            archive.addfile(info)
    return buffer.getvalue()


def listed(data: bytes) -> TarDirectory:
    return read_tar_directory(BufferSource(data, "x.tar"), DEFAULT_LIMITS)


def oracle(data: bytes) -> list[tuple[str, int, int]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return [(m.name, m.offset_data, m.size) for m in archive if m.isreg()]


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=150).map(
    lambda name: "d/" + name
)


@settings(deadline=None)
@given(st.sampled_from(["gnu", "pax"]), st.dictionaries(NAMES, st.binary(max_size=1500), max_size=5))
def test_members_are_those_of_tarfile(kind: str, files: dict[str, bytes]) -> None:
    data = packed(files, kind)
    members = listed(data).members
    assert [(m.name, m.offset, m.nbytes) for m in members] == oracle(data)
    assert [data[m.offset : m.offset + m.nbytes] for m in members] == list(files.values())


@pytest.mark.parametrize("kind", FORMATS)
def test_long_names_and_prefixes(kind: str) -> None:
    files = {"d/" + "x" * 90 + "/" + "y" * 90: b"1", "a" * (90 if kind == "ustar" else 400): b"22"}
    data = packed(files, kind)
    assert is_tar(data)
    assert [(m.name, m.offset, m.nbytes) for m in listed(data).members] == oracle(data)
    assert listed(data).doubts == ()


def test_large_sizes_in_base_256_and_in_pax() -> None:
    """A file of 20 GB is declared; the archive ends long before, which is said and not believed."""
    for kind in ("gnu", "pax"):
        info = tarfile.TarInfo("big.pt")
        info.size = 20 * 1024**3
        data = b"".join([info.tobuf(FORMATS[kind]), b"abc"])
        found = listed(data)
        assert [(m.name, m.nbytes) for m in found.members] == [("big.pt", 20 * 1024**3)]
        assert found.doubts == (f"it is cut short inside big.pt: 3 of {20 * 1024**3:,} bytes are there",)


def special(name: str, kind: bytes, target: str = "/etc/passwd", size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, target, size
    return info


def test_links_and_devices_are_left_out_and_said() -> None:
    extra = [
        special("soft", tarfile.SYMTYPE),
        special("hard", tarfile.LNKTYPE),
        special("disk", tarfile.BLKTYPE),
        special("fifo", tarfile.FIFOTYPE),
        special("folder", tarfile.DIRTYPE),
    ]
    found = listed(packed({"a": b"1"}, extra=extra))
    assert [m.name for m in found.members] == ["a"]
    assert dict(found.left_out) == {
        "soft": "is a symbolic link that leads outside the archive",
        "hard": "is a hard link that leads outside the archive",
        "disk": "is a device",
        "fifo": "is a pipe",
    }
    assert (found.left_out_count, found.outside, found.unread) == (4, 2, 0)


@pytest.mark.parametrize(
    ("name", "target", "hard", "outside"),
    [
        ("runs/last.pt", "epoch_3.pt", False, False),
        ("runs/last.pt", "../best/epoch_3.pt", False, False),
        ("runs/last.pt", "runs/epoch_3.pt", True, False),
        ("runs/last.pt", "../../etc/passwd", False, True),
        ("last.pt", "a/../../x", False, True),
        ("runs/last.pt", "../x", True, True),
        ("last.pt", "C:\\x", False, True),
        ("last.pt", "..\\x", False, True),
        ("last.pt", "/etc/passwd", False, True),
    ],
)
def test_a_link_out_of_the_archive_counts_and_one_inside_does_not(
    name: str, target: str, hard: bool, outside: bool
) -> None:
    link = special(name, tarfile.LNKTYPE if hard else tarfile.SYMTYPE, target)
    found = listed(packed({"a": b"1"}, extra=[link]))
    assert (found.left_out_count, found.outside) == (1, int(outside))
    assert found.left_out[0][1].endswith("outside the archive") is outside


@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_the_long_target_of_a_link_is_read_whole(kind: str) -> None:
    """Its first hundred characters stay inside; pax and GNU headers hold the rest."""
    link = special("x/link", tarfile.SYMTYPE, "deep/" * 30 + "../" * 40 + "etc/passwd")
    if kind != "ustar":
        assert listed(link.tobuf(FORMATS[kind]) + bytes(1024)).outside == 1


def test_what_lies_behind_the_end_of_a_tar_is_told() -> None:
    data = packed({"a": b"1"})
    assert listed(data + bytes(5000)).stops is False
    found = listed(data + bytes(5000) + packed({"b": b"2"}))
    assert found.stops is True
    assert "more than zeros lie behind its end" in found.doubts[0]


def test_a_link_that_declares_bytes_is_doubted_as_tarfile_reads_it() -> None:
    data = special("soft", tarfile.SYMTYPE, size=1024).tobuf(tarfile.GNU_FORMAT) + packed({"a": b"1"})
    assert [(m.name, m.offset, m.nbytes) for m in listed(data).members] == oracle(data)
    assert "soft is no file but declares 1,024 bytes" in listed(data).doubts[0]


def rewritten(data: bytes, at: int, field: bytes) -> bytes:
    """A header field changed and the checksum made right again."""
    head = bytearray(data[:BLOCK])
    head[at : at + len(field)] = field
    head[148:156] = b" " * 8
    head[148:156] = f"{sum(head):06o}\0 ".encode()
    return bytes(head) + data[BLOCK:]


def test_sizes_that_lie() -> None:
    data = packed({"a": b"x" * 10, "b": b"y" * 10})
    for field in (b"99999999999\0", b"-0000000001\0", b"0x000000001\0", b"\xff" * 12):
        found = listed(rewritten(data, 124, field))
        assert found.members == ()
        assert "has no size that can be read" in found.doubts[0]
    huge = listed(rewritten(data, 124, b"\x80" + b"\xff" * 11))
    assert huge.members[0].nbytes == 2**88 - 1
    assert "cut short inside a" in huge.doubts[0]
    # One byte more than there is shifts everything behind it.
    shifted = listed(rewritten(data, 124, b"00000001001\0"))
    assert len(shifted.members) == 1
    assert "wrong checksum" in shifted.doubts[0]


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (b"99 path=x\n", "malformed"),
        (b"10 path=xx", "malformed"),
        (b"8 pathx\n\n", "malformed"),
        (b"x path=x\n", "malformed"),
        (b"12 size=-5\n\n", "no number"),
    ],
)
def test_pax_records_that_lie(record: bytes, words: str) -> None:
    info = tarfile.TarInfo("ext")
    info.type, info.size = tarfile.XHDTYPE, len(record)
    data = info.tobuf(tarfile.USTAR_FORMAT) + record.ljust(BLOCK, b"\0") + packed({"real": b"1"})
    found = listed(data)
    assert [m.name for m in found.members] == ["real"]
    assert found.members[0].nbytes == 1
    assert any(words in doubt for doubt in found.doubts)


def test_a_huge_extension_header_is_not_read() -> None:
    info = tarfile.TarInfo("ext")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1 << 30
    found = listed(info.tobuf(tarfile.GNU_FORMAT) + packed({"real": b"1"}))
    assert found.members == ()
    assert "declares 1,073,741,824 bytes and was not read" in found.doubts[0]


def test_global_pax_names_are_not_taken_over() -> None:
    record = b"13 path=evil\n"
    info = tarfile.TarInfo("ext")
    info.type, info.size = tarfile.XGLTYPE, len(record)
    found = listed(info.tobuf(tarfile.USTAR_FORMAT) + record.ljust(BLOCK, b"\0") + packed({"real": b"1"}))
    assert [m.name for m in found.members] == ["real"]
    assert "global pax header" in found.doubts[0]


def test_what_is_no_tar() -> None:
    for data in (b"", b"short", b"\0" * 1024, bytes(range(256)) * 4):
        assert not is_tar(data)
    with pytest.raises(CorruptFile, match="checksum of its first header"):
        read_tar_directory(BufferSource(bytes(range(256)) * 4), DEFAULT_LIMITS)
    assert read_tar_directory(BufferSource(b"\0" * 1024), DEFAULT_LIMITS).members == ()


def test_old_tars_without_a_signature_are_known_by_their_checksum() -> None:
    data = packed({"a": b"1"})
    old = rewritten(data, 257, b"\0" * 8)
    assert is_tar(old)
    assert [m.name for m in listed(old).members] == ["a"]


def test_limits() -> None:
    data = packed({str(n): b"" for n in range(6)})
    with pytest.raises(LimitExceeded, match="more than 5 files"):
        read_tar_directory(BufferSource(data), Limits(members=5))
    assert len(read_tar_directory(BufferSource(data), Limits(members=6)).members) == 6
    with pytest.raises(LimitExceeded, match="file names"):
        read_tar_directory(BufferSource(packed({"x" * 90: b"", "y" * 90: b""})), Limits(header_nbytes=100))


def test_cut_at_every_byte() -> None:
    data = packed({"a": b"x" * 700, "d/b": b"y" * 20}, "pax")
    whole = {(m.name, m.offset, m.nbytes) for m in listed(data).members}
    for n in range(0, len(data), 7):
        try:
            found = listed(data[:n])
        except InspectorError:
            continue
        assert {(m.name, m.offset, m.nbytes) for m in found.members} <= whole


def test_many_doubts_stay_few() -> None:
    link = special("s", tarfile.SYMTYPE, size=512).tobuf(tarfile.GNU_FORMAT)
    found = listed(link * 20_000)
    assert len(found.doubts) <= 22
    assert (len(found.left_out), found.left_out_count) == (20, 20_000)
