"""The cost of a model that a person's own code builds, counted in the process where that code runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from inspector.architectures.report_of_code import answer, report_of_code
from inspector.architectures.types import Given
from inspector.architectures.user_code import SECONDS
from inspector.flops.report import CostReport


def count_code_costs(
    text: str,
    input_shape: tuple[int, ...] | None = None,
    *,
    batch: int = 1,
    second_opinion: bool = True,
    inputs: Sequence[Given] = (),
    values: str = "",
    memory: Mapping[str, str] | None = None,
    timed: bool = False,
    folder: Path | None = None,
    seconds: float = SECONDS,
    memory_nbytes: int | None = None,
) -> CostReport:
    """Run the factory and count one forward pass of what it returns. Runs the person's code.

    input_shape: of the one input without its batch; None for what its layers take, found by trying. inputs: all of
    them with their batch instead. values: "random" to run with random numbers. memory: "optimizer" and "precision" of
    `peak_memory`, to foresee it too. timed: measure each module's time. folder, memory_nbytes: as `report_of_code`.
    Raises as `target_of_code`, and ModelError as `count_model_costs`.
    """
    arguments = {
        "shape": None if input_shape is None else list(input_shape),
        "batch": batch,
        "second_opinion": second_opinion,
        "inputs": [asdict(given) for given in inputs],
        "values": values,
        "memory": memory,
        "timed": timed,
    }
    return report_of_code(
        text,
        CostReport,
        f"{__name__}:count_built",
        arguments,
        folder=folder,
        seconds=seconds,
        memory_nbytes=memory_nbytes,
    )


def count_built(
    model: Any,
    *,
    label: str,
    shape: Sequence[int] | None,
    batch: int,
    second_opinion: bool,
    inputs: Sequence[dict[str, Any]] = (),
    values: str = "",
    memory: Mapping[str, str] | None = None,
    timed: bool = False,
) -> dict[str, Any]:
    """What `code_runner.hand_over` calls in the other process."""
    from inspector.flops.blank import check_countable
    from inspector.flops.count import count_given
    from inspector.flops.forwards import memory_given
    from inspector.flops.inputs import find_inputs
    from inspector.flops.timing import time_modules
    from inspector.forward.inputs import stated_input, weights_dtype

    def make(module: Any) -> CostReport:
        assumed = ""
        check_countable(module, label=label, values=bool(values))
        given = tuple(Given(**{**one, "shape": tuple(one["shape"])}) for one in inputs)
        if not given and shape:
            given = (stated_input(module, (batch, *shape)),)
        given = tuple(replace(one, dtype=one.dtype or weights_dtype(module)) for one in given)
        if not given:
            given, assumed = find_inputs(module, label=label, batch=batch)
        report = count_given(module, given, label=label, second_opinion=second_opinion, values=values)
        if memory is not None:
            report = replace(report, memory=memory_given(module, given, label=label, **memory))
        if timed:
            report = replace(report, timing=time_modules(module, given, label=label))
        return replace(report, input_assumed=assumed)

    return answer(model, label, make)
