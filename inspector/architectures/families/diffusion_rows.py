"""Rows of latent diffusion's UNet in both spellings: diffusers' and its authors' (CompVis).

Symbols: levels, blocks (residual blocks per level), width[d], attention[d] and depth[d] (transformer blocks behind each
residual block of a level), context (the width of the text embedding), time, extra (the width of added conditions).
The way up mirrors the way down.
"""

from __future__ import annotations

from inspector.architectures.families.entry import Optional, Part, Repeat, Row, When
from inspector.architectures.families.rows import conv, linear, norm

BLOCKS = 2  # per level, in every published model in the authors' names; their numbering depends on it
TOP = "width[levels-1]"
# On the way up, u counts from the lowest level.
HERE = "width[levels-1-u]"
BELOW = "(width[levels-u] if u > 0 else width[levels-1])"
ABOVE = "(width[levels-2-u] if u < levels-1 else width[0])"


def cross_attention(name: str, width: str, seen: str) -> tuple[Part, ...]:
    """Query from the picture, key and value from what is seen."""
    return (
        Row(f"{name}.to_q.weight", (width, width)),
        Row(f"{name}.to_k.weight", (width, seen)),
        Row(f"{name}.to_v.weight", (width, seen)),
        *linear(f"{name}.to_out.0", width, width),
    )


def transformer(path: str, width: str, depth: str, *, diffusers: bool) -> tuple[Part, ...]:
    """The attention behind one residual block. Its projections are convolutions in SD 1, matrices in SD 2 and XL."""
    block = f"{path}.transformer_blocks.{{t}}"
    first = cross_attention(f"{block}.attn1", width, width)
    second = cross_attention(f"{block}.attn2", width, "context")
    forward = (
        *linear(f"{block}.ff.net.0.proj", f"8*{width}", width),
        *linear(f"{block}.ff.net.2", width, f"4*{width}"),
    )
    norms = [norm(f"{block}.norm{number}", width) for number in (1, 2, 3)]
    inside = (
        (*norms[0], *first, *norms[1], *second, *norms[2], *forward)
        if diffusers
        else (*first, *forward, *second, *norms[0], *norms[1], *norms[2])
    )

    def projection(name: str) -> tuple[Part, ...]:
        return (
            Optional("linear", (Row(f"{path}.{name}.weight", (width, width)),)),
            Optional("convolved", (Row(f"{path}.{name}.weight", (width, width, 1, 1)),)),
            Row(f"{path}.{name}.bias", (width,)),
        )

    return (
        *norm(f"{path}.norm", width),
        *projection("proj_in"),
        Repeat("t", depth, inside),
        *projection("proj_out"),
    )


def residual(path: str, inner: str, out: str, *, diffusers: bool, shortcut: bool | str = False) -> tuple[Part, ...]:
    """A residual block. shortcut: with a 1 x 1 convolution beside it, always, never, or under a condition."""
    names = (
        ("norm1", "conv1", "time_emb_proj", "norm2", "conv2", "conv_shortcut")
        if diffusers
        else ("in_layers.0", "in_layers.2", "emb_layers.1", "out_layers.0", "out_layers.3", "skip_connection")
    )
    first, second, time, third, fourth, beside = (f"{path}.{name}" for name in names)
    skip = conv(beside, out, inner, 1, bias=True)
    return (
        *norm(first, inner),
        *conv(second, out, inner, 3, bias=True),
        *linear(time, out, "time"),
        *norm(third, out),
        *conv(fourth, out, out, 3, bias=True),
        *(When(shortcut, skip) for _ in range(1) if isinstance(shortcut, str)),
        *(skip if shortcut is True else ()),
    )


def diffusers_unet() -> tuple[Part, ...]:
    """UNet2DConditionModel."""
    down, up = "down_blocks.{d}", "up_blocks.{u}"
    before = "width[d-1] if r == 0 and d > 0 else width[d]"
    risen = f"{BELOW} if r == 0 else {HERE}"
    skipped = f"{ABOVE} if r == blocks else {HERE}"
    return (
        *conv("conv_in", "width[0]", "in_channels", 3, bias=True),
        *linear("time_embedding.linear_1", "time", "width[0]"),
        *linear("time_embedding.linear_2", "time", "time"),
        Optional(
            "added",
            (*linear("add_embedding.linear_1", "time", "extra"), *linear("add_embedding.linear_2", "time", "time")),
        ),
        Repeat(
            "d",
            "levels",
            (
                Optional(
                    "attention[d]",
                    (
                        Repeat(
                            "r",
                            "blocks",
                            transformer(f"{down}.attentions.{{r}}", "width[d]", "depth[d]", diffusers=True),
                        ),
                    ),
                ),
                Repeat(
                    "r",
                    "blocks",
                    residual(
                        f"{down}.resnets.{{r}}",
                        f"({before})",
                        "width[d]",
                        diffusers=True,
                        shortcut="r == 0 and d > 0 and width[d-1] != width[d]",
                    ),
                ),
                When("d < levels-1", conv(f"{down}.downsamplers.0.conv", "width[d]", "width[d]", 3, bias=True)),
            ),
        ),
        Repeat(
            "u",
            "levels",
            (
                When(
                    "attention[levels-1-u]",
                    (
                        Repeat(
                            "r",
                            "blocks+1",
                            transformer(f"{up}.attentions.{{r}}", HERE, "depth[levels-1-u]", diffusers=True),
                        ),
                    ),
                ),
                Repeat(
                    "r",
                    "blocks+1",
                    residual(f"{up}.resnets.{{r}}", f"({risen}) + ({skipped})", HERE, diffusers=True, shortcut=True),
                ),
                When("u < levels-1", conv(f"{up}.upsamplers.0.conv", HERE, HERE, 3, bias=True)),
            ),
        ),
        *transformer("mid_block.attentions.0", TOP, "middle_depth", diffusers=True),
        *residual("mid_block.resnets.0", TOP, TOP, diffusers=True),
        *residual("mid_block.resnets.1", TOP, TOP, diffusers=True),
        *norm("conv_norm_out", "width[0]"),
        *conv("conv_out", "out_channels", "width[0]", 3, bias=True),
    )


def authors_unet(prefix: str = "") -> tuple[Part, ...]:
    """UNetModel of latent-diffusion, with two residual blocks per level."""
    rise = BLOCKS + 1
    entry, middle = f"{prefix}input_blocks", f"{prefix}middle_block"
    down: list[Part] = []
    for r in range(BLOCKS):
        here = f"{entry}.{{{rise}*d+{r + 1}}}"
        inner = "(width[d-1] if d > 0 else width[0])" if r == 0 else "width[d]"
        other = "d > 0 and width[d-1] != width[d]" if r == 0 else False
        down += residual(f"{here}.0", inner, "width[d]", diffusers=False, shortcut=other)
        down.append(Optional("attention[d]", transformer(f"{here}.1", "width[d]", "depth[d]", diffusers=False)))
    last = f"{entry}.{{{rise}*d+{rise}}}"
    down.append(When("d < levels-1", conv(f"{last}.0.op", "width[d]", "width[d]", 3, bias=True)))
    up: list[Part] = []
    for r in range(rise):
        here = f"{prefix}output_blocks.{{{rise}*u+{r}}}"
        risen = BELOW if r == 0 else HERE
        skipped = ABOVE if r == BLOCKS else HERE
        up += residual(f"{here}.0", f"{risen} + {skipped}", HERE, diffusers=False, shortcut=True)
        attention = transformer(f"{here}.1", HERE, "depth[levels-1-u]", diffusers=False)
        up.append(When("attention[levels-1-u]", attention))
        if r == BLOCKS:
            # The upsampling stands behind the attention, where there is one.
            with_, without = (conv(f"{here}.{place}.conv", HERE, HERE, 3, bias=True) for place in (2, 1))
            up.append(When("u < levels-1 and attention[levels-1-u]", with_))
            up.append(When("u < levels-1 and not attention[levels-1-u]", without))
    label = f"{prefix}label_emb.0"
    return (
        *linear(f"{prefix}time_embed.0", "time", "width[0]"),
        *linear(f"{prefix}time_embed.2", "time", "time"),
        Optional("added", (*linear(f"{label}.0", "time", "extra"), *linear(f"{label}.2", "time", "time"))),
        *conv(f"{entry}.0.0", "width[0]", "in_channels", 3, bias=True),
        Repeat("d", "levels", tuple(down)),
        *residual(f"{middle}.0", TOP, TOP, diffusers=False),
        *transformer(f"{middle}.1", TOP, "middle_depth", diffusers=False),
        *residual(f"{middle}.2", TOP, TOP, diffusers=False),
        Repeat("u", "levels", tuple(up)),
        *norm(f"{prefix}out.0", "width[0]"),
        *conv(f"{prefix}out.2", "out_channels", "width[0]", 3, bias=True),
    )
