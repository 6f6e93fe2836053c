"""Numbers that two libraries order differently inside one tensor: by the outputs of both ways of computing."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import silu, unfold

from inspector.architectures.targets import parse_target
from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint

WIDTH = 6


class Slices(nn.Module):
    """The Swin authors' patch merging."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4 * WIDTH)
        self.reduction = nn.Linear(4 * WIDTH, 2 * WIDTH, bias=False)

    def forward(self, x):  # (batch, height, width, channels)
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.reduction(self.norm(x))


class Unfolds(Slices):
    """OpenMMLab's."""

    def forward(self, x):
        n, h, w, _ = x.shape
        x = unfold(x.permute(0, 3, 1, 2), kernel_size=2, stride=2)
        return self.reduction(self.norm(x.transpose(1, 2))).reshape(n, h // 2, w // 2, -1)


class Diffusion(nn.Module):
    """The final layer of a diffusion transformer as its authors write it."""

    def __init__(self):
        super().__init__()
        self.final_layer = nn.Module()
        self.final_layer.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(WIDTH, 2 * WIDTH))

    def forward(self, x, given):
        shift, scale = self.final_layer.adaLN_modulation(given).chunk(2, 1)
        return x * (1 + scale) + shift


class Diffusers(nn.Module):
    """The same in diffusers."""

    def __init__(self):
        super().__init__()
        self.norm_out = nn.Module()
        self.norm_out.linear = nn.Linear(WIDTH, 2 * WIDTH)

    def forward(self, x, given):
        scale, shift = self.norm_out.linear(silu(given)).chunk(2, 1)
        return x * (1 + scale) + shift


def filled(kind):
    torch.manual_seed(3)
    made = kind()
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made.eval()


def swin(merging, attention):
    """Names of a whole network, which say whose code it is."""
    made = {f"layers.0.downsample.{name}": tensor.clone() for name, tensor in merging.state_dict().items()}
    made[f"layers.0.blocks.0.attn.{attention}.weight"] = torch.randn(3 * WIDTH, WIDTH)
    return made


def diagnosed(tmp_path, ours, theirs, **answers):
    torch.save(ours, tmp_path / "a.pth")
    torch.save(theirs, tmp_path / "b.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    target = parse_target(f"file:{tmp_path / 'b.pth'}", open_file=open_checkpoint)
    return checkpoint, target, diagnose(checkpoint, target, **answers)


def repaired(tmp_path, ours, theirs, **answers):
    checkpoint, target, report = diagnosed(tmp_path, ours, theirs, **answers)
    assert report.plan is not None and report.plan.complete, report.says
    assert verify_plan(checkpoint, report.plan, target).holds
    return apply_plan(checkpoint, report.plan), report


@pytest.mark.parametrize(
    ("source", "target", "one", "other"),
    [(Unfolds, Slices, "w_msa.qkv", "qkv"), (Slices, Unfolds, "qkv", "w_msa.qkv")],
)
def test_patches_merge_to_the_same_numbers_in_both_libraries(tmp_path, source, target, one, other):
    merging = filled(source)
    made, report = repaired(tmp_path, swin(merging, one), swin(target(), other))
    twin = target().eval()
    twin.load_state_dict({n: made[f"layers.0.downsample.{n}"] for n in merging.state_dict()})
    x = torch.randn(2, 4, 8, WIDTH)
    assert torch.allclose(twin(x), merging(x), atol=1e-5)
    twin.load_state_dict(merging.state_dict())
    assert not torch.allclose(twin(x), merging(x), atol=1e-2)
    assert {use.id: use.count for use in report.plan.rules}["inner-order"] == 3


def test_one_library_merges_as_it_is(tmp_path):
    for attention in ("qkv", "w_msa.qkv"):
        ours = swin(filled(Slices), attention)
        made, _ = repaired(tmp_path, {f"module.{n}": t for n, t in ours.items()}, ours)
        assert all(torch.equal(made[n], t) for n, t in ours.items())


@pytest.mark.parametrize(("source", "target"), [(Diffusion, Diffusers), (Diffusers, Diffusion)])
def test_shift_and_scale_change_places_between_authors_and_diffusers(tmp_path, source, target):
    one, trunk = filled(source), {f"blocks.{i}.weight": torch.randn(3, i + 4) for i in range(9)}
    ours, theirs = one.state_dict() | trunk, target().state_dict() | trunk
    waiting = diagnosed(tmp_path, ours, theirs)[2]
    # Whether it is the same layer at all is asked, or taken from the names.
    answers = {"accept": ["same-order"], "choose": {q.id: "as-placed" for q in waiting.plan.ambiguities}}
    made, _ = repaired(tmp_path, ours, theirs, **answers)
    twin = target()
    twin.load_state_dict({n: made[n] for n in twin.state_dict()})
    x, given = torch.randn(2, WIDTH), torch.randn(2, WIDTH)
    assert torch.allclose(twin(x, given), one(x, given), atol=1e-6)


def test_the_exported_code_does_the_same(tmp_path, monkeypatch):
    merging = filled(Unfolds)
    made, report = repaired(tmp_path, swin(merging, "w_msa.qkv"), swin(Slices(), "qkv"))

    class Net(nn.Module):
        def load_state_dict(self, state, strict=True):
            self.got = dict(state)

    model = Net()
    monkeypatch.chdir(tmp_path)
    exec(python_code(report.plan, file_name="a.pth"), {"model": model})
    assert made.keys() == model.got.keys() and all(torch.equal(made[n], t) for n, t in model.got.items())
