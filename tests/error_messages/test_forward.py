"""Errors of a forward, provoked in the installed torch; and the words that older ones had for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from torch import nn
from torch.nn import functional

from inspector.error_messages.explain import explain_error


def _said(call: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as error:
        call()
    return f"{type(error.value).__name__}: {error.value}"


def _vgg_of_small_pictures() -> Any:
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Flatten(), nn.Linear(8 * 16 * 16, 4))(
        torch.zeros(1, 3, 8, 8)
    )


def _twice() -> None:
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    y.backward()


def _in_place() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y += 1
    y.sum().backward()


def _parameter_in_place() -> None:
    x = torch.ones(2, requires_grad=True)
    x += 1


class _Early(nn.Module):
    def __init__(self) -> None:
        self.layer = nn.Linear(2, 2)


conv = nn.Conv2d(3, 8, 3)
PROVOKED: dict[str, tuple[str, Callable[[], Any]]] = {
    "a picture of another size before the head": ("linear-features", _vgg_of_small_pictures),
    "features of a matrix": ("linear-features", lambda: nn.Linear(4, 2)(torch.zeros(3, 5))),
    "grey": ("grey-picture", lambda: conv(torch.zeros(1, 1, 9, 9))),
    "transparent": ("picture-with-alpha", lambda: conv(torch.zeros(1, 4, 9, 9))),
    "channels last": ("channels-last", lambda: conv(torch.zeros(1, 9, 9, 3))),
    "another width inside": ("convolution-channels", lambda: nn.Conv2d(64, 8, 3)(torch.zeros(1, 32, 9, 9))),
    "a matrix for a convolution": ("input-dimensions", lambda: conv(torch.zeros(9, 9))),
    "a picture without a batch at a norm": ("batch-dimension", lambda: nn.BatchNorm2d(3)(torch.zeros(3, 9, 9))),
    "batch of one": ("batch-norm-of-one", lambda: nn.BatchNorm1d(3)(torch.zeros(1, 3))),
    "another batch norm": ("norm-width", lambda: nn.BatchNorm2d(3)(torch.zeros(2, 4, 5, 5))),
    "another layer norm": ("norm-width", lambda: nn.LayerNorm(8)(torch.zeros(1, 4, 6))),
    "a vision transformer at another size": (
        "picture-size",
        lambda: torchvision.models.VisionTransformer(32, 16, 1, 2, 32, 32)(torch.zeros(1, 3, 48, 48)),
    ),
    "smaller than the kernel": ("picture-too-small", lambda: conv(torch.zeros(1, 3, 2, 2))),
    "smaller than the pool": ("picture-too-small", lambda: nn.MaxPool2d(2)(torch.zeros(1, 3, 1, 1))),
    "view": ("view-size", lambda: torch.zeros(3, 7).view(-1, 5)),
    "view of what is transposed": ("view-stride", lambda: torch.zeros(3, 4).t().view(-1)),
    "skip connections one off": ("cat-sizes", lambda: torch.cat([torch.zeros(1, 2, 8), torch.zeros(1, 2, 9)], 1)),
    "tokens and positions": ("broadcast-sizes", lambda: torch.zeros(1, 197, 8) + torch.zeros(1, 50, 8)),
    "a batch of different pictures": ("stack-sizes", lambda: torch.stack([torch.zeros(3, 4), torch.zeros(3, 5)])),
    "recurrent": ("recurrent-width", lambda: nn.LSTM(8, 4)(torch.zeros(2, 1, 5))),
    "doubles to a convolution": ("input-type", lambda: conv(torch.zeros(1, 3, 9, 9, dtype=torch.float64))),
    "bytes to a convolution": ("input-type", lambda: conv(torch.zeros(1, 3, 9, 9, dtype=torch.uint8))),
    "doubles to a linear layer": ("dtype-differs", lambda: nn.Linear(4, 2)(torch.zeros(1, 4, dtype=torch.float64))),
    "whole numbers averaged": ("whole-numbers", lambda: functional.softmax(torch.zeros(3, dtype=torch.long), 0)),
    "numbers that are no indices": ("index-type", lambda: nn.Embedding(4, 2)(torch.zeros(3))),
    "a token beyond the vocabulary": ("index-range", lambda: nn.Embedding(4, 2)(torch.tensor([4]))),
    "a label beyond the classes": (
        "target-range", lambda: functional.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 3]))
    ),
    "more labels than answers": (
        "batch-of-targets", lambda: functional.cross_entropy(torch.zeros(4, 3), torch.tensor([0, 1]))
    ),
    "an array": ("input-is-no-tensor", lambda: conv(np.zeros((1, 3, 9, 9)))),
    "an array to a linear layer": ("input-is-no-tensor", lambda: nn.Linear(4, 2)(np.zeros((1, 4)))),
    "the output and state of a recurrent layer": (
        "tuple-as-input", lambda: nn.Sequential(nn.LSTM(4, 4), nn.Linear(4, 2))(torch.zeros(2, 1, 4))
    ),
    "labels without the column of the answers": (
        "target-shape", lambda: nn.BCELoss()(torch.zeros(4, 1), torch.zeros(4))
    ),
    "a volume of other channels": ("convolution-channels", lambda: nn.Conv3d(3, 8, 3)(torch.zeros(2, 4, 9, 9, 9))),
    "pictures of a map to a 1-d norm": ("input-dimensions", lambda: nn.BatchNorm1d(3)(torch.zeros(2, 3, 4, 4))),
    "a loss that is no number": ("scalar-backward", lambda: (torch.ones(2, requires_grad=True) * 2).backward()),
    "no super": ("module-before-init", _Early),
    "numpy of a gradient": ("to-numpy", lambda: torch.ones(2, requires_grad=True).numpy()),
    "nothing to train": ("no-gradient", lambda: torch.ones(2).sum().backward()),
    "another group norm": ("norm-width", lambda: nn.GroupNorm(2, 8)(torch.zeros(1, 6, 4, 4))),
    "joined with other dimensions": (
        "cat-sizes", lambda: torch.cat([torch.zeros(1, 2, 8), torch.zeros(1, 2)], 1)
    ),
    "a product of batches": ("matmul-sizes", lambda: torch.bmm(torch.zeros(2, 3, 4), torch.zeros(2, 5, 6))),
    "a state of another batch": (
        "recurrent-state", lambda: nn.GRU(8, 4)(torch.zeros(2, 3, 8), torch.zeros(1, 2, 4))
    ),
    "the mean of whole numbers": ("whole-numbers", lambda: torch.zeros(3, dtype=torch.long).mean()),
    "labels that are floats": ("target-type", lambda: functional.nll_loss(torch.zeros(2, 3), torch.zeros(2))),
    "labels one-hot": (
        "target-shape", lambda: functional.nll_loss(torch.zeros(4, 3), torch.zeros(4, 3, dtype=torch.long))
    ),
    "no forward": ("no-forward", lambda: nn.ModuleList()(torch.zeros(1))),
    "a parameter changed in place": ("leaf-in-place", _parameter_in_place),
    "changed in place": ("changed-in-place", _in_place),
    "backward twice": ("backward-twice", _twice),
}  # fmt: skip


@pytest.mark.parametrize("name", PROVOKED)
def test_what_the_installed_torch_says_is_known(name: str) -> None:
    kind, call = PROVOKED[name]
    said = _said(call)
    report = explain_error(said)
    assert [error.kind for error in report.errors] == [kind], said
    assert "{" not in report.errors[0].says


# As torch 1.0 to 2.14 and older timm and transformers say it: what is said of it, by kind.
OLDER = (
    (
        "RuntimeError: size mismatch, m1: [1 x 512], m2: [2048 x 1000] at "
        "/pytorch/aten/src/TH/generic/THTensorMath.cpp:136",
        "linear-features",
        "A linear layer, or a product of matrices, takes 2048 features and received 512.",
    ),
    (
        "RuntimeError: mat1 dim 1 must match mat2 dim 0",
        "linear-features",
        "A linear layer received another number of features than it takes.",
    ),
    (
        "RuntimeError: Expected 4-dimensional input for 4-dimensional weight [64, 3, 7, 7], but got 3-dimensional "
        "input of size [3, 224, 224] instead",
        "batch-dimension",
        "A layer wants an input of 4 dimensions and received 3: the batch is missing.",
    ),
    (
        "RuntimeError: Expected object of backend CPU but got backend CUDA for argument #2 'weight'",
        "two-devices",
        "The model and what it is given are on two devices.",
    ),
    (
        "RuntimeError: Expected object of device type cuda but got device type cpu for argument #1 'self' in call to "
        "_th_addmm",
        "two-devices",
        "The model and what it is given are on two devices.",
    ),
    (
        "RuntimeError: Expected all tensors to be on the same device, but got mat1 is on cpu, different from other "
        "tensors on cuda:0 (when checking argument in method wrapper_CUDA_addmm)",
        "two-devices",
        "The model and what it is given are on two devices.",
    ),
    (
        "RuntimeError: invalid argument 0: Sizes of tensors must match except in dimension 1. Got 28 and 29 in "
        "dimension 2 at /pytorch/aten/src/TH/generic/THTensor.cpp:689",
        "cat-sizes",
        "Tensors of 28 and 29 places are to be joined.",
    ),
    (
        "RuntimeError: index out of range: Tried to access index 30522 out of table with 30521 rows.",
        "index-range",
        "An embedding was asked for a row that it does not have.",
    ),
    (
        "IndexError: Target -1 is out of bounds.",
        "target-range",
        "A label is -1, which the model has no class for.",
    ),
    (
        "AssertionError: Wrong image height! Expected 224 but got 384!",
        "picture-size",
        "The network takes pictures of 224 pixels and received 384.",
    ),
    (
        "ValueError: Input image size (384*384) doesn't match model (224*224).",
        "picture-size",
        "The network takes pictures of 224 pixels and received 384.",
    ),
    (
        "RuntimeError: invalid argument 0: Tensors must have same number of dimensions: got 3 and 2 at "
        "/pytorch/aten/src/TH/generic/THTensor.cpp:603",
        "cat-sizes",
        "Tensors of different sizes are to be joined.",
    ),
    (
        "RuntimeError: Expected tensor to have size 4 at dimension 1, but got size 5 for argument #2 'batch2' (while "
        "checking arguments for bmm)",
        "matmul-sizes",
        "A product of matrices: the rows of one have 4 places and the columns of the other 5.",
    ),
    (
        "RuntimeError: Expected batch2_sizes[0] == bs && batch2_sizes[1] == contraction_size to be true, but got "
        "false.",
        "matmul-sizes",
        "Two matrices, or batches of them, do not fit to be multiplied.",
    ),
    (
        "RuntimeError: _thnn_conv2d_forward is not implemented for type torch.ByteTensor",
        "whole-numbers",
        "This operation is not made for whole numbers (Byte).",
    ),
    (
        "RuntimeError: value cannot be converted to type uint8_t without overflow: -0.155941",
        "whole-numbers",
        "This operation is not made for whole numbers.",
    ),
    (
        "RuntimeError: Expected object of scalar type Long but got scalar type Float for argument #2 'target'",
        "target-type",
        "Labels, or indices, are Float and have to be whole numbers.",
    ),
    (
        "RuntimeError: expected scalar type Half but found Float",
        "scalar-type",
        "One tensor is Half, the other Float.",
    ),
    (
        "RuntimeError: mat1 and mat2 must have the same dtype",
        "dtype-differs",
        "Two tensors of different types are multiplied.",
    ),
    (
        "AttributeError: 'tuple' object has no attribute 'dim'",
        "tuple-as-input",
        "A layer was given several tensors in one tuple.",
    ),
    (
        "AttributeError: 'numpy.ndarray' object has no attribute 'dim'",
        "input-is-no-tensor",
        "A layer was given numpy.ndarray in place of a tensor.",
    ),
    (
        "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU",
        "no-cuda",
        "Something is to go to a GPU, and torch finds none here.",
    ),
    (
        "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
        "memory first.",
        "to-numpy",
        "A tensor is to become an array while it is on another device or belongs to a graph of gradients.",
    ),
)


@pytest.mark.parametrize(("text", "kind", "says"), OLDER)
def test_what_older_ones_said_is_known(text: str, kind: str, says: str) -> None:
    trace = f'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n{text}\n'
    (error,) = explain_error(trace).errors
    assert (error.kind, error.says) == (kind, says)


def test_a_load_error_stays_what_it_was() -> None:
    """A size mismatch of load_state_dict has words of its own."""
    text = (
        "RuntimeError: Error(s) in loading state_dict for ResNet:\n\tsize mismatch for fc.weight: copying a param with "
        "shape torch.Size([1000, 512]) from checkpoint, the shape in current model is torch.Size([10, 512])."
    )
    assert all(error.kind not in {"linear-features", "norm-width"} for error in explain_error(text).errors)
