"""Is a state dict a part of something larger: a LoRA, a VAE, the diffusion model alone, one encoder, a head?

Each part is told by names that its libraries write and by shapes that it cannot do without. What shows neither is
called nothing.

Sources of names: huggingface/diffusers models/, CompVis/latent-diffusion, black-forest-labs/flux, facebookresearch/DiT,
mlfoundations/open_clip, huggingface/transformers.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from inspector.checkpoint.adapter_names import adapted_layer, is_adapter_tensor, is_beside_adapter, is_rank_first
from inspector.checkpoint.types import Shape
from inspector.units import counted

Shapes = Mapping[str, Shape]
MOST_NAMES = 200_000  # no part has more tensors
LONGEST_NAME = 512  # characters
MOST_OF_HEAD = 12  # tensors; with more it is a network
MOST_KINDS = 4  # of adapted layers that are named


class _Forms(dict[str, Shape]):
    """Shape by form of name. What is asked of forms is how they end."""

    @cached_property
    def by_end(self) -> Mapping[str, Sequence[tuple[int, str, Shape]]]:
        """By their last two words: (place among all, form, shape)."""
        found: defaultdict[str, list[tuple[int, str, Shape]]] = defaultdict(list)
        for place, (form, shape) in enumerate(self.items()):
            found[_end(form)].append((place, form, shape))
        return found


def _end(form: str) -> str:
    return ".".join(form.rsplit(".", 2)[-2:])


@dataclass(frozen=True, slots=True)
class _Component:
    """One model of several. title: for people. signs: ends of names, "#" for a number, "|" between two ways to write
    one; all of them must be there, the first with as many dimensions as stated. only: what all other names of a file
    have that is nothing but this, "" where that is not asked."""

    title: str
    dimensions: int
    signs: tuple[str, ...]
    only: str = ""


_UNETS = (
    _Component(
        "a UNet",
        2,
        (
            "down_blocks.#.resnets.#.time_emb_proj.weight",
            "down_blocks.#.attentions.#.transformer_blocks.#.attn2.to_k.weight",
            "up_blocks.#.resnets.#.time_emb_proj.weight",
        ),
    ),
    _Component(
        "a UNet",
        4,
        (
            "input_blocks.#.#.in_layers.#.weight|input_blocks.#.#.op.weight",
            "input_blocks.#.#.transformer_blocks.#.attn2.to_k.weight",
            "output_blocks.#.#.emb_layers.#.weight",
        ),
    ),
)
_TRANSFORMERS = (
    _Component(
        "a transformer",
        2,
        (
            "transformer_blocks.#.attn.to_q.weight|transformer_blocks.#.attn1.to_q.weight",
            "proj_out.weight|proj_out_2.weight",
            "norm_out.linear.weight|adaln_single.linear.weight|proj_out_1.weight",
        ),
    ),
    _Component(
        "a transformer",
        2,
        ("double_blocks.#.img_attn.qkv.weight", "single_blocks.#.linear1.weight", "final_layer.linear.weight"),
    ),
    _Component(
        "a transformer",
        2,
        ("joint_blocks.#.x_block.attn.qkv.weight", "x_embedder.proj.weight", "context_embedder.weight"),
    ),
    _Component(
        "a transformer",
        2,
        ("blocks.#.adaLN_modulation.#.weight", "x_embedder.proj.weight", "y_embedder.embedding_table.weight"),
    ),
)
_VAE_ENCODER = _Component(
    "the encoder",
    4,
    ("encoder.conv_out.weight", "encoder.down_blocks.#.resnets.#.conv1.weight|encoder.down.#.block.#.conv1.weight"),
)
_VAE_DECODER = _Component(
    "the decoder",
    4,
    ("decoder.conv_in.weight", "decoder.up_blocks.#.resnets.#.conv1.weight|decoder.up.#.block.#.conv1.weight"),
)
_TEXT_ENCODERS = (
    _Component(
        "CLIP's",
        2,
        ("text_model.encoder.layers.#.mlp.fc1.weight", "text_model.embeddings.token_embedding.weight"),
        r"(^|\.)(text_model\.|text_projection\.|logit_scale$)",
    ),
    _Component(
        "OpenCLIP's",
        2,
        ("transformer.resblocks.#.attn.in_proj_weight", "token_embedding.weight"),
        r"(^|\.)(transformer\.resblocks\.|(token_embedding|ln_final)\.|"
        r"(positional_embedding|text_projection|logit_scale|attn_mask)$)",
    ),
    _Component(
        "T5's",
        2,
        ("encoder.block.#.layer.#.SelfAttention.q.weight", "encoder.final_layer_norm.weight"),
        r"(^|\.)(encoder|shared)\.",
    ),
)
_PICTURE_ENCODERS = (
    _Component(
        "CLIP's",
        2,
        ("vision_model.encoder.layers.#.mlp.fc1.weight", "vision_model.embeddings.patch_embedding.weight"),
        r"(^|\.)(vision_model|visual_projection)\.",
    ),
)
# Where pipelines keep a part, whatever it is: what lies there is not said to be absent.
_DIFFUSIONS = re.compile(r"(model\.diffusion_model|diffusion_model|unet|transformer)\.")
_VAES = re.compile(r"(first_stage_model|vae|autoencoder)\.")
_TEXTS = re.compile(
    r"(cond_stage_model|conditioner|text_encoders?(_[#2-9])?|text_model|te[1-3]?|clip|clip_[lgh]|t5|t5xxl|(image|text)_proj)\."
)
_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")
_CONTROL = re.compile(r"(^|\.)(controlnet_(cond_embedding|down_blocks|mid_block)|input_hint_block|zero_convs)\.")
_HEADS = re.compile(
    r"(fc|head|heads\.head|classifier|classification_head|cls_head|last_linear|lm_head|score|linear_head)(?=\.)"
)
# What a PEFT file holds beside the matrices was trained whole; only a running model has layers of its base.
_PEFT, _BASE = "base_model.model.", ".base_layer."
_ADAPTED_MODELS = (
    (re.compile(r"^(lora|lycoris)_te\d?_|^text_encoder(_\d)?\."), "a text encoder"),
    (re.compile(r"^(lora|lycoris)_unet_|^unet\.|^transformer\.(single_)?transformer_blocks\."), "a diffusion model"),
)


def name_part(shapes: Shapes) -> str:
    """A sentence on what part of what a state dict is, "" for a whole model and for what does not say."""
    if not shapes or len(shapes) > MOST_NAMES:
        return ""
    adapter = _adapter(shapes)
    if adapter:
        return adapter
    forms = _Forms({_NUMBER.sub("#", name): shape for name, shape in shapes.items() if len(name) <= LONGEST_NAME})
    return _of_a_pipeline(forms) or _one_encoder(forms) or _head(shapes)


def is_adapter(shapes: Shapes) -> bool:
    """Whether the state dict holds an adapter and nothing of its base."""
    rest = [name for name in shapes if not (is_adapter_tensor(name) or is_beside_adapter(name))]
    if len(rest) == len(shapes) or not any(map(is_adapter_tensor, shapes)):
        return False
    return not rest or all(name.startswith(_PEFT) and _BASE not in name for name in shapes)


def _adapter(shapes: Shapes) -> str:
    if not is_adapter(shapes):
        return ""
    layers = dict.fromkeys(adapted_layer(name) for name in shapes if is_adapter_tensor(name))
    whole = sum(not (is_adapter_tensor(name) or is_beside_adapter(name)) for name in shapes)
    ranks = sorted({shape[0] for name, shape in shapes.items() if len(shape) >= 2 and is_rank_first(name)})
    rank = f" of rank {ranks[0]}" if len(ranks) == 1 else f" of ranks {ranks[0]} to {ranks[-1]}" if ranks else ""
    by_model = Counter(map(_adapted_model, layers))
    whose = f"{counted(len(layers), 'layer')} ({_kinds(layers)})"
    if set(by_model) != {""}:
        of = [counted(n, "layer") + (f" of {model}" if model else "") for model, n in by_model.most_common()]
        whose = " and ".join(of)
    beside = f", with {counted(whole, 'tensor')} trained whole" if whole else ""
    return (
        f"This is {'a LoRA' if ranks else 'an adapter'}{rank} for {whose}{beside}: only what is added to a base model, "
        "which is not in the file. Load the base first, then this with the library that wrote it, or merge the two."
    )


def _adapted_model(layer: str) -> str:
    return next((model for sign, model in _ADAPTED_MODELS if sign.search(layer)), "")


def _kinds(layers: Iterable[str]) -> str:
    """The commonest last words of the layers' names."""
    ends = Counter(layer.rpartition(".")[2] for layer in layers)
    return ", ".join(name[:40] for name, _ in ends.most_common(MOST_KINDS))


def _of_a_pipeline(forms: _Forms) -> str:
    """Of diffusion model, VAE and text encoder the ones that are here, where not all are."""
    diffusion = _first((*_UNETS, *_TRANSFORMERS), forms)
    vae = _autoencoder(forms)
    if not (diffusion or vae):
        return ""
    if any(map(_CONTROL.search, forms)):
        return (
            "This is a ControlNet: only what steers a diffusion model, which is not in the file." if diffusion else ""
        )
    text = _first(_TEXT_ENCODERS, forms)
    here = [f"the diffusion model ({diffusion.title})"] if diffusion else []
    here += [vae] * bool(vae) + ["the text encoder"] * bool(text)
    absent = ["a diffusion model"] * (not diffusion and not _begins(_DIFFUSIONS, forms))
    absent += ["a VAE"] * (not vae and not _begins(_VAES, forms))
    absent += ["a text encoder"] * (not text and not _begins(_TEXTS, forms))
    if not absent:
        return ""
    end = f"neither {' nor '.join(absent)}" if len(absent) > 1 else absent[0].replace("a ", "no ", 1)
    end += " is in the file."
    if here == [vae]:
        alone = "This is only" if vae.startswith("the ") else "This is"
        return f"{alone} {vae}, as diffusion pipelines have one between pictures and latents: {end}"
    return f"This is only {' and '.join(here)} of a pipeline: {end}"


def _begins(prefixes: re.Pattern[str], forms: Shapes) -> bool:
    """Whether something lies where pipelines keep that part, though it is not known what."""
    return any(map(prefixes.match, forms))


def _autoencoder(forms: _Forms) -> str:
    """ "a VAE" where the encoder writes a mean and a variance for each channel that the decoder reads."""
    encoder, decoder = _first((_VAE_ENCODER,), forms), _first((_VAE_DECODER,), forms)
    if not (encoder and decoder):
        half = encoder or decoder
        return f"{half.title} of an autoencoder" if half else ""
    written, read = _shape_at(_VAE_ENCODER.signs[0], forms)[0], _shape_at(_VAE_DECODER.signs[0], forms)[1]
    return "a VAE" if written == 2 * read else "an autoencoder"


def _one_encoder(forms: _Forms) -> str:
    for noun, components in (("text", _TEXT_ENCODERS), ("picture", _PICTURE_ENCODERS)):
        found = _first(components, forms)
        if found is None or not all(re.search(found.only, form) for form in forms):
            continue
        missing = "decoder" if found.title == "T5's" else "picture encoder" if noun == "text" else "text encoder"
        return f"This is only the {noun} encoder, in {found.title} names: no {missing} is in the file."
    return ""


def _head(shapes: Shapes) -> str:
    """One or a few linear layers under a name that heads have, and nothing else."""
    if len(shapes) > MOST_OF_HEAD:
        return ""
    found = [_HEADS.match(name) for name in shapes]
    roots = {match[0] for match in found if match}
    matrices = [shape for name, shape in shapes.items() if name.endswith(".weight") and len(shape) == 2]
    if len(roots) != 1 or None in found or not matrices or any(len(shape) > 2 for shape in shapes.values()):
        return ""
    what = "a linear layer" if len(matrices) == 1 else f"{len(matrices)} linear layers"
    return (
        f'This is only {what} called "{roots.pop()}", from {matrices[0][1]:,} features to {matrices[-1][0]:,} answers. '
        "As the head of a larger network it needs that network, which is not in the file."
    )


def _first(components: Iterable[_Component], forms: _Forms) -> _Component | None:
    return next((one for one in components if _is_there(one, forms)), None)


def _is_there(component: _Component, forms: _Forms) -> bool:
    return all(_shape_at(sign, forms) for sign in component.signs) and (
        len(_shape_at(component.signs[0], forms)) >= component.dimensions
    )


def _shape_at(sign: str, forms: _Forms) -> Shape:
    """The shape of the first name that ends so, () where there is none."""
    found = [
        (place, shape)
        for end in sign.split("|")
        for place, form, shape in forms.by_end.get(_end(end), ())
        if form.endswith(end) and (len(form) == len(end) or form[-len(end) - 1] == ".")
    ]
    return min(found)[1] if found else ()
