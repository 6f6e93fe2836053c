"""Archives that two tools read differently: what torch reads, what zipfile reads, and that both are shown.

The first two are measured here, on the installed versions, so that no sentence about them rests on hearsay.
"""

from __future__ import annotations

import bz2
import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from crafted_zip import Ends, Member, build, members, replace, root, torch_reads, zipfile_reads
from hostile import call

from inspector.checkpoint.types import Checkpoint, GlobalVerdict
from inspector.errors import CorruptFile, RefusedContent
from inspector.findings import Finding
from inspector.readers import open_checkpoint

MAIN = Member(name="a/data.pkl", data=root("one"))
OTHER = Member(name="a/data.pkl", data=root("two"))
VERSION = Member(name="a/version", data=b"3\n")
FIRST = build(members("one"))
_DIRECTORY = FIRST.index(b"PK\1\2")
ELSEWHERE = (2, len(FIRST) - 22 - _DIRECTORY, _DIRECTORY)


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def ours(checkpoint: Checkpoint) -> str:
    return checkpoint.root.children[0][1].says


def found(data: bytes, name: str) -> Finding | None:
    return next((f for f in open_checkpoint(data).findings if f.id == name), None)


# What, the archive, what torch reads, what zipfile reads; "" for a refusal.
CASES: dict[str, tuple[bytes, str, str]] = {
    "two of one name": (build([MAIN, OTHER, VERSION]), "one", "two"),
    "capitals first": (build([replace(MAIN, name="a/DATA.PKL"), OTHER, VERSION]), "one", "two"),
    "capitals second": (build([MAIN, replace(OTHER, name="a/DATA.PKL"), VERSION]), "one", "one"),
    "two archives": (FIRST + build(members("two")), "one", "two"),
    "two archives of other lengths": (FIRST + build(members("a longer one")), "", "a longer one"),
    "bad checksum": (build([replace(MAIN, crc=1), VERSION]), "one", ""),
    "another name in the header": (build([replace(MAIN, local_name="a/dat0.pkl"), VERSION]), "one", ""),
    "another size in the header": (build([replace(MAIN, local_nbytes=3), VERSION]), "one", "one"),
    "another method in the header": (build([replace(MAIN, local_method=8), VERSION]), "one", "one"),
    "encrypted in the header only": (build([replace(MAIN, local_flags=1), VERSION]), "one", "one"),
    "patched": (build([replace(MAIN, flags=0x20), VERSION]), "", ""),
    "strongly encrypted": (build([replace(MAIN, flags=0x40), VERSION]), "", ""),
    "masked headers": (build([replace(MAIN, flags=0x2000), VERSION]), "", "one"),
    "an encrypted member beside": (build([MAIN, VERSION, Member(name="a/x", data=b"1", flags=1)]), "one", "one"),
    "a gap before the end": (build(members("one"), Ends(gap=b"x" * 10)), "one", ""),
    "junk before": (b"PK\3\4" + b"j" * 30 + FIRST, "", "one"),
    "junk before, offsets right": (build(members("one"), before=b"PK\3\4" + b"j" * 30), "one", "one"),
    "two top folders": (build([MAIN, replace(OTHER, name="b/data.pkl"), VERSION]), "", "one"),
    "members in each other": (
        build([MAIN, replace(VERSION, name="a/x", local=False, offset=0), VERSION]),
        "one",
        "one",
    ),
    "more members than counted": (build([MAIN, VERSION, OTHER], Ends(count=2)), "one", "two"),
    "64-bit record elsewhere": (build(members("two"), Ends(zip64=ELSEWHERE), before=FIRST), "one", ""),
    "an archive in the comment": (build(members("one"), Ends(comment=build(members("two")))), "one", "two"),
    "an end record in the comment": (build(members("one"), Ends(comment=FIRST[-22:])), "one", ""),
    "a member that is not listed": (build([MAIN, replace(OTHER, listed=False), VERSION]), "one", "one"),
    "deflated to another size": (
        build([replace(MAIN, method=8, packed=deflated(MAIN.data), nbytes=5), VERSION]),
        "",
        "",
    ),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_torch_and_zipfile_read_what_is_said_and_we_say_so(case: str) -> None:
    data, by_torch, by_zipfile = CASES[case]
    torchs, zipfiles = torch_reads(data), zipfile_reads(data)
    assert (torchs if by_torch else torchs[:6]) == (by_torch or "fails:"), torchs
    assert (zipfiles if by_zipfile else zipfiles[:6]) == (by_zipfile or "fails:"), zipfiles
    finding = found(data, "ambiguous-archive")
    assert finding is not None
    if by_torch:
        assert ours(open_checkpoint(data)) == by_torch


QUIET: dict[str, bytes] = {
    "plain": FIRST,
    "a comment": build(members("one"), Ends(comment=b"made by hand")),
    "deflated": build([replace(MAIN, method=8, packed=deflated(MAIN.data)), VERSION]),
    "flags of no consequence": build([replace(MAIN, flags=0x800), VERSION]),
    "an archive in a member": build([MAIN, VERSION, Member(name="a/data/0", data=build(members("inner")))]),
}


@pytest.mark.parametrize("case", sorted(QUIET))
def test_ordinary_archives_are_not_doubted(case: str) -> None:
    assert torch_reads(QUIET[case]) == zipfile_reads(QUIET[case]) == ours(open_checkpoint(QUIET[case])) == "one"
    assert found(QUIET[case], "ambiguous-archive") is None


@pytest.mark.parametrize("alignment", [64, 4096])
@pytest.mark.parametrize("checksums", [True, False])
def test_what_torch_writes_is_not_doubted(alignment: int, checksums: bool, tmp_path: Path) -> None:
    from torch.utils.serialization import config

    before = config.save.storage_alignment, torch.serialization.get_crc32_options()
    config.save.storage_alignment = alignment
    torch.serialization.set_crc32_options(checksums)
    try:
        torch.save({f"w{n}": torch.full((n + 1,), float(n)) for n in range(30)}, tmp_path / "a.pt")
    finally:
        config.save.storage_alignment = before[0]
        torch.serialization.set_crc32_options(before[1])
    assert open_checkpoint(tmp_path / "a.pt").findings == ()


EVIL = b"\x80\x02" + call("os", "system", "touch nothing") + b"."


@pytest.mark.parametrize(
    "case",
    ["two of one name", "capitals second", "two archives", "more members than counted", "64-bit record elsewhere"],
)
def test_the_names_of_every_candidate_are_listed(case: str) -> None:
    evil = replace(OTHER, data=EVIL)
    data = {
        "two of one name": build([MAIN, evil, VERSION]),
        "capitals second": build([MAIN, replace(evil, name="a/DATA.PKL"), VERSION]),
        "two archives": FIRST + build([evil, VERSION]),
        "more members than counted": build([MAIN, VERSION, evil], Ends(count=2)),
        "64-bit record elsewhere": build([evil, VERSION], Ends(zip64=ELSEWHERE), before=FIRST),
    }[case]
    checkpoint = open_checkpoint(data)
    assert [g.name for g in checkpoint.globals if g.verdict is GlobalVerdict.DANGEROUS] == ["os.system"]
    finding = found(data, "ambiguous-archive")
    assert finding is not None and "1 other candidate" in finding.says
    assert "os.system" in [value for _, value in finding.evidence]


def test_methods_that_torch_lacks_and_encryption_are_named() -> None:
    with pytest.raises(CorruptFile, match="compressed by method 12, which torch cannot read"):
        open_checkpoint(build([replace(MAIN, method=12, packed=bz2.compress(MAIN.data)), VERSION]))
    with pytest.raises(RefusedContent, match="is an encrypted archive"):
        open_checkpoint(build([replace(MAIN, flags=1), VERSION]))


def test_trailing_junk_up_to_what_torch_takes() -> None:
    for n in (1, 100, 4000):
        assert torch_reads(FIRST + b"j" * n) == "one"
        assert found(FIRST + b"j" * n, "trailing-data") is not None


# -- pickles where torch does not look --------------------------------------------------------------------------------


def saved(state: dict[str, torch.Tensor], **options: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer, **options)
    return buffer.getvalue()


STATE = {"w": torch.arange(64, dtype=torch.float32), "u": torch.zeros(300, dtype=torch.uint8)}


def with_members(change: Callable[[str, bytes], bytes], more: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(STATE))) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
        for name, content in more.items():
            new.writestr(name, content, zipfile.ZIP_DEFLATED if name.endswith("packed") else zipfile.ZIP_STORED)
    return out.getvalue()


def same(_name: str, content: bytes) -> bytes:
    return content


def behind_stop(padding: bytes) -> Callable[[str, bytes], bytes]:
    return lambda name, content: content + padding + EVIL if name.endswith("data.pkl") else content


def in_numbers(name: str, content: bytes) -> bytes:
    return EVIL + content[len(EVIL) :] if name.endswith("data/1") else content


HIDDEN: dict[str, bytes] = {
    "behind STOP": with_members(behind_stop(b""), {}),
    "behind STOP and padding": with_members(behind_stop(b"\0" * 500), {}),
    "an extra storage": with_members(same, {"archive/data/99": EVIL}),
    "another name": with_members(same, {"archive/config.p": EVIL}),
    "another name, packed": with_members(same, {"archive/packed": EVIL}),
    "another name, protocol 0": with_members(same, {"archive/notes.txt": b"cos\nsystem\n(S'x'\ntR."}),
    "another .pkl": with_members(same, {"archive/extra.pkl": EVIL}),
    "a broken one": with_members(same, {"archive/config.p": EVIL[:-1] + b"\xff"}),
    "an archive in a member": with_members(same, {"archive/second.pt": build([replace(MAIN, data=EVIL), VERSION])}),
    "in front of numbers": with_members(in_numbers, {}),
    "behind a legacy file": saved(STATE, _use_new_zipfile_serialization=False) + EVIL,
    "behind a legacy file and padding": saved(STATE, _use_new_zipfile_serialization=False) + b"\0" * 64 + EVIL,
    "an archive behind a legacy file": saved(STATE, _use_new_zipfile_serialization=False)
    + build([replace(MAIN, data=EVIL), VERSION]),
    "an archive behind a pickle": root("one") + build([replace(MAIN, data=EVIL), VERSION]),
    "a pickle behind padding behind a pickle": root("one") + b"\0" * 40 + EVIL,
    "an archive behind safetensors": safetensors.torch.save(STATE) + build([replace(MAIN, data=EVIL), VERSION]),
}


@pytest.mark.parametrize("case", sorted(HIDDEN))
def test_a_hidden_pickle_is_found_and_its_names_are_told(case: str) -> None:
    checkpoint = open_checkpoint(HIDDEN[case])
    (use,) = [g for g in checkpoint.globals if g.verdict is GlobalVerdict.DANGEROUS]
    assert use.name == "os.system" and use.place and "hidden-pickle" in {f.id for f in checkpoint.findings}
    if "safetensors" not in case and "behind a pickle" not in case:
        assert {t.name for t in checkpoint.tensors} == {"w", "u"}


def test_zipfile_opens_the_archive_at_the_end_and_torch_does_not() -> None:
    for case in ("an archive behind a legacy file", "an archive behind a pickle", "an archive behind safetensors"):
        with zipfile.ZipFile(io.BytesIO(HIDDEN[case])) as archive:
            assert "a/data.pkl" in archive.namelist()
        assert found(HIDDEN[case], "two-formats") is not None
    assert set(torch.load(io.BytesIO(HIDDEN["an archive behind a legacy file"]), weights_only=True)) == {"w", "u"}


@pytest.mark.parametrize(
    "behind",
    [safetensors.torch.save(STATE), saved(STATE, _use_new_zipfile_serialization=False)],
    ids=["safetensors", "legacy"],
)
def test_an_archive_of_torch_behind_other_bytes_is_found_as_zipfile_finds_it(behind: bytes) -> None:
    """torch writes 64-bit end records, whose own place no longer holds there."""
    data = behind + saved(STATE)
    assert "archive/data.pkl" in zipfile.ZipFile(io.BytesIO(data)).namelist()
    told = found(data, "two-formats")
    assert told is not None and "archive/data.pkl" in told.subjects


def test_a_bad_member_does_not_hide_the_rest() -> None:
    bad = {"archive/bad": b"\x80\x02", "archive/bad.packed": b"x" * 50, "archive/worse.p": EVIL}
    data = with_members(same, bad)
    at = data.rindex(b"archive/bad.packed")
    broken = data[: at - 36] + struct.pack("<H", 99) + data[at - 34 :]  # an unknown method, in the directory
    checkpoint = open_checkpoint(broken)
    assert [g.name for g in checkpoint.globals if g.verdict is GlobalVerdict.DANGEROUS] == ["os.system"]
    assert any("archive/bad.packed could not be searched" in line for line in checkpoint.skipped)


@pytest.mark.parametrize("kind", ["normal", "uniform", "bytes", "small integers", "letters"])
def test_numbers_are_not_taken_for_pickles(kind: str) -> None:
    made = np.random.default_rng(7)
    rows = {
        "normal": lambda: made.standard_normal(40).astype(np.float32),
        "uniform": lambda: made.random(40).astype(np.float16),
        "bytes": lambda: made.integers(0, 256, 200, dtype=np.uint8),
        "small integers": lambda: made.integers(0, 130, 40, dtype=np.int64),
        "letters": lambda: made.choice(np.frombuffer(b"cNS(]}.\n\x80\x02os", dtype=np.uint8), 200),
    }[kind]
    state = {f"w{n}": torch.from_numpy(rows()) for n in range(1500)}
    for zipped in (True, False):
        checkpoint = open_checkpoint(saved(state, _use_new_zipfile_serialization=zipped))
        assert checkpoint.findings == ()


def test_many_end_records_and_members_cost_their_length() -> None:
    """Sixteen thousand end records in the last member, and a directory of twenty thousand: each is looked at once."""
    many = [Member(name=f"a/data/{n}", data=b"123") for n in range(20_000)]
    stuffed = Member(name="a/data/x", data=FIRST[-22:] * 2500 + b"PK\5\6" * 2000)
    checkpoint = open_checkpoint(build([MAIN, VERSION, *many, stuffed]))
    assert ours(checkpoint) == "one"
    assert any("were not searched for pickles" in line for line in checkpoint.skipped)


def test_hidden_pickles_share_one_budget_of_steps() -> None:
    """Three hundred members, each a pickle of many steps: the search stops, and the checkpoint is there."""
    long = b"\x80\x02" + b"N0" * 90_000 + EVIL[2:]
    more = [Member(name=f"a/{n}", data=long) for n in range(60)]
    checkpoint = open_checkpoint(build([MAIN, VERSION, *more]))
    assert [g.name for g in checkpoint.globals if g.verdict is GlobalVerdict.DANGEROUS] == ["os.system"]
    assert any("search for hidden pickles ended" in line for line in checkpoint.skipped)
