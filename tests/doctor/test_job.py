"""What pages ask for: a pass of a visitor's file, answered with a report that pickles."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import models

from inspector.cam.inputs.preprocess import infer_preprocessing
from inspector.checkpoint.digest import digest_of
from inspector.doctor.maps_asked import MapsAsked, Order
from inspector.jobs.bench import Bench
from inspector.jobs.kinds.reports import feature_maps, trace, trace_own
from inspector.jobs.kinds.table import kind_named
from inspector.jobs.settings import Settings
from inspector.jobs.subjects import FileRef, PictureRef
from inspector.progress import silent


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(Settings(workers=0, memory_nbytes=4 * 10**10, threads=1, results=tmp_path), None)  # type: ignore[arg-type]


def test_a_file_is_traced_on_a_shape_and_on_a_picture(tmp_path: Path, bench: Bench) -> None:
    torch.manual_seed(0)
    path = tmp_path / "net.pth"
    torch.save(models.squeezenet1_1(weights=None).state_dict(), path)
    file = FileRef(sha256=digest_of(path, silent), name="net.pth", path=path)
    report = trace(bench, file, (1, 64, 64), 1, False)
    assert report.diagnosis is not None and report.diagnosis.cause == "grey-picture"
    assert pickle.loads(pickle.dumps(report)) == report
    Image.fromarray(np.full((80, 80, 3), 90, dtype=np.uint8)).save(tmp_path / "mine.png")
    picture = PictureRef(sha256="1" * 64, name="mine.png", path=tmp_path / "mine.png")
    report = trace(bench, file, (picture, infer_preprocessing(None, None)), 2, False)
    assert report.failure is None and report.inputs[0][1].shape == (2, 3, 224, 224)
    assert "mine" not in str(report)
    asked = MapsAsked(path="features.0", order=Order.NUMBER, most=2)
    maps = feature_maps(bench, file, (picture, infer_preprocessing(None, None)), 1, False, asked)
    carried = pickle.loads(pickle.dumps(maps))
    assert carried.shape == (1, 64, 111, 111) and carried.shown == (0, 1) and "mine" not in str(maps)
    np.testing.assert_array_equal(carried.raw, maps.raw)
    assert kind_named("feature-maps").where == "reports:feature_maps"
    assert {kind_named(name).where for name in ("trace", "trace-own")} == {"reports:trace", "reports:trace_own"}


@pytest.mark.usefixtures("warm_python")
def test_own_code_is_traced(tmp_path: Path, bench: Bench) -> None:
    (tmp_path / "own.py").write_text("from torch import nn\ndef build(): return nn.Linear(4, 2)\n")
    report = trace_own(bench, "code:own.py:build", tmp_path, 90.0, 4 * 10**9, None, 1, False)
    assert report.failure is None and report.calls[0].outputs[0].shape == (1, 2)
