"""Tiny networks outside torchvision and timm, by the names and shapes of their state dicts."""

from __future__ import annotations

from collections.abc import Callable

Shape = tuple[int, ...]
Net = dict[str, Shape]


def layer(name: str, *weight: int, bias: bool = True) -> Net:
    return {f"{name}.weight": weight} | ({f"{name}.bias": weight[:1]} if bias else {})


def batch_norm(name: str, width: int) -> Net:
    leaves = ("weight", "bias", "running_mean", "running_var")
    return {f"{name}.{leaf}": (width,) for leaf in leaves} | {f"{name}.num_batches_tracked": ()}


def bert_tiny(depth: int = 6, width: int = 64) -> Net:
    """Names as Hugging Face's BertModel has them."""
    made = layer("embeddings.word_embeddings", 1000, width, bias=False)
    made |= layer("embeddings.position_embeddings", 128, width, bias=False)
    made |= layer("embeddings.token_type_embeddings", 2, width, bias=False) | layer("embeddings.LayerNorm", width)
    for i in range(depth):
        at = f"encoder.layer.{i}."
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            made |= layer(f"{at}attention.{part}", width, width)
        made |= layer(f"{at}attention.output.LayerNorm", width) | layer(f"{at}intermediate.dense", 4 * width, width)
        made |= layer(f"{at}output.dense", width, 4 * width) | layer(f"{at}output.LayerNorm", width)
    return made | layer("pooler.dense", width, width)


def gpt2_tiny(depth: int = 6, width: int = 64) -> Net:
    """Names as nanoGPT has them, with linear layers."""
    made = layer("transformer.wte", 1000, width, bias=False) | layer("transformer.wpe", 128, width, bias=False)
    for i in range(depth):
        at = f"transformer.h.{i}."
        made |= layer(f"{at}ln_1", width) | layer(f"{at}attn.c_attn", 3 * width, width)
        made |= layer(f"{at}attn.c_proj", width, width) | layer(f"{at}ln_2", width)
        made |= layer(f"{at}mlp.c_fc", 4 * width, width) | layer(f"{at}mlp.c_proj", width, 4 * width)
    return made | layer("transformer.ln_f", width) | layer("lm_head", 1000, width, bias=False)


def llama_tiny(depth: int = 6, width: int = 64) -> Net:
    """Names as Hugging Face's LlamaForCausalLM has them."""
    made = layer("model.embed_tokens", 1000, width, bias=False)
    for i in range(depth):
        at = f"model.layers.{i}."
        for part, rows in (("q", width), ("k", width // 4), ("v", width // 4), ("o", width)):
            made |= layer(f"{at}self_attn.{part}_proj", rows, width, bias=False)
        for part, size in (("gate", (3 * width, width)), ("up", (3 * width, width)), ("down", (width, 3 * width))):
            made |= layer(f"{at}mlp.{part}_proj", *size, bias=False)
        made |= layer(f"{at}input_layernorm", width, bias=False)
        made |= layer(f"{at}post_attention_layernorm", width, bias=False)
    return made | layer("model.norm", width, bias=False) | layer("lm_head", 1000, width, bias=False)


def clip_tiny(depth: int = 3, width: int = 64) -> Net:
    """Two towers; names as open_clip has them."""
    made: Net = {"positional_embedding": (77, width), "text_projection": (width, width), "logit_scale": ()}
    made |= {"visual.class_embedding": (width,), "visual.positional_embedding": (50, width)}
    made |= {"visual.proj": (width, width)} | layer("visual.conv1", width, 3, 32, 32, bias=False)
    made |= layer("visual.ln_pre", width)
    for tower in ("visual.transformer", "transformer"):
        for i in range(depth):
            at = f"{tower}.resblocks.{i}."
            made |= layer(f"{at}ln_1", width)
            made |= {f"{at}attn.in_proj_weight": (3 * width, width), f"{at}attn.in_proj_bias": (3 * width,)}
            made |= layer(f"{at}attn.out_proj", width, width) | layer(f"{at}ln_2", width)
            made |= layer(f"{at}mlp.c_fc", 4 * width, width) | layer(f"{at}mlp.c_proj", width, 4 * width)
        made |= layer("visual.ln_post", width) if tower.startswith("visual") else {}
    return made | layer("token_embedding", 1000, width, bias=False) | layer("ln_final", width)


def wav2vec2_tiny(depth: int = 4, width: int = 64) -> Net:
    """Names as Hugging Face's Wav2Vec2Model has them; the positional convolution under weight norm."""
    made: Net = {"masked_spec_embed": (width,)}
    for i, (before, kernel) in enumerate(((1, 10), (32, 3), (32, 3), (32, 2))):
        made |= layer(f"feature_extractor.conv_layers.{i}.conv", 32, before, kernel, bias=False)
        made |= layer(f"feature_extractor.conv_layers.{i}.layer_norm", 32) if i == 0 else {}
    made |= layer("feature_projection.layer_norm", 32) | layer("feature_projection.projection", width, 32)
    at = "encoder.pos_conv_embed.conv."
    made |= {f"{at}bias": (width,), f"{at}parametrizations.weight.original0": (1, 1, 16)}
    made |= {f"{at}parametrizations.weight.original1": (width, 4, 16)} | layer("encoder.layer_norm", width)
    for i in range(depth):
        at = f"encoder.layers.{i}."
        for part in ("k_proj", "v_proj", "q_proj", "out_proj"):
            made |= layer(f"{at}attention.{part}", width, width)
        made |= layer(f"{at}layer_norm", width) | layer(f"{at}feed_forward.intermediate_dense", 4 * width, width)
        made |= layer(f"{at}feed_forward.output_dense", width, 4 * width) | layer(f"{at}final_layer_norm", width)
    return made


def unet_tiny(width: int = 8, depth: int = 4) -> Net:
    """A U-Net with batch norms: inc, down, up, outc."""

    def double(name: str, out: int, before: int) -> Net:
        made = layer(f"{name}.double_conv.0", out, before, 3, 3, bias=False) | batch_norm(f"{name}.double_conv.1", out)
        again = layer(f"{name}.double_conv.3", out, out, 3, 3, bias=False)
        return made | again | batch_norm(f"{name}.double_conv.4", out)

    made = double("inc", width, 3)
    for i in range(1, depth + 1):
        made |= double(f"down{i}.maxpool_conv.1", width * 2**i, width * 2 ** (i - 1))
    for i in range(1, depth + 1):
        wide = width * 2 ** (depth - i)
        made |= {f"up{i}.up.weight": (2 * wide, wide, 2, 2), f"up{i}.up.bias": (wide,)}
        made |= double(f"up{i}.conv", wide, 2 * wide)
    return made | layer("outc.conv", 2, width, 1, 1)


def detector_tiny(width: int = 16) -> Net:
    """A backbone with a pyramid, a region network and box heads, as torchvision's detectors have them."""
    made = layer("backbone.body.conv1", width, 3, 7, 7, bias=False) | batch_norm("backbone.body.bn1", width)
    before = width
    for stage in range(1, 5):
        wide = width * 2 ** (stage - 1)
        for block in range(2):
            at = f"backbone.body.layer{stage}.{block}."
            made |= layer(f"{at}conv1", wide, before, 3, 3, bias=False) | batch_norm(f"{at}bn1", wide)
            made |= layer(f"{at}conv2", wide, wide, 3, 3, bias=False) | batch_norm(f"{at}bn2", wide)
            if before != wide:
                made |= layer(f"{at}downsample.0", wide, before, 1, 1, bias=False)
                made |= batch_norm(f"{at}downsample.1", wide)
            before = wide
    for kind, kernel in (("inner", 1), ("layer", 3)):
        for i in range(4):
            size = (32, width * 2**i, kernel, kernel) if kind == "inner" else (32, 32, kernel, kernel)
            made |= layer(f"backbone.fpn.{kind}_blocks.{i}.0", *size)
    made |= layer("rpn.head.conv.0.0", 32, 32, 3, 3) | layer("rpn.head.cls_logits", 3, 32, 1, 1)
    made |= layer("rpn.head.bbox_pred", 12, 32, 1, 1) | layer("roi_heads.box_head.fc6", 64, 32 * 49)
    made |= layer("roi_heads.box_head.fc7", 64, 64) | layer("roi_heads.box_predictor.cls_score", 91, 64)
    return made | layer("roi_heads.box_predictor.bbox_pred", 364, 64)


def _recurrent(gates: int, depth: int, width: int) -> Net:
    """Names as torch.nn's recurrent layers have them: an embedding, two directions, attention, a head."""
    made = layer("embedding", 1000, width, bias=False)
    for i in range(depth):
        for end in ("", "_reverse"):
            into = width if i == 0 else 2 * width
            made |= {f"rnn.weight_ih_l{i}{end}": (gates * width, into)}
            made |= {f"rnn.weight_hh_l{i}{end}": (gates * width, width)}
            made |= {f"rnn.bias_ih_l{i}{end}": (gates * width,), f"rnn.bias_hh_l{i}{end}": (gates * width,)}
    return made | layer("attention", 2 * width, 2 * width) | layer("norm", 2 * width) | layer("fc", 10, 2 * width)


def lstm_tiny(depth: int = 2, width: int = 32) -> Net:
    """A tagger with an LSTM."""
    return _recurrent(4, depth, width)


def gru_tiny(depth: int = 3, width: int = 24) -> Net:
    """A tagger with a GRU."""
    return _recurrent(3, depth, width)


TEMPLATES: dict[str, Callable[..., Net]] = {
    made.__name__: made
    for made in (
        bert_tiny,
        gpt2_tiny,
        llama_tiny,
        clip_tiny,
        wav2vec2_tiny,
        unet_tiny,
        detector_tiny,
        lstm_tiny,
        gru_tiny,
    )
}
