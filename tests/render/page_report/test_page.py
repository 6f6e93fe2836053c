"""The page: nothing of a file becomes markup, nothing is fetched, its size is bounded, its figures are to scale."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from inspector import make_report, open_checkpoint, report_html
from inspector.architectures.key_lists import target_of_list
from inspector.file_report.report import FileReport, TensorFacts, TensorNumbers
from inspector.findings import Finding, Severity
from inspector.params.report import ModuleCount
from inspector.render.page_report.depth import depth_figure
from inspector.render.page_report.module_sizes import module_sizes
from inspector.render.page_report.strip import fingerprint_strip
from inspector.render.png import plain_png
from inspector.weights.report import Fingerprint
from tests.file_report.made import HOSTILE, SAMPLES, hostile_file, write_safetensors
from tests.file_report.test_read import kept_map

# What the page is made of; nothing else may appear in it, whatever a file says.
_TAGS = frozenset(
    {
        *(
            "html",
            "head",
            "meta",
            "title",
            "style",
            "body",
            "main",
            "section",
            "div",
            "span",
            "p",
            "br",
            "b",
            "code",
            "pre",
        ),
        *("h1", "h2", "h3", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "details", "summary"),
        *("figure", "figcaption", "img", "svg", "g", "rect", "text", "path", "circle", "image", "script"),
    }
)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {key: value or "" for key, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def _parsed(html: str) -> _Page:
    page = _Page()
    page.feed(html)
    page.close()
    return page


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> FileReport:
    report = make_report(open_checkpoint(hostile_file(tmp_path_factory.mktemp("hostile"))))
    wrong = Finding(id=HOSTILE[1], severity=Severity.ERROR, says=HOSTILE[0], subjects=HOSTILE, remedy=HOSTILE[2])
    return replace(report, findings=(wrong, *report.findings), maps=(kept_map(b"png"),))


def test_nothing_of_a_file_becomes_markup(hostile: FileReport) -> None:
    page = _parsed(report_html(hostile))
    assert {tag for tag, _ in page.tags} <= _TAGS
    assert [attributes for tag, attributes in page.tags if tag == "script"] == [
        {"type": "application/json", "id": "model-inspector-report"}
    ]
    names = {name for _, attributes in page.tags for name in attributes}
    assert not [name for name in names if name.startswith("on")]
    shown = " ".join(page.text)
    assert "\\u202e" in shown and "\u202e" not in shown and "\x07" not in shown
    assert "alert(1)" in shown


def test_nothing_is_fetched(hostile: FileReport) -> None:
    html = report_html(hostile)
    page = _parsed(html)
    addresses = [a[key] for _, a in page.tags for key in ("src", "href", "action", "srcset", "data") if key in a]
    assert addresses and all(address.startswith("data:image/png;base64,") for address in addresses)
    (policy,) = [a["content"] for tag, a in page.tags if tag == "meta" and a.get("http-equiv")]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    assert "@import" not in html and "url(" not in html


def test_the_data_in_the_page_is_strict_json_and_holds_the_names_as_they_are(hostile: FileReport) -> None:
    html = report_html(hostile)
    (text,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.DOTALL)
    assert "<" not in text and "&" not in text
    plain = json.loads(text, parse_constant=pytest.fail)
    assert sorted(tensor["name"] for tensor in plain["tensors"]) == sorted(HOSTILE)


def test_the_page_begins_with_the_four_sentences_and_the_findings_are_ranked() -> None:
    html = report_html(make_report(open_checkpoint(SAMPLES / "shapes_sick.pth")))
    places = [html.index(f"<b>{word}</b>") for word in ("Model", "Loading", "Code", "Noticed")]
    assert places == sorted(places) and places[-1] < html.index("<h2>Findings</h2>")
    tones = re.findall(r'<div class="finding (\w+)">', html)
    assert tones == sorted(tones, key=["error", "warning", "notice", "info"].index) and tones[0] == "error"


def test_a_quiet_file_says_that_there_is_nothing() -> None:
    html = report_html(replace(make_report(open_checkpoint(SAMPLES / "bare_tensor.pt"), numbers=False), findings=()))
    assert "<h2>Findings</h2><p>None.</p>" in html
    assert "<h2>Loading it</h2>" not in html and "<h2>Where it looks</h2>" not in html


def test_twenty_thousand_tensors_are_a_page_that_can_be_sent(hostile: FileReport) -> None:
    numbers = TensorNumbers(minimum=-1, maximum=1, mean=0, std=0.5, rms=0.5, nan=0, infinite=0, zero=0)
    many = tuple(
        TensorFacts(name=f"b.{n}.w", shape=(2, 2), dtype="float32", nbytes=16, role="linear", numbers=numbers)
        for n in range(20_000)
    )
    modules = (_module("", 20_000), *(_module(f"b.{n}", 1) for n in range(20_000)))
    base = make_report(open_checkpoint(SAMPLES / "shapes.pth"), numbers=False)
    assert base.parameters is not None
    finding = Finding(id="x", severity=Severity.NOTICE, says="x", subjects=tuple(t.name for t in many))
    large = replace(
        base, tensors=many, parameters=replace(base.parameters, modules=modules), findings=(finding,) * 3_000
    )
    html = report_html(replace(large, findings=(finding,) * 30))
    shown = html[: html.index("<script")]
    assert len(shown) < 600_000
    assert "19,700 further tensors: in the JSON that this page holds." in shown
    assert "19,701 further modules" in shown and "25 further findings" in shown
    assert html.count('"b.19999.w"') == 31


def _module(path: str, share: int, children: str = "") -> ModuleCount:
    return ModuleCount(
        path=path, depth=path.count(".") + 1 if path else 0, kind=None, parameters=share, own_parameters=0, buffers=0,
        parameter_nbytes=4 * share, buffer_nbytes=0, tensors=1,
    )  # fmt: skip


def _boxes(svg: str) -> list[tuple[float, float, float]]:
    """(x, y, height) of the rectangles."""
    return [
        (float(x), float(y), float(h))
        for x, y, h in re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', svg)
    ]


def test_heights_are_bytes() -> None:
    svg = module_sizes([_module("", 100), _module("a", 75), _module("a.x", 75), _module("b", 25)])
    whole, a, ax, b = _boxes(svg)
    assert whole == (0, 0, 379)
    assert a == (190, 0, 284) and ax == (380, 0, 284) and b == (190, 285, 94)
    assert "b: 25 elements, 100 B, 25.0 %" in svg


def test_a_thousand_equal_blocks_are_many_boxes_and_none_is_lost() -> None:
    svg = module_sizes(
        [_module("", 1_000), *(_module(f"blocks.{n}", 1) for n in range(1_000)), _module("blocks", 1_000)]
    )
    boxes = [box for box in _boxes(svg) if box[0] == 190]
    assert 20 <= len(boxes) <= 30
    assert sum(height + 1 for _, _, height in boxes) == pytest.approx(380, abs=1.4)  # written to a tenth
    assert sum(int(n.replace(",", "")) for n in re.findall(r"<title>([\d,]+) small modules", svg)) == 1_000
    assert "blocks.0 to blocks.36" in svg


def test_a_file_without_bytes_has_no_figure() -> None:
    # Of long names what tells them apart is kept, their numbers.
    above = ["", "base_model", "base_model.model", "base_model.model.layers"]
    layers = [f"{above[-1]}.{n}{inner}" for n in (1, 11) for inner in ("", ".self_attn")]
    heads = [f"{path}.{head}" for path in layers[1::2] for head in "qv"]
    svg = module_sizes(
        [*(_module(path, 200) for path in above), *(_module(p, 100) for p in layers), *(_module(p, 50) for p in heads)]
    )
    assert ">…1.self_attn<" in svg and ">…11.self_attn<" in svg
    assert module_sizes([_module("", 0)]) == ""
    assert module_sizes([]) == ""


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_a_png_of_ours_is_read_by_others(channels: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, channels), dtype=np.uint8)
    found = np.asarray(Image.open(BytesIO(plain_png(pixels)))).reshape(pixels.shape)
    assert np.array_equal(found, pixels)


def test_the_strip_is_clear_where_nothing_is_and_bright_where_all_is() -> None:
    strip = Fingerprint(names=("a", "b"), edges=(-4.0, 0.0, 4.0), shares=((1.0, 0.0), (1e-5, 0.5)), scale="")
    (address,) = re.findall(r"base64,([\w+/=]+)", fingerprint_strip(strip))
    import base64

    pixels = np.asarray(Image.open(BytesIO(base64.b64decode(address))))
    assert pixels[0, 0].tolist() == [253, 231, 37, 255]  # viridis at 1
    assert pixels[1, 0].tolist() == [68, 1, 84, 255]  # and at 0, a share of 1 in 100,000
    assert pixels[0, 1, 3] == 0 and pixels[1, 1, 3] == 255
    assert fingerprint_strip(replace(strip, names=(), shares=())) == ""


def test_sizes_by_depth_lie_on_a_logarithmic_scale() -> None:
    def tensor(name: str, rms: float) -> TensorFacts:
        numbers = TensorNumbers(minimum=0, maximum=0, mean=0, std=0, rms=rms, nan=0, infinite=0, zero=0)
        return TensorFacts(name=name, shape=(2, 2), dtype="float32", nbytes=16, role="linear", numbers=numbers)

    tensors = [tensor("a", 1.0), tensor("b", 0.1), tensor("c", 0.01)]
    svg = depth_figure(tensors, {"b"})
    ((y,),) = [re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)"', svg)]
    assert float(y) == pytest.approx(26 + 184 / 2)  # half way between 1 and 0.01
    assert depth_figure(tensors[:1], set()) == ""
    assert "<circle" not in depth_figure(tensors, set())


def test_a_rule_is_no_warning_beside_its_own_line_and_no_answer_contradicts_the_count_of_warnings() -> None:
    report = make_report(open_checkpoint(SAMPLES / "shapes_dp.pth.tar"), numbers=False)
    assert report.repair is not None and "wrapper-segment" in {f.id for f in report.repair.findings}
    html = report_html(report)
    assert "(wrapper-segment)" not in html and "drop the segment" in html
    shown = re.sub("<script.*?</script>", "", html, flags=re.DOTALL)
    assert "No error, no warning" in shown and ">Warning<" not in shown and ">Not as it is<" in shown


def test_of_a_file_cut_short_no_proof_is_said_to_fail(tmp_path: Path) -> None:
    (tmp_path / "half.pth").write_bytes((SAMPLES / "shapes_dp.pth.tar").read_bytes()[:900_000])
    html = report_html(make_report(open_checkpoint(tmp_path / "half.pth")))
    assert "No repair was tried: the file ends before its tensors do." in html and "<h3>Verified</h3>" not in html


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_a_proof_that_fails_is_said_beside_how_the_names_fit(tmp_path: Path, value: float) -> None:
    path = write_safetensors(tmp_path / "a.safetensors", {"module.bn.running_var": np.full(4, value, np.float32)})
    report = make_report(open_checkpoint(path), target=target_of_list("bn.running_var", "the list"))
    page = report_html(report)
    assert report.repair is not None and "As it is: " not in page
    failed = any(proof.passed is False for proof in report.repair.proofs)
    # Batch norm computes no negative variance.
    assert failed == (value < 0) == ("1 proof fails: a repair like this is not written." in page)


def test_what_keeps_a_file_from_loading_is_no_error_beside_no_error(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "a.safetensors", {"fc.weight": np.ones((2, 2), np.float32)})
    report = make_report(open_checkpoint(path), target=target_of_list("other.a\nother.b", "the list"))
    page = report_html(report)
    assert report.repair is not None and {f.severity for f in report.repair.findings} >= {Severity.ERROR}
    assert "No error" in page and '<span class="tone">Error</span>' not in page
