"""A whole Stable Diffusion checkpoint in its authors' names: three models, or four, in one file.

UNet, autoencoder and text encoder stand side by side under their own prefixes. Which text encoder it is tells the
generations apart: CLIP ViT-L in transformers' names (1), OpenCLIP ViT-H (2), both kinds (XL), the second alone (XL's
refiner).
"""

from __future__ import annotations

from inspector.architectures.families.clip_rows import openai_text, text_tower
from inspector.architectures.families.diffusion_rows import authors_unet
from inspector.architectures.families.diffusion_vae import authors_vae
from inspector.architectures.families.entry import Family, Optional, Part, Row

SOURCE = "CompVis/stable-diffusion, Stability-AI/stablediffusion, Stability-AI/generative-models"
UNET, VAE = "model.diffusion_model.", "first_stage_model."
FIRST, SECOND = "cond_stage_model.transformer.text_model", "cond_stage_model.model."
XL_FIRST, XL_SECOND = "conditioner.embedders.0.transformer.text_model", "conditioner.embedders.1.model."
REFINER = "conditioner.embedders.0.model."
# The noise schedule, constants over the steps, in ldm's order (ldm/models/diffusion/ddpm.py).
SCHEDULE = (
    *("betas", "alphas_cumprod", "alphas_cumprod_prev", "sqrt_alphas_cumprod", "sqrt_one_minus_alphas_cumprod"),
    *("log_one_minus_alphas_cumprod", "sqrt_recip_alphas_cumprod", "sqrt_recipm1_alphas_cumprod"),
)
POSTERIOR = ("posterior_variance", "posterior_log_variance_clipped", "posterior_mean_coef1", "posterior_mean_coef2")
COMMON = (f"{UNET}input_blocks.{{n}}.{{m}}.in_layers.0.weight", f"{VAE}encoder.down.{{d}}.block.{{r}}.conv1.weight")
SUMMARY = "a UNet of {levels} levels and context {context}, an autoencoder of {latent} latent channels, "
ONE = "a text encoder of {text_layers} layers and width {text_hidden}"


def family(name: str, title: str, texts: str, anchors: tuple[str, ...], *rows: Part) -> Family:
    """One generation. texts: its text encoders in words."""
    schedule = tuple(
        Optional(flag, tuple(Row(name, ("steps",), is_buffer=True) for name in names))
        for flag, names in (("schedule", SCHEDULE), ("posterior", POSTERIOR))
    )
    return Family(
        library="compvis",
        name=name,
        title=title,
        summary=SUMMARY.replace("{latent}", "{vae_latent}") + texts,
        anchors=(*COMMON, *anchors),
        source=SOURCE,
        rows=(*schedule, *authors_unet(UNET), *authors_vae(VAE, "vae_", "e"), *rows),
    )


FAMILIES = (
    family(
        "stable-diffusion-1",
        "a whole Stable Diffusion 1 checkpoint, three models in one file",
        ONE,
        (f"{FIRST}.encoder.layers.{{t}}.self_attn.q_proj.weight",),
        *text_tower(FIRST, symbols="text_"),
    ),
    family(
        "stable-diffusion-2",
        "a whole Stable Diffusion 2 checkpoint, three models in one file",
        ONE,
        (f"{SECOND}transformer.resblocks.{{t}}.attn.in_proj_weight",),
        *openai_text(SECOND, symbols="text_"),
    ),
    family(
        "stable-diffusion-xl",
        "a whole Stable Diffusion XL checkpoint, four models in one file",
        f"{ONE}, another of {{second_layers}} layers and width {{second_hidden}}",
        (
            f"{XL_FIRST}.encoder.layers.{{t}}.self_attn.q_proj.weight",
            f"{XL_SECOND}transformer.resblocks.{{t}}.attn.in_proj_weight",
        ),
        *text_tower(XL_FIRST, symbols="text_"),
        *openai_text(XL_SECOND, symbols="second_"),
    ),
    family(
        "stable-diffusion-xl-refiner",
        "a whole checkpoint of Stable Diffusion XL's refiner, three models in one file",
        ONE,
        (f"{REFINER}transformer.resblocks.{{t}}.attn.in_proj_weight",),
        *openai_text(REFINER, symbols="text_"),
    ),
)
