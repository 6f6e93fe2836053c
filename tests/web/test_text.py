"""Nothing that a file says becomes markup."""

from __future__ import annotations

import pytest

from inspector.web.text import escaped, mono, plain, visible


@pytest.mark.parametrize(
    "text", ["![x](http://a.test/p.png)", "<img src=x>", "$x^2$", ":red[x]", "a_b_c", "# h", "a|b"]
)
def test_markdown_is_escaped_character_by_character(text: str) -> None:
    shown = plain(text)
    assert shown.replace("\\", "") == text
    for sign in "[]()<>$:_#|!":
        assert sign not in shown.replace("\\" + sign, "")


def test_line_breaks_cannot_start_a_block() -> None:
    assert "\n" not in plain("a\n\n# big")


def test_html_is_escaped() -> None:
    assert escaped('<b a="1">') == "&lt;b a=&quot;1&quot;&gt;"


def test_short_names_keep_the_whole_one_on_hover() -> None:
    name = "model.encoder.layers.11.attention.self.query.weight"
    assert f'title="{name}"' in mono(name, 20)
    assert "title" not in mono("short", 20)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\u202egpj\u202c", "\\u202egpj\\u202c"),
        ("a\x00b\x07", "a\\x00b\\x07"),
        ("half \ud800", "half \\ud800"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
    ],
)
def test_a_name_cannot_hide_characters_or_turn_the_direction_of_writing(name: str, shown: str) -> None:
    assert visible(name) == shown
    assert escaped(name) == shown
    assert mono(name).endswith(f">{shown}</code>")
    assert plain(name).replace("\\\\", "\\") == shown


@pytest.mark.parametrize("name", ["conv1.weight", "größe", "层.权重", "😀", "two\nlines"])
def test_names_that_can_be_seen_are_left_alone(name: str) -> None:
    assert visible(name) == name
