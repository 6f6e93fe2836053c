"""What training code leaves in a file: two networks in one, losses, masks, heads exchanged, parts saved alone."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from benchmarks.keybench.corruptions_names import _copies
from benchmarks.keybench.damage import Answer, Corruption, Damaged, Make, Row, State, damaged, renamed

EXTRA = ("extra-tensors",)
_HEAD = re.compile(r"(^|\.)(fc|head|heads\.head|head\.fc|classifier|classifier\.[0-9]|lm_head)\.(weight|bias)$")


def head_of(own: State) -> list[str]:
    """The tensors of the last layer that answers classes; none where nothing is called so."""
    names = [name for name in own if _HEAD.search(name) and own[name].dim() in (1, 2)]
    module = names[-1].rpartition(".")[0] if names else ""
    return [name for name in names if name.rpartition(".")[0] == module]


def _noise(*shape: int) -> Tensor:
    return torch.full(shape, 7.0)


def _beside(prefix: str, other: str, extra: Iterable[tuple[str, Tensor]] = (), *, head: bool = True) -> Make:
    """The network under one prefix, another set of its weights under a second, and what else the method keeps."""

    def make(own: State, _: random.Random) -> Damaged:
        gone = set() if head else set(head_of(own))
        if not head and not gone:
            return Damaged({}, own, frozenset())
        rows = [Row(f"{prefix}.{name}", tensor, name) for name, tensor in own.items() if name not in gone]
        twins = [Row(f"{other}.{n}", t, None) for n, t in _copies(own, 0.5).items() if n not in gone] if other else []
        return damaged([*rows, *twins, *(Row(name, tensor, None) for name, tensor in extra)], own)

    return make


_QUEUE = (("queue", _noise(128, 64)), ("queue_ptr", torch.tensor([7])))
_PROJECTOR = (
    ("projector.0.weight", _noise(33, 65)),
    ("projector.0.bias", _noise(33)),
    ("projector.2.weight", _noise(17, 33)),
)
_PREDICTOR = (*_PROJECTOR, ("predictor.0.weight", _noise(35, 17)), ("predictor.0.bias", _noise(35)))
_MAE = (
    ("mask_token", _noise(1, 1, 51)),
    ("decoder_embed.weight", _noise(51, 65)),
    ("decoder_blocks.0.norm1.weight", _noise(51)),
    ("decoder_pred.weight", _noise(77, 51)),
)


def _more(extra: Iterable[tuple[str, Tensor]], prefix: str = "") -> Make:
    def make(own: State, _: random.Random) -> Damaged:
        rows = [Row(prefix + name, tensor, name) for name, tensor in own.items()]
        return damaged([*rows, *(Row(name, tensor, None) for name, tensor in extra)], own)

    return make


def _twice(own: State, _: random.Random) -> Damaged:
    """Saved with and without the wrapper, the same tensors."""
    return damaged([Row(f"{p}{name}", t, name) for p in ("", "module.") for name, t in own.items()], own)


def _pruned(own: State, _: random.Random) -> Damaged:
    """torch.nn.utils.prune, not made permanent: weight_orig times weight_mask is the weight."""
    rows, truth = [], dict(own)
    for name, tensor in own.items():
        if tensor.dim() < 2 or not name.endswith(".weight"):
            rows.append(Row(name, tensor, name))
            continue
        mask = torch.ones_like(tensor)
        mask.flatten()[::3] = 0
        truth[name] = tensor * mask
        rows += [Row(f"{name}_orig", tensor, name), Row(f"{name}_mask", mask, name)]
    return damaged(rows, truth)


def _head_only(new: str, classes: int | None) -> Make:
    """The last layer under another name; with another number of classes its numbers belong nowhere."""

    def make(own: State, _: random.Random) -> Damaged:
        head = head_of(own)
        if not head or head[0].startswith(f"{new}."):
            return Damaged({}, own, frozenset())
        rows = []
        for name, tensor in own.items():
            if name in head:
                other = tensor if classes is None else _noise(classes, *tensor.shape[1:])
                rows.append(Row(f"{new}.{name.rpartition('.')[2]}", other, name if classes is None else None))
            else:
                rows.append(Row(name, tensor, name))
        made = damaged(rows, own)
        return made if classes is None or not made.file else _computed(made, head)

    return make


def _computed(made: Damaged, head: Iterable[str]) -> Damaged:
    return Damaged(made.file, made.truth, made.placeable - set(head), frozenset(head))


def _classes(classes: int) -> Make:
    def make(own: State, _: random.Random) -> Damaged:
        head = head_of(own)
        rows = [
            Row(n, _noise(classes, *t.shape[1:]) if n in head else t, None if n in head else n) for n, t in own.items()
        ]
        made = damaged(rows, own) if head else Damaged({}, own, frozenset())
        return _computed(made, head) if made.file else made

    return make


def _without(gone: Callable[[State], Iterable[str]]) -> Make:
    def make(own: State, _: random.Random) -> Damaged:
        away = set(gone(own))
        return damaged((Row(n, t, n) for n, t in own.items() if n not in away) if away else (), own)

    return make


def _last_block(own: State) -> list[str]:
    """The tensors of the block with the highest number in the longest row of blocks."""
    rows: dict[str, set[int]] = {}
    for name in own:
        for found in re.finditer(r"(?<=\.)\d+(?=\.)", f".{name}"):
            rows.setdefault(f".{name}"[: found.start()], set()).add(int(found[0]))
    fitting = {start: numbers for start, numbers in rows.items() if len(numbers) > 2}
    if not fitting:
        return []
    start = min(fitting, key=lambda s: (s.count("."), -len(fitting[s])))
    return [name for name in own if f".{name}".startswith(f"{start}{max(fitting[start])}.")]


def _one_block_more(own: State, _: random.Random) -> Damaged:
    """The file of a deeper network: the last block once more, with other numbers."""
    block = _last_block(own)
    if not block:
        return Damaged({}, own, frozenset())
    rows = [Row(name, tensor, name) for name, tensor in own.items()]
    found = re.match(r"(.*?\.?)(\d+)\.", _shared(block))
    if found is None:
        return Damaged({}, own, frozenset())
    new = f"{found[1]}{int(found[2]) + 1}."
    rows += [Row(new + name[found.end() :], own[name] * 0.5, None) for name in block if own[name].is_floating_point()]
    return damaged(rows, own)


def _shared(names: list[str]) -> str:
    shared = names[0]
    for name in names:
        while not name.startswith(shared):
            shared = shared[:-1]
    return shared


def _modules_to_save(own: State, _: random.Random) -> Damaged:
    """PEFT's: the head's module trained whole beside its frozen copy; no adapter elsewhere."""
    found = head_of(own)[:1]
    head = [name for name in own if found and name.rpartition(".")[0] == found[0].rpartition(".")[0]]
    rows = []
    for name, tensor in own.items():
        module, _dot, leaf = name.rpartition(".")
        if name in head:
            rows.append(Row(f"base_model.model.{module}.original_module.{leaf}", tensor * 0.5, None))
            rows.append(Row(f"base_model.model.{module}.modules_to_save.default.{leaf}", tensor, name))
        else:
            rows.append(Row(f"base_model.model.{name}", tensor, name))
    return damaged(rows if head else (), own)


def _observed(own: State, _: random.Random) -> Damaged:
    """Quantisation-aware training: observers beside every layer with a kernel."""
    rows = []
    for name, tensor in own.items():
        rows.append(Row(name, tensor, name))
        if name.endswith(".weight") and tensor.dim() > 1:
            at = f"{name.rpartition('.')[0]}.activation_post_process"
            rows += [Row(f"{at}.{leaf}", torch.tensor([7.0]), None) for leaf in ("scale", "zero_point", "min_val")]
    return damaged(rows, own)


def _swapped(first: str, second: str) -> Make:
    """Two parts of each block under each other's names: no name and no shape shows it."""

    def make(own: State, _: random.Random) -> Damaged:
        table = {first: second, second: first}
        rows = []
        for name, tensor in own.items():
            other = ".".join(table.get(s, s) for s in name.split("."))
            if other != name and (other not in own or own[other].shape != tensor.shape):
                return Damaged({}, own, frozenset())
            rows.append(Row(name, own[other], name))
        return damaged(rows, own)

    return make


def _reversed_input(own: State, _: random.Random) -> Damaged:
    """Trained on BGR, as Caffe's: the first kernel's channels the other way round."""
    first = next((n for n, t in own.items() if t.dim() == 4 and t.shape[1] == 3), None)
    return damaged((Row(n, t.flip(1) if n == first else t, n) for n, t in own.items()) if first else (), own)


def _gate_and_up(own: State, _: random.Random) -> Damaged:
    rows = []
    for name, tensor in own.items():
        if ".gate_proj." in name:
            up = own[name.replace(".gate_proj.", ".up_proj.")]
            rows.append(Row(name.replace(".gate_proj.", ".gate_up_proj."), torch.cat([tensor, up]), name))
        elif ".up_proj." not in name:
            rows.append(Row(name, tensor, name))
    made = damaged(rows if len(rows) < len(own) else (), own)
    return Damaged(made.file, own, frozenset(own)) if made.file else made


def _double(own: State, _: random.Random) -> Damaged:
    cast = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in own.items()}
    return damaged((Row(name, tensor, name) for name, tensor in cast.items()), cast)


def _wrapped_layers(segment: str) -> Make:
    return renamed(lambda name: re.sub(r"(\.\d+)\.", rf"\1.{segment}.", name))


TWINS = {"mixture": "leave-out"}
TRAINING = (
    Corruption(
        "MoCo: encoder_q, encoder_k, queue",
        _beside("module.encoder_q", "module.encoder_k", _QUEUE),
        EXTRA,
        simple=False,
        answers=TWINS | {"twins": "module.encoder_q"},
    ),
    Corruption(
        "DINO: student, teacher",
        _beside("teacher.backbone", "student.backbone"),
        EXTRA,
        simple=False,
        answers=TWINS | {"twins": "teacher"},
    ),
    Corruption(
        "BYOL: online, target",
        _beside("online_encoder", "target_encoder", _PREDICTOR),
        EXTRA,
        simple=False,
        answers=TWINS | {"twins": "online_encoder"},
    ),
    Corruption(
        "SimCLR: backbone, projector, no head",
        _beside("backbone", "", _PROJECTOR, head=False),
        EXTRA,
        expects=Answer.PART,
        simple=False,
    ),
    Corruption("MAE: decoder beside", _more(_MAE), EXTRA, simple=False),
    Corruption(
        "Lightning: loss and metric",
        _more((("criterion.weight", _noise(11)), ("train_acc.tp", torch.tensor(7))), "model."),
        EXTRA,
        simple=False,
    ),
    Corruption("module. and without, the same", _twice, EXTRA, simple=False),
    Corruption("_checkpoint_wrapped_module.", _wrapped_layers("_checkpoint_wrapped_module")),
    Corruption("Opacus: _module.", renamed(lambda name: f"_module.{name}")),
    Corruption("pruned: orig and mask", _pruned, ("folded-weights",)),
    Corruption("observers beside", _observed, EXTRA, simple=False),
    Corruption("PEFT: modules_to_save", _modules_to_save, EXTRA, simple=False),
    Corruption("head called score", _head_only("score", None), ("same-order",)),
    Corruption("head called probe.1", _head_only("probe.1", None), ("same-order",)),
    Corruption("head called logits, 10 classes", _head_only("logits", 10), ("head-mismatch",), simple=False),
    Corruption("1001 classes", _classes(1001), ("head-mismatch",)),
    Corruption("no head", _without(head_of), expects=Answer.PART),
    Corruption("no last block", _without(_last_block), expects=Answer.PART),
    Corruption("one block more", _one_block_more, expects=Answer.REFUSE),
    Corruption("norm1, norm2 exchanged", _swapped("norm1", "norm2"), expects=Answer.TELL),
    Corruption("gate, up exchanged", _swapped("gate_proj", "up_proj"), expects=Answer.TELL),
    Corruption("query, key exchanged", _swapped("query", "key"), expects=Answer.TELL),
    Corruption("first kernel BGR", _reversed_input, expects=Answer.TELL),
    Corruption("gate and up in one", _gate_and_up, ("fused-gates",)),
    Corruption("float64", _double),
)
