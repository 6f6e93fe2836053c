"""Is the proposed layer the one where the heat lies on what the answer depends on?

    python -m benchmarks.cam.layers [--only NAME ...] [--csv FILE]

Networks of timm and torchvision that no test uses, with random weights. Nothing is trained, so the question is made of
what the answer truly depends on: a patch is pasted into a ninth of a picture of noise, and the score is the answer
along the change that this patch made to it. Grad-CAM of that score at each layer that is offered is measured twice.
Shown: the hottest point of the map lies in the patch's ninth. Added: the same of the map less that of the picture
without the patch, which leaves out what an untrained network finds in borders and noise; behind the last map before a
mean and a linear layer its sum is the rise of the score. By chance it is 1 of 9.

Asserts that the suggested layer loses at most two of nine added places to the best, or to what it keeps itself: kept
counts the ninths in which its own output changes most, whatever the score. A random stack may move or spread the patch.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional

from inspector.cam.engine.maps import Axes, heat_grid
from inspector.cam.engine.scene import open_scene
from inspector.cam.engine.tensors import enlarge
from inspector.cam.layers.layouts import layer_name
from inspector.cam.layers.proposals import propose_layers
from inspector.cam.report import Maps
from inspector.cam.targets.readings import class_scores

SIDE = 3
PLACES = SIDE * SIDE
CLASSES = 64
# A smaller constant is a branch that starts nearly silent (layer scale); it becomes this.
FAINT = 0.1
# The proposal may lose so many of nine places to another layer without a word.
SMALL_LOSS = 2
# Height and width of the input. Transformers are built for it; "tv/" is torchvision.
NETWORKS: dict[str, tuple[int, int]] = {
    # The answer is the mean of the patches.
    "vit_relpos_small_patch16_224": (128, 192),
    "vit_srelpos_small_patch16_224": (160, 160),
    "eva02_tiny_patch14_336": (112, 168),
    "vit_wee_patch16_reg1_gap_256": (160, 160),
    "vit_dwee_patch16_reg1_gap_256": (128, 192),
    "vit_dpwee_patch16_reg1_gap_256": (128, 192),
    "vit_little_patch16_reg4_gap_256": (128, 192),
    "vit_medium_patch16_gap_240": (128, 128),
    "vit_base_patch32_siglip_gap_256": (192, 256),
    "beit_base_patch16_224": (96, 128),
    "naflexvit_base_patch16_gap": (96, 144),
    "mixer_s32_224": (192, 256),
    "resmlp_12_224": (128, 192),
    "gmlp_ti16_224": (160, 160),
    "hiera_tiny_224": (224, 224),
    "mvitv2_tiny": (224, 224),
    "levit_128s": (224, 224),
    "efficientformer_l1": (224, 224),
    "twins_svt_small": (224, 224),
    # A class token, or an attention that pools.
    "deit_tiny_patch16_224": (128, 192),
    "deit3_small_patch16_224": (128, 192),
    "vit_small_patch14_reg4_dinov2": (112, 168),
    "vit_tiny_r_s16_p8_224": (224, 224),
    "convit_tiny": (160, 160),
    "cait_xxs36_224": (128, 192),
    "xcit_nano_12_p16_224": (128, 192),
    "volo_d1_224": (160, 160),
    "pit_ti_224": (224, 224),
    "crossvit_tiny_240": (240, 240),
    "coat_lite_mini": (192, 256),
    # Windows and mixtures.
    "pvt_v2_b0": (192, 256),
    "swinv2_cr_tiny_ns_224": (224, 224),
    "davit_tiny": (192, 256),
    "poolformer_s12": (192, 192),
    "coatnet_pico_rw_224": (224, 224),
    "edgenext_xx_small": (192, 256),
    "mobilevit_xxs": (192, 256),
    "efficientvit_m1": (224, 224),
    "tiny_vit_5m_224": (224, 224),
    # Convolutions.
    "repvit_m0_9": (192, 256),
    "starnet_s1": (192, 192),
    "fasternet_t0": (192, 256),
    "ghostnetv2_100": (192, 192),
    "hrnet_w18_small": (192, 256),
    "dla46_c": (192, 256),
    "resnetv2_18": (192, 256),
    "rexnet_100": (192, 256),
    "lcnet_050": (224, 224),
    "mobileone_s0": (192, 256),
    "repvgg_a0": (192, 256),
    "regnetx_002": (192, 256),
    "nf_regnet_b0": (192, 256),
    "inception_next_atto": (192, 256),
    "mambaout_femto": (192, 192),
    "convmixer_1024_20_ks9_p14": (112, 168),
    "tv/alexnet": (192, 256),
    "tv/mobilenet_v3_large": (192, 256),
    "tv/efficientnet_v2_s": (192, 256),
    "tv/wide_resnet50_2": (192, 256),
    "tv/densenet169": (192, 256),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """One layer of one network, the suggested one has rank 1.

    shown, added: of nine maps, and of nine maps less those of the pictures without the patch, how many have their
    hottest point in the patch's ninth. kept: the same of how much the
    layer's output changes.
    """

    network: str
    height: int
    width: int
    rank: int
    layer: str
    grid: str
    shown: int
    added: int
    kept: int


def build(name: str, size: tuple[int, int]) -> nn.Module:
    """Awake, for inputs of this size."""
    torch.manual_seed(0)
    library, _, own = name.rpartition("/")
    if library:
        return awake(torchvision.models.get_model(own, weights=None, num_classes=CLASSES), size)
    import timm

    try:
        model = timm.create_model(own, pretrained=False, num_classes=CLASSES, img_size=size)
    except TypeError:  # not built for one size
        model = timm.create_model(own, pretrained=False, num_classes=CLASSES)
    return awake(model, size)


def awake(model: nn.Module, size: tuple[int, int]) -> nn.Module:
    """The model with weights in which every branch speaks, in evaluation mode.

    The library's own start, but for what starts silent: heads of zeros are drawn, scales of residual branches are 0.1,
    or 1 where they are 0, and batch norms have seen pictures.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear) and not module.weight.any():
            nn.init.normal_(module.weight, std=module.in_features**-0.5)
    for name, parameter in model.named_parameters():
        first = float(parameter.detach().flatten()[0])
        if not name.endswith("bias") and abs(first) < FAINT and bool((parameter == first).all()):
            if max(parameter.shape, default=1) == parameter.numel() and "token" not in name:
                nn.init.constant_(parameter, FAINT if first else 1.0)
            else:
                nn.init.normal_(parameter, std=0.02)
    norms = [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    model.eval()
    for norm in norms:
        norm.momentum, norm.training = 1.0, True
    if norms:
        with torch.no_grad():
            model(backgrounds(16, size, seed=3))
    return model.eval()


def backgrounds(count: int, size: tuple[int, int], seed: int) -> Tensor:
    """(count, 3, H, W): pale clouds of colour under fine noise, mean 0 and deviation about 0.3."""
    draw = torch.Generator().manual_seed(seed)
    clouds = functional.interpolate(torch.randn(count, 3, 5, 7, generator=draw), size, mode="bicubic")
    return 0.3 * (clouds + 0.3 * torch.randn(count, 3, *size, generator=draw))


def pasted(pictures: Tensor, centres: Sequence[tuple[float, float]]) -> Tensor:
    """Copies with a patch a fifth of the picture high and wide: a chequered board in two colours, 4 pixels a field.

    centres: for each picture, as shares of its height and width.
    """
    _, _, height, width = pictures.shape
    rows, columns = height // 5, width // 5
    board = ((torch.arange(rows) // 4)[:, None] + (torch.arange(columns) // 4)[None, :]) % 2
    patch = torch.where(board.bool(), torch.tensor([2.0, -2.0, 1.0])[:, None, None], -1.5)
    changed = pictures.clone()
    for picture, (down, right) in zip(changed, centres, strict=True):
        top, left = round(down * height - rows / 2), round(right * width - columns / 2)
        picture[:, top : top + rows, left : left + columns] = patch
    return changed


def scores(model: nn.Module, pictures: Tensor) -> Tensor:
    """(N, CLASSES) in float64."""
    with torch.inference_mode():
        return torch.cat([class_scores(model(part), range(len(part))) for part in pictures.split(8)]).double().clone()


def measure(name: str, size: tuple[int, int]) -> Iterator[Hits]:
    """A row for each layer that is offered, the suggested one first."""
    model = build(name, size)
    clean = backgrounds(PLACES, size, seed=4)
    pictures = pasted(clean, [((n // SIDE + 0.5) / SIDE, (n % SIDE + 0.5) / SIDE) for n in range(PLACES)])
    change = scores(model, pictures) - scores(model, clean)
    change /= change.norm(dim=1, keepdim=True)

    def along_the_change(answer: object, indices: Sequence[int]) -> Tensor:
        found = class_scores(answer, indices)
        return found @ change.to(found.dtype).T

    layers = propose_layers(model, (3, *size))
    axes = Axes(layers=layers, classes=[list(range(PLACES))])
    grids = [heat_grid(model, batch, axes, read=along_the_change)[0] for batch in (pictures, clean)]
    outputs = []
    for batch in (pictures, clean):
        with open_scene(model, batch, layers, 0) as scene:
            outputs.append([scene.activation(layer) for layer in layers])
    for layer, (with_patch,), (without,), there, here in zip(layers, *grids, *outputs, strict=True):
        assert isinstance(with_patch, Maps) and isinstance(without, Maps)
        yield Hits(
            network=name,
            height=size[0],
            width=size[1],
            rank=layer.rank,
            layer=layer_name(layer),
            grid=f"{layer.grid[0]}x{layer.grid[1]}",
            shown=hits(with_patch.raw, size),
            added=hits(with_patch.raw - without.raw, size),
            kept=hits((there - here).abs().sum(dim=1), size),
        )


def hits(raw: Tensor, size: tuple[int, int]) -> int:
    """Of nine maps (9, h, w), those whose hottest point is in their own ninth."""
    count = 0
    for place, heat in enumerate(enlarge(raw.clamp_min(0), size)):
        down, right = divmod(int(heat.argmax()), heat.shape[1])
        ninth = SIDE * down // heat.shape[0] * SIDE + SIDE * right // heat.shape[1]
        count += bool(heat.any()) and ninth == place
    return count


def line(rows: Sequence[Hits]) -> str:
    """The suggested layer beside the best of those that are offered, of one network."""
    first = rows[0]
    shown, added = max(rows, key=lambda row: row.shown), max(rows, key=lambda row: row.added)
    start = f"{first.network:32} {first.height}x{first.width:<4} {first.layer:32} {first.grid:6} of {len(rows)}:"
    both = [
        f"shown {first.shown}, best {shown.shown} {shown.layer}",
        f"added {first.added}, best {added.added} {added.layer}",
    ]
    return f"{start} {both[0]:44} {both[1]}; kept {first.kept}"


def main() -> None:
    """A line for each network as it comes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=NETWORKS, default=list(NETWORKS), metavar="NAME")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    everything: list[Hits] = []
    lost: list[str] = []
    for name in options.only:
        rows = list(measure(name, NETWORKS[name]))
        print(line(rows), flush=True)
        everything += rows
        if min(max(row.added for row in rows), rows[0].kept) - rows[0].added > SMALL_LOSS:
            lost.append(name)
    firsts = [row for row in everything if row.rank == 1]
    print(f"{len(firsts)} networks: shown {sum(row.shown for row in firsts)}, added {sum(row.added for row in firsts)}")
    if options.csv:
        with options.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(asdict(everything[0])))
            writer.writeheader()
            writer.writerows(asdict(row) for row in everything)
    assert not lost, f"the suggested layer loses: {lost}"


if __name__ == "__main__":
    main()
