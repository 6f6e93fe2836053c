"""Is the answer to a pasted message true of its cause, as its thread found it?"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inspector.error_messages.explain import explain_error
from inspector.error_messages.report import PastedError

# What a wide cause, named where one of two lists is there, stands for.
_WIDE = {
    "other-names": {"keys-renamed", "keys-unexplained", "names-cut", "whole-checkpoint"},
    "not-in-file": {"partial-file", "other-head", "other-architecture", "other-depth"},
    "not-in-model": {"extra-tensors", "other-head", "other-architecture", "other-depth"},
}
VERDICTS = ("right", "two named", "not known", "wrong")


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """One message. source: where it stands; cause: what it was in the end; right: kinds of answer that are true."""

    source: str
    cause: str
    right: tuple[str, ...]
    text: str


@cache
def threads() -> tuple[Thread, ...]:
    """Every message of the collection, in its order."""
    entries = tomllib.loads((Path(__file__).parent / "threads.toml").read_text(encoding="utf-8"))["message"]
    return tuple(Thread(**{**entry, "right": tuple(entry["right"])}) for entry in entries)


def verdict(text: str, right: tuple[str, ...]) -> str:
    """One of `VERDICTS` for a pasted text. Every error in the report must be true; one that asks claims nothing."""
    found = {_of_one(error, right) for error in explain_error(text).errors} | {"not known"}
    return next(one for one in ("wrong", "right", "two named", "not known") if one in found)


def _of_one(error: PastedError, right: tuple[str, ...]) -> str:
    if error.causes:
        true = any(({cause.kind} | _WIDE.get(cause.kind, set())) & set(right) for cause in error.causes)
        return "two named" if true else "wrong"
    if error.kind in right:
        return "right"
    return "not known" if error.asks else "wrong"
