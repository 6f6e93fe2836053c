"""Program text in a pickle: inert as a value, and said to be handed on where a load would hand it to a call."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from inspector.findings import Finding, Severity
from inspector.readers import open_checkpoint

TEXT = "__import__('os').system('id')"


class _Calls:
    """Pickles as a call of a function with arguments."""

    def __init__(self, function: object, *arguments: object) -> None:
        self._call = (function, arguments)

    def __reduce__(self) -> tuple[object, ...]:
        return self._call


def _found(tmp_path: Path, value: object) -> list[Finding]:
    path = tmp_path / "file.pkl"
    path.write_bytes(pickle.dumps(value))
    return [one for one in open_checkpoint(path).findings if one.id == "program-in-text"]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (_Calls(eval, TEXT), "builtins.eval"),
        (_Calls(exec, TEXT, {}), "builtins.exec"),
        (_Calls(compile, TEXT, "x", "exec"), "builtins.compile"),
        (_Calls(os.system, TEXT), f"{os.name}.system"),
        (_Calls(map, eval, [TEXT]), "builtins.eval"),
    ],
    ids=["eval", "exec", "compile", "system", "map of eval"],
)
def test_text_that_a_load_would_run_is_not_called_inert(value: object, name: str, tmp_path: Path) -> None:
    (found,) = _found(tmp_path, {"weights": 1, "note": [1, value]})
    assert found.severity is Severity.WARNING and name in found.subjects
    assert (
        "an ordinary load would hand it to" in found.says
        and f"{name}, which can run" in found.says
        and "inert" not in found.says
    )


def test_text_of_a_name_that_nobody_knows_is_not_called_inert(tmp_path: Path) -> None:
    pickled = pickle.dumps(_Calls(os.path.basename, TEXT)).replace(b"posixpath", b"their_lib")
    path = tmp_path / "file.pkl"
    path.write_bytes(pickled)
    (found,) = (one for one in open_checkpoint(path).findings if one.id == "program-in-text")
    assert found.severity is Severity.NOTICE and "their_lib.basename, of which it is not known" in found.says


def test_a_plain_text_is_inert_unless_the_file_calls_something_else(tmp_path: Path) -> None:
    (alone,) = _found(tmp_path, {"note": TEXT})
    assert alone.severity is Severity.INFO and "It is inert" in alone.says
    (beside,) = _found(tmp_path, {"note": TEXT, "other": _Calls(eval, "1")})
    assert beside.severity is Severity.NOTICE and "inert" not in beside.says and "builtins.eval" in beside.says
