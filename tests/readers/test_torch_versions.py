"""Which torch loads a file: every sentence is compared with what the installed torch really says, on harmless files."""

from __future__ import annotations

import argparse
import io
import json
import pathlib
import pickle
import re
import struct
import sys
import tarfile
import types
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from inspector.findings import Finding, Severity
from inspector.overview import summarise
from inspector.readers import open_checkpoint
from inspector.readers.checks import torch_words

STATE = OrderedDict(w=torch.arange(6, dtype=torch.float32), n=torch.ones(2))


def saved(value: object, **options: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return buffer.getvalue()


def says(data: bytes, **options: object) -> str:
    """torch.load's own message, on one line; "" when it loads."""
    try:
        torch.load(io.BytesIO(data), **{"weights_only": True, **options})
    except (RuntimeError, pickle.UnpicklingError, AttributeError, ImportError, EOFError) as error:
        return re.sub(r"\s+", " ", str(error))
    return ""


def finding(data: bytes, name: str) -> Finding | None:
    return next((f for f in open_checkpoint(data).findings if f.id == name), None)


def error_of(data: bytes, name: str, label: str = "error") -> str:
    found = finding(data, name)
    assert found is not None, name
    return str(dict(found.evidence)[label])


def rezip(data: bytes, change: Callable[[str, bytes], bytes | None]) -> bytes:
    """The archive with each member changed; None leaves it out."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return out.getvalue()


def on_device(device: str) -> bytes:
    def change(name: str, content: bytes) -> bytes:
        old, new = (b"X" + struct.pack("<I", len(d)) + d for d in (b"cpu", device.encode()))
        return content.replace(old, new) if name.endswith("data.pkl") else content

    return rezip(saved(STATE), change)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("protocol", range(6))
def test_every_pickle_protocol_under_weights_only(protocol: int, zipped: bool) -> None:
    data = saved(dict(STATE), pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
    real = says(data)
    checkpoint = open_checkpoint(data)
    assert checkpoint.format == ("torch-zip" if zipped else "torch-legacy")
    # Protocol 0 writes the place of a storage as text, which torch itself cannot take back.
    assert len(checkpoint.tensors) == 2 or protocol == 0
    found = finding(data, "weights-only-refuses")
    assert (found is None) == (not real), real
    if found is not None:
        evidence = dict(found.evidence)
        assert str(evidence["error"]) in real
        assert evidence["protocol"] == (protocol if protocol > 1 else 0) and "pickle_protocol, 2" in found.remedy


def test_protocol_3_is_loaded_and_not_complained_about() -> None:
    assert open_checkpoint(saved(STATE, pickle_protocol=3)).findings == ()


def test_an_unsupported_global() -> None:
    data = saved({"args": argparse.Namespace(lr=0.1), "state": STATE})
    found = finding(data, "weights-only-refuses")
    assert found is not None and dict(found.evidence)["error"] in says(data)
    assert "add_safe_globals([argparse.Namespace])" in found.remedy and "Convert it here" in found.remedy


@pytest.mark.parametrize("name", [b"posix\nsystem", b"builtins\neval", b"models\nNet"])
def test_names_that_are_refused_each_in_their_own_words(name: bytes) -> None:
    data = rezip(saved(STATE), lambda n, c: b"\x80\x02c" + name + b"\n." if n.endswith("data.pkl") else c)
    found = finding(data, "weights-only-refuses")
    assert found is not None and str(dict(found.evidence)["error"]) in says(data)
    assert "Convert it here" not in found.remedy  # There are none.
    assert ("cannot be allowed" in found.remedy) == name.startswith(b"posix")
    alarms = [f for f in open_checkpoint(data).findings if f.id in ("dangerous-global", "unknown-global")]
    assert alarms and all("export" not in f.remedy for f in alarms)


@pytest.mark.skipif(torch.cuda.is_available(), reason="the sentences are those of a machine without the device")
@pytest.mark.parametrize("device", ["cuda:0", "cuda:1", "xpu:0", "mtia:0", "hpu:0", "mps", "xla:0", "npu:1", "ipu"])
def test_a_machine_without_the_device(device: str) -> None:
    data = on_device(device)
    if device == "mps" and torch.backends.mps.is_available():
        pytest.skip("this machine has it")
    assert error_of(data, "saved-device", f"error without {device}") == says(data)
    found = finding(data, "saved-device")
    assert found is not None and 'map_location="cpu"' in found.remedy
    assert dict(found.evidence)[device] == 2
    assert not says(data, map_location="cpu")


def test_a_machine_with_fewer_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    data = on_device("cuda:1")
    expected = error_of(data, "saved-device", "error with one cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert says(data) == expected
    assert not any(
        label.startswith("error with one") for label, _ in finding(on_device("cuda:0"), "saved-device").evidence
    )


def test_a_storage_of_another_size_and_one_that_is_missing() -> None:
    short = rezip(saved(STATE), lambda n, c: c[:8] if n.endswith("data/0") else c)
    assert error_of(short, "storage-size") in says(short)
    gone = rezip(saved(STATE), lambda n, c: None if n.endswith("data/0") else c)
    assert error_of(gone, "storage-missing") in says(gone)
    legacy = saved({"w": STATE["w"]}, _use_new_zipfile_serialization=False)
    at = legacy.rindex(struct.pack("<q", 6))
    more = legacy[:at] + struct.pack("<q", 7) + legacy[at + 8 :] + b"\0" * 4
    assert error_of(more, "storage-size") in says(more)


def test_a_file_of_pickle_itself() -> None:
    data = pickle.dumps({"a": 1}, protocol=2)
    assert error_of(data, "not-for-torch-load") in says(data)
    assert error_of(data, "not-for-torch-load") in says(data, weights_only=False)


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_file_of_pickle_that_is_refused_before_its_number_is_looked_at(protocol: int) -> None:
    """A stranger was told that the default says of a bomb what only the unsafe load says, after it ran."""
    data = pickle.dumps({"a": pathlib.PurePosixPath("x")}, protocol=protocol)
    safe, unsafe = says(data), says(data, weights_only=False)
    assert error_of(data, "weights-only-refuses") in safe
    error = error_of(data, "not-for-torch-load", "error without weights_only")
    assert error in unsafe and error not in safe
    assert "error" not in dict(finding(data, "not-for-torch-load").evidence)
    bomb = finding(b"cos\nsystem\n(S'echo hi'\ntR.", "not-for-torch-load")
    assert bomb.says.endswith("after it has run what the file names.")


@pytest.mark.parametrize(
    "ranges",
    [
        {"a": (0, 16), "b": (8, 24)},
        {"b": (0, 16), "a": (8, 24)},
        {"a": (0, 16), "b": (4, 12)},
        {"a": (0, 16), "b": (0, 8)},
        {"a": (0, 16), "b": (0, 16)},
        {"a": (0, 16), "b": (20, 24)},
        {"a": (0, 16), "b": (16, 24)},
    ],
    ids=str,
)
@pytest.mark.parametrize("held", [12, 24, 30])
def test_ranges_that_the_safetensors_library_refuses(
    ranges: dict[str, tuple[int, int]], held: int, tmp_path: Path
) -> None:
    """Each refusal in its own words; of two names of one range the library takes either."""
    entries = {n: {"dtype": "F32", "shape": [(b - a) // 4], "data_offsets": [a, b]} for n, (a, b) in ranges.items()}
    header = json.dumps(entries).encode()
    path = tmp_path / "odd.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(held))
    errors = {str(dict(f.evidence)["error"]) for f in open_checkpoint(path).findings if "error" in dict(f.evidence)}
    try:
        safetensors.torch.load_file(path)
    except safetensors.SafetensorError as error:
        [said] = errors
        assert str(error).startswith(said)
        assert str(error) == said or said.endswith("tensor")
    else:
        assert not errors


def test_objects_of_numpy_are_nothing_that_torch_load_reads() -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return eval, ("1",)

    buffer = io.BytesIO()
    np.savez(buffer, a=np.array([Bomb()], dtype=object), b=np.ones(2))
    data = buffer.getvalue()
    checkpoint = open_checkpoint(data, name="objects.npz")
    assert {f.id for f in checkpoint.findings} == {"dangerous-global", "object-array"}
    with pytest.raises(ValueError, match="Object arrays cannot be loaded when allow_pickle=False"):
        np.load(io.BytesIO(data))["a"]
    with pytest.raises(RuntimeError, match="not in a subdirectory"):
        torch.load(io.BytesIO(data), weights_only=False)
    answers = {answer.topic.value: answer.says for answer in summarise(checkpoint).answers}
    assert "torch.load refuses" not in answers["loading"]
    assert "with allow_pickle=True it would run builtins.eval" in answers["loading"]
    assert answers["code"].startswith("numpy.load(allow_pickle=True) would run builtins.eval.")


def test_a_program_and_a_tar_under_torch_load(tmp_path: Path) -> None:
    class Twice(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 2 * x

    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(Twice()), buffer)
    assert torch_words.SCRIPT in says(buffer.getvalue())
    with tarfile.open(tmp_path / "old.pth", "w") as tar:
        for name in ("sys_info", "pickle", "storages", "tensors"):
            member = tarfile.TarInfo(name)
            member.size = 5
            tar.addfile(member, io.BytesIO(pickle.dumps(0, 2)))
    with pytest.raises(RuntimeError, match=re.escape(torch_words.TAR)):
        torch.load(tmp_path / "old.pth", weights_only=True)


def test_a_module_whose_code_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    class Net(torch.nn.Linear):
        pass

    Net.__qualname__ = "Net"
    module = types.ModuleType("models_of_a_project")
    module.Net = Net
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(Net, "__module__", module.__name__)
    data = saved(Net(2, 2))
    monkeypatch.delitem(sys.modules, module.__name__)
    found = finding(data, "needs-code")
    assert found is not None and found.subjects == ("models_of_a_project.Net",)
    assert dict(found.evidence)["error"] == says(data, weights_only=False) == "No module named 'models_of_a_project'"
    main = types.ModuleType("__main__")
    main.Net = Net
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(Net, "__module__", "__main__")
    data = saved(Net(2, 2))
    del main.Net
    assert error_of(data, "needs-code") in says(data, weights_only=False)


@pytest.mark.parametrize(
    ("dtype", "oldest"),
    [
        ("uint16", "2.3"),
        ("uint64", "2.3"),
        ("complex32", "2.3"),
        ("float8_e4m3fn", "2.2"),
        ("float8_e8m0fnu", "2.7"),
        ("float4_e2m1fn_x2", "2.8"),
    ],
)
def test_young_types_say_from_which_release_on(dtype: str, oldest: str) -> None:
    kind = getattr(torch, dtype)
    tensor = torch.zeros(4, dtype=torch.uint8).view(kind) if dtype.startswith("float") else torch.zeros(4, dtype=kind)
    found = finding(saved({"x": tensor, "y": torch.ones(1)}), "loads-with")
    assert found is not None and dict(found.evidence)["oldest"] == oldest and dtype in found.says
    assert found.severity is Severity.INFO


def test_big_endian_numbers_are_silently_wrong_before_2_1() -> None:
    def turn(name: str, content: bytes) -> bytes:
        if name.endswith("byteorder"):
            return b"big"
        return b"".join(content[i : i + 4][::-1] for i in range(0, len(content), 4)) if "/data/" in name else content

    data = rezip(saved(STATE), turn)
    assert torch.equal(torch.load(io.BytesIO(data), weights_only=True)["w"], STATE["w"])
    found = finding(data, "big-endian")
    assert found is not None and dict(found.evidence) == {"storages": 2, "oldest": "2.1"}


@pytest.mark.parametrize("zipped", [True, False])
def test_what_every_torch_of_these_years_loads_has_no_finding(zipped: bool) -> None:
    values = {"a": torch.ones(2), "b": torch.zeros(3, dtype=torch.bfloat16), "c": torch.ones(2, dtype=torch.int64)}
    assert open_checkpoint(saved(values, _use_new_zipfile_serialization=zipped)).findings == ()


def test_the_random_state_of_numpy_asks_for_no_release_of_torch() -> None:
    data = saved({"w": torch.ones(2), "numpy": np.random.RandomState(0).get_state()})
    assert any(t.dtype == "uint32" for t in open_checkpoint(data).tensors)
    assert finding(data, "loads-with") is None
    assert finding(saved({"w": torch.ones(2).to(torch.uint32)}), "loads-with") is not None


def test_nobody_is_told_to_convert_objects_without_a_tensor() -> None:
    """There is nothing in it that could be written."""
    buffer = io.BytesIO()
    np.save(buffer, np.array([{"lr": 0.1}], dtype=object))
    found = finding(buffer.getvalue(), "object-array")
    assert found is not None and "convert" not in found.remedy
    buffer = io.BytesIO()
    np.savez(buffer, a=np.array([{"lr": 0.1}], dtype=object), b=np.ones(2))
    found = finding(buffer.getvalue(), "object-array")
    assert found is not None and found.remedy.endswith("convert it here instead.")
