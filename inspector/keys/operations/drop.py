"""A tensor that is left out, whatever it holds. The exported code filters its name out, which `keys/code.py` writes."""

from __future__ import annotations

from inspector.keys.operations.entry import Operation
from inspector.keys.report import StepKind

OPERATION = Operation(id="drop", kinds=(StepKind.DROP,), says="leave out {}")
