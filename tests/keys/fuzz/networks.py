"""Random networks to be damaged: nested blocks, few widths, so that many tensors of different meaning look alike."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch

# Names of parts that a wrapper could have as well: the traps are on purpose.
_PARTS = ("encoder", "decoder", "body", "trunk", "features", "model", "net", "backbone", "module", "branch", "visual")
_BLOCKS = ("blocks", "layers", "layer", "h", "stages", "resblocks")


@dataclass(frozen=True)
class Tensor:
    """One tensor on its way. place: its name before any damage, which is its meaning; owner: whose set it is of."""

    name: str
    place: str
    value: torch.Tensor
    owner: str = "own"


def _norm(name: str, width: int, rng: random.Random) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (width,)
    yield f"{name}.bias", (width,)
    if rng.random() < 0.4:
        yield f"{name}.running_mean", (width,)
        yield f"{name}.running_var", (width,)
        yield f"{name}.num_batches_tracked", ()


def _linear(name: str, out: int, into: int, bias: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (out, into)
    if bias:
        yield f"{name}.bias", (out,)


def _attention(name: str, width: int, kind: str, bias: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    if kind == "qkv":
        yield from _linear(f"{name}.qkv", 3 * width, width, bias)
        yield from _linear(f"{name}.proj", width, width, bias)
    else:
        for part in ("q_proj", "k_proj", "v_proj", "o_proj"):
            yield from _linear(f"{name}.{part}", width, width, bias)


def _block(name: str, width: int, kind: str, rng: random.Random) -> Iterator[tuple[str, tuple[int, ...]]]:
    state = rng.getstate()
    if kind == "conv":
        for i in (1, 2):
            yield f"{name}.conv{i}.weight", (width, width, 3, 3)
            yield from _norm(f"{name}.bn{i}", width, rng)
    elif kind == "linear":
        yield from _linear(name, width, width, True)
    elif kind == "numbered":
        yield f"{name}.0.weight", (width, width, 3, 3)
        yield from _norm(f"{name}.1", width, rng)
        yield f"{name}.3.weight", (width, width, 1, 1)
    else:
        yield from _attention(f"{name}.attn", width, kind, True)
        yield from _norm(f"{name}.norm1", width, rng)
        yield from _norm(f"{name}.norm2", width, rng)
        if kind == "gated":
            for part in ("gate_proj", "up_proj"):
                yield from _linear(f"{name}.mlp.{part}", 2 * width, width, False)
            yield from _linear(f"{name}.mlp.down_proj", width, 2 * width, False)
        else:
            yield from _linear(f"{name}.mlp.fc1", 2 * width, width, True)
            yield from _linear(f"{name}.mlp.fc2", width, 2 * width, True)
    # All blocks of one chain are made alike.
    rng.setstate(state)


def _chain(start: str, width: int, rng: random.Random) -> Iterator[tuple[str, tuple[int, ...]]]:
    kind = rng.choice(("conv", "linear", "numbered", "qkv", "apart", "gated"))
    blocks, depth = rng.choice(_BLOCKS), rng.randint(2, 4)
    if rng.random() < 0.35:  # stages of blocks, each with a part of its own in between
        grow = rng.random() < 0.5
        for stage in range(rng.randint(2, 3)):
            wide = width * 2**stage if grow else width
            for i in range(rng.randint(1, 3)):
                yield from _block(f"{start}{blocks}.{stage}.blocks.{i}", wide, kind, rng)
            if stage:
                yield f"{start}{blocks}.{stage}.downsample.weight", (wide, wide)
        return
    for i in range(depth):
        yield from _block(f"{start}{blocks}.{i}", width, kind, rng)


def network(rng: random.Random) -> list[Tensor]:
    """A network as a list of tensors in its own order, each with other numbers."""
    width = rng.choice((2, 4))
    found: list[tuple[str, tuple[int, ...]]] = []
    kind = rng.choice(("vision", "text", "plain"))
    if kind == "vision":
        found += [("stem.weight", (width, 3, 2, 2)), ("stem.bias", (width,))]
        if rng.random() < 0.5:
            found += [("cls_token", (1, 1, width)), ("pos_embed", (1, 5, width))]
    if kind == "text":
        found += [("embed_tokens.weight", (7, width))]
    for part in rng.sample(_PARTS, rng.choice((1, 1, 2))):
        found += _chain(f"{part}." if rng.random() < 0.8 else "", width, rng)
    found += _norm("norm", width, rng)
    if kind == "text":
        found += [("lm_head.weight", (7, width))]
    else:
        found += _linear(rng.choice(("head", "fc", "classifier.1")), rng.choice((3, width)), width, True)
    return [Tensor(n, n, _numbers(n, s, "own")) for n, s in dict(found).items()]


def _numbers(name: str, shape: tuple[int, ...], owner: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(random.Random(f"{owner} {name}").getrandbits(40))
    made = torch.rand(shape, generator=generator) + 0.1
    return made if name.rpartition(".")[2] != "num_batches_tracked" else torch.tensor(len(name) + 7 * len(owner))


def again(tensors: list[Tensor], owner: str) -> list[Tensor]:
    """The same network with another's numbers."""
    return [Tensor(t.name, t.place, _numbers(t.place, tuple(t.value.shape), owner), owner) for t in tensors]
