"""Small networks of seven families, as names and shapes, with many parts that look alike: what adversaries work on."""

from __future__ import annotations

import random
from collections.abc import Callable

from benchmarks.keybench.templates import Net, batch_norm, layer


def _norm(name: str, width: int, rng: random.Random) -> Net:
    """Most convolutions have batch norms; some group norms, which leave no statistics."""
    return batch_norm(name, width) if rng.random() < 0.75 else layer(name, width)


def convolutional(rng: random.Random) -> Net:
    """A ResNet of few widths; kernels as wide as they have channels with a width of 3."""
    width = rng.choice((3, 3, 4, 6))
    state = rng.getstate()

    def norm(name: str, size: int) -> Net:
        rng.setstate(state)  # one kind of norm throughout
        return _norm(name, size, rng)

    made = layer("conv1", width, 3, 3, 3, bias=False) | norm("bn1", width)
    depth, wider = rng.randint(1, 3), rng.random() < 0.5
    before = width
    for stage in (1, 2):
        wide = 2 * width if wider and stage == 2 else width
        for block in range(depth):
            at = f"layer{stage}.{block}."
            made |= layer(f"{at}conv1", wide, before, 3, 3, bias=False) | norm(f"{at}bn1", wide)
            made |= layer(f"{at}conv2", wide, wide, 3, 3, bias=False) | norm(f"{at}bn2", wide)
            if before != wide:
                made |= layer(f"{at}downsample.0", wide, before, 1, 1, bias=False) | norm(f"{at}downsample.1", wide)
            before = wide
    return made | layer("fc", rng.choice((5, before)), before)


def _attention(at: str, width: int, fused: bool) -> Net:
    if fused:
        return layer(f"{at}qkv", 3 * width, width) | layer(f"{at}proj", width, width)
    made: Net = {}
    for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
        made |= layer(f"{at}{part}", width, width)
    return made


def vision_transformer(rng: random.Random) -> Net:
    width = rng.choice((4, 8))
    fused, wide = rng.random() < 0.5, rng.choice((width, 2 * width))
    made: Net = {"cls_token": (1, 1, width), "pos_embed": (1, 5, width)} | layer("patch_embed.proj", width, 3, 2, 2)
    for i in range(rng.randint(2, 3)):
        at = f"blocks.{i}."
        made |= layer(f"{at}norm1", width) | _attention(f"{at}attn.", width, fused) | layer(f"{at}norm2", width)
        made |= layer(f"{at}mlp.fc1", wide, width) | layer(f"{at}mlp.fc2", width, wide)
    return made | layer("norm", width) | layer("head", rng.choice((5, width)), width)


def _post_norm(at: str, width: int, wide: int, cross: bool) -> Net:
    """As torch.nn's transformer layers are."""
    made: Net = {}
    for part in ("self_attn", "multihead_attn") if cross else ("self_attn",):
        made |= {f"{at}{part}.in_proj_weight": (3 * width, width), f"{at}{part}.in_proj_bias": (3 * width,)}
        made |= layer(f"{at}{part}.out_proj", width, width)
    made |= layer(f"{at}linear1", wide, width) | layer(f"{at}linear2", width, wide)
    made |= layer(f"{at}norm1", width) | layer(f"{at}norm2", width)
    return made | (layer(f"{at}norm3", width) if cross else {})


def encoder_decoder(rng: random.Random) -> Net:
    """Two stacks, mostly of equal shape."""
    width = rng.choice((4, 6))
    wide, cross, depth = rng.choice((width, 2 * width)), rng.random() < 0.3, rng.randint(2, 3)
    made = layer("embedding", 7, width, bias=False)
    for stack in ("encoder", "decoder"):
        for i in range(depth):
            made |= _post_norm(f"{stack}.layers.{i}.", width, wide, cross and stack == "decoder")
        made |= layer(f"{stack}.norm", width)
    return made | layer("generator", 7, width)


def two_towers(rng: random.Random) -> Net:
    width, depth = rng.choice((4, 8)), rng.randint(1, 2)
    names = rng.choice((("image_encoder", "text_encoder"), ("query_tower", "item_tower"), ("actor", "critic")))
    made: Net = {"logit_scale": ()}
    for tower in names:
        made |= layer(f"{tower}.embed", width, 6)
        for i in range(depth):
            made |= layer(f"{tower}.layers.{i}.fc1", width, width) | layer(f"{tower}.layers.{i}.fc2", width, width)
            made |= layer(f"{tower}.layers.{i}.norm", width)
        made |= layer(f"{tower}.proj", width, width, bias=False)
    return made


def recurrent(rng: random.Random) -> Net:
    width = rng.choice((4, 6))
    gates, both = rng.choice((3, 4)), rng.random() < 0.5
    made = layer("embedding", 7, width, bias=False)
    for stack in rng.choice((("lstm",), ("encoder", "decoder"))):
        for i in range(rng.randint(1, 2)):
            for end in ("", "_reverse") if both else ("",):
                into = width if i == 0 or not both else 2 * width
                made |= {f"{stack}.weight_ih_l{i}{end}": (gates * width, into)}
                made |= {f"{stack}.weight_hh_l{i}{end}": (gates * width, width)}
                made |= {f"{stack}.bias_ih_l{i}{end}": (gates * width,), f"{stack}.bias_hh_l{i}{end}": (gates * width,)}
    return made | layer("attention", width, width) | layer("fc", rng.choice((5, width)), width)


def u_net(rng: random.Random) -> Net:
    width, depth = rng.choice((3, 4)), rng.randint(1, 2)

    def double(at: str, out: int, before: int) -> Net:
        made = layer(f"{at}.0", out, before, 3, 3, bias=False) | batch_norm(f"{at}.1", out)
        return made | layer(f"{at}.3", out, out, 3, 3, bias=False) | batch_norm(f"{at}.4", out)

    made = double("inc", width, 3)
    for i in range(1, depth + 1):
        made |= double(f"down{i}", width, width)
    for i in range(1, depth + 1):
        made |= layer(f"up{i}.up", width, width, 2, 2) | double(f"up{i}.conv", width, 2 * width)
    return made | layer("outc", 2, width, 1, 1)


def language_model(rng: random.Random) -> Net:
    """Gated, with its head tied to the embedding."""
    width = rng.choice((4, 8))
    wide, rows = rng.choice((width, 2 * width)), rng.choice((7, width))
    made = layer("model.embed_tokens", rows, width, bias=False)
    for i in range(rng.randint(2, 3)):
        at = f"model.layers.{i}."
        made |= layer(f"{at}input_layernorm", width, bias=False)
        for part in ("q_proj", "k_proj", "v_proj", "o_proj"):
            made |= layer(f"{at}self_attn.{part}", width, width, bias=False)
        made |= layer(f"{at}post_attention_layernorm", width, bias=False)
        for part, size in (("gate", (wide, width)), ("up", (wide, width)), ("down", (width, wide))):
            made |= layer(f"{at}mlp.{part}_proj", *size, bias=False)
    return made | layer("model.norm", width, bias=False) | layer("lm_head", rows, width, bias=False)


FAMILIES: tuple[Callable[[random.Random], Net], ...] = (
    convolutional,
    convolutional,
    vision_transformer,
    encoder_decoder,
    two_towers,
    recurrent,
    u_net,
    language_model,
)
