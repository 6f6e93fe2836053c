"""How many multiply-accumulates does one forward pass take, module by module?

Convention: MACs are the multiply-adds of convolutions and matrix products, attention included, without biases; it is
the convention of the figures that torchvision publishes. Operators without a formula are listed, so that a reader
knows when the sum is a lower bound.
"""

from __future__ import annotations

import torch
from torch import nn

from inspector.architectures.build import build_model
from inspector.architectures.families.building import check_confirmed
from inspector.architectures.types import ArchitectureSpec
from inspector.errors import UsageError
from inspector.flops.report import CostReport, ModuleCost
from inspector.flops.second_opinion import ask_thop
from inspector.flops.trace import Trace, Visit, to_meta, trace_forward

_FLOAT32_NBYTES = 4


def count_costs(
    spec: ArchitectureSpec, input_shape: tuple[int, int, int], *, batch: int = 1, second_opinion: bool = True
) -> CostReport:
    """The cost of one forward pass of an architecture that can be built.

    input_shape: (channels, height, width). Raises UnknownArchitecture, ModelError when the input does not fit (the
    sentence names the layer), UsageError for sizes below 1 and while what the model computes is partly assumed.
    """
    check_confirmed(spec)
    return count_model_costs(
        build_model(spec, device="meta"), (batch, *input_shape), label=spec.label, second_opinion=second_opinion
    )


def count_model_costs(
    model: nn.Module, input_shape: tuple[int, ...], *, label: str, second_opinion: bool = True
) -> CostReport:
    """The same for a module in hand, which is left exactly as it is (a copy without values is run).

    input_shape: with the batch dimension. label: the name for the report and for messages.
    """
    if any(n < 1 for n in input_shape):
        raise UsageError(
            f"An input of {'x'.join(map(str, input_shape))} has no elements.", hint="Give sizes from 1 up."
        )
    blank = to_meta(model)
    inputs = torch.empty(input_shape, device="meta")
    trace = trace_forward(blank, inputs, label=label)
    modules = tuple(_cost_of(visit) for visit in trace.visits)
    return CostReport(
        target=label,
        input_shape=input_shape,
        modules=modules,
        macs=modules[0].macs,
        parameters=modules[0].parameters,
        uncounted=_by_calls(trace.uncounted),
        other_operations=_by_calls(trace.others),
        activation_nbytes=_activation_nbytes(trace),
        second_opinions=(ask_thop(blank, inputs),) if second_opinion else (),
    )


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
