"""Reports as plain data for `--json`, downloads and other programs.

Strict JSON: NaN and infinities become the strings "NaN", "Infinity", "-Infinity", bytes and sources are left out.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

# JSON itself spells out what is below the space; the line breaks are those between its values.
_FOREIGN = re.compile(r"[^\n -~]+")
#: Fields that are no data, or too much of it: open files, arrays with file formats of their own, packed value tables.
LEFT_OUT = frozenset({"source", "heat", "raw", "table"})


def as_plain(report: object) -> Any:
    """A frozen report as dicts, lists, text and numbers; keys are the field names."""
    if isinstance(report, Enum):
        return report.value
    if dataclasses.is_dataclass(report) and not isinstance(report, type):
        names = [f.name for f in dataclasses.fields(report) if f.name not in LEFT_OUT]
        plain = {name: as_plain(getattr(report, name)) for name in names}
        # What a reader wants first is often derived: say it once, here, for every face.
        for derived in ("label", "holds", "total", "flops", "numel"):
            if isinstance(getattr(type(report), derived, None), property):
                plain.setdefault(derived, as_plain(getattr(report, derived)))
        return plain
    if isinstance(report, Mapping):
        return {str(key): as_plain(value) for key, value in report.items()}
    if isinstance(report, list | tuple | set | frozenset):
        return [as_plain(item) for item in report]
    if isinstance(report, float) and not math.isfinite(report):
        return "NaN" if math.isnan(report) else "Infinity" if report > 0 else "-Infinity"
    if isinstance(report, str | int | float | bool) or report is None:
        return report
    return str(report)


def as_json(report: object, *, indent: int | None = 2) -> str:
    """The same as text. What a terminal would obey, or nobody could see, is spelled as JSON spells it: \\u202e."""
    made = json.dumps(as_plain(report), indent=indent, ensure_ascii=False, allow_nan=False)
    return _FOREIGN.sub(lambda found: found[0] if found[0].isprintable() else _spelled(found[0]), made)


def _spelled(text: str) -> str:
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)
