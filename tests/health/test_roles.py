"""Roles by the names, shapes and types that libraries really write."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from inspector.checkpoint.types import Encoding, Shape, TensorInfo
from inspector.health import roles
from inspector.health.roles import Role, roles_of

Row = tuple[str, Shape, Role] | tuple[str, Shape, Role, str]


def _info(name: str, shape: Shape, dtype: str = "float32") -> TensorInfo:
    return TensorInfo(name=name, path=(name,), shape=shape, dtype=dtype, nbytes=0, storage_id=None)


def _check(rows: tuple[Row, ...]) -> None:
    tensors = [_info(row[0], row[1], row[3] if len(row) == 4 else "float32") for row in rows]
    found = roles_of(tensors)
    assert {t.name: found[t.path] for t in tensors} == {row[0]: row[2] for row in rows}


TORCHVISION: tuple[Row, ...] = (
    ("conv1.weight", (64, 3, 7, 7), Role.CONV),
    ("bn1.weight", (64,), Role.NORM_SCALE),
    ("bn1.bias", (64,), Role.NORM_SHIFT),
    ("bn1.running_mean", (64,), Role.RUNNING_MEAN),
    ("bn1.running_var", (64,), Role.RUNNING_VAR),
    ("bn1.num_batches_tracked", (), Role.COUNTER, "int64"),
    ("layer2.0.downsample.1.weight", (128,), Role.NORM_SCALE),
    ("layer2.0.downsample.1.bias", (128,), Role.NORM_SHIFT),
    ("layer2.0.downsample.1.running_mean", (128,), Role.RUNNING_MEAN),
    ("layer2.0.downsample.1.running_var", (128,), Role.RUNNING_VAR),
    ("features.2.conv.1.0.weight", (128, 1, 3, 3), Role.DEPTHWISE),
    ("fc.weight", (1000, 512), Role.LINEAR),
    ("fc.bias", (1000,), Role.BIAS),
    ("class_token", (1, 1, 768), Role.TOKEN),
    ("encoder.pos_embedding", (1, 197, 768), Role.POSITION),
    ("encoder.layers.encoder_layer_0.ln_1.weight", (768,), Role.NORM_SCALE),
    ("encoder.layers.encoder_layer_0.self_attention.in_proj_weight", (2304, 768), Role.LINEAR),
    ("encoder.layers.encoder_layer_0.self_attention.in_proj_bias", (2304,), Role.BIAS),
    ("encoder.layers.encoder_layer_0.self_attention.out_proj.weight", (768, 768), Role.LINEAR),
    ("features.1.0.layer_scale", (96, 1, 1), Role.LAYER_SCALE),
    ("features.1.0.attn.relative_position_bias_table", (169, 3), Role.POSITION),
    ("features.1.0.attn.relative_position_index", (2401,), Role.BUFFER, "int64"),
    ("features.1.0.attn.logit_scale", (3, 1, 1), Role.SCALE),
    ("roi_heads.mask_predictor.mask_fcn_logits.weight", (91, 256, 1, 1), Role.CONV),
)

TIMM: tuple[Row, ...] = (
    ("cls_token", (1, 1, 768), Role.TOKEN),
    ("reg_token", (1, 4, 768), Role.TOKEN),
    ("mask_token", (1, 1, 768), Role.TOKEN),
    ("pos_embed", (1, 197, 768), Role.POSITION),
    ("patch_embed.proj.weight", (768, 3, 16, 16), Role.CONV),
    ("patch_embed.proj.bias", (768,), Role.BIAS),
    ("blocks.0.norm1.weight", (768,), Role.NORM_SCALE),
    ("blocks.0.norm1.bias", (768,), Role.NORM_SHIFT),
    ("blocks.0.attn.qkv.weight", (2304, 768), Role.LINEAR),
    ("blocks.0.attn.q_bias", (768,), Role.BIAS),
    ("blocks.0.attn.rel_pos_h", (27, 64), Role.POSITION),
    ("blocks.0.ls1.gamma", (768,), Role.LAYER_SCALE),
    ("blocks.0.gamma_1", (768,), Role.LAYER_SCALE),
    ("stages.0.blocks.0.gamma", (96,), Role.LAYER_SCALE),
    ("stages.0.blocks.0.conv_dw.weight", (96, 1, 7, 7), Role.DEPTHWISE),
    ("norm_pre.weight", (768,), Role.NORM_SCALE),
    ("fc_norm.weight", (768,), Role.NORM_SCALE),
    ("head.fc.weight", (1000, 768), Role.LINEAR),
)

TRANSFORMERS: tuple[Row, ...] = (
    ("bert.embeddings.position_ids", (1, 512), Role.BUFFER, "int64"),
    ("bert.embeddings.word_embeddings.weight", (30522, 768), Role.EMBEDDING),
    ("bert.embeddings.position_embeddings.weight", (512, 768), Role.POSITION),
    ("bert.embeddings.token_type_embeddings.weight", (2, 768), Role.EMBEDDING),
    ("bert.embeddings.LayerNorm.gamma", (768,), Role.NORM_SCALE),
    ("bert.embeddings.LayerNorm.beta", (768,), Role.NORM_SHIFT),
    ("bert.encoder.layer.0.attention.self.query.weight", (768, 768), Role.LINEAR),
    ("transformer.wte.weight", (50257, 768), Role.EMBEDDING),
    ("transformer.wpe.weight", (1024, 768), Role.POSITION),
    ("transformer.h.0.attn.bias", (1, 1, 1024, 1024), Role.MASK),
    ("transformer.h.0.attn.masked_bias", (), Role.MASK),
    ("transformer.h.0.attn.c_attn.weight", (768, 2304), Role.LINEAR),
    ("transformer.h.0.attn.c_attn.bias", (2304,), Role.BIAS),
    ("transformer.h.0.ln_1.weight", (768,), Role.NORM_SCALE),
    ("model.embed_tokens.weight", (32000, 4096), Role.EMBEDDING),
    ("model.layers.0.self_attn.q_proj.weight", (4096, 4096), Role.LINEAR),
    ("model.layers.0.self_attn.rotary_emb.inv_freq", (64,), Role.BUFFER),
    ("model.layers.0.input_layernorm.weight", (4096,), Role.NORM_SCALE),
    ("model.layers.0.mlp.experts.gate_up_proj", (8, 4096, 2048), Role.LINEAR),
    ("model.norm.weight", (4096,), Role.NORM_SCALE),
    ("lm_head.weight", (32000, 4096), Role.LINEAR),
    ("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", (32, 8), Role.POSITION),
    ("shared.weight", (32128, 512), Role.EMBEDDING),
    ("decoder.embed_positions.weight", (448, 384), Role.POSITION),
    ("text_projection", (512, 512), Role.LINEAR),
    ("logit_scale", (), Role.SCALE),
    ("encoder.layer.0.layer_scale1.lambda1", (768,), Role.LAYER_SCALE),
    ("backbone.layers.0.norm.weight", (768,), Role.NORM_SCALE),
    ("backbone.layers.0.mixer.conv1d.weight", (1536, 1, 4), Role.DEPTHWISE),
)

DIFFUSERS: tuple[Row, ...] = (
    ("conv_in.weight", (320, 4, 3, 3), Role.CONV),
    ("time_embedding.linear_1.weight", (1280, 320), Role.LINEAR),
    ("time_embedding.linear_1.bias", (1280,), Role.BIAS),
    ("down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_q.weight", (320, 320), Role.LINEAR),
    ("down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_out.0.weight", (320, 320), Role.LINEAR),
    ("down_blocks.0.resnets.0.norm1.weight", (320,), Role.NORM_SCALE),
    ("down_blocks.0.resnets.0.norm1.bias", (320,), Role.NORM_SHIFT),
    ("controlnet_down_blocks.0.weight", (320, 320, 1, 1), Role.CONV),
    ("transformer_blocks.0.norm1.linear.weight", (6912, 1152), Role.LINEAR),
    ("transformer_blocks.0.norm1.linear.bias", (6912,), Role.BIAS),
    ("time_proj.weight", (256,), Role.BUFFER),
    ("pos_embed.proj.weight", (1152, 4, 2, 2), Role.CONV),
    ("alphas_cumprod", (1000,), Role.BUFFER),
    ("sqrt_one_minus_alphas_cumprod", (1000,), Role.BUFFER),
    ("posterior_mean_coef1", (1000,), Role.BUFFER),
)

SEGMENT_ANYTHING: tuple[Row, ...] = (
    ("image_encoder.pos_embed", (1, 64, 64, 768), Role.POSITION),
    ("image_encoder.blocks.0.attn.rel_pos_h", (27, 64), Role.POSITION),
    ("image_encoder.neck.1.weight", (256,), Role.NORM_SCALE),
    ("image_encoder.neck.1.bias", (256,), Role.NORM_SHIFT),
    ("prompt_encoder.pe_layer.positional_encoding_gaussian_matrix", (2, 128), Role.BUFFER),
    ("prompt_encoder.not_a_point_embed.weight", (1, 256), Role.EMBEDDING),
    ("mask_decoder.mask_tokens.weight", (4, 256), Role.EMBEDDING),
    ("mask_decoder.output_upscaling.0.weight", (256, 64, 2, 2), Role.TRANSPOSED),
    ("mask_decoder.output_upscaling.0.bias", (64,), Role.BIAS),
)

KERAS_AND_FLAX: tuple[Row, ...] = (
    ("conv2d.kernel", (3, 3, 3, 32), Role.CONV),
    ("batch_normalization.gamma", (32,), Role.NORM_SCALE),
    ("batch_normalization.beta", (32,), Role.NORM_SHIFT),
    ("batch_normalization.moving_mean", (32,), Role.RUNNING_MEAN),
    ("batch_normalization.moving_variance", (32,), Role.RUNNING_VAR),
    ("lstm.kernel", (10, 64), Role.RECURRENT),
    ("lstm.recurrent_kernel", (16, 64), Role.RECURRENT),
    ("params.Dense_0.kernel", (784, 256), Role.LINEAR),
    ("params.LayerNorm_0.scale", (64,), Role.NORM_SCALE),
    ("batch_stats.BatchNorm_0.mean", (64,), Role.RUNNING_MEAN),
    ("batch_stats.BatchNorm_0.var", (64,), Role.RUNNING_VAR),
    ("params.Embed_0.embedding", (100, 64), Role.EMBEDDING),
)

DETECTRON2: tuple[Row, ...] = (
    ("pixel_mean", (3, 1, 1), Role.BUFFER),
    ("backbone.bottom_up.res2.0.conv1.weight", (64, 64, 1, 1), Role.CONV),
    ("backbone.bottom_up.res2.0.conv1.norm.weight", (64,), Role.NORM_SCALE),
    ("backbone.bottom_up.res2.0.conv1.norm.bias", (64,), Role.NORM_SHIFT),
    ("backbone.bottom_up.res2.0.conv1.norm.running_mean", (64,), Role.RUNNING_MEAN),
    ("backbone.bottom_up.res2.0.conv1.norm.running_var", (64,), Role.RUNNING_VAR),
    ("proposal_generator.anchor_generator.cell_anchors.0", (3, 4), Role.BUFFER),
    ("roi_heads.mask_head.deconv.weight", (256, 256, 2, 2), Role.TRANSPOSED),
    ("roi_heads.mask_head.predictor.weight", (80, 256, 1, 1), Role.CONV),
    ("roi_heads.box_predictor.cls_score.weight", (81, 1024), Role.LINEAR),
)

RECURRENT_AND_ATTENTION: tuple[Row, ...] = (
    ("rnn.weight_ih_l0", (64, 10), Role.RECURRENT),
    ("rnn.weight_hh_l0_reverse", (64, 16), Role.RECURRENT),
    ("rnn.bias_ih_l0", (64,), Role.BIAS),
    ("cell.weight_hh", (64, 16), Role.RECURRENT),
    ("attn.in_proj_weight", (96, 32), Role.LINEAR),
    ("attn.bias_k", (1, 1, 32), Role.BIAS),
    ("attn.q_proj_weight", (32, 32), Role.LINEAR),
    ("gen.0.weight", (100, 512, 4, 4), Role.TRANSPOSED),
    ("gen.1.weight", (512,), Role.NORM_SCALE),
    ("gen.1.running_var", (512,), Role.RUNNING_VAR),
    ("up.weight", (64, 32, 2, 2), Role.TRANSPOSED),
    ("up.bias", (32,), Role.BIAS),
    ("act.weight", (32,), Role.OTHER),
)

ADAPTERS: tuple[Row, ...] = (
    ("base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", (8, 64), Role.LORA_A),
    ("base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight", (64, 8), Role.LORA_B),
    ("base_model.model.model.layers.0.self_attn.q_proj.lora_B.default.weight", (64, 8), Role.LORA_B),
    ("lora_unet_down_blocks_0.lora_down.weight", (8, 320), Role.LORA_A),
    ("lora_unet_down_blocks_0.lora_up.weight", (320, 8), Role.LORA_B),
    ("lora_unet_down_blocks_0.alpha", (), Role.SCALE),
    ("x.q_proj.lora_magnitude_vector.weight", (64,), Role.SCALE),
    ("lora_unet_mid.hada_w1_a", (8, 320), Role.LORA_A),
    ("lora_unet_mid.hada_w2_a", (8, 320), Role.LORA_B),
)

PRUNED_AND_REPARAMETRISED: tuple[Row, ...] = (
    ("conv1.weight_orig", (8, 3, 3, 3), Role.CONV),
    ("conv1.weight_mask", (8, 3, 3, 3), Role.MASK),
    ("sn.weight_orig", (8, 8), Role.LINEAR),
    ("sn.weight_u", (8,), Role.BUFFER),
    ("sn.weight_v", (8,), Role.BUFFER),
    ("wn.weight_g", (8, 1), Role.SCALE),
    ("wn.weight_v", (8, 4), Role.LINEAR),
    ("pn.parametrizations.weight.original0", (8, 1), Role.SCALE),
    ("pn.parametrizations.weight.original1", (8, 4), Role.LINEAR),
)

QUANTISED: tuple[Row, ...] = (
    ("model.layers.0.q_proj.qweight", (512, 4096), Role.QUANTISED, "int32"),
    ("model.layers.0.q_proj.qzeros", (32, 512), Role.QUANTISED, "int32"),
    ("model.layers.0.q_proj.scales", (32, 4096), Role.SCALE, "float16"),
    ("model.layers.0.q_proj.g_idx", (4096,), Role.BUFFER, "int32"),
    ("int8.weight", (64, 64), Role.QUANTISED, "int8"),
    ("int8.SCB", (64,), Role.SCALE),
    ("mlx.weight", (64, 8), Role.QUANTISED, "uint32"),
    ("mlx.scales", (64, 1), Role.SCALE, "float16"),
    ("mlx.biases", (64, 1), Role.SCALE, "float16"),
    ("fp8.weight", (64, 64), Role.QUANTISED, "float8_e4m3fn"),
    ("fp8.weight_scale_inv", (1, 1), Role.SCALE),
    ("bnb.weight", (2048, 1), Role.QUANTISED, "uint8"),
    ("bnb.weight.absmax", (64,), Role.SCALE),
    ("bnb.weight.quant_map", (16,), Role.BUFFER),
)

GGUF: tuple[Row, ...] = (
    ("token_embd.weight", (32000, 4096), Role.EMBEDDING),
    ("rope_freqs.weight", (64,), Role.BUFFER),
    ("blk.0.attn_norm.weight", (4096,), Role.NORM_SCALE),
    ("blk.0.attn_q.weight", (4096, 4096), Role.LINEAR),
    ("blk.0.attn_q.bias", (4096,), Role.BIAS),
    ("blk.0.ffn_gate_exps.weight", (8, 1024, 4096), Role.LINEAR),
    ("output_norm.weight", (4096,), Role.NORM_SCALE),
    ("output.weight", (32000, 4096), Role.LINEAR),
)

COUNTERS: tuple[Row, ...] = (
    ("model_ema.num_updates", (), Role.COUNTER, "int32"),
    ("model_ema.decay", (), Role.COUNTER),
    ("n_averaged", (), Role.COUNTER, "int64"),
    ("state.0.exp_avg", (8, 8), Role.MOMENT),
    ("state.0.exp_avg_sq", (8, 8), Role.MOMENT),
    ("state.0.step", (), Role.COUNTER),
    ("criterion.weight", (10,), Role.OTHER),
)


@pytest.mark.parametrize(
    "rows",
    [
        *(
            TORCHVISION,
            TIMM,
            TRANSFORMERS,
            DIFFUSERS,
            DETECTRON2,
            SEGMENT_ANYTHING,
            KERAS_AND_FLAX,
            RECURRENT_AND_ATTENTION,
            ADAPTERS,
        ),
        *(PRUNED_AND_REPARAMETRISED, QUANTISED, GGUF, COUNTERS),
    ],
    ids=[
        *("torchvision", "timm", "transformers", "diffusers", "detectron2", "sam", "keras", "recurrent", "adapters"),
        *("pruned", "quantised", "gguf", "counters"),
    ],
)
def test_roles_by_the_names_of_a_library(rows: tuple[Row, ...]) -> None:
    _check(rows)


def test_blocks_of_gguf_are_payloads() -> None:
    packed = TensorInfo(
        name="blk.0.attn_q.weight",
        path=("blk.0.attn_q.weight",),
        shape=(64, 64),
        dtype="uint8",
        nbytes=0,
        storage_id=None,
        layout="quantised_blocks",
        encoding=Encoding(scheme="Q4_K"),
    )
    assert roles_of([packed])[packed.path] is Role.QUANTISED


def test_the_first_layer_for_grey_pictures_is_no_depthwise_one() -> None:
    _check((("conv1.weight", (6, 1, 5, 5), Role.CONV), ("conv2.weight", (16, 6, 5, 5), Role.CONV)))


# What some pattern knows, beside numbers of all kinds.
_SEGMENTS = (
    *("0", "7", "12", "lokr_w1", "lokr_w12", "lokr_w2_a", "hada_w1_b", "hada_t2", "hada_t21", "lora_A", "lora_B"),
    *("lora_down", "lora", "down", "noise_3", "rope_freqs", "fourier2", "experts", "moe_2", "ffn_exps", "blur", "bn1"),
    *("kernel", "norm", "gamma_1", "ls1", "w1", "conv1", "weight", "bias", "running_var", "running_mean", "mean"),
    *("POSTERIOR_mean_Coef2", "posterior_mean_coef3", "cell_anchors", "time_proj", "alpha", "magnitude_vector"),
    *("exp_avg", "scale", "unit3", "unit41", "attn1_bias", "qweight", "scales", "deconv2", "original1", "١"),
)
_SHAPES: tuple[Shape, ...] = ((), (1,), (8,), (8, 4), (4, 1, 3, 3), (8, 4, 3, 3), (1, 1, 5, 5), (8, 4, 3), (0, 4))
_TYPES = ("float32", "float32", "float32", "int8", "int64", "bool", "float8_e4m3fn")


def test_modules_of_one_kind_have_the_roles_of_each_by_itself(seeds: Callable[..., range]) -> None:
    """What is asked once for all names that differ in a number is the same for each of them."""
    for seed in seeds(120, full=4000):
        drawn = random.Random(seed)
        heads = [".".join(drawn.choices(_SEGMENTS, k=drawn.randint(0, 3))) for _ in range(3)]
        names = {
            ".".join(filter(None, (drawn.choice(heads), *drawn.choices(_SEGMENTS, k=drawn.randint(1, 2)))))
            for _ in range(25)
        }
        tensors = [_info(name, drawn.choice(_SHAPES), drawn.choice(_TYPES)) for name in sorted(names)]
        together = roles_of(tensors)
        modules: dict[str, dict[str, TensorInfo]] = {}
        for tensor in tensors:
            module, _, last = tensor.name.rpartition(".")
            modules.setdefault(module, {})[last] = tensor
        places = roles._places(modules)
        single = sum(len(t.shape) >= 3 and t.shape[1] == 1 and t.name.endswith("weight") for t in tensors)
        for tensor in tensors:
            module = tensor.name.rpartition(".")[0]
            scene = roles._scene(tensor, modules[module], places[module], single)
            alone = roles._role(replace(scene, pattern=tensor.name))
            assert together[tensor.path] is alone, tensor.name
