"""From a family's spec to the function that builds its model. The builders themselves import torch; this does not."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from inspector.architectures.families.assume import assumed_clause
from inspector.architectures.families.entry import Family
from inspector.architectures.families.specs import arguments_for
from inspector.architectures.types import ArchitectureSpec
from inspector.errors import UnknownArchitecture, UsageError


def builder_of(family: Family) -> Callable[..., Any]:
    """The function that makes the module from `settings`.

    Raises UnknownArchitecture where nothing here builds this family. The builder raises MissingLibrary where it needs
    a library that is not installed.
    """
    if not family.builder:
        raise UnknownArchitecture(
            f"{family.title} can be named, compared and repaired, but nothing here builds it.",
            hint="Use your own code as the target: code:model.py:build.",
        )
    module, _, name = family.builder.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


def family_arguments(family: Family, spec: ArchitectureSpec) -> dict[str, Any]:
    """What the builder is called with. Raises UsageError for sizes that are not set."""
    return {"settings": arguments_for(family, spec)}


def check_confirmed(spec: ArchitectureSpec) -> None:
    """Raise UsageError while something that a forward pass depends on is only assumed."""
    if spec.assumed:
        written = "&".join(f"{one.name}={one.value}" for one in spec.assumed if not isinstance(one.value, tuple))
        raise UsageError(
            f"What {spec.library}/{spec.name} computes depends on what no shape tells: {assumed_clause(spec.assumed)}.",
            hint=f"If that is right, confirm it in the target: {spec.label}&{written}" if written else "",
        )
