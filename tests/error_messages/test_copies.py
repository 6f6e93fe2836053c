"""A line of "While copying the parameter named" carries its own exception: that is the cause, not the equal shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from inspector.error_messages.explain import explain_error
from inspector.error_messages.shapes import explain_shapes

Refusal = Callable[[nn.Module, Mapping[str, Any]], str]


def _line(reason: str, name: str = "fc.weight", quote: str = '"') -> str:
    return (
        f"While copying the parameter named {quote}{name}{quote}, whose dimensions in the model are torch.Size([10, "
        "512]) and whose dimensions in the checkpoint are torch.Size([10, 512]), an exception occurred : "
        f"('{reason}',)."
    )


def _expanded() -> nn.Module:
    model = nn.Linear(2, 2)
    model.weight = nn.Parameter(torch.ones(1, 2).expand(2, 2))
    return model


def _inference() -> nn.Module:
    with torch.inference_mode():
        return nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("build", "state", "kind"),
    [
        (lambda: nn.Linear(2, 2), lambda: nn.Linear(2, 2, device="meta").state_dict(), "meta-checkpoint"),
        (_inference, lambda: nn.Linear(2, 2).state_dict(), "inference-tensor"),
        (_expanded, lambda: nn.Linear(2, 2).state_dict(), "overlapping-parameter"),
        (lambda: nn.Linear(2, 2), lambda: {"weight": np.ones((2, 2)), "bias": [1, 2]}, "not-a-tensor"),
    ],
)
def test_what_torch_could_not_copy_is_told_by_its_exception(
    refusal: Refusal, build: Callable[[], nn.Module], state: Callable[[], Mapping[str, Any]], kind: str
) -> None:
    model, values = build(), state()
    text = refusal(model, values)
    for quoted in (text, text.replace('"', "'"), text.replace('"', "`"), text.replace('"', "")):
        (error,) = explain_error(quoted).errors
        assert (error.kind, error.asks) == (kind, False)
    if "path" not in error.patch:
        exec(error.patch, {"torch": torch, "state": values, "model": model})
        assert torch.equal(model.state_dict()["bias"], torch.as_tensor(values["bias"]))


def test_a_full_device_is_no_other_layout() -> None:
    assert [error.kind for error in explain_error(_line("CUDA error: out of memory")).errors] == ["out-of-memory"]


@pytest.mark.parametrize("quote", ['"', "'", "`", ""])
def test_an_exception_that_is_not_known_is_quoted_and_nothing_is_claimed(quote: str) -> None:
    (error,) = explain_error(_line("something new", quote=quote)).errors
    assert (error.kind, error.asks) == ("copy-failed", True)
    assert "fc.weight, though" in error.says
    assert '"something new"' in error.says


def test_a_quote_is_no_part_of_the_name() -> None:
    text = (
        "While copying the parameter named 'fc.weight', whose dimensions in the model are torch.Size([10, 512]) and "
        "whose dimensions in the checkpoint are torch.Size([1000, 512])."
    )
    (error,) = explain_error(text).errors
    assert error.kind == "head-size"
    assert error.keys is not None
    assert error.keys.lists.reshaped == (("fc.weight", (1000, 512), (10, 512)),)


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        ((0,), (32000, 4096), "empty-in-file"),
        ((32128, 512), (0,), "empty-in-model"),
        ((8388608, 1), (4096, 4096), "packed-in-file"),
        ((4096, 4096), (8388608, 1), "packed-in-model"),
    ],
)
def test_a_stand_in_is_no_other_size(ours: tuple[int, ...], theirs: tuple[int, ...], kind: str) -> None:
    (cause,) = explain_shapes([("layers.0.q_proj.weight", ours, theirs)])
    assert cause.kind == kind
    assert "another size" not in cause.says


@pytest.mark.parametrize(
    ("ours", "theirs"), [((4096, 1), (4096, 4096)), ((1, 1), (2, 1)), ((0, 5), (3, 5)), ((8, 1), (16,))]
)
def test_other_shapes_stay_other_sizes(ours: tuple[int, ...], theirs: tuple[int, ...]) -> None:
    (cause,) = explain_shapes([("layers.0.q_proj.weight", ours, theirs)])
    assert not cause.kind.startswith(("empty", "packed"))
