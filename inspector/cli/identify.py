"""identify: which architecture a file is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.options import (
    Digest,
    FailOn,
    File,
    Json,
    State,
    exit_code,
    open_file,
    pick_state,
    progress_bar,
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
    digest: Digest = False,
    fail_on: FailOn = Severity.ERROR,
    json: Json = False,
) -> int:
    """Say which architecture a file is, with the evidence, and whether it is an official weights file."""
    from inspector.checkpoint.digest import left_undigested, with_digest
    from inspector.render.json import fields_of

    checkpoint = open_file(file)
    undigested = "" if digest else left_undigested(checkpoint)
    if not undigested:
        checkpoint = with_digest(checkpoint, progress_bar("sha256"))
    recognition = recognised(checkpoint, pick_state(checkpoint, state))

    def text() -> RenderableType:
        from inspector.render.text import assumed_text, recognition_text

        if assumed:
            return assumed_text(recognition)
        from rich.console import Group

        parts = [recognition_text(recognition)]
        if recognition.structure is not None:
            from inspector.render.structure_text import structure_text

            parts += ["", structure_text(recognition.structure)]
        if undigested:
            parts += ["", f"[dim]Not examined: {undigested}.[/dim]"]
        return Group(*parts)

    skipped = {"skipped": [undigested]} if undigested else {}
    show({**fields_of(recognition), **skipped} if skipped else recognition, text, as_json=json)
    return exit_code(recognition.findings, fail_on)
