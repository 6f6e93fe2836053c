"""What the parts of networks are called by different authors: one table, with the sources of each row.

Three things. *Roles*: what a module is for, by the end of its path as each library writes it; a name that stands in
several rows says only that it is one of these. *Words*: single words of one meaning, wherever they stand. *Opposites*:
words that no two names of one part can differ by.

Names are written as their libraries write them; `words.py` reads both sides of a comparison in one way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Role:
    """What a module is for. inside: "attn" or "mlp" where it only occurs in one, to choose among the roles of a name.

    names: ends of paths, a space between them. sources: where they were read.
    """

    id: str
    names: str
    sources: str
    inside: str = ""


_LLAMA_CPP = "gguf tensor_mapping.py"
_HF = "transformers modeling files"
_TIMM = "pytorch-image-models"

ROLES: tuple[Role, ...] = (
    Role(
        "query",
        "q query q_proj to_q wq q_lin query_proj linear_q attn_q q_linear query_layer fc_q w_qs w_q linear_query",
        f"{_HF}: Llama, BERT, DistilBERT; diffusers; NeMo; MLX; {_LLAMA_CPP}",
        "attn",
    ),
    Role(
        "key",
        "k key k_proj to_k wk k_lin key_proj linear_k attn_k k_linear key_layer fc_k w_ks w_k linear_keys",
        f"{_HF}: Llama, BERT, DistilBERT; diffusers; NeMo; MLX; {_LLAMA_CPP}",
        "attn",
    ),
    Role(
        "value",
        "v value v_proj to_v wv v_lin value_proj linear_v attn_v v_linear value_layer fc_v w_vs w_v linear_values",
        f"{_HF}: Llama, BERT, DistilBERT; diffusers; NeMo; MLX; {_LLAMA_CPP}",
        "attn",
    ),
    Role(
        "query key value",
        "qkv to_qkv qkv_proj wqkv kqv kvq qvk vqk vkq c_attn in_proj query_key_value w_pack linear_qkv attn_qkv"
        " attn_in",
        f"{_TIMM}; lucidrains vit-pytorch; {_HF}: GPT-2, GPT-NeoX; torch MultiheadAttention; Megatron-LM; {_LLAMA_CPP}",
        "attn",
    ),
    Role(
        "attention output",
        (
            "proj out_proj to_out.0 to_out o_proj wo o c_proj out_lin attention.output.dense attn.output.dense "
            "self_attention.dense attention.dense linear_proj linear_out attn_output proj_attn dense out_projection "
            "output_projection final_linear attn_out attn.out attention.out attn.output attention.output self_attn.out"
        ),
        f"{_TIMM}; diffusers; {_HF}: Llama, GPT-2, DistilBERT, BERT, GPT-NeoX; Megatron-LM; espnet; {_LLAMA_CPP}",
        "attn",
    ),
    Role(
        "first of the MLP",
        (
            "fc1 c_fc fc_in lin1 linear1 dense1 intermediate.dense intermediate_dense dense_h_to_4h linear_fc1 wi w1 "
            "mlp.0 net.0 net.0.proj ff.0 ffn.0 feed_forward.0 ffn.layers.0.0 ffn_up up_proj fc_up dense.0 layers.0 "
            "dense "
            "expand"
        ),
        f"{_TIMM}; {_HF}: GPT-2, GPT-J, BERT, T5, GPT-NeoX; torch Transformer; SAM; Megatron-LM; mmpretrain",
        "mlp",
    ),
    Role(
        "last of the MLP",
        (
            "fc2 c_proj fc_out lin2 linear2 dense2 output.dense output_dense dense_4h_to_h linear_fc2 wo w2 mlp.2 "
            "mlp.3 "
            "net.2 net.3 ff.2 ff.3 ffn.2 ffn.3 feed_forward.2 feed_forward.3 ffn.layers.1 down_proj ffn_down fc_down "
            "dense.1 dense.2 dense contract"
        ),
        f"{_TIMM}; {_HF}: GPT-2, GPT-J, BERT, T5, GPT-NeoX; torch Transformer; SAM; Megatron-LM; mmpretrain",
        "mlp",
    ),
    # w1, w2, w3 mean three things (Meta, EVA, Qwen-1): `words.py` reads them by what stands beside them.
    Role(
        "gate",
        "gate_proj wi_0 fc1_g fc12 c_fc_0 c_fc2 gated_layers_w ffn_gate fc_gate",
        f"{_HF}: Llama, T5, Exaone, Jais, Nomic; {_TIMM}; {_LLAMA_CPP}",
        "mlp",
    ),
    Role(
        "up",
        "up_proj wi_1 fc1_x fc11 v1 ffn_up fc_up c_fc_1",
        f"{_HF}: Llama, T5, Exaone, DBRX, Nomic; {_TIMM}; {_LLAMA_CPP}",
        "mlp",
    ),
    Role(
        "down",
        "down_proj ffn_down wo c_proj fc_down fc2 output.dense",
        f"{_HF}: Llama, T5, Exaone; {_TIMM}; {_LLAMA_CPP}",
        "mlp",
    ),
    Role(
        "norm before the attention",
        (
            "norm1 ln_1 layer_norm1 input_layernorm input_norm attention_norm attn_norm norm_attn layernorm_before "
            "self_attn_layer_norm norm_mha ln_attn pre_attention_norm pre_attn_norm attn_ln norm0 self_attn_norm"
        ),
        f"{_TIMM}; {_HF}: Llama, ViT, BART; Meta's llama; CLIP; espnet; {_LLAMA_CPP}",
    ),
    Role(
        "norm after the attention",
        (
            "norm1 ln_1 layer_norm1 sa_layer_norm attention_norm attn_norm norm_attn ln_attn "
            "attention.output.layer_norm attention.layer_norm "
            "post_attention_layernorm post_attn_norm post_attention_norm self_attn_layer_norm"
        ),
        f"{_HF}: BERT, DistilBERT, Gemma 2, OLMo 2; torch Transformer; fairseq",
    ),
    Role(
        "norm before the MLP",
        (
            "norm2 norm3 ln_2 ln_3 layer_norm2 post_attention_layernorm ffn_norm layernorm_after final_layer_norm "
            "pre_feedforward_layernorm pre_mlp_layernorm norm_ff ln_mlp ln_ffn mlp_norm ffn_ln mlp_ln"
        ),
        f"{_TIMM}; {_HF}: Llama, ViT, Gemma 2; Meta's llama; CLIP; fairseq; espnet; {_LLAMA_CPP}",
    ),
    Role(
        "norm after the MLP",
        (
            "norm2 norm3 ln_2 ln_3 layer_norm2 full_layer_layer_norm "
            "output.layer_norm output_layer_norm ffn_norm norm_ff ln_mlp mlp_norm ln_ffn "
            "post_feedforward_layernorm final_layer_norm"
        ),
        f"{_HF}: BERT, DistilBERT, Gemma 2; torch Transformer; fairseq",
    ),
    Role(
        "norm of the cross attention",
        "norm2 ln_2 layer_norm2 encoder_attn_layer_norm cross_attn_layer_norm cross_attn_norm norm_cross ln_cross",
        f"torch Transformer; fairseq; {_HF}: BART, DETR, Whisper",
    ),
    Role(
        "self attention",
        "self_attn attn1 multihead_attn self_attention_block mha1",
        f"torch Transformer; {_HF}: BART; diffusers",
    ),
    Role(
        "cross attention",
        "cross_attn multihead_attn encoder_attn attn2 src_attn enc_dec_attn context_attn mha2",
        f"torch Transformer; {_HF}: BART, T5; diffusers; espnet",
    ),
    Role(
        "last norm",
        (
            "ln_f final_layer_norm final_norm ln_post fc_norm encoder.layer_norm encoder.norm encoder.ln output_norm "
            "last_norm ln_final norm_f post_layernorm norm_final"
        ),
        f"{_HF}: GPT-2, Llama, ViT; CLIP; {_TIMM}; {_LLAMA_CPP}",
    ),
    Role(
        "word embedding",
        (
            "wte embed_tokens word_embeddings tok_embeddings embed_in token_embd token_embedding word_embedding "
            "tok_emb "
            "token_embed token_emb word_emb shared tok_embed"
        ),
        f"{_HF}: GPT-2, Llama, BERT, GPT-NeoX, T5; Meta's llama; CLIP; minGPT; {_LLAMA_CPP}",
    ),
    Role(
        "position embedding",
        (
            "wpe pos_embed pos_embedding position_embeddings position_embedding positional_embedding embed_positions "
            "pos_emb pos_enc positional_encoding position_embd"
        ),
        f"{_HF}: GPT-2, BERT, BART; {_TIMM}; torchvision; CLIP; {_LLAMA_CPP}",
    ),
    Role(
        "class token",
        "cls_token class_token class_embedding cls_embedding cls_emb",
        f"{_TIMM}; torchvision; CLIP; {_HF}: ViT",
    ),
    Role(
        "segment embedding",
        "token_type_embeddings segment_embeddings segment_embedding type_embeddings token_types",
        f"{_HF}: BERT; {_LLAMA_CPP}",
    ),
    Role(
        "patch embedding",
        (
            "patch_embed.proj conv_proj patch_embeddings.projection patch_embed.projection to_patch_embedding "
            "patch_embedding patchify patch_proj visual.conv1 patch_embed"
        ),
        f"{_TIMM}; torchvision; {_HF}: ViT; mmpretrain; lucidrains vit-pytorch; CLIP",
    ),
    Role(
        "head",
        (
            "lm_head embed_out output_layer head.fc head heads.head classifier score cls_head.fc class_head "
            "clf_head fc "
            "fc_out top logits output decoder cls_head predictions outputs clf classification out classifier_head "
            "last_head final_fc last_linear out_head output_head final_conv conv_out out_conv conv_last last_conv "
            "output_conv conv_post outc final out_proj generator generator.proj predict_layer prediction_layer predict"
        ),
        f"{_TIMM}; torchvision; {_HF}: GPT-2, GPT-NeoX, BERT, Llama; Meta's llama; mmpretrain; Cadene's models",
    ),
    Role(
        "first convolution",
        "conv_in init_conv in_conv conv_first first_conv input_conv conv_pre inc",
        f"diffusers; lucidrains denoising-diffusion-pytorch; BasicSR; milesial Pytorch-UNet; {_TIMM}",
    ),
    Role(
        "generator",
        "generator gen net_g g_net",
        "junyanz's CycleGAN and pix2pix; PyTorch's DCGAN tutorial; StyleGAN in rosinality's code",
    ),
    Role(
        "discriminator",
        "discriminator disc net_d d_net",
        "junyanz's CycleGAN and pix2pix; PyTorch's DCGAN tutorial; StyleGAN in rosinality's code",
    ),
    Role(
        "first critic",
        "critic1 critic_1 q1 qf1 q_1 qf_1 q_net1",
        "spinning up; CleanRL; stable-baselines3; rlkit",
    ),
    Role(
        "second critic",
        "critic2 critic_2 q2 qf2 q_2 qf_2 q_net2",
        "spinning up; CleanRL; stable-baselines3; rlkit",
    ),
    Role(
        "shortcut",
        "downsample shortcut identity_conv conv_shortcut branch1 skip skip_conv identity residual_conv conv_skip proj",
        f"torchvision; detectron2; Caffe2; diffusers; Keras applications; {_TIMM}",
    ),
)

# Roles that only the top of a network has: the same words inside a block mean something else.
AT_THE_TOP = frozenset(
    {"head", "word embedding", "first convolution", "generator", "discriminator", "first critic", "second critic"}
)
# Longer ends than this are in no row.
MOST_SEGMENTS = max(name.count(".") for role in ROLES for name in role.names.split()) + 1

# Words of one meaning; the first of a row stands for all. Sources: the libraries of the rows above, and forks of them.
_WORDS: tuple[str, ...] = (
    "encoder enc",
    "decoder dec",
    "attn attention attend sa mha msa selfattn selfattention att attentions attns timemixing",
    "conv cv convolution convolutions convs conv1d conv2d conv3d cnn convnet",
    "norm ln bn gn layernorm batchnorm norms normalization groupnorm nrm rmsnorm",
    "embed emb embedding embeddings embd embeds embedder lut",
    "proj projection projector prj",
    "mlp ffn ff feedforward mlps ffw ffs ffns channelmixing",
    "fc lin linear dense fcs linears lins full",
    "block blocks layer layers stage stages stack stacks unit units h resblocks blk blks res lyr resblock",
    "query q",
    "key k",
    "value v",
    "pos position positional positions",
    "cls class classification",
    "token tokens tok",
    "head classifier heads clf top",
    "shortcut downsample downsampling skip ds",
    "out output outputs outp",
    "in input inp inputs",
    "pre before",
    "post after",
    "final last",
    "first initial",
    "image img visual vision pixel",
    "text txt language lang textual",
    "depthwise dw dwconv",
    "pointwise pw pwconv",
    "expand expansion",
    "reduce reduction squeeze",
    "features feature feats trunk backbone body base feat extractor",
    "stem root",
    "bottleneck mid middle bridge",
    "gate gating gated",
    "scale gamma gammas scales",
    "patch patches",
    "student online",
    "teacher momentum ema",
    "mean mu",
    "std sigma stddev",
    "logvar logvariance",
    "logstd logsigma",
    "variance var",
    "source src",
    "target tgt trg dst",
    "forward fwd",
    "backward bwd reverse",
    # stable-baselines3, OpenAI's spinning up and baselines.
    "actor policy pi policynet",
    "critic vf valuenet valuefunction valuehead qf qnet",
    "rnn lstm gru recurrent rnns lstms grus",
    "grad grads gradient gradients",
    "mask masks",
    "time timestep timesteps temb",
    "real re",
    "imag im imaginary",
    # torchvision's FPN beside detectron2's and mmdet's.
    "lateral laterals inner",
    "generator gen",
    "discriminator disc",
    "context ctx passage",
    "aux auxiliary",
    "expert experts",
)
WORDS: Mapping[str, str] = {word: row.split()[0] for row in _WORDS for word in row.split()}
# Words that say nothing of a part: every name may have them or not.
EMPTY = frozenset({"module", "model", "net", "network", "self", "multi", "main", "the", "param", "params", "c", "to"})

# Of two names of one part none has a word of one side and the other a word of the other side.
OPPOSITES: tuple[tuple[frozenset[str], ...], ...] = tuple(
    tuple(frozenset(words.split()) for words in row)
    for row in (
        ("encoder", "decoder"),
        ("query", "key", "value"),
        ("pre", "post"),
        ("in", "out"),
        ("up", "down", "gate"),
        ("student", "teacher"),
        ("image", "text", "audio"),
        ("source", "target"),
        ("forward", "backward"),
        ("first", "final"),
        ("attn", "mlp"),
        ("mean", "logvar", "variance", "std", "logstd"),
        ("depthwise", "pointwise"),
        ("expand", "reduce"),
        ("actor", "critic"),
        ("generator", "discriminator"),
        ("hidden", "cell"),
        ("pos", "token", "cls"),
        ("max", "min", "avg"),
        ("start", "end"),
        ("coarse", "fine"),
        ("local", "global"),
        ("content", "style"),
        ("prior", "posterior"),
        ("user", "item"),
        ("question", "context"),
        ("policy", "critic"),
        ("rgb", "flow", "depth", "audio"),
        ("left", "right"),
        ("positive", "negative", "anchor"),
        ("real", "imag"),
        ("low", "high"),
        ("shared", "private"),
        ("scale", "shift"),
        ("reward", "cost", "critic"),
        ("proj", "predictor"),
    )
)
# Words that name a part of a system that has others of the same layers.
PARTS = frozenset(
    {"encoder", "decoder", "student", "teacher", "image", "text", "audio", "source", "target", "actor", "critic"}
    | {"generator", "discriminator", "coarse", "fine", "content", "style", "prior", "posterior", "user", "item"}
    | {"question", "context", "policy", "predictor", "projector", "head", "query", "key", "local", "global"}
)

# Words of one side that go together without meaning the same: a U-Net's encoder goes down.
BESIDE: tuple[tuple[frozenset[str], ...], ...] = (
    (frozenset({"encoder", "source", "down"}), frozenset({"decoder", "target", "up"})),
    (frozenset({"mlp", "fc"}),),
)
