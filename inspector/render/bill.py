"""The columns of the bill, one entry each, and the bill as rows, CSV and Markdown, for all faces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inspector.errors import UsageError
from inspector.flops.report import CostReport, ModuleCost, Operand
from inspector.flops.roofline import Device, limit_of
from inspector.render.spreadsheet import Number, csv_text
from inspector.units import human_bytes, human_count, human_macs, human_shape

Value = int | float | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """value: the raw one of a module. says: as it is shown. state: which of the report's column states it goes by.

    share: whether the total is 100 %. helps: what it is, for a heading's help.
    """

    id: str
    title: str
    value: Callable[[ModuleCost], Value]
    says: Callable[[Value], str] = str
    state: str = ""
    share: bool = False
    helps: str = ""

    @property
    def is_number(self) -> bool:
        """Whether its values can be added and sorted as numbers."""
        return self.says is not str


def _nothing(show: Callable[[int], str]) -> Callable[[Value], str]:
    return lambda value: "" if value is None else show(value)  # type: ignore[arg-type]


def _operands(operands: Sequence[Operand]) -> str:
    shown = [human_shape(one.shape) + ("" if one.dtype == "float32" else f" {one.dtype}") for one in operands[:3]]
    return " + ".join(shown) + (f" + {len(operands) - 3} more" if len(operands) > 3 else "")


_MACS, _COUNT, _BYTES = _nothing(human_macs), _nothing(human_count), _nothing(human_bytes)
COLUMNS: tuple[Column, ...] = (
    Column(id="kind", title="Kind", value=lambda m: m.kind, helps="The module's class."),
    Column(id="settings", title="Settings", value=lambda m: m.settings, helps="Kernel, stride, features, heads."),
    Column(id="input", title="Input", value=lambda m: _operands(m.inputs), state="shapes", helps="First call."),
    Column(id="output", title="Output", value=lambda m: _operands(m.outputs), state="shapes", helps="First call."),
    Column(
        id="macs", title="MACs", value=lambda m: m.macs, says=_MACS, state="macs", share=True,
        helps="Multiply-adds of convolutions and matrix products.",
    ),
    Column(id="flops", title="FLOPs", value=lambda m: m.flops, says=_MACS, state="macs", share=True, helps="2 x MACs."),
    Column(
        id="elementwise", title="Element-wise", value=lambda m: m.elementwise, says=_MACS, state="elementwise",
        share=True, helps="Norms, activations, softmax, pooling: one for each element of the largest tensor.",
    ),
    Column(
        id="parameters", title="Parameters", value=lambda m: m.parameters, says=_COUNT, state="parameters", share=True,
        helps="With everything below; a shared one counts in each module that has it, and once in the total.",
    ),
    Column(id="frozen", title="Frozen", value=lambda m: m.frozen_parameters, says=_COUNT, helps="Its own."),
    Column(
        id="shared", title="Shared", value=lambda m: m.shared_parameters, says=_COUNT,
        helps="Its own that an earlier module has too.",
    ),
    Column(id="buffers", title="Buffers", value=lambda m: m.own_buffers, says=_COUNT, helps="Numbers in its own."),
    Column(
        id="activations", title="Output size", value=lambda m: m.output_nbytes, says=_BYTES, share=False,
        helps="Bytes of its outputs over all calls.",
    ),
    Column(
        id="read", title="Read", value=lambda m: m.read_nbytes, says=_BYTES, state="traffic", share=True,
        helps="Bytes that its operators read, as if nothing were fused.",
    ),
    Column(
        id="written", title="Written", value=lambda m: m.written_nbytes, says=_BYTES, state="traffic", share=True,
        helps="Bytes that its operators write.",
    ),
    Column(
        id="intensity", title="FLOPs/byte", value=lambda m: m.intensity, says=_nothing(lambda n: f"{n:.1f}"),
        helps="Arithmetic for each byte of memory traffic.",
    ),
    Column(
        id="field", title="Receptive field", state="receptive_field",
        value=lambda m: None if m.receptive_field is None else "x".join(map(str, m.receptive_field)),
        says=_nothing(str), helps="Pixels of the input that one output depends on.",
    ),
    Column(id="calls", title="Calls", value=lambda m: m.calls, says=_COUNT, helps="How often it ran."),
    Column(id="order", title="Order", value=lambda m: m.order, says=_COUNT, helps="When it was first called."),
)  # fmt: skip
USUAL = ("kind", "output", "macs", "parameters", "calls")
_BY_ID = {column.id: column for column in COLUMNS}


def columns_named(text: str) -> tuple[Column, ...]:
    """ "macs,read" -> those columns; "all" for all. Raises UsageError for one that there is not."""
    if text == "all":
        return COLUMNS
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = next((name for name in names if name not in _BY_ID), None)
    if unknown is not None or not names:
        raise UsageError(f'No column is named "{(unknown or "")[:40]}".', hint=f"There are all, {', '.join(_BY_ID)}.")
    return tuple(_BY_ID[name] for name in names)


def rows_of(report: CostReport, *, depth: int | None = None, sort: str = "") -> tuple[ModuleCost, ...]:
    """Modules to a depth, in the order of their calls, or the largest first by a column."""
    rows = [m for m in report.modules if depth is None or m.depth <= depth]
    if sort:
        (column,) = columns_named(sort)
        if not column.is_number:
            rows.sort(key=lambda m: str(column.value(m)))
        else:
            rows.sort(key=lambda m: -_number(column.value(m)))
    return tuple(rows)


def bill_csv(report: CostReport, rows: Sequence[ModuleCost], device: Device | None = None) -> str:
    """All columns with raw numbers, a line for each module, and "limit" where a device is given."""
    more = ("limit",) if device else ()
    return csv_text(
        ("module", *(column.id for column in COLUMNS), *more),
        [
            (
                m.path,
                *(_cell(column, column.value(m)) for column in COLUMNS),
                *((limit_of(m, device),) if device else ()),
            )
            for m in rows
        ],
    )


def bill_markdown(report: CostReport, rows: Sequence[ModuleCost], columns: Sequence[Column]) -> str:
    """The totals, a table, and what is not complete."""
    lines = [f"# {_plain(report.target)}", ""]
    lines += [f"- {label}: {_plain(value)}" for label, value in totals(report)]
    lines += ["", "| " + " | ".join(["Module", *(column.title for column in columns)]) + " |"]
    lines.append("|" + "|".join(["---", *("---:" if column.is_number else "---" for column in columns)]) + "|")
    for m in rows:
        cells = [m.path or "(the model)", *(column.says(column.value(m)) for column in columns)]
        lines.append("| " + " | ".join(map(_plain, cells)) + " |")
    notes = [*((report.whose,) if report.whose else ()), *incomplete(report)]
    return "\n".join([*lines, "", *(f"- {_plain(note)}" for note in notes), *([""] if notes else [])])


def totals(report: CostReport) -> list[tuple[str, str]]:
    """What all of it takes, by the names that torchsummary and torchstat have made usual."""
    bound = "at least " if report.uncounted else ""
    assumed = f" ({report.input_assumed})" if report.input_assumed else ""
    frozen = report.parameters - report.trainable
    rows = [
        ("Input", f"{_operands(report.inputs) or human_shape(report.input_shape)}{assumed}"),
        ("MACs", f"{bound}{report.macs:,} ({human_macs(report.macs)})"),
        ("FLOPs (MAdd)", f"{bound}{report.flops:,} (2 x MACs)"),
        ("Element-wise", f"{report.elementwise:,} operations, not in the FLOPs"),
        ("Parameters", f"{report.parameters:,}" + (f", {frozen:,} of them frozen" if frozen else "")),
        (
            "Sizes",
            f"input {human_bytes(report.input_nbytes)}, forward/backward pass "
            f"{human_bytes(report.forward_backward_nbytes)}, parameters {human_bytes(report.parameter_nbytes)}, "
            f"total {human_bytes(report.total_nbytes)}",
        ),
        (
            "Memory traffic",
            f"{human_bytes(report.read_nbytes)} read, {human_bytes(report.written_nbytes)} written (MemR+W "
            f"{human_bytes(report.read_nbytes + report.written_nbytes)}), nothing fused",
        ),
    ]
    if report.values:
        rows.append(("Run with", report.values))
    return rows


def incomplete(report: CostReport) -> list[str]:
    """A sentence for each column that does not hold all it is about, and how products of several were contracted."""
    titles = {column.state: column.title for column in reversed(COLUMNS) if column.state}
    found = [
        f"{titles.get(state.column, state.column)}: {state.coverage.value}; {state.why}."
        for state in report.columns
        if state.why
    ]
    return found + [
        f"einsum {equation} ({calls}x): {order}." for equation, order, calls in report.einsums if "product" not in order
    ]


def share_of(column: Column, value: Value, report: CostReport) -> float | None:
    """A module's part of the whole, None where that says nothing."""
    whole = column.value(report.modules[0]) if column.share and report.modules else None
    return _number(value) / _number(whole) if whole else None


def _number(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _cell(column: Column, value: Value) -> str | Number | None:
    if value is None:
        return None
    return Number(repr(value)) if isinstance(value, int | float) else str(value)


def _plain(text: str) -> str:
    """Without what Markdown would take for a table's border or for markup."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ").replace("`", "'")
