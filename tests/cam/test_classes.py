"""Class names from what people bring."""

from __future__ import annotations

import pytest

from inspector.cam.inputs.classes import names_in_text


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("cat\ndog\n", ("cat", "dog")),
        ("  cat \r\n\n dog", ("cat", "dog")),
        ('["cat", "dog"]', ("cat", "dog")),
        ('{"1": "dog", "0": "cat"}', ("cat", "dog")),
        ('{"1": "dog", "2": "cat"}', ()),
        ('["cat", 2]', ()),
        ("7", ("7",)),
        ("", ()),
    ],
)
def test_names(text: str, names: tuple[str, ...]) -> None:
    assert names_in_text(text) == names


def test_broken_json_has_no_names_where_json_was_meant() -> None:
    assert names_in_text('["cat", ', ".json") == ()
    assert names_in_text("[" * 100_000, ".json") == ()
