"""How many multiply-accumulates does one forward pass take, module by module, and what else does it cost?

Convention: MACs are the multiply-adds of convolutions and matrix products, attention included, without biases; it is
the convention of the figures that torchvision publishes. Operators without a formula are listed, so that a reader
knows when the sum is a lower bound.

Meta and not real tensors: on a CPU in eval mode torch sends attention layers to one fused kernel without a formula (a
vision transformer then counts a third too little), which it does not do on meta.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import nn

from inspector.architectures.build import build_model
from inspector.architectures.facts import default_frames, default_input, usual_inputs
from inspector.architectures.families.building import check_confirmed
from inspector.architectures.types import ArchitectureSpec, Given
from inspector.errors import UsageError
from inspector.flops.bill import Bill, is_whole
from inspector.flops.blank import check_countable, to_meta
from inspector.flops.lines import cost_report
from inspector.flops.refusals import explained
from inspector.flops.report import CostReport
from inspector.flops.second_opinion import ask_thop
from inspector.forward.inputs import blank_of, by_place, filled
from inspector.forward.watch import ForwardError, watch
from inspector.units import human_shape


def count_costs(
    spec: ArchitectureSpec,
    input_shape: tuple[int, ...] | None = None,
    *,
    batch: int = 1,
    second_opinion: bool = True,
    values: str = "",
) -> CostReport:
    """The cost of one forward pass of an architecture that can be built.

    input_shape: of the first input without its batch, (channels, height, width) or (tokens,); None for the usual one.
    values: "" for none (nothing is computed), "random" to run with random weights and numbers, for what depends on
    them. Raises UnknownArchitecture, ModelError when the input does not fit (the sentence names the layer), UsageError
    for sizes below 1, for a picture where token ids are taken, and while what the model computes is partly assumed.
    """
    inputs = inputs_of(spec, input_shape, batch=batch)
    model = build_model(spec, device="cpu" if values else "meta")
    return count_given(model, inputs, label=spec.label, second_opinion=second_opinion, values=values, own=True)


def inputs_of(
    spec: ArchitectureSpec, input_shape: tuple[int, ...] | None = None, *, batch: int = 1
) -> tuple[Given, ...]:
    """What one forward pass takes, with the batch. Raises UsageError as `count_costs`."""
    check_confirmed(spec)
    first, *others = usual_inputs(spec) or (Given(name="", shape=_default_shape(spec)),)
    size = input_shape or first.shape[1:]
    if not first.below and len(size) < 2:
        raise UsageError(
            f'"{size[0]}" is no input size of {spec.library}/{spec.name}.',
            hint="Write channels x height x width, e.g. 3x224x224.",
        )
    if first.below and len(size) != len(first.shape) - 1:
        raise UsageError(
            f"{spec.library}/{spec.name} takes token ids and no picture.", hint="Give their number: --input-size 128."
        )
    return (
        replace(first, shape=(batch, *size)),
        *(replace(other, shape=(batch, *other.shape[1:])) for other in others),
    )


def _default_shape(spec: ArchitectureSpec) -> tuple[int, ...]:
    """One picture, or a clip where that is what it takes, with a batch of 1."""
    channels, height, width = default_input(spec)
    frames = default_frames(spec)
    return (1, channels, height, width) if frames is None else (1, channels, frames, height, width)


def count_model_costs(
    model: nn.Module,
    input_shape: tuple[int, ...],
    *,
    label: str,
    dtype: str = "float32",
    second_opinion: bool = True,
) -> CostReport:
    """The same for a module in hand, which is left exactly as it is (a copy without values is run).

    input_shape: with the batch dimension. label: the name for the report and for messages. dtype: of the input; "int64"
    for token ids. Raises also ModelError for a module that cannot be counted: TorchScript, lazy, quantised.
    """
    given = Given(name="", shape=input_shape, dtype=dtype)
    return count_given(model, (given,), label=label, second_opinion=second_opinion)


def count_given(
    model: nn.Module,
    inputs: Sequence[Given],
    *,
    label: str,
    second_opinion: bool = True,
    values: str = "",
    own: bool = False,
) -> CostReport:
    """The same with several inputs: by keyword where they have a name, else in order.

    values: "random" to run the module itself with random numbers, in eval mode and without gradients, instead of a copy
    without values. own: whether the module was made for this, on the meta device, and needs no copy.
    """
    for given in inputs:
        if any(n < 1 for n in given.shape):
            raise UsageError(f"An input of {human_shape(given.shape)} has no elements.", hint="Give sizes from 1 up.")
    if values not in ("", "random"):
        raise UsageError(f'There are no values named "{values}".', hint="Write random, or leave it out.")
    runs = model if values or own else to_meta(model, label=label)
    if runs is model:
        check_countable(model, label=label, values=bool(values))
    if values:
        generator = torch.Generator().manual_seed(0)
        tensors = [filled(given, generator) for given in inputs]
    else:
        tensors = [blank_of(given) for given in inputs]
    bill = Bill()
    if tensors[0].is_floating_point():
        bill.fields.begin(tensors[0])
    args, kwargs = by_place(tensors, tuple(inputs))
    was_training = {module: module.training for module in runs.modules()}
    try:
        watch(runs.eval(), args, kwargs, bill, whole=is_whole)
    except ForwardError as failed:
        raise explained(label, inputs[0].shape, failed) from failed.error
    finally:
        for module, training in was_training.items():
            module.training = training
    report = cost_report(bill, runs, label=label, input_shape=inputs[0].shape)
    if values:
        return replace(
            report, values="random numbers, one draw: where the work depends on them, other numbers cost otherwise"
        )
    opinions = (ask_thop(runs, tensors[0]),) if second_opinion and len(inputs) == 1 else ()
    return replace(report, second_opinions=opinions)
