"""Does the heat lie where the network looked? Hot centres of drawn maps beside occlusion, on untrained networks.

An answer is built that reads one cell of the last map alone: HiResCAM's map of it is that cell. The ruler knows nothing
of strides: a bright or a dark square on a neutral ground is put at every place in turn, and the middle of the places
that move the answer, weighted by how far they move it, is where it looks. A random kernel leans to one side by chance,
so each kernel is made its own mirror image; then only the architecture decides.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torchvision
from torch import Tensor, nn

from inspector.cam.engine.maps import heat_maps
from inspector.cam.layers.proposals import find_layer, propose_layers
from inspector.cam.report import LayerProposal, Options

NETWORKS = (
    "resnet18",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "efficientnet_b0",
    "regnet_y_400mf",
    "shufflenet_v2_x0_5",
    "mnasnet0_5",
    "googlenet",
)
# Squares much smaller than a cell: of larger ones the places are too few to find a middle by. Their side has no divisor
# in common with strides: squares of 8 all begin on the same rows of a stride, and what a random network makes of their
# corners moved the middle by up to 4 pixels.
SIDE, SQUARE = 224, 7
SHADES = (2.0, -2.0)
# Pixels of 224 by which a hot centre may be off.
MOST = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """How far hot centres lie from where their cells look, in pixels down and to the right, means over the nine cells
    in the middle. evenly: with cells spread evenly over the picture, as other tools have it."""

    network: str
    layer: str
    down: float
    across: float
    evenly_down: float
    evenly_across: float


class OneCell(nn.Module):
    """The score is how much one cell of a layer puts out."""

    def __init__(self, net: nn.Module, path: str) -> None:
        super().__init__()
        self.net, self.path, self.cell = net, path, (0, 0)

    def layer(self, pictures: Tensor) -> Tensor:
        """(N, C, h, w), what the layer puts out."""
        kept: list[Tensor] = []
        # Put on here, so that it comes last: what goes on may be a copy of what the layer made.
        module = self.net.get_submodule(self.path)
        handle = module.register_forward_hook(lambda _module, _given, output: kept.append(output))
        try:
            self.net(pictures)
        finally:
            handle.remove()
        return kept[0]

    def forward(self, pictures: Tensor) -> Tensor:
        down, across = self.cell
        score = self.layer(pictures)[:, :, down, across].square().sum(dim=1)
        return torch.stack([score, -score], dim=1)


def measure(names: tuple[str, ...] = NETWORKS, *, device: str = "cpu") -> Iterator[Offset]:
    """A row for each network."""
    for name in names:
        net = mirrored_kernels(name).to(device)
        path = propose_layers(net, (3, SIDE, SIDE))[0].path
        model = OneCell(net, path).eval().to(device)
        layer = find_layer(model, f"net.{path}", (3, SIDE, SIDE))
        middle = [(y, x) for y in _middle(layer.grid[0]) for x in _middle(layer.grid[1])]
        where = _occluded(model, middle, device)
        rows = [_hot(model, layer, cell, evenly, device) for evenly in (False, True) for cell in middle]
        own, evenly = torch.stack(rows).reshape(2, -1, 2)
        (down, across), (evenly_down, evenly_across) = ((hot - where).mean(dim=0).tolist() for hot in (own, evenly))
        yield Offset(
            network=name, layer=path, down=down, across=across, evenly_down=evenly_down, evenly_across=evenly_across
        )


def mirrored_kernels(name: str) -> nn.Module:
    """Untrained, each kernel the mean of itself and its mirror images."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net: nn.Module = torchvision.models.get_model(name, weights=None).eval()
    with torch.no_grad():
        for weight in net.parameters():
            if weight.dim() == 4:
                weight.copy_((weight + weight.flip(2) + weight.flip(3) + weight.flip(2, 3)) / 4)
    return net


def _middle(cells: int) -> range:
    return range(cells // 2 - 1, cells // 2 + 2)


def _occluded(model: OneCell, cells: list[tuple[int, int]], device: str) -> Tensor:
    """(cells, 2): middle of the places that move each cell, (down, across) in pixels."""
    count = SIDE // SQUARE
    ground = torch.zeros(1, 3, SIDE, SIDE, device=device)
    moved: Tensor | float = 0.0  # (down, across, h, w)
    with torch.inference_mode():
        still = model.layer(ground)
        for shade in SHADES:
            rows = []
            for top in range(0, SIDE, SQUARE):
                pictures = ground.repeat(count, 1, 1, 1)
                for number, left in enumerate(range(0, SIDE, SQUARE)):
                    pictures[number, :, top : top + SQUARE, left : left + SQUARE] = shade
                rows.append((model.layer(pictures) - still).double().square().sum(dim=1).cpu())
            moved = moved + torch.stack(rows)
    assert isinstance(moved, Tensor)
    places = (torch.arange(count, dtype=torch.float64) + 0.5) * SQUARE
    return torch.stack([_centroid(moved[:, :, y, x], places) for y, x in cells])


def _hot(model: OneCell, layer: LayerProposal, cell: tuple[int, int], evenly: bool, device: str) -> Tensor:
    """(2,): the middle of the heat of a map of this cell, in pixels."""
    model.cell = cell
    picture = torch.randn(1, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(1)).to(device)
    maps = heat_maps(model, picture, layer=layer, targets=0, method="hires-cam", options=Options(aligned=not evenly))
    assert int((maps.raw != 0).sum()) == 1, "the answer reads one cell"
    return _centroid(maps.heat[0].double(), torch.arange(SIDE, dtype=torch.float64) + 0.5)


def _centroid(field: Tensor, places: Tensor) -> Tensor:
    shares = field / field.sum()
    return torch.stack([(shares.sum(dim=1) * places).sum(), (shares.sum(dim=0) * places).sum()])


def assert_near(rows: list[Offset]) -> None:
    """Raises AssertionError for a hot centre that is further off than it may be."""
    assert len(rows) >= len(NETWORKS), "eight networks at least"
    for row in rows:
        assert max(abs(row.down), abs(row.across)) <= MOST, row
