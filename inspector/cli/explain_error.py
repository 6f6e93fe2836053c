"""explain-error: what an error of loading or running a model means, with or without the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.options import Json, open_file, show
from inspector.errors import ReadError, UsageError
from inspector.side_files import encoding_of, read_bytes, shown_name

if TYPE_CHECKING:
    from rich.console import RenderableType


def explain_error(
    error: Annotated[
        str,
        typer.Argument(metavar="[ERROR.txt]", help='A text file with the message or the code; "-" for standard input.'),
    ] = "",
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="The checkpoint it is about, to have both explained together.")
    ] = "",
    text: Annotated[str, typer.Option("--text", help="The message itself; FILE is then the first argument.")] = "",
    json: Json = False,
) -> int:
    """Say what an error of loading or running a model means, or what is wrong with loading code. Else exits with 1."""
    from inspector.error_messages.explain import explain_error as ask

    if text:
        if file:
            raise UsageError("With --text there is one file at most.", hint='explain-error FILE --text "..."')
        file = error
    elif not error:
        raise UsageError(
            "Where is the message?", hint='explain-error error.txt, explain-error - (standard input) or --text "...".'
        )
    else:
        text = _read(error)
    checkpoint, unreadable = None, ""
    if file:
        try:
            checkpoint = open_file(file)
        except ReadError as problem:
            # A file that cannot be opened is likely what the error is about.
            unreadable = str(problem)
    report = ask(text, checkpoint=checkpoint, unreadable=unreadable)

    def shown() -> RenderableType:
        from inspector.render.pasted import pasted_text

        return pasted_text(report)

    show(report, shown, as_json=json)
    return 0 if report.errors else 1


def _read(where: str) -> str:
    """The text of a file or of standard input; what is no UTF-8 in it becomes a replacement character."""
    data = read_bytes(where)
    encoding = encoding_of(data)
    if b"\x00" in data[:4096] and encoding != "utf-16":
        raise UsageError(
            f"{shown_name(where)} is no text.",
            hint="Give the message first and the checkpoint second: explain-error error.txt FILE.",
        )
    return data.decode(encoding, "replace")
