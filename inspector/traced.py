"""The graph of what can be built: a known architecture, a recognised file, or a person's own code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.architectures.user_code import SECONDS
from inspector.graph.types import Graph

if TYPE_CHECKING:
    from inspector.architectures.types import ArchitectureSpec, Given


def graph_of_spec(spec: ArchitectureSpec, input_shape: tuple[int, ...] | None) -> Graph:
    """One pass of an architecture without values. input_shape: of its first input without the batch, or None.

    Raises as `count_costs`.
    """
    from inspector.architectures.build import build_model
    from inspector.flops.count import inputs_of

    return _traced(build_model(spec, device="meta"), inputs_of(spec, input_shape), spec.label)


def graph_of_code(
    text: str,
    input_shape: tuple[int, ...] | None,
    *,
    folder: Path | None = None,
    seconds: float = SECONDS,
    memory_nbytes: int | None = None,
) -> Graph:
    """The same of what a factory returns. Runs the person's code, in its own process. Raises as `count_code_costs`."""
    from inspector.architectures.report_of_code import report_of_code

    arguments = {"shape": None if input_shape is None else list(input_shape)}
    return report_of_code(
        text,
        Graph,
        f"{__name__}:graph_of_built",
        arguments,
        folder=folder,
        seconds=seconds,
        memory_nbytes=memory_nbytes,
    )


def graph_of_built(model: Any, *, label: str, shape: Sequence[int] | None) -> dict[str, Any]:
    """What `code_runner.hand_over` calls in the other process."""
    from inspector.architectures.report_of_code import answer
    from inspector.flops.blank import to_meta
    from inspector.flops.inputs import find_inputs
    from inspector.forward.inputs import stated_input

    def make(module: Any) -> Graph:
        given = (stated_input(module, (1, *shape)),) if shape else find_inputs(module, label=label)[0]
        return _traced(to_meta(module, label=label), given, label)

    return answer(model, label, make)


def _traced(blank: Any, inputs: Sequence[Given], label: str) -> Graph:
    from inspector.flops.refusals import explained
    from inspector.forward.inputs import blank_of, by_place
    from inspector.graph.from_forward import ForwardError, graph_of_forward

    args, kwargs = by_place([blank_of(given) for given in inputs], tuple(inputs))
    try:
        return graph_of_forward(blank.eval(), args, kwargs)
    except ForwardError as failed:
        raise explained(label, inputs[0].shape, failed) from failed.error
