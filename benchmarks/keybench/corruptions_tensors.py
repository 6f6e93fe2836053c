"""Corruptions of the tensors: layouts, sizes, parts joined and taken apart, types; some that show nowhere."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from benchmarks.keybench.damage import Answer, Corruption, Damaged, Make, Row, State, damaged, lost, rebuilt

HEADS = 4


def _is_counter(name: str) -> bool:
    return name.endswith("num_batches_tracked")


def _counters_longer(name: str, tensor: Tensor) -> Tensor:
    return tensor.reshape(1) if _is_counter(name) else tensor


def _counters_shorter(own: State, _: random.Random) -> Damaged:
    truth = {name: _counters_longer(name, tensor) for name, tensor in own.items()}
    return damaged((Row(name, tensor, name) for name, tensor in own.items()), truth)


def _turned(name: str, tensor: Tensor) -> Tensor:
    """Every linear layer as (in, out); embeddings and tables are none."""
    return tensor.t().contiguous() if tensor.dim() == 2 and _is_linear(name) else tensor


def _is_linear(name: str) -> bool:
    tables = re.search(r"embed|\.wte|\.wpe|table|_projection$|proj$|cls_token|attention_biases", name)
    return name.endswith("weight") and tables is None


def _squeezed(_: str, tensor: Tensor) -> Tensor:
    return tensor[:, :, 0, 0] if tensor.dim() == 4 and tensor.shape[2:] == (1, 1) else tensor


def _fused(name: str) -> tuple[str, str] | None:
    """(what stands before, weight or bias) of a matrix that holds query, key and value below each other."""
    found = re.fullmatch(r"(.*)(?:in_proj_|\bqkv\.)(weight|bias)", name)
    return (found[1], found[2]) if found else None


def _thirds(own: State, name: str) -> bool:
    return _fused(name) is not None and own[name].shape[0] % (3 * HEADS) == 0


def _apart(own: State, _: random.Random) -> Damaged:
    rows = []
    for name, tensor in own.items():
        fused = _fused(name) if _thirds(own, name) else None
        if fused is None:
            rows.append(Row(name, tensor, name))
        else:
            parts = zip("qkv", tensor.chunk(3), strict=True)
            rows += [Row(f"{fused[0]}{x}_proj.{fused[1]}", part.contiguous(), name) for x, part in parts]
    return damaged(rows, own)


def _ordered(tensor: Tensor, order: Sequence[int]) -> Tensor:
    parts = tensor.chunk(3)
    return torch.cat([parts[i] for i in order])


def _interleaved(tensor: Tensor) -> Tensor:
    """Query, key and value of the first head, then of the second: as Megatron and GPT-NeoX have them."""
    rows, rest = tensor.shape[0] // (3 * HEADS), tensor.shape[1:]
    return tensor.reshape(3, HEADS, rows, *rest).transpose(0, 1).reshape(tensor.shape).contiguous()


def _in_place(change: Callable[[Tensor], Tensor]) -> Make:
    """The fused matrices in another order under their own names: nothing shows."""

    def make(own: State, _: random.Random) -> Damaged:
        return damaged((Row(n, change(t) if _thirds(own, n) else t, n) for n, t in own.items()), own)

    return make


def _taken_apart(change: Callable[[Tensor], Tensor], called: str = "") -> Make:
    """The file has them fused, in the order that `change` makes; the target has them apart.

    called: the layer's name in the file. A library's own name says its own order, and who writes another has another.
    """

    def name_of(name: str) -> str:
        before, leaf = _fused(name) or ("", "")
        return f"{before}{called}.{leaf}" if called else name

    def make(own: State, chance: random.Random) -> Damaged:
        split = _apart(own, chance)
        rows = [Row(name_of(n), change(t), n) if _thirds(own, n) else Row(n, t, n) for n, t in own.items()]
        made = damaged(rows, split.file)
        return Damaged(made.file, split.file, frozenset(split.file))

    return make


def _rotary(name: str, tensor: Tensor) -> Tensor:
    """Halves for neighbours within each head, as Meta's and Hugging Face's Llama differ."""
    if not re.search(r"self_attn\.[qk]_proj\.weight$", name):
        return tensor
    rows = tensor.shape[0] // HEADS
    return tensor.reshape(HEADS, 2, rows // 2, -1).transpose(1, 2).reshape(tensor.shape).contiguous()


def _other_head(name: str, tensor: Tensor) -> Tensor:
    table = re.search(r"embed|\.wte\.", name)
    return torch.full((10, *tensor.shape[1:]), 7.0) if tensor.shape[:1] == (1000,) and not table else tensor


def _channels(count: int) -> Make:
    def make(own: State, _: random.Random) -> Damaged:
        first = next((n for n, t in own.items() if t.dim() == 4 and t.shape[1] == 3), "")
        rows = []
        for name, tensor in own.items():
            if name == first:
                tensor = tensor[:, [i % 3 for i in range(count)]].contiguous()
            rows.append(Row(name, tensor, name))
        return damaged(rows, own, computed=(first,))

    return make


def _is_position(name: str, tensor: Tensor) -> bool:
    return bool(re.search(r"pos_embed(ding)?$", name)) and tensor.dim() == 3


def _larger_grid(own: State, _: random.Random) -> Damaged:
    rows, computed = [], []
    for name, tensor in own.items():
        tokens = tensor.shape[1] - 196 if _is_position(name, tensor) else -1
        if 0 <= tokens <= 2:
            rows.append(Row(name, torch.linspace(-1, 1, 576 + tokens)[None, :, None] * tensor[:, :1], name))
            computed.append(name)
        else:
            rows.append(Row(name, tensor, name))
    return damaged(rows, own, computed)


def _one_token_more(name: str, tensor: Tensor) -> Tensor:
    return torch.cat([tensor, tensor[:, :1] * 0.5], dim=1) if _is_position(name, tensor) else tensor


def _weight_norm(own: State, names: tuple[str, str]) -> dict[str, str]:
    """new name -> old name, for every convolution; "" stands for what weight norm adds."""
    made: dict[str, str] = {}
    for name, tensor in own.items():
        module, _, leaf = name.rpartition(".")
        if leaf == "weight" and tensor.dim() == 4:
            made |= {f"{module}.{names[0]}": "", f"{module}.{names[1]}": name}
        else:
            made[name] = name
    return made


OLD = ("weight_g", "weight_v")
NEW = ("parametrizations.weight.original0", "parametrizations.weight.original1")


def _norms(ours: tuple[str, str], theirs: tuple[str, str]) -> Make:
    def make(own: State, _: random.Random) -> Damaged:
        rows, truth = [], {}
        pairs = zip(_weight_norm(own, ours).items(), _weight_norm(own, theirs).items(), strict=True)
        before = None
        for (key, name), (place, _name) in pairs:
            weight = own[name] if name else None
            if weight is None:
                before = (key, place)
                continue
            if before is not None:
                size = weight.flatten(1).norm(dim=1).reshape(-1, 1, 1, 1)
                rows.append(Row(before[0], size, before[1]))
                truth[before[1]] = size
                before = None
            rows.append(Row(key, weight, place))
            truth[place] = weight
        return damaged(rows, truth)

    return make


def _untied(own: State, _: random.Random) -> Damaged:
    """The head is the embedding, and the file has it once."""
    table = next((n for n in own if n.endswith(("embed_tokens.weight", "wte.weight"))), "")
    if "lm_head.weight" not in own or not table:
        return damaged((), own)
    truth = own | {"lm_head.weight": own[table]}
    return damaged((Row(n, t, n) for n, t in own.items() if n != "lm_head.weight"), truth)


def _adapted(own: State, _: random.Random) -> Damaged:
    """PEFT's model saved whole: every linear layer with an adapter beside it."""
    linear = re.compile(r"(proj|query|value|qkv|c_attn|fc[12]?)\.weight$")
    wrapped = {n.rpartition(".")[0] for n, t in own.items() if t.dim() == 2 and linear.search(n)}
    rows = []
    for name, tensor in own.items():
        module, _dot, leaf = name.rpartition(".")
        at = f"base_model.model.{module}"
        if module not in wrapped:
            rows.append(Row(f"base_model.model.{name}", tensor, name))
            continue
        rows.append(Row(f"{at}.base_layer.{leaf}", tensor, name))
        if leaf == "weight":
            rows.append(Row(f"{at}.lora_A.default.weight", torch.full((8, tensor.shape[1]), 7.0), None))
            rows.append(Row(f"{at}.lora_B.default.weight", torch.full((tensor.shape[0], 8), 7.0), None))
    return damaged(rows if wrapped else (), own)


def _halved(name: str, tensor: Tensor) -> Tensor:
    return tensor[: tensor.shape[0] // 2].contiguous() if tensor.dim() > 1 else tensor


def _sharded(own: State, chance: random.Random) -> Damaged:
    """Where the head alone is cut it is a head of fewer classes, and no shard."""
    made = lost(_shard)(own, chance)
    return made if len(own) - len(made.placeable) > 2 else damaged((), own)


def _shard(name: str, tensor: Tensor) -> Tensor:
    """The first of two tensor-parallel parts: by columns, or by rows where the layer's answer is summed."""
    if tensor.dim() != 2 or not name.endswith("weight"):
        return tensor
    summed = re.search(r"(o_proj|down_proj|output\.dense|c_proj|fc2|proj)\.weight$", name)
    return tensor.chunk(2, dim=1 if summed else 0)[0].contiguous()


def _half_precision(own: State, _: random.Random) -> Damaged:
    cast = {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in own.items()}
    return damaged((Row(name, tensor, name) for name, tensor in cast.items()), cast)


IN_ORDER = {"qkv-order": "q-k-v"}
TENSORS = (
    Corruption("counters as [1]", rebuilt(_counters_longer)),
    Corruption("counters as [1] in the target", _counters_shorter),
    Corruption(
        "Linear transposed",
        rebuilt(_turned),
        answers={"transposed-shapes": "transposed"},
        at={"transposed": lambda name: "transposed" if _is_linear(name) else "as-it-is"},
    ),
    Corruption("1x1 convolution as Linear", rebuilt(_squeezed)),
    Corruption("q, k, v apart", _apart, answers=IN_ORDER),
    Corruption("q, k, v in one", _taken_apart(lambda tensor: tensor), answers=IN_ORDER),
    Corruption(
        "k, v, q in one, target apart",
        _taken_apart(lambda t: _ordered(t, (1, 2, 0)), "in_proj"),
        answers={"qkv-order": "k-v-q"},
    ),
    Corruption(
        "heads in one, target apart", _taken_apart(_interleaved, "in_proj"), answers={"qkv-order": f"{HEADS}-heads"}
    ),
    Corruption(
        "k, v, q under its own name, target apart",
        _taken_apart(lambda t: _ordered(t, (1, 2, 0))),
        expects=Answer.TELL,
    ),
    Corruption("k, v, q in one", _in_place(lambda tensor: _ordered(tensor, (1, 2, 0))), expects=Answer.TELL),
    Corruption("heads interleaved in one", _in_place(_interleaved), expects=Answer.TELL),
    Corruption("rotary halves", rebuilt(_rotary), expects=Answer.TELL),
    Corruption("10 classes", lost(_other_head), ("head-mismatch",)),
    Corruption("1 input channel", _channels(1), ("first-convolution",)),
    Corruption("4 input channels", _channels(4), ("first-convolution",)),
    Corruption("position grid of 384", _larger_grid, ("position-grid",)),
    Corruption("weight norm, old names", _norms(OLD, NEW)),
    Corruption("weight norm, new names", _norms(NEW, OLD)),
    Corruption("tied lm_head absent", _untied, expects=Answer.PART),
    Corruption("LoRA saved whole", _adapted, ("extra-tensors",), simple=False),
    Corruption("float16", _half_precision),
    Corruption("one token more", lost(_one_token_more), expects=Answer.REFUSE),
    Corruption("half of each matrix", lost(_halved), expects=Answer.REFUSE),
    Corruption("tensor-parallel shard", _sharded, expects=Answer.REFUSE),
    Corruption("ZeRO-3 placeholders", lost(lambda _, tensor: torch.zeros(0)), expects=Answer.REFUSE),
)
