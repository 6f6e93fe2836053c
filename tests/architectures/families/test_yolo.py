"""Detectors in ultralytics' names, put together here from convolutions; and ConvNeXt's first names."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import nn

from inspector.architectures.build import build_model
from inspector.architectures.targets import parse_spec, target_of
from inspector.architectures.types import Candidate
from inspector.errors import UnknownArchitecture

See = Callable[..., Candidate | None]


def unit(inner: int, out: int, kernel: int = 1) -> nn.Module:
    return nn.ModuleDict({"conv": nn.Conv2d(inner, out, kernel, bias=False), "bn": nn.BatchNorm2d(out)})


def c2f(inner: int, out: int, repeats: int) -> nn.Module:
    half = out // 2
    steps = [nn.ModuleDict({"cv1": unit(half, half, 3), "cv2": unit(half, half, 3)}) for _ in range(repeats)]
    joined = {"cv1": unit(inner, out), "cv2": unit((2 + repeats) * half, out), "m": nn.ModuleList(steps)}
    return nn.ModuleDict(joined)


def c3(inner: int, out: int, repeats: int) -> nn.Module:
    half = out // 2
    steps = [nn.ModuleDict({"cv1": unit(half, half), "cv2": unit(half, half, 3)}) for _ in range(repeats)]
    sides = {"cv1": unit(inner, half), "cv2": unit(inner, half), "cv3": unit(out, out)}
    return nn.ModuleDict({**sides, "m": nn.ModuleList(steps)})


def branch(inner: int, mid: int, out: int) -> nn.Module:
    return nn.Sequential(unit(inner, mid, 3), unit(mid, mid, 3), nn.Conv2d(mid, out, 1))


def version_8(classes: int) -> nn.Module:
    head = nn.ModuleDict(
        {
            "cv2": nn.ModuleList([branch(n, 16, 64) for n in (16, 32)]),
            "cv3": nn.ModuleList([branch(n, 20, classes) for n in (16, 32)]),
            "dfl": nn.ModuleDict({"conv": nn.Conv2d(16, 1, 1, bias=False)}),
        }
    )
    pool = nn.ModuleDict({"cv1": unit(32, 16), "cv2": unit(64, 32)})
    layers = [unit(3, 8, 3), unit(8, 16, 3), c2f(16, 16, 1), unit(16, 32, 3), c2f(32, 32, 2), pool, nn.Upsample(), head]
    return nn.ModuleDict({"model": nn.ModuleList(layers)})


class Anchors(nn.Module):
    """The detecting module of version 5: anchors as a buffer, one convolution per level."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.register_buffer("anchors", torch.zeros(2, 3, 2))
        self.m = nn.ModuleList([nn.Conv2d(n, 3 * (classes + 5), 1) for n in (16, 32)])


def version_5(classes: int) -> nn.Module:
    pool = nn.ModuleDict({"cv1": unit(32, 16), "cv2": unit(64, 32)})
    layers = [unit(3, 8, 6), unit(8, 16, 3), c3(16, 16, 2), unit(16, 32, 3), c3(32, 32, 1), pool, Anchors(classes)]
    return nn.ModuleDict({"model": nn.ModuleList(layers)})


def test_both_generations_are_named_with_their_classes(recognised: See) -> None:
    for model, modules in ((version_8(11), 8), (version_5(4), 7)):
        found = recognised(model)
        assert found is not None and (found.spec.library, found.spec.name) == ("ultralytics", "yolo")
        assert (found.exact, found.missing, found.extra) == (True, (), ())
        assert found.spec.num_classes == (11 if modules == 8 else 4)
        assert dict(found.spec.options)["modules"] == modules
        own = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
        assert {t.name: t.shape for t in target_of(found.spec).tensors} == own
        assert parse_spec(found.spec.label) == found.spec


def test_it_is_named_and_not_built(recognised: See) -> None:
    found = recognised(version_8(3))
    assert found is not None
    try:
        build_model(found.spec)
    except UnknownArchitecture as error:
        assert "can be named, compared and repaired" in str(error)
    else:
        raise AssertionError("nothing here builds it")


def test_convolutions_in_a_list_are_no_detector(recognised: See) -> None:
    plain = nn.ModuleDict({"model": nn.ModuleList([unit(8, 8, 3) for _ in range(9)])})
    assert recognised(plain) is None


def test_a_convnext_in_its_first_names(recognised: See) -> None:
    def block(width: int) -> nn.Module:
        made = nn.ModuleDict(
            {
                "dwconv": nn.Conv2d(width, width, 7, groups=width),
                "norm": nn.LayerNorm(width),
                "pwconv1": nn.Linear(width, 4 * width),
                "pwconv2": nn.Linear(4 * width, width),
            }
        )
        made.register_parameter("gamma", nn.Parameter(torch.ones(width)))
        return made

    widths, blocks = (8, 12, 20), (1, 3, 2)
    stem = nn.Sequential(nn.Conv2d(3, 8, 4), nn.LayerNorm(8))
    halves = [nn.Sequential(nn.LayerNorm(a), nn.Conv2d(a, b, 2)) for a, b in pairwise(widths)]
    model = nn.ModuleDict(
        {
            "downsample_layers": nn.ModuleList([stem, *halves]),
            "stages": nn.ModuleList(
                [nn.ModuleList([block(w) for _ in range(n)]) for w, n in zip(widths, blocks, strict=True)]
            ),
            "norm": nn.LayerNorm(20),
            "head": nn.Linear(20, 6),
        }
    )
    found = recognised(model)
    assert found is not None and found.exact
    label = "facebook/convnext?num_classes=6&in_channels=3&blocks=1,3,2&patch=4&stages=3&width=8,12,20"
    assert found.spec.label == label
    assert [t.name for t in target_of(found.spec).tensors] == list(model.state_dict())
