"""identify: which architecture a file is."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def identify(file: File, state: State = "", fail_on: FailOn = Severity.ERROR, json: Json = False) -> int:
    """Say which architecture a file is, with the evidence, and whether it is an official weights file."""
    checkpoint = open_file(file, digest=True)
    recognition = recognised(checkpoint, pick_state(checkpoint, state))

    def text() -> RenderableType:
        from inspector.render.text import recognition_text

        return recognition_text(recognition)

    show(recognition, text, as_json=json)
    return exit_code(recognition.findings, fail_on)
