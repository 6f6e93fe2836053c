"""stats of what cannot be measured: it says so, in `check`'s words, and passes no gate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from inspector.cli.main import run
from inspector.errors import ReadError
from tests.serving import Handler, Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as found:
        yield found


def _changes(handler: Handler) -> bool:
    """Another file is there once the header was read."""
    told = handler.told
    if len(told.log) > 1:
        told.files["/a.safetensors"] = save({"w": torch.full((2_000_000,), 7.0)})
    return True


def _gives_up(handler: Handler) -> bool:
    """Nothing behind the header."""
    span = handler.headers.get("Range", "")
    if span.startswith("bytes=0-"):
        return True
    handler.answer(404, b"")
    return False


@pytest.mark.parametrize("odd", [_changes, _gives_up])
@pytest.mark.parametrize("more", [[], ["--spectra"]], ids=["", "spectra"])
def test_what_was_not_measured_is_an_error_as_it_is_to_check(
    server: Server, odd: object, more: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    server.files["/a.safetensors"] = save({"w": torch.randn(2_000_000)})
    server.odd["/a.safetensors"] = odd  # type: ignore[assignment]
    address = f"{server.base}/a.safetensors"
    assert run(["stats", address, "--json", *more]) == 1
    (told,) = json.loads(capsys.readouterr().out)["findings"]
    assert (told["id"], told["severity"], told["subjects"]) == ("numbers-unread", "error", ["w"])
    server.log.clear()
    server.files["/a.safetensors"] = save({"w": torch.randn(2_000_000)})
    assert run(["stats", address, "--fail-on", "error", *more]) == 1
    said = capsys.readouterr().out
    assert "1 tensor could not be examined" in said and "No findings" not in said


def test_numbers_that_cannot_be_read_at_all_are_no_pass(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise ReadError("a.safetensors has changed since it was opened.")

    monkeypatch.setattr("inspector.health.examine.examine", gone)
    server.files["/a.safetensors"] = save({"w": torch.randn(4)})
    for more in ([], ["--spectra"]):
        assert run(["stats", f"{server.base}/a.safetensors", *more]) == 1
        assert "a.safetensors has changed since it was opened." in capsys.readouterr().out


def test_what_was_measured_passes(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.files["/a.safetensors"] = save({"w": torch.randn(2000, 1000) * 0.3 + 0.001})
    assert run(["stats", f"{server.base}/a.safetensors", "--fail-on", "error"]) == 0
    assert "could not be examined" not in capsys.readouterr().out
