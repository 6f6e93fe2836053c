"""Latent diffusion in its authors' names (CompVis/latent-diffusion, Stability-AI/generative-models), for the tests.

Every UNet and autoencoder is put through diffusers' own converter, and what comes out must be diffusers' own model:
that is how the names and shapes written here are known to be right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import nn

Row = tuple[str, tuple[int, ...], bool]
Section = tuple[str, Mapping[str, Any], list[Row]]

SCHEDULE = ("betas", "alphas_cumprod", "alphas_cumprod_prev", "sqrt_alphas_cumprod", "sqrt_one_minus_alphas_cumprod")
SCHEDULE += ("log_one_minus_alphas_cumprod", "sqrt_recip_alphas_cumprod", "sqrt_recipm1_alphas_cumprod")
SCHEDULE += ("posterior_variance", "posterior_log_variance_clipped", "posterior_mean_coef1", "posterior_mean_coef2")


def tree(**children: nn.Module | nn.Parameter) -> nn.Module:
    """A module with these children, in this order."""
    module = nn.Module()
    for name, child in children.items():
        setattr(module, name, child)
    return module


def resblock(inputs: int, outputs: int, time: int) -> nn.Module:
    """ldm/modules/diffusionmodules/openaimodel.py: ResBlock."""
    none = nn.Identity()
    parts: dict[str, nn.Module] = {
        "in_layers": nn.Sequential(nn.GroupNorm(1, inputs), none, nn.Conv2d(inputs, outputs, 3)),
        "emb_layers": nn.Sequential(none, nn.Linear(time, outputs)),
        "out_layers": nn.Sequential(nn.GroupNorm(1, outputs), none, none, nn.Conv2d(outputs, outputs, 3)),
    }
    if inputs != outputs:
        parts["skip_connection"] = nn.Conv2d(inputs, outputs, 1)
    return tree(**parts)


def spatial_transformer(width: int, context: int, depth: int, *, linear: bool) -> nn.Module:
    """ldm/modules/attention.py: SpatialTransformer."""

    def attention(seen: int) -> nn.Module:
        return tree(
            to_q=nn.Linear(width, width, bias=False),
            to_k=nn.Linear(seen, width, bias=False),
            to_v=nn.Linear(seen, width, bias=False),
            to_out=nn.Sequential(nn.Linear(width, width), nn.Identity()),
        )

    def block() -> nn.Module:
        return tree(
            attn1=attention(width),
            ff=tree(
                net=nn.Sequential(tree(proj=nn.Linear(width, 8 * width)), nn.Identity(), nn.Linear(4 * width, width))
            ),
            attn2=attention(context),
            norm1=nn.LayerNorm(width),
            norm2=nn.LayerNorm(width),
            norm3=nn.LayerNorm(width),
        )

    def projection() -> nn.Module:
        return nn.Linear(width, width) if linear else nn.Conv2d(width, width, 1)

    return tree(
        norm=nn.GroupNorm(1, width),
        proj_in=projection(),
        transformer_blocks=nn.ModuleList(block() for _ in range(depth)),
        proj_out=projection(),
    )


def unet(
    *,
    width: int,
    multiples: list[int],
    depths: list[int],
    middle: int,
    context: int,
    linear: bool = False,
    channels: int = 4,
    out_channels: int = 4,
    blocks: int = 2,
    label: int = 0,
) -> nn.Module:
    """ldm/modules/diffusionmodules/openaimodel.py: UNetModel.

    depths: transformer blocks behind each residual block of a level, 0 for none. label: width of the added embedding.
    """
    time = 4 * width

    def layer(inputs: int, outputs: int, depth: int, *more: nn.Module) -> nn.Module:
        attention = (spatial_transformer(outputs, context, depth, linear=linear),) if depth else ()
        return nn.Sequential(resblock(inputs, outputs, time), *attention, *more)

    down: list[nn.Module] = [nn.Sequential(nn.Conv2d(channels, width, 3))]
    skips, now = [width], width
    for level, (multiple, depth) in enumerate(zip(multiples, depths, strict=True)):
        for _ in range(blocks):
            down.append(layer(now, width * multiple, depth))
            now = width * multiple
            skips.append(now)
        if level < len(multiples) - 1:
            down.append(nn.Sequential(tree(op=nn.Conv2d(now, now, 3))))
            skips.append(now)
    center = layer(now, now, middle, resblock(now, now, time))
    up: list[nn.Module] = []
    for level, (multiple, depth) in reversed(list(enumerate(zip(multiples, depths, strict=True)))):
        for number in range(blocks + 1):
            last = number == blocks and level > 0
            more = (tree(conv=nn.Conv2d(width * multiple, width * multiple, 3)),) if last else ()
            up.append(layer(now + skips.pop(), width * multiple, depth, *more))
            now = width * multiple
    none = nn.Identity()
    parts: dict[str, nn.Module] = {"time_embed": nn.Sequential(nn.Linear(width, time), none, nn.Linear(time, time))}
    if label:
        parts["label_emb"] = nn.Sequential(nn.Sequential(nn.Linear(label, time), none, nn.Linear(time, time)))
    return tree(
        **parts,
        input_blocks=nn.ModuleList(down),
        middle_block=center,
        output_blocks=nn.ModuleList(up),
        out=nn.Sequential(nn.GroupNorm(1, now), none, nn.Conv2d(now, out_channels, 3)),
    )


def autoencoder(*, width: int, multiples: list[int], blocks: int = 2, latent: int = 4) -> nn.Module:
    """ldm/models/autoencoder.py: AutoencoderKL, with double z."""

    def resnet(inputs: int, outputs: int) -> nn.Module:
        parts: dict[str, nn.Module] = {
            "norm1": nn.GroupNorm(1, inputs),
            "conv1": nn.Conv2d(inputs, outputs, 3),
            "norm2": nn.GroupNorm(1, outputs),
            "conv2": nn.Conv2d(outputs, outputs, 3),
        }
        if inputs != outputs:
            parts["nin_shortcut"] = nn.Conv2d(inputs, outputs, 1)
        return tree(**parts)

    def mid(size: int) -> nn.Module:
        names = ("q", "k", "v", "proj_out")
        attention = tree(norm=nn.GroupNorm(1, size), **{name: nn.Conv2d(size, size, 1) for name in names})
        return tree(block_1=resnet(size, size), attn_1=attention, block_2=resnet(size, size))

    def level(inputs: int, outputs: int, count: int, sampling: str) -> nn.Module:
        sizes = [inputs] + [outputs] * count
        parts = {"block": nn.ModuleList(resnet(a, b) for a, b in pairwise(sizes))}
        return tree(**parts, **({sampling: tree(conv=nn.Conv2d(outputs, outputs, 3))} if sampling else {}))

    sizes = [width * multiple for multiple in multiples]
    top = sizes[-1]
    last = len(sizes) - 1
    encoder = tree(
        conv_in=nn.Conv2d(3, width, 3),
        down=nn.ModuleList(
            level(sizes[max(i - 1, 0)] if i else width, size, blocks, "downsample" if i < last else "")
            for i, size in enumerate(sizes)
        ),
        mid=mid(top),
        norm_out=nn.GroupNorm(1, top),
        conv_out=nn.Conv2d(top, 2 * latent, 3),
    )
    decoder = tree(
        conv_in=nn.Conv2d(latent, top, 3),
        mid=mid(top),
        up=nn.ModuleList(
            level(sizes[min(i + 1, last)], size, blocks + 1, "upsample" if i else "") for i, size in enumerate(sizes)
        ),
        norm_out=nn.GroupNorm(1, width),
        conv_out=nn.Conv2d(width, 3, 3),
    )
    return tree(
        encoder=encoder,
        decoder=decoder,
        quant_conv=nn.Conv2d(2 * latent, 2 * latent, 1),
        post_quant_conv=nn.Conv2d(latent, latent, 1),
    )


_SD1 = {"width": 320, "multiples": [1, 2, 4, 4], "depths": [1, 1, 1, 0], "middle": 1, "context": 768}
_SD2 = {**_SD1, "context": 1024, "linear": True}
_XL = {"width": 320, "multiples": [1, 2, 4], "depths": [0, 2, 10], "middle": 10, "context": 2048}
_XL |= {"linear": True, "label": 2816}
_REFINER = {"width": 384, "multiples": [1, 2, 4, 4], "depths": [0, 4, 4, 0], "middle": 4, "context": 1280}
_REFINER |= {"linear": True, "label": 2560}
_SMALL = {"width": 32, "multiples": [1, 2, 3], "depths": [1, 1, 0], "middle": 1, "context": 40}
UNETS: dict[str, dict[str, Any]] = {
    "sd-1.5 unet": _SD1,
    "sd-1.5 inpainting unet": {**_SD1, "channels": 9},
    "sd-2.1 unet": _SD2,
    "sdxl unet": _XL,
    "sdxl refiner unet": _REFINER,
    "small unet": _SMALL,
    "small unet linear": {**_SMALL, "linear": True, "channels": 5},
}
VAES: dict[str, dict[str, Any]] = {
    "sd vae": {"width": 128, "multiples": [1, 2, 4, 4]},
    "small vae": {"width": 32, "multiples": [1, 2, 3], "blocks": 1, "latent": 3},
}


def check_with_diffusers(label: str, model: nn.Module) -> None:
    """Raise ValueError where diffusers' converter does not arrive at diffusers' own model."""
    import diffusers
    from diffusers.loaders import single_file_utils

    from scripts.recorded_media import MODELS as MEDIA

    family = "diffusers_unet" if "unet" in label else "diffusers_vae"
    class_name, config = next((c, k) for name, c, k in MEDIA[family] if name == label)
    with torch.device("meta"):
        own = getattr(diffusers, class_name)(**config)
    state = dict(model.state_dict())
    if family == "diffusers_unet":
        prefixed = {f"model.diffusion_model.{name}": tensor for name, tensor in state.items()}
        result = single_file_utils.convert_ldm_unet_checkpoint(prefixed, dict(own.config))
    else:
        prefixed = {f"first_stage_model.{name}": tensor for name, tensor in state.items()}
        result = single_file_utils.convert_ldm_vae_checkpoint(prefixed, dict(own.config))
    expected = {name: tuple(tensor.shape) for name, tensor in own.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in result.items()}
    if expected != found:
        odd = sorted(set(expected.items()) ^ set(found.items()))[:6]
        raise ValueError(f"{label}: diffusers' converter disagrees, for example {odd}")


def _sections(builder: Callable[..., nn.Module], models: Mapping[str, dict[str, Any]]) -> Iterator[Section]:
    from scripts.record_families import rows_of

    for label, config in models.items():
        with torch.device("meta"):
            model = builder(**config)
        check_with_diffusers(label, model)
        yield (
            label,
            {"config": config, "from": "originals", "source": "CompVis/latent-diffusion", "tied": []},
            rows_of(model),
        )


MODELS: dict[str, Callable[[], Iterator[Section]]] = {
    "ldm_unet": lambda: _sections(unet, UNETS),
    "ldm_vae": lambda: _sections(autoencoder, VAES),
}
