"""Does the repaired model answer? One pass over seeded noise: finite, and not the same everywhere."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from inspector.architectures.types import Given, Target
from inspector.checkpoint.types import Shape
from inspector.keys.report import Proof
from inspector.units import human_shape

# By argument; "" for the first one, whatever it is called.
Inputs = Mapping[str, Tensor]
# Beyond these no answer to standard normal noise is of use: logits stay below hundreds, probabilities above 1e-9.
MOST_SPREAD, LEAST_SPREAD = 1e6, 1e-9
# Where torchvision's and transformers' classes put the answer that counts; else the first tensor is taken.
_ANSWERS = ("out", "logits", "last_hidden_state", "sample")


def inputs_for(target: Target, *, shape: Shape | None = None, batch: int = 1) -> Inputs | None:
    """Noise for everything that the target takes; None for what nobody knows how to run.

    shape: of the first input with its batch, in place of the usual one. batch: of the usual ones.
    """
    if target.spec is None:
        return None if shape is None else {"": noise(shape)}
    from inspector.architectures.facts import usual_inputs

    usual = usual_inputs(target.spec)
    if not usual:
        return None if shape is None else {"": noise(shape)}
    made = {one.name: _noise_of(one, (batch, *one.shape[1:])) for one in usual}
    return made if shape is None else {**made, usual[0].name: _noise_of(usual[0], shape)}


def _noise_of(given: Given, shape: Shape) -> Tensor:
    if not given.below:
        return noise(shape).to(getattr(torch, given.dtype))
    return torch.randint(given.below, shape, generator=torch.Generator().manual_seed(0))


def noise(shape: Shape) -> Tensor:
    """The same standard normal numbers for the same shape, always."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def run(model: nn.Module, given: Inputs) -> Tensor | None:
    """The model's first answer in evaluation, None when it is no tensor. Raises what the model raises."""
    named = {name: tensor for name, tensor in given.items() if name}
    with torch.inference_mode():
        return _first_tensor(model.eval()(*([given[""]] if "" in given else ()), **named))


def prove_forward(
    model: nn.Module | None, target: Target, state: Mapping[str, Tensor], *, shape: Shape | None = None
) -> Proof:
    """One forward pass. shape: of the whole input with its batch; None for what the architecture is usually run at."""
    if model is None or target.spec is None:
        return _not_run("No model could be built of the target, so nothing was run.")
    if target.spec.assumed:
        first, more = target.spec.assumed[0], len(target.spec.assumed) - 1
        open_ = f"{first.name} = {first.value}" + (f" and {more} more are" if more else " is")
        return _not_run(f"Nothing was run: {open_} assumed, not known. Write it into the target to confirm it.")
    given = inputs_for(target, shape=shape)
    if given is None:
        return _not_run(f"Nobody wrote down what {target.label} takes and answers, so nothing was run.")
    shape = tuple(next(iter(given.values())).shape)
    try:
        answer = run(model, given)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        says = f"A forward pass on {human_shape(shape)} failed: {(str(error) or type(error).__name__).splitlines()[0]}"
        return Proof(id="forward", says=says, passed=False)
    if answer is None:
        return _not_run("The model does not answer with one tensor, so nothing was judged.")
    values = answer.float()
    spread = float(values.std()) if values.numel() > 1 else 1.0
    what = "" if next(iter(given.values())).is_floating_point() else " token ids"
    return judge_answer(shape, tuple(values.shape), bool(torch.isfinite(values).all()), spread, state, what)


def judge_answer(
    given: Shape, made: Shape, finite: bool, spread: float, state: Mapping[str, Tensor], what: str = ""
) -> Proof:
    """What an answer to noise proves. spread: standard deviation of its values; 1.0 for a single one.

    what: the noise consists of, where it is no real numbers (" token ids").
    """
    says = f"Noise of {human_shape(given)}{what} gives {human_shape(made)} values"
    if not finite:
        # A file with NaN in it is ill by itself, and keys are not its illness.
        ill = any(t.is_floating_point() and not bool(torch.isfinite(t.float()).all()) for t in state.values())
        why = ", as some weights of the file are not" if ill else ""
        return Proof(id="forward", says=f"{says}, not all finite{why}.", passed=None if ill else False)
    if spread == 0.0:
        empty = any(t.dim() >= 2 and not bool(t.any()) for t in state.values())
        why = ", as some weights of the file are all zero" if empty else ""
        return Proof(id="forward", says=f"{says}, all the same{why}.", passed=None if empty else False)
    return Proof(id="forward", says=f"{says}, finite, standard deviation {spread:.3g}{_odd(spread)}.", passed=True)


def _odd(spread: float) -> str:
    """What is to be said about a standard deviation that no trained network has; "" for all others."""
    if LEAST_SPREAD <= spread <= MOST_SPREAD:
        return ""
    what = "as good as constant" if spread < LEAST_SPREAD else "absurdly large"
    return f", which is {what}: the keys fit, but look at the weights themselves"


def _not_run(says: str) -> Proof:
    return Proof(id="forward", says=says, passed=None)


def _first_tensor(answer: object) -> Tensor | None:
    if isinstance(answer, Mapping):
        known = [answer[key] for key in _ANSWERS if key in answer]
        answer = next(iter([*known, *answer.values()]), None)
    return answer if isinstance(answer, Tensor) else None
