"""Which layer is suggested where the answer is the mean of patches, and what the others are called."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from inspector.cam.engine.behind import patches_reach
from inspector.cam.engine.maps import heat_maps
from inspector.cam.engine.trace import trace
from inspector.cam.layers.proposals import find_layer, propose_layers

PICTURE = (3, 32, 48)
GRID = (4, 6)


class Block(nn.Module):
    """A pre-norm block; without heads it mixes tokens by a linear layer over them."""

    def __init__(self, width: int, tokens: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.mix = nn.MultiheadAttention(width, heads, batch_first=True) if heads else nn.Linear(tokens, tokens)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Linear(width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        if isinstance(self.mix, nn.Linear):
            x = x + self.mix(y.transpose(1, 2)).transpose(1, 2)
        else:
            x = x + self.mix(y, y, y, need_weights=False)[0]
        return x + self.drop(self.mlp(self.norm2(x)))


class Tokens(nn.Module):
    """prefix: class or register tokens. read: "mean" of the patches, "all" tokens, or the "first". linear: patches are
    cut out and made by a linear layer, as in naflexvit."""

    def __init__(
        self, prefix: int, read: str, *, heads: int = 2, norm: bool = True, linear: bool = False, blocks: int = 3
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.prefix, self.read, self.linear = prefix, read, linear
        self.patches: nn.Module = nn.Linear(3 * 64, 8) if linear else nn.Conv2d(3, 8, 8, stride=8)
        self.pass_on = nn.Identity()
        self.tokens = nn.Parameter(torch.randn(1, prefix, 8))
        self.blocks = nn.Sequential(*(Block(8, prefix + 24, heads) for _ in range(blocks)))
        self.norm: nn.Module = nn.LayerNorm(8) if norm else nn.Identity()
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        if self.linear:
            cut = x.unfold(2, 8, 8).unfold(3, 8, 8).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
            x = self.pass_on(self.patches(cut))
        else:
            x = self.pass_on(self.patches(x).flatten(2).transpose(1, 2))
        x = self.norm(self.blocks(torch.cat([self.tokens.expand(len(x), -1, -1), x], dim=1)))
        if self.read == "first":
            return self.head(x[:, 0])
        return self.head(x[:, self.prefix if self.read == "mean" else 0 :].mean(dim=1))


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize(("prefix", "read"), [(0, "mean"), (1, "mean"), (4, "mean"), (1, "all")])
def test_a_mean_of_patches_was_offered_the_attention_branch_alone(prefix: int, read: str, norm: bool) -> None:
    """relpos, eva02, wee with a register, so150m: each patch goes on beside the last attention as well."""
    first, *earlier = propose_layers(Tokens(prefix, read, norm=norm), PICTURE)
    assert (first.path, first.prefix_tokens, first.grid) == ("norm" if norm else "blocks.2", prefix, GRID)
    assert first.reason == "The last map before the answer, 4x6, patches row by row."
    expected = ["blocks.2"] * norm + ["blocks.1", "blocks.0"]
    assert [layer.path for layer in earlier][: len(expected)] == expected
    assert earlier[0].reason == "The map of an earlier step, 4x6: knows less about the class."


@pytest.mark.parametrize("prefix", [1, 2, 5])
def test_a_class_token_keeps_what_enters_the_last_attention(prefix: int) -> None:
    first, second, *_ = propose_layers(Tokens(prefix, "first"), PICTURE)
    assert (first.path, second.path) == ("blocks.2.norm1", "blocks.1.norm1")
    assert first.reason.startswith("Enters the last attention, 4x6 patches; behind it only ")


def test_a_mean_points_at_the_patch_that_the_answer_comes_from() -> None:
    """The sum of the map behind the last norm is the score, and each patch's own share of it stands at its place."""
    model = Tokens(1, "mean").eval()
    with torch.no_grad():
        model.head.bias.zero_()
    picture = torch.randn(1, *PICTURE, generator=torch.Generator().manual_seed(1))
    found = heat_maps(model, picture, targets=2)
    assert found.layer.path == "norm"
    with torch.no_grad():
        kept: list[Tensor] = []
        handle = model.norm.register_forward_hook(lambda *args: kept.append(args[2]))
        score = model(picture)[0, 2]
        handle.remove()
        shares = kept[0][0, 1:] @ model.head.weight[2] / 24
    torch.testing.assert_close(found.raw[0].flatten(), shares)
    torch.testing.assert_close(found.raw.sum(), score)


@pytest.mark.parametrize("read", ["first", "mean", "all"])
def test_whether_patches_reach_is_asked_of_no_weight(read: str) -> None:
    """Also of a head of zeros, and of a model without numbers; nothing of the model changes."""
    model = Tokens(1, read).train()
    nn.init.zeros_(model.head.weight)
    with torch.device("meta"):
        empty = Tokens(1, read)
    random = torch.get_rng_state()
    for asked in (model, empty):
        layer = find_layer(asked, "norm", PICTURE)
        assert patches_reach(asked, layer, PICTURE) is (read != "first")
        assert patches_reach(asked, find_layer(asked, "blocks.1", PICTURE), PICTURE) is True
        assert not any(module._forward_hooks for module in asked.modules())
    assert torch.equal(random, torch.get_rng_state())
    assert model.training
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())


class Lookup(Tokens):
    """Which token is read stands in a table, whose numbers a forward without data does not have."""

    def __init__(self) -> None:
        super().__init__(1, "mean")
        self.register_buffer("first", torch.tensor([0]))

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = self.norm(self.blocks(torch.cat([self.tokens.expand(len(x), -1, -1), x], dim=1)))
        return self.head(x.index_select(1, self.first)[:, 0])


def test_what_cannot_be_told_stays_with_the_attention() -> None:
    model = Lookup()
    assert patches_reach(model, find_layer(model, "norm", PICTURE), PICTURE) is None
    assert propose_layers(model, PICTURE)[0].path == "blocks.2.norm1"


@pytest.mark.parametrize("prefix", [0, 4, 7])
def test_linear_patches_with_registers_ended_at_the_embedding(prefix: int) -> None:
    """naflexvit: no convolution shows the grid, and four tokens before it are no usual number."""
    layers = propose_layers(Tokens(prefix, "mean", norm=False, linear=True), PICTURE)
    assert [layer.path for layer in layers[:3]] == ["blocks.2", "blocks.1", "blocks.0"]
    assert {(layer.prefix_tokens, layer.grid) for layer in layers[:3]} == {(prefix, GRID)}
    token = propose_layers(Tokens(4, "first", linear=True), PICTURE)[0]
    assert (token.path, token.prefix_tokens) == ("blocks.2.norm1", 4)


def test_a_mixer_had_one_proposal() -> None:
    first, *earlier = propose_layers(Tokens(0, "mean", heads=0), PICTURE)
    assert (first.path, first.rank) == ("norm", 1)
    assert [layer.path for layer in earlier[:3]] == ["blocks.2", "blocks.1", "blocks.0"]


class Resorted(Tokens):
    """As Hiera: tokens in windows until they are pooled, then two blocks of tokens that lie in rows."""

    def __init__(self) -> None:
        super().__init__(0, "mean", norm=False)
        self.late = nn.Sequential(*(Block(8, 6, 2) for _ in range(2)))

    def forward(self, x: Tensor) -> Tensor:
        order = torch.arange(24).reshape(2, 2, 3, 2).transpose(1, 2).flatten()
        x = self.patches(x).flatten(2).transpose(1, 2)[:, order]
        return self.head(self.late(self.blocks(x).unflatten(1, (6, 4)).mean(dim=2)).mean(dim=1))


def test_the_last_stage_of_tokens_in_windows_had_one_proposal() -> None:
    layers = propose_layers(Resorted(), PICTURE)
    assert [(layer.path, layer.grid) for layer in layers] == [("late.1", (2, 3)), ("late.0", (2, 3))]


class TwoBranches(nn.Module):
    """As CrossViT: patches of two sizes, each with a class token of its own, and the answer adds both."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.patches = nn.ModuleList([nn.Conv2d(3, 8, side, stride=side) for side in (8, 4)])
        self.tokens = nn.ParameterList([nn.Parameter(torch.randn(1, 1, 8)) for _ in range(2)])
        self.early = nn.ModuleList([Block(8, 0, 2) for _ in range(2)])
        self.late = nn.ModuleList([Block(8, 0, 2) for _ in range(2)])
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        both = []
        for patches, token in zip(self.patches, self.tokens, strict=True):
            both.append(torch.cat([token.expand(len(x), -1, -1), patches(x).flatten(2).transpose(1, 2)], dim=1))
        for blocks in (self.early, self.late):
            both = [block(tokens) for block, tokens in zip(blocks, both, strict=True)]
        return sum(self.head(tokens[:, 0]) for tokens in both)


def test_a_second_branch_was_called_an_earlier_layer() -> None:
    layers = propose_layers(TwoBranches(), PICTURE)
    assert [layer.path for layer in layers] == ["late.1.norm1", "late.0.norm1", "early.1.norm1", "early.0.norm1"]
    assert layers[1].reason == ("Enters the last attention of another branch, 4x6 patches: the answer comes from both.")
    assert [layer.reason.split(",")[0] for layer in layers[2:]] == ["Enters an earlier attention"] * 2


class PassedOn(nn.Module):
    """Two stages; what they put out is handed on by modules that change nothing, and weighed by a coarser gate."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 4, stride=4), nn.ReLU(inplace=True))
        self.short = nn.Conv2d(8, 8, 4, stride=4)
        self.gate_fn = nn.Sigmoid()
        self.stage = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(inplace=True))
        self.norm_pre = nn.Identity()
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        x = x * nn.functional.interpolate(self.gate_fn(self.short(x)), scale_factor=4)
        return self.head(self.drop(self.norm_pre(self.stage(x))).mean(dim=(2, 3)))


def test_a_layer_was_named_after_an_identity_or_a_gate() -> None:
    layers = propose_layers(PassedOn(), PICTURE)
    assert [(layer.path, layer.grid) for layer in layers] == [("short", (2, 3)), ("stage", (8, 12))][::-1]
    passing = [call.path for call in trace(PassedOn(), PICTURE).calls if call.passes]
    assert passing == ["norm_pre", "drop"], "what was written into in place was not handed on as it was"


TIMM = {
    # name: (input, suggested, prefix tokens, the second, how many at least)
    "test_vit_relpos": ((3, 160, 160), "blocks.8", 0, "blocks.7", 8),
    "eva02_tiny_patch14_224": ((3, 224, 224), "blocks.11", 1, "blocks.10", 8),
    "vit_wee_patch16_reg1_gap_256": ((3, 256, 256), "blocks.13", 1, "blocks.12", 8),
    "vit_so150m_patch16_reg4_gap_256": ((3, 256, 256), "norm", 4, "blocks.17", 8),
    "naflexvit_base_patch16_gap": ((3, 384, 384), "blocks.11", 4, "blocks.10", 8),
    "vit_tiny_patch16_224": ((3, 224, 224), "blocks.11.norm1", 1, "blocks.10.norm1", 8),
    "crossvit_tiny_240": ((3, 240, 240), "blocks.2.fusion.1.norm1", 1, "blocks.2.fusion.0.norm1", 8),
    "mixer_s16_224": ((3, 224, 224), "norm", 0, "blocks.7", 8),
    "resmlp_12_224": ((3, 224, 224), "norm", 0, "blocks.11", 8),
    "hiera_tiny_224": ((3, 224, 224), "blocks.11", 0, "blocks.10", 2),
    "convnext_atto": ((3, 224, 224), "stages", 0, "stages.2", 4),
    "ghostnetv2_100": ((3, 224, 224), "blocks", 0, "blocks.8.3.ghost1.short_conv", 5),
}


@pytest.mark.parametrize("name", TIMM)
def test_timm(name: str) -> None:
    timm = pytest.importorskip("timm")
    if not timm.is_model(name):
        pytest.skip("not in this version")
    shape, path, prefix, second, count = TIMM[name]
    torch.manual_seed(0)
    layers = propose_layers(timm.create_model(name, pretrained=False, num_classes=5).eval(), shape)
    assert (layers[0].path, layers[0].prefix_tokens, layers[1].path) == (path, prefix, second)
    assert len(layers) >= count
