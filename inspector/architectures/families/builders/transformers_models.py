"""transformers' and diffusers' own classes with configurations that were solved from a file, where they are installed.

A class is chosen by the parts that the file has, so that its state dict is the file's, name by name. A head that is
tied to the embeddings and therefore not saved is none in the state dict here either (`tied.py`).
"""

from __future__ import annotations

from typing import Any

from inspector.architectures.families.bert import class_of
from inspector.architectures.families.builders.tied import library, tie_output
from inspector.architectures.families.usual import head_width

Settings = dict[str, Any]


def build_bert(settings: Settings) -> Any:
    """BertModel and the models with a head on it. Raises ValueError for half a decoder and for older buffers."""
    transformers = library("transformers")
    if settings["mlm"] and settings["decoder"] != settings["decoder_bias"]:
        raise ValueError("of cls.predictions.decoder the file has a half, which no class has")
    if settings["position_ids"]:
        raise ValueError("transformers' class no longer keeps position_ids, which this file has")
    name = class_of(settings)
    config = transformers.BertConfig(
        vocab_size=settings["vocab"],
        hidden_size=settings["hidden"],
        num_hidden_layers=settings["layers"],
        num_attention_heads=settings["heads"],
        intermediate_size=settings["mlp"],
        max_position_embeddings=settings["positions"],
        type_vocab_size=settings["types"],
        hidden_act=settings["activation"],
        layer_norm_eps=settings["epsilon"],
        num_labels=settings.get("num_classes") or 2,
    )
    extra = {"add_pooling_layer": bool(settings["pooler"])} if name == "BertModel" else {}
    model = getattr(transformers, name)(config, **extra)
    if settings["mlm"] and not settings["decoder"]:
        head = model.cls.predictions
        tie_output(head, "decoder", model.bert.embeddings.word_embeddings, head)
    return model


def build_gpt2(settings: Settings) -> Any:
    """GPT2Model, or GPT2LMHeadModel where the file has the head. Raises ValueError for other heads."""
    transformers = library("transformers")
    if any(settings[part] for part in ("mask", "masked_bias", "summary", "score", "classifier")):
        raise ValueError("only GPT2Model and GPT2LMHeadModel without saved masks are built here")
    config = transformers.GPT2Config(
        vocab_size=settings["vocab"],
        n_embd=settings["hidden"],
        n_layer=settings["layers"],
        n_head=settings["heads"],
        n_inner=settings["mlp"],
        n_positions=settings["positions"],
        activation_function=settings["activation"],
        layer_norm_epsilon=settings["epsilon"],
    )
    if settings["bare"]:
        return transformers.GPT2Model(config)
    model = transformers.GPT2LMHeadModel(config)
    if not settings["lm_head"]:
        tie_output(model, "lm_head", model.transformer.wte)
    return model


def _decoder(kind: str, settings: Settings, **more: Any) -> Any:
    """A model of Llama's kin. Raises ValueError for what its classes have not."""
    transformers = library("transformers")
    if settings["rope"] != "default":
        raise ValueError(f"rotary positions scaled as {settings['rope']} need numbers that only config.json has")
    if settings["frequencies"] or settings["score"]:
        raise ValueError("only plain decoders without saved rotary frequencies are built here")
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=settings["vocab"],
        hidden_size=settings["hidden"],
        num_hidden_layers=settings["layers"],
        num_attention_heads=settings["heads"],
        num_key_value_heads=settings["key_heads"],
        intermediate_size=settings["mlp"],
        rms_norm_eps=settings["epsilon"],
        hidden_act=settings["activation"],
        rope_parameters={"rope_type": "default", "rope_theta": settings["rope_theta"]},
        tie_word_embeddings=False,
        **more,
    )
    model = getattr(transformers, f"{kind}Model" if settings["bare"] else f"{kind}ForCausalLM")(config)
    if not settings["bare"] and not settings["lm_head"]:
        tie_output(model, "lm_head", model.model.embed_tokens)
    return model


def _width(settings: Settings) -> int:
    """Channels of one head. Raises ValueError where queries and keys disagree."""
    width: int = settings["query_width"] // settings["heads"]
    if width * settings["key_heads"] != settings["key_width"]:
        raise ValueError(
            f"{settings['heads']} heads make queries {width} wide, {settings['key_heads']} key heads make keys "
            f"{settings['key_width'] // settings['key_heads']} wide; usual would be {head_width(settings)}"
        )
    return width


def build_llama(settings: Settings) -> Any:
    """LlamaModel or LlamaForCausalLM."""
    biases = {"attention_bias": bool(settings["attention_bias"]), "mlp_bias": bool(settings["mlp_bias"])}
    return _decoder("Llama", settings, head_dim=_width(settings), **biases)


def build_qwen2(settings: Settings) -> Any:
    """Qwen2Model or Qwen2ForCausalLM."""
    _width(settings)
    return _decoder("Qwen2", settings)


def build_qwen3(settings: Settings) -> Any:
    """Qwen3Model or Qwen3ForCausalLM."""
    return _decoder("Qwen3", settings, head_dim=settings["head_width"])


def build_vae(settings: Settings) -> Any:
    """diffusers' AutoencoderKL. Raises ValueError for the old names of its attention."""
    if settings["old_attention"]:
        raise ValueError("diffusers' class has the attention's new names (to_q), this file the old ones (query)")
    levels = settings["levels"]
    return library("diffusers").AutoencoderKL(
        in_channels=settings["in_channels"],
        out_channels=settings["in_channels"],
        down_block_types=("DownEncoderBlock2D",) * levels,
        up_block_types=("UpDecoderBlock2D",) * levels,
        block_out_channels=settings["width"],
        layers_per_block=settings["blocks"],
        latent_channels=settings["latent"],
        use_quant_conv=bool(settings["quant"]),
        use_post_quant_conv=bool(settings["post_quant"]),
    )
