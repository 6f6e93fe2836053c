"""identify: which architecture a file is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.options import (
    FailOn,
    File,
    Json,
    State,
    exit_code,
    open_file,
    pick_state,
    recognised,
    show,
)
from inspector.findings import Severity

if TYPE_CHECKING:
    from rich.console import RenderableType


def identify(
    file: File,
    state: State = "",
    assumed: Annotated[
        bool, typer.Option("--assumed", help="List what no shape tells, each with its reason, and how to confirm it.")
    ] = False,
    fail_on: FailOn = Severity.ERROR,
    json: Json = False,
) -> int:
    """Say which architecture a file is, with the evidence, and whether it is an official weights file."""
    checkpoint = open_file(file, digest=True)
    recognition = recognised(checkpoint, pick_state(checkpoint, state))

    def text() -> RenderableType:
        from inspector.render.text import assumed_text, recognition_text

        if assumed:
            return assumed_text(recognition)
        if recognition.structure is None:
            return recognition_text(recognition)
        from rich.console import Group

        from inspector.render.structure_text import structure_text

        return Group(recognition_text(recognition), "", structure_text(recognition.structure))

    show(recognition, text, as_json=json)
    return exit_code(recognition.findings, fail_on)
