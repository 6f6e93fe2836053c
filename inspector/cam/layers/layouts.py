"""What a layer is called, and how its output is laid out, as people and command lines write both.

"layer4", "relu:0" for the first call of a module that is called several times, "norm=NHWC" for channels last,
"encoder.ln=1+8x8" for one prefix token before eight rows of eight patches.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import replace

from inspector.cam.report import LayerProposal
from inspector.errors import LayerNotSpatial, UsageError

_TOKENS = re.compile(r"(?:(\d{1,6})\+)?(\d{1,6})x(\d{1,6})", re.ASCII)
_MAPS = ("NCHW", "NHWC")
_HINT = "Write NCHW, NHWC, or 1+8x8 for one prefix token before 8 rows of 8 patches."


def layer_name(layer: LayerProposal) -> str:
    """Its path, with the number of the call where there are several; "" for the picture itself."""
    return f"{layer.path}:{layer.call}" if layer.calls > 1 else layer.path


def layer_text(layer: LayerProposal) -> str:
    """As `find_layer` and the command line take exactly this call of it, with the layout where it was given."""
    if not layer.path:
        return ""
    return f"{layer.path}:{layer.call}" + (f"={layout_text(layer)}" if layer.layout_given else "")


def layout_text(layer: LayerProposal) -> str:
    """ "NCHW", "NHWC", or tokens as "1+8x8"."""
    if layer.layout != "NLC":
        return layer.layout
    return f"{layer.prefix_tokens}+{layer.grid[0]}x{layer.grid[1]}"


def split_layout(text: str, known: Container[str]) -> tuple[str, str]:
    """ "ln_1=1+8x8" -> ("ln_1", "1+8x8"); ("ln_1", "") without one. known: module names, which may hold anything."""
    if text in known:
        return text, ""
    name, equals, layout = text.rpartition("=")
    return (name, layout) if equals else (text, "")


def with_layout(layer: LayerProposal, text: str) -> LayerProposal:
    """The layer with its output read so; itself where that is how it was found.

    Raises UsageError for what is no layout, LayerNotSpatial where the output has another shape.
    """
    shape, upper = layer.shape, text.strip().upper()
    found = _TOKENS.fullmatch(text.strip().lower())
    if upper not in _MAPS and found is None:
        raise UsageError(f"{text!r} is no layout.", hint=_HINT)
    if found is None:
        if len(shape) != 3:
            raise _unfit(layer, f"{upper} is for three numbers: channels, height and width")
        grid = shape[1:] if upper == "NCHW" else shape[:2]
        changed = replace(layer, layout=upper, prefix_tokens=0, grid=(grid[0], grid[1]), centres=None)
    else:
        prefix, rows, columns = (int(number or 0) for number in found.groups())
        if len(shape) != 2:
            raise _unfit(layer, f"{text} is for two numbers: tokens and channels")
        if not rows or not columns or prefix + rows * columns != shape[0]:
            says = f"{prefix} + {rows} x {columns} are {prefix + rows * columns} tokens, not {shape[0]}"
            raise _unfit(layer, says)
        changed = replace(layer, layout="NLC", prefix_tokens=prefix, grid=(rows, columns), centres=None)
    same = (layer.layout, layer.prefix_tokens, layer.grid)
    if same == (changed.layout, changed.prefix_tokens, changed.grid):
        return layer
    return replace(changed, layout_given=True)


def _unfit(layer: LayerProposal, says: str) -> LayerNotSpatial:
    shape = "x".join(map(str, layer.shape)) or "a single number"
    return LayerNotSpatial(f"Layer {layer_name(layer)!r} puts out {shape} for each picture: {says}.", hint=_HINT)
