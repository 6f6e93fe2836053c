"""Files put together: storages of equal names stay apart, offsets hold, findings and globals are said once."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import torch

from inspector.checkpoint.data import read_array
from inspector.checkpoint.source import BufferSource
from inspector.checkpoint.types import Checkpoint, GlobalUse, GlobalVerdict
from inspector.findings import Finding, Severity
from inspector.readers import open_checkpoint
from inspector.readers.join import join


def saved(state: object, *, legacy: bool = False) -> Checkpoint:
    buffer = io.BytesIO()
    torch.save(state, buffer, _use_new_zipfile_serialization=not legacy)
    return open_checkpoint(buffer.getvalue())


def opened(*states: dict[str, torch.Tensor]) -> tuple[list[tuple[str, Checkpoint]], Checkpoint]:
    files = [(f"{n}.bin", saved(state, legacy=n % 2 == 1)) for n, state in enumerate(states)]
    joined = join(files, name="all")
    tensors = tuple(t for group in joined.tensors for t in group)
    return files, replace(files[0][1], source=joined.source, storages=joined.storages, tensors=tensors)


def test_equal_storage_names_stay_apart_and_bytes_are_torchs() -> None:
    torch.manual_seed(0)
    states = [{f"w{n}": torch.randn(3, 4), f"b{n}": torch.arange(5) * n} for n in range(3)]
    _, whole = opened(*states)
    assert len(whole.storages) == 6
    for state in states:
        for name, tensor in state.items():
            info = next(t for t in whole.tensors if t.name == name)
            np.testing.assert_array_equal(read_array(whole, info), tensor.numpy())


def test_sharing_is_kept_within_a_file_and_never_made_between_files() -> None:
    base = torch.arange(6.0)
    _, whole = opened({"a": base, "b": base[2:]}, {"a2": base, "b2": base[2:]})
    ids = {t.name: t.storage_id for t in whole.tensors}
    assert ids["a"] == ids["b"] != ids["a2"] == ids["b2"]
    second = next(t for t in whole.tensors if t.name == "b2")
    np.testing.assert_array_equal(read_array(whole, second), [2, 3, 4, 5])


def test_extra_sources_lie_behind_the_files() -> None:
    files = [("a", saved({"x": torch.ones(2)}))]
    joined = join(files, name="all", extra=[BufferSource(b"abc"), BufferSource(b"defg")])
    size = files[0][1].source.size
    assert joined.extra_starts == (size, size + 3)
    assert joined.source.read(joined.extra_starts[1], 4) == b"defg"


def noted(name: str, *findings: Finding, uses: tuple[GlobalUse, ...] = ()) -> tuple[str, Checkpoint]:
    return name, replace(saved({"x": torch.ones(1)}), findings=findings, globals=uses)


def finding(ident: str, severity: Severity = Severity.WARNING, says: str = "It is odd.", *subjects: str) -> Finding:
    return Finding(id=ident, severity=severity, says=says, subjects=subjects)


def test_a_finding_is_said_once_with_the_number_of_the_others() -> None:
    files = [
        noted("a.bin", finding("odd", Severity.WARNING, "It is odd.", "x")),
        noted("b.bin", finding("odd", Severity.WARNING, "It is odd too.", "y")),
        noted("c.bin", finding("odd"), finding("worse", Severity.ERROR, "c.bin is broken.")),
    ]
    found = join(files, name="all").findings
    assert [f.id for f in found] == ["worse", "odd"]
    assert found[0].says == "c.bin is broken."
    assert found[1].says == "a.bin: It is odd. 2 other files have the same kind of finding."
    assert found[1].subjects == ("x", "y")
    assert ("file", "a.bin") in found[1].evidence


def test_globals_are_counted_over_all_files_worst_first() -> None:
    def use(name: str, verdict: GlobalVerdict, count: int, *, called: bool = False) -> GlobalUse:
        return GlobalUse(name=name, verdict=verdict, place="p", arguments="", called=called, count=count, why="")

    files = [
        noted("a", uses=(use("k.k", GlobalVerdict.KNOWN, 2),)),
        noted(
            "b", uses=(use("os.system", GlobalVerdict.DANGEROUS, 1), use("k.k", GlobalVerdict.KNOWN, 3, called=True))
        ),
    ]
    found = join(files, name="all").globals
    assert [(u.name, u.count, u.place, u.called) for u in found] == [
        ("os.system", 1, "b: p", False),
        ("k.k", 5, "a: p", True),
    ]


def test_parts_say_what_each_file_is() -> None:
    files, _ = opened({"a": torch.ones(2)}, {"b": torch.ones(2), "c": torch.ones(1)})
    parts = join(files, name="all").parts
    assert [(p.name, p.nbytes) for p in parts] == [(n, c.origin.nbytes) for n, c in files]
    assert parts[1].says.endswith(", 2 tensors")
