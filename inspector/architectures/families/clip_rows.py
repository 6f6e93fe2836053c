"""Rows of CLIP's two towers in both spellings: transformers' and OpenAI's (which open_clip kept)."""

from __future__ import annotations

from inspector.architectures.families.entry import Optional, Part, Repeat, Row
from inspector.architectures.families.rows import linear, norm


def layers(path: str, index: str, count: str, width: str, mlp: str) -> Part:
    """A tower's encoder in transformers' names; key, value and query stand in this order."""
    layer = f"{path}.encoder.layers.{{{index}}}" if path != "@" else f"@encoder.layers.{{{index}}}"
    return Repeat(
        index,
        count,
        (
            *linear(f"{layer}.self_attn.k_proj", width, width),
            *linear(f"{layer}.self_attn.v_proj", width, width),
            *linear(f"{layer}.self_attn.q_proj", width, width),
            *linear(f"{layer}.self_attn.out_proj", width, width),
            *norm(f"{layer}.layer_norm1", width),
            *linear(f"{layer}.mlp.fc1", mlp, width),
            *linear(f"{layer}.mlp.fc2", width, mlp),
            *norm(f"{layer}.layer_norm2", width),
        ),
    )


def text_tower(path: str = "text_model", *, symbols: str = "") -> tuple[Part, ...]:
    """The text model in transformers' names. path: "@" where it is the family's base; symbols: put before each."""
    here = "@" if path == "@" else f"{path}."
    hidden, positions = f"{symbols}hidden", f"{symbols}positions"
    index = "t" if symbols else "i"
    return (
        Optional(
            f"{symbols}position_ids",
            (Row(f"{here}embeddings.position_ids", (1, positions), "int64", is_buffer=True),),
        ),
        Row(f"{here}embeddings.token_embedding.weight", (f"{symbols}vocab", hidden)),
        Row(f"{here}embeddings.position_embedding.weight", (positions, hidden)),
        layers(path, index, f"{symbols}layers", hidden, f"{symbols}mlp"),
        *norm(f"{here}final_layer_norm", hidden),
    )


def vision_tower(path: str = "vision_model", *, symbols: str = "") -> tuple[Part, ...]:
    """The vision model in transformers' names; "pre_layrnorm" is spelled so."""
    here = "@" if path == "@" else f"{path}."
    hidden, positions = f"{symbols}hidden", f"{symbols}positions"
    patch = f"{symbols}patch"
    index = "v" if symbols else "i"
    return (
        Row(f"{here}embeddings.class_embedding", (hidden,)),
        Optional(
            f"{symbols}position_ids",
            (Row(f"{here}embeddings.position_ids", (1, positions), "int64", is_buffer=True),),
        ),
        Row(f"{here}embeddings.patch_embedding.weight", (hidden, "in_channels", patch, patch)),
        Row(f"{here}embeddings.position_embedding.weight", (positions, hidden)),
        *norm(f"{here}pre_layrnorm", hidden),
        layers(path, index, f"{symbols}layers", hidden, f"{symbols}mlp"),
        *norm(f"{here}post_layernorm", hidden),
    )


def resblocks(path: str, index: str, count: str, width: str, mlp: str) -> Part:
    """A tower's blocks in OpenAI's names; open_clip has the same ones, in another order."""
    block = f"{path}.resblocks.{{{index}}}"
    return Repeat(
        index,
        count,
        (
            Row(f"{block}.attn.in_proj_weight", (f"3*{width}", width)),
            Row(f"{block}.attn.in_proj_bias", (f"3*{width}",)),
            *linear(f"{block}.attn.out_proj", width, width),
            *norm(f"{block}.ln_1", width),
            *linear(f"{block}.mlp.c_fc", mlp, width),
            *linear(f"{block}.mlp.c_proj", width, mlp),
            *norm(f"{block}.ln_2", width),
        ),
    )


def openai_text(prefix: str = "", *, visual: tuple[Part, ...] = (), symbols: str = "") -> tuple[Part, ...]:
    """The text model in OpenAI's names, with the vision model between its parameters and its layers."""
    hidden = f"{symbols}hidden"
    index = "t" if symbols else "i"
    return (
        Row(f"{prefix}positional_embedding", (f"{symbols}positions", hidden)),
        Optional(f"{symbols}projected", (Row(f"{prefix}text_projection", (hidden, f"{symbols}projection")),)),
        Optional(f"{symbols}scaled", (Row(f"{prefix}logit_scale", ()),)),
        *visual,
        resblocks(f"{prefix}transformer", index, f"{symbols}layers", hidden, f"{symbols}mlp"),
        Row(f"{prefix}token_embedding.weight", (f"{symbols}vocab", hidden)),
        *norm(f"{prefix}ln_final", hidden),
    )
