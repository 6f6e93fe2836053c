"""torch.package archives against the objects they were made of; the code in them is shown and never imported."""

from __future__ import annotations

import importlib
import io
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hostile import call
from torch import nn
from torch.package import PackageExporter

from inspector.checkpoint.data import read_bytes
from inspector.checkpoint.types import GlobalVerdict
from inspector.errors import InspectorError
from inspector.findings import Severity
from inspector.readers import open_checkpoint

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

_SOURCE = """
from pathlib import Path
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.second = nn.Linear(2, 3)
        self.second.weight = self.first.weight
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[nn.Module]:
    """A model whose class is in a module of its own, as packages intern them."""
    folder = tmp_path / "sources" / "packaged_net"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "net.py").write_text(_SOURCE)
    monkeypatch.syspath_prepend(str(folder.parent))
    torch.manual_seed(0)
    yield importlib.import_module("packaged_net.net").Net()
    for name in ("packaged_net", "packaged_net.net"):
        sys.modules.pop(name, None)


def _packed(model: nn.Module, path: Path, **more: object) -> bytes:
    with PackageExporter(str(path)) as exporter:
        exporter.intern("packaged_net.**")
        exporter.extern(["torch.**", "pathlib.**"])
        exporter.save_pickle("model", "model.pkl", model)
        for name, value in more.items():
            exporter.save_pickle("model", f"{name}.pkl", value)
    return path.read_bytes()


def _added(data: bytes, **members: bytes) -> bytes:
    out = io.BytesIO(data)
    with zipfile.ZipFile(out, "a") as archive:
        top = archive.namelist()[0].partition("/")[0]
        for name, content in members.items():
            archive.writestr(f"{top}/{name}", content)
    return out.getvalue()


def test_the_weights_are_those_of_the_model(model: nn.Module, tmp_path: Path) -> None:
    data = _packed(model, tmp_path / "p.pt", step={"lr": 0.5, "moment": torch.arange(4.0)})
    checkpoint = open_checkpoint(data)
    assert checkpoint.format == "torch-package"
    assert checkpoint.weights is not None
    assert checkpoint.weights.path == ("model/model.pkl",)
    assert checkpoint.weights.kind == "packaged_net.net.Net"
    expected = model.state_dict()
    assert [t.name for t in checkpoint.weights.tensors] == list(expected)
    for tensor in checkpoint.weights.tensors:
        assert read_bytes(checkpoint, tensor) == expected[tensor.name].numpy().tobytes()
        assert tensor.is_parameter is True
    storages = {t.name: t.storage_id for t in checkpoint.weights.tensors}
    assert storages["first.weight"] == storages["second.weight"]
    (moment,) = [t for t in checkpoint.tensors if t.path == ("model/step.pkl", "moment")]
    assert read_bytes(checkpoint, moment) == torch.arange(4.0).numpy().tobytes()
    assert dict(checkpoint.metadata)["model/step.pkl: lr"] == "0.5"


def test_its_code_is_shown_and_its_class_is_not_imported(model: nn.Module, tmp_path: Path) -> None:
    data = _packed(model, tmp_path / "p.pt")
    sys.modules.pop("packaged_net.net")
    checkpoint = open_checkpoint(data)
    assert "packaged_net.net" not in sys.modules
    assert {s.name: s.text for s in checkpoint.code}["packaged_net/net.py"] == _SOURCE
    (use,) = [u for u in checkpoint.globals if u.verdict is GlobalVerdict.UNKNOWN]
    assert use.name == "packaged_net.net.Net"
    assert "code in this archive" in use.why
    said = dict(checkpoint.metadata)
    assert "torch.nn" in said["modules from outside"]
    assert said["python version"].startswith("3.")
    (finding,) = [f for f in checkpoint.findings if f.id == "torch-package"]
    assert finding.severity is Severity.NOTICE
    assert "PackageImporter runs the Python code" in finding.remedy


def test_a_bare_tensor_is_named_by_its_pickle(model: nn.Module, tmp_path: Path) -> None:
    checkpoint = open_checkpoint(_packed(model, tmp_path / "p.pt", mean=torch.ones(3)))
    (mean,) = [t for t in checkpoint.tensors if t.path == ("model/mean.pkl",)]
    assert mean.name == "model/mean.pkl"
    assert read_bytes(checkpoint, mean) == torch.ones(3).numpy().tobytes()


def test_a_payload_in_any_pickle_is_reported_and_never_runs(model: nn.Module, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    attack = b"\x80\x02" + call("os", "system", f"touch {marker}") + b"."
    checkpoint = open_checkpoint(_added(_packed(model, tmp_path / "p.pt"), **{"other/more.pkl": attack}))
    assert checkpoint.globals[0].verdict is GlobalVerdict.DANGEROUS
    assert checkpoint.globals[0].place.startswith("other/more.pkl")
    assert "dangerous-global" in {f.id for f in checkpoint.findings}
    assert not marker.exists()


def test_a_missing_storage_is_a_finding(model: nn.Module, tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(_packed(model, tmp_path / "p.pt"))) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            if not name.endswith(".data/1.storage"):
                new.writestr(name, old.read(name))
    assert "storage-missing" in {f.id for f in open_checkpoint(out.getvalue()).findings}


def test_a_package_cut_or_changed_anywhere_is_a_checkpoint_or_an_error(model: nn.Module, tmp_path: Path) -> None:
    data = _packed(model, tmp_path / "p.pt")
    broken = [data[:cut] for cut in range(0, len(data), 97)]
    for at in range(0, len(data), 53):
        changed = bytearray(data)
        changed[at] ^= 0x55
        broken.append(bytes(changed))
    for attempt in broken:
        try:
            open_checkpoint(attempt)
        except InspectorError:
            continue
