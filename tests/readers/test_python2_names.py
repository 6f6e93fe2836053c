"""Python 2's names in pickles of protocol 2, as torch.save writes them under Python 3."""

from __future__ import annotations

import collections
import functools
import itertools
import pickle
import queue
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import _utils

from inspector.checkpoint.types import GlobalVerdict
from inspector.keys.plain_load import plain_load
from inspector.readers import open_checkpoint
from inspector.readers.unpickle.globals.python2 import IMPORT_MAPPING, NAME_MAPPING, imported_name, weights_only_name
from inspector.readers.unpickle.globals.verdicts import judge

VALUES: dict[str, Any] = {
    "UserDict": collections.UserDict(a=1),
    "UserList": collections.UserList([1]),
    "UserString": collections.UserString("x"),
    "range": range(3),
    "int": int,
    "str": str,
    "filter": filter,
    "map": map,
    "zip": zip,
    "reduce": functools.reduce,
    "zip_longest": itertools.zip_longest,
    "Empty": queue.Empty(),
    "ValueError": ValueError("x"),
    "OSError": OSError("x"),
    "ModuleNotFoundError": ModuleNotFoundError("x"),
    "set": {1},
    "object": object(),
}


@pytest.mark.parametrize("kind", VALUES)
def test_the_words_are_torchs_own(kind: str, tmp_path: Path) -> None:
    torch.save({"model": {"a.weight": torch.zeros(3), "a.bias": torch.zeros(3)}, "x": VALUES[kind]}, tmp_path / "m.pth")
    try:
        torch.load(tmp_path / "m.pth")
        said = ""
    except pickle.UnpicklingError as error:
        said = str(error)
    checkpoint = open_checkpoint(tmp_path / "m.pth")
    assert checkpoint.weights is not None
    first = plain_load(checkpoint, checkpoint.weights).obstacles[0].says
    if first.startswith("torch.load refuses it"):
        assert said  # Named as dangerous, and not in torch's words.
        return
    assert ("not an allowed global" in first) == bool(said)
    if said:
        assert first.partition('"')[2].partition(" was not")[0] in said


@pytest.mark.parametrize("kind", VALUES)
def test_the_names_are_those_that_pickle_imports(kind: str, tmp_path: Path) -> None:
    (tmp_path / "m.pkl").write_bytes(pickle.dumps({"x": VALUES[kind]}, 2))
    imported: set[str] = set()

    class Watching(pickle._Unpickler):  # type: ignore[misc,name-defined]
        def find_class(self, module: str, name: str) -> Any:
            found = super().find_class(module, name)
            imported.add(f"{found.__module__}.{found.__qualname__}".removeprefix("builtins."))
            return found

    with (tmp_path / "m.pkl").open("rb") as stream:
        Watching(stream).load()
    ours = {use.name.removeprefix("builtins.") for use in open_checkpoint(tmp_path / "m.pkl").globals}
    aliases = {"copyreg._reconstructor", "queue.Empty", "_queue.Empty", "functools.reduce", "_functools.reduce"}
    assert ours - aliases == imported - aliases


def test_torchs_own_table() -> None:
    pairs = {*_utils.NAME_MAPPING, *NAME_MAPPING, *((m, "x") for m in (*IMPORT_MAPPING, *_utils.IMPORT_MAPPING, "os"))}
    for module, name in pairs:
        expected = _utils.NAME_MAPPING.get((module, name), (_utils.IMPORT_MAPPING.get(module, module), name))
        assert weights_only_name(module, name) == expected


def test_no_dangerous_name_becomes_harmless_and_a_later_protocol_means_what_it_says() -> None:
    for module, name in (*NAME_MAPPING, *((module, "system") for module in IMPORT_MAPPING)):
        if judge(module, name)[0] is GlobalVerdict.DANGEROUS and not module.startswith("__"):
            assert judge(*imported_name(module, name, 2))[0] is not GlobalVerdict.KNOWN, (module, name)
    assert imported_name("commands", "getoutput", 2) == ("subprocess", "getoutput")
    # A module of somebody's own from protocol 3 on.
    assert imported_name("commands", "Settings", 4) == ("commands", "Settings")
