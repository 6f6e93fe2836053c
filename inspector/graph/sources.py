"""Which files carry their graph, and who reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from inspector.checkpoint.joined_source import SliceSource
from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint
from inspector.errors import LimitExceeded
from inspector.graph.from_onnx import graph_from_onnx
from inspector.graph.from_pt2 import graph_from_pt2
from inspector.graph.from_torchscript import graph_from_torchscript
from inspector.graph.types import Graph
from inspector.limits import DEFAULT_LIMITS, Limits

#: By the id of the reader that opened the file.
GRAPH_SOURCES: Mapping[str, Callable[[ByteSource, Limits], Graph | None]] = {
    "torch-export": graph_from_pt2,
    "onnx": graph_from_onnx,
    "torchscript": graph_from_torchscript,
}


def graph_of(checkpoint: Checkpoint, *, limits: Limits = DEFAULT_LIMITS) -> Graph | None:
    """The graph that a file carries; None where it carries none. Nothing of it is run.

    Raises ReadError where it cannot be read; what could not be followed is a remark.
    """
    read = GRAPH_SOURCES.get(checkpoint.format)
    if read is None:
        return None
    source = checkpoint.source
    if checkpoint.parts and source.size > checkpoint.origin.nbytes:
        # The files with an ONNX model's data lie behind it.
        source = SliceSource(source, 0, checkpoint.origin.nbytes)
    try:
        return read(source, limits.metered())
    except (RecursionError, MemoryError) as error:
        raise LimitExceeded(
            f"The graph of {checkpoint.origin.name} needs more memory or nesting than this program allows."
        ) from error
