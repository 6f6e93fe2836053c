"""Rough use in a real browser: names that want to be markup, links between visitors, wrong pictures."""

from __future__ import annotations

import json
import re
import struct
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

PAGES = ("Contents", "Tensors", "Weights", "Architecture", "Explain", "Repair", "Convert", "Overview")
WORDS = (
    "<img src=x onerror=document.title='pwned'>",
    "</code></div><script>document.title='pwned'</script>",
    "![i](http://a.invalid/x.png)",
    "[a](javascript:document.title='pwned')",
    ":material/delete: $x^2$ `code`",
    "\u202eturned\u202c",
    "x" * 5000,
    "two\nlines",
)


def _safetensors(file: Path) -> None:
    """Names and metadata that want to be markup."""
    header: dict[str, object] = {"__metadata__": {word: word for word in WORDS}}
    for n, word in enumerate(WORDS):
        header[word] = {"dtype": "F32", "shape": [2, 2], "data_offsets": [16 * n, 16 * n + 16]}
    raw = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(range(16)) * len(WORDS))


def _pickle(file: Path) -> None:
    """Modules, classes and arguments that want to be markup: each is called with itself and kept under its name."""
    data = b"\x80\x02}("
    for word in (w for w in WORDS if "\n" not in w and len(w) < 100):
        text = word.encode()
        sized = b"X" + struct.pack("<I", len(text)) + text
        data += sized + b"c" + text + b"\n" + text + b"\n" + sized + b"\x85R"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", data + b"u.")
        archive.writestr("archive/version", "3\n")


@pytest.mark.parametrize(("file", "make"), [("names.safetensors", _safetensors), ("classes.pth", _pickle)])
def test_whatever_a_file_calls_things_stays_text_on_every_page(visitor, tmp_path: Path, file: str, make) -> None:  # type: ignore[no-untyped-def]
    make(tmp_path / file)
    asked: list[str] = []
    visitor.page.on("request", lambda r: asked.append(r.url) if "a.invalid" in r.url else None)
    visitor.upload(tmp_path / file)
    for name in PAGES:
        visitor.visit(name)
        visitor.check_calm()
        markup = "img[src=x], script, a[href^=javascript], [data-testid=stIconMaterial]:text('delete'), .katex"
        assert visitor.main.locator(markup).count() == 0
        assert "\u202e" not in visitor.text()
    assert asked == []
    assert "pwned" not in visitor.page.title()


def test_a_link_shows_the_file_to_another_visitor_and_forgetting_is_each_ones_own(  # type: ignore[no-untyped-def]
    visitor, browser, server, samples: Path
) -> None:
    visitor.upload(samples / "shapes.pth")
    context = browser.new_context()
    server.let_in(context)
    other = context.new_page()
    other.goto(visitor.page.url)
    other.locator(".mi-title h1").filter(has_text="shapes.pth").wait_for()
    visitor.page.get_by_role("button", name="Forget this file").click()
    visitor.page.locator(".mi-title h1").filter(has_text="Open a checkpoint").wait_for()
    assert "file=" not in visitor.page.url
    other.get_by_test_id("stSidebarNavLink").filter(has_text="Tensors").click()
    other.get_by_text(re.compile("338 tensors of 338")).wait_for()
    assert other.get_by_test_id("stAlert").count() == 0
    other.context.close()


def test_a_wrong_picture_is_one_sentence_and_the_heat_map_stays(visitor, samples: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes.safetensors")
    visitor.visit("Explain")
    visitor.page.get_by_role("button", name="star 1").click()
    visitor.page.get_by_alt_text("Heat map overlay").wait_for()
    no_picture = tmp_path / "notes.png"
    no_picture.write_text("hello")
    visitor.page.get_by_test_id("stPopover").filter(has_text="star_1.png").get_by_role("button").click()
    visitor.settle()
    visitor.page.get_by_test_id("stFileUploader").locator("input[type=file]").first.set_input_files(no_picture)
    visitor.page.get_by_text("This is not a picture that can be read").wait_for()
    visitor.settle()
    assert visitor.page.get_by_alt_text("Heat map overlay").count() == 1
    visitor.check_calm()
