"""What in pasted code makes the network: told by the text, nothing of it run."""

import pytest

from inspector.architectures.source_names import find_makers
from inspector.errors import UsageError


@pytest.mark.parametrize(
    ("text", "likely"),
    [
        ("class Net(Module):\n    pass\nmodel = Net()", "Net"),
        (
            "class Block: ...\nclass Net:\n    def __init__(self):\n        super(Net, self)\n        Block()",
            "Net",
        ),
        ("class Net: ...\ndef build() -> Net:\n    return Net()", "build"),
        ("class A: ...\nclass B: ...", ""),
        ("class _Block: ...\nclass Net(_Block): ...", "Net"),
        ("def a():\n    b()\ndef b():\n    a()", ""),
    ],
)
def test_what_nothing_else_in_the_text_uses_is_the_likely_one(text: str, likely: str) -> None:
    assert find_makers(text).likely == likely


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import os\nclass Net(\n", "line 2"),
        ("import os", "no class and no function"),
        ("x = 1\x00", "no Python"),
        ("(" * 3000 + ")" * 3000, "no Python"),
    ],
)
def test_what_is_no_network_is_refused_in_words(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        find_makers(text)
