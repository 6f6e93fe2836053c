"""Numbers as text: rounding at the borders, where one unit becomes the next."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

import numpy as np
import pytest

from inspector.units import (
    counted,
    human_bytes,
    human_count,
    human_distance,
    human_macs,
    human_place,
    human_shape,
    human_share,
    place_in,
    shorten_apart,
    shorten_middle,
)
from tests.house_parsed import house, in_one_worker, tree_of

pytestmark = in_one_worker


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.00 K"),
        (999_499, "999 K"),
        (999_500, "1.00 M"),
        (11_689_512, "11.7 M"),
        (7_000_000_000, "7.00 B"),
    ],
)
def test_counts(n: int, text: str) -> None:
    assert human_count(n) == text


@pytest.mark.parametrize(
    ("n", "text"), [(134, "134 B"), (4_800_000, "4.80 MB"), (2_147_483_648, "2.15 GB"), (999_950, "1.00 MB")]
)
def test_bytes(n: int, text: str) -> None:
    assert human_bytes(n) == text


def test_macs_use_si_steps() -> None:
    assert human_macs(4_089_184_256) == "4.09 G"


def test_a_thousand_has_one_letter_whatever_is_counted() -> None:
    """4.10 K parameters stood beside 4.10 k multiply-accumulates of the same layer."""
    assert human_macs(4_100) == human_count(4_100) == "4.10 K"


@pytest.mark.parametrize(
    ("x", "text"),
    [(0.0, "0 %"), (1e-9, "< 0.1 %"), (0.0723, "7.2 %"), (0.99999, "> 99.9 %"), (1.0, "100 %"), (float("nan"), "NaN")],
)
def test_shares_never_round_something_to_nothing(x: float, text: str) -> None:
    assert human_share(x) == text


@pytest.mark.parametrize(("x", "text"), [(0.032144, "0.03214"), (1.0, "1"), (2e-7, "2e-07"), (math.nan, "")])
def test_a_relative_distance_is_a_plain_ratio_of_four_digits(x: float, text: str) -> None:
    assert human_distance(x) == text


def test_no_table_has_streamlits_own_format_for_bytes_or_percent() -> None:
    """It counts bytes in 1,024 and writes "KB", and percent without a space."""
    folders = (house().package / "web", house().package.parent / "pages")
    files = [path for folder in folders for path in folder.rglob("*.py")]
    assert len(files) > 100
    assert [
        str(p) for p in files if re.search(r'(format=|shown = )"(bytes|percent|compact)"', p.read_text("utf-8"))
    ] == []


def test_places_are_indices_along_each_dimension() -> None:
    assert human_place(185, (4, 3, 4, 4)) == "[3, 2, 2, 1]"
    assert place_in(185, (4, 3, 4, 4)) == tuple(int(at) for at in np.unravel_index(185, (4, 3, 4, 4)))
    assert human_place(7, (12,)) == "[7]"
    assert human_place(0, ()) == "[]"


def test_shapes_and_plurals() -> None:
    assert human_shape((64, 3, 7, 7)) == "64x3x7x7"
    assert human_shape(()) == "scalar"
    assert counted(1, "key") == "1 key"
    assert counted(1234, "entry", "entries") == "1,234 entries"


def test_long_keys_keep_both_ends() -> None:
    key = "model.encoder.layers.11.attention.self.query.weight"
    short = shorten_middle(key, 30)
    assert len(short) == 30
    assert short.endswith("self.query.weight"[-10:])
    assert short.startswith("model.enc")
    assert shorten_middle("short", 30) == "short"


#: "1.5 KB", "20 MiB", "4 GFLOPs", "25 M params": other spellings of what units.py writes, where people read them.
# A number that is formatted ends the text before it.
_OTHERWISE = re.compile(r"(?:^|\d) ?(?:[KMGT]iB|KB|kb|mb|gb|[KMGT](?:FLOPs?|MACs?))\b|(?:^|[\dKMB]) [Pp]arams\b")
#: Where others speak: torch's own message.
_QUOTED = {"error_messages/messages_code.py"}


def _texts(tree: ast.Module) -> Iterator[str]:
    """What is no docstring: those may speak of pages and sectors of two's powers."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


@pytest.mark.parametrize(
    ("text", "is_ours"),
    [
        *((text, False) for text in ("20 MiB", "4.1 GFLOPs", " KB", "25 M params", "3 params")),
        *((text, True) for text in ("4.1 GB", "12.0 kB", "FLOPs", "its params")),
    ],
)
def test_spellings_are_told_apart(text: str, is_ours: bool) -> None:
    assert (_OTHERWISE.search(text) is None) is is_ours


def test_texts_have_one_spelling_of_units() -> None:
    found = {
        f"{where}: {text}"
        for path in house().package.rglob("*.py")
        if (where := str(path.relative_to(house().package))) not in _QUOTED
        for text in _texts(tree_of(path))
        if _OTHERWISE.search(text)
    }
    assert found == set()


def test_what_writes_a_file_is_called_repair_convert_or_merge() -> None:
    """Export is what other programs do (torch.export, ONNX): the page and the command here are Repair and Convert."""
    ours = re.compile(r"\b[Ee]xport(ed|s)? (the|its|it|them|here|as|file|first)\b|\b(and|be) exported\b")
    others = {"not_checkpoints", "onnx", "from_pt2.py"}
    found = [
        text
        for path in house().package.rglob("*.py")
        if not others.intersection(path.parts)
        for text in _texts(tree_of(path))
        if ours.search(text)
    ]
    assert found == []


def test_the_drawing_writes_numbers_as_the_pages_do() -> None:
    """Its scripts have no steps of their own."""
    scripts = house().package / "web" / "static" / "drawing"
    assert [path.name for path in scripts.glob("*.js") if re.search(r"'\s?[kKMGB]'", path.read_text("utf-8"))] == []


def test_long_names_below_each_other_stay_apart_when_shortened() -> None:
    blocks = [f"module.features.{n}.block.3.0.weight" for n in range(1, 9)]
    short = shorten_apart([*blocks, "module.classifier.weight"], 22)
    # By the middle alone eight of them were "module.f…ck.3.0.weight".
    assert len({shorten_middle(name, 22) for name in blocks}) == 1
    assert short == [*(f"…f.{n}.block.3.0.weight" for n in range(1, 9)), "…classifier.weight"]
    assert shorten_apart(["conv1.weight", "conv2.weight"], 22) == ["conv1.weight", "conv2.weight"]
    # Numbers tell nothing here, so that they stay whole; the same name twice is no clash.
    words = [f"encoder.{word}.{'projection' * 3}.weight" for word in ("attention", "attributes")]
    assert shorten_apart(words, 12) == [f"…{word.removeprefix('encoder.')}" for word in words]
    assert shorten_apart(["a" * 40] * 2, 10) == [shorten_middle("a" * 40, 10)] * 2
    assert shorten_apart([], 10) == []


def test_words_of_long_names_keep_their_numbers_as_initials() -> None:
    """Layers of a transformer stood there whole, 59 characters beside a strip of 80 pixels; stages were "nch2.5"."""
    blocks = [f"encoder.layers.encoder_layer_{n}.self_attention.in_proj_weight" for n in range(12)]
    assert shorten_apart(["class_token", *blocks], 22)[1:] == [
        *(f"…l.e{n}.s.in_proj_weight" for n in range(10)),
        *(f"…e{n}.s.in_proj_weight" for n in (10, 11)),
    ]
    stages = [f"stage{n}.0.branch2.5.weight" for n in (2, 3, 4)]
    assert shorten_apart(["conv1.weight", *stages], 22)[1:] == [f"s{n}.0.branch2.5.weight" for n in (2, 3, 4)]
