"""textconv: a checkpoint as text for git to diff. `python -m inspector` answers it before typer is loaded."""

from __future__ import annotations

from typing import Annotated

import typer

File = Annotated[str, typer.Argument(metavar="FILE", help="A checkpoint, or the Git LFS pointer to one.")]


def textconv(file: File) -> int:
    """A sorted line per tensor (name, type, shape, digest, rms), for `git diff`; see docs/git.md. Exits with 0."""
    from inspector.textconv import run

    return run(file)
