"""Attributes renamed, refactors, numbering, library versions and conversions between libraries (names alone)."""

from collections import OrderedDict

import torch
from torch import nn

from .base import case, drop, pair, pre, ren, rnd, sd, shake, untrained
from .nets import *

IMG = (4, 3, 16, 16)


# --- renamed attributes --------------------------------------------------------------------------------------------
@case("renamed attributes", "MVDet#7: world_classifier became map_classifier")
def mvdet_map_classifier():
    t, m = pair(
        lambda: of(
            base_pt1=C(3, 8, 3),
            img_classifier__0=C(8, 6, 1),
            img_classifier__2=C(6, 2, 1, bias=False),
            map_classifier__0=C(18, 12, 3),
            map_classifier__2=C(12, 12, 3),
            map_classifier__4=C(12, 1, 3, bias=False),
        ),
        101,
    )
    return ren(t, ("map_classifier", "world_classifier")), m, t


@case("renamed attributes", "rf-detr#1091: cv1/cv2 became conv1/conv2")
def rfdetr_cv_conv():
    t, m = pair(Yolo, 102, (2, 3, 32, 32))
    return t_to(t, (r"\.cv(\d)\.", r".conv\1.")), m, t


def t_to(t, *pairs):
    return ren(t, *pairs)


@case("renamed attributes", "speechbrain#2529: mutihead_attn became multihead_attn")
def speechbrain_mutihead():
    def make():
        return of(
            layers__0__self_attn=nn.MultiheadAttention(12, 2),
            layers__0__multihead_attn=nn.MultiheadAttention(12, 2),
            layers__0__norm1=N(12),
            layers__0__norm2=N(12),
            layers__1__self_attn=nn.MultiheadAttention(12, 2),
            layers__1__multihead_attn=nn.MultiheadAttention(12, 2),
            layers__1__norm1=N(12),
            layers__1__norm2=N(12),
        )

    t, m = pair(make, 103)
    return ren(t, ("multihead_attn", "mutihead_attn")), m, t


@case("renamed attributes", "own CNN: c1/b1 became conv1/bn1, l1/l2 became fc1/fc2")
def own_short_names():
    t, m = pair(SmallCNN, 104, IMG)
    return ren(t, (r"^conv", "c"), (r"^bn", "b"), (r"^fc", "l")), m, t


@case("renamed attributes", "pytorch VAE example: fc21/fc22 became fc_mu/fc_logvar (same shapes)")
def vae_mu_logvar():
    t, m = pair(lambda: of(fc1=L(30, 20), fc_mu=L(20, 4), fc_logvar=L(20, 4), fc3=L(4, 20), fc4=L(20, 30)), 105)
    return ren(t, ("fc_mu", "fc21"), ("fc_logvar", "fc22")), m, t


# --- synonyms, order of definition other ---------------------------------------------------------------------------
@case("synonyms in other order", "encoder/decoder of one shape, enc/dec in the file, defined in the other order")
def enc_dec_swapped_order():
    t, m = pair(lambda: of(encoder__0=L(16, 16), encoder__1=L(16, 16), decoder__0=L(16, 16), decoder__1=L(16, 16)), 106)
    s = ren(t, ("encoder", "enc"), ("decoder", "dec"))
    return OrderedDict(sorted(s.items(), key=lambda kv: not kv[0].startswith("dec"))), m, t


@case("synonyms in other order", "proj_out defined before proj_in, renamed to out_proj / in_proj")
def proj_in_out_order():
    t, m = pair(lambda: of(in_proj=L(16, 16), mid=L(16, 32), back=L(32, 16), out_proj=L(16, 16)), 107)
    s = ren(t, ("in_proj", "proj_in"), ("out_proj", "proj_out"))
    return OrderedDict(sorted(s.items(), key=lambda kv: "out" not in kv[0])), m, t


@case("synonyms in other order", "alphabetical file (safetensors sorts): query/key/value as k,q,v order")
def alphabetical_qkv():
    t, m = pair(
        lambda: of(
            **{f"layers__{i}__attn__{n}": L(16, 16) for i in range(2) for n in ("query", "key", "value", "output")}
        ),
        108,
    )
    s = ren(t, (r"\.query", ".q"), (r"\.key", ".k"), (r"\.value", ".v"), (r"\.output", ".o"))
    return OrderedDict(sorted(s.items())), m, t


@case("synonyms in other order", "actor/critic -> policy_net/value_net (same trunk sizes), as in stable-baselines3")
def policy_value():
    t, m = pair(
        lambda: of(
            mlp_extractor__value_net__0=L(6, 16),
            mlp_extractor__value_net__2=L(16, 16),
            mlp_extractor__policy_net__0=L(6, 16),
            mlp_extractor__policy_net__2=L(16, 16),
            action_net=L(16, 2),
            value_net=L(16, 1),
        ),
        109,
    )
    s = ren(
        t,
        (r"mlp_extractor\.policy_net", "pi_net"),
        (r"mlp_extractor\.value_net", "vf_net"),
        ("^action_net", "pi_head"),
        ("^value_net", "vf_head"),
    )
    return OrderedDict(sorted(s.items())), m, t


# --- Sequential against names --------------------------------------------------------------------------------------
@case("sequential and named", "discuss: model rebuilt as nn.Sequential (0.weight ...), all in order")
def named_to_sequential():
    t, m = pair(
        lambda: nn.Sequential(
            C(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            C(8, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            L(16, 5),
        ),
        110,
        IMG,
    )
    return (
        ren(t, (r"^0\.", "conv1."), (r"^1\.", "bn1."), (r"^3\.", "conv2."), (r"^4\.", "bn2."), (r"^8\.", "fc.")),
        m,
        t,
    )


@case("sequential and named", "nn.Sequential(*list(resnet.children())[:-1]) saved, resnet wanted, fc new")
def resnet_children():
    t, m = pair(TinyResNet, 111, IMG)
    names = ["conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4"]
    return ren(drop(t, "^fc"), *[(rf"^{n}\.", f"{i}.") for i, n in enumerate(names)]), m, untrained(t, "^fc")


@case("sequential and named", "fastai: 0. body and 1. head of create_cnn_model")
def fastai_body_head():
    def make():
        return of(
            body=TinyResNet(classes=0, blocks=(1, 1)),
            head__bn=nn.BatchNorm1d(16),
            head__lin1=L(16, 12, bias=False),
            head__bn2=nn.BatchNorm1d(12),
            head__lin2=L(12, 3, bias=False),
        )

    t, m = pair(make, 112)
    return (
        {
            "model": ren(
                t,
                (r"^body\.conv1\.", "0.0."),
                (r"^body\.bn1\.", "0.1."),
                (r"^body\.layer1\.", "0.4."),
                (r"^body\.layer2\.", "0.5."),
                (r"^head\.bn\.", "1.2."),
                (r"^head\.lin1\.", "1.4."),
                (r"^head\.bn2\.", "1.6."),
                (r"^head\.lin2\.", "1.8."),
            ),
            "opt": None,
        },
        m,
        t,
    )


@case("sequential and named", "UNet: double_conv.0/1/3/4 became conv1, bn1, conv2, bn2")
def unet_double_conv_named():
    def make():
        def dc(i, o):
            return nn.ModuleDict(
                dict(
                    conv1=C(i, o, 3, bias=False),
                    bn1=nn.BatchNorm2d(o),
                    conv2=C(o, o, 3, bias=False),
                    bn2=nn.BatchNorm2d(o),
                )
            )

        return of(
            inc=dc(3, 4),
            down1=dc(4, 8),
            down2=dc(8, 16),
            up1__up=nn.ConvTranspose2d(16, 8, 2, 2),
            up1__conv=dc(16, 8),
            up2__up=nn.ConvTranspose2d(8, 4, 2, 2),
            up2__conv=dc(8, 4),
            outc=C(4, 2, 1),
        )

    t, m = pair(make, 113)
    return (
        ren(
            t,
            (r"^inc\.", "inc.double_conv."),
            (r"^(down\d)\.", r"\1.maxpool_conv.1.double_conv."),
            (r"^(up\d)\.conv\.", r"\1.conv.double_conv."),
            (r"^outc", "outc.conv"),
            (r"\.conv1\.", ".0."),
            (r"\.bn1\.", ".1."),
            (r"\.conv2\.", ".3."),
            (r"\.bn2\.", ".4."),
        ),
        m,
        t,
    )


@case("sequential and named", "OrderedDict names in the target, numbers in the file (DCGAN main.N)")
def dcgan_numbers():
    def make():
        return of(
            main=nn.Sequential(
                OrderedDict(
                    project=nn.ConvTranspose2d(10, 16, 4, bias=False),
                    bn0=nn.BatchNorm2d(16),
                    act0=nn.ReLU(),
                    up1=nn.ConvTranspose2d(16, 8, 4, bias=False),
                    bn1=nn.BatchNorm2d(8),
                    act1=nn.ReLU(),
                    to_rgb=nn.ConvTranspose2d(8, 3, 4, bias=False),
                )
            )
        )

    t, m = pair(make, 114)
    return ren(t, ("project", "0"), ("bn0", "1"), ("up1", "3"), ("bn1", "4"), ("to_rgb", "6")), m, t


# --- numbering -----------------------------------------------------------------------------------------------------
@case("numbering shifted", "Dropout inserted: classifier.0/2 became classifier.0/3")
def dropout_inserted():
    t, m = pair(
        lambda: of(
            features=C(3, 8, 3),
            classifier=nn.Sequential(L(8, 24), nn.ReLU(), nn.Dropout(), L(24, 24), nn.ReLU(), nn.Dropout(), L(24, 4)),
        ),
        115,
    )
    return ren(t, (r"classifier\.3", "classifier.2"), (r"classifier\.6", "classifier.4")), m, t


@case("numbering shifted", "layers counted from 1 in the file, from 0 in the target, one shape")
def one_based_layers():
    t, m = pair(lambda: Vit(depth=4), 116)
    import re

    return (
        OrderedDict((re.sub(r"blocks\.(\d+)", lambda x: f"blocks.{int(x[1]) + 1}", k), v) for k, v in t.items()),
        m,
        t,
    )


@case("numbering shifted", "zero-padded numbers: layer_00 ... layer_11 (TF, Megatron)")
def padded_numbers():
    t, m = pair(lambda: of(**{f"layers__{i}": L(12, 12) for i in range(12)}), 117)
    return OrderedDict((f"layer_{int(k.split('.')[1]):02d}.{k.split('.')[2]}", v) for k, v in t.items()), m, t


@case("numbering shifted", "conv1..conv4 attributes became a ModuleList convs.0..3 (one shape in the middle)")
def attributes_to_list():
    t, m = pair(
        lambda: of(
            convs=nn.ModuleList([C(3, 8, 3), C(8, 8, 3), C(8, 8, 3), C(8, 8, 3)]),
            norms=nn.ModuleList([nn.BatchNorm2d(8) for _ in range(4)]),
            out=L(8, 3),
        ),
        118,
    )
    import re

    return (
        OrderedDict((re.sub(r"^(conv|norm)s\.(\d)", lambda x: f"{x[1]}{int(x[2]) + 1}", k), v) for k, v in t.items()),
        m,
        t,
    )


@case("numbering shifted", "dinov2#235: blocks.0.0, blocks.0.1, blocks.1.2 (chunked blocks) against blocks.N")
def dinov2_block_chunks():
    t, m = pair(lambda: Vit(depth=4, classes=0), 119)
    import re

    return (
        {
            "teacher": OrderedDict(
                ("backbone." + re.sub(r"blocks\.(\d+)", lambda x: f"blocks.{int(x[1]) // 2}.{x[1]}", k), v)
                for k, v in t.items()
            )
        },
        m,
        t,
    )


# --- lists flattened or nested -------------------------------------------------------------------------------------
@case("lists nested otherwise", "lucidrains vit: transformer.layers.N.0.fn. / .1.fn. against blocks with names")
def lucidrains_nested():
    def make():
        b = {}
        for i in range(2):
            b.update(
                {
                    f"blocks__{i}__attn_norm": N(16),
                    f"blocks__{i}__attn__to_qkv": L(16, 48, bias=False),
                    f"blocks__{i}__attn__to_out": L(16, 16),
                    f"blocks__{i}__ff_norm": N(16),
                    f"blocks__{i}__ff__in_proj": L(16, 40),
                    f"blocks__{i}__ff__out_proj": L(40, 16),
                }
            )
        return of(**b)

    t, m = pair(make, 120)
    return (
        ren(
            t,
            (r"^blocks\.(\d)\.attn_norm", r"transformer.layers.\1.0.norm"),
            (r"^blocks\.(\d)\.ff_norm", r"transformer.layers.\1.1.norm"),
            (r"^blocks\.(\d)\.attn\.to_qkv", r"transformer.layers.\1.0.fn.to_qkv"),
            (r"^blocks\.(\d)\.attn\.to_out", r"transformer.layers.\1.0.fn.to_out.0"),
            (r"^blocks\.(\d)\.ff\.in_proj", r"transformer.layers.\1.1.fn.net.0"),
            (r"^blocks\.(\d)\.ff\.out_proj", r"transformer.layers.\1.1.fn.net.3"),
        ),
        m,
        t,
    )


@case("lists nested otherwise", "layers.N.attn / layers.N.ff became attns.N / ffs.N")
def lists_by_kind():
    t, m = pair(
        lambda: of(
            attns=nn.ModuleList([SplitAttn(16) for _ in range(3)]),
            ffs=nn.ModuleList([MLP(16, 40) for _ in range(3)]),
            norms=nn.ModuleList([N(16) for _ in range(3)]),
        ),
        121,
    )
    return ren(t, (r"^(attn|ff|norm)s\.(\d)", r"layers.\2.\1")), m, t


@case("lists nested otherwise", "stages.0.blocks.0.. flattened to blocks.0..5 running through")
def stages_flattened():
    t, m = pair(
        lambda: of(stem=C(3, 8, 4), blocks=nn.ModuleList([VitBlock(8, 32) for _ in range(5)]), head=L(8, 3)), 122
    )
    import re

    at = {0: "0.0", 1: "0.1", 2: "1.0", 3: "1.1", 4: "1.2"}
    return (
        OrderedDict(
            (re.sub(r"^blocks\.(\d)", lambda x: "stages.%s.blocks.%s" % tuple(at[int(x[1])].split(".")), k), v)
            for k, v in t.items()
        ),
        m,
        t,
    )


@case("lists nested otherwise", "DenseTorch#14: module.0.layer1 = encoder, module.1 = decoder in an nn.Sequential")
def densetorch_pair():
    t, m = pair(
        lambda: of(encoder=TinyResNet(classes=0, blocks=(1, 1)), decoder__conv1=C(16, 8, 1), decoder__conv2=C(8, 2, 3)),
        123,
    )
    return {"segmenter": ren(t, ("^encoder", "module.0"), ("^decoder", "module.1"))}, m, t


# --- separators and spelling ---------------------------------------------------------------------------------------
@case("separators and spelling", "names joined by underscores (ONNX initialisers, EMA buffers)")
def underscore_joined():
    t, m = pair(lambda: Vit(depth=2), 124)
    return OrderedDict((k.replace(".", "_"), v) for k, v in t.items()), m, t


@case("separators and spelling", "slashes from a TF-like variable scope, weights in torch layout")
def slashes():
    t, m = pair(TinyResNet, 125, IMG)
    return OrderedDict(("net/" + k.replace(".", "/"), v) for k, v in t.items()), m, t


@case("separators and spelling", "camelCase became snake_case: convIn, normOut, fcHidden")
def camel_to_snake():
    t, m = pair(
        lambda: of(
            conv_in=C(3, 8, 3),
            norm_in=nn.BatchNorm2d(8),
            conv_out=C(8, 8, 3),
            norm_out=nn.BatchNorm2d(8),
            fc_hidden=L(8, 8),
            fc_final=L(8, 8),
        ),
        126,
    )
    import re

    return (
        OrderedDict(
            (re.sub(r"_([a-z])(?=[a-z]*\.)", lambda x: x[1].upper(), k.split(".")[0] + ".") + k.split(".", 1)[1], v)
            for k, v in t.items()
        ),
        m,
        t,
    )


@case("separators and spelling", "bn.weight saved as bn.gamma / beta / moving_mean / moving_variance (Keras words)")
def keras_norm_words():
    t, m = pair(TinyResNet, 127, IMG)
    return (
        ren(
            drop(t, "num_batches"),
            (r"(bn\d|downsample\.1)\.weight", r"\1.gamma"),
            (r"(bn\d|downsample\.1)\.bias", r"\1.beta"),
            ("running_mean", "moving_mean"),
            ("running_var", "moving_variance"),
        ),
        m,
        OrderedDict((k, (None, torch.tensor(0)) if "num_batches" in k else v) for k, v in t.items()),
    )


@case("separators and spelling", "MindSpore: gamma, beta, moving_mean; embedding_table")
def mindspore_words():
    t, m = pair(lambda: of(embed=E(30, 12), fc=L(12, 12), norm=N(12), bn=nn.BatchNorm1d(12)), 128)
    return (
        ren(
            drop(t, "num_batches"),
            ("embed.weight", "embed.embedding_table"),
            (r"(norm|bn)\.weight", r"\1.gamma"),
            (r"(norm|bn)\.bias", r"\1.beta"),
            ("running_mean", "moving_mean"),
            ("running_var", "moving_variance"),
        ),
        m,
        OrderedDict((k, (None, torch.tensor(0)) if "num_batches" in k else v) for k, v in t.items()),
    )


# --- library versions ----------------------------------------------------------------------------------------------
@case("library versions", "torchvision densenet files: norm.1, conv.2 of 2017")
def densenet_old_dots():
    from torchvision.models.densenet import DenseNet

    t, m = pair(lambda: DenseNet(8, (2, 2), 16, 2, num_classes=5), 129, (2, 3, 32, 32))
    return ren(t, (r"(denselayer\d)\.(norm|conv)(\d)", r"\1.\2.\3")), m, t


@case("library versions", "torchvision ViT before MLPBlock version 2: mlp.linear_1, linear_2")
def torchvision_vit_linear():
    from torchvision.models.vision_transformer import VisionTransformer

    t, m = pair(lambda: VisionTransformer(16, 4, 2, 2, 24, 48, num_classes=5), 130)
    return ren(t, (r"mlp\.0\.", "mlp.linear_1."), (r"mlp\.3\.", "mlp.linear_2.")), m, t


@case("library versions", "BERT files of pytorch-pretrained-bert: LayerNorm.gamma, beta")
def bert_gamma_beta():
    t, m = pair(BertHead, 131)
    return ren(t, (r"LayerNorm\.weight", "LayerNorm.gamma"), (r"LayerNorm\.bias", "LayerNorm.beta")), m, t


@case("library versions", "timm Swin 0.8: downsample moved from the end of layers.N to the start of layers.N+1")
def timm_swin_downsample():
    def make():
        return of(
            patch_embed__proj=C(3, 8, 4, 4),
            layers__0__blocks__0=VitBlock(8, 32),
            layers__1__downsample__norm=N(32),
            layers__1__downsample__reduction=L(32, 16, bias=False),
            layers__1__blocks__0=VitBlock(16, 64),
            layers__2__downsample__norm=N(64),
            layers__2__downsample__reduction=L(64, 32, bias=False),
            layers__2__blocks__0=VitBlock(32, 128),
            norm=N(32),
            head__fc=L(32, 5),
        )

    t, m = pair(make, 132)
    return (
        {
            "model": ren(
                t, (r"layers\.1\.down", "layers.0.down"), (r"layers\.2\.down", "layers.1.down"), (r"head\.fc", "head")
            )
        },
        m,
        t,
    )


@case("library versions", "diffusers VAE attention: query, key, value, proj_attn became to_q ... to_out.0")
def diffusers_proj_attn():
    def make():
        a = of(group_norm=nn.GroupNorm(2, 16), to_q=L(16, 16), to_k=L(16, 16), to_v=L(16, 16), to_out__0=L(16, 16))
        return of(mid_block__attentions__0=a, mid_block__resnets__0=SdRes(16, 16, 8), conv_out=C(16, 3, 3))

    t, m = pair(make, 133)
    return ren(t, ("to_q", "query"), ("to_k", "key"), ("to_v", "value"), (r"to_out\.0", "proj_attn")), m, t


# --- timm, torchvision, transformers ViT ---------------------------------------------------------------------------
@case("vit conversions", "mmpretrain ViT: layers.N.ln1, attn.qkv, ffn.layers.0.0, ffn.layers.1, ln1 at the end")
def mmpretrain_vit():
    t, m = pair(Vit, 134)
    return (
        {
            "meta": {},
            "state_dict": pre(
                ren(
                    t,
                    (r"^blocks", "layers"),
                    (r"\.norm(\d)", r".ln\1"),
                    (r"^norm\.", "ln1."),
                    (r"mlp\.fc1", "ffn.layers.0.0"),
                    (r"mlp\.fc2", "ffn.layers.1"),
                    (r"patch_embed\.proj", "patch_embed.projection"),
                    (r"^head", "head.layers.head"),
                    (r"^(?!head)", "backbone."),
                ),
                "",
            ),
        },
        m,
        t,
    )


@case("vit conversions", "facebook MAE/DeiT timm names into transformers ViT names with fused qkv split")
def timm_to_hf_vit():
    def make():
        d = dict(
            vit__embeddings__cls_token=nn.Parameter(torch.zeros(1, 1, 24)),
            vit__embeddings__position_embeddings=nn.Parameter(torch.zeros(1, 17, 24)),
            vit__embeddings__patch_embeddings__projection=C(3, 24, 4, 4),
        )
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
        return of(**d, vit__layernorm=N(24), classifier=L(24, 5))

    t, m = pair(make, 135)
    s = ren(
        t,
        (r"^vit\.embeddings\.cls_token", "cls_token"),
        (r"^vit\.embeddings\.position_embeddings", "pos_embed"),
        (r"^vit\.embeddings\.patch_embeddings\.projection", "patch_embed.proj"),
        (r"^vit\.encoder\.layer", "blocks"),
        (r"attention\.output\.dense", "attn.proj"),
        (r"intermediate\.dense", "mlp.fc1"),
        (r"(?<!attention\.)output\.dense", "mlp.fc2"),
        ("layernorm_before", "norm1"),
        ("layernorm_after", "norm2"),
        (r"^vit\.layernorm", "norm"),
        ("^classifier", "head"),
    )
    for i in range(2):
        for w in ("weight", "bias"):
            s[f"blocks.{i}.attn.qkv.{w}"] = torch.cat(
                [s.pop(f"blocks.{i}.attention.attention.{n}.{w}") for n in ("query", "key", "value")]
            )
    return s, m, t


@case("vit conversions", "OpenAI CLIP vision names into transformers CLIP vision names")
def clip_to_hf():
    t, m = pair(HFClipVision, 136)
    s = ren(
        t,
        (r"^vision_model\.embeddings\.class_embedding", "visual.class_embedding"),
        (r"^vision_model\.embeddings\.patch_embedding", "visual.conv1"),
        (r"^vision_model\.embeddings\.position_embedding\.weight", "visual.positional_embedding"),
        (r"^vision_model\.pre_layrnorm", "visual.ln_pre"),
        (r"^vision_model\.post_layernorm", "visual.ln_post"),
        (r"^vision_model\.encoder\.layers", "visual.transformer.resblocks"),
        (r"layer_norm(\d)", r"ln_\1"),
        (r"mlp\.fc1", "mlp.c_fc"),
        (r"mlp\.fc2", "mlp.c_proj"),
        (r"self_attn\.out_proj", "attn.out_proj"),
    )
    for i in range(2):
        for w in ("weight", "bias"):
            p = f"visual.transformer.resblocks.{i}."
            s[f"{p}attn.in_proj_{w}"] = torch.cat([s.pop(f"{p}self_attn.{n}_proj.{w}") for n in "qkv"])
    s["visual.proj"] = rnd(1, 24, 16)
    s["logit_scale"] = torch.tensor(4.6)
    return s, m, t


@case("vit conversions", "torchvision vit into timm names (in_proj_weight, encoder_layer_N, conv_proj)")
def torchvision_vit_to_timm():
    t, m = pair(Vit, 137)
    return (
        ren(
            t,
            ("^cls_token", "class_token"),
            ("^pos_embed", "encoder.pos_embedding"),
            (r"^patch_embed\.proj", "conv_proj"),
            (r"^blocks\.(\d)\.norm1", r"encoder.layers.encoder_layer_\1.ln_1"),
            (r"^blocks\.(\d)\.norm2", r"encoder.layers.encoder_layer_\1.ln_2"),
            (r"^blocks\.(\d)\.attn\.qkv\.", r"encoder.layers.encoder_layer_\1.self_attention.in_proj_"),
            (r"^blocks\.(\d)\.attn\.proj", r"encoder.layers.encoder_layer_\1.self_attention.out_proj"),
            (r"^blocks\.(\d)\.mlp\.fc1", r"encoder.layers.encoder_layer_\1.mlp.0"),
            (r"^blocks\.(\d)\.mlp\.fc2", r"encoder.layers.encoder_layer_\1.mlp.3"),
            (r"^norm", "encoder.ln"),
            ("^head", "heads.head"),
        ),
        m,
        t,
    )


# --- resnets of other libraries ------------------------------------------------------------------------------------
@case("resnet conversions", "detectron2: stem.conv1.norm, res2.0.conv1.norm, shortcut")
def detectron2_resnet():
    t, m = pair(lambda: TinyResNet(classes=0), 138, IMG)
    t2 = drop(t, "num_batches")
    s = ren(
        t2,
        (r"^conv1\.", "backbone.bottom_up.stem.conv1."),
        (r"^bn1\.", "backbone.bottom_up.stem.conv1.norm."),
        (r"^layer(\d)", lambda x: f"backbone.bottom_up.res{int(x[1]) + 1}"),
        (r"downsample\.0", "shortcut"),
        (r"downsample\.1", "shortcut.norm"),
        (r"\.bn(\d)\.", r".conv\1.norm."),
    )
    return (
        {"model": s, "__author__": "x"},
        m,
        OrderedDict((k, (None, torch.tensor(0)) if "num_batches" in k else v) for k, v in t.items()),
    )


@case("resnet conversions", "HF ResNet: embedder.embedder.convolution, stages.N.layers.M.layer.0.normalization")
def hf_resnet():
    t, m = pair(TinyResNet, 139, IMG)
    s = ren(
        t,
        (r"^conv1\.", "resnet.embedder.embedder.convolution."),
        (r"^bn1\.", "resnet.embedder.embedder.normalization."),
        (r"^layer(\d)\.(\d)\.", lambda x: f"resnet.encoder.stages.{int(x[1]) - 1}.layers.{x[2]}."),
        (r"downsample\.0", "shortcut.convolution"),
        (r"downsample\.1", "shortcut.normalization"),
        (r"\.conv(\d)\.", lambda x: f".layer.{int(x[1]) - 1}.convolution."),
        (r"\.bn(\d)\.", lambda x: f".layer.{int(x[1]) - 1}.normalization."),
        (r"^fc\.", "classifier.1."),
    )
    return s, m, t


@case("resnet conversions", "kuangliu pytorch-cifar: shortcut.0/1 and linear against downsample and fc")
def kuangliu_cifar():
    t, m = pair(lambda: TinyResNet(stem=3), 140, IMG)
    return (
        {"net": pre(ren(t, ("downsample", "shortcut"), ("^fc", "linear")), "module."), "acc": 94.2, "epoch": 199},
        m,
        t,
    )


@case("resnet conversions", "Cadene pretrained-models: last_linear; reid strong baseline: base. and bottleneck")
def cadene_last_linear():
    t, m = pair(TinyResNet, 141, IMG)
    return ren(t, ("^fc", "last_linear")), m, t


@case("resnet conversions", "insightface-like: input_layer.0/1, body.N.res_layer ... into own unit names")
def grouped_res_layer():
    def make():
        return nn.ModuleDict(
            {
                "stem_conv": C(3, 8, 3, bias=False),
                "stem_bn": nn.BatchNorm2d(8),
                "stem_act": nn.PReLU(8),
                "units": nn.ModuleList(
                    [
                        of(
                            bn_a=nn.BatchNorm2d(8),
                            conv_a=C(8, 8, 3, bias=False),
                            prelu=nn.PReLU(8),
                            conv_b=C(8, 8, 3, bias=False),
                            bn_b=nn.BatchNorm2d(8),
                        )
                        for _ in range(3)
                    ]
                ),
            }
        )

    t, m = pair(make, 142)
    return (
        ren(
            t,
            ("^stem_conv", "input_layer.0"),
            ("^stem_bn", "input_layer.1"),
            ("^stem_act", "input_layer.2"),
            (r"^units", "body"),
            (r"bn_a", "res_layer.0"),
            ("conv_a", "res_layer.1"),
            (r"\.prelu", ".res_layer.2"),
            ("conv_b", "res_layer.3"),
            ("bn_b", "res_layer.4"),
        ),
        m,
        t,
    )


# --- language models -----------------------------------------------------------------------------------------------
@case("language model conversions", "GPT-2 of transformers without transformer. prefix, lm_head tied and absent")
def gpt2_base_to_lm():
    t, m = pair(NanoGpt, 143)
    return ren(drop(t, "lm_head"), (r"^transformer\.", "")), m, t


@case("language model conversions", "LLMs-from-scratch GPTModel (tok_emb, trf_blocks, att.W_query) into a q/k/v GPT")
def raschka_gpt():
    def make():
        d = dict(wte=E(41, 16), wpe=E(20, 16))
        for i in range(2):
            p = f"h__{i}__"
            d.update(
                {
                    p + "ln_1": N(16),
                    p + "attn__q_proj": L(16, 16, bias=False),
                    p + "attn__k_proj": L(16, 16, bias=False),
                    p + "attn__v_proj": L(16, 16, bias=False),
                    p + "attn__out_proj": L(16, 16),
                    p + "ln_2": N(16),
                    p + "mlp__c_fc": L(16, 64),
                    p + "mlp__c_proj": L(64, 16),
                }
            )
        return of(**d, ln_f=N(16), lm_head=L(16, 41, bias=False))

    t, m = pair(make, 144)
    s = ren(
        t,
        ("^wte", "tok_emb"),
        ("^wpe", "pos_emb"),
        (r"^h\.", "trf_blocks."),
        (r"attn\.q_proj", "att.W_query"),
        (r"attn\.k_proj", "att.W_key"),
        (r"attn\.v_proj", "att.W_value"),
        (r"attn\.out_proj", "att.out_proj"),
        ("ln_1", "norm1"),
        ("ln_2", "norm2"),
        (r"mlp\.c_fc", "ff.layers.0"),
        (r"mlp\.c_proj", "ff.layers.2"),
        ("^ln_f", "final_norm"),
        ("^lm_head", "out_head"),
    )
    s = OrderedDict(
        (
            k.replace("norm1.weight", "norm1.scale")
            .replace("norm1.bias", "norm1.shift")
            .replace("norm2.weight", "norm2.scale")
            .replace("norm2.bias", "norm2.shift")
            .replace("final_norm.weight", "final_norm.scale")
            .replace("final_norm.bias", "final_norm.shift"),
            v,
        )
        for k, v in s.items()
    )
    for i in range(2):
        s[f"trf_blocks.{i}.att.mask"] = torch.triu(torch.ones(20, 20), diagonal=1)
    return s, m, t


@case(
    "language model conversions",
    "fairseq wav2vec2/hubert encoder (self_attn_layer_norm, fc1, fc2) into transformers names",
)
def fairseq_encoder():
    def make():
        d = {}
        for i in range(2):
            p = f"encoder__layers__{i}__"
            d.update(
                {
                    p + "attention": SplitAttn(16),
                    p + "layer_norm": N(16),
                    p + "feed_forward__intermediate_dense": L(16, 64),
                    p + "feed_forward__output_dense": L(64, 16),
                    p + "final_layer_norm": N(16),
                }
            )
        return of(encoder__layer_norm=N(16), **d)

    t, m = pair(make, 145)
    return (
        {
            "model": pre(
                ren(
                    t,
                    (r"\.attention\.", ".self_attn."),
                    (r"(\d)\.layer_norm", r"\1.self_attn_layer_norm"),
                    (r"feed_forward\.intermediate_dense", "fc1"),
                    (r"feed_forward\.output_dense", "fc2"),
                ),
                "w2v_encoder.w2v_model.",
            ),
            "args": None,
        },
        m,
        t,
    )


@case(
    "language model conversions",
    "OpenAI whisper (attn.query, attn_ln, mlp.0) into transformers whisper, k_proj without bias",
)
def whisper_openai_hf():
    def make():
        d = {}
        for i in range(2):
            p = f"model__encoder__layers__{i}__"
            a = of(k_proj=L(16, 16, bias=False), v_proj=L(16, 16), q_proj=L(16, 16), out_proj=L(16, 16))
            d.update(
                {
                    p + "self_attn": a,
                    p + "self_attn_layer_norm": N(16),
                    p + "fc1": L(16, 64),
                    p + "fc2": L(64, 16),
                    p + "final_layer_norm": N(16),
                }
            )
        return of(
            model__encoder__conv1=nn.Conv1d(10, 16, 3),
            model__encoder__conv2=nn.Conv1d(16, 16, 3),
            **d,
            model__encoder__layer_norm=N(16),
        )

    t, m = pair(make, 146)
    return (
        {
            "dims": {"n_mels": 10},
            "model_state_dict": ren(
                t,
                (r"^model\.encoder\.layers", "encoder.blocks"),
                (r"^model\.encoder\.layer_norm", "encoder.ln_post"),
                (r"^model\.", ""),
                (r"self_attn\.q_proj", "attn.query"),
                (r"self_attn\.k_proj", "attn.key"),
                (r"self_attn\.v_proj", "attn.value"),
                (r"self_attn\.out_proj", "attn.out"),
                (r"self_attn_layer_norm", "attn_ln"),
                (r"\.fc1", ".mlp.0"),
                (r"\.fc2", ".mlp.2"),
                ("final_layer_norm", "mlp_ln"),
            ),
        },
        m,
        t,
    )


@case(
    "language model conversions",
    "BERT layers into DistilBERT names (q_lin, sa_layer_norm, ffn.lin1), token types stay out",
)
def bert_to_nn_transformer_names():
    def make():
        d = {}
        for i in range(2):
            p = f"transformer__layer__{i}__"
            d.update(
                {
                    p + "attention__q_lin": L(24, 24),
                    p + "attention__k_lin": L(24, 24),
                    p + "attention__v_lin": L(24, 24),
                    p + "attention__out_lin": L(24, 24),
                    p + "sa_layer_norm": N(24),
                    p + "ffn__lin1": L(24, 96),
                    p + "ffn__lin2": L(96, 24),
                    p + "output_layer_norm": N(24),
                }
            )
        return of(
            embeddings__word_embeddings=E(47, 24),
            embeddings__position_embeddings=E(20, 24),
            embeddings__LayerNorm=N(24),
            **d,
        )

    t, m = pair(make, 147)
    s = ren(
        t,
        (r"^transformer\.layer", "encoder.layer"),
        (r"attention\.q_lin", "attention.self.query"),
        (r"attention\.k_lin", "attention.self.key"),
        (r"attention\.v_lin", "attention.self.value"),
        (r"attention\.out_lin", "attention.output.dense"),
        ("sa_layer_norm", "attention.output.LayerNorm"),
        (r"ffn\.lin1", "intermediate.dense"),
        (r"ffn\.lin2", "output.dense"),
        ("output_layer_norm", "output.LayerNorm"),
        (r"^", "bert."),
    )
    return s, m, t


# --- diffusion -----------------------------------------------------------------------------------------------------
@case("diffusion conversions", "CompVis resblock in_layers/out_layers/emb_layers into diffusers resnets")
def compvis_resnets():
    t, m = pair(lambda: of(resnets__0=SdRes(8, 16, 12), resnets__1=SdRes(16, 16, 12)), 148)
    return (
        ren(
            t,
            (r"^resnets\.(\d)", r"input_blocks.\1.0"),
            ("norm1", "in_layers.0"),
            ("conv1", "in_layers.2"),
            ("time_emb_proj", "emb_layers.1"),
            ("norm2", "out_layers.0"),
            ("conv2", "out_layers.3"),
            ("conv_shortcut", "skip_connection"),
        ),
        m,
        t,
    )


@case("diffusion conversions", "LDM VAE: nin_shortcut, mid.block_1, mid.attn_1.q as 1x1 conv into Linear")
def ldm_vae_attention():
    def make():
        a = of(group_norm=nn.GroupNorm(2, 16), to_q=L(16, 16), to_k=L(16, 16), to_v=L(16, 16), to_out__0=L(16, 16))
        return of(
            encoder__mid_block__attentions__0=a,
            encoder__conv_norm_out=nn.GroupNorm(2, 16),
            encoder__conv_out=C(16, 8, 3),
        )

    t, m = pair(make, 149)
    s = ren(
        t,
        (r"mid_block\.attentions\.0\.group_norm", "mid.attn_1.norm"),
        (r"mid_block\.attentions\.0\.to_out\.0", "mid.attn_1.proj_out"),
        (r"mid_block\.attentions\.0\.to_(.)", r"mid.attn_1.\1"),
        ("conv_norm_out", "norm_out"),
    )
    return (
        OrderedDict(
            ("first_stage_model." + k, v[:, :, None, None] if "attn_1" in k and v.ndim == 2 else v)
            for k, v in s.items()
        ),
        m,
        t,
    )


@case("diffusion conversions", "DiT-like own names: t_embedder.mlp.0/2 against time_embed.linear_1/2")
def dit_time_embed():
    t, m = pair(
        lambda: of(
            time_embedding__linear_1=L(16, 24),
            time_embedding__linear_2=L(24, 24),
            class_embedding=E(11, 24),
            blocks__0=VitBlock(24, 96),
            blocks__1=VitBlock(24, 96),
            proj_out=L(24, 12),
        ),
        150,
    )
    return (
        ren(
            t,
            (r"time_embedding\.linear_1", "t_embedder.mlp.0"),
            (r"time_embedding\.linear_2", "t_embedder.mlp.2"),
            ("class_embedding", "y_embedder.embedding_table"),
            ("proj_out", "final_layer.linear"),
        ),
        m,
        t,
    )


# --- segmentation and detection ------------------------------------------------------------------------------------
@case("segmentation and detection", "nnU-Net v2: network_weights, decoder.encoder.* copies of the encoder, all_modules")
def nnunet_copies():
    def block(i, o):
        return of(conv=C(i, o, 3), norm=nn.InstanceNorm2d(o, affine=True))

    def make():
        return of(
            encoder__stages__0__convs__0=block(1, 4),
            encoder__stages__1__convs__0=block(4, 8),
            decoder__stages__0__convs__0=block(8, 4),
            decoder__transpconvs__0=nn.ConvTranspose2d(8, 4, 2, 2),
            decoder__seg_layers__0=C(4, 2, 1),
        )

    t, m = pair(make, 151)
    s = OrderedDict()
    for k, v in t.items():
        s[k] = v
        if ".convs.0." in k:
            s[
                k.replace("conv.", "all_modules.0.").replace("norm.", "all_modules.1.")
                if k.endswith(("conv.weight", "conv.bias")) or "norm." in k
                else k
            ] = v
    for k in list(s):
        if k.startswith("encoder."):
            s["decoder." + k] = s[k]
    return (
        {
            "network_weights": s,
            "optimizer_state": {},
            "grad_scaler_state": None,
            "logging": {},
            "trainer_name": "nnUNetTrainer",
            "current_epoch": 7,
        },
        m,
        t,
    )


@case("segmentation and detection", "MONAI UNet: model.0.conv.unit0.conv against encoder1.unit0.conv")
def monai_nested_model():
    def unit(i, o):
        return of(conv=C(i, o, 3), adn__N=nn.InstanceNorm2d(o, affine=True), adn__A=nn.PReLU())

    def make():
        return of(
            down1__unit0=unit(1, 4),
            down2__unit0=unit(4, 8),
            bottom__unit0=unit(8, 16),
            up2__unit0=unit(24, 4),
            up1__unit0=unit(8, 2),
        )

    t, m = pair(make, 152)
    return (
        ren(
            t,
            ("^down1", "model.0.conv"),
            ("^up1", "model.2.conv"),
            ("^down2", "model.1.submodule.0.conv"),
            ("^bottom", "model.1.submodule.1.submodule.conv"),
            ("^up2", "model.1.submodule.2.conv"),
        ),
        m,
        t,
    )


@case("segmentation and detection", "yolov5: DetectMultiBackend wraps as model.model.; v5 names model.N")
def yolo_double_model():
    t, m = pair(Yolo, 153, (2, 3, 32, 32))
    return {"model": pre(t, "model."), "ema": None, "epoch": -1}, m, t


@case("segmentation and detection", "torchvision deeplab aux_classifier absent in the target, file has it")
def deeplab_aux_dropped():
    t, m = pair(
        lambda: of(
            backbone=TinyResNet(classes=0),
            classifier__0=C(64, 8, 1, bias=False),
            classifier__1=nn.BatchNorm2d(8),
            classifier__4=C(8, 3, 1),
        ),
        154,
    )
    s = OrderedDict(t)
    x = sd(
        shake(
            of(
                aux_classifier__0=C(32, 8, 3, bias=False),
                aux_classifier__1=nn.BatchNorm2d(8),
                aux_classifier__4=C(8, 3, 1),
            ),
            5,
        )
    )
    s.update(x)
    return {"model": s}, m, t


@case("segmentation and detection", "mmseg decode_head.conv_seg against own head names, auxiliary_head dropped")
def mmseg_fcn():
    t, m = pair(
        lambda: of(
            backbone=TinyResNet(classes=0),
            head__conv=C(64, 8, 3, bias=False),
            head__bn=nn.BatchNorm2d(8),
            head__cls=C(8, 4, 1),
        ),
        155,
    )
    s = ren(
        t,
        (r"^head\.conv", "decode_head.convs.0.conv"),
        (r"^head\.bn", "decode_head.convs.0.bn"),
        (r"^head\.cls", "decode_head.conv_seg"),
    )
    s["auxiliary_head.convs.0.conv.weight"] = rnd(1, 8, 32, 3, 3)
    for n in ("weight", "bias", "running_mean", "running_var"):
        s["auxiliary_head.convs.0.bn." + n] = rnd(2, 8).abs()
    s["auxiliary_head.conv_seg.weight"], s["auxiliary_head.conv_seg.bias"] = rnd(3, 4, 8, 1, 1), rnd(4, 4)
    return {"meta": {"CLASSES": ("a", "b")}, "state_dict": s}, m, t


# --- refactors -----------------------------------------------------------------------------------------------------
@case("refactors", "two blocks merged into one: block1.conv, block2.conv -> stem.conv1, stem.conv2")
def blocks_merged():
    t, m = pair(
        lambda: of(
            stem__conv1=C(3, 8, 3, bias=False),
            stem__bn1=nn.BatchNorm2d(8),
            stem__conv2=C(8, 8, 3, bias=False),
            stem__bn2=nn.BatchNorm2d(8),
            head=L(8, 3),
        ),
        156,
    )
    return ren(t, (r"stem\.(conv|bn)(\d)", r"block\2.\1"), ("^head", "classifier")), m, t


@case("refactors", "head moved out of the backbone: backbone.fc -> head.fc, the rest stays")
def head_moved_out():
    t, m = pair(lambda: of(backbone=TinyResNet(classes=0, blocks=(1, 1)), head__fc=L(16, 5)), 157)
    return ren(t, (r"^head\.fc", "backbone.fc")), m, t


@case("refactors", "convolution and norm wrapped into ConvBNReLU: conv1.weight -> conv1.conv.weight, bn1 -> conv1.bn")
def conv_norm_wrapped():
    t, m = pair(lambda: of(conv1=ConvBN(3, 8), conv2=ConvBN(8, 8), conv3=ConvBN(8, 8), fc=L(8, 4)), 158)
    return ren(t, (r"conv(\d)\.conv", r"conv\1"), (r"conv(\d)\.bn", r"bn\1")), m, t


@case(
    "refactors",
    "shared layer written out: one `shared` in the file, block1.shared and block2.shared tied in the target",
)
def shared_layer_tied():
    def make():
        x = of(block1__shared=L(12, 12), block1__out=L(12, 8), block2__shared=L(12, 12), block2__out=L(12, 8))
        x.block2.shared = x.block1.shared
        return x

    t, m = pair(make, 159)
    s = drop(t, r"block2\.shared")
    return ren(s, (r"block1\.shared", "shared")), m, t


@case("refactors", "attention taken out of the block, blocks.N.attn.* -> attn_layers.N.*, mlp.* -> mlp_layers.N.*")
def attention_taken_out():
    t, m = pair(
        lambda: of(
            attn_layers=nn.ModuleList([Attn(16) for _ in range(3)]),
            mlp_layers=nn.ModuleList([MLP(16, 64) for _ in range(3)]),
            norm1s=nn.ModuleList([N(16) for _ in range(3)]),
            norm2s=nn.ModuleList([N(16) for _ in range(3)]),
        ),
        160,
    )
    return ren(t, (r"^(attn|mlp)_layers\.(\d)", r"blocks.\2.\1"), (r"^norm(\d)s\.(\d)", r"blocks.\2.norm\1")), m, t


# --- numbers instead of names --------------------------------------------------------------------------------------
@case("names lost", "list of parameters [p for p in model.parameters()], every shape once")
def list_unique_shapes():
    t, m = pair(lambda: nn.Sequential(C(3, 8, 3), nn.ReLU(), C(8, 12, 5), nn.ReLU(), L(12, 5)), 161)
    return list(t.values()), m, t


@case("names lost", "np.savez habit arr_0, arr_1 in order, shapes repeat, order is the models")
def arr_numbers():
    t, m = pair(lambda: nn.Sequential(L(12, 16), nn.ReLU(), L(16, 16), nn.ReLU(), L(16, 16), nn.ReLU(), L(16, 3)), 162)
    return OrderedDict((f"arr_{i}", v) for i, v in enumerate(t.values())), m, t


@case("names lost", "obfuscated hash names, every shape unique but the norm pairs (weight near 1, bias near 0)")
def hashed_names():
    t, m = pair(lambda: of(a__embed=E(31, 12), a__lin=L(12, 20), a__out=L(20, 7)), 163)
    import hashlib

    return (
        OrderedDict(
            (hashlib.md5(k.encode()).hexdigest()[:8], v)
            for k, v in sorted(t.items(), key=lambda kv: hashlib.md5(kv[0].encode()).hexdigest())
        ),
        m,
        t,
    )


@case("names lost", "keras-like counters: conv2d, conv2d_1, dense, dense_1 in order, torch layout")
def layer_counters():
    t, m = pair(SmallCNN, 164, IMG)
    return (
        ren(
            t,
            ("^conv1", "conv2d"),
            ("^conv2", "conv2d_1"),
            ("^bn1", "batch_normalization"),
            ("^bn2", "batch_normalization_1"),
            ("^fc1", "dense"),
            ("^fc2", "dense_1"),
        ),
        m,
        t,
    )
