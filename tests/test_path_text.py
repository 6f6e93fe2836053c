"""Paths as text: any two of them apart, in a table and on a terminal, and back again."""

from __future__ import annotations

import itertools
import os
import subprocess

import pytest

from inspector.path_text import path_of_text, path_text
from inspector.render.visible import one_line
from inspector.side_files import shown_name

# What names are made of that reads alike: bytes that are no text, the ways to write them, signs that cannot be seen.
_PIECES = (b"\xff", b"\\377", b"\\xff", b"\\udcff", b"\\", b"\x1b", b"\\x1b", b"\n", b"\\n", b"n", b"377", b"x1b")
_NAMES = sorted({os.fsdecode(b"".join(one)) for one in itertools.product(_PIECES, repeat=3)})


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"model.pth", "model.pth"),
        ("überß/日本.pth".encode(), "überß/日本.pth"),
        (b"back\\slash/it's new\n.pth", "back\\slash/it's new\n.pth"),
        (b"\xff.pth", "\\377.pth"),
        (b"a\\b/\x80\\.pth", "a\\b/\\200\\\\.pth"),
        (b"\\377.pth", "\\\\377.pth"),
        (b"\\udcff.pth", "\\\\udcff.pth"),
        (b"\\\x1b", "\\\\\x1b"),
    ],
)
def test_a_name_that_can_be_read_one_way_is_left_alone_and_others_are_written_out(raw: bytes, text: str) -> None:
    assert path_text(os.fsdecode(raw)) == text
    assert shown_name(os.fsdecode(raw)) == text.rpartition("/")[2]


def test_no_two_names_are_the_same_text_and_each_comes_back() -> None:
    assert len(_NAMES) > 1500
    texts = [path_text(name) for name in _NAMES]
    assert len(set(texts)) == len(_NAMES)
    assert [path_of_text(text) for text in texts] == _NAMES
    assert len({one_line(text) for text in texts}) == len(_NAMES)
    assert all(text.encode("utf-8") for text in texts)


def test_parts_written_apart_are_the_whole() -> None:
    for above, below in itertools.islice(itertools.permutations(_NAMES, 2), 0, None, 9973):
        assert path_text(f"{above}/{below}") == f"{path_text(above)}/{path_text(below)}"


def test_the_shell_reads_it_as_it_is_meant() -> None:
    written = [text for name in _NAMES if (text := path_text(name)) != name and "'" not in text][:400]
    words = " ".join(f"$'{text}'" for text in written)
    told = subprocess.run(["bash", "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True).stdout
    assert told.split(b"\0")[:-1] == [os.fsencode(path_of_text(text)) for text in written]
