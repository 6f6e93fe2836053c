"""The UNet of Stable Diffusion, in diffusers' names and in its authors'."""

from __future__ import annotations

from inspector.architectures.families.diffusion_rows import authors_unet, diffusers_unet
from inspector.architectures.families.entry import Family, Settings
from inspector.architectures.families.usual import whole

# The width of the text embedding tells the generations apart: CLIP ViT-L, OpenCLIP ViT-H, both of XL's, one of them.
GENERATIONS = {
    768: "Stable Diffusion 1",
    1024: "Stable Diffusion 2",
    2048: "Stable Diffusion XL",
    1280: "Stable Diffusion XL's refiner",
}
SUMMARY = (
    "{levels} levels of width {width}, context of width {context}, {in_channels} input channels, attention {attention}"
)


def form(settings: Settings, whose: str) -> str:
    """The generation that a UNet of this context belongs to, and whose names it has."""
    name = GENERATIONS.get(whole(settings, "context"), "")
    return f"of {name}, in {whose} names" if name else f"in {whose} names"


FAMILY = Family(
    library="diffusers",
    name="unet",
    title="a conditional UNet",
    summary=SUMMARY,
    # Without attention to a context it is another network, whose picture nothing but noise conditions.
    anchors=(
        "down_blocks.{d}.resnets.{r}.time_emb_proj.weight",
        "mid_block.resnets.{r}.time_emb_proj.weight",
        "down_blocks.{d}.attentions.{r}.transformer_blocks.{t}.attn2.to_k.weight",
    ),
    source="diffusers 0.42, models/unets/unet_2d_condition.py",
    stated=("unet2dconditionmodel",),
    form=lambda settings: form(settings, "diffusers'"),
    rows=diffusers_unet(),
)

AUTHORS = Family(
    library="compvis",
    name="unet",
    title="a conditional UNet",
    summary=SUMMARY,
    anchors=(
        "input_blocks.{n}.{m}.in_layers.0.weight",
        "middle_block.{n}.in_layers.0.weight",
        "input_blocks.{n}.{m}.transformer_blocks.{t}.attn2.to_k.weight",
    ),
    source="CompVis/latent-diffusion, ldm/modules/diffusionmodules/openaimodel.py",
    form=lambda settings: form(settings, "its authors'"),
    rows=authors_unet(),
)

FAMILIES = (FAMILY, AUTHORS)
