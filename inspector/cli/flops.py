"""flops: parameters and multiply-accumulates per module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.options import (
    Json,
    State,
    open_file,
    parse_size,
    pick_state,
    recognised,
    show,
)
from inspector.errors import UsageError
from inspector.side_files import shown_name

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.architectures.types import ArchitectureSpec


_COUNTED = "Name an architecture, a file, or your own code: code:model.py:build."


def flops(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|TARGET",
            help="A checkpoint, or a target: torchvision/resnet18, code:model.py:build (runs it).",
        ),
    ],
    input_size: Annotated[
        str, typer.Option("--input-size", help="Without the batch: CxHxW, e.g. 3x224x224, or tokens.")
    ] = "",
    batch: Annotated[int, typer.Option(help="Pictures in one forward pass.", min=1, max=4096)] = 1,
    depth: Annotated[int, typer.Option(help="How deep the module table goes.", min=0)] = 2,
    thop: Annotated[bool, typer.Option(help="Ask thop for a second opinion.")] = True,
    state: State = "",
    json: Json = False,
) -> int:
    """Count parameters and multiply-accumulates per module, on the meta device."""
    from inspector.architectures.targets import is_architecture, parse_target
    from inspector.architectures.user_code import is_code

    size = parse_size(input_size) if input_size else None
    is_target = is_code(file) or is_architecture(file)
    if is_target and state:
        raise UsageError(f"--state chooses in a file, and {shown_name(file)} is none.", hint="Leave it out.")
    if is_code(file):
        from inspector.flops.own_code import count_code_costs

        report = count_code_costs(file, size, batch=batch, second_opinion=thop)
    else:
        from inspector.flops.count import count_costs

        spec = parse_target(file).spec if is_target else _built_as(file, state)
        assert spec is not None
        report = count_costs(spec, size, batch=batch, second_opinion=thop)

    def text() -> RenderableType:
        from inspector.render.text import costs_text

        return costs_text(report, depth=depth)

    show(report, text, as_json=json)
    return 0


def _built_as(file: str, state: str) -> ArchitectureSpec:
    """What a file is recognised as. Raises UnknownArchitecture, or UsageError for a target without a program."""
    from inspector.errors import UnknownArchitecture

    if file.startswith("keys:"):
        raise UsageError(f"{shown_name(file)} lists names without a model: there is nothing to count.", hint=_COUNTED)
    checkpoint = open_file(file.removeprefix("file:"))
    recognition = recognised(checkpoint, pick_state(checkpoint, state))
    if recognition.best is None:
        raise UnknownArchitecture(
            recognition.answer, hint="MACs need a model that can be built: name a target instead."
        )
    return recognition.best.spec
