"""What happens to a file, or to the model's code, between saving and loading: each damage keeps every tensor's meaning.

Each takes a list of tensors and gives a list; the same can be done to the file or to the target.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace

import torch

from tests.keys.fuzz.networks import Tensor, again

Tensors = list[Tensor]
Damage = Callable[[Tensors, random.Random], Tensors]

_SEGMENTS = (
    "module",
    "_orig_mod",
    "model",
    "net",
    "backbone",
    "encoder",
    "blocks",
    "student",
    "0",
    "_fsdp_wrapped_module",
)


def renamed(tensors: Tensors, new: Callable[[str], str]) -> Tensors:
    """All under new names; unchanged where two would have one."""
    names = [new(t.name) for t in tensors]
    if len(set(names)) < len(names):
        return tensors
    return [replace(t, name=n) for t, n in zip(tensors, names, strict=True)]


def _places(tensors: Tensors) -> list[str]:
    found = {""}
    for t in tensors:
        segments = t.name.split(".")
        found |= {".".join(segments[:n]) for n in range(1, len(segments))}
    return sorted(found)


def wrap(tensors: Tensors, rng: random.Random) -> Tensors:
    segment = rng.choice(_SEGMENTS)
    return renamed(tensors, lambda n: f"{segment}.{n}")


def wrap_below(tensors: Tensors, rng: random.Random) -> Tensors:
    place, segment = rng.choice(_places(tensors)), rng.choice(_SEGMENTS)
    start = f"{place}." if place else ""
    return renamed(tensors, lambda n: f"{start}{segment}.{n[len(start) :]}" if n.startswith(start) else n)


def unwrap(tensors: Tensors, rng: random.Random) -> Tensors:
    place = rng.choice(_places(tensors))
    start = f"{place}." if place else ""
    return renamed(tensors, lambda n: n.removeprefix(start))


def part_renamed(tensors: Tensors, rng: random.Random) -> Tensors:
    place = rng.choice(_places(tensors)[1:] or ["x"])
    above = place.rpartition(".")[0]
    new = f"{above}.{rng.choice(_SEGMENTS)}".lstrip(".")
    return renamed(tensors, lambda n: new + n[len(place) :] if n.startswith(f"{place}.") else n)


def _numbered(tensors: Tensors, rng: random.Random) -> str | None:
    found = sorted({t.name[: m.start() + 1] for t in tensors for m in re.finditer(r"\.\d+(?=\.)", t.name)})
    return rng.choice(found) if found else None


def shift(tensors: Tensors, rng: random.Random) -> Tensors:
    stem, by = _numbered(tensors, rng), rng.choice((1, 1, 2))
    if stem is None:
        return tensors
    pattern = "^" + re.escape(stem) + r"(\d+)\."
    return renamed(tensors, lambda n: re.sub(pattern, lambda m: f"{stem}{int(m[1]) + by}.", n))


def shift_everywhere(tensors: Tensors, rng: random.Random) -> Tensors:
    by = rng.choice((1, 2))
    return renamed(tensors, lambda n: re.sub(r"(?<=\.)\d+(?=\.)", lambda m: str(int(m[0]) + by), n))


def gaps(tensors: Tensors, rng: random.Random) -> Tensors:
    stem = _numbered(tensors, rng)
    if stem is None:
        return tensors
    pattern = "^" + re.escape(stem) + r"(\d+)\."
    return renamed(tensors, lambda n: re.sub(pattern, lambda m: f"{stem}{2 * int(m[1])}.", n))


def nested(tensors: Tensors, rng: random.Random) -> Tensors:
    stem, size, own = _numbered(tensors, rng), rng.choice((1, 2)), rng.random() < 0.5
    if stem is None:
        return tensors
    pattern = "^" + re.escape(stem) + r"(\d+)\."

    def into(found: re.Match[str]) -> str:
        n = int(found[1])
        return f"{stem}{n // size}.{n if own else n % size}."

    return renamed(tensors, lambda n: re.sub(pattern, into, n))


def separators(tensors: Tensors, rng: random.Random) -> Tensors:
    other = rng.choice(("", "_", "/", "-"))
    return renamed(tensors, lambda n: n.replace(".", other))


def truncated(tensors: Tensors, rng: random.Random) -> Tensors:
    cut = rng.randint(1, 9)
    if any(len(t.name) <= cut for t in tensors):
        return tensors
    return renamed(tensors, lambda n: n[cut:])


def moved(tensors: Tensors, rng: random.Random) -> Tensors:
    by = rng.choice((-1, 1))
    return renamed(tensors, lambda n: re.sub(r"(\d+)(?=\.downsample\.)", lambda m: str(max(0, int(m[0]) + by)), n))


_ALIASES = (
    {"weight": "gamma", "bias": "beta"},
    {"weight": "g", "bias": "b"},
    {"weight": "scale"},
    {"running_mean": "moving_mean", "running_var": "moving_variance"},
)


def norm_aliases(tensors: Tensors, rng: random.Random) -> Tensors:
    names = rng.choice(_ALIASES)

    def new(name: str) -> str:
        module, _, leaf = name.rpartition(".")
        return f"{module}.{names.get(leaf, leaf)}" if re.search(r"norm|bn", module.rpartition(".")[2]) else name

    return renamed(tensors, new)


def matrix_aliases(tensors: Tensors, rng: random.Random) -> Tensors:
    old = rng.choice(("kernel", "w"))
    wide = {t.name for t in tensors if t.value.dim() > 1}
    return renamed(tensors, lambda n: re.sub(r"\.weight$", f".{old}", n) if n in wide else n)


def joined(tensors: Tensors, rng: random.Random) -> Tensors:
    if rng.random() < 0.5:
        return renamed(tensors, lambda n: re.sub(r"(norm|bn|conv|fc)(\d+)(?=\.)", r"\1.\2", n))
    return renamed(tensors, lambda n: re.sub(r"(?<=[a-z])\.(\d+)(?=\.)", r"\1", n))


def missing(tensors: Tensors, rng: random.Random) -> Tensors:
    place = rng.choice(_places(tensors)[1:] or ["x"])
    kept = [t for t in tensors if not t.name.startswith(f"{place}.")]
    return kept if len(kept) > 2 else tensors


def missing_some(tensors: Tensors, rng: random.Random) -> Tensors:
    share = rng.choice((0.05, 0.3, 0.6))
    kept = [t for t in tensors if rng.random() > share]
    return kept if len(kept) > 2 else tensors


def _leafless(tensors: Tensors, ends: tuple[str, ...]) -> Tensors:
    return [t for t in tensors if t.name.rpartition(".")[2] not in ends]


def no_counters(tensors: Tensors, rng: random.Random) -> Tensors:
    return _leafless(tensors, ("num_batches_tracked",))


def no_statistics(tensors: Tensors, rng: random.Random) -> Tensors:
    return _leafless(tensors, ("running_mean", "running_var", "num_batches_tracked"))


def untied(tensors: Tensors, rng: random.Random) -> Tensors:
    gone = rng.choice(("lm_head.weight", "embed_tokens.weight"))
    return [t for t in tensors if not t.name.endswith(gone)]


def twin(tensors: Tensors, rng: random.Random) -> Tensors:
    """A second set of weights beside the first, whole or in part."""
    other = again(tensors, "other")
    by_name = {t.name: t for t in other}
    other = [by_name[t.name] for t in tensors if t.name in by_name]
    if rng.random() < 0.6:
        other = rng.choice((missing, missing_some, shift, wrap_below))(other, rng)
    prefix = rng.choice(
        ("ema", "teacher", "module", "model", "model.module", "model_ema.module", "0", "encoder", "net")
    )
    other = [replace(t, name=f"{prefix}.{t.name}") for t in other]
    own = rng.choice((lambda n: n, lambda n: f"student.{n}", lambda n: f"module.{n}", lambda n: f"model.{n}"))
    both = [replace(t, name=own(t.name)) for t in tensors] + other
    return both if len({t.name for t in both}) == len(both) else tensors


def strangers(tensors: Tensors, rng: random.Random) -> Tensors:
    """Tensors of something else, some with a shape and a last name that the network has, too."""
    like = rng.sample(tensors, min(len(tensors), rng.randint(1, 4)))
    names = [f"{rng.choice(('aux', 'loss', 'probe', 'module', 'model'))}.{t.name.rpartition('.')[2]}" for t in like]
    there = {t.name for t in tensors}
    made = {
        n: replace(t, name=n, place=f"stranger {n}", value=torch.rand(t.value.shape), owner="stranger")
        for n, t in zip(names, like, strict=True)
        if n not in there
    }
    return [*tensors, *made.values()]


def stranger_block(tensors: Tensors, rng: random.Random) -> Tensors:
    """One block more than there was, behind the last, of numbers that are nobody's."""
    stem = _numbered(tensors, rng)
    if stem is None:
        return tensors
    numbers = [int(m[1]) for t in tensors if (m := re.match(re.escape(stem) + r"([1-9]\d*|0)\.", t.name))]
    if not numbers:
        return tensors
    block = [t for t in tensors if t.name.startswith(f"{stem}{max(numbers)}.")]
    made = []
    for t in block:
        name = f"{stem}{max(numbers) + 1}.{t.name[len(f'{stem}{max(numbers)}.') :]}"
        made.append(replace(t, name=name, place=f"stranger {name}", value=torch.rand(t.value.shape), owner="stranger"))
    return [*tensors, *made]


def channels_last(tensors: Tensors, rng: random.Random) -> Tensors:
    return [replace(t, value=t.value.permute(2, 3, 1, 0)) if t.value.dim() == 4 else t for t in tensors]


def turned(tensors: Tensors, rng: random.Random) -> Tensors:
    """All linear layers the other way round, as other frameworks store them; never where no shape shows it."""
    telling = [t for t in tensors if t.value.dim() == 2 and t.value.shape[0] != t.value.shape[1]]
    linear = [t for t in tensors if t.value.dim() == 2 and "embed" not in t.place]
    if not [t for t in telling if t in linear]:
        return tensors
    return [replace(t, value=t.value.T) if any(t is x for x in linear) else t for t in tensors]


def _fused(tensors: Tensors, parts: tuple[str, ...], whole: str) -> Tensors:
    by_name = {t.name: t for t in tensors}
    made: Tensors = []
    for t in tensors:
        head = f".{parts[0]}."
        if head in t.name:
            group = [by_name.get(t.name.replace(head, f".{p}.")) for p in parts]
            if all(group):
                name, place = t.name.replace(head, f".{whole}."), t.place.replace(head, f".{whole}.")
                made.append(Tensor(name, place, torch.cat([g.value for g in group if g]), t.owner))
                continue
        if not any(f".{p}." in t.name for p in parts):
            made.append(t)
    return made


def fused_attention(tensors: Tensors, rng: random.Random) -> Tensors:
    return _fused(tensors, ("q_proj", "k_proj", "v_proj"), "qkv")


def fused_gates(tensors: Tensors, rng: random.Random) -> Tensors:
    return _fused(tensors, ("gate_proj", "up_proj"), "gate_up_proj")


def weight_norm(tensors: Tensors, rng: random.Random) -> Tensors:
    made: Tensors = []
    for t in tensors:
        if t.value.dim() > 2 and t.name.endswith(".weight"):
            dims = tuple(range(1, t.value.dim()))
            length = t.value.square().sum(dim=dims, keepdim=True).sqrt()
            made += [
                replace(t, name=f"{t.name}_g", place=f"{t.place}_g", value=length),
                replace(t, name=f"{t.name}_v", place=f"{t.place}_v"),
            ]
        else:
            made.append(t)
    return made


def another_grid(tensors: Tensors, rng: random.Random) -> Tensors:
    return [
        replace(t, value=torch.rand(1, rng.choice((6, 10, 17)), t.value.shape[2])) if "pos_embed" in t.name else t
        for t in tensors
    ]


def computed_buffers(tensors: Tensors, rng: random.Random) -> Tensors:
    made = list(tensors)
    for t in tensors:
        if t.name.endswith((".attn.qkv.weight", ".attn.q_proj.weight")):
            module = t.name.rpartition(".")[0].rpartition(".")[0]
            place = t.place.rpartition(".")[0].rpartition(".")[0]
            made.append(Tensor(f"{module}.rotary_emb.inv_freq", f"{place}.rotary_emb.inv_freq", torch.ones(2), t.owner))
    return made


DAMAGES: tuple[Damage, ...] = (
    wrap,
    wrap,
    wrap_below,
    wrap_below,
    unwrap,
    part_renamed,
    shift,
    shift,
    shift_everywhere,
    gaps,
    nested,
    separators,
    truncated,
    moved,
    norm_aliases,
    matrix_aliases,
    joined,
    missing,
    missing,
    missing_some,
    no_counters,
    no_statistics,
    untied,
    twin,
    twin,
    strangers,
    stranger_block,
    channels_last,
    turned,
    fused_attention,
    fused_gates,
    weight_norm,
    another_grid,
    computed_buffers,
)
