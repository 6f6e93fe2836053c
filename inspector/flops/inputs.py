"""What does a model in hand take? The first of the usual sizes that its layers take and that runs without values.

Nothing here is certain, so what was tried is said with the answer: a network that pools at its end runs with any size.
"""

from __future__ import annotations

from torch import nn

from inspector.architectures.types import Given
from inspector.errors import InspectorError, ModelError, NeedsValues
from inspector.flops.blank import to_meta
from inspector.flops.refusals import explained
from inspector.forward.inputs import blank_of, by_place, proposed_inputs, required_names
from inspector.forward.watch import ForwardError, Listener, watch
from inspector.units import human_shape

_SAYS = (
    "Say what the model takes: --input-size 3x224x224, 128 for so many numbers or tokens, or --input NAME=SHAPE:DTYPE."
)
_MASKS = ("attention_mask", "token_type_ids")


def find_inputs(model: nn.Module, *, label: str, batch: int = 1) -> tuple[tuple[Given, ...], str]:
    """(inputs with their batch dimension, what they rest on).

    Raises ModelError where nothing tells, with the names of the arguments, and where no size that was tried runs: with
    the error of the first.
    """
    needed = required_names(model)
    blank = to_meta(model, label=label)
    first_error: InspectorError | None = None
    tried: list[str] = []
    for given, why in proposed_inputs(model, batch):
        inputs = [given]
        for name in needed[1:]:
            if name not in _MASKS or given.dtype != "int64":
                raise ModelError(
                    f"{label} takes several inputs ({', '.join(needed)}), and nothing tells what they are.", hint=_SAYS
                )
            inputs.append(Given(name=name, shape=given.shape, dtype="int64", below=2))
        error = _fails(blank, inputs, label)
        if error is None or isinstance(error, NeedsValues):
            before = f"; {', '.join(tried[:4])} {'do' if len(tried) > 1 else 'does'} not run" if tried else ""
            return tuple(inputs), f"{why}{before}; --input-size says otherwise"
        first_error = first_error or error
        tried.append(human_shape(given.shape[1:]))
    if first_error is not None:
        raise ModelError(
            f"None of the usual sizes runs in {label} ({', '.join(tried[:6])}). With the first: {first_error.says}",
            hint=_SAYS,
        )
    raise ModelError(f"Nothing tells what {label} takes.", hint=_SAYS)


def _fails(blank: nn.Module, inputs: list[Given], label: str) -> InspectorError | None:
    args, kwargs = by_place([blank_of(given) for given in inputs], tuple(inputs))
    try:
        watch(blank, args, kwargs, Listener())
    except ForwardError as failed:
        return explained(label, inputs[0].shape, failed)
    return None
