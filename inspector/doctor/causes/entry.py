"""What looks for causes of a failed forward: which there are, and how each is told from others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from inspector.doctor.report import Diagnosis
from inspector.doctor.scene import Scene

#: What a diagnosis may name, and when it does.
KINDS = {
    "weights-on-meta": "weights without values meet an input with values",
    "device": "operands are on several devices",
    "quantised": "quantised and plain tensors meet",
    "index-type": "what is looked up by is no whole number",
    "mask-type": "a mask, or what where asks, is no bool",
    "type": "operands have several element types, or one that the operator does not know",
    "endless-recursion": "a forward calls itself",
    "no-forward": "what was called has no forward: a container, or a name misspelt",
    "missing-argument": "a forward was called without one that it needs",
    "unknown-argument": "a forward was called by a keyword that it does not take",
    "too-many-arguments": "a forward was called with more than it takes",
    "gives-none": "a module gives back None",
    "tuple-handed-on": "a module gives several tensors, and all of them were handed to a layer",
    "none-given": "a layer was given None",
    "not-a-tensor": "a layer was given an array, a list, a dict or a picture",
    "not-callable": "a number or text was called like a layer",
    "no-such-attribute": "a module or tensor lacks an attribute",
    "no-super-init": "a module was made without nn.Module's own __init__",
    "name-not-set": "a name was never set or imported",
    "no-such-key": "a dict lacks what was asked for",
    "index-out-of-range": "a table, list or dimension has no place of that number",
    "position-table": "the sequence is longer or shorter than a table of positions",
    "in-place-on-leaf": "a parameter or input that needs a gradient is changed in place",
    "in-place-needed": "what the backward pass needs was changed in place",
    "numpy-of-gradient": "a tensor of a graph of gradients is to become an array",
    "needs-gradient": "a forward takes gradients of what records none",
    "truth-of-many": "a condition asks for the truth of several values",
    "number-of-many": "several values are used as one number",
    "size-is-no-integer": "a size was divided by /",
    "division-by-zero": "a number is divided by zero",
    "no-memory": "the pass needs more memory than there is",
    "uninitialised": "a lazy module was used before its first pass",
    "recurrent-width": "a recurrent layer received another number of features",
    "recurrent-state": "the state of a recurrent layer has another shape",
    "attention-width": "attention received another width",
    "attention-batch": "query and key differ in what attention takes for the batch",
    "attention-mask": "a mask of attention has another shape",
    "channels": "a convolution received another number of channels from a layer before it",
    "input-channels": "the input has another number of channels than the first convolution takes",
    "channels-last": "the channels stand last",
    "channels-elsewhere": "the channels stand in another dimension than the second or last",
    "channels-second": "the channels stand second where a layer takes the last dimension",
    "grey-picture": "the picture has one channel and the network takes three",
    "colour-picture": "the picture has three channels and the network takes one",
    "picture-with-alpha": "the picture has a fourth channel",
    "channel-missing": "there is no dimension for the one channel",
    "batch-missing": "there is no batch dimension",
    "frames-missing": "a network for clips or volumes received pictures",
    "too-many-dimensions": "a network for pictures received clips, or a dimension of size 1 too many",
    "map-dimensions-missing": "a convolution received rows of numbers",
    "picture-flattened": "the pictures were flattened before the network",
    "sequence-transposed": "length and features have changed places",
    "dimensions": "a layer received another number of dimensions than it takes",
    "input-too-small": "nothing is left of the input for a kernel or pool",
    "picture-size": "the picture has another size than the network, its head or its positions take",
    "size-not-divisible": "the sides are halved and doubled again to another size than a skip connection's",
    "norm-width": "a norm was made for another width",
    "batch-norm-of-one": "batch norm in training has one value for each channel",
    "linear-features": "a linear layer received another number of features",
    "not-flattened": "a linear layer received a map that is not flattened",
    "batch-flattened": "the batch was flattened into the features",
    "matrix-product": "two matrices do not fit each other",
    "view-of-transposed": "view goes across transposed dimensions",
    "view-of-shape": "a view holds another number of values",
    "batch-written-out": "the batch is written into a view",
    "heads-do-not-divide": "the width is no multiple of the number of heads",
    "batch-squeezed": "a squeeze took a batch of one away",
    "index-shape": "an index of scatter, gather or a mask has another shape than it takes",
    "unpacking": "a shape has another number of dimensions than the code takes",
    "cat-dimension": "tensors were joined in another dimension than the next layer takes",
    "shared-layer": "one layer was called with two widths in one pass",
    "target-class": "the targets of a loss name a class that is not there",
    "target-shape": "the targets of a loss have another shape than it takes",
    "loss-values": "a loss of probabilities received numbers beyond 0 to 1",
    "values-not-finite": "a function that takes finite numbers received NaN or infinities",
    "batch-reshaped": "a view put positions into the batch, or samples together",
    "target-type": "the targets of a loss have another element type than it takes",
    "no-gpu": "a GPU was asked for and there is none",
    "cat-of-shapes": "tensors to be joined or stacked differ elsewhere",
    "sum-of-shapes": "two tensors of a sum or product do not fit",
    "no-such-dimension": "a dimension was named that the tensor does not have",
    "shape-of-operand": "a function of torch says itself which sizes do not fit",
    "own-check": "a check of the model's own failed",
    "unknown": "none of these",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """kinds: of KINDS, those that it may name. find: looks at the scene, and answers only where it is one of these."""

    kinds: tuple[str, ...]
    find: Callable[[Scene], Diagnosis | None]
