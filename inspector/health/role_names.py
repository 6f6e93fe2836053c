"""How libraries call what tensors are for. Patterns are for lower case and for a whole segment where `fullmatch` is
used; sources: the libraries' own modules, and the table of synonyms kept with `architectures`."""

from __future__ import annotations

import re

from inspector.checkpoint.bookkeeping import COUNTERS

# GPTQ, AWQ, HQQ, AutoRound, bitsandbytes.
PAYLOADS = frozenset({"qweight", "qzeros", "W_q", "weight_packed", "weight_shape"})
SCALES = frozenset(
    {
        *("scales", "weight_scale", "weight_scale_inv", "weight_scale_2", "input_scale", "output_scale", "act_scale"),
        *("k_scale", "v_scale", "absmax", "nested_absmax", "SCB", "weight_global_scale", "input_global_scale"),
    }
)
# Beside those of `bookkeeping.py`, which identify nothing: counts that say how far something has come.
COUNTER_NAMES = frozenset(
    {
        *COUNTERS,
        "num_updates",
        "decay",
        "step",
        "steps",
        "iteration",
        "iter",
        "global_step",
        "count",
        "queue_ptr",
        "epoch",
    }
)
# The entries of torch.optim's states that lie beside a parameter, as those algorithms name them.
MOMENTS = frozenset(
    {
        *("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "exp_inf", "momentum_buffer", "square_avg", "grad_avg"),
        *("acc_delta", "exp_avg_sq_row", "exp_avg_sq_col", "mu_product", "prev", "step_size", "adam_m", "adam_v"),
    }
)
RUNNING_MEANS = frozenset({"running_mean", "moving_mean", "_mean", "avg_mean", "bn_rm"})
RUNNING_VARS = frozenset({"running_var", "moving_variance", "moving_var", "_variance", "avg_var", "bn_riv"})

MASK = re.compile(r"(.*_)?masks?(_\d+)?|masked_bias|attn_bias|alibi(_slopes)?|slopes|tril|triu|causal_bias|weight_mask")

# Tables that are worked out, not trained.
BUFFERS = frozenset(
    {
        *("inv_freq", "original_inv_freq", "freqs", "freqs_cis", "freqs_cos", "freqs_sin", "cos_cached", "sin_cached"),
        *("cos", "sin", "relative_coords_table", "relative_position_index", "pixel_mean", "pixel_std", "g_idx"),
        *("anchors", "anchor_grid", "strides", "stride", "cell_anchors", "filt", "resample_filter", "queue", "w_avg"),
        *("mean_latent", "latent_avg", "zero_point", "min_val", "max_val", "histogram", "fake_quant_enabled", "eps"),
        *("observer_enabled", "quant_map", "nested_quant_map", "positional_encoding_gaussian_matrix", "betas"),
        *("window", "hann_window", "mel_filters", "dft_mat_real", "dft_mat_imag", "mel_scale", "fb", "logvar"),
        *("lambda_max", "grid", "coords", "image_mean", "image_std"),
    }
)
BUFFER = re.compile(
    r"(^|\.)(blur|upsample|downsample)\.kernel$|noises?\.noise_\d+$|\.noise_const$|(^|[._])rope(_freqs|\.freqs)|rope_freqs\.weight$"
    r"|(^|\.)((sqrt_|log_|posterior_)?(one_minus_)?(recipm?1?_)?alphas?(_cumprod|_hat|s_cumprod)(_prev)?"
    r"|sqrt_(recip|recipm1|one_minus)_alphas_cumprod|posterior_(variance|log_variance_clipped|mean_coef[12]))$"
    r"|cell_anchors\.\d+$|fourier\w*\.weight$|time_proj\.weight$|forward_basis(_buffer)?$|inverse_basis$|rotary_emb\.\w+$"
)
ADAPTER_SECOND = re.compile(r"lora_(embedding_)?B|lora[_.]up|hada_w2_|lokr_w1(?!_)|lokr_w2(?!_a)")

TOKENS = frozenset({"cls_token", "class_token", "class_embedding", "latents", "probe", "cls_embed", "class_emb"})
TOKEN = re.compile(
    r"(\w+_)?(mask|register|iou|storage|query|dist|distillation|cls|class|prompt|reg|global)_tokens?|null_\w+emb\w*|masked_spec_embed"
)
POSITION = re.compile(
    r"(\w*_)?(absolute_|relative_|learned_)?(pos|position|positional|positions)_(embed\w*|emb|embs|embd|encoding\w*|enc|"
    r"table|bias(_table)?|embeddings?)(_\w+)?|embed_positions|wpe|pe|rel_pos(_[hwtd])?(_bias)?(_table)?|"
    r"relative_(position|attention)_bias(_table)?|attention_biases|rel_embeddings|(spatial|temporal|class)_pos|(row|col)_embed|rel_embedding|"
    r"position_embd|pos_embed_(spatial|temporal|win|window|class)|pos_block|r_[wr]_bias|pos_bias_[uv]"
)
EMBEDDING = re.compile(
    r"wte|shared|embed|embeds|emb|lut|codebook|embeddings?|tok_embeddings|token_embd|embed_(?!out|positions|dim)\w+|word_emb\w*|"
    r"(?!patch_|bbox_|time_|pos_)\w+_embed|\w+_(embedding|embeddings|emb)(_\w+)?|embedder|word_embed\w*|(query|label|class|tok|token|char|type|user|item)_embed"
)
BIAS = re.compile(r"bias|(\w+_)?bias(_(ih|hh|hr)(_l\d+)?(_reverse)?)?|bias_[kv]|bias_(ih|hh)\w*|diff_b")
NORM = re.compile(r"norm|^ln|^bn\d*|_(ln|bn)\d*$|^gn\d*$|layernorm|rms|^group_?norm|_bn_s$")
ACTIVATION = re.compile(r"prelu|^act|activation|snake")
LAYER_SCALE = re.compile(
    r"(layer_?scale|ls|res_?scale)(_?\d+)?(_\w+)?|lambda_?\d+|gamma_?\d+|layer_scale_parameter|resweight|ia3_l|"
    r"vera_lambda_[bd]|(cross_attn_)?(attn|mlp|ffw?|ff)_gate|alpha_(xattn|dense)|rezero|skip_scale"
)
FACTORS = frozenset(
    {"logit_scale", "logit_bias", "temperature", "tau", "alpha", "scale", "scaling", "beta", "gain", "scale_weight"}
)
RECURRENT = re.compile(r"weight_(ih|hh|hr)(_l\d+)?(_reverse)?|recurrent_kernel|[WR]_(ih|hh)")
WEIGHT = re.compile(r"weight|kernel|w|W|weight_v|weight_orig|weight_bar|original[1]?|weight_raw|pointwise_kernel")
MATRIX = re.compile(
    r"(\w+_)?proj(ection)?(_weight)?|in_proj_weight|w\d+|(\w+_)?weight|onnx::(matmul|gemm)_\d+|out_proj|wi(_\d)?|wo|w[qkvo]"
)
EXPERTS = re.compile(r"experts?[._]|_exps?\.|moe")
UPWARDS = re.compile(r"deconv|transpose|convt|upconv|up_conv")
DEPTHWISE = re.compile(r"depthwise|dw|depth_wise")
# A number that no pattern over whole names knows: names of thousands of layers that differ in such numbers are for the
# same. Those that one knows are LyCORIS's "_w1", "_w2", "_t1", "_t2" and the diffusion schedules' "coef1", "coef2".
NUMBER = re.compile(r"(?<!_[wt])(?<!coef)(?<!\d)\d+", re.IGNORECASE)
