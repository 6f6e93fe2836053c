"""Numbering that baits, and files that must not be loaded unasked (truth None)."""

from collections import OrderedDict

import torch
from torch import nn

from .base import case, pair, pre, ren, rnd, sd, shake
from .nets import *

IMG = (4, 3, 16, 16)


# --- numbering that overlaps (truth known) -------------------------------------------------------------------------
@case("overlapping numbers", "mmcv#1294: conv1 -> conv0, conv2 -> conv1, one shape, so the names overlap")
def mmcv_conv_shift():
    t, m = pair(lambda: of(conv0=C(8, 8, 3), conv1=C(8, 8, 3), head=L(8, 2)), 301)
    return OrderedDict((k.replace("conv1", "conv2").replace("conv0", "conv1"), v) for k, v in t.items()), m, t


@case("overlapping numbers", "author counted from the output: fc1 is the last layer in the file, squares between")
def counted_backwards():
    t, m = pair(lambda: of(fc1=L(8, 16), fc2=L(16, 16), fc3=L(16, 16), fc4=L(16, 4)), 302)
    return OrderedDict((f"fc{5 - int(k[2])}" + k[3:], v) for k, v in t.items()), m, t


@case("overlapping numbers", "U-Net decoder numbered by level in the file, by order in the target: up1 <-> up3")
def unet_up_reversed():
    t, m = pair(
        lambda: of(
            down1=C(3, 4, 3), down2=C(4, 8, 3), down3=C(8, 16, 3), up1=C(24, 8, 3), up2=C(12, 4, 3), up3=C(7, 3, 3)
        ),
        303,
    )
    return OrderedDict((f"up{4 - int(k[2])}" + k[3:] if k.startswith("up") else k, v) for k, v in t.items()), m, t


@case("overlapping numbers", "stem counted as layer 0: layers.1..4 -> layers.0..3, layers.0 -> stem, one shape")
def stem_was_layer_zero():
    t, m = pair(lambda: of(stem=C(3, 8, 3), layers=nn.ModuleList([C(8, 8, 3) for _ in range(4)]), out=L(8, 2)), 304)
    import re

    s = OrderedDict()
    for k, v in t.items():
        s[re.sub(r"^layers\.(\d)", lambda x: f"layers.{int(x[1]) + 1}", k).replace("stem", "layers.0")] = v
    return s, m, t


# --- another network -----------------------------------------------------------------------------------------------
@case("trap: another network", "resnet34 file for a resnet18 (module. before): every name of the target is in it")
def trap_deeper_resnet():
    f = sd(shake(TinyResNet(blocks=(3, 4, 6, 3)), 305, IMG))
    return pre(f, "module."), TinyResNet().eval(), None


@case("trap: another network", "vgg file without batch norm into vgg_bn: convolutions fit after an index shift")
def trap_vgg_without_bn():
    f = nn.Sequential(C(3, 8, 3), nn.ReLU(), C(8, 8, 3), nn.ReLU(), C(8, 16, 3))
    m = nn.Sequential(
        C(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        C(8, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        C(8, 16, 3),
        nn.BatchNorm2d(16),
    )
    return pre(sd(shake(f, 306)), "features."), of(features=m).eval(), None


@case("trap: another network", "post-norm BERT layers into a pre-norm ViT encoder of the same sizes")
def trap_post_norm_into_pre_norm():
    f = shake(HFBert(pooler=False), 307)
    s = OrderedDict((k, v) for k, v in sd(f).items() if k.startswith("encoder"))
    d = {}
    for i in range(2):
        p = f"vit__encoder__layer__{i}__"
        d.update(
            {
                p + "attention__attention__query": L(24, 24),
                p + "attention__attention__key": L(24, 24),
                p + "attention__attention__value": L(24, 24),
                p + "attention__output__dense": L(24, 24),
                p + "intermediate__dense": L(24, 96),
                p + "output__dense": L(96, 24),
                p + "layernorm_before": N(24),
                p + "layernorm_after": N(24),
            }
        )
    return pre(s, "bert."), of(**d).eval(), None


@case("trap: another network", "CLIP text tower layers into the vision tower of the same width")
def trap_text_into_vision():
    make = lambda n: of(**{n + "__encoder__layers": nn.ModuleList([EncLayer(16, 64) for _ in range(2)])})
    return sd(shake(make("text_model"), 308)), make("vision_model").eval(), None


@case("trap: another network", "GroupNorm file (no statistics) into a BatchNorm network")
def trap_group_norm():
    f = of(conv1=C(3, 8, 3), gn1=nn.GroupNorm(2, 8), conv2=C(8, 8, 3), gn2=nn.GroupNorm(2, 8), fc=L(8, 2))
    m = of(conv1=C(3, 8, 3), bn1=nn.BatchNorm2d(8), conv2=C(8, 8, 3), bn2=nn.BatchNorm2d(8), fc=L(8, 2))
    return sd(shake(f, 309)), m.eval(), None


@case("trap: wrong part", "discriminator weights into an encoder of the same convolutions")
def trap_discriminator_into_encoder():
    make = lambda n: of(**{n + "__0": C(3, 8, 4), n + "__2": C(8, 16, 4), n + "__4": C(16, 1, 4)})
    return sd(shake(make("discriminator"), 310)), make("encoder").eval(), None


@case("trap: wrong part", "critic weights, target is the actor (one observation size, one output)")
def trap_critic_into_actor():
    make = lambda n: of(**{n + "__l1": L(6, 16), n + "__l2": L(16, 16), n + "__l3": L(16, 1)})
    return sd(shake(make("critic"), 311)), make("actor").eval(), None


@case("trap: wrong part", "transposed convolutions (deconv1) into convolutions (conv1) of one shape")
def trap_deconv_into_conv():
    f = of(deconv1=nn.ConvTranspose2d(8, 8, 3), deconv2=nn.ConvTranspose2d(8, 8, 3))
    return sd(shake(f, 312)), of(conv1=C(8, 8, 3), conv2=C(8, 8, 3)).eval(), None


@case("trap: wrong part", "head of another task with as many classes: head_food -> head_flowers")
def trap_other_task_head():
    t = sd(shake(of(backbone=SmallCNN(classes=12), head_food=L(12, 5)), 313))
    return t, of(backbone=SmallCNN(classes=12), head_flowers=L(12, 5)).eval(), None


@case("trap: wrong part", "optical flow stream weights only (flow_stream.), target wants rgb_stream.")
def trap_flow_for_rgb():
    make = lambda n: of(**{n: nn.Sequential(C(3, 8, 3), nn.ReLU(), C(8, 8, 3))})
    return sd(shake(make("flow_stream"), 314)), make("rgb_stream").eval(), None


# --- no evidence ---------------------------------------------------------------------------------------------------
@case("trap: no evidence", "two layers of one shape under meaningless names: foo, bar -> a, b")
def trap_foo_bar():
    t = sd(shake(of(a=L(12, 12), b=L(12, 12), fc=L(12, 3)), 315))
    return ren(t, (r"^a\.", "foo."), (r"^b\.", "bar.")), of(a=L(12, 12), b=L(12, 12), fc=L(12, 3)).eval(), None


@case("trap: no evidence", "Siamese branches left, right -> branch_a, branch_b")
def trap_left_right():
    make = lambda x, y: of(**{x: SmallCNN(), y: SmallCNN()})
    return sd(shake(make("left", "right"), 316)), make("branch_a", "branch_b").eval(), None


@case("trap: no evidence", "hash names, three matrices of one shape, order of the hashes")
def trap_hashed_squares():
    import hashlib

    t = sd(shake(of(l0=L(12, 12), l1=L(12, 12), l2=L(12, 12)), 317))
    h = lambda k: hashlib.sha1(k.encode()).hexdigest()[:10]
    return (
        OrderedDict(sorted((h(k), v) for k, v in t.items())),
        of(l0=L(12, 12), l1=L(12, 12), l2=L(12, 12)).eval(),
        None,
    )


@case("trap: no evidence", "alpha, beta, gamma_net of one size -> query, key, value")
def trap_greek_to_qkv():
    t = sd(shake(of(attn__alpha=L(12, 12), attn__beta=L(12, 12), attn__delta=L(12, 12), out=L(12, 2)), 318))
    return t, of(attn__query=L(12, 12), attn__key=L(12, 12), attn__value=L(12, 12), out=L(12, 2)).eval(), None


@case("trap: no evidence", "netA and netB are an encoder and a decoder of one shape, nobody says which")
def trap_net_a_b():
    make = lambda x, y: of(
        **{x: nn.Sequential(L(16, 16), nn.ReLU(), L(16, 16)), y: nn.Sequential(L(16, 16), nn.ReLU(), L(16, 16))}
    )
    return sd(shake(make("netA", "netB"), 319)), make("encoder", "decoder").eval(), None


@case("trap: order inside unknown", 'a fused (3D, D) matrix named only "fused" into q, k, v')
def trap_fused_no_order():
    s = OrderedDict(
        {
            "attn.fused.weight": rnd(1, 48, 16),
            "attn.fused.bias": rnd(2, 48),
            "attn.proj.weight": rnd(3, 16, 16),
            "attn.proj.bias": rnd(4, 16),
        }
    )
    return s, of(attn__q=L(16, 16), attn__k=L(16, 16), attn__v=L(16, 16), attn__proj=L(16, 16)).eval(), None


@case("trap: order inside unknown", "query_key_value (per head in NeoX and Bloom, in blocks in GLM) into timm qkv")
def trap_query_key_value_to_qkv():
    s = OrderedDict()
    for i in range(2):
        s[f"layers.{i}.attention.query_key_value.weight"], s[f"layers.{i}.attention.query_key_value.bias"] = (
            rnd(i, 48, 16),
            rnd(i + 5, 48),
        )
        s[f"layers.{i}.attention.dense.weight"], s[f"layers.{i}.attention.dense.bias"] = (
            rnd(i + 9, 16, 16),
            rnd(i + 13, 16),
        )
    return s, of(blocks__0__attn=Attn(16), blocks__1__attn=Attn(16)).eval(), None


@case("trap: order inside unknown", "gated MLP lin_a, lin_b -> gate_proj, up_proj")
def trap_gate_up_unknown():
    t = sd(
        shake(
            of(mlp__lin_a=L(12, 30, bias=False), mlp__lin_b=L(12, 30, bias=False), mlp__lin_c=L(30, 12, bias=False)),
            320,
        )
    )
    return (
        t,
        of(
            mlp__gate_proj=L(12, 30, bias=False),
            mlp__up_proj=L(12, 30, bias=False),
            mlp__down_proj=L(30, 12, bias=False),
        ).eval(),
        None,
    )


@case("trap: order inside unknown", "recurrent gates W1..W4 and U1..U4 (which is the forget gate?) into nn.LSTM")
def trap_gates_numbered():
    s = OrderedDict()
    for i in range(1, 5):
        s[f"cell.W{i}"], s[f"cell.U{i}"], s[f"cell.b{i}"] = rnd(i, 12, 8), rnd(i + 9, 12, 12), rnd(i + 20, 12)
    return s, of(cell=nn.LSTM(8, 12)).eval(), None


@case("trap: order inside unknown", 'kv matrix of two halves (2D, D) named "context_proj" into to_k, to_v')
def trap_context_proj():
    s = OrderedDict(
        {
            "attn.to_q.weight": rnd(1, 16, 16),
            "attn.context_proj.weight": rnd(2, 32, 16),
            "attn.to_out.weight": rnd(3, 16, 16),
        }
    )
    return (
        s,
        of(
            attn__to_q=L(16, 16, bias=False),
            attn__to_k=L(16, 16, bias=False),
            attn__to_v=L(16, 16, bias=False),
            attn__to_out=L(16, 16, bias=False),
        ).eval(),
        None,
    )


# --- not the weights -----------------------------------------------------------------------------------------------
@case("trap: not the weights", 'improved-diffusion#37: opt.pt loaded as the model ("state", "param_groups")')
def trap_optimizer_file():
    m = nn.Sequential(L(6, 8), nn.ReLU(), L(8, 2))
    st = {
        i: {"step": torch.tensor(5.0), "exp_avg": torch.randn_like(p), "exp_avg_sq": torch.rand_like(p)}
        for i, p in enumerate(m.parameters())
    }
    return {"state": st, "param_groups": [{"lr": 1e-3, "betas": (0.9, 0.999), "params": [0, 1, 2, 3]}]}, m.eval(), None


@case("trap: not the weights", "Adam moments kept by parameter name (own ZeRO code): exp_avg, exp_avg_sq")
def trap_moments_by_name():
    m = SmallCNN()
    g = {
        k: 1e-3 * torch.randn_like(v) for k, v in m.state_dict().items() if v.is_floating_point() and "running" not in k
    }
    return (
        {"exp_avg": g, "exp_avg_sq": {k: v * v for k, v in g.items()}, "step": 7},
        of(
            **{
                n: c
                for n, c in (
                    ("conv1", C(3, 8, 3)),
                    ("conv2", C(8, 16, 3)),
                    ("fc1", L(16, 24)),
                    ("fc2", L(24, 5)),
                    ("bn1", nn.GroupNorm(1, 8)),
                    ("bn2", nn.GroupNorm(1, 16)),
                )
            }
        ).eval(),
        None,
    )


@case("trap: not the weights", 'gradients dumped for debugging: {"grads": {name: p.grad}}')
def trap_gradients():
    m = of(fc1=L(6, 8), fc2=L(8, 2))
    return {"grads": {k: 1e-4 * rnd(1, *v.shape) for k, v in m.state_dict().items()}, "loss": 0.3}, m.eval(), None


@case("trap: not the weights", 'Vicuna-style delta weights: {"weight_diff": ...} must be added to a base')
def trap_delta_weights():
    m = HFLlama()
    return (
        {"weight_diff": {k: 1e-3 * rnd(2, *v.shape) for k, v in m.state_dict().items()}, "base": "llama-7b"},
        m.eval(),
        None,
    )


@case("trap: not the weights", "Fisher information / EWC importances under the parameter names")
def trap_fisher():
    m = of(fc1=L(6, 8), fc2=L(8, 2))
    return (
        {"fisher": {"fisher." + k: rnd(3, *v.shape).abs() * 1e-5 for k, v in m.state_dict().items()}, "n_samples": 100},
        m.eval(),
        None,
    )


# --- something would be lost ---------------------------------------------------------------------------------------
@case("trap: something would be lost", "peft state dict with trained adapters: dropping them gives another model")
def trap_lora_trained():
    t, m = pair(HFLlama, 321)
    s = ren(t, (r"(q_proj|v_proj)\.weight", r"\1.base_layer.weight"), (r"^", "base_model.model."))
    for i in range(2):
        for n in "qv":
            p = f"base_model.model.model.layers.{i}.self_attn.{n}_proj."
            s[p + "lora_A.default.weight"], s[p + "lora_B.default.weight"] = rnd(i, 4, 32), rnd(i + 7, 32, 4)
    return s, m, None


@case("trap: something would be lost", "int8 weights of the target shapes with scales beside them (own quantiser)")
def trap_int8_scales():
    m = of(fc1=L(12, 16, bias=False), fc2=L(16, 4, bias=False))
    s = OrderedDict()
    for k, v in m.state_dict().items():
        s[k] = (v * 100).round().to(torch.int8)
        s[k.replace("weight", "weight_scale")] = torch.full((v.shape[0], 1), 0.01)
    return s, m.eval(), None


@case(
    "trap: something would be lost", "RepVGG training file (three branches) into the deployed network with reparam bias"
)
def trap_repvgg_branches():
    f = of(
        **{f"stage{i}__rbr_dense__conv": C(8, 8, 3, bias=False) for i in (1, 2)},
        **{f"stage{i}__rbr_dense__bn": nn.BatchNorm2d(8) for i in (1, 2)},
        **{f"stage{i}__rbr_1x1__conv": C(8, 8, 1, bias=False) for i in (1, 2)},
        **{f"stage{i}__rbr_1x1__bn": nn.BatchNorm2d(8) for i in (1, 2)},
        linear=L(8, 3),
    )
    return (
        sd(shake(f, 322)),
        of(stage1__rbr_reparam=C(8, 8, 3), stage2__rbr_reparam=C(8, 8, 3), linear=L(8, 3)).eval(),
        None,
    )


@case("trap: something would be lost", "residual adapters in every block of the file, none in the target")
def trap_block_adapters():
    def make(ad):
        d = {}
        for i in range(2):
            d[f"blocks__{i}"] = VitBlock(16, 64)
            if ad:
                d[f"blocks__{i}__adapter"] = MLP(16, 4)
        return of(**d, head=L(16, 3))

    t = shake(make(True), 323)
    return sd(t), make(False).eval(), None


@case("trap: something would be lost", "one tensor-parallel shard (mp_rank_00 of 2): half the columns")
def trap_tp_shard():
    t = sd(shake(HFLlama(), 324))
    s = OrderedDict()
    for k, v in t.items():
        s[k] = (
            v[: v.shape[0] // 2].clone()
            if any(n in k for n in ("q_proj", "k_proj", "v_proj", "gate", "up_"))
            else v[:, : v.shape[1] // 2].clone()
            if any(n in k for n in ("o_proj", "down_"))
            else v
        )
    return {"module": s, "mp_world_size": 2}, HFLlama().eval(), None


# --- two candidates ------------------------------------------------------------------------------------------------
@case("trap: two candidates", "head_cifar and head_stl in the file, one head in the target")
def trap_two_heads():
    t = sd(shake(of(backbone=SmallCNN(classes=12), head_cifar=L(12, 10), head_stl=L(12, 10)), 325))
    return t, of(backbone=SmallCNN(classes=12), head=L(12, 10)).eval(), None


@case("trap: two candidates", "rgb_stream and depth_stream both fit the one backbone")
def trap_two_streams():
    t = sd(shake(of(rgb_stream=SmallCNN(), depth_stream=SmallCNN(), fuse=L(10, 2)), 326))
    return t, SmallCNN().eval(), None


@case("trap: two candidates", "model_best and model_last in one file")
def trap_best_last():
    a, b = sd(shake(SmallCNN(), 327)), sd(shake(SmallCNN(), 328))
    return {"model_last": a, "model_best": b, "epoch": 3}, SmallCNN().eval(), None


@case("trap: two candidates", "ensemble of five members, target is one network")
def trap_ensemble():
    return (
        {"models": [sd(shake(SmallCNN(), 329 + i)) for i in range(3)], "weights": [0.3, 0.3, 0.4]},
        SmallCNN().eval(),
        None,
    )


@case("trap: two candidates", "mixture of experts file: experts.0..3.w1; the target has one dense w1")
def trap_experts_to_dense():
    t = sd(
        shake(
            of(
                **{
                    f"ffn__experts__{i}__{n}": L(a, b) for i in range(4) for n, a, b in (("w1", 12, 20), ("w2", 20, 12))
                },
                ffn__gate=L(12, 4),
                norm=N(12),
            ),
            333,
        )
    )
    return t, of(ffn__w1=L(12, 20), ffn__w2=L(20, 12), norm=N(12)).eval(), None


@case("trap: sizes", "vocabulary of another tokenizer: 47 rows in the file, 53 in the model")
def trap_vocabulary():
    return sd(shake(NanoGpt(vocab=47), 334)), NanoGpt(vocab=53).eval(), None


@case("trap: sizes", "width multiplier: a narrower network of the same names")
def trap_width():
    return pre(sd(shake(TinyResNet(width=6), 335, IMG)), "module."), TinyResNet(width=8).eval(), None


@case("trap: sizes", "half of a sharded model (pytorch_model-00001-of-00002.bin)")
def trap_first_shard():
    t = sd(shake(HFLlama(depth=4), 336))
    return OrderedDict(list(t.items())[: len(t) // 2]), HFLlama(depth=4).eval(), None


@case("trap: sizes", "kernel 3 in the file, kernel 5 in the model (all else equal)")
def trap_kernel_size():
    f, m = of(conv1=C(3, 8, 3), conv2=C(8, 8, 3), fc=L(8, 2)), of(conv1=C(3, 8, 5), conv2=C(8, 8, 5), fc=L(8, 2))
    return sd(shake(f, 337)), m.eval(), None
