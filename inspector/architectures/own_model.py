"""The model that a person's own code builds, in this process: what `code:model.py:build` names, to be run here.

`user_code.py` asks the same code for names and shapes in a process of its own. Whoever wants to see activations and
gradients needs the model itself, so the command line, where the person named their code, runs it here. The web app does
so in a worker process that does nothing else (`jobs/broker.py`), never in its own.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.architectures.code_runner import build, describe, raised
from inspector.architectures.types import Target
from inspector.architectures.user_code import ALONE, FORM, check_source, parse_factory, target_described
from inspector.errors import ModelError

if TYPE_CHECKING:
    from torch import nn


def model_of_code(text: str, *, folder: Path | None = None) -> nn.Module:
    """Run the factory here and give back what it built. Runs the person's code.

    folder: where it and what it imports are looked for, the current one if None. Raises UsageError for text that names
    no factory or a file that is not there, ModelError when it raises or returns no torch.nn.Module.
    """
    from torch import nn

    factory = parse_factory(text)
    here = (folder or Path.cwd()).resolve()
    check_source(factory, here)
    where = str(here / factory.where) if factory.is_file else factory.where
    request = {
        "where": where,
        "factory": factory.name,
        "is_file": factory.is_file,
        "arguments": dict(factory.arguments),
    }
    with _found_first(here):
        try:
            made = build(request)
        except SystemExit as error:
            raise ModelError(
                f"{factory.text}: it ended the program by itself, with exit code {error.code or 0}.", hint=ALONE
            ) from error
        except Exception as error:  # their code may raise anything
            raise ModelError(f"{factory.text}: {raised(error)}.", hint=ALONE) from error
    if isinstance(made, dict) and "error" in made:
        raise ModelError(f"{factory.text}: {made['error']}.", hint=FORM)
    if not isinstance(made, nn.Module):
        raise ModelError(f"{factory.text} returned a {type(made).__name__}, not a torch.nn.Module.")
    return made


def target_of_own(model: nn.Module, text: str) -> Target:
    """Names and shapes of what a factory built here. Raises ModelError as `target_of_code`."""
    return target_described(describe(model), parse_factory(text))


@contextmanager
def _found_first(folder: Path) -> Iterator[None]:
    """Their folder comes first while their code is imported, and last from then on, for what it imports later."""
    before = list(sys.path)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        added = [place for place in sys.path if place not in before]
        sys.path[:] = [*before, *dict.fromkeys(added)]
