"""trace --feature-maps: the channels of one module of a pass, as one picture file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.options import show
from inspector.cli.output import check_place, written_whole
from inspector.doctor.maps_asked import MapsAsked, Order, Scale, Side
from inspector.errors import UsageError
from inspector.side_files import shown_name

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.architectures.types import ArchitectureSpec
    from inspector.cam.runs import ReadyModel
    from inspector.doctor.maps_report import FeatureMaps
    from inspector.doctor.run import Wish


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelsAsked:
    """As a person writes it. module: "relu:0" for the first of several calls."""

    module: str
    side: Side
    tensor: int
    order: Order
    most: int


def check_maps(module: str, output: Path | None, inputs: Sequence[str], *, is_file: bool, colours: str) -> None:
    """Raise UsageError, before anything runs, for what cannot be written or means nothing together."""
    if not module:
        raise UsageError("--output is for --feature-maps.", hint="Name a module: --feature-maps layer4.")
    if not is_file:
        raise UsageError(
            "Feature maps are of a file's weights, and this is no file.",
            hint="Give the file, with --target code:model.py:build where your code builds its network.",
        )
    if output is None:
        raise UsageError("Where should the feature maps go?", hint="Give --output maps.png.")
    if output.suffix.lower() != ".png":
        raise UsageError(f"{shown_name(output)} does not end in .png.", hint="Feature maps are written as PNG.")
    from inspector.render.feature_maps import COLOURS

    if colours not in COLOURS:
        raise UsageError(f"There is no colour map {colours!r} here.", hint=f"Colours: {', '.join(COLOURS)}.")
    check_place(output, [one for one in inputs if one])


def maps_of(ready: ReadyModel, spec: ArchitectureSpec | None, wish: Wish, asked: ChannelsAsked) -> FeatureMaps:
    """One pass of the file's model."""
    from inspector.doctor.feature_maps import as_asked
    from inspector.feature_maps import feature_maps_of

    names = [name for name, _ in ready.model.named_modules(remove_duplicate=False)]
    path, time = as_asked(asked.module, known=names)
    return feature_maps_of(
        ready.model,
        ready.architecture,
        spec,
        wish,
        MapsAsked(path=path, time=time, side=asked.side, tensor=asked.tensor, order=asked.order, most=asked.most),
    )


def write_maps(found: FeatureMaps, output: Path, *, scale: Scale, colours: str, as_json: bool) -> None:
    """The sheet, and on standard output what is on it."""
    from inspector.render.feature_maps import maps_sheet
    from inspector.render.overlay import png_bytes

    pixels = png_bytes(maps_sheet(found, scale=scale, colours=colours))
    with written_whole(output) as temporary:
        temporary.write_bytes(pixels)
    written = shown_name(output)

    def text() -> RenderableType:
        from rich.console import Group

        from inspector.render.feature_maps import heading, sentences
        from inspector.render.text import pairs, safe

        rows = [("Model", safe(found.target)), ("Input", safe(found.input_from)), ("Maps", safe(heading(found)))]
        rows += [("" if number else "Shown", safe(says)) for number, says in enumerate(sentences(found, scale))]
        return Group(pairs([*rows, ("Written", safe(written))]))

    show(found, text, as_json=as_json)
