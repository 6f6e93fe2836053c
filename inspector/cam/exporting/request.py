"""What was asked for, so exactly that a command line asks for the same again."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from inspector.cam.exporting.blend import OPACITY, Blend
from inspector.cam.layers.layouts import layer_text
from inspector.cam.report import Explanation, Options, Preprocessing
from inspector.cam.targets.answers import AnswerKind
from inspector.shell_lines import join_words, operand, option_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of `inspector explain`.

    file, pictures: as the command names them. series: further checkpoints. layers: "layer4", "relu:0" for a call,
    "norm:0=NHWC" with a layout. answer: how the scores are meant. classes: indices, () for the best one. pixels_of: a
    class of a segmentation. box: "1", or "left,top,right,bottom[:class]". threads: that torch computes with: with
    another number the last digits may differ. common_scale: a series in colours of one scale. state, target: as every
    command has them.
    """

    file: str
    pictures: tuple[str, ...]
    methods: tuple[str, ...]
    layers: tuple[str, ...]
    classes: tuple[int, ...]
    options: Options
    preprocessing: Preprocessing
    answer: AnswerKind = AnswerKind.ONE
    colour_map: str = "viridis"
    opacity: float = OPACITY
    blend: Blend = Blend.HEAT
    threshold: float = 0.5
    series: tuple[str, ...] = ()
    common_scale: bool = False
    pixels_of: int | None = None
    box: str = ""
    state: str = ""
    target: str = ""
    names: str = ""
    threads: int = 1


def request_for(
    explanation: Explanation, *, file: str, picture: str, colour_map: str, opacity: float, threads: int
) -> Request:
    """The request that makes this one map again."""
    return Request(
        file=file,
        pictures=(picture,),
        methods=(explanation.method,),
        layers=_layers(explanation),
        classes=_classes(explanation),
        options=explanation.options,
        preprocessing=explanation.preprocessing,
        answer=explanation.answer,
        pixels_of=explanation.pixels_of,
        box=explanation.box,
        colour_map=colour_map,
        opacity=opacity,
        threads=threads,
    )


def settled(request: Request, found: Explanation) -> Request:
    """The request for one map with what was chosen for it in its place: layer and class."""
    return replace(request, layers=_layers(found), classes=_classes(found))


def _layers(found: Explanation) -> tuple[str, ...]:
    """As the command takes them; none for the picture itself."""
    return tuple(layer_text(layer) for layer in found.layers if layer.path)


def _classes(found: Explanation) -> tuple[int, ...]:
    """Pixels and boxes say their class themselves."""
    return (found.target.index,) if found.pixels_of is None and not found.box else ()


def command_line(request: Request, folder: str) -> str:
    """The command that writes the same files into a folder, quoted for a POSIX shell."""
    words = ["inspector", "explain", *map(operand, (request.file, *request.pictures))]
    several: tuple[tuple[str, tuple[str | int, ...]], ...] = (
        ("--series", request.series),
        ("--method", request.methods),
        ("--layer", request.layers),
        ("--class", request.classes),
    )
    for option, values in several:
        for value in values:
            words += option_words(option, str(value))
    options = request.options
    words += ["--common-scale"] if request.common_scale else []
    words += ["--fuse", options.fusion] if options.fusion else []
    words += ["--eigen-smooth"] if options.eigen_smooth else []
    words += ["--augment"] if options.augmented else []
    words += ["--aligned"] if options.aligned else []
    words += ["--seed", str(options.seed)]
    words += [] if request.pixels_of is None else ["--pixels-of", str(request.pixels_of)]
    for option, text in (
        ("--box", request.box),
        ("--state", request.state),
        ("--target", request.target),
        ("--names", request.names),
    ):
        words += option_words(option, text) if text else ()
    words += ["--answer", request.answer.value]
    words += ["--preprocessing", preprocessing_text(request.preprocessing)]
    words += ["--colour-map", request.colour_map, "--opacity", repr(request.opacity)]
    words += ["--blend", request.blend.value]
    words += ["--threshold", repr(request.threshold), "--threads", str(request.threads)]
    return join_words([*words, *option_words("--export", folder)])


def preprocessing_text(preprocessing: Preprocessing) -> str:
    """As a file would state it, and as `--preprocessing` takes it."""
    return json.dumps(
        {
            "resize": preprocessing.resize,
            "crop": preprocessing.crop,
            "mean": preprocessing.mean,
            "std": preprocessing.std,
            "interpolation": preprocessing.interpolation,
        }
    )
