"""What a plan holds of each of many files, measured in processes of their own, and that it is what it was made from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from inspector.limits import DEFAULT_LIMITS
from inspector.remote.buckets import BucketFile
from inspector.survey.row import Reading
from inspector.survey.survey import Place, plan_places
from inspector.survey.swept import facts_of
from inspector.survey.unit_pieces import QUESTION, UnitPieces, identity_of
from inspector.sweep.piece import key_of

ROOT = Path(__file__).parents[2]
_FILES = 50_000
# Planning a million took 890 bytes each in a bucket and 1,100 to 1,350 each in a folder, with the plan's text.
_MOST_NBYTES_EACH = 500
_PLANNED = """
import resource, sys
from dataclasses import replace
from pathlib import Path

from inspector.limits import DEFAULT_LIMITS
from inspector.lint.audit import plan_lines
from inspector.remote.buckets import BucketFile
from inspector.survey.row import Reading
from inspector.survey.survey import Place, plan_places
from inspector.survey.swept import facts_of
from inspector.survey.unit_pieces import UnitPieces
from inspector.sweep.store import open_store

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def planned(count):
    remote = tuple(
        BucketFile(address=f"s3://zoo/owner{n // 1000}/model{n // 10}/file{n}.safetensors", size=10**9 + n,
                   said=f"ETag\\0{n:032x}")
        for n in range(0 if sys.argv[2] else count)
    )
    # A small one first, for what readers of folders import.
    where = Path(sys.argv[2]) / ("owner0" if count == 10 else "")
    places = [Place(where=where)] if sys.argv[2] else []
    # As many of a million's are listed at once to see whether a folder is one checkpoint.
    limits = replace(DEFAULT_LIMITS, members=max(2000, 300_000 * count // 10**6))
    plan = plan_places(places, limits, most=10**7, remote=remote)
    pieces = UnitPieces(plan.units, facts_of(Reading()))
    open_store(sys.argv[1]).put_named("plans", "test", plan_lines(plan, pieces))
    return len(pieces)

planned(10)
before = peak()
count = planned(int(sys.argv[3]))
print(count, (peak() - before) // count)
"""


def planned(tmp_path: Path, folder: str) -> tuple[int, int]:
    """Files of the plan, and the bytes that each cost at the peak."""
    line = [sys.executable, "-c", _PLANNED, str(tmp_path / "store"), folder, str(_FILES)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True)
    count, nbytes = map(int, done.stdout.split())
    return count, nbytes


def test_a_listing_is_planned_in_half_a_kilobyte_a_file(tmp_path: Path) -> None:
    count, nbytes = planned(tmp_path, "")
    print(f"{nbytes} bytes for each of {count:,} objects")
    assert count == _FILES and nbytes < _MOST_NBYTES_EACH


def test_a_folder_is_planned_in_half_a_kilobyte_a_file(tmp_path: Path) -> None:
    for above in range(50):
        below = tmp_path / "models" / f"owner{above}"
        below.mkdir(parents=True)
        for number in range(_FILES // 50):
            os.close(os.open(below / f"model{number}.safetensors", os.O_CREAT | os.O_WRONLY))
    count, nbytes = planned(tmp_path, str(tmp_path / "models"))
    print(f"{nbytes} bytes for each of {count:,} files")
    assert count == _FILES and nbytes < _MOST_NBYTES_EACH


def test_what_is_packed_is_what_it_was_made_from(tmp_path: Path) -> None:
    """By hand: each key is of the question, the settings, the path and what the file is known by."""
    (tmp_path / "a.bin").write_bytes(b"123")
    shards = tmp_path / "sharded"
    shards.mkdir()
    for number in (1, 2):
        (shards / f"model-0000{number}-of-00002.safetensors").write_bytes(b"12345")
    (shards / "model.safetensors.index.json").write_text('{"weight_map": {}}')
    (tmp_path / "odd.pth").symlink_to(tmp_path / "nothing")
    remote = (BucketFile(address="s3://zoo/x.pth", size=7, said="ETag\0abc\0LastModified\0001.000"),)
    plan = plan_places((Place(where=tmp_path),), DEFAULT_LIMITS, remote=remote)
    facts = facts_of(Reading())
    pieces = UnitPieces(plan.units, facts)
    assert [unit.path for unit in plan.units if unit.is_folder] == ["sharded"]
    assert any(unit.row is not None for unit in plan.units) and len(pieces) == len(plan.units) == 7
    for unit, piece in zip(plan.units, pieces, strict=True):
        if unit.row is not None:
            assert (piece.key, piece.item.identity) == ("", None)
            continue
        known = identity_of(unit.place) if unit.remote is None else (("", 7, "ETag=abc"),)
        assert piece.key == key_of(QUESTION, facts, unit.path, unit.is_folder, known)
        assert piece.item.identity == (known if unit.remote is None else ())
        assert piece.nbytes == sum(nbytes for _, nbytes, _ in known)
        assert piece.item.place == (unit.remote or unit.place)
    assert pieces[-1].item.path == "s3://zoo/x.pth"
    assert [piece.key for piece in pieces.at([2, 0])] == [pieces[2].key, pieces[0].key]
    assert remote[0].tags == (("ETag", "abc"), ("LastModified", "1.000")) and remote[0].etag == "abc"
