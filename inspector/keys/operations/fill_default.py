"""A head's tensor as torch's own layer begins: uniform numbers, within bounds that the layer's inputs set, of a seed.

Linear and Conv share the rule (torch/nn/modules/linear.py, conv.py, `reset_parameters`): the weight first, then the
bias, from one stream of numbers. Drawn in float32, then cast to the type that the file's head has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.keys.operations.entry import Operation, argument_of
from inspector.keys.report import Step, StepKind


def value_of(seed: int, dtype: str, weight: Sequence[int]) -> str:
    """The `value` of a step that fills in a layer's weight or bias. weight: shape of the layer's weight."""
    return f"default:{seed}:{dtype}:{'x'.join(map(str, weight))}"


def _parts(step: Step) -> tuple[int, str, tuple[int, ...]]:
    seed, dtype, weight = argument_of(step).split(":")
    return int(seed), dtype, tuple(map(int, weight.split("x")))


def _make(step: Step, tensors: Mapping[str, RawTensor]) -> RawTensor:
    import torch

    from inspector.checkpoint.torch_bridge import raw_of

    seed, dtype, shape = _parts(step)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if len(shape) == 2:
            layer: torch.nn.Module = torch.nn.Linear(shape[1], shape[0])
        else:
            layer = getattr(torch.nn, f"Conv{len(shape) - 2}d")(shape[1], shape[0], shape[2:])
    made = layer.bias if len(step.shape or ()) == 1 else layer.weight
    assert isinstance(made, torch.Tensor)
    return raw_of(made.detach().to(getattr(torch, dtype)))


def _lines(steps: Sequence[Step]) -> list[str]:
    layers: dict[str, list[Step]] = {}
    for step in steps:
        layers.setdefault((step.target or "").rpartition(".")[0], []).append(step)
    lines = ["# New, to be trained: as torch's own layer begins."]
    for members in layers.values():
        seed, _, shape = _parts(members[0])
        kind = "Linear" if len(shape) == 2 else f"Conv{len(shape) - 2}d"
        sizes = f"{shape[1]}, {shape[0]}" + (f", {shape[2:]!r}" if len(shape) > 2 else "")
        bias = "" if any(len(step.shape or ()) == 1 for step in members) else ", bias=False"
        lines += [f"torch.manual_seed({seed})", f"layer = torch.nn.{kind}({sizes}{bias})"]
        for step in members:
            _, dtype, _ = _parts(step)
            cast = "" if dtype == "float32" else f".to(torch.{dtype})"
            leaf = (step.target or "").rpartition(".")[2]
            lines.append(f"state[{step.target!r}] = layer.{leaf}.detach(){cast}")
    return lines


OPERATION = Operation(
    id="fill-default",
    kinds=(StepKind.FILL,),
    way="default",
    says="begin {} as torch does",
    make=_make,
    lines=_lines,
    by_torch=True,
)
