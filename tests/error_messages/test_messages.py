"""Every message is recognised in the words of the installed torch, safetensors and Python, provoked where possible."""

from __future__ import annotations

import collections
import io
import pickle
import re
import sys
import tarfile
import types
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from inspector.error_messages.explain import MESSAGES, explain_error
from inspector.error_messages.message import Message, fold, required_word


def _kinds(text: str) -> list[str]:
    return [error.kind for error in explain_error(text).errors]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: m.kind)
def test_the_example_is_recognised_as_itself_alone(message: Message) -> None:
    report = explain_error(f"Traceback (most recent call last):\n{message.example}\n")
    (error,) = report.errors
    assert error.kind == message.kind
    assert error.ours is message.ours
    assert report.says == error.says
    for text in (error.says, error.why, *error.steps):
        assert text.endswith((".", "?", ":")) or "." in text
        assert "{" not in text.replace("'{' JSON", "")
    compile(error.patch, "patch", "exec")


def test_kinds_are_told_apart() -> None:
    kinds = [message.kind for message in MESSAGES]
    assert len(set(kinds)) == len(kinds)
    assert {hidden for m in MESSAGES for hidden in m.hides} <= set(kinds)


def _said(call: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as error:
        call()
    return f"{type(error.value).__name__}: {error.value}"


def _load(data: bytes, **options: Any) -> str:
    return _said(lambda: torch.load(io.BytesIO(data), **options))


def _saved(value: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream, **options)
    return stream.getvalue()


class Settings:
    pass


def _legacy_cuda(device: str) -> bytes:
    plain = _saved({"w": torch.ones(2)}, _use_new_zipfile_serialization=False)
    return plain.replace(b"X\x03\x00\x00\x00cpu", b"X" + len(device).to_bytes(4, "little") + device.encode())


def _zip_of(*members: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        for member in members:
            made.writestr(member, b"3")
    return stream.getvalue()


def _optimizer() -> torch.optim.Optimizer:
    return torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)


def _norm(track: bool) -> nn.Module:
    return nn.Sequential(nn.InstanceNorm2d(2, track_running_stats=track))


def _aged(module: nn.Module, attribute: str) -> nn.Module:
    vars(module).pop(attribute)
    return module


PROVOKED: dict[str, Callable[[], str]] = {
    "unsupported-global": lambda: _load(_saved({"a": Settings()})),
    "not-a-pickle": lambda: _load(b"version https://git-lfs.github.com/spec/v1\noid", weights_only=False),
    "bad-magic": lambda: _load(pickle.dumps({"a": 1}, protocol=2), weights_only=False),
    "no-central-directory": lambda: _load(_saved({"w": torch.ones(99)})[:300]),
    "missing-record": lambda: _load(_zip_of("x/version")),
    "foreign-archive": lambda: _load(_zip_of("x/other")),
    "cut-file": lambda: _load(_saved({"w": torch.ones(99)}, _use_new_zipfile_serialization=False)[:-40]),
    "cut-pickle": lambda: _load(b"", weights_only=False),
    "cut-or-other-file": lambda: _load(b"Invalid username or password.", weights_only=False),
    "silent-end": lambda: _load(b""),
    "unsound-pickle": lambda: _load(b"Not Found", weights_only=False),
    "torch-file-in-pickle": lambda: _load(b"\x89PNG\r\n\x1a\n", weights_only=False),
    "newer-protocol": lambda: (
        _said(lambda: pickle.loads(b"\x80\x05."))
        if sys.version_info < (3, 8)
        else ("ValueError: unsupported pickle protocol: 5")
    ),
    "not-seekable": lambda: _said(lambda: torch.load(nn.Linear(1, 1))),
    "no-optimizer-state": lambda: _said(lambda: _optimizer().load_state_dict({"model": {}})),
    "instance-norm-statistics": lambda: _said(lambda: _norm(False).load_state_dict(dict(_norm(True).state_dict()))),
    "older-whole-model": lambda: _said(lambda: _aged(nn.Upsample(2), "recompute_scale_factor")(torch.ones(1, 1, 1, 1))),
    "unknown-device": lambda: _load(_legacy_cuda("npu:0")),
    "state-dict-as-model": lambda: _said(lambda: collections.OrderedDict().eval()),
    "dict-as-model": lambda: _said(lambda: {}.state_dict()),
    "dict-called": lambda: _said(lambda: collections.OrderedDict()(1)),
    "path-as-state-dict": lambda: _said(lambda: nn.Linear(1, 1).load_state_dict("a.pth")),
    "none-as-state-dict": lambda: _said(lambda: nn.Linear(1, 1).load_state_dict(None)),
    "model-as-state-dict": lambda: _said(lambda: nn.Linear(1, 1).load_state_dict(nn.Linear(1, 1))),
    "not-dict-like": lambda: _said(lambda: nn.Linear(1, 1).load_state_dict((1, 2))),
    "no-such-entry": lambda: _said(lambda: {}["state_dict"]),
    "missing-module": lambda: _said(lambda: __import__("a_module_that_is_not_there")),
    "dtype-differs": lambda: _said(lambda: nn.Linear(2, 2).half()(torch.ones(1, 2))),
    "meta-copy": lambda: _said(lambda: nn.Linear(2, 2, device="meta").to("cpu")),
}


@pytest.mark.parametrize("kind", PROVOKED)
def test_the_installed_words_are_recognised(kind: str) -> None:
    assert kind in _kinds(PROVOKED[kind]())


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without an accelerator")
def test_a_missing_accelerator() -> None:
    assert _kinds(_load(_legacy_cuda("cuda:0"))) == ["no-such-device"]


def test_too_few_devices() -> None:
    # torch says this only where there is one; the words are held against its source instead.
    source = Path(torch.serialization.__file__).read_text(encoding="utf-8")
    for words in (
        "Attempting to deserialize object on ",
        ".device_count() is ",
        "(did you mean to use torch.jit.load()?)",
    ):
        assert words in source


def test_parallel_words_are_torchs() -> None:
    source = Path(sys.modules["torch.nn.parallel.data_parallel"].__file__ or "").read_text(encoding="utf-8")
    for words in ("module must have its parameters and buffers ", "on device ", "(device_ids[0]) but found one of "):
        assert words in source


def test_a_wrapped_attribute() -> None:
    said = _said(lambda: nn.DataParallel(nn.Linear(1, 1)).fc)
    assert _kinds(said) == ["wrapped-attribute"]


def test_an_operand_that_is_not_known() -> None:
    said = _load(pickle.dumps({"a": 1}, protocol=4), weights_only=True)
    assert _kinds(said) == ["unsupported-operand"]
    assert "149" in explain_error(said).errors[0].says


def test_a_blocked_global() -> None:
    said = _load(pickle.dumps({"a": 1}, protocol=2).replace(b"}q\x00", b"cposix\nsystem\nq\x00"), weights_only=True)
    assert _kinds(said) == ["blocked-global"]


def test_a_class_that_is_gone() -> None:
    module = types.ModuleType("gone_models")
    made = type("Net", (), {"__module__": "gone_models"})
    module.Net = made  # type: ignore[attr-defined]
    sys.modules["gone_models"] = module
    data = _saved(made())
    del module.Net
    try:
        assert _kinds(_load(data, weights_only=False)) == ["missing-class"]
    finally:
        del sys.modules["gone_models"]
    assert _kinds(_load(data, weights_only=False)) == ["missing-module"]


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("safetensors-header-too-large", b"\x80\x02}q\x00X\x01\x00\x00\x00aq\x01K\x01s." * 9),
        ("safetensors-header", (8).to_bytes(8, "little") + b"{not it}" + b"\x00" * 8),
    ],
)
def test_safetensors_that_are_none(kind: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(data)
    assert _kinds(_said(lambda: load_file(tmp_path / "a.safetensors"))) == [kind]


def test_safetensors_cut_and_shared(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"w": torch.ones(8)}, path)
    path.write_bytes(path.read_bytes()[:-4])
    assert _kinds(_said(lambda: load_file(path))) == ["safetensors-incomplete"]
    tied = torch.ones(3)
    assert _kinds(_said(lambda: save_file({"a": tied, "b": tied}, path))) == ["shared-memory"]


def test_torchscript(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.jit.save(torch.jit.trace(nn.Linear(1, 1), torch.ones(1, 1)), path)
    assert _kinds(_said(lambda: torch.load(path))) == ["torchscript-weights-only"]


def test_an_optimizer_of_other_parameters() -> None:
    one, two = (torch.optim.SGD(nn.Linear(2, 2, bias=bias).parameters(), lr=1) for bias in (True, False))
    assert _kinds(_said(lambda: two.load_state_dict(one.state_dict()))) == ["optimizer-groups"]


@pytest.mark.parametrize(
    "name", ["eval", "os.system", "builtins.exec", "subprocess.Popen", "posix.system", "pickle.loads"]
)
def test_no_lines_that_would_allow_a_dangerous_name(name: str) -> None:
    text = f"WeightsUnpickler error: Unsupported global: GLOBAL {name} was not an allowed global by default."
    (error,) = explain_error(text).errors
    assert error.kind == "unsupported-global"
    assert error.patch == ""


def test_the_lines_that_allow_a_harmless_name_load_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    torch.save({"lr": collections.Counter(a=1), "when": types.SimpleNamespace(a=1)}, path)
    (error,) = explain_error(_said(lambda: torch.load(path))).errors
    scope: dict[str, Any] = {"torch": torch, "path": path}
    exec(error.patch, scope)
    assert scope["checkpoint"]["when"].a == 1


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("not-a-pickle", b"\x89PNG\r\n\x1a\n"),
        ("not-a-pickle", b"\x93NUMPY\x01\x00v\x00"),
        ("not-a-pickle", b"Not Found"),
        ("not-a-pickle", b"Invalid username"),
        ("not-a-pickle", b"Entry not found"),
    ],
)
def test_another_file_is_one_of_the_causes(name: str, data: bytes) -> None:
    (error,) = explain_error(_load(data, weights_only=False)).errors
    assert name in {error.kind, *(cause.kind for cause in error.causes)}


@pytest.mark.parametrize(("first", "number"), [(b"\x89PNG", 80), (b"\x89HDF", 72), (b"\xff\xd8", 255), (b"\x93N", 147)])
def test_numbers_of_operands_are_those_that_torch_says(first: bytes, number: int) -> None:
    (error,) = explain_error(_load(first + b"\x00" * 9)).errors
    assert f"opcode {number}," in error.says
    assert f" {number} " in error.why


def test_a_tar_and_zeros_are_not_torchs_alone(tmp_path: Path) -> None:
    (tmp_path / "zeros.pth").write_bytes(bytes(20_480))
    with tarfile.open(tmp_path / "folder.tar", "w") as tar:
        tar.add(tmp_path / "zeros.pth", "model.pth")
    for path in tmp_path.iterdir():
        for options in ({}, {"weights_only": False}):
            (error,) = explain_error(_said(lambda p=path, o=options: torch.load(p, **o))).errors  # type: ignore[misc]
            assert {"ordinary-tar", "zero-filled"} <= {cause.kind for cause in error.causes}


@pytest.mark.parametrize("member", ["model.pth", "a.npy"])
def test_an_archive_without_a_folder(member: str) -> None:
    assert _kinds(_load(_zip_of(member))) == ["foreign-archive"]


def test_lines_for_modules_of_an_older_torch_let_them_run() -> None:
    model = nn.Sequential(_aged(nn.Upsample(scale_factor=2), "recompute_scale_factor"), _aged(nn.GELU(), "approximate"))
    (error,) = explain_error(_said(lambda: model(torch.ones(1, 1, 2, 2)))).errors
    exec(error.patch, {"torch": torch, "model": model})
    assert model(torch.ones(1, 1, 2, 2)).shape == (1, 1, 4, 4)


def test_lines_without_running_statistics_load() -> None:
    model, state = _norm(False), dict(_norm(True).state_dict())
    errors = explain_error(_said(lambda: model.load_state_dict(state))).errors
    (error,) = (error for error in errors if error.kind == "instance-norm-statistics")
    exec(error.patch, {"state": state, "model": model})


def test_a_missing_file_of_settings_is_no_missing_file_of_weights() -> None:
    assert _kinds("OSError: x does not appear to have a file named preprocessor_config.json.") == []


def test_a_model_without_numbers_is_told_by_its_warning() -> None:
    model, state = nn.Linear(1, 1, device="meta"), nn.Linear(1, 1).state_dict()
    with pytest.warns(UserWarning, match="no-op") as warned:
        model.load_state_dict(state)
    (error,) = explain_error(str(warned[0].message)).errors
    assert error.kind == "copied-to-meta"
    exec(error.patch, {"state": state, "model": model})
    assert model.weight.device.type == "cpu"


def test_a_log_that_escapes_backslashes() -> None:
    (error,) = explain_error("UnpicklingError: invalid load key, '\\\\x1f'.").errors
    assert error.says == "The file begins with \\x1f, so it is no pickle."


def test_the_quote_of_a_list_ends_with_a_whole_key() -> None:
    names = [f"module.layer{i}.1.conv1.weight" for i in range(40)]
    text = "Unexpected key(s) in state_dict: " + ", ".join(f'"{name}"' for name in names) + ". "
    (error,) = explain_error(text).errors
    assert error.quote.endswith('weight" …')
    assert len(error.quote) <= 120


def test_a_quote_begins_and_ends_with_whole_words() -> None:
    text = "WeightsUnpickler error: Can only SETITEM for dict, collections.OrderedDict, collections.Counter, but got "
    (error,) = explain_error(f"{text}<class 'mypkg.OD'>").errors
    assert error.quote.startswith("Can only SETITEM")
    assert error.quote.endswith("<class 'mypkg.OD'>")


@pytest.mark.parametrize(
    ("pattern", "word"),
    [
        ("Ran out of input", "input"),
        (r"(?:EOFError: )?Ran out", "ran"),
        (r"(?:one|another) (?P<name>long words) here", "here"),
        (r"don'?t know \(tagged", "(tagged"),
        (r"torch\.load v?2\.[0-9]{1,3} [longer words]{2}x", "torch.load"),
        ("colou?r", "colo"),
        ("ab+cdx*", "cd"),
        ("this|that", ""),
        (r"\w{1,9}\d", ""),
    ],
)
def test_the_word_that_a_pattern_cannot_do_without(pattern: str, word: str) -> None:
    assert required_word(pattern) == word


def test_a_word_is_found_in_every_letter_that_the_pattern_takes_for_it() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    for small in "abcdefghijklmnopqrstuvwxyz":
        letters = re.findall(small, every, re.IGNORECASE)
        assert {small, small.upper()} <= set(letters)
        assert {fold(letter) for letter in letters} == {small}


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: m.kind)
def test_a_message_is_found_whatever_the_case(message: Message) -> None:
    example = " ".join(message.example.split())
    assert message.find(example, fold(example))[0] is not None
    for text in (example.upper(), example.replace("s", "ſ").replace("k", "\u212a")):
        assert (message.find(text, fold(text))[0] is None) == (message.find(text, _Everything())[0] is None)


class _Everything(str):
    """A text that has every word, so that each pattern is searched for."""

    def __contains__(self, word: object) -> bool:
        return True
