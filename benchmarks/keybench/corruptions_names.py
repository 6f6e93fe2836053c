"""Corruptions of the names: wrappers, numbers, words, order, and what lies beside the weights."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import torch

from benchmarks.keybench.damage import Answer, Corruption, Damaged, Make, Row, State, damaged, renamed

BY_ORDER = ("same-order",)


def _shifted_name(name: str) -> str:
    return re.sub(r"\.(\d+)\.", lambda found: f".{int(found[1]) + 1}.", name, count=1)


def _middle(name: str) -> str:
    first, _, rest = name.partition(".")
    return f"{first}.module.{rest}" if rest.count(".") else name


def _fully_sharded(name: str) -> str:
    """FSDP's segment before every numbered layer, as after wrapping each block."""
    return re.sub(r"\.(\d+)\.", r".\1._fsdp_wrapped_module.", f"_fsdp_wrapped_module.{name}")


def _semantic(name: str) -> str:
    """Words for words, as another author would have it."""
    for old, new in (("layer", "stage"), ("features", "trunk"), ("conv", "cv"), ("classifier", "top"), ("attn", "sa")):
        name = re.sub(rf"(^|\.){old}(?=[.0-9])", rf"\1{new}", name)
    return name


def _chunked(name: str) -> str:
    """Blocks in lists of four: layers.5 as layers.1.1."""
    return re.sub(
        r"(layers?|h|blocks|resblocks)\.(\d+)\.", lambda f: f"{f[1]}.{int(f[2]) // 4}.{int(f[2]) % 4}.", name, count=1
    )


def _flattened(own: State, _: random.Random) -> Damaged:
    """The first two numbers of features.1.0 as one running number."""
    numbers: dict[str, int] = {}
    rows = []
    for name, tensor in own.items():
        found = re.match(r"([a-z_]+)\.(\d+\.\d+)\.(.*)", name)
        if found is None:
            rows.append(Row(name, tensor, name))
        else:
            number = numbers.setdefault(found[1] + found[2], len(numbers))
            rows.append(Row(f"{found[1]}.{number}.{found[3]}", tensor, name))
    return damaged(rows, own)


def _gamma_beta(own: State, _: random.Random) -> Damaged:
    rows = []
    for name, tensor in own.items():
        module, _dot, leaf = name.rpartition(".")
        weight = own.get(f"{module}.weight")
        norm = weight is not None and weight.dim() == 1 and f"{module}.bias" in own
        alias = {"weight": "gamma", "bias": "beta"}.get(leaf) if norm else None
        rows.append(Row(f"{module}.{alias}" if alias else name, tensor, name))
    return damaged(rows, own)


def _opaque(*, shuffle: bool) -> Make:
    def make(own: State, chance: random.Random) -> Damaged:
        names = list(own)
        if shuffle:
            chance.shuffle(names)
        return damaged((Row(f"p{i:04d}", own[name], name) for i, name in enumerate(names)), own)

    return make


def _random_modules(*, leaves: bool = True, ordered: bool = True) -> Make:
    """Every module under a name drawn by chance; leaves: weight and bias keep theirs; ordered False: then sorted."""

    def make(own: State, chance: random.Random) -> Damaged:
        modules: dict[str, str] = {}
        rows = []
        for name, tensor in own.items():
            module, _, leaf = name.rpartition(".")
            new = modules.setdefault(module, f"m{chance.randrange(10**8):08d}")
            rows.append(Row(f"{new}.{leaf if leaves else f'x{chance.randrange(10**8):08d}'}", tensor, name))
        return damaged(rows if ordered else sorted(rows, key=lambda row: row.key), own)

    return make


def _without(prefix: str, share: float) -> Make:
    def make(own: State, chance: random.Random) -> Damaged:
        kept = (name for name in own if chance.random() >= share)
        return damaged((Row(prefix + name, own[name], name) for name in kept), own)

    return make


def _copies(own: State, scale: float) -> State:
    """Other numbers of the same shapes."""
    return {n: t * scale if t.is_floating_point() else t for n, t in own.items()}


def _twins(own: State, _: random.Random) -> Damaged:
    plain = [Row(f"model.{name}", tensor, None) for name, tensor in _copies(own, 0.5).items()]
    return damaged([*plain, *(Row(f"ema_model.{name}", tensor, name) for name, tensor in own.items())], own)


def _detector(own: State, _: random.Random) -> Damaged:
    extra = [
        Row("rpn.head.conv.weight", torch.full((9, 9, 3, 3), 7.0), None),
        Row("rpn.head.conv.bias", torch.full((9,), 7.0), None),
    ]
    return damaged([*(Row(f"backbone.body.{name}", tensor, name) for name, tensor in own.items()), *extra], own)


def _no_counters(own: State, _: random.Random) -> Damaged:
    return damaged((Row(n, t, n) for n, t in own.items() if not n.endswith("num_batches_tracked")), own)


def _profiled(own: State, _: random.Random) -> Damaged:
    modules = dict.fromkeys(name.rpartition(".")[0] for name in own if "." in name)
    made = [Row(name, tensor, name) for name, tensor in own.items()]
    leaves = ("total_ops", "total_params")
    return damaged([*made, *(Row(f"{m}.{leaf}", torch.tensor([7.0]), None) for m in modules for leaf in leaves)], own)


def _averaged(own: State, _: random.Random) -> Damaged:
    counter = Row("n_averaged", torch.tensor(7), None)
    return damaged([counter, *(Row(f"module.{name}", tensor, name) for name, tensor in own.items())], own)


def _target_wrapped(own: State, _: random.Random) -> Damaged:
    truth = {f"module.{name}": tensor for name, tensor in own.items()}
    return damaged((Row(name, tensor, f"module.{name}") for name, tensor in own.items()), truth)


def _prefixed(prefix: str) -> Make:
    return renamed(lambda name: prefix + name)


def _joined(separator: str) -> Callable[[str], str]:
    return lambda name: name.replace(".", separator)


NAMES = (
    Corruption("as it is", renamed(lambda name: name)),
    *(
        Corruption(prefix, _prefixed(prefix))
        for prefix in ("module.", "module.module.", "_orig_mod.module.", "module._orig_mod.", "model.", "net_G.enc.")
    ),
    Corruption("_forward_module.", _prefixed("_forward_module.")),
    Corruption("0.auto_model.", _prefixed("0.auto_model.")),
    Corruption("module. in the target only", _target_wrapped),
    Corruption("mid-key module.", renamed(_middle)),
    Corruption("_fsdp_wrapped_module.", renamed(_fully_sharded)),
    Corruption("n_averaged + module.", _averaged, simple=False),
    Corruption("total_ops, total_params", _profiled),
    Corruption("no num_batches_tracked", _no_counters),
    Corruption("gamma, beta", _gamma_beta),
    Corruption("norm.1", renamed(lambda name: re.sub(r"\.(norm|conv)([12])\.", r".\1.\2.", name))),
    Corruption("numbers + 1", renamed(_shifted_name)),
    Corruption("module. + numbers + 1", renamed(lambda name: f"module.{_shifted_name(name)}"), simple=False),
    Corruption("module. - 10 %", _without("module.", 0.1), expects=Answer.PART, simple=False, drawn=True),
    Corruption("net. - 50 %", _without("net.", 0.5), expects=Answer.PART, simple=False, drawn=True),
    Corruption("model. + ema_model.", _twins, simple=False, answers={"twins": "ema_model", "mixture": "leave-out"}),
    Corruption("backbone.body. + heads", _detector, ("extra-tensors",), simple=False),
    Corruption("semantic renames", renamed(_semantic), BY_ORDER),
    Corruption("random modules", _random_modules(), BY_ORDER, drawn=True),
    Corruption("random modules and leaves", _random_modules(leaves=False), BY_ORDER, drawn=True),
    Corruption("opaque, in order", _opaque(shuffle=False), BY_ORDER),
    Corruption("dots removed", renamed(lambda name: f"model_ema.{name.replace('.', '')}"), BY_ORDER),
    Corruption("slashes for dots", renamed(_joined("/")), BY_ORDER),
    Corruption("underscores for dots", renamed(_joined("_")), BY_ORDER),
    Corruption("first 4 letters cut off", renamed(lambda name: name[4:]), BY_ORDER),
    Corruption("blocks in lists of 4", renamed(_chunked), BY_ORDER),
    Corruption("Sequential flattened", _flattened, BY_ORDER),
    Corruption("random modules, sorted", _random_modules(ordered=False), expects=Answer.REFUSE, drawn=True),
    Corruption("opaque, shuffled", _opaque(shuffle=True), expects=Answer.REFUSE, drawn=True),
)
