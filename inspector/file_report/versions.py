"""How a report of an earlier version becomes one of today's: an entry per version, each to the one after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inspector.file_report.report import VERSION

#: version -> what turns its plain data into that of the version after it. Fields that were added with a default need
#: nothing.
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}


def upgraded(plain: dict[str, Any], version: int) -> dict[str, Any]:
    """The same report as today's version has it. version: of `plain`, from 1 up to today's."""
    for step in range(version, VERSION):
        plain = UPGRADES[step](plain)
    return plain
