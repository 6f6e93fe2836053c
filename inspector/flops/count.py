"""How many multiply-accumulates does one forward pass take, module by module?

Convention: MACs are the multiply-adds of convolutions and matrix products, attention included, without biases; it is
the convention of the figures that torchvision publishes. Operators without a formula are listed, so that a reader
knows when the sum is a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from inspector.architectures.build import build_model
from inspector.architectures.facts import default_input, usual_inputs
from inspector.architectures.families.building import check_confirmed
from inspector.architectures.types import ArchitectureSpec, Given
from inspector.errors import UsageError
from inspector.flops.report import CostReport, ModuleCost
from inspector.flops.second_opinion import ask_thop
from inspector.flops.trace import Trace, Visit, to_meta, trace_forward

_FLOAT32_NBYTES = 4


def count_costs(
    spec: ArchitectureSpec, input_shape: tuple[int, ...] | None = None, *, batch: int = 1, second_opinion: bool = True
) -> CostReport:
    """The cost of one forward pass of an architecture that can be built.

    input_shape: of the first input without its batch, (channels, height, width) or (tokens,); None for the usual one.
    Raises UnknownArchitecture, ModelError when the input does not fit (the sentence names the layer), UsageError for
    sizes below 1, for a picture where token ids are taken, and while what the model computes is partly assumed.
    """
    check_confirmed(spec)
    first, *others = usual_inputs(spec) or (Given(name="", shape=(1, *default_input(spec))),)
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
    model = build_model(spec, device="meta")
    return _count(
        model,
        replace(first, shape=(batch, *size)),
        [replace(other, shape=(batch, *other.shape[1:])) for other in others],
        label=spec.label,
        second_opinion=second_opinion,
    )


def count_model_costs(
    model: nn.Module, input_shape: tuple[int, ...], *, label: str, dtype: str = "float32", second_opinion: bool = True
) -> CostReport:
    """The same for a module in hand, which is left exactly as it is (a copy without values is run).

    input_shape: with the batch dimension. label: the name for the report and for messages. dtype: of the input; "int64"
    for token ids. Raises also ModelError for a module that cannot be counted: TorchScript, lazy, quantised.
    """
    if any(n < 1 for n in input_shape):
        raise UsageError(
            f"An input of {'x'.join(map(str, input_shape))} has no elements.", hint="Give sizes from 1 up."
        )
    return _count(model, Given(name="", shape=input_shape, dtype=dtype), (), label=label, second_opinion=second_opinion)


def _count(model: nn.Module, first: Given, others: Sequence[Given], *, label: str, second_opinion: bool) -> CostReport:
    blank = to_meta(model, label=label)
    inputs = _blank(first)
    trace = trace_forward(blank, inputs, label=label, more={other.name: _blank(other) for other in others})
    modules = tuple(_cost_of(visit) for visit in trace.visits)
    return CostReport(
        target=label,
        input_shape=first.shape,
        modules=modules,
        macs=modules[0].macs,
        parameters=modules[0].parameters,
        uncounted=_by_calls(trace.uncounted),
        other_operations=_by_calls(trace.others),
        activation_nbytes=_activation_nbytes(trace),
        second_opinions=(ask_thop(blank, inputs),) if second_opinion and not others else (),
    )


def _blank(given: Given) -> Tensor:
    return torch.empty(given.shape, dtype=getattr(torch, given.dtype), device="meta")


def _cost_of(visit: Visit) -> ModuleCost:
    return ModuleCost(
        path=visit.path,
        depth=visit.path.count(".") + 1 if visit.path else 0,
        kind=type(visit.module).__name__,
        input_shape=visit.input_shape,
        output_shape=visit.output_shape,
        macs=visit.macs,
        own_macs=visit.own_macs,
        parameters=sum(parameter.numel() for parameter in visit.module.parameters()),
        calls=visit.calls,
    )


def _activation_nbytes(trace: Trace) -> int:
    return _FLOAT32_NBYTES * sum(visit.output_numel for visit in trace.visits if visit.is_leaf)


def _by_calls(counter: dict[str, int]) -> tuple[tuple[str, int], ...]:
    """Most calls first, then by name."""
    return tuple(sorted(counter.items(), key=lambda item: (-item[1], item[0])))
