"""Labels from what people have: lines, vocabularies, tokenizers."""

from __future__ import annotations

import json

import pytest

from inspector.errors import CorruptFile, UsageError
from inspector.projector.labels import fits, labels_at, labels_for, parse_labels


@pytest.mark.parametrize(
    ("raw", "name", "labels"),
    [
        (b"cat\ndog\n", "classes.txt", ("cat", "dog")),
        (b"\xef\xbb\xbfcat\r\n\r\nowl", "vocab.txt", ("cat", "", "owl")),
        (b"label\tsize\ncat\t3\n", "metadata.tsv", ("label", "cat")),
        (b'["a", "b"]', "x.json", ("a", "b")),
        (b'{"the": 0, "of": 1, "and": 3}', "vocab.json", ("the", "of", "", "and")),
        (b'{"0": "cat", "1": "dog"}', "x", ("cat", "dog")),
    ],
)
def test_kinds_of_lists(raw: bytes, name: str, labels: tuple[str, ...]) -> None:
    assert parse_labels(raw, name) == labels


def test_a_tokenizer_with_added_tokens() -> None:
    model = {"vocab": {"a": 0, "b": 1}}
    raw = json.dumps({"model": model, "added_tokens": [{"id": 3, "content": "<pad>"}, {"id": "x"}, 7]}).encode()
    assert parse_labels(raw, "tokenizer.json") == ("a", "b", "", "<pad>")
    unigram = json.dumps({"model": {"vocab": [["a", -1.5], ["b", -2]]}}).encode()
    assert parse_labels(unigram, "tokenizer.json") == ("a", "b")


@pytest.mark.parametrize("raw", [b"{}", b"[1, 2]", b'{"a": 99999999999}', b'{"a": -1}', b'{"a": true}', b"3"])
def test_what_is_no_list_of_labels(raw: bytes) -> None:
    with pytest.raises(UsageError, match="holds no list of labels"):
        parse_labels(raw, "x.json")


def test_broken_json_is_said() -> None:
    with pytest.raises(CorruptFile, match="no valid JSON"):
        parse_labels(b'{"a": ', "x.json")


def test_labels_and_rows() -> None:
    assert labels_for(["word", "cat", "dog"], 2, "m.tsv") == ("cat", "dog")
    assert labels_for(["cat"], 2, "m.tsv") == ("cat",)
    for labels in ([], ["a", "b", "c", "d"]):
        with pytest.raises(UsageError, match="labels, and there are 2 rows"):
            labels_for(labels, 2, "m.tsv")
    assert labels_at(("a", "b", "c"), [0, 2, 5]) == ("a", "c", "")
    assert fits(["a"] * 100, 128) and not fits(["a"] * 129, 128) and not fits(["a"], 5000) and not fits([], 3)
