"""explain: where does the model look?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.options import File, Json, State, TargetOption, find_target, open_file, pick_state, recognised, show
from inspector.errors import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType


def explain(
    file: File,
    picture: Annotated[Path, typer.Argument(help="A picture: PNG, JPEG, WebP ...")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the overlay as PNG.")] = None,
    maps: Annotated[Path | None, typer.Option("--maps", help="Write the raw and normalised maps as NPZ.")] = None,
    layer: Annotated[str, typer.Option(help="Module whose output is explained; the suggested one if left out.")] = "",
    class_index: Annotated[
        int | None, typer.Option("--class", help="Class to explain; the top one if left out.")
    ] = None,
    method: Annotated[str, typer.Option(help="Method of the heat map.")] = "grad-cam",
    colour_map: Annotated[
        str, typer.Option("--colour-map", help="viridis, inferno, magma, cividis, turbo, jet.")
    ] = "viridis",
    opacity: Annotated[float, typer.Option(help="Of the heat map over the picture.", min=0, max=1)] = 0.5,
    target: TargetOption = "",
    state: State = "",
    json: Json = False,
) -> int:
    """Show where a recognised model looks in a picture, with Grad-CAM."""
    from inspector.cam.classes import class_names
    from inspector.cam.explain import explain as ask
    from inspector.cam.picture import open_picture
    from inspector.cam.preprocess import infer_preprocessing
    from inspector.keys.apply import load_repaired
    from inspector.keys.runnable import plan_to_run
    from inspector.render.overlay import overlay, png_bytes

    image = open_picture(picture)
    checkpoint = open_file(file, digest=True)
    chosen = pick_state(checkpoint, state)
    recognition = recognised(checkpoint, chosen)
    goal = find_target(target, checkpoint, chosen)
    if goal.spec is None:
        raise UsageError(f"{goal.label} cannot be built, so it cannot be run.", hint="Name an architecture as target.")
    plan = plan_to_run(checkpoint, goal, chosen)
    model = load_repaired(checkpoint, plan, goal.spec)
    explanation = ask(
        model,
        image,
        preprocessing=infer_preprocessing(recognition, checkpoint),
        layer=layer or None,
        target=class_index,
        method=method,
        categories=class_names(recognition, checkpoint),
    )
    written: list[str] = []
    if output is not None:
        output.write_bytes(png_bytes(overlay(image, explanation, colour_map=colour_map, opacity=opacity)))
        written.append(output.name)
    if maps is not None:
        import numpy as np

        np.savez(maps, heat=explanation.heat, raw=explanation.raw)
        written.append(maps.name)

    def text() -> RenderableType:
        from inspector.render.text import explanation_text

        return explanation_text(explanation, written)

    show({"explanation": explanation, "written": written}, text, as_json=json)
    return 0
