"""open, identify, flops, stats: commands that only look."""

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
    parse_size,
    pick_state,
    progress_bar,
    recognised,
    show,
)
from inspector.errors import UsageError
from inspector.findings import Severity
from inspector.side_files import shown_name

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.architectures.types import ArchitectureSpec

_COUNTED = "Name an architecture, a file, or your own code: code:model.py:build."


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


def identify(file: File, state: State = "", fail_on: FailOn = Severity.ERROR, json: Json = False) -> int:
    """Say which architecture a file is, with the evidence, and whether it is an official weights file."""
    checkpoint = open_file(file, digest=True)
    recognition = recognised(checkpoint, pick_state(checkpoint, state))

    def text() -> RenderableType:
        from inspector.render.text import recognition_text

        return recognition_text(recognition)

    show(recognition, text, as_json=json)
    return exit_code(recognition.findings, fail_on)


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
        raise UnknownArchitecture(recognition.says, hint="MACs need a model that can be built: name a target instead.")
    return recognition.best.spec


def stats(file: File, state: State = "", fail_on: FailOn = Severity.ERROR, json: Json = False) -> int:
    """Parameters per module and statistics of every tensor's values, streamed."""
    from inspector.inspection import Question, inspect
    from inspector.weights.observe import observe_weights

    checkpoint = open_file(file)
    questions = (Question.RECOGNITION, Question.PARAMETERS, Question.WEIGHTS)
    chosen = pick_state(checkpoint, state)
    inspection = inspect(checkpoint, questions, state=chosen, progress=progress_bar("reading"))
    findings = observe_weights(inspection.weights) if inspection.weights else ()

    def text() -> RenderableType:
        from rich.console import Group

        from inspector.render.text import findings_text, parameters_text, weights_text

        parts: list[RenderableType] = []
        if inspection.parameters:
            parts += [parameters_text(inspection.parameters), ""]
        if inspection.weights:
            parts += [weights_text(inspection.weights), "", findings_text(findings)]
        parts += [f"{what}: {why}" for what, why in inspection.skipped]
        return Group(*parts)

    report = {"parameters": inspection.parameters, "weights": inspection.weights, "findings": findings}
    show(report, text, as_json=json)
    return exit_code((*checkpoint.findings, *findings), fail_on)
