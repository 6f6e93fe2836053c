"""Forwards and training steps that fail, run by any torch from 1.0 on: prints {name: [expected kind, what torch said]}.

    OTHER_PYTHON benchmarks/pasted/provoke.py

Needs nothing but torch and NumPy, and no more of Python than 3.6. What does not fail in this torch has an empty text.
"""

import json
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional

conv = nn.Conv2d(3, 8, 3)
zeros = torch.zeros


class Early(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(2, 2)


class Vgg(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.classifier = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8 * 16 * 16, 4)

    def forward(self, x):
        x = self.body(x)
        return self.classifier(x.view(x.size(0), -1))


def twice():
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    y.backward()


def in_place():
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y += 1
    y.sum().backward()


def leaf_in_place():
    x = torch.ones(2, requires_grad=True)
    x += 1


CASES = {
    "a picture of another size before the head": ("linear-features", lambda: Vgg()(zeros(1, 3, 8, 8))),
    "features of a matrix": ("linear-features", lambda: nn.Linear(4, 2)(zeros(3, 5))),
    "features of a sequence": ("linear-features", lambda: nn.Linear(4, 2)(zeros(2, 3, 5))),
    "grey": ("grey-picture", lambda: conv(zeros(1, 1, 9, 9))),
    "transparent": ("picture-with-alpha", lambda: conv(zeros(1, 4, 9, 9))),
    "channels last": ("channels-last", lambda: conv(zeros(1, 9, 9, 3))),
    "another width inside": ("convolution-channels", lambda: nn.Conv2d(64, 8, 3)(zeros(1, 32, 9, 9))),
    "another width of a sound": ("convolution-channels", lambda: nn.Conv1d(64, 8, 3)(zeros(1, 32, 9))),
    "a transposed convolution": ("convolution-channels", lambda: nn.ConvTranspose2d(64, 8, 3)(zeros(1, 32, 9, 9))),
    "a volume of other channels": ("convolution-channels", lambda: nn.Conv3d(3, 8, 3)(zeros(2, 4, 9, 9, 9))),
    "a matrix for a convolution": ("input-dimensions", lambda: conv(zeros(9, 9))),
    "a picture without a batch at a norm": ("batch-dimension", lambda: nn.BatchNorm2d(3)(zeros(3, 9, 9))),
    "batch of one": ("batch-norm-of-one", lambda: nn.BatchNorm1d(3)(zeros(1, 3))),
    "another batch norm": ("norm-width", lambda: nn.BatchNorm2d(3)(zeros(2, 4, 5, 5))),
    "another layer norm": ("norm-width", lambda: nn.LayerNorm(8)(zeros(1, 4, 6))),
    "another group norm": ("norm-width", lambda: nn.GroupNorm(2, 8)(zeros(1, 6, 4, 4))),
    "pictures of a map to a 1-d norm": ("input-dimensions", lambda: nn.BatchNorm1d(3)(zeros(2, 3, 4, 4))),
    "smaller than the kernel": ("picture-too-small", lambda: conv(zeros(1, 3, 2, 2))),
    "smaller than the pool": ("picture-too-small", lambda: nn.MaxPool2d(2)(zeros(1, 3, 1, 1))),
    "view": ("view-size", lambda: zeros(3, 7).view(-1, 5)),
    "reshape": ("view-size", lambda: zeros(3, 7).reshape(2, 10)),
    "view of what is transposed": ("view-stride", lambda: zeros(3, 4).t().view(-1)),
    "skip connections one off": ("cat-sizes", lambda: torch.cat([zeros(1, 2, 8), zeros(1, 2, 9)], 1)),
    "joined with other dimensions": ("cat-sizes", lambda: torch.cat([zeros(1, 2, 8), zeros(1, 2)], 1)),
    "tokens and positions": ("broadcast-sizes", lambda: zeros(1, 197, 8) + zeros(1, 50, 8)),
    "a batch of different pictures": ("stack-sizes", lambda: torch.stack([zeros(3, 4), zeros(3, 5)])),
    "a product of batches": ("matmul-sizes", lambda: torch.bmm(zeros(2, 3, 4), zeros(2, 5, 6))),
    "recurrent": ("recurrent-width", lambda: nn.LSTM(8, 4)(zeros(2, 1, 5))),
    "hidden state of another batch": (
        "recurrent-state", lambda: nn.GRU(8, 4)(zeros(2, 3, 8), zeros(1, 2, 4))
    ),
    "doubles to a convolution": ("input-type scalar-type", lambda: conv(zeros(1, 3, 9, 9, dtype=torch.float64))),
    "bytes to a convolution": (
        "input-type whole-numbers scalar-type", lambda: conv(zeros(1, 3, 9, 9, dtype=torch.uint8))
    ),
    "doubles to a linear layer": (
        "dtype-differs scalar-type", lambda: nn.Linear(4, 2)(zeros(1, 4, dtype=torch.float64))
    ),
    "whole numbers averaged": ("whole-numbers", lambda: functional.softmax(zeros(3, dtype=torch.long), 0)),
    "the mean of whole numbers": ("whole-numbers", lambda: zeros(3, dtype=torch.long).mean()),
    "numbers that are no indices": ("index-type", lambda: nn.Embedding(4, 2)(zeros(3))),
    "labels that are floats": ("target-type", lambda: functional.nll_loss(zeros(2, 3), zeros(2))),
    "a token beyond the vocabulary": ("index-range", lambda: nn.Embedding(4, 2)(torch.tensor([4]))),
    "a label beyond the classes": ("target-range", lambda: functional.cross_entropy(zeros(2, 3), torch.tensor([0, 3]))),
    "more labels than answers": (
        "batch-of-targets", lambda: functional.cross_entropy(zeros(4, 3), torch.tensor([0, 1]))
    ),
    "labels one-hot": (
        "target-shape", lambda: functional.nll_loss(zeros(4, 3), zeros(4, 3, dtype=torch.long))
    ),
    "labels without the column of the answers": ("target-shape", lambda: nn.BCELoss()(zeros(4, 1), zeros(4))),
    "an array": ("input-is-no-tensor", lambda: conv(np.zeros((1, 3, 9, 9)))),
    "an array to a linear layer": ("input-is-no-tensor", lambda: nn.Linear(4, 2)(np.zeros((1, 4)))),
    "the output and state of a recurrent layer": (
        "tuple-as-input", lambda: nn.Sequential(nn.LSTM(4, 4), nn.Linear(4, 2))(zeros(2, 1, 4))
    ),
    "a loss that is no number": ("scalar-backward", lambda: (torch.ones(2, requires_grad=True) * 2).backward()),
    "no super": ("module-before-init", Early),
    "numpy of a gradient": ("to-numpy", lambda: torch.ones(2, requires_grad=True).numpy()),
    "nothing to train": ("no-gradient", lambda: torch.ones(2).sum().backward()),
    "changed in place": ("changed-in-place", in_place),
    "a parameter changed in place": ("leaf-in-place", leaf_in_place),
    "backward twice": ("backward-twice", twice),
    "no forward": ("no-forward", lambda: nn.Module()(zeros(1))),
    "no GPU": ("no-cuda", lambda: zeros(1).cuda()),
}  # fmt: skip

said = {}
for name, (kind, call) in CASES.items():
    try:
        call()
        text = ""
    except Exception as error:  # noqa: BLE001 - whatever this torch raises is what is asked for
        text = f"{type(error).__name__}: {error}"
    said[name] = [kind, text]
json.dump({"torch": torch.__version__, "python": sys.version.split()[0], "said": said}, sys.stdout)
