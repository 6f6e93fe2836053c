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

    from inspector.checkpoint.types import Checkpoint, StateDict
    from inspector.keys.optimizer.groups import OptimizerReport


def open_(
    file: File,
    tree: Annotated[bool, typer.Option("--tree", help="Also show the tree of Python values.")] = False,
    tensors: Annotated[bool, typer.Option("--tensors", help="Also list every tensor.")] = False,
    code: Annotated[bool, typer.Option("--code", help="Also print program text that lies in the file.")] = False,
    digest: Annotated[bool, typer.Option("--digest", help="Also compute the sha256.")] = False,
    groups: Annotated[
        bool, typer.Option("--groups", help="Also list the optimizers' groups by the names of their parameters.")
    ] = False,
    state: State = "",
    fail_on: FailOn = Severity.ERROR,
    json: Json = False,
) -> int:
    """Say what a file is and what is in it, without running anything of it."""
    from inspector.overview import summarise
    from inspector.render.json import fields_of

    checkpoint = open_file(file, digest=digest)
    chosen = pick_state(checkpoint, state)
    answer = summarise(checkpoint, state=chosen if state else None)
    optimizers = _optimizers(checkpoint, chosen) if groups else ()

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
        if groups:
            from inspector.render.optimizer_text import optimizers_text

            parts += ["", optimizers_text(optimizers)]
        return Group(*parts)

    further = {"optimizers": optimizers} if groups else {}
    show({**fields_of(checkpoint), "overview": answer, **further}, text, as_json=json)
    return exit_code(checkpoint.findings, fail_on)


def _optimizers(checkpoint: Checkpoint, state: StateDict | None) -> tuple[OptimizerReport, ...]:
    """An architecture that is known tells buffers from parameters, where names alone would not."""
    from inspector.architectures.recognise import recognise
    from inspector.architectures.targets import target_of_candidate
    from inspector.keys.optimizer.groups import describe_optimizers

    best = recognise(checkpoint, state).best if state is not None else None
    exact = best is not None and best.exact and not best.wrapper
    tensors = target_of_candidate(best).tensors if best is not None and exact else ()
    return describe_optimizers(checkpoint, state, [t.name for t in tensors if t.is_buffer])
