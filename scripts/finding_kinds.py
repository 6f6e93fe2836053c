"""Every kind of finding that the package declares, for docs/findings.md: so that whoever filters by id has them all."""

from __future__ import annotations

import importlib
import pkgutil

import inspector
from inspector.findings import FindingKind

# Faces show findings and make none; importing them costs more than all the rest.
_FACES = ("cli", "web", "__main__")


def finding_kinds() -> dict[FindingKind, set[str]]:
    """The constants of all modules, by id, and the parts of the package that use each."""
    kinds: dict[FindingKind, set[str]] = {}
    for module in pkgutil.walk_packages(inspector.__path__, "inspector."):
        part = module.name.split(".")[1]
        if part in _FACES:
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, FindingKind) and part != "findings":
                kinds.setdefault(value, set()).add(part)
    return dict(sorted(kinds.items(), key=lambda item: item[0].id))
