"""Files nobody should trust, in a real browser: one sentence, no stack trace, nothing run, the session goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
MARKER = "INSPECTOR_MARKER"


def _markers(server) -> list[Path]:  # type: ignore[no-untyped-def]
    """The hostile sample's payload writes into the server's working directory."""
    return [p for folder in (ROOT, server.store, server.store.parent) for p in folder.glob(MARKER)]


def test_a_hostile_pickle_shows_what_would_have_run_and_runs_nothing(visitor, server, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "hostile.pth")
    verdict = visitor.text()
    assert "os.system" in verdict
    assert "Nothing was executed" in verdict
    for name in ("Contents", "Tensors", "Weights", "Architecture", "Explain", "Repair", "Contents"):
        visitor.visit(name)
        visitor.check_calm()
    table = visitor.page.locator("[data-table=globals]").inner_text()
    for word in ("os.system", "builtins.exec", "dangerous", MARKER):
        assert word in table
    assert "config" in table
    assert "transform" in table
    assert _markers(server) == []


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("download_page.pth", "web page"),
        ("lfs_pointer.bin", "Git LFS"),
        ("picture.pth", "PNG"),
    ],
)
def test_a_wrong_file_is_named_in_one_sentence(visitor, samples: Path, file: str, says: str) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / file)
    alert = visitor.page.get_by_test_id("stAlert")
    alert.wait_for()
    assert says in alert.inner_text()
    for name in ("Contents", "Tensors", "Weights", "Architecture", "Explain", "Repair"):
        visitor.visit(name)
        assert visitor.page.get_by_test_id("stAlert").count() == 1
        visitor.check_calm()


def test_noise_is_refused_and_the_next_file_opens(visitor, samples: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    noise = tmp_path / "noise.pth"
    noise.write_bytes(bytes(range(256)) * 64)
    visitor.upload(noise)
    visitor.page.get_by_test_id("stAlert").wait_for()
    visitor.check_calm()
    visitor.upload(samples / "shapes.pth")
    assert "shufflenet_v2_x0_5" in visitor.text()
    visitor.check_calm()


def test_a_cut_file_says_so_and_shows_what_is_there(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "truncated.pth")
    card = visitor.page.locator("[data-finding=cut-short]").first
    card.wait_for()
    visitor.check_calm()
    for name in ("Contents", "Tensors", "Weights", "Architecture", "Explain", "Repair"):
        visitor.visit(name)
        visitor.check_calm()


@pytest.mark.parametrize("file", ["bare_tensor.pt", "tensor_list.pt"])
def test_a_bare_tensor_is_shown_as_that(visitor, samples: Path, file: str) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / file)
    assert "tensor" in visitor.text()
    for name in ("Contents", "Tensors", "Weights", "Architecture", "Explain", "Repair"):
        visitor.visit(name)
        visitor.check_calm()


def test_markup_in_names_stays_text(visitor, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    import torch

    key = "<img src=x onerror=document.title='pwned'>.![a](http://a.invalid/b.png)"
    file = tmp_path / "a<b>![x](http:&&a.invalid&p.png).pth"
    torch.save({key: torch.ones(2, 2), f"{key}2": torch.ones(3, 3)}, file)
    asked: list[str] = []
    visitor.page.on("request", lambda r: asked.append(r.url) if "a.invalid" in r.url else None)
    visitor.upload(file)
    for name in ("Contents", "Tensors", "Weights", "Architecture", "Explain", "Repair"):
        visitor.visit(name)
    assert asked == []
    assert visitor.page.title() != "pwned"
    assert visitor.page.locator("[data-testid=stMain] img[src=x]").count() == 0


def test_an_empty_file_is_said_to_be_empty(visitor, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    empty = tmp_path / "empty.pth"
    empty.write_bytes(b"")
    visitor.open("/")
    visitor.page.get_by_test_id("inspector-file").set_input_files(empty)
    visitor.page.get_by_text("The file is empty").wait_for()
