"""Backbones out of checkpoints of self-supervised training: the head is missing there, and that has to be said.

The containers are as each project's training script saves them (MoCo main_moco.py, DINO main_dino.py, MAE
main_pretrain.py, sthalles/SimCLR, lucidrains/byol-pytorch); the networks inside are torchvision's and timm's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.conversions.pairs.hf_vision import TIMM, TORCHVISION, epsilon, timm_model, torchvision_model
from benchmarks.conversions.sides import Pair, Side, picture

_VIT = {"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 3, "num_heads": 4}


def _mlp(*sizes: int, norms: bool = False) -> nn.Sequential:
    layers: list[nn.Module] = []
    for n, (a, b) in enumerate(pairwise(sizes)):
        layers.append(nn.Linear(a, b))
        if n < len(sizes) - 2:
            layers += [nn.BatchNorm1d(b), nn.ReLU()] if norms else [nn.ReLU()]
    return nn.Sequential(*layers)


class _Resnet(nn.Module):
    """A ResNet-18 and whatever stands beside it in training. wrap: the state dict as it is saved."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        from torchvision import models

        self.net = models.get_model("resnet18", weights=None)
        self.net.fc = nn.Identity()
        self.head = head
        self.other = models.get_model("resnet18", weights=None)  # the momentum encoder
        self.other.fc = nn.Identity()


def _whole(head: Callable[[], nn.Module]) -> nn.Module:
    return epsilon(_Resnet(head()))


def _saved(make: Callable[[Any], Any]) -> Callable[[Any, Path], Path]:
    def save(model: Any, folder: Path) -> Path:
        path = folder / "checkpoint.pth.tar"
        torch.save(make(model), path)
        return path

    return save


def under(prefix: str, module: nn.Module) -> dict[str, Tensor]:
    return {f"{prefix}{name}": tensor for name, tensor in module.state_dict().items()}


def _run(model: Any, x: Tensor) -> Tensor:
    return model.net(x)


def bare(model: Any, x: Tensor) -> Tensor:
    """torchvision's ResNet up to its head."""
    kept, model.fc = model.fc, nn.Identity()
    try:
        return model(x)
    finally:
        model.fc = kept


def _features(model: Any, x: Tensor) -> Tensor:
    return model.forward_head(model.forward_features(x), pre_logits=True)


def _moco(model: Any) -> dict[str, Any]:
    state = under("module.encoder_q.", model.net) | under("module.encoder_q.fc.", model.head)
    state |= under("module.encoder_k.", model.other) | under("module.encoder_k.fc.", model.head)
    state |= {"module.queue": torch.randn(128, 64), "module.queue_ptr": torch.zeros(1, dtype=torch.long)}
    return {"epoch": 200, "arch": "resnet18", "state_dict": state, "optimizer": {"state": {}, "param_groups": []}}


def _moco_v3(model: Any) -> dict[str, Any]:
    state = under("module.base_encoder.", model.net) | under("module.base_encoder.fc.", model.head)
    state |= under("module.momentum_encoder.", model.other) | under("module.momentum_encoder.fc.", model.head)
    return {"epoch": 200, "state_dict": state | under("module.predictor.", model.head)}


def _simclr(model: Any) -> dict[str, Any]:
    state = under("backbone.", model.net) | under("backbone.fc.", model.head)
    return {"epoch": 100, "arch": "resnet18", "state_dict": state, "optimizer": {"state": {}, "param_groups": []}}


def _byol(model: Any) -> dict[str, Any]:
    state = under("net.", model.net) | under("online_encoder.net.", model.net)
    state |= under("online_encoder.projector.", model.head) | under("target_encoder.net.", model.other)
    return state | under("target_encoder.projector.", model.head) | under("online_predictor.", model.head)


class _Dino(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = timm_model("vit_base_patch16_224", num_classes=0, **_VIT)()
        self.other = timm_model("vit_base_patch16_224", num_classes=0, **_VIT)()
        self.head = nn.ModuleDict({"mlp": _mlp(48, 64, 64, 32), "last_layer": nn.utils.weight_norm(nn.Linear(32, 96))})


def _dino(model: Any) -> dict[str, Any]:
    student = under("module.backbone.", model.other) | under("module.head.", model.head)
    teacher = under("backbone.", model.net) | under("head.", model.head)
    return {"student": student, "teacher": teacher, "epoch": 100, "dino_loss": {"center": torch.zeros(1, 96)}}


class _Mae(nn.Module):
    """MAE's ViT with its decoder, names as in facebookresearch/mae models_mae.py."""

    def __init__(self) -> None:
        super().__init__()
        self.net = timm_model("vit_base_patch16_224", num_classes=0, **_VIT)()
        decoder = timm_model("vit_base_patch16_224", num_classes=0, **(_VIT | {"embed_dim": 32, "depth": 2}))()
        self.decoder_embed = nn.Linear(48, 32)
        self.decoder_blocks = decoder.blocks
        self.decoder_norm = nn.LayerNorm(32)
        self.decoder_pred = nn.Linear(32, 192)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, 32))
        self.decoder_pos_embed = nn.Parameter(torch.zeros(1, 17, 32))


def _mae(model: Any) -> dict[str, Any]:
    state = {k.removeprefix("net."): v for k, v in model.state_dict().items()}
    return {"model": state, "optimizer": {"state": {}, "param_groups": []}, "epoch": 800}


def pairs() -> Iterator[Pair]:
    resnet = Side(library=TORCHVISION, build=torchvision_model("resnet18", num_classes=7), run=bare)
    vit = Side(library=TIMM, build=timm_model("vit_base_patch16_224", num_classes=7, **_VIT), run=_features)
    for name, head, make, answers in (
        ("MoCo v2", lambda: _mlp(512, 64, 32), _moco, {"twins": "encoder_q", "state": "state_dict"}),
        ("MoCo v3", lambda: _mlp(512, 64, 32, norms=True), _moco_v3, {}),
        ("SimCLR", lambda: _mlp(512, 64, 32), _simclr, {}),
        ("BYOL", lambda: _mlp(512, 64, 32, norms=True), _byol, {}),
    ):
        build = partial(_whole, head)
        ours = Side(library=name, build=build, run=_run, save=_saved(make), own=False)
        yield Pair(
            id=f"backbone of {name}",
            ours=ours,
            theirs=resnet,
            input=picture(64),
            both=False,
            partial=True,
            accept=("extra-tensors", "head-mismatch"),
            answers=answers,
        )
    for name, build, make in (("DINO", _Dino, _dino), ("MAE", _Mae, _mae)):
        ours = Side(
            library=name,
            build=lambda build=build: epsilon(build()),
            run=lambda model, x: _features(model.net, x),
            save=_saved(make),
            own=False,
        )
        yield Pair(
            id=f"backbone of {name}",
            ours=ours,
            theirs=vit,
            input=picture(32),
            both=False,
            partial=True,
            accept=("extra-tensors", "head-mismatch"),
        )
