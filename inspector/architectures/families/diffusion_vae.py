"""The autoencoder of Stable Diffusion (AutoencoderKL), in diffusers' names and in its authors'."""

from __future__ import annotations

from inspector.architectures.families.entry import Family, Optional, Part, Repeat, When
from inspector.architectures.families.rows import conv, linear, norm


def residual(path: str, inner: str, out: str, *, beside: str, shortcut: str = "") -> tuple[Part, ...]:
    """A residual block without time. beside: what the 1 x 1 convolution is called; shortcut: where there is one."""
    return (
        *norm(f"{path}.norm1", inner),
        *conv(f"{path}.conv1", out, inner, 3, bias=True),
        *norm(f"{path}.norm2", out),
        *conv(f"{path}.conv2", out, out, 3, bias=True),
        *((When(shortcut, conv(f"{path}.{beside}", out, inner, 1, bias=True)),) if shortcut else ()),
    )


def matrices(path: str, names: tuple[str, str, str, str], width: str) -> tuple[Part, ...]:
    """Query, key, value and output as linear layers."""
    return tuple(row for name in names for row in linear(f"{path}.{name}", width, width))


def diffusers_vae() -> tuple[Part, ...]:
    """AutoencoderKL of diffusers; before 0.17 its attention had other names."""
    top = "width[levels-1]"
    here = "width[levels-1-u]"
    below = "(width[levels-u] if u > 0 else width[levels-1])"

    def middle(side: str) -> tuple[Part, ...]:
        path = f"{side}.mid_block.attentions.0"
        return (
            *norm(f"{path}.group_norm", top),
            Optional("attention", matrices(path, ("to_q", "to_k", "to_v", "to_out.0"), top)),
            Optional("old_attention", matrices(path, ("query", "key", "value", "proj_attn"), top)),
            *residual(f"{side}.mid_block.resnets.0", top, top, beside=""),
            *residual(f"{side}.mid_block.resnets.1", top, top, beside=""),
        )

    down, up = "encoder.down_blocks.{d}", "decoder.up_blocks.{u}"
    return (
        *conv("encoder.conv_in", "width[0]", "in_channels", 3, bias=True),
        Repeat(
            "d",
            "levels",
            (
                Repeat(
                    "r",
                    "blocks",
                    residual(
                        f"{down}.resnets.{{r}}",
                        "(width[d-1] if r == 0 and d > 0 else width[d])",
                        "width[d]",
                        beside="conv_shortcut",
                        shortcut="r == 0 and d > 0 and width[d-1] != width[d]",
                    ),
                ),
                When("d < levels-1", conv(f"{down}.downsamplers.0.conv", "width[d]", "width[d]", 3, bias=True)),
            ),
        ),
        *middle("encoder"),
        *norm("encoder.conv_norm_out", top),
        *conv("encoder.conv_out", "2*latent", top, 3, bias=True),
        *conv("decoder.conv_in", top, "latent", 3, bias=True),
        Repeat(
            "u",
            "levels",
            (
                Repeat(
                    "r",
                    "blocks+1",
                    residual(
                        f"{up}.resnets.{{r}}",
                        f"({below} if r == 0 else {here})",
                        here,
                        beside="conv_shortcut",
                        shortcut=f"r == 0 and {below} != {here}",
                    ),
                ),
                When("u < levels-1", conv(f"{up}.upsamplers.0.conv", here, here, 3, bias=True)),
            ),
        ),
        *middle("decoder"),
        *norm("decoder.conv_norm_out", "width[0]"),
        *conv("decoder.conv_out", "in_channels", "width[0]", 3, bias=True),
        *QUANTISATION,
    )


QUANTISATION = (
    Optional("quant", conv("quant_conv", "2*latent", "2*latent", 1, bias=True)),
    Optional("post_quant", conv("post_quant_conv", "latent", "latent", 1, bias=True)),
)


def authors_vae(prefix: str = "", symbols: str = "", index: str = "d") -> tuple[Part, ...]:
    """AutoencoderKL of latent-diffusion. symbols, index: where it stands beside a UNet, whose own are plain."""
    levels, blocks, latent = f"{symbols}levels", f"{symbols}blocks", f"{symbols}latent"
    width, up = f"{symbols}width", f"{index}u"
    d = index
    top = f"{width}[{levels}-1]"
    below = f"({width}[{up}+1] if {up} < {levels}-1 else {width}[{up}])"

    def middle(side: str) -> tuple[Part, ...]:
        path = f"{prefix}{side}.mid"
        names = ("q", "k", "v", "proj_out")
        return (
            *residual(f"{path}.block_1", top, top, beside=""),
            *norm(f"{path}.attn_1.norm", top),
            *(row for name in names for row in conv(f"{path}.attn_1.{name}", top, top, 1, bias=True)),
            *residual(f"{path}.block_2", top, top, beside=""),
        )

    falling = f"{prefix}encoder.down.{{{d}}}"
    rising = f"{prefix}decoder.up.{{{up}}}"
    here = f"{width}[{d}]"
    return (
        *conv(f"{prefix}encoder.conv_in", f"{width}[0]", f"{symbols}colours", 3, bias=True),
        Repeat(
            d,
            levels,
            (
                Repeat(
                    "r",
                    blocks,
                    residual(
                        f"{falling}.block.{{r}}",
                        f"({width}[{d}-1] if r == 0 and {d} > 0 else {here})",
                        here,
                        beside="nin_shortcut",
                        shortcut=f"r == 0 and {d} > 0 and {width}[{d}-1] != {here}",
                    ),
                ),
                When(f"{d} < {levels}-1", conv(f"{falling}.downsample.conv", here, here, 3, bias=True)),
            ),
        ),
        *middle("encoder"),
        *norm(f"{prefix}encoder.norm_out", top),
        *conv(f"{prefix}encoder.conv_out", f"2*{latent}", top, 3, bias=True),
        *conv(f"{prefix}decoder.conv_in", top, latent, 3, bias=True),
        *middle("decoder"),
        Repeat(
            up,
            levels,
            (
                Repeat(
                    "r",
                    f"{blocks}+1",
                    residual(
                        f"{rising}.block.{{r}}",
                        f"({below} if r == 0 else {width}[{up}])",
                        f"{width}[{up}]",
                        beside="nin_shortcut",
                        shortcut=f"r == 0 and {below} != {width}[{up}]",
                    ),
                ),
                When(f"{up} > 0", conv(f"{rising}.upsample.conv", f"{width}[{up}]", f"{width}[{up}]", 3, bias=True)),
            ),
        ),
        *norm(f"{prefix}decoder.norm_out", f"{width}[0]"),
        *conv(f"{prefix}decoder.conv_out", f"{symbols}colours", f"{width}[0]", 3, bias=True),
        *conv(f"{prefix}quant_conv", f"2*{latent}", f"2*{latent}", 1, bias=True),
        *conv(f"{prefix}post_quant_conv", latent, latent, 1, bias=True),
    )


FAMILY = Family(
    library="diffusers",
    name="vae",
    title="an AutoencoderKL",
    summary="{levels} levels of width {width}, {latent} latent channels",
    anchors=("encoder.down_blocks.{d}.resnets.{r}.conv1.weight", "decoder.up_blocks.{u}.resnets.{r}.conv1.weight"),
    source="diffusers 0.42, models/autoencoders/autoencoder_kl.py",
    stated=("autoencoderkl",),
    builder="inspector.architectures.families.builders.transformers_models:build_vae",
    rows=diffusers_vae(),
)

AUTHORS = Family(
    library="compvis",
    name="vae",
    title="an AutoencoderKL in its authors' names",
    summary="{levels} levels of width {width}, {latent} latent channels",
    anchors=("encoder.down.{d}.block.{r}.conv1.weight", "decoder.up.{du}.block.{r}.conv1.weight"),
    source="CompVis/latent-diffusion, ldm/models/autoencoder.py",
    rows=authors_vae(),
)

FAMILIES = (FAMILY, AUTHORS)
