"""open: what a file is and what is in it."""

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
    show,
)
from inspector.findings import Severity

if TYPE_CHECKING:
    from rich.console import RenderableType


def open_(
    file: File,
    tree: Annotated[bool, typer.Option("--tree", help="Also show the tree of Python values.")] = False,
    tensors: Annotated[bool, typer.Option("--tensors", help="Also list every tensor.")] = False,
    code: Annotated[bool, typer.Option("--code", help="Also print program text that lies in the file.")] = False,
    digest: Annotated[bool, typer.Option("--digest", help="Also compute the sha256.")] = False,
    state: State = "",
    fail_on: FailOn = Severity.ERROR,
    json: Json = False,
) -> int:
    """Say what a file is and what is in it, without running anything of it."""
    from inspector.overview import summarise
    from inspector.render.json import fields_of

    checkpoint = open_file(file, digest=digest)
    chosen = pick_state(checkpoint, state)
    answer = summarise(checkpoint)

    def text() -> RenderableType:
        from rich.console import Group

        from inspector.render.overview_text import answers_text
        from inspector.render.text import checkpoint_text, code_text, tensors_text, tree_text

        parts = [answers_text(answer), "", checkpoint_text(checkpoint)]
        if tree:
            parts += ["", tree_text(checkpoint.root)]
        if tensors and chosen:
            parts += ["", tensors_text(chosen)]
        if code:
            parts += ["", code_text(checkpoint)]
        return Group(*parts)

    show({**fields_of(checkpoint), "overview": answer}, text, as_json=json)
    return exit_code(checkpoint.findings, fail_on)
