"""Networks of square and equally shaped layers as other libraries write them, several libraries in one file.

Each layer has torch's tensors with seeded numbers, and the same tensors under a library's names and in its layout. The
layouts are facts of the libraries: Keras, Flax, Haiku and TensorFlow store dense kernels (in, out) and convolutions
(h, w, in, out); Flax's default transposed convolution is (h, w, in, out) of the forward layer and mirrored, Keras's
(h, w, out, in); MLX has (out, h, w, in); Paddle linear layers (in, out) and convolutions as torch; transformers' Conv1D
(in, out). Every part that is not torch's shows it somewhere: by a name, by one layer that is not square, or by the
container; what shows nothing at all no reader of names and shapes can know.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

LIBRARIES = ("torch", "flax", "haiku", "keras", "tf1", "mlx", "paddle", "gpt2")
_IN_OUT = ("flax", "haiku", "keras", "tf1", "paddle", "gpt2")
_HWIO = ("flax", "haiku", "keras", "tf1")
_MATRIX = {"haiku": "w", "tf1": "kernel", "flax": "kernel", "keras": "kernel"}
_BIAS = {"haiku": "b"}
_NORM = {
    "flax": ("scale", "bias", "mean", "var"),
    "haiku": ("scale", "offset", "average", "var"),
    "keras": ("gamma", "beta", "moving_mean", "moving_variance"),
    "tf1": ("gamma", "beta", "moving_mean", "moving_variance"),
    "paddle": ("weight", "bias", "_mean", "_variance"),
}
_TORCH_NORM = ("weight", "bias", "running_mean", "running_var")
_EMBEDDING = {"flax": "embedding", "haiku": "embeddings", "keras": "embeddings"}


@dataclass
class Network:
    """goal: the target's tensors; ours: the file's. answers: what a user who knows would say, by question and place.

    libraries: the library of each module. container: "torch", or "numpy" or "mlx" where the file itself shows it.
    """

    seed: str
    goal: dict[str, torch.Tensor] = field(default_factory=dict)
    ours: dict[str, torch.Tensor] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    libraries: dict[str, str] = field(default_factory=dict)
    container: str = "torch"


class _Writer:
    def __init__(self, rng: random.Random, net: Network) -> None:
        self.rng, self.net = rng, net
        self.numbers = torch.Generator().manual_seed(rng.randrange(1 << 30))

    def random(self, *shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=self.numbers)

    def put(self, module: str, leaf: str, name: str, truth: torch.Tensor, stored: torch.Tensor) -> None:
        self.net.goal[f"{module}.{leaf}"] = truth
        self.net.ours[f"{module}.{name}"] = stored.contiguous()

    def dense(self, module: str, library: str, rows: int, columns: int, *, bias: bool = True) -> None:
        weight = self.random(rows, columns)
        turned = library in _IN_OUT
        self.put(module, "weight", _MATRIX.get(library, "weight"), weight, weight.t() if turned else weight)
        if bias:
            values = self.random(rows)
            self.put(module, "bias", _BIAS.get(library, "bias"), values, values)
        self.net.libraries[module] = library
        self.net.answers[f"transposed:{module}"] = "transposed" if turned else "as-it-is"

    def conv(self, module: str, library: str, out: int, into: int, *sides: int) -> None:
        weight = self.random(out, into, *sides)
        ndim = weight.dim()
        spatial = tuple(range(2, ndim))
        if library in _HWIO:
            stored, letters = weight.permute(*spatial, 1, 0), "hwio"[-ndim:] if ndim == 4 else "wio"
        elif library == "mlx":
            stored, letters = weight.permute(0, *spatial, 1), "ohwi" if ndim == 4 else "owi"
        else:
            stored, letters = weight, "oihw" if ndim == 4 else "oiw"
        self.put(module, "weight", _MATRIX.get(library, "weight"), weight, stored)
        values = self.random(out)
        self.put(module, "bias", _BIAS.get(library, "bias"), values, values)
        self.net.libraries[module] = library
        self.net.answers[f"channels-last:{module}"] = letters
        self.net.answers[f"transposed-convolution:{module}"] = "as-the-others"

    def upward(self, module: str, library: str, into: int, out: int, side: int) -> None:
        """A transposed convolution: torch's weight is (in, out, h, w)."""
        weight = self.random(into, out, side, side)
        if library == "flax":
            stored = weight.flip((2, 3)).permute(2, 3, 0, 1)
        elif library in _HWIO:
            stored = weight.permute(2, 3, 1, 0)
        elif library == "mlx":
            stored = weight.permute(1, 2, 3, 0)
        else:
            stored = weight
        self.put(module, "weight", _MATRIX.get(library, "weight"), weight, stored)
        values = self.random(out)
        self.put(module, "bias", _BIAS.get(library, "bias"), values, values)
        self.net.libraries[module] = library
        how = {"flax": "flipped", "mlx": "swapped"}.get(library, "as-the-others")
        self.net.answers[f"transposed-convolution:{module}"] = how

    def norm(self, module: str, library: str, width: int, *, statistics: bool) -> None:
        names = _NORM.get(library, _TORCH_NORM)
        for leaf, name in list(zip(_TORCH_NORM, names, strict=True))[: 4 if statistics else 2]:
            values = self.random(width)
            self.put(module, leaf, name, values, values)
        self.net.libraries[module] = library

    def embedding(self, module: str, library: str, rows: int, width: int) -> None:
        table = self.random(rows, width)
        self.put(module, "weight", _EMBEDDING.get(library, "weight"), table, table)
        self.net.libraries[module] = library
        self.net.answers[f"transposed:{module}"] = "as-it-is"


def _mlp(w: _Writer, path: str, library: str, n: int) -> None:
    first, second = (
        ("c_fc", "c_proj") if library == "gpt2" else w.rng.choice((("fc1", "fc2"), ("up", "down"), ("0", "2")))
    )
    wide = w.rng.choice((n, n, 2 * n))
    w.dense(f"{path}.{first}", library, wide, n)
    w.dense(f"{path}.{second}", library, n, wide)


def _attention(w: _Writer, path: str, library: str, n: int) -> None:
    if library == "gpt2":
        w.dense(f"{path}.c_attn", library, 3 * n, n)
        w.dense(f"{path}.c_proj", library, n, n)
        return
    names = w.rng.choice((("query", "key", "value", "out"), ("q_proj", "k_proj", "v_proj", "o_proj")))
    for name in names:
        w.dense(f"{path}.{name}", library, n, n, bias=w.rng.random() < 0.7)


def _convolutions(w: _Writer, path: str, library: str, n: int) -> None:
    if library == "gpt2":
        library = "torch"
    for i in range(w.rng.choice((1, 2, 3))):
        sides = w.rng.choice(((n, n), (3, 3), (1, 1), (n,), (3,)))
        into = n if w.rng.random() < 0.7 else w.rng.choice((3, 2 * n))
        w.conv(f"{path}.conv{i}", library, n, into, *sides)
        if w.rng.random() < 0.5:
            w.norm(f"{path}.bn{i}", library, n, statistics=library not in ("flax", "haiku"))
    if w.rng.random() < 0.3:
        w.upward(
            f"{path}.{w.rng.choice(('deconv', 'conv_last'))}",
            library,
            n,
            n if w.rng.random() < 0.7 else n + 1,
            w.rng.choice((2, n)),
        )


def _adapter(w: _Writer, path: str, library: str, n: int) -> None:
    w.dense(f"{path}.{w.rng.choice(('gate', 'adapter', 'pooler', 'router'))}", library, n, n)


def _embedded(w: _Writer, path: str, library: str, n: int) -> None:
    w.embedding(f"{path}.{w.rng.choice(('wte', 'embedding', 'word_embeddings'))}", library, w.rng.choice((n, 9)), n)


_PARTS: tuple[Callable[[_Writer, str, str, int], None], ...] = (
    _mlp,
    _attention,
    _attention,
    _convolutions,
    _adapter,
    _embedded,
)


def make(seed: str) -> Network:
    """One network and its file, seeded."""
    rng = random.Random(seed)
    net = Network(seed)
    w = _Writer(rng, net)
    libraries = rng.sample(LIBRARIES, rng.choice((1, 1, 2, 2, 3)))
    n = rng.choice((2, 3, 4, 8))
    style = rng.choice(("parts", "layers", "mixed"))
    for i in range(rng.choice((1, 2, 3))):
        block = f"blocks.{i}"
        library = libraries[i % len(libraries)]
        for j in range(rng.choice((1, 2, 3))):
            if style == "mixed" or (style == "layers" and j):
                library = rng.choice(libraries)
            part = rng.choice(_PARTS)
            part(w, f"{block}.{part.__name__.strip('_')}{j}", library, n)
    used = set(net.libraries.values())
    if rng.random() < 0.3 and len(used) == 1:
        net.container = {"mlx": "mlx", "paddle": "numpy", "flax": "numpy", "haiku": "numpy"}.get(used.pop(), "torch")
    return net


def shows_itself(net: Network) -> bool:
    """Whether a name, a shape or the container shows each foreign library whose layers are not torch's as they lie."""
    if net.container != "torch":
        return True
    told = {"kernel", "w", "moving_mean", "_mean", "embeddings"}
    if any(name.rpartition(".")[2] in told for name in net.ours):
        return True
    goal = {name: tuple(t.shape) for name, t in net.goal.items()}
    if any(name in goal and goal[name] != tuple(t.shape) for name, t in net.ours.items()):
        return True
    return all(name not in goal or torch.equal(net.goal[name], t) for name, t in net.ours.items())
