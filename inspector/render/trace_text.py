"""A watched forward pass for a terminal, fit to be pasted into an issue: no folders, no names of pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group

from inspector.render.text import findings_text, pairs, safe, table
from inspector.units import counted, human_shape, human_share

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.doctor.report import CallRecord, Diagnosis, Output, SourceLine, Trace

_MOST_ROWS = 60
_INDENT = "  "
_NUMBERED = re.compile(r"(?:^|\.)\d+$")


def trace_text(trace: Trace, *, depth: int = 2) -> RenderableType:
    """What ran, why it failed or what is to be said of it, and below that the tree as far as it came."""
    mode = "training" if trace.training else "evaluation"
    shapes = "; ".join(f"{name} {human_shape(one.shape)} {one.dtype}" for name, one in trace.inputs)
    rows = [("Model", safe(trace.target))]
    if trace.calls:
        rows.append(("Input", safe(shapes or "none")))
    if trace.input_from:
        rows.append(("", safe(trace.input_from)))
    calls, operators = counted(len(trace.calls), "module call"), counted(trace.operators, "operator")
    ran = f"in {mode}: {calls}, {operators}, " + ("failed" if trace.failure else "to its end")
    rows.append(("Ran", ran if trace.calls else "not at all: it fails before the first module"))
    parts: list[RenderableType] = [pairs(rows)]
    others = [f for f in trace.findings if f.id != "forward-fails"]
    if trace.failure is not None and trace.diagnosis is not None:
        parts += ["", *_why(trace, trace.diagnosis)]
    if others or trace.failure is None:
        parts += ["", findings_text(others)]
    if trace.calls:
        parts += ["", _tree(trace, depth)]
    if trace.failure is None:
        parts += ["", *_values(trace)]
    parts += [f"[dim]Not looked at: {safe(says)}[/dim]" for says in trace.skipped]
    return Group(*parts)


def trace_plain(trace: Trace, *, depth: int = 2, width: int = 120) -> str:
    """The same as plain text."""
    console = Console(width=width, highlight=False, color_system=None, force_terminal=False)
    with console.capture() as text:
        console.print(trace_text(trace, depth=depth))
    return text.get()


def _why(trace: Trace, diagnosis: Diagnosis) -> list[RenderableType]:
    failure = trace.failure
    assert failure is not None
    rows = [("Cause", f"{safe(diagnosis.says)} [dim]({diagnosis.cause}, {diagnosis.sureness.value})[/dim]")]
    if diagnosis.fix:
        rows.append(("Fix", safe(diagnosis.fix)))
    rows.extend(("", _INDENT + safe(line)) for line in diagnosis.code.splitlines())
    if diagnosis.tried:
        rows.append(("Tried", safe("; ".join(diagnosis.tried))))
    if failure.expects:
        rows.append(("Layer", safe(failure.expects)))
    if failure.line is not None:
        rows.append(("Line", safe(_at(failure.line))))
    if diagnosis.change is not None and diagnosis.change != failure.line:
        rows.append(("To mend", safe(_at(diagnosis.change))))
    rows.append(("Error", safe(f"{failure.error}: {failure.says}")))
    return [pairs(rows)]


def _at(line: SourceLine) -> str:
    return f"{line.file}, line {line.line}: {line.text}"


def _values(trace: Trace) -> list[RenderableType]:
    rows = []
    if trace.greatest is not None:
        path, size = trace.greatest
        rows.append(("Range", f"largest magnitude {size:.4g}, in {safe(path or 'the output')}"))
    if trace.modes is not None:
        rows.append(("Training", modes_sentence(trace)))
    return [pairs(rows)] if rows else []


def modes_sentence(trace: Trace) -> str:
    """What another mode would change, without a full stop. Raises AssertionError where it was not tried."""
    modes = trace.modes
    assert modes is not None
    if not modes.modules and not modes.difference:
        return "no module that ran behaves differently there"
    kinds = ", ".join(f"{count} {kind}" for kind, count in modes.modules[:6]) or "something"
    verb = "behaves" if sum(count for _, count in modes.modules) < 2 else "behave"
    if modes.failure is not None:
        return f"the other mode fails: {safe(modes.failure.says)}"
    if modes.difference is None or modes.relative is None:
        return f"{safe(kinds)} {verb} differently there, and the outputs cannot be compared"
    share = human_share(modes.relative) if modes.relative <= 1 else "more than the whole"
    return f"{safe(kinds)} {verb} differently there: the output differs by {share} of its size"


def _tree(trace: Trace, depth: int) -> RenderableType:
    """Deeper where it failed; equal neighbours and what is beyond the depth are folded."""
    made = table("Module", "In", "Out", "Values")
    running = set(trace.failure.stack) if trace.failure is not None else set()
    rows = _rows(trace.calls, depth, running)
    half = _MOST_ROWS // 2
    paths = {call.number: call.path for call in trace.calls}
    for index, (call, paths_of) in enumerate(rows):
        if len(rows) > _MOST_ROWS and half <= index < len(rows) - half:
            if index == half:
                made.add_row(f"[dim]... {len(rows) - 2 * half:,} more[/dim]", "", "", "")
            continue
        above = paths.get(call.inside) if call.inside is not None else None
        name = call.path.removeprefix(f"{above}.") if above else call.path
        name = f"{_INDENT * call.depth}{name or 'model'} ({call.kind})"
        fails = call.number in running
        shown = safe(name) + _folded(paths_of)
        made.add_row(
            f"[bold red]{shown}[/]" if fails else shown,
            safe(", ".join(_facts(one.shape, one.dtype) for one in call.inputs[:3])),
            "[red]fails[/]"
            if fails and call.number == max(running)
            else safe(", ".join(_facts(o.shape, o.dtype) for o in call.outputs[:3])),
            "" if fails else safe(_range(call.outputs)),
        )
    return made


def _rows(calls: Sequence[CallRecord], depth: int, running: set[int]) -> list[tuple[CallRecord, list[str]]]:
    """(call, paths of the equal ones in a row it stands for): one module called again, or numbered neighbours."""
    found: list[tuple[CallRecord, list[str]]] = []
    for call in calls:
        if call.depth > depth and call.number not in running and call.inside not in running:
            continue
        last, paths = found[-1] if found else (None, [])
        again = call.path == paths[-1] if paths else False
        same_way = len(paths) < 2 or again == (paths[0] == paths[1])
        if last is not None and same_way and _equal(last, call) and not {last.number, call.number} & running:
            paths.append(call.path)
        else:
            found.append((call, [call.path]))
    return found


def _folded(paths: Sequence[str]) -> str:
    if len(paths) == 1:
        return ""
    return f", {len(paths)} calls" if paths[0] == paths[1] else f" x{len(paths)}"


def _equal(a: CallRecord, b: CallRecord) -> bool:
    shapes = [o.shape for o in a.outputs] == [o.shape for o in b.outputs]
    inputs = [i.shape for i in a.inputs] == [i.shape for i in b.inputs]
    alike = (a.depth, a.kind, a.inside, a.settings) == (b.depth, b.kind, b.inside, b.settings) and shapes and inputs
    # Numbered neighbours and calls of one module; `q`, `k` and `v` are three names.
    return alike and (a.path == b.path or bool(_NUMBERED.search(a.path) and _NUMBERED.search(b.path)))


def _facts(shape: tuple[int, ...], dtype: str) -> str:
    return human_shape(shape) + ("" if dtype == "float32" else f" {dtype}")


def _range(outputs: Sequence[Output]) -> str:
    values = outputs[0].statistics if outputs else None
    if values is None:
        return ""
    bad = values.nans + values.infinities + values.negative_infinities
    said = f"{bad:,} not finite; " if bad else ""
    if values.minimum is None or values.maximum is None:
        return said.rstrip("; ")
    return f"{said}{values.minimum:.3g} .. {values.maximum:.3g}"
