"""Tensor names that read otherwise than they are, or that look like paths. Here a name is neither shown raw nor a path.

Bidirectional controls turn the text around them on a screen, characters without width make two names look like one
(Unicode TR 36, sections 2.5 and 2.6); a program that makes files of names would write where "../" leads.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from inspector.checkpoint.types import TensorInfo
from inspector.findings import Finding, FindingKind, Severity
from inspector.units import counted

INVISIBLE_CHARACTERS = FindingKind(
    "invisible-characters", Severity.NOTICE, "Tensor names hold characters that cannot be seen"
)
PATH_NAMES = FindingKind("path-names", Severity.NOTICE, "Tensor names look like paths out of a folder")

_LISTED = 20
_SHOWN = 80  # characters of a name in a sentence
_UPWARDS = re.compile(r"(^|[/\\])\.\.([/\\]|$)")
_ABSOLUTE = re.compile(r"[/\\~]|[A-Za-z]:[/\\]")
# torch's exporter calls what it makes of constants by scope: "/layer1/Constant_output_0".
_NAMES_BY_SCOPE = frozenset({"onnx"})


def observe_names(tensors: Iterable[TensorInfo], format_id: str) -> list[Finding]:
    """One finding per oddity. format_id: of the reader."""
    hidden: dict[str, list[str]] = {}
    paths: list[str] = []
    for tensor in tensors:
        name = tensor.name
        if not name.isascii() and (characters := [c for c in name if unicodedata.category(c) == "Cf"]):
            hidden[name] = characters
        if ("/" in name or "\\" in name) and _is_path(name, format_id):
            paths.append(name)
    found = []
    if hidden:
        first, characters = next(iter(hidden.items()))
        codes = ", ".join(dict.fromkeys(f"U+{ord(c):04X}" for c in characters[:3]))
        found.append(
            INVISIBLE_CHARACTERS.found(
                f"{counted(len(hidden), 'tensor name holds', 'tensor names hold')} characters that cannot be seen: "
                f"{first[:_SHOWN]} has {codes}.",
                subjects=list(hidden)[:_LISTED],
                evidence=(("names", len(hidden)), ("characters", codes)),
                remedy="Two names may look the same and differ. Ask its maker, and compare names by their characters.",
            )
        )
    if paths:
        found.append(
            PATH_NAMES.found(
                f"{counted(len(paths), 'tensor name looks', 'tensor names look')} like a path out of a folder, first "
                f"{paths[0][:_SHOWN]}.",
                subjects=paths[:_LISTED],
                evidence=(("names", len(paths)),),
                remedy="Here no name is used as a path. Do not unpack it with a program that writes a file per tensor.",
            )
        )
    return found


def _is_path(name: str, format_id: str) -> bool:
    if _UPWARDS.search(name):
        return True
    return format_id not in _NAMES_BY_SCOPE and _ABSOLUTE.match(name) is not None
