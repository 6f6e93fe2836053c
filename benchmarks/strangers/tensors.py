"""What changes the tensors: heads, fused and split, layouts, gates, weight norm, grids, folding, adapters."""

from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn

from .base import case, drop, pair, pre, ren, rnd, sd, shake, untrained
from .nets import *

IMG = (4, 3, 16, 16)


def alt(t, pattern, *others):
    """Places that may hold the value or one of `others` (None: stay untrained)."""
    import re

    return OrderedDict((k, (v, *others) if re.search(pattern, k) else v) for k, v in t.items())


# --- heads ---------------------------------------------------------------------------------------------------------
@case("head of another size", "size mismatch for fc.weight: [1000, 512] from checkpoint, [5, 512] in current model")
def head_1000_to_5():
    t, m = pair(TinyResNet, 201, IMG)
    s = OrderedDict(t)
    s["fc.weight"], s["fc.bias"] = rnd(1, 1000, 64), rnd(2, 1000)
    return pre(s, "module."), m, untrained(t, "^fc")


@case("head of another size", "last_linear of 1000 classes, target has fc for 4 under another name")
def head_other_name_and_size():
    t, m = pair(lambda: TinyResNet(classes=4), 202, IMG)
    s = drop(t, "^fc")
    s["last_linear.weight"], s["last_linear.bias"] = rnd(1, 1000, 64), rnd(2, 1000)
    return s, m, untrained(t, "^fc")


@case("head of another size", "BERT: num_labels 2 in the file, 3 in the model")
def bert_labels():
    t, m = pair(BertHead, 203)
    s = OrderedDict(t)
    s["classifier.weight"], s["classifier.bias"] = rnd(1, 2, 24), rnd(2, 2)
    return s, m, untrained(t, "^classifier")


@case("head of another size", "Faster R-CNN predictor: cls_score and bbox_pred both of other size")
def rcnn_predictor():
    t, m = pair(
        lambda: of(
            backbone=SmallCNN(),
            roi_heads__box_head__fc6=L(5, 20),
            roi_heads__box_predictor__cls_score=L(20, 3),
            roi_heads__box_predictor__bbox_pred=L(20, 12),
        ),
        204,
    )
    s = OrderedDict(t)
    s["roi_heads.box_predictor.cls_score.weight"], s["roi_heads.box_predictor.cls_score.bias"] = (
        rnd(1, 91, 20),
        rnd(2, 91),
    )
    s["roi_heads.box_predictor.bbox_pred.weight"], s["roi_heads.box_predictor.bbox_pred.bias"] = (
        rnd(3, 364, 20),
        rnd(4, 364),
    )
    return s, m, untrained(t, "predictor")


@case("head of another size", "YOLO output convolution: 255 against 24 channels")
def yolo_output():
    t, m = pair(Yolo, 205, (2, 3, 32, 32))
    s = OrderedDict(t)
    s["model.4.weight"], s["model.4.bias"] = rnd(1, 85, 16, 1, 1), rnd(2, 85)
    return {"model": s}, m, untrained(t, r"^model\.4")


@case("head removed", "fc replaced by nn.Identity in the target: file has fc")
def target_without_fc():
    t, m = pair(lambda: TinyResNet(classes=0), 206, IMG)
    s = OrderedDict(t)
    s["fc.weight"], s["fc.bias"] = rnd(1, 10, 64), rnd(2, 10)
    return pre(s, "module."), m, t


@case("head removed", "DeiT distilled file into plain ViT: head_dist and dist_token, pos_embed one longer")
def deit_distilled():
    t, m = pair(Vit, 207)
    s = OrderedDict(t)
    s["head_dist.weight"], s["head_dist.bias"] = rnd(1, 5, 24), rnd(2, 5)
    s["dist_token"] = rnd(3, 1, 1, 24)
    p = t["pos_embed"]
    s["pos_embed"] = torch.cat([p[:, :1], rnd(4, 1, 1, 24), p[:, 1:]], 1)
    return {"model": s}, m, t


@case("head removed", "BertForPreTraining into BertModel: cls.predictions and seq_relationship stay out")
def bert_pretraining_to_base():
    t, m = pair(HFBert, 208)
    s = pre(t, "bert.")
    for k, v in {
        "cls.predictions.bias": rnd(1, 47),
        "cls.predictions.transform.dense.weight": rnd(2, 24, 24),
        "cls.predictions.transform.dense.bias": rnd(3, 24),
        "cls.predictions.transform.LayerNorm.weight": rnd(4, 24),
        "cls.predictions.transform.LayerNorm.bias": rnd(5, 24),
        "cls.seq_relationship.weight": rnd(6, 2, 24),
        "cls.seq_relationship.bias": rnd(7, 2),
    }.items():
        s[k] = v
    s["cls.predictions.decoder.weight"] = t["embeddings.word_embeddings.weight"]
    return s, m, t


@case("head removed", "Inception-like AuxLogits left out by aux_logits=False")
def inception_aux():
    t, m = pair(
        lambda: of(
            Conv2d_1a_3x3=ConvBN(3, 8),
            Mixed_5b__branch1x1=ConvBN(8, 8, 1),
            Mixed_5b__branch5x5_1=ConvBN(8, 6, 1),
            Mixed_5b__branch5x5_2=ConvBN(6, 8, 5),
            fc=L(16, 4),
        ),
        209,
    )
    s = OrderedDict(t)
    s.update(pre(sd(shake(of(conv0=ConvBN(8, 6, 1), fc=L(6, 4)), 2)), "AuxLogits."))
    return s, m, t


# --- fused and split attention -------------------------------------------------------------------------------------
@case("fused attention", "torch MHA in_proj_weight into q_proj, k_proj, v_proj (SAM, transformers#33928)")
def mha_to_split():
    t, m = pair(lambda: of(layers=nn.ModuleList([EncLayer(16, 64) for _ in range(2)])), 210)
    s = OrderedDict(t)
    for i in range(2):
        for w in ("weight", "bias"):
            s[f"layers.{i}.self_attn.in_proj_{w}"] = torch.cat(
                [s.pop(f"layers.{i}.self_attn.{n}_proj.{w}") for n in "qkv"]
            )
    return s, m, t


@case("fused attention", "metaseq: qkv_proj holds K, V, Q in spite of its name (transformers#21519); the owner knows")
def metaseq_kvq():
    t, m = pair(lambda: of(layers=nn.ModuleList([EncLayer(16, 64) for _ in range(2)])), 211)
    s = OrderedDict(t)
    for i in range(2):
        for w in ("weight", "bias"):
            s[f"layers.{i}.self_attn.qkv_proj.{w}"] = torch.cat(
                [s.pop(f"layers.{i}.self_attn.{n}_proj.{w}") for n in "kvq"]
            )
    return s, m, t


@case(
    "fused attention", "NeoX/Bloom/Megatron query_key_value interleaved by head; the owner knows that there are 4 heads"
)
def neox_interleaved():
    t, m = pair(lambda: of(layers=nn.ModuleList([EncLayer(16, 64) for _ in range(2)])), 212)
    s = OrderedDict(t)
    for i in range(2):
        for w in ("weight", "bias"):
            q, k, v = [s.pop(f"layers.{i}.self_attn.{n}_proj.{w}") for n in "qkv"]
            parts = [x.reshape(4, 4, *x.shape[1:]) for x in (q, k, v)]
            s[f"layers.{i}.self_attn.query_key_value.{w}"] = torch.stack(parts, 1).reshape(48, *q.shape[1:])
    return s, m, t


@case("fused attention", "lucidrains to_q and to_kv (keys first) into split projections")
def to_kv_split():
    t, m = pair(
        lambda: of(
            **{
                f"blocks__{i}__attn": SplitAttn(16, bias=False, names=("to_q", "to_k", "to_v", "to_out"))
                for i in range(2)
            }
        ),
        213,
    )
    s = OrderedDict(t)
    for i in range(2):
        s[f"blocks.{i}.attn.to_kv.weight"] = torch.cat([s.pop(f"blocks.{i}.attn.to_{n}.weight") for n in "kv"])
    return s, m, t


@case("fused attention", "BEiT: q_bias and v_bias apart, k has none; target has qkv.bias")
def beit_q_v_bias():
    t, m = pair(lambda: Vit(depth=2), 214)
    s, truth = OrderedDict(t), OrderedDict(t)
    for i in range(2):
        b = s.pop(f"blocks.{i}.attn.qkv.bias")
        s[f"blocks.{i}.attn.q_bias"], s[f"blocks.{i}.attn.v_bias"] = b[:24].clone(), b[48:].clone()
        b = b.clone()
        b[24:48] = 0
        truth[f"blocks.{i}.attn.qkv.bias"] = b
    return s, m, truth


@case("attention to be fused", "HF query/key/value into nn.TransformerEncoder in_proj")
def hf_to_torch_encoder():
    def make():
        return nn.TransformerEncoder(
            nn.TransformerEncoderLayer(16, 2, 64, batch_first=True), 2, enable_nested_tensor=False
        )

    t, m = pair(make, 215)
    s = ren(
        t,
        (r"^layers", "encoder.layer"),
        (r"self_attn\.out_proj", "attention.output.dense"),
        ("linear1", "intermediate.dense"),
        ("linear2", "output.dense"),
        ("norm1", "attention.output.LayerNorm"),
        ("norm2", "output.LayerNorm"),
    )
    for i in range(2):
        for w in ("weight", "bias"):
            for n, x in zip(("query", "key", "value"), s.pop(f"encoder.layer.{i}.self_attn.in_proj_{w}").chunk(3)):
                s[f"encoder.layer.{i}.attention.self.{n}.{w}"] = x.clone()
    return s, m, t


@case("attention to be fused", "q_proj, k_proj, v_proj of grouped-query attention into qkv_proj (phi-3, vLLM)")
def gqa_to_qkv():
    def make():
        return of(
            **{
                f"layers__{i}__self_attn__{n}": L(32, o, bias=False)
                for i in range(2)
                for n, o in (("qkv_proj", 48), ("o_proj", 32))
            }
        )

    t, m = pair(make, 216)
    s = OrderedDict(t)
    for i in range(2):
        q, k, v = s.pop(f"layers.{i}.self_attn.qkv_proj.weight").split([32, 8, 8])
        (
            s[f"layers.{i}.self_attn.q_proj.weight"],
            s[f"layers.{i}.self_attn.k_proj.weight"],
            s[f"layers.{i}.self_attn.v_proj.weight"],
        ) = q.clone(), k.clone(), v.clone()
    return s, m, t


@case("attention to be fused", "SAM/own: W_q, W_k, W_v parameters without .weight into nn.MultiheadAttention")
def bare_parameters_to_mha():
    t, m = pair(lambda: of(attn=nn.MultiheadAttention(16, 2, bias=False), norm=N(16)), 217)
    s = OrderedDict(t)
    for n, x in zip("qkv", s.pop("attn.in_proj_weight").chunk(3)):
        s[f"attn.W_{n}"] = x.clone()
    s["attn.W_o"] = s.pop("attn.out_proj.weight")
    return s, m, t


@case("attention to be fused", "timm qkv target, file with qkv split and in_proj_bias kept fused")
def half_split():
    t, m = pair(lambda: Vit(depth=2), 218)
    s = OrderedDict(t)
    for i in range(2):
        for n, x in zip("qkv", s.pop(f"blocks.{i}.attn.qkv.weight").chunk(3)):
            s[f"blocks.{i}.attn.{n}.weight"] = x.clone()
    return s, m, t


# --- gated feed-forward --------------------------------------------------------------------------------------------
@case("gated feed-forward", "phi-3 gate_up_proj into gate_proj and up_proj")
def phi3_gate_up():
    t, m = pair(HFLlama, 219)
    s = OrderedDict(t)
    for i in range(2):
        p = f"model.layers.{i}.mlp."
        s[p + "gate_up_proj.weight"] = torch.cat([s.pop(p + "gate_proj.weight"), s.pop(p + "up_proj.weight")])
    return s, m, t


@case("gated feed-forward", "xformers/DINOv2 SwiGLU: w12 and w3 into w1, w2, w3")
def dinov2_w12():
    t, m = pair(
        lambda: of(
            **{
                f"blocks__{i}__mlp__{n}": L(a, b)
                for i in range(2)
                for n, a, b in (("w1", 16, 24), ("w2", 16, 24), ("w3", 24, 16))
            }
        ),
        220,
    )
    s = OrderedDict(t)
    for i in range(2):
        for w in ("weight", "bias"):
            s[f"blocks.{i}.mlp.w12.{w}"] = torch.cat([s.pop(f"blocks.{i}.mlp.w1.{w}"), s.pop(f"blocks.{i}.mlp.w2.{w}")])
    return s, m, t


@case("gated feed-forward", "target fused gate_up_proj, file split as w1 (gate) and w3 (up) of Meta llama")
def split_to_gate_up():
    t, m = pair(
        lambda: of(
            **{
                f"layers__{i}__mlp__{n}": L(a, b, bias=False)
                for i in range(2)
                for n, a, b in (("gate_up_proj", 16, 48), ("down_proj", 24, 16))
            }
        ),
        221,
    )
    s = OrderedDict()
    for k, v in t.items():
        if "gate_up" in k:
            a, b = v.chunk(2)
            s[k.replace("mlp.gate_up_proj", "feed_forward.w1")], s[k.replace("mlp.gate_up_proj", "feed_forward.w3")] = (
                a.clone(),
                b.clone(),
            )
        else:
            s[k.replace("mlp.down_proj", "feed_forward.w2")] = v
    return s, m, t


# --- llama ---------------------------------------------------------------------------------------------------------
def interleave(w, heads):
    """From halves (transformers) to neighbours (Meta)."""
    o, i = w.shape
    return w.view(heads, 2, o // heads // 2, i).transpose(1, 2).reshape(o, i).clone()


def meta_llama(t, heads=4, kv=4):
    s = ren(
        t,
        (r"^model\.embed_tokens", "tok_embeddings"),
        (r"^model\.norm", "norm"),
        ("^lm_head", "output"),
        (r"^model\.", ""),
        (r"self_attn\.(.)_proj", r"attention.w\1"),
        (r"mlp\.gate_proj", "feed_forward.w1"),
        (r"mlp\.down_proj", "feed_forward.w2"),
        (r"mlp\.up_proj", "feed_forward.w3"),
        ("input_layernorm", "attention_norm"),
        ("post_attention_layernorm", "ffn_norm"),
    )
    for k in s:
        if k.endswith("wq.weight"):
            s[k] = interleave(s[k], heads)
        if k.endswith("wk.weight"):
            s[k] = interleave(s[k], kv)
    return s


@case("llama conversions", "Meta consolidated.00.pth into transformers: rotary halves, 4 heads known to the owner")
def meta_to_hf():
    t, m = pair(HFLlama, 222)
    s = meta_llama(t)
    s["rope.freqs"] = 1 / 10000 ** (torch.arange(0, 8, 2) / 8)
    return s, m, t


@case("llama conversions", "the same with grouped-query attention (8 heads over 4)")
def meta_to_hf_gqa():
    t, m = pair(lambda: HFLlama(kv=16), 223)
    return meta_llama(t, 4, 2), m, t


@case(
    "llama conversions", "lit-gpt names into transformers: norm_1, attn.attn split by hand already, mlp.fc_1/fc_2/proj"
)
def litgpt_to_hf():
    t, m = pair(HFLlama, 224)
    s = ren(
        t,
        (r"^model\.embed_tokens", "transformer.wte"),
        (r"^model\.norm", "transformer.ln_f"),
        (r"^model\.layers", "transformer.h"),
        ("input_layernorm", "norm_1"),
        ("post_attention_layernorm", "norm_2"),
        (r"mlp\.gate_proj", "mlp.fc_1"),
        (r"mlp\.up_proj", "mlp.fc_2"),
        (r"mlp\.down_proj", "mlp.proj"),
        (r"self_attn\.o_proj", "attn.proj"),
    )
    for i in range(2):
        q, k, v = [s.pop(f"transformer.h.{i}.self_attn.{n}_proj.weight") for n in "qkv"]
        s[f"transformer.h.{i}.attn.qkv.weight"] = torch.cat([q, k, v])
    return {"model": s}, m, t


@case(
    "llama conversions",
    "GGUF names written to a torch file: blk.N.attn_q, ffn_gate, token_embd (no permutation, as for qwen)",
)
def gguf_names():
    t, m = pair(HFLlama, 225)
    return (
        ren(
            t,
            (r"^model\.embed_tokens", "token_embd"),
            (r"^model\.norm", "output_norm"),
            ("^lm_head", "output"),
            (r"^model\.layers", "blk"),
            (r"self_attn\.o_proj", "attn_output"),
            (r"self_attn\.(.)_proj", r"attn_\1"),
            (r"mlp\.(gate|up|down)_proj", r"ffn_\1"),
            ("input_layernorm", "attn_norm"),
            ("post_attention_layernorm", "ffn_norm"),
        ),
        m,
        t,
    )


# --- transposed kernels --------------------------------------------------------------------------------------------
@case("transposed kernels", "OpenAI GPT-2 Conv1D (in, out) into nanoGPT Linear; square c_proj too")
def gpt2_conv1d():
    t, m = pair(NanoGpt, 226)
    s = OrderedDict(
        (k, v.t().contiguous() if k.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")) else v)
        for k, v in t.items()
    )
    return s, m, t


@case("transposed kernels", "TF BERT by numpy: bert/encoder/layer_0/attention/self/query/kernel")
def tf_bert_kernels():
    t, m = pair(BertHead, 227)
    s = OrderedDict()
    for k, v in t.items():
        n = k.replace("encoder.layer.", "encoder.layer_")
        if n.endswith("embeddings.weight"):
            n = n[: -len(".weight")]
        elif "LayerNorm" in n:
            n = n.replace("weight", "gamma").replace("bias", "beta")
        elif n.endswith("weight") and not n.startswith("classifier"):
            n, v = n.replace("weight", "kernel"), v.t().contiguous()
        elif n.startswith("classifier"):
            n = n.replace("classifier.weight", "output_weights").replace("classifier.bias", "output_bias")
        s[n.replace(".", "/")] = v
    return s, m, t


@case("transposed kernels", "Flax CNN: params.Conv_0.kernel HWIO, Dense kernels (in, out), batch_stats apart")
def flax_cnn():
    t, m = pair(SmallCNN, 228, IMG)
    c = lambda k: t[k].permute(2, 3, 1, 0).contiguous()
    params = {
        "Conv_0": {"kernel": c("conv1.weight"), "bias": t["conv1.bias"]},
        "BatchNorm_0": {"scale": t["bn1.weight"], "bias": t["bn1.bias"]},
        "Conv_1": {"kernel": c("conv2.weight"), "bias": t["conv2.bias"]},
        "BatchNorm_1": {"scale": t["bn2.weight"], "bias": t["bn2.bias"]},
        "Dense_0": {"kernel": t["fc1.weight"].t().contiguous(), "bias": t["fc1.bias"]},
        "Dense_1": {"kernel": t["fc2.weight"].t().contiguous(), "bias": t["fc2.bias"]},
    }
    stats = {
        f"BatchNorm_{i}": {"mean": t[f"bn{i + 1}.running_mean"], "var": t[f"bn{i + 1}.running_var"]} for i in range(2)
    }
    return {"params": params, "batch_stats": stats}, m, alt(t, "num_batches", None, torch.tensor(0))


@case("transposed kernels", "Keras weights by layer name: conv2d/kernel:0, dense/kernel:0, batch_normalization/gamma:0")
def keras_cnn():
    t, m = pair(SmallCNN, 229, IMG)
    s = OrderedDict()
    for k, v in drop(t, "num_batches").items():
        a, b = k.split(".")
        a = {
            "conv1": "conv2d",
            "conv2": "conv2d_1",
            "bn1": "batch_normalization",
            "bn2": "batch_normalization_1",
            "fc1": "dense",
            "fc2": "dense_1",
        }[a]
        if a.startswith("batch"):
            b = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}[b]
        elif b == "weight":
            b, v = "kernel", (v.permute(2, 3, 1, 0) if v.ndim == 4 else v.t()).contiguous()
        s[f"{a}/{b}:0"] = v
    return s, m, alt(t, "num_batches", None, torch.tensor(0))


@case("transposed kernels", "own JAX MLP: square matrices named w and b, all (in, out)")
def jax_w_b():
    t, m = pair(
        lambda: of(**{f"layers__{i}": L(a, b) for i, (a, b) in enumerate(((6, 16), (16, 16), (16, 16), (16, 2)))}), 230
    )
    return (
        OrderedDict(
            (
                k.replace("layers.", "linear_").replace("weight", "w").replace("bias", "b"),
                v.t().contiguous() if v.ndim == 2 else v,
            )
            for k, v in t.items()
        ),
        m,
        t,
    )


# --- kernels of another rank ---------------------------------------------------------------------------------------
@case("kernel rank", "1x1 convolutions became Linear (SE block fc)")
def se_conv_to_linear():
    t, m = pair(lambda: of(conv=C(3, 16, 3), se__fc1=L(16, 4), se__fc2=L(4, 16), head=L(16, 3)), 231)
    return OrderedDict((k, v[:, :, None, None] if "se." in k and v.ndim == 2 else v) for k, v in t.items()), m, t


@case("kernel rank", "Linear patch projection of one channel row order (c p p) into patch Conv2d")
def linear_patch_to_conv():
    t, m = pair(lambda: Vit(depth=1), 232)
    s = OrderedDict(t)
    s["patch_embed.proj.weight"] = t["patch_embed.proj.weight"].reshape(24, -1).clone()
    return s, m, t


@case("kernel rank", "Conv1d kernel 1 of whisper-like heads into Linear")
def conv1d_to_linear():
    t, m = pair(lambda: of(pre=L(12, 16), mid=nn.Conv1d(16, 16, 3), post=L(16, 5)), 233)
    return OrderedDict((k, v[:, :, None] if k in ("pre.weight", "post.weight") else v) for k, v in t.items()), m, t


@case("kernel rank", "cls_token saved (D,) and layer scale (D,1,1) against (1,1,D) and (D,)")
def unit_dims():
    t, m = pair(
        lambda: of(
            cls_token=nn.Parameter(torch.zeros(1, 1, 24)),
            block__gamma=nn.Parameter(torch.zeros(24)),
            block__fc=L(24, 24),
        ),
        234,
    )
    s = OrderedDict(t)
    s["cls_token"] = t["cls_token"].reshape(24).clone()
    s["block.gamma"] = t["block.gamma"].reshape(24, 1, 1).clone()
    return s, m, t


# --- position grids ------------------------------------------------------------------------------------------------
def resized(p, old, new, extra, mode, **k):
    g = p[:, extra:].reshape(1, old, old, -1).permute(0, 3, 1, 2)
    g = F.interpolate(g, (new, new), mode=mode, **k)
    return torch.cat([p[:, :extra], g.permute(0, 2, 3, 1).flatten(1, 2)], 1)


def all_resized(p, old, new, extra):
    """What the usual scripts make of it; any of them is right, so is an untrained place that was agreed to."""
    out = [
        resized(p, old, new, extra, mode, align_corners=False, **k)
        for mode in ("bicubic", "bilinear")
        for k in ({}, {"antialias": True})
    ]
    return (*out, None)


@case("position grids", "dinov2#218: pos_embed [1, 1370, D] against [1, 257, D] (here 6x6 to 4x4)")
def pos_embed_smaller():
    t, m = pair(Vit, 235)
    s = OrderedDict(t)
    s["pos_embed"] = rnd(1, 1, 37, 24)
    return s, m, OrderedDict((k, all_resized(s[k], 6, 4, 1) if k == "pos_embed" else v) for k, v in t.items())


@case("position grids", "finetune at higher resolution: 4x4 to 6x6, behind module.")
def pos_embed_larger():
    t, m = pair(lambda: Vit(grid=6), 236)
    s = OrderedDict(t)
    s["pos_embed"] = rnd(1, 1, 17, 24)
    return (
        pre(s, "module."),
        m,
        OrderedDict((k, all_resized(s[k], 4, 6, 1) if k == "pos_embed" else v) for k, v in t.items()),
    )


@case("position grids", "no class token: 6x6 to 4x4")
def pos_embed_no_cls():
    t, m = pair(lambda: Vit(cls=False), 237)
    s = OrderedDict(t)
    s["pos_embed"] = rnd(1, 1, 36, 24)
    return s, m, OrderedDict((k, all_resized(s[k], 6, 4, 0) if k == "pos_embed" else v) for k, v in t.items())


@case("position grids", "nanoGPT crop_block_size: wpe of 32 rows into 20, first rows kept")
def wpe_cropped():
    t, m = pair(lambda: NanoGpt(block=20), 238)
    s = OrderedDict(t)
    s["transformer.wpe.weight"] = torch.cat([t["transformer.wpe.weight"], rnd(1, 12, 24)])
    return {"model": s}, m, alt(t, "wpe", None)


def window_index(n):
    i = torch.stack(torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")).flatten(1)
    d = (i[:, :, None] - i[:, None]).permute(1, 2, 0) + n - 1
    return d[..., 0] * (2 * n - 1) + d[..., 1]


@case("position grids", "Swin tables: relative_position_bias_table 15x15 (window 8) to 13x13 (window 7)")
def swin_table():
    def make():
        a = of(relative_position_bias_table=nn.Parameter(torch.zeros(169, 4)), qkv=L(16, 48), proj=L(16, 16))
        a.register_buffer("relative_position_index", window_index(7))
        return of(layers__0__attn=a, head=L(16, 3))

    t, m = pair(make, 239)
    t["layers.0.attn.relative_position_index"] = m.state_dict()["layers.0.attn.relative_position_index"].clone()
    s = OrderedDict(t)
    s["layers.0.attn.relative_position_bias_table"] = rnd(1, 225, 4)
    s["layers.0.attn.relative_position_index"] = window_index(8)
    p = s["layers.0.attn.relative_position_bias_table"].t().reshape(1, 4, 15, 15)
    ways = [
        F.interpolate(p, (13, 13), mode=x, align_corners=False, **k).reshape(4, 169).t()
        for x in ("bicubic", "bilinear")
        for k in ({}, {"antialias": True})
    ]
    truth = OrderedDict(t)
    truth["layers.0.attn.relative_position_bias_table"] = (*ways, None)
    return s, m, truth


# --- recurrent -----------------------------------------------------------------------------------------------------
@case("recurrent names", "nn.LSTM in the file, LSTMCell in the target: weight_ih_l0 -> weight_ih")
def lstm_to_cell():
    t, m = pair(lambda: of(embed=E(20, 8), cell=nn.LSTMCell(8, 12), out=L(12, 20)), 240)
    return ren(t, (r"^cell\.(\w+)", r"lstm.\1_l0")), m, t


@case("recurrent names", "AWD-LSTM (fastai): rnns.0.weight_hh_l0_raw, rnns.0.module.weight_hh_l0")
def awd_lstm_raw():
    t, m = pair(lambda: of(encoder=E(30, 10), rnns__0=nn.LSTM(10, 12), rnns__1=nn.LSTM(12, 10), decoder=L(10, 30)), 241)
    s = ren(t, (r"^rnns\.(\d)\.(\w+)", r"0.rnns.\1.module.\2"), ("^encoder", "0.encoder"), ("^decoder", "1.decoder"))
    for i in range(2):
        s[f"0.rnns.{i}.weight_hh_l0_raw"] = s[f"0.rnns.{i}.module.weight_hh_l0"].clone()
    return {"model": s}, m, t


@case("recurrent names", "layers of one nn.LSTM(num_layers=2) became a ModuleList of one-layer LSTMs")
def lstm_layers_apart():
    t, m = pair(lambda: of(lstms=nn.ModuleList([nn.LSTM(8, 8), nn.LSTM(8, 8)]), fc=L(8, 3)), 242)
    return ren(t, (r"^lstms\.(\d)\.(\w+)_l0", r"lstm.\2_l\1")), m, t


@case("recurrent names", "bidirectional LSTM split by hand into fwd and bwd")
def bilstm_split():
    t, m = pair(lambda: of(fwd=nn.LSTM(8, 6), bwd=nn.LSTM(8, 6), fc=L(12, 3)), 243)
    return ren(t, (r"^fwd\.(\w+)", r"lstm.\1"), (r"^bwd\.(\w+)", r"lstm.\1_reverse")), m, t


@case("recurrent names", "word_language_model: encoder/rnn/decoder -> embedding/lstm/fc")
def wlm_renamed():
    t, m = pair(lambda: of(embedding=E(41, 12), lstm=nn.LSTM(12, 16, 2), fc=L(16, 41)), 244)
    return ren(t, ("^embedding", "encoder"), ("^lstm", "rnn"), ("^fc", "decoder")), m, t


@case("gate order", "Keras LSTM kernel (in, 4h) i f c o with one bias into torch (second bias zero)")
def keras_lstm():
    t, m = pair(lambda: of(lstm=nn.LSTM(8, 12), fc=L(12, 3)), 245)
    t = OrderedDict(t)
    one, zero = t["lstm.bias_ih_l0"] + t["lstm.bias_hh_l0"], torch.zeros(48)
    s = OrderedDict(
        {
            "lstm/kernel": t["lstm.weight_ih_l0"].t().contiguous(),
            "lstm/recurrent_kernel": t["lstm.weight_hh_l0"].t().contiguous(),
            "lstm/bias": one,
            "fc/kernel": t["fc.weight"].t().contiguous(),
            "fc/bias": t["fc.bias"],
        }
    )
    truth = OrderedDict(t)
    truth["lstm.bias_ih_l0"], truth["lstm.bias_hh_l0"] = (one, zero), (zero, one)
    return s, m, truth


@case("gate order", "Keras GRU z r h into torch r z n, both biases (reset_after), owner says Keras")
def keras_gru():
    t, m = pair(lambda: of(gru=nn.GRU(8, 12), fc=L(12, 3)), 246)

    def z_first(x):
        r, z, n = x.chunk(3)
        return torch.cat([z, r, n])

    s = OrderedDict(
        {
            "gru/gru_cell/kernel:0": z_first(t["gru.weight_ih_l0"]).t().contiguous(),
            "gru/gru_cell/recurrent_kernel:0": z_first(t["gru.weight_hh_l0"]).t().contiguous(),
            "gru/gru_cell/bias:0": torch.stack([z_first(t["gru.bias_ih_l0"]), z_first(t["gru.bias_hh_l0"])]),
            "fc/kernel:0": t["fc.weight"].t().contiguous(),
            "fc/bias:0": t["fc.bias"],
        }
    )
    return s, m, t


@case("gate order", "own LSTM with one matrix per gate: W_ii, W_if, W_ig, W_io ... into nn.LSTM")
def gates_apart():
    t, m = pair(lambda: of(lstm=nn.LSTM(8, 12), fc=L(12, 3)), 247)
    s = OrderedDict({k: v for k, v in t.items() if k.startswith("fc")})
    for w, p in (("weight_ih", "W_i"), ("weight_hh", "W_h"), ("bias_ih", "b_i"), ("bias_hh", "b_h")):
        for g, x in zip("ifgo", t[f"lstm.{w}_l0"].chunk(4)):
            s[f"lstm.{p}{g}"] = x.clone()
    return s, m, t


# --- reparametrised ------------------------------------------------------------------------------------------------
def normed(make, how):
    m = make()
    for x in list(m.modules()):
        if isinstance(x, (nn.Conv1d, nn.Linear, nn.Conv2d)):
            how(x)
    return m


@case("weight and spectral norm", "torch 2: weight_g, weight_v -> parametrizations.weight.original0/1")
def weight_norm_new_names():
    make = lambda: normed(
        lambda: of(
            pre=nn.Conv1d(4, 8, 3), res__0=nn.Conv1d(8, 8, 3), res__1=nn.Conv1d(8, 8, 3), post=nn.Conv1d(8, 1, 3)
        ),
        torch.nn.utils.parametrizations.weight_norm,
    )
    t, m = pair(make, 248)
    return (
        ren(
            t,
            (r"parametrizations\.weight\.original0", "weight_g"),
            (r"parametrizations\.weight\.original1", "weight_v"),
        ),
        m,
        t,
    )


@case("weight and spectral norm", "HiFi-GAN generator after remove_weight_norm, file before it")
def weight_norm_removed():
    t, m = pair(
        lambda: of(conv_pre=nn.Conv1d(4, 8, 3), ups__0=nn.ConvTranspose1d(8, 6, 4), conv_post=nn.Conv1d(6, 1, 3)), 249
    )
    s, truth = OrderedDict(), OrderedDict(t)
    for k, v in t.items():
        if k.endswith("weight"):
            g = 0.5 + torch.rand(v.shape[0], 1, 1)
            s[k + "_g"], s[k + "_v"] = g, v
            truth[k] = torch._weight_norm(v, g, 0)
        else:
            s[k] = v
    return {"generator": s}, m, truth


@case(
    "weight and spectral norm", "spectral norm (old hook): weight_orig, weight_u, weight_v -> plain weight of eval mode"
)
def spectral_norm_folded():
    net = normed(lambda: of(c1=C(3, 8, 3), c2=C(8, 8, 3), fc=L(8, 1)), nn.utils.spectral_norm)
    shake(net, 250)
    net.train()
    for x in (net.c1, net.c2):
        for _ in range(400):
            x(torch.randn(1, x.in_channels, 5, 5))
    for _ in range(400):
        net.fc(torch.randn(2, 8))
    net.eval()
    s = sd(net)
    truth = OrderedDict()
    target = of(c1=C(3, 8, 3), c2=C(8, 8, 3), fc=L(8, 1)).eval()
    for k in target.state_dict():
        if k.endswith("weight"):
            w, u, v = s[k + "_orig"], s[k + "_u"], s[k + "_v"]
            truth[k] = w / torch.dot(u, torch.mv(w.flatten(1), v))
        else:
            truth[k] = s[k]
    return s, target, truth


@case("weight and spectral norm", "spectral norm old hook names into parametrizations (original, 0._u, 0._v)")
def spectral_norm_new_names():
    old = normed(lambda: of(c1=C(3, 8, 3), fc=L(8, 1)), nn.utils.spectral_norm)
    shake(old, 251)
    s = sd(old)
    for k in s:
        if k.endswith(("_u", "_v")):
            s[k] = F.normalize(rnd(1, *s[k].shape), dim=0)
    target = normed(lambda: of(c1=C(3, 8, 3), fc=L(8, 1)), torch.nn.utils.parametrizations.spectral_norm).eval()
    truth = OrderedDict()
    for k in target.state_dict():
        truth[k] = s[
            k.replace("parametrizations.weight.original", "weight_orig")
            .replace("parametrizations.weight.0._u", "weight_u")
            .replace("parametrizations.weight.0._v", "weight_v")
        ]
    return s, target, truth


@case("weight and spectral norm", "torch.nn.utils.prune left in: weight_orig and weight_mask")
def prune_masks():
    t, m = pair(SmallCNN, 252, IMG)
    s, truth = OrderedDict(), OrderedDict(t)
    for k, v in t.items():
        if k in ("conv1.weight", "conv2.weight", "fc1.weight"):
            mask = (rnd(len(k), *v.shape) > 0).float()
            s[k + "_orig"], s[k + "_mask"] = v, mask
            truth[k] = v * mask
        else:
            s[k] = v
    return s, m, truth


# --- folded norms --------------------------------------------------------------------------------------------------
@case("folded norms", "fuse_conv_bn before deployment: target has convolution with bias only")
def conv_bn_folded():
    t, m0 = pair(
        lambda: of(conv1=C(3, 8, 3), bn1=nn.BatchNorm2d(8), conv2=C(8, 8, 3), bn2=nn.BatchNorm2d(8), fc=L(8, 3)), 253
    )
    target = of(conv1=C(3, 8, 3), conv2=C(8, 8, 3), fc=L(8, 3)).eval()
    truth = OrderedDict()
    for i in (1, 2):
        f = t[f"bn{i}.weight"] / torch.sqrt(t[f"bn{i}.running_var"] + 1e-5)
        truth[f"conv{i}.weight"] = t[f"conv{i}.weight"] * f[:, None, None, None]
        truth[f"conv{i}.bias"] = (t[f"conv{i}.bias"] - t[f"bn{i}.running_mean"]) * f + t[f"bn{i}.bias"]
    truth["fc.weight"], truth["fc.bias"] = t["fc.weight"], t["fc.bias"]
    return t, target, truth


@case("folded norms", "YOLO Conv.bn folded: conv.bias appears, bn.* goes (ultralytics fuse)")
def yolo_fused():
    t, _ = pair(Yolo, 254, (2, 3, 32, 32))
    target = Yolo()
    for x in target.modules():
        if isinstance(x, ConvBN):
            c = x.conv
            x.conv = C(c.in_channels, c.out_channels, c.kernel_size, c.stride, c.padding)
            del x.bn
    truth = OrderedDict()
    for k in target.state_dict():
        if k.startswith("model.4"):
            truth[k] = t[k]
        else:
            b = k.rsplit(".conv.", 1)[0] + ".bn."
            f = t[b + "weight"] / torch.sqrt(t[b + "running_var"] + 1e-5)
            w = k.rsplit(".", 1)[0] + ".weight"
            truth[k] = (
                t[w] * f[:, None, None, None] if k.endswith("weight") else t[b + "bias"] - t[b + "running_mean"] * f
            )
    return t, target.eval(), truth


# --- tied weights --------------------------------------------------------------------------------------------------
@case("tied weights", "lm_head absent in a safetensors file of a tied llama")
def tied_llama_absent():
    t, m = pair(lambda: HFLlama(tie=True), 255)
    return drop(t, "lm_head"), m, t


@case("tied weights", "embedding absent, lm_head there, module. before all")
def tied_embedding_absent():
    t, m = pair(NanoGpt, 256)
    return pre(drop(t, "wte"), "module."), m, t


@case("tied weights", "T5: shared, encoder.embed_tokens, decoder.embed_tokens; file has shared only")
def t5_shared():
    def make():
        x = of(
            shared=E(30, 12),
            encoder__embed_tokens=E(30, 12),
            encoder__fc=L(12, 12),
            decoder__embed_tokens=E(30, 12),
            decoder__fc=L(12, 12),
            lm_head=L(12, 30, bias=False),
        )
        x.encoder.embed_tokens.weight = x.decoder.embed_tokens.weight = x.shared.weight
        return x

    t, m = pair(make, 257)
    return drop(t, r"embed_tokens"), m, t


@case("tied weights", "file of an untied model copy: target not tied, output missing; owner trained it tied")
def untied_target():
    t, m = pair(lambda: NanoGpt(tie=False), 258)
    t["lm_head.weight"] = t["transformer.wte.weight"]
    return drop(t, "lm_head"), m, alt(t, "lm_head", None)


# --- input channels ------------------------------------------------------------------------------------------------
@case("input channels", "RGB weights into a grayscale model: sum over channels (timm), mean, or new")
def rgb_to_gray():
    t, m = pair(lambda: TinyResNet(chans=1), 259)
    s = OrderedDict(t)
    s["conv1.weight"] = rnd(1, 8, 3, 7, 7)
    w = s["conv1.weight"]
    return (
        s,
        m,
        OrderedDict(
            (k, (w.sum(1, keepdim=True), w.mean(1, keepdim=True), None) if k == "conv1.weight" else v)
            for k, v in t.items()
        ),
    )


@case("input channels", "four channels (RGB and depth): the fourth new, or spread as timm does")
def rgb_to_rgbd():
    t, m = pair(lambda: SmallCNN(chans=4), 260)
    s = OrderedDict(t)
    w = s["conv1.weight"] = rnd(1, 8, 3, 3, 3)
    timm = torch.cat([w, w[:, :1]], 1) * 0.75
    mean = torch.cat([w, w.mean(1, keepdim=True)], 1)
    return (
        s,
        m,
        OrderedDict(
            (k, (timm, mean, w.mean(1, keepdim=True).repeat(1, 4, 1, 1) * 0.75, None) if k == "conv1.weight" else v)
            for k, v in t.items()
        ),
    )


@case("input channels", "first convolution inflated from 2D to 3D (I3D): repeat over time / t, or new")
def inflate_3d():
    t, m = pair(lambda: of(conv1=nn.Conv3d(3, 8, (3, 3, 3)), bn1=nn.BatchNorm3d(8), fc=L(8, 3)), 261)
    s = OrderedDict(t)
    w = s["conv1.weight"] = rnd(1, 8, 3, 3, 3)
    return (
        s,
        m,
        OrderedDict(
            (k, (w[:, :, None].repeat(1, 1, 3, 1, 1) / 3, None) if k == "conv1.weight" else v) for k, v in t.items()
        ),
    )


# --- adapters ------------------------------------------------------------------------------------------------------
@case("adapters", "peft after merge_and_unload kept wrapped names: base_model.model. and nothing of LoRA")
def peft_merged_prefix():
    t, m = pair(HFLlama, 262)
    return pre(t, "base_model.model."), m, t


@case("adapters", "peft state dict with all lora_B zero (step 0): base_layer names; adapters change nothing")
def peft_step_zero():
    t, m = pair(HFLlama, 263)
    s = ren(t, (r"(q_proj|v_proj)\.weight", r"\1.base_layer.weight"), (r"^", "base_model.model."))
    for i in range(2):
        for n in "qv":
            p = f"base_model.model.model.layers.{i}.self_attn.{n}_proj."
            s[p + "lora_A.default.weight"], s[p + "lora_B.default.weight"] = rnd(i, 4, 32), torch.zeros(32, 4)
    return s, m, t


@case("adapters", "plain weights into a model that peft wrapped already (base_layer), adapters stay new")
def lora_wrapped_target():
    def make():
        return of(
            **{f"layers__{i}__{n}__base_layer": L(16, 16) for i in range(2) for n in ("q", "v")},
            **{
                f"layers__{i}__{n}__lora_{x}__default": L(*((16, 4) if x == "A" else (4, 16)), bias=False)
                for i in range(2)
                for n in ("q", "v")
                for x in "AB"
            },
            head=L(16, 2),
        )

    t, m = pair(make, 264)
    return ren(drop(t, "lora"), (r"\.base_layer", "")), m, untrained(t, "lora")


# --- stacked -------------------------------------------------------------------------------------------------------
@case("stacked layers", "Flax nn.scan: one array for all layers, kernel (layers, in, out)")
def flax_scan():
    t, m = pair(
        lambda: of(layers=nn.ModuleList([of(fc1=L(12, 20), fc2=L(20, 12)) for _ in range(3)]), out=L(12, 3)), 265
    )
    s = OrderedDict()
    for f in ("fc1", "fc2"):
        s[f"layers/{f}/kernel"] = torch.stack([t[f"layers.{i}.{f}.weight"].t() for i in range(3)])
        s[f"layers/{f}/bias"] = torch.stack([t[f"layers.{i}.{f}.bias"] for i in range(3)])
    s["out/kernel"], s["out/bias"] = t["out.weight"].t().contiguous(), t["out.bias"]
    return s, m, t


@case("stacked layers", "Mixtral experts: list of Linear in the file, one stacked parameter in the target")
def experts_stacked():
    t, m = pair(
        lambda: of(
            gate=L(12, 4, bias=False),
            experts__w1=nn.Parameter(torch.zeros(4, 20, 12)),
            experts__w2=nn.Parameter(torch.zeros(4, 12, 20)),
        ),
        266,
    )
    s = OrderedDict({"gate.weight": t["gate.weight"]})
    for i in range(4):
        s[f"experts.{i}.w1.weight"], s[f"experts.{i}.w2.weight"] = (
            t["experts.w1"][i].clone(),
            t["experts.w2"][i].clone(),
        )
    return s, m, t


@case("stacked layers", "ensemble by vmap: stack_module_state in the file (leading 3), ModuleList in the target")
def vmap_ensemble():
    t, m = pair(lambda: of(models=nn.ModuleList([of(fc1=L(5, 8), fc2=L(8, 2)) for _ in range(3)])), 267)
    return (
        OrderedDict(
            (k, torch.stack([t[f"models.{i}.{k}"] for i in range(3)]))
            for k in ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias")
        ),
        m,
        t,
    )


# --- layouts of rows -----------------------------------------------------------------------------------------------
@case("row order inside", "Linear after flatten of an NHWC network (Keras): rows h,w,c -> c,h,w; owner knows")
def flatten_order():
    t, m = pair(lambda: of(conv=C(3, 8, 3), fc=L(8 * 4 * 4, 6)), 268)
    w = t["fc.weight"].reshape(6, 8, 4, 4).permute(2, 3, 1, 0).reshape(128, 6).contiguous()
    return (
        OrderedDict(
            {
                "conv2d/kernel:0": t["conv.weight"].permute(2, 3, 1, 0).contiguous(),
                "conv2d/bias:0": t["conv.bias"],
                "dense/kernel:0": w,
                "dense/bias:0": t["fc.bias"],
            }
        ),
        m,
        t,
    )


@case("row order inside", "vit-pytorch Linear patch embedding with (p1 p2 c) rows into Conv2d; owner knows")
def patch_rows():
    t, m = pair(lambda: of(pos=nn.Parameter(torch.zeros(1, 5, 16)), to_patch=C(3, 16, 4, 4), head=L(16, 3)), 269)
    s = ren(t, (r"^to_patch\.", "to_patch_embedding.1."))
    s["to_patch_embedding.1.weight"] = t["to_patch.weight"].permute(0, 2, 3, 1).reshape(16, 48).contiguous()
    return s, m, t


@case(
    "row order inside",
    "DiT final_layer.adaLN_modulation (shift, scale) into diffusers norm_out.linear (scale, shift); owner knows",
)
def swapped_scale_shift():
    t, m = pair(lambda: of(norm_out__linear=L(16, 32), proj_out=L(16, 4)), 270)
    a, b = t["norm_out.linear.weight"].chunk(2)
    c, d = t["norm_out.linear.bias"].chunk(2)
    s = OrderedDict(
        {
            "final_layer.adaLN_modulation.1.weight": torch.cat([b, a]),
            "final_layer.adaLN_modulation.1.bias": torch.cat([d, c]),
            "final_layer.linear.weight": t["proj_out.weight"],
            "final_layer.linear.bias": t["proj_out.bias"],
        }
    )
    return s, m, t


# --- absent layers that stay new -----------------------------------------------------------------------------------
@case("new parts in the target", "transfer: a new neck between trained backbone and trained head")
def new_neck():
    t, m = pair(lambda: of(backbone=SmallCNN(), neck__conv=C(5, 7, 1), neck__norm=nn.BatchNorm2d(7), head=L(7, 2)), 271)
    return drop(t, "^neck"), m, untrained(t, "^neck")


@case("new parts in the target", "class weights loaded, LoRA-less; a new embedding table for speakers")
def new_speaker_table():
    t, m = pair(lambda: of(enc=nn.GRU(8, 12), speaker_embedding=E(7, 12), dec=L(12, 8)), 272)
    return pre(drop(t, "speaker"), "module."), m, untrained(t, "speaker")


@case("new parts in the target", "two new blocks at the end of a deeper target (layer stacking); first ones loaded")
def deeper_target():
    t, m = pair(lambda: Vit(depth=5), 273)
    return drop(t, r"blocks\.[34]\."), m, untrained(t, r"blocks\.[34]\.")


# --- fewer layers in the target ------------------------------------------------------------------------------------
@case("fewer layers in the target", "DistilBERT-like: first 2 of 4 layers wanted (names equal)")
def first_layers_only():
    t, m = pair(lambda: HFBert(depth=2), 274)
    s = sd(shake(HFBert(depth=4), 974))
    s.update(t)
    return s, m, t


@case("fewer layers in the target", "only the encoder of an autoencoder is wanted")
def encoder_of_autoencoder():
    t, m = pair(lambda: of(encoder__0=C(3, 8, 3), encoder__2=C(8, 16, 3)), 275)
    s = OrderedDict(t)
    s.update(sd(shake(of(decoder__0=nn.ConvTranspose2d(16, 8, 3), decoder__2=nn.ConvTranspose2d(8, 3, 3)), 4)))
    return {"state_dict": pre(s, "autoencoder."), "epoch": 2}, m, t


@case("fewer layers in the target", "features alone of a VGG-like file, as target.features became the target itself")
def vgg_features_as_target():
    def feats():
        return nn.Sequential(C(3, 8, 3), nn.ReLU(), C(8, 8, 3), nn.ReLU(), C(8, 16, 3))

    t, m = pair(feats, 276)
    s = pre(t, "features.")
    s["classifier.0.weight"], s["classifier.0.bias"] = rnd(1, 20, 16), rnd(2, 20)
    s["classifier.3.weight"], s["classifier.3.bias"] = rnd(3, 4, 20), rnd(4, 4)
    return s, m, t
