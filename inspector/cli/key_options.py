"""Options of the commands that compare a file with a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from inspector.errors import UsageError

if TYPE_CHECKING:
    pass


Accept = Annotated[
    list[str] | None, typer.Option("--accept", metavar="RULE", help="Allow a lossy rule; may be given several times.")
]


Choose = Annotated[
    list[str] | None, typer.Option("--choose", metavar="ID=OPTION", help="Answer an open question; may be repeated.")
]


Partial = Annotated[
    bool,
    typer.Option(
        "--partial",
        help="A part is enough: what the file lacks or holds cut short stays at the model's initial value, listed.",
    ),
]


def parse_choices(choose: list[str] | None) -> dict[str, str]:
    """["twin=ema"] -> {"twin": "ema"}."""
    made: dict[str, str] = {}
    for text in choose or ():
        question, equals, option = text.partition("=")
        if not equals:
            raise UsageError(f'"{text}" is no choice.', hint="Write --choose ID=OPTION as the diagnosis shows it.")
        made[question] = option
    return made
