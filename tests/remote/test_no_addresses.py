"""What is no web address and no path here: said as what it is, not as a file that is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from inspector.errors import ReadError
from inspector.readers import open_checkpoint

SAYS = {
    "ftp://127.0.0.1/x.pth": "ftp: is not asked: paths, http and https",
    "file:///none/x.pth": "is named by its path. Write /none/x.pth",
    " http://127.0.0.1/x.pth": "begins with a space, and is no web address like that. Write http://127.0.0.1/x.pth",
    "http:\\\\127.0.0.1\\x": "lacks the two slashes behind http:, .* Write http://127.0.0.1/x",
    "http:/127.0.0.1/x": "lacks the two slashes behind http:, .* Write http://127.0.0.1/x",
    "https:example.com/x": "There is no file x",
    "C:/none/x.pth": "There is no file x.pth",
    "none/x.pth": "There is no file x.pth",
}


@pytest.mark.parametrize("where", SAYS)
def test_an_address_that_is_none_is_not_called_a_missing_file(where: str) -> None:
    with pytest.raises(ReadError, match=SAYS[where]):
        open_checkpoint(where)


def test_the_command_line_says_the_same() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "inspector", "check", "ftp://127.0.0.1/x.pth"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode and "ftp: is not asked" in ran.stderr
