"""What no shape tells of a network, each with the reason, and where its answer stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Question(StrEnum):
    """The value is what is left open, as a clause."""

    ORDER_OF_CALLS = "in which order the parts are called, and what is added or joined between them"
    ACTIVATIONS = "activations and dropout"
    STRIDES = "strides, padding, dilation and pooling"
    SIZE = "how large what it takes is (a picture, a board, a length)"
    DIRECTION = "whether a convolution as wide as it is deep is transposed"
    HEADS = "how many heads the attention has"
    OTHER_HEADS = "how many heads the attention without such a table has"
    NORM = "whether a norm without running statistics is a layer, group or instance norm"
    FIRST = "which layer comes first: the tensors are sorted by name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """why: no shape tells it. confirm: where its answer stands. Clauses without a full stop."""

    why: str
    confirm: str


_HEADS = Reason(
    why="the projections are as wide whatever the number is",
    confirm="the number of heads in a config.json, or in the source",
)

REASONS: Mapping[Question, Reason] = {
    Question.ORDER_OF_CALLS: Reason(
        why="a file of weights holds no calls",
        confirm="forward in the source, or inspector graph of an export (ONNX, .pt2, TorchScript)",
    ),
    Question.ACTIVATIONS: Reason(
        why="they have no weights", confirm="the source, or inspector graph of an export (ONNX, .pt2, TorchScript)"
    ),
    Question.STRIDES: Reason(
        why="the weights of a kernel are the same with each of them",
        confirm="the arguments of its layers in the source, or the attributes in an ONNX export",
    ),
    Question.SIZE: Reason(why="a kernel runs over any size", confirm="the preprocessing it was trained with"),
    Question.DIRECTION: Reason(
        why="both ways the weight has one shape", confirm="Conv or ConvTranspose in the source or in an export"
    ),
    Question.HEADS: _HEADS,
    Question.OTHER_HEADS: _HEADS,
    Question.NORM: Reason(
        why="all of them keep a factor and a shift for each channel", confirm="the class of the layer in the source"
    ),
    Question.FIRST: Reason(
        why="the format keeps its tensors by name", confirm="the source, or the file of torch.save it was made of"
    ),
}
