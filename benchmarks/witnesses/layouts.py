"""A network's tensors in every layout that a question offers, and what is right of each answer.

Each case is a file, a target and the tensors that the right answer makes; an answer is right by what the witness sees
of it alone: the value's rows, the key's bias, the gate, the flattened matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
State = dict[str, Array]
LETTERS = {"q": 0, "k": 1, "v": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """file: as it is opened. target: what a strict load wants, with the right numbers. asks: id of the question.
    truth: the layout, as its option is called. sees: by witness, which of the target's tensors judge an answer."""

    file: State
    target: State
    asks: str
    truth: str
    sees: dict[str, Callable[[str], bool]] = field(default_factory=dict)


def attention_cases(state: State, heads: int, kv: int) -> Iterator[Case]:
    """Query, key and value in one matrix: below each other in six orders, head by head for several numbers."""
    prefixes = [name.removesuffix("q_proj.weight") for name in state if name.endswith("q_proj.weight")]
    sees = {"value-rows": lambda name: name.endswith("v_proj.weight")}
    biased = f"{prefixes[0]}k_proj.bias" in state
    if biased:
        sees["key-bias"] = lambda name: name.endswith("k_proj.bias")
    rows = state[f"{prefixes[0]}k_proj.weight"].shape[0]
    numbers = sorted({kv, 2, 4, 8, rows // 8, rows})
    for order in map("".join, permutations("qkv")):
        yield Case(
            file=_joined(state, prefixes, "qkv", order, 1),
            target=state,
            asks="qkv-order",
            truth="-".join(order),
            sees=sees,
        )
    for number in numbers:
        if number > 1 and rows % number == 0 and (number < rows or heads == kv):
            truth = f"{number}-heads" if number < rows else "row-by-row"
            made = _joined(state, prefixes, "qkv", "qkv", number)
            yield Case(file=made, target=state, asks="qkv-order", truth=truth, sees=sees)
            if heads == kv:
                whole = _joined(state, prefixes, "qkv", "qkv", 1)
                other = {n.replace("query_key_value", "qkv"): t for n, t in whole.items()}
                named = {n.replace(".qkv.", ".query_key_value."): t for n, t in made.items()}
                seen = {"value-rows": lambda n: n.endswith("qkv.weight")}
                if biased:
                    seen["key-bias"] = lambda n: n.endswith("qkv.bias")
                yield Case(file=named, target=other, asks="fused-order", truth=truth, sees=seen)
    for order in ("kv", "vk"):
        made = _joined(state, prefixes, "kv", order, 1)
        yield Case(file=made, target=state, asks="kv-order", truth="-".join(order), sees=sees)
    yield Case(
        file=_joined(state, prefixes, "kv", "kv", kv), target=state, asks="kv-order", truth=f"{kv}-heads", sees=sees
    )


def _joined(state: State, prefixes: Sequence[str], own: str, order: str, number: int) -> State:
    """Parts below each other within each of `number` groups, under one name where the query (or key) stood."""
    made: State = {}
    for name, tensor in state.items():
        module, _, leaf = name.rpartition(".")
        part = module.rpartition(".")[2].removesuffix("_proj")
        prefix = f"{module.rpartition('.')[0]}."
        if prefix not in prefixes or part not in own:
            made[name] = tensor
        elif part == own[0]:
            parts = [state[f"{prefix}{letter}_proj.{leaf}"] for letter in order]
            groups = [p.reshape(number, -1, *p.shape[1:]) for p in parts]
            whole = np.concatenate(groups, axis=1)
            made[f"{prefix}{own}.{leaf}"] = np.ascontiguousarray(whole.reshape(-1, *tensor.shape[1:]))
    return made


def gate_cases(state: State) -> Iterator[Case]:
    """Gate and value in one matrix in each order, for a target that has them apart and for one with the gate first."""
    sees = {"gate-rows": lambda name: name.endswith("gate_proj.weight")}
    for truth in ("gate-first", "up-first", "row-by-row"):
        made, fused = {}, {}
        for name, tensor in state.items():
            if ".gate_proj." in name:
                up = state[name.replace("gate_proj", "up_proj")]
                pair = (up, tensor) if truth == "up-first" else (tensor, up)
                join = np.stack(pair, 1).reshape(-1, *up.shape[1:]) if truth == "row-by-row" else np.concatenate(pair)
                made[name.replace("gate_proj", "wi")] = np.ascontiguousarray(join)
                fused[name.replace("gate_proj", "gate_up_proj")] = np.concatenate((tensor, up))
            elif ".up_proj." not in name:
                made[name], fused[name] = tensor, tensor
        yield Case(file=made, target=state, asks="gate-up-order", truth=truth, sees=sees)
        if truth != "row-by-row":
            names = {name: name.replace(".wi.", ".glu_in.") for name in made}
            file = {names[name]: tensor for name, tensor in made.items()}
            says = {"gate-rows": lambda name: name.endswith("gate_up_proj.weight")}
            yield Case(file=file, target=fused, asks="gate-order", truth=truth, sees=says)


def rotary_cases(state: State, heads: int, rotary: str) -> Iterator[Case]:
    """Rows of queries and keys in halves and in pairs, under Meta's names for a target of Hugging Face's and back; the
    size of a head told by frequencies, and not told."""
    size = next(t for n, t in state.items() if n.endswith("q_proj.weight")).shape[0] // heads
    sees = {"rotary-rows": lambda name: name.endswith(("q_proj.weight", "k_proj.weight", "wq.weight", "wk.weight"))}
    meta = {"q_proj": "wq", "k_proj": "wk", "v_proj": "wv", "o_proj": "wo", "self_attn": "attention"}
    for told in (True, False):
        for into, names, backward in (("half", meta, True), ("pairs", meta, False)):
            for truth in ("half", "pairs"):
                file = {name: _turned(t, name, size, rotary, truth) for name, t in state.items()}
                target = {name: _turned(t, name, size, rotary, into) for name, t in state.items()}
                if backward:
                    file = {_named(name, names): t for name, t in file.items()}
                else:
                    target = {_named(name, names): t for name, t in target.items()}
                if told:
                    file["inv_freq"] = (10000.0 ** (-np.arange(0, size, 2) / size)).astype(np.float32)
                is_right = "as-it-is" if truth == into else f"heads-of-{size}"
                yield Case(file=file, target=target, asks="rotary-halves", truth=is_right, sees=sees)


def _named(name: str, names: dict[str, str]) -> str:
    for ours, theirs in names.items():
        name = name.replace(f".{ours}.", f".{theirs}.")
    return name


def _turned(tensor: Array, name: str, size: int, ours: str, theirs: str) -> Array:
    if ours == theirs or (".q_proj." not in name and ".k_proj." not in name):
        return tensor
    a, b = (size // 2, 2) if ours == "pairs" else (2, size // 2)
    turned = tensor.reshape(-1, a, b, *tensor.shape[1:]).swapaxes(1, 2)
    return np.ascontiguousarray(turned.reshape(tensor.shape))


def flatten_cases(state: State) -> Iterator[Case]:
    """A matrix behind convolutions, flattened channels first and last, in a file that stores kernels channels last."""
    dense = next(name for name, t in state.items() if t.ndim == 2)
    kernels = [name for name, t in state.items() if t.ndim == 4]
    channels = state[kernels[-1]].shape[0]
    side = int(np.sqrt(state[dense].shape[1] // channels))
    for truth in ("channels-first", "channels-last"):
        file = {n: t.transpose(2, 3, 1, 0) if t.ndim == 4 else t for n, t in state.items()}
        if truth == "channels-last":
            pictures = state[dense].reshape(-1, channels, side, side).transpose(0, 2, 3, 1)
            file[dense] = pictures.reshape(state[dense].shape)
        file = {n: np.ascontiguousarray(t) for n, t in file.items()}
        yield Case(
            file=file,
            target=state,
            asks="flatten-order",
            truth=truth,
            sees={"neighbours": lambda name: name == dense},
        )


def patch_cases(state: State) -> Iterator[Case]:
    """A matrix over patches, written channel by channel and place by place, for a convolution."""
    kernel = next(name for name, t in state.items() if t.ndim == 4)
    for truth in ("channels-first", "channels-last"):
        pictures = state[kernel].transpose(0, 2, 3, 1) if truth == "channels-last" else state[kernel]
        flat = np.ascontiguousarray(pictures.reshape(len(pictures), -1))
        yield Case(
            file=state | {kernel: flat},
            target=state,
            asks="flattened-kernel",
            truth=truth,
            sees={"neighbours": lambda name: name == kernel},
        )
