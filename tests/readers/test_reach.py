"""What a load does with a name that can run code: it runs it, may run it, only names it, or never reads it."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.plain_load.files import saved
from inspector.checkpoint.types import Reach
from inspector.findings import Severity
from inspector.overview import Topic, summarise
from inspector.readers import open_checkpoint
from tests.readers.test_first_refusal import begun, state

LEGACY = {"_use_new_zipfile_serialization": False}
SYSTEM = b"cposix\nsystem\n"
TRUE = b"U\x04true"


class Runs:
    """What a malicious file does, with a harmless command."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("true",)


HOSTILE = pickle.dumps(Runs(), 2)


def with_member(name: str) -> bytes:
    buffer = io.BytesIO(saved(state()))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(name, HOSTILE)
    return buffer.getvalue()


def in_numbers() -> dict[str, torch.Tensor]:
    numbers = torch.zeros(100, dtype=torch.uint8)
    numbers[: len(HOSTILE)] = torch.tensor(list(HOSTILE), dtype=torch.uint8)
    return {**state(), "x": numbers}


FILES: dict[str, tuple[Reach, Callable[[], bytes]]] = {
    "a value": (Reach.NAMES, lambda: saved({**state(), "x": os.system})),
    "a value, legacy": (Reach.NAMES, lambda: saved({**state(), "x": os.system}, **LEGACY)),
    "in a list": (Reach.NAMES, lambda: saved({**state(), "x": [os.system]})),
    "thrown away": (Reach.NAMES, lambda: begun(SYSTEM + b"0")),
    "kept and thrown away": (Reach.NAMES, lambda: begun(SYSTEM + b"r\x10\x27\0\x000")),
    "REDUCE": (Reach.RUNS, lambda: begun(SYSTEM + b"(" + TRUE + b"tR0")),
    "REDUCE of what was kept": (
        Reach.RUNS, lambda: begun(SYSTEM + b"r\x10\x27\0\x000j\x10\x27\0\0(" + TRUE + b"tR0")
    ),
    "REDUCE of a copy": (Reach.RUNS, lambda: begun(SYSTEM + b"2(" + TRUE + b"tR00")),
    "NEWOBJ": (Reach.RUNS, lambda: begun(b"csubprocess\nPopen\n(" + TRUE + b"t\x810")),
    "INST": (Reach.RUNS, lambda: begun(b"(" + TRUE + b"iposix\nsystem\n0")),
    "OBJ": (Reach.RUNS, lambda: begun(b"(" + SYSTEM + TRUE + b"o0")),
    "BUILD": (Reach.RUNS, lambda: begun(b"csubprocess\nPopen\n}U\x01aK\x01sb0")),
    "handed to partial": (Reach.RUNS, lambda: begun(b"cfunctools\npartial\n(" + SYSTEM + TRUE + b"tR)R0")),
    "handed to map": (Reach.RUNS, lambda: begun(b"cbuiltins\nmap\n(" + SYSTEM + b"(" + TRUE + b"ltR0")),
    "handed to torch's rebuilding": (
        Reach.MAY_RUN,
        lambda: begun(b"ctorch._tensor\n_rebuild_from_type_v2\n(" + SYSTEM + SYSTEM + b"(" + TRUE + b"tNtR0"),
    ),
    "a class changed, with a value": (
        Reach.RUNS,
        lambda: begun(b"ccollections\nOrderedDict\n}U\x0b__setattr__" + SYSTEM + b"sb0"),
    ),
    "beside an unknown call": (Reach.MAY_RUN, lambda: begun(SYSTEM + b"0cnobody\nThing\n)R0")),
    "a member that nobody reads": (Reach.LEAVES, lambda: with_member("archive/other.pkl")),
    "numbers": (Reach.LEAVES, lambda: saved(in_numbers())),
    "bytes": (Reach.LEAVES, lambda: saved({**state(), "x": HOSTILE})),
    "behind a legacy file": (Reach.LEAVES, lambda: saved(state(), **LEGACY) + HOSTILE),
}  # fmt: skip
SAYS = {
    Reach.RUNS: "An ordinary load would run ",
    Reach.MAY_RUN: "and may run it",
    Reach.NAMES: "which can run code; nothing in the file calls it",
    Reach.LEAVES: "A pickle that an ordinary load does not read would run ",
}


@pytest.mark.parametrize("kind", FILES)
def test_what_is_only_named_was_said_to_run(kind: str, tmp_path: Path) -> None:
    reach, make = FILES[kind]
    (tmp_path / "m.pth").write_bytes(make())
    checkpoint = open_checkpoint(tmp_path / "m.pth")
    answers = {answer.topic: answer for answer in summarise(checkpoint).answers}
    assert SAYS[reach] in answers[Topic.CODE].says, answers[Topic.CODE].says
    assert answers[Topic.CODE].severity is Severity.ERROR
    assert answers[Topic.NOTICED].severity is Severity.ERROR
    loading = answers[Topic.LOADING].says
    assert ("would run" in loading) is (reach is Reach.RUNS), loading
    assert ("which nothing in it calls" in loading) is (reach is Reach.NAMES), loading
    assert ("torch.load refuses it" in loading) is (reach is not Reach.LEAVES)


@pytest.mark.parametrize("kind", [kind for kind, (reach, _) in FILES.items() if reach is Reach.LEAVES])
def test_torch_load_takes_what_was_said_to_be_refused(kind: str, tmp_path: Path) -> None:
    (tmp_path / "m.pth").write_bytes(FILES[kind][1]())
    loaded: Any = torch.load(tmp_path / "m.pth", weights_only=True)
    assert torch.equal(loaded["1.running_var"], state()["1.running_var"])


def test_what_a_partial_is_handed_is_named_with_it(tmp_path: Path) -> None:
    (tmp_path / "m.pth").write_bytes(FILES["handed to partial"][1]())
    code = summarise(open_checkpoint(tmp_path / "m.pth")).answers[2]
    assert code.says.startswith("An ordinary load would run functools.partial, and may run posix.system.")
