"""Does the repaired model answer? One pass over seeded noise: finite, and not the same everywhere."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from inspector.architectures.types import Target
from inspector.keys.report import Proof
from inspector.units import human_shape

# What takes one batch of pictures and answers with one tensor, or with a mapping that has it under "out".
_TASKS = ("classification", "segmentation")
Shape = tuple[int, ...]


def input_of(target: Target) -> Shape | None:
    """(channels, height, width) that the target takes a batch of; None for what takes something else."""
    if target.spec is None:
        return None
    from inspector.architectures.facts import default_input, task_of

    return default_input(target.spec) if task_of(target.spec) in _TASKS else None


def noise(shape: Shape) -> Tensor:
    """The same standard normal numbers for the same shape, always."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def run(model: nn.Module, given: Tensor) -> Tensor | None:
    """The model's first answer in evaluation, None when it is no tensor. Raises what the model raises."""
    with torch.inference_mode():
        return _first_tensor(model.eval()(given))


def prove_forward(
    model: nn.Module | None, target: Target, state: Mapping[str, Tensor], *, shape: Shape | None = None
) -> Proof:
    """One forward pass. shape: of the whole input with its batch; None for what the architecture is usually run at."""
    if model is None or target.spec is None:
        return _not_run("No model could be built of the target, so nothing was run.")
    if target.spec.assumed:
        open_ = ", ".join(f"{one.name} = {one.value}" for one in target.spec.assumed)
        return _not_run(f"Nothing was run: {open_} is assumed, not known. Write it into the target to confirm it.")
    if shape is None:
        usual = input_of(target)
        if usual is None:
            return _not_run(f"{target.label} does not take one picture and give one tensor, so nothing was run.")
        shape = (1, *usual)
    try:
        answer = run(model, noise(shape))
    except (RuntimeError, ValueError, TypeError) as error:
        says = f"A forward pass on {human_shape(shape)} failed: {str(error).splitlines()[0]}"
        return Proof(id="forward", says=says, passed=False)
    if answer is None:
        return _not_run("The model does not answer with one tensor, so nothing was judged.")
    values = answer.float()
    spread = float(values.std()) if values.numel() > 1 else 1.0
    return judge_answer(shape, tuple(values.shape), bool(torch.isfinite(values).all()), spread, state)


def judge_answer(given: Shape, made: Shape, finite: bool, spread: float, state: Mapping[str, Tensor]) -> Proof:
    """What an answer to noise proves. spread: standard deviation of its values; 1.0 for a single one."""
    says = f"Noise of {human_shape(given)} gives {human_shape(made)} values"
    if not finite:
        # A file with NaN in it is ill by itself, and keys are not its illness.
        ill = any(t.is_floating_point() and not bool(torch.isfinite(t.float()).all()) for t in state.values())
        why = ", as some weights of the file are not" if ill else ""
        return Proof(id="forward", says=f"{says}, not all finite{why}.", passed=None if ill else False)
    if spread == 0.0:
        empty = any(t.dim() >= 2 and not bool(t.any()) for t in state.values())
        why = ", as some weights of the file are all zero" if empty else ""
        return Proof(id="forward", says=f"{says}, all the same{why}.", passed=None if empty else False)
    return Proof(id="forward", says=f"{says}, finite, standard deviation {spread:.3g}.", passed=True)


def _not_run(says: str) -> Proof:
    return Proof(id="forward", says=says, passed=None)


def _first_tensor(answer: object) -> Tensor | None:
    if isinstance(answer, Mapping):
        answer = answer.get("out")
    return answer if isinstance(answer, Tensor) else None
