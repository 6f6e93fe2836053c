"""What checks are given: numbers that are read again, and kept while there is room."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.health import subject as module
from inspector.health.examine import examine
from inspector.health.subject import Subject, examined
from inspector.readers import open_checkpoint


def test_arrays_are_kept_for_other_checks_as_long_as_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.save({f"{name}.weight": torch.randn(20, 30) for name in "abc"}, tmp_path / "w.pth")
    checkpoint = open_checkpoint(tmp_path / "w.pth")
    report = examine(checkpoint).weights
    tensors = examined(checkpoint.tensors, {t.path: t for t in report.tensors})
    subject = Subject(checkpoint=checkpoint, state=checkpoint.weights, tensors=tensors, report=report, others={})
    read: list[str] = []
    monkeypatch.setattr(module, "_READ_NBYTES", 2 * 8 * 600)
    monkeypatch.setattr(module, "read_array", lambda c, t, own=module.read_array: read.append(t.name[0]) or own(c, t))
    arrays = [subject.array(one) for one in tensors[:2]]
    assert all(subject.without({"b.weight"}).array(one) is array for one, array in zip(tensors, arrays, strict=False))
    assert read == ["a", "b"]
    # The third takes the place of the first.
    again = [subject.array(tensors[n]) for n in (2, 1, 0)]
    assert read == ["a", "b", "c", "a"] and again[1] is arrays[1] and again[2] is not arrays[0]
    assert np.array_equal(again[2], arrays[0])
    with pytest.raises(ValueError, match="read-only"):
        again[2][0, 0] = 1.0
