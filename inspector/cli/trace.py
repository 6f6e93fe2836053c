"""trace: does the network run on this input, where does it fail and why, and what comes out of each module?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.feature_maps import ChannelsAsked, check_maps, maps_of, write_maps
from inspector.cli.options import (
    FailOn,
    Json,
    State,
    TargetOption,
    exit_code,
    find_target,
    open_file,
    pick_state,
    recognised,
    refuse_unnamed_code,
    show,
)
from inspector.doctor.maps_asked import MOST_SHOWN, Order, Scale, Side
from inspector.errors import UsageError
from inspector.findings import Severity
from inspector.flops.input_size import parse_size
from inspector.side_files import shown_name

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.architectures.types import ArchitectureSpec
    from inspector.cam.report import Preprocessing
    from inspector.cam.runs import ReadyModel
    from inspector.doctor.report import Trace
    from inspector.doctor.run import Wish


def trace(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|TARGET",
            help="A checkpoint, or a target: torchvision/resnet18 (shapes alone), code:net.py:NAME (runs it; NAME is a "
            "class, a function or a model in net.py).",
        ),
    ],
    image: Annotated[
        Path | None, typer.Option("--image", metavar="PICTURE", help="Run on this picture, prepared as explain does.")
    ] = None,
    input_size: Annotated[
        str,
        typer.Option(
            "--input-size",
            help="Random numbers, without the batch: 3x224x224 for pictures, 128 for so many numbers or tokens.",
        ),
    ] = "",
    input_: Annotated[
        str,
        typer.Option("--input", metavar="FILE", help="Tensors with their batch: .npy, .npz, .safetensors, .pt ..."),
    ] = "",
    batch: Annotated[int, typer.Option(help="The input so many times in one pass.", min=1, max=4096)] = 1,
    train: Annotated[bool, typer.Option("--train", help="In training, with gradients, instead of evaluation.")] = False,
    depth: Annotated[int, typer.Option(help="How deep the tree goes where nothing fails.", min=0)] = 2,
    feature_maps: Annotated[
        str,
        typer.Option(
            "--feature-maps",
            metavar="MODULE[:CALL]",
            help="Instead: the channels of what this module gives, as pictures, into --output. :0 is its first call.",
        ),
    ] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PNG", help="Where the feature maps are written.")
    ] = None,
    side: Annotated[Side, typer.Option(help="Feature maps of what the module gives, or of what it is given.")] = (
        Side.OUTPUT
    ),
    tensor: Annotated[int, typer.Option(help="Which one, where the module has several on that side.", min=0)] = 0,
    scale: Annotated[
        Scale, typer.Option(help="Colours of each channel from its own least to its greatest, or one scale for all.")
    ] = Scale.CHANNEL,
    order: Annotated[Order, typer.Option(help="Channels of the strongest variance first, or by number.")] = (
        Order.VARIANCE
    ),
    most: Annotated[int, typer.Option(help="So many channels at most.", min=1, max=1024)] = MOST_SHOWN,
    colour_map: Annotated[str, typer.Option("--colour-map", help="viridis, cividis or grey.")] = "viridis",
    target: TargetOption = "",
    state: State = "",
    fail_on: FailOn = Severity.WARNING,
    json: Json = False,
) -> int:
    """Run one forward pass: the tree as far as it came, the cause where it fails, bad values where it does not."""
    from inspector.architectures.targets import is_architecture
    from inspector.architectures.user_code import is_code

    refuse_unnamed_code(file)
    if sum(map(bool, (image, input_size, input_))) > 1:
        raise UsageError("A picture, a size or a file of tensors: one of them is the input.")
    size = parse_size(input_size) if input_size else None
    is_target = is_code(file) or is_architecture(file)
    if is_target and (state or target):
        raise UsageError(f"--state and --target are for a file, and {shown_name(file)} is none.", hint="Leave it out.")
    if feature_maps or output is not None:
        # What would run or fail for long is looked at last.
        check_maps(feature_maps, output, [file, str(image or ""), input_], is_file=not is_target, colours=colour_map)
    wish = _wish(size, input_, batch=batch, training=train)
    if feature_maps and output is not None:
        ready, spec = _ready(file, target, state)
        asked = ChannelsAsked(module=feature_maps, side=side, tensor=tensor, order=order, most=most)
        found = maps_of(ready, spec, _with_picture(wish, image, ready.preprocessing), asked)
        write_maps(found, output, scale=scale, colours=colour_map, as_json=json)
        return 0
    if is_code(file):
        from inspector.doctor.own_code import trace_code

        report = trace_code(file, _with_picture(wish, image, None))
    elif is_architecture(file):
        report = _of_architecture(file, wish, image)
    else:
        report = _of_file(file, target, state, wish, image)

    def text() -> RenderableType:
        from inspector.render.trace_text import trace_text

        return trace_text(report, depth=depth)

    show(report, text, as_json=json)
    return exit_code(report.findings, fail_on)


def _wish(size: tuple[int, ...] | None, where: str, *, batch: int, training: bool) -> Wish:
    from inspector.doctor.run import Wish
    from inspector.installed import require

    require("torch", "Running a model")
    if not where:
        return Wish(shape=size, batch=batch, training=training)
    from inspector.doctor.inputs import tensors_of

    tensors = tensors_of(open_file(where))
    return Wish(tensors=tensors, input_from="tensors from a file", batch=batch, training=training)


def _with_picture(wish: Wish, path: Path | None, steps: Preprocessing | None) -> Wish:
    """The picture's name goes nowhere. steps: None for those that are assumed where nothing is known."""
    if path is None:
        return wish
    from inspector.cam.inputs.picture import open_picture
    from inspector.cam.inputs.preprocess import infer_preprocessing, prepare

    steps = steps or infer_preprocessing(None, None)
    made, _ = prepare(open_picture(path), steps)
    return replace(wish, tensors={"picture": made}, input_from=f"a picture, prepared by: {steps.source}")


def _of_file(file: str, target: str, state: str, wish: Wish, image: Path | None) -> Trace:
    from inspector.doctor.run import trace_known

    ready, spec = _ready(file, target, state)
    return trace_known(ready.model, ready.architecture, spec, _with_picture(wish, image, ready.preprocessing))


def _ready(file: str, target: str, state: str) -> tuple[ReadyModel, ArchitectureSpec | None]:
    """The file as a model that runs, and what it was built from; None where that was somebody's code."""
    from inspector.cli.ending import set_output_aside
    from inspector.ready import ready_model

    checkpoint = open_file(file)
    chosen = pick_state(checkpoint, state)
    goal = find_target(target, checkpoint, chosen)
    if goal.spec is None:
        set_output_aside()
    ready = ready_model(checkpoint, goal, state=chosen, recognition=recognised(checkpoint, chosen))
    return ready, goal.spec


def _of_architecture(text: str, wish: Wish, image: Path | None) -> Trace:
    """A network without weights, by shapes alone."""
    from inspector.architectures.build import build_model
    from inspector.architectures.targets import parse_target
    from inspector.cam.inputs.preprocess import infer_preprocessing
    from inspector.doctor.run import trace_known

    target = parse_target(text)
    assert target.spec is not None
    steps = infer_preprocessing(None, None, spec=target.spec) if image is not None else None
    model = build_model(target.spec, device="meta")
    return trace_known(model, target.label, target.spec, _with_picture(wish, image, steps))
