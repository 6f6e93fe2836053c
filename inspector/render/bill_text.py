"""The bill on the command line: totals, a table of modules, memory and time where they were asked for."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType

from inspector.flops.memory_report import MemoryReport
from inspector.flops.report import CostReport
from inspector.flops.roofline import Device, least_seconds, limit_of
from inspector.flops.timing_report import TimingReport
from inspector.render.bill import USUAL, Column, columns_named, incomplete, rows_of, totals
from inspector.render.text import pairs, safe, table
from inspector.units import human_bytes

_SLOWEST = 12


def costs_text(
    report: CostReport,
    *,
    depth: int = 2,
    columns: Sequence[Column] | None = None,
    sort: str = "",
    device: Device | None = None,
) -> RenderableType:
    """Totals, second opinions, modules to a depth, and what is not complete."""
    rows = [
        ("Model", safe(report.target)),
        *((("Whose", safe(report.whose)),) if report.whose else ()),
        *((label, safe(value)) for label, value in totals(report)),
    ]
    if device is not None:
        rows.append(("On the device", safe(_on(report, device))))
    if report.memory is not None:
        rows.append(("Peak of memory", safe(memory_sentence(report.memory))))
    for opinion in report.second_opinions:
        value = f"{opinion.macs:,}" if opinion.macs is not None else "no answer"
        rows.append((f"{opinion.tool} says", f"{value}. {safe(opinion.note)}"))
    rows += [("Not complete", safe(note)) for note in incomplete(report)]
    chosen = columns or columns_named(",".join(USUAL))
    heads = ["Module", *(column.title for column in chosen), *(("Limit",) if device else ())]
    numeric = tuple(n + 1 for n, column in enumerate(chosen) if column.is_number)
    made = table(*heads, right=numeric)
    for module in rows_of(report, depth=None if sort else depth, sort=sort):
        own = module.path.rpartition(".")[2] or "the whole model"
        name = (module.path or own) if sort else "  " * module.depth + own
        cells = [column.says(column.value(module)) for column in chosen]
        made.add_row(safe(name), *map(safe, cells), *((limit_of(module, device),) if device else ()))
    parts: list[RenderableType] = [pairs(rows), "", made]
    if report.timing is not None:
        parts += ["", _times(report.timing)]
    return Group(*parts)


def memory_sentence(memory: MemoryReport) -> str:
    """What the peak is, what it is made of, and where it is."""
    what = f"a step of training with {memory.optimizer}" if memory.optimizer else "inference"
    parts = [f"weights {human_bytes(memory.parameter_nbytes + memory.buffer_nbytes)}"]
    if memory.optimizer_nbytes:
        parts.append(f"the optimizer's state {human_bytes(memory.optimizer_nbytes)}")
    parts.append(f"input {human_bytes(memory.input_nbytes)}")
    rest = "activations, gradients" if memory.optimizer else "activations"
    parts.append(f"{rest} and what is in work {human_bytes(memory.rest_nbytes)}")
    where = f", in {memory.at}" if memory.at else ""
    return f"{human_bytes(memory.peak_nbytes)} for {what} in {memory.precision}{where}: {', '.join(parts)}"


def _on(report: CostReport, device: Device) -> str:
    least = least_seconds(report, device)
    waits = sum(limit_of(m, device) == "memory" and m.own_macs + m.own_elementwise > 0 for m in report.modules)
    return (
        f"{device.name}: {device.ridge:.0f} FLOPs a byte is where arithmetic begins to limit; {waits:,} modules wait "
        f"for memory; at least {1000 * least:.3g} ms a pass if nothing is fused"
    )


def _times(timing: TimingReport) -> RenderableType:
    made = table("Slowest", "Kind", "Time", "Spread", "Share", right=(2, 3, 4))
    inner = {m.path for m in timing.modules}
    leaves = [m for m in timing.modules if not any(other.startswith(f"{m.path}.") for other in inner)]
    for module in sorted(leaves, key=lambda m: -m.seconds)[:_SLOWEST]:
        share = module.seconds / timing.seconds if timing.seconds else 0.0
        made.add_row(
            safe(module.path), safe(module.kind), _ms(module.seconds), _ms(module.spread), f"{100 * share:.1f} %"
        )
    says = f"One pass takes {_ms(timing.seconds)} (between quartiles {_ms(timing.spread)}): {timing.conditions}."
    return Group(safe(says), "", made)


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms"
