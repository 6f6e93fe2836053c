"""From what was heard of a forward pass to the report: a row per module, and totals that are the sums of the rows."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from inspector.flops.bill import Bill, Line
from inspector.flops.report import ColumnState, CostReport, Coverage, ModuleCost
from inspector.flops.traffic import nbytes_of
from inspector.forward.settings import settings_in_words
from inspector.units import counted


def cost_report(bill: Bill, model: nn.Module, *, label: str, input_shape: tuple[int, ...]) -> CostReport:
    """model: the one that ran. Its parameters and buffers are counted once each, at the first row that holds them."""
    paths = {id(module): path for path, module in model.named_modules()}
    lines = list(bill.lines.values())
    for module in model.modules():
        # Containers that only hold others have nothing to be listed for.
        if id(module) not in bill.lines and any(held is not None for held in _held(module)):
            lines.append(Line(module, paths[id(module)], len(lines)))
    seen: set[int] = set()
    modules = tuple(_row(line, seen) for line in lines)
    whole = modules[0]
    parameters, buffers = list(model.parameters()), list(model.buffers())
    return CostReport(
        target=label,
        input_shape=input_shape,
        modules=modules,
        macs=whole.macs,
        parameters=whole.parameters,
        uncounted=_by_calls(bill.uncounted),
        other_operations=_by_calls(bill.others),
        activation_nbytes=sum(line.output_nbytes for line in lines if line.is_leaf),
        inputs=whole.inputs,
        elementwise=whole.elementwise,
        input_nbytes=sum(map(nbytes_of, bill.given)),
        parameter_nbytes=sum(map(nbytes_of, parameters)),
        buffers=sum(buffer.numel() for buffer in buffers),
        buffer_nbytes=sum(map(nbytes_of, buffers)),
        trainable=sum(parameter.numel() for parameter in parameters if parameter.requires_grad),
        read_nbytes=whole.read_nbytes,
        written_nbytes=whole.written_nbytes,
        columns=_columns(bill, modules),
        einsums=tuple((equation, order, calls) for (equation, order), calls in sorted(bill.einsums.items())),
    )


def _held(module: nn.Module) -> tuple[Tensor | None, ...]:
    return (*module._parameters.values(), *module._buffers.values())


def _row(line: Line, seen: set[int]) -> ModuleCost:
    own = shared = frozen = 0
    for parameter in line.module.parameters(recurse=False):
        if id(parameter) in seen:
            shared += parameter.numel()
            continue
        seen.add(id(parameter))
        own += parameter.numel()
        frozen += 0 if parameter.requires_grad else parameter.numel()
    buffers = 0
    for buffer in line.module.buffers(recurse=False):
        if id(buffer) not in seen:
            seen.add(id(buffer))
            buffers += buffer.numel()
    return ModuleCost(
        path=line.path,
        depth=line.path.count(".") + 1 if line.path else 0,
        kind=type(line.module).__name__,
        input_shape=line.inputs[0].shape if line.inputs else None,
        output_shape=line.outputs[0].shape if line.outputs else None,
        macs=line.macs,
        own_macs=line.own_macs,
        parameters=sum(parameter.numel() for parameter in line.module.parameters()),
        calls=line.calls,
        order=line.order,
        settings=settings_in_words(line.module),
        inputs=line.inputs,
        outputs=line.outputs,
        elementwise=line.elementwise,
        own_elementwise=line.own_elementwise,
        own_parameters=own,
        shared_parameters=shared,
        frozen_parameters=frozen,
        own_buffers=buffers,
        output_nbytes=line.output_nbytes,
        read_nbytes=line.read,
        own_read_nbytes=line.own_read,
        written_nbytes=line.written,
        own_written_nbytes=line.own_written,
        receptive_field=line.receptive_field,
    )


def _columns(bill: Bill, modules: tuple[ModuleCost, ...]) -> tuple[ColumnState, ...]:
    """What each column holds of what it is about."""
    missing = ", ".join(f"{name} ({calls}x)" for name, calls in _by_calls(bill.uncounted))
    lacks = f"no formula for {missing}" if missing else ""
    some = Coverage.PARTIAL if missing else Coverage.COMPLETE
    never = sum(module.calls == 0 for module in modules)
    unseen = f"{counted(never, 'module')} that hold weights never ran as modules" if never else ""
    found = sum(module.receptive_field is not None for module in modules)
    ran = sum(module.calls > 0 for module in modules)
    reasons = []
    if found < ran:
        reasons.append(f"determined for {found:,} of {ran:,} modules: some operator regroups places or mixes them all")
    if found and bill.fields.by_custom:
        reasons.append("norms over places and gates made of the whole picture are not counted, by custom")
    reach = Coverage.COMPLETE if found == ran else Coverage.PARTIAL if found else Coverage.UNAVAILABLE
    return (
        ColumnState(column="macs", coverage=some, why=lacks),
        ColumnState(column="elementwise", coverage=some, why=lacks),
        ColumnState(column="parameters", coverage=Coverage.COMPLETE),
        ColumnState(column="shapes", coverage=Coverage.PARTIAL if never else Coverage.COMPLETE, why=unseen),
        ColumnState(column="traffic", coverage=Coverage.COMPLETE),
        ColumnState(
            column="receptive_field",
            coverage=reach,
            why="; ".join(reasons),
        ),
    )


def _by_calls(counter: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Most calls first, then by name."""
    return tuple(sorted(counter.items(), key=lambda item: (-item[1], item[0])))
