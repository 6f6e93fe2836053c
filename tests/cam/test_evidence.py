"""What is read as a map, and which layer is suggested, where shapes alone would mislead."""

from __future__ import annotations

import pytest
import torch
import torchvision
from torch import Tensor, nn

from inspector.cam.engine.maps import heat_maps
from inspector.cam.layers.proposals import find_layer, propose_layers
from inspector.errors import LayerNotSpatial

PICTURE = (3, 64, 96)


def peak(model: nn.Module) -> float:
    """Of the gradient at the suggested layer."""
    return float(heat_maps(model.eval(), torch.randn(1, *PICTURE), targets=0).gradient_peak)


class Stem(nn.Module):
    """16 channels of 8 x 12, and a head over their mean."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Conv2d(3, width, 8, stride=8)
        self.head = nn.Linear(width, 3)

    def body(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.stem(x)).mean(dim=(2, 3)))


class NormedHeads(Stem):
    """Attention over pooled places whose keys are normed: 4 heads x 6 tokens x 4 numbers look like a map of 4 x 6."""

    def __init__(self) -> None:
        super().__init__()
        self.k_norm = nn.Identity()

    def body(self, x: Tensor) -> Tensor:
        pooled = nn.functional.adaptive_avg_pool2d(x, (1, 6)).flatten(2)
        keys = self.k_norm(pooled.reshape(len(x), 4, 4, 6).transpose(2, 3))
        assert keys.shape[1:] == (4, 6, 4)
        return x + keys.mean(dim=(1, 2, 3))[:, None, None, None]


def test_heads_and_tokens_are_no_rows_and_columns() -> None:
    assert [layer.path for layer in propose_layers(NormedHeads(), PICTURE)] == ["stem"]
    with pytest.raises(LayerNotSpatial, match="no height and width"):
        find_layer(NormedHeads(), "k_norm", PICTURE)


class ChannelsLast(Stem):
    """8 rows x 12 columns x 18 channels: 12 x 18 has the picture's proportions too."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(16, 18)
        self.act = nn.GELU()
        self.back = nn.Linear(18, 16)

    def body(self, x: Tensor) -> Tensor:
        return self.back(self.act(self.last(x.permute(0, 2, 3, 1)))).permute(0, 3, 1, 2)


@pytest.mark.parametrize("path", ["last", "act"])
def test_channels_last_whose_channels_could_be_columns(path: str) -> None:
    layer = find_layer(ChannelsLast(), path, PICTURE)
    assert (layer.layout, layer.grid, layer.shape) == ("NHWC", (8, 12), (8, 12, 18))
    assert propose_layers(ChannelsLast(), PICTURE)[0].path == "back"


class Pooled(Stem):
    """Pools tokens of its own to (channels, 1), which is no sequence of tokens with one number each."""

    def __init__(self) -> None:
        super().__init__(24)
        self.merge = nn.Linear(4 * 24, 24)
        self.pooler = nn.AdaptiveAvgPool1d(1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x).permute(0, 2, 3, 1)
        quarters = torch.cat([x[:, a::2, b::2] for a in (0, 1) for b in (0, 1)], dim=-1)
        return self.head(self.pooler(self.merge(quarters.flatten(1, 2)).transpose(1, 2)).flatten(1))


def test_merged_patches_have_half_the_rows_and_columns() -> None:
    first, second = propose_layers(Pooled(), PICTURE)
    assert (first.path, first.layout, first.grid) == ("merge", "NLC", (4, 6))
    assert (second.path, second.grid) == ("stem", (8, 12))
    with pytest.raises(LayerNotSpatial, match="24x1"):
        find_layer(Pooled(), "pooler", PICTURE)


class Padded(Stem):
    """Pads what it convolves by one row and one column at the end, so that the cells are not where they seem."""

    def __init__(self) -> None:
        super().__init__()
        self.pad = nn.ZeroPad2d((0, 1, 0, 1))
        self.down = nn.Conv2d(16, 16, 3, stride=4)

    def body(self, x: Tensor) -> Tensor:
        return self.down(self.pad(x))


def test_padding_is_no_map_of_its_own() -> None:
    assert [layer.path for layer in propose_layers(Padded(), PICTURE)] == ["stem", "down"]


class Gives(Stem):
    """As transformers' models: the body gives the map and its mean in one, and the head reads the mean."""

    class Body(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2d(3, 16, 8, stride=8)
            self.pooler = nn.AdaptiveAvgPool2d(1)

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            x = self.stem(x)
            return {"last_hidden_state": x, "pooler_output": self.pooler(x)}

    def __init__(self) -> None:
        super().__init__()
        self.base = self.Body()

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.base(x)["pooler_output"].flatten(1))


def test_a_container_of_which_another_part_goes_on() -> None:
    assert propose_layers(Gives(), PICTURE)[0].path == "base.stem"
    assert peak(Gives()) > 0
    assert float(heat_maps(Gives().eval(), torch.randn(1, *PICTURE), layer="base").gradient_peak) == 0


class SecondHead(Stem):
    """A second head that runs, later and finer than the first, and is not answered."""

    def __init__(self) -> None:
        super().__init__()
        self.auxiliary = nn.Conv2d(16, 16, 3, padding=1)

    def body(self, x: Tensor) -> Tensor:
        y = nn.functional.relu(x)
        self.auxiliary(y)
        return y


def test_what_the_answer_does_not_come_from_is_not_suggested() -> None:
    assert [layer.path for layer in propose_layers(SecondHead(), PICTURE)] == ["stem"]
    assert peak(SecondHead()) > 0


class Branches(Stem):
    """Two branches that are added: one alone is half of what is known."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Conv2d(16, 16, 3, padding=1)
        self.right = nn.Conv2d(16, 16, 3, padding=1)

    def body(self, x: Tensor) -> Tensor:
        return self.left(x) + self.right(x)


def test_one_of_two_branches_is_not_all() -> None:
    assert propose_layers(Branches(), PICTURE)[0].path == "stem"


def test_as_many_channels_as_classes_are_no_scores_while_a_layer_follows() -> None:
    model = torchvision.models.resnet18(num_classes=512)
    assert propose_layers(model, (3, 128, 192))[0].path == "layer4"
    scores = torchvision.models.squeezenet1_1(num_classes=512)
    assert propose_layers(scores, (3, 128, 192))[0].path == "features"


class Transformer(nn.Module):
    """One block over 4 x 6 patches, called by keyword as transformers does; order: how the tokens are sorted before."""

    class Attention(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.num_heads = 2
            self.qkv = nn.Linear(width, 3 * width)

        def forward(self, *, hidden_states: Tensor) -> Tensor:
            parts = self.qkv(hidden_states).chunk(3, dim=-1)
            q, k, v = (part.unflatten(2, (2, -1)).transpose(1, 2) for part in parts)
            return nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)

    def __init__(self, order: list[int] | None = None, width: int = 8) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.order = list(range(24)) if order is None else order
        self.patches = nn.Conv2d(3, width, 16, stride=16)
        self.first = nn.Parameter(torch.randn(1, 1, width))
        self.norm1 = nn.LayerNorm(width)
        self.attention = self.Attention(width)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)[:, self.order]
        x = torch.cat([self.first.expand(len(x), -1, -1), x], dim=1)
        x = self.norm(x + self.attention(hidden_states=self.norm1(x)))
        return self.head(x[:, 0])


def test_attention_that_is_called_by_keyword() -> None:
    first = propose_layers(Transformer(), PICTURE)[0]
    assert (first.path, first.prefix_tokens, first.grid) == ("norm1", 1, (4, 6))
    assert peak(Transformer()) > 0


def test_tokens_that_do_not_lie_row_by_row_are_refused() -> None:
    """Hiera sorts them by windows; here by windows of 2 x 2, and by columns."""
    windows = torch.arange(24).reshape(2, 2, 3, 2).transpose(1, 2).flatten().tolist()
    columns = torch.arange(24).reshape(4, 6).T.flatten().tolist()
    for order in (windows, columns):
        model = Transformer(order).train()
        random = torch.get_rng_state()
        for ask in (lambda m: propose_layers(m, PICTURE), lambda m: find_layer(m, "norm", PICTURE)):
            with pytest.raises(LayerNotSpatial, match=r"24 tokens of .* do not lie row by row"):
                ask(model)
        assert torch.equal(random, torch.get_rng_state())
        assert model.training
        assert not any(module._forward_hooks for module in model.modules())
        assert find_layer(model, "patches", PICTURE).grid == (4, 6)
    with torch.device("meta"):
        without_numbers = Transformer(windows)
    assert propose_layers(without_numbers, PICTURE)[0].path == "norm1"


class Mixer(nn.Module):
    """No attention: what stands before the patches is a mean of them, and no prefix that learns."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 16, stride=16)
        self.mixed = nn.LayerNorm(8)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.mixed(self.patches(x).flatten(2).transpose(1, 2))
        x = self.norm(torch.cat([x.mean(dim=1, keepdim=True), x], dim=1))
        return self.head(x[:, 0])


def test_a_mean_before_the_tokens_is_no_class_token() -> None:
    first = propose_layers(Mixer(), PICTURE)[0]
    assert (first.path, first.grid, first.prefix_tokens) == ("mixed", (4, 6), 0)
    assert peak(Mixer()) > 0


class CutFirst(Transformer):
    """As TNT: patches are cut out, convolved one by one, and their places are seen by no convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Conv2d(3, 8, 3, stride=4, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        cut = x.unfold(2, 16, 16).unfold(3, 16, 16).permute(0, 2, 3, 1, 4, 5).flatten(0, 2)
        x = self.inner(cut).mean(dim=(2, 3)).reshape(len(x), 24, 8)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], dim=1)
        return self.head(self.norm(x + self.attention(hidden_states=self.norm1(x)))[:, 0])


def test_patches_that_are_cut_out_first() -> None:
    first = propose_layers(CutFirst(), PICTURE)[0]
    assert (first.path, first.prefix_tokens, first.grid) == ("norm1", 1, (4, 6))
    assert peak(CutFirst()) > 0


def test_a_width_that_is_the_number_of_patches() -> None:
    """24 numbers for each of 1 + 4 x 6 tokens: the last axis could be the patches as well."""
    model = Transformer(width=24)
    model.norm1 = nn.Sequential(nn.LayerNorm(24), nn.Identity())
    first = propose_layers(model, PICTURE)[0]
    assert (first.prefix_tokens, first.grid, first.shape) == (1, (4, 6), (25, 24))
    assert find_layer(model, "norm1.1", PICTURE).prefix_tokens == 1


@pytest.mark.parametrize("called", ["heads", "n_head"])
def test_heads_by_other_names_beside_a_table_that_has_them_too(called: str) -> None:
    model = Transformer()
    del model.attention.num_heads
    setattr(model.attention, called, 2)
    model.attention.positions = nn.Embedding(3, 2)
    model.attention.positions.num_heads = 2
    assert propose_layers(model, PICTURE)[0].path == "norm1"


class Step(nn.Module):
    """Carries means from patches to the first token in a way of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.tanh(self.linear(self.norm(x)))
        return x + torch.cat([(y * y[:, :1]).mean(dim=1, keepdim=True), y[:, 1:]], dim=1)


class Steps(Transformer):
    def __init__(self) -> None:
        super().__init__()
        self.steps = nn.Sequential(Step(), Step(), Step())

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.steps(torch.cat([self.first.expand(len(x), -1, -1), x], dim=1)))[:, 0])


def test_tokens_without_an_attention_that_is_known() -> None:
    first, second = propose_layers(Steps(), PICTURE)
    assert (first.path, second.path, first.prefix_tokens) == ("steps.1", "steps.0", 1)
    assert peak(Steps()) > 0


class Stages(Transformer):
    """Tokens in windows of 2 x 2; the second attention is over one token of each window, and these lie in rows."""

    def __init__(self) -> None:
        super().__init__(torch.arange(24).reshape(2, 2, 3, 2).transpose(1, 2).flatten().tolist())
        self.norm2 = nn.LayerNorm(8)
        self.attention2 = self.Attention(8)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)[:, self.order]
        x = x + 0.1 * self.attention(hidden_states=self.norm1(x))
        x = self.norm2(x.unflatten(1, (6, 4)).mean(dim=2))
        return self.head((x + self.attention2(hidden_states=x)).mean(dim=1))


def test_a_later_stage_whose_tokens_lie_in_rows_again() -> None:
    (only,) = propose_layers(Stages(), PICTURE)
    assert (only.path, only.grid, only.rank) == ("norm2", (2, 3), 1)
    with pytest.raises(LayerNotSpatial, match="24 tokens of 'norm1' do not lie row by row"):
        find_layer(Stages(), "norm1", PICTURE)
