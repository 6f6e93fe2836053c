"""A report about the model that a person's own code builds, made in the process where that code runs.

As `user_code.py`: whoever calls has asked the person first, and the process contains accidents, not malice. What comes
back is checked like anything from outside.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from inspector.architectures.user_code import SECONDS, check_source, parse_factory, run_factory
from inspector.errors import InspectorError, ModelError
from inspector.reports_from_json import report_from

if TYPE_CHECKING:
    from torch import nn

Report = TypeVar("Report")


def report_of_code(
    text: str,
    report: type[Report],
    function: str,
    arguments: Mapping[str, object],
    *,
    folder: Path | None = None,
    seconds: float = SECONDS,
    memory_nbytes: int | None = None,
    raised: Callable[[Mapping[str, object]], Report] | None = None,
) -> Report:
    """Run the factory, give what it returns to a function of this package there, and read its report.

    function: "module:name", which takes the model, `label` and the arguments, and returns `answer`. folder: where it
    runs, the current one if None. memory_nbytes: what it may write to, unlimited if None. raised: makes a report of
    what their code raised before there was a model, as `run_factory` gives it.
    Raises as `target_of_code`, and ModelError with what the function refused.
    """
    factory = parse_factory(text)
    here = folder or Path.cwd()
    check_source(factory, here)
    call = {"function": function, "arguments": {**arguments, "label": factory.text}}
    with tempfile.TemporaryDirectory(prefix="inspector-code-") as private:
        answer = run_factory(
            factory, here, Path(private), seconds=seconds, memory_nbytes=memory_nbytes, call=call,
            raised=raised is not None,
        )  # fmt: skip
    if raised is not None and answer.get("raised"):
        return raised(answer)
    if "refused" in answer:
        raise ModelError(str(answer["refused"])[:2000], hint=str(answer.get("hint", ""))[:500])
    try:
        return report_from(report, answer["report"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ModelError(f"{factory.text} left an answer that is no description.") from error


def answer(model: Any, label: str, make: Callable[[nn.Module], Any]) -> dict[str, Any]:
    """In that process: {"report": ...}, or {"refused": ..., "hint": ...} for what is no module or was refused."""
    from torch import nn

    if not isinstance(model, nn.Module):
        return {"refused": f"{label} returned a {type(model).__name__}, not a torch.nn.Module."}
    try:
        return {"report": asdict(make(model))}
    except InspectorError as error:
        return {"refused": error.says, "hint": error.hint}
