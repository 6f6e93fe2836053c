"""Small tensors that are looked at together: every number and every finding is that of each by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from inspector.checkpoint.types import Checkpoint
from inspector.health import screens
from inspector.health.examine import examine, judge
from inspector.health.freshness import freshness_of
from inspector.health.subject import Subject, examined
from inspector.readers import open_checkpoint
from inspector.weights import measure
from inspector.weights.decoded import DECODERS, find_decoder
from inspector.weights.measure import measure_tensor, read_tensors
from tests.health.many_small import small_tensors


def opened(tmp_path: Path, seed: int) -> Checkpoint:
    """Seeded."""
    path = tmp_path / f"{seed}.pth"
    torch.save(small_tensors(seed), path)
    return open_checkpoint(path)


@pytest.mark.parametrize("compiled", ["0", "1"])
@pytest.mark.parametrize("seed", range(5))
def test_statistics_and_findings_are_those_of_each_by_itself(
    seed: int, compiled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECTOR_COMPILED", compiled)
    checkpoint = opened(tmp_path, seed)
    readings = read_tensors(checkpoint, checkpoint.tensors)
    for tensor, found in zip(checkpoint.tensors, readings.answers.values(), strict=True):
        # NaN is not equal to itself; as text it is, and text has every digit.
        assert repr(found) == repr(measure_tensor(checkpoint, tensor))
    together = judge(checkpoint, checkpoint.weights, readings)
    monkeypatch.setattr(screens, "_stacks", lambda subject, members: ())
    alone = judge(checkpoint, checkpoint.weights, readings)
    assert together.findings == alone.findings
    assert together.not_examined == alone.not_examined


@pytest.mark.parametrize("seed", range(5))
def test_what_an_initialiser_made_is_known_together_as_alone(seed: int, tmp_path: Path) -> None:
    checkpoint = opened(tmp_path, seed)
    tensors = checkpoint.tensors
    report = read_tensors(checkpoint, tensors).report(tensors)
    subject = Subject(
        checkpoint=checkpoint,
        state=checkpoint.weights,
        tensors=examined(tensors, {one.path: one for one in report.tensors}),
        report=report,
        others={},
    )
    known = screens.screens_of(subject)
    judged = list(subject.those(known.judged))
    for one, t in judged:
        assert known.freshness[one.tensor.path] == freshness_of(subject, one, t), one.name
    assert len(judged) > 20 and len(known.freshness) == len(judged)


def test_one_that_cannot_be_read_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "w.pth"
    torch.save(small_tensors(3), path)
    whole = examine(open_checkpoint(path))
    checkpoint = open_checkpoint(path)
    checkpoint.source.close()
    path.write_bytes(path.read_bytes()[:-1])
    cut = examine(checkpoint)
    # The file has changed since it was opened: no tensor has numbers, and each says why.
    assert len(cut.weights.skipped) == len(whole.weights.tensors) and not cut.weights.tensors
    assert all("changed" in why for _, why in cut.weights.skipped)


def test_lots_hold_every_tensor_once_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = opened(tmp_path, 5)
    read = read_tensors(checkpoint, checkpoint.tensors)
    monkeypatch.setattr(measure, "_LOT_NBYTES", 3000)
    told: list[int] = []
    again = read_tensors(
        checkpoint, checkpoint.tensors, workers=3, progress=lambda done, total, note: told.append(done)
    )
    assert repr(again.answers) == repr(read.answers)
    assert told[-1] == sum(tensor.nbytes for tensor in checkpoint.tensors)


def test_no_decoder_claims_what_is_taken_as_plain_at_once(tmp_path: Path) -> None:
    for tensor in opened(tmp_path, 4).tensors:
        for name in (tensor.name, "qweight", "a.weight_packed", "x.qzeros"):
            for dtype in ("float32", "float16", "bfloat16", "float64"):
                plain = replace(tensor, name=name, path=(name,), dtype=dtype)
                assert find_decoder(plain).id == "plain"
                assert not any(decoder.claims(plain) for decoder in DECODERS)
