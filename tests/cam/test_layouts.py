"""How a layer's output is laid out, as people write it, and that nothing is read in a way that does not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from inspector.cam.describe import Setting
from inspector.cam.engine.maps import Axes, heat_maps
from inspector.cam.explain import explain
from inspector.cam.grid import explain_grid
from inspector.cam.layers.layouts import layer_name, layer_text, layout_text, split_layout, with_layout
from inspector.cam.layers.proposals import find_layer
from inspector.cam.report import LayerProposal, Options, Preprocessing
from inspector.cam.spec import MapRequest
from inspector.errors import LayerNotSpatial, UsageError
from inspector.render.explained_table import COLUMNS, row_of

SHAPE = (3, 16, 16)
PLAIN = Preprocessing(
    resize=None, crop=None, mean=(0.0,) * 3, std=(1.0,) * 3, channels=3, interpolation="bilinear", source="",
    assumed=False,
)  # fmt: skip


class Net(nn.Module):
    """One ReLU called twice, on maps of 8 x 8 and of 4 x 4."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.second = nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.second(self.relu(self.first(x))))
        return self.head(x.mean(dim=(2, 3)))


class Tokens(nn.Module):
    """One token before sixteen patches, which lie in four rows of four."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 6, 4, stride=4)
        self.norm = nn.LayerNorm(6)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = self.norm(torch.cat([tokens.mean(dim=1, keepdim=True), tokens], dim=1))
        return self.head(tokens.mean(dim=1))


@pytest.fixture
def net() -> Net:
    torch.manual_seed(0)
    return Net().eval()


@pytest.fixture
def tokens() -> Tokens:
    torch.manual_seed(0)
    return Tokens().eval()


def test_names_and_texts() -> None:
    layer = LayerProposal(
        path="ln", kind="LayerNorm", shape=(65, 8), layout="NLC", prefix_tokens=1, grid=(8, 8), rank=1, reason=""
    )
    assert (layer_name(layer), layer_text(layer), layout_text(layer)) == ("ln", "ln:0", "1+8x8")
    second = replace(layer, call=1, calls=2)
    assert (layer_name(second), layer_text(second)) == ("ln:1", "ln:1")
    changed = with_layout(layer, "1+4x16")
    assert (changed.grid, layer_text(changed)) == ((4, 16), "ln:0=1+4x16")
    assert with_layout(layer, "1+8x8") is layer
    assert with_layout(layer, "5x13").prefix_tokens == 0
    assert layer_text(replace(layer, path="")) == ""


def test_what_fits_no_output_is_refused(net: Net, tokens: Tokens) -> None:
    with pytest.raises(UsageError, match="'NHCW' is no layout"):
        find_layer(net, "second=NHCW", SHAPE)
    with pytest.raises(UsageError, match="'8' is no layout"):
        find_layer(net, "second=8", SHAPE)
    with pytest.raises(LayerNotSpatial, match=r"'second' puts out 8x4x4 for each picture: 1[+]2x2 is for two numbers"):
        find_layer(net, "second=1+2x2", SHAPE)
    with pytest.raises(LayerNotSpatial, match=r"'norm' puts out 17x6.*NCHW is for three numbers"):
        find_layer(tokens, "norm=NCHW", SHAPE)
    with pytest.raises(LayerNotSpatial, match=r"1 [+] 3 x 5 are 16 tokens, not 17"):
        find_layer(tokens, "norm=1+3x5", SHAPE)
    with pytest.raises(LayerNotSpatial, match=r"17 [+] 0 x 4"):
        find_layer(tokens, "norm=17+0x4", SHAPE)
    with pytest.raises(LayerNotSpatial, match="'head' puts out 5"):
        find_layer(net, "head=NCHW", SHAPE)


def test_a_layout_folds_the_same_tokens_otherwise(tokens: Tokens) -> None:
    picture = torch.rand(1, *SHAPE)
    found = find_layer(tokens, "norm", SHAPE)
    assert (found.prefix_tokens, found.grid) == (1, (4, 4))
    given = find_layer(tokens, "norm:0=1+2x8", SHAPE)
    square, wide = (heat_maps(tokens, picture, layer=x, targets=0).raw for x in (found, given))
    assert torch.equal(square.reshape(1, 2, 8), wide)
    # Upper case or lower, without a prefix.
    last = find_layer(tokens, "norm=17x1", SHAPE)
    assert heat_maps(tokens, picture, layer=last, targets=0).raw.shape == (1, 17, 1)


def test_channels_last_moves_the_axes(net: Net) -> None:
    picture = torch.rand(1, *SHAPE)
    first = find_layer(net, "first", SHAPE)
    other = find_layer(net, "first=nhwc", SHAPE)
    assert (first.grid, other.grid, other.layout) == ((8, 8), (8, 8), "NHWC")
    one = heat_maps(net, picture, layer=first, targets=1, method="hires-cam").raw
    turned = heat_maps(net, picture, layer=other, targets=1, method="hires-cam").raw
    # The whole product has one sum, however it is cut.
    assert not torch.allclose(one, turned)
    assert float(one.sum()) == pytest.approx(float(turned.sum()), rel=1e-4)


def test_a_module_may_be_called_like_a_layout() -> None:
    assert split_layout("a=NHWC", {"a=NHWC"}) == ("a=NHWC", "")
    assert split_layout("a=NHWC", {"a"}) == ("a", "NHWC")
    assert split_layout("a", ()) == ("a", "")


def test_two_calls_of_one_module_are_two_layers(net: Net) -> None:
    """Their maps, their columns of a table and the name of a fusion of both."""
    picture = Image.effect_noise((16, 16), 80).convert("RGB")
    made = explain_grid(net, picture, Axes(layers=["relu:0", "relu:1"], classes=[2]), Setting(preprocessing=PLAIN))
    assert [layer_name(layer) for layer in made.layers] == ["relu:0", "relu:1"]
    assert [one.raw.shape for one in made.maps] == [(8, 8), (4, 4)]
    rows = [row_of(one, checkpoint="a", picture="b", threshold=0.5) for one in made.maps]
    assert [row[COLUMNS.index("layer")] for row in rows] == ["relu:0", "relu:1"]
    alone = [explain(net, picture, preprocessing=PLAIN, layer=f"relu:{n}", target=2) for n in (0, 1)]
    for cell, one in zip(made.maps, alone, strict=True):
        assert (cell.raw == one.raw).all()
    fused = explain(
        net, picture, preprocessing=PLAIN, layers=["relu:0", "relu:1"], target=2, options=Options(fusion="mean")
    )
    assert fused.layer.path == "relu:0 + relu:1"
    assert [layer_text(layer) for layer in fused.layers] == ["relu:0", "relu:1"]


def test_a_given_layout_is_kept_for_pictures_of_other_sizes_or_refused(tokens: Tokens) -> None:
    from inspector.cam.explain import explain_many

    given = find_layer(tokens, "norm=1+2x8", SHAPE)
    pictures = [Image.new("RGB", size, (90, 120, 30)) for size in ((16, 16), (32, 16))]
    made = explain_many(tokens, pictures, MapRequest(layers=(given,)), Setting(preprocessing=PLAIN))
    assert next(made).raw.shape == (2, 8)
    with pytest.raises(LayerNotSpatial, match=r"1 [+] 2 x 8 are 17 tokens, not 33"):
        next(made)
