"""Wrappers, trainers, self-supervised set-ups, averaged copies, extra tensors."""

from collections import OrderedDict

import torch
from torch import nn

from .base import case, drop, pair, pre, ren, rnd, sd, shake, untrained
from .nets import *

IMG = (4, 3, 16, 16)


# --- parallel wrappers ---------------------------------------------------------------------------------------------
@case("parallel wrapper", 'discuss.pytorch.org 1686: Missing keys & unexpected keys "module."')
def dp_epoch_dict():
    t, m = pair(TinyResNet, 1, IMG)
    return {"epoch": 12, "arch": "resnet", "best_acc1": 61.2, "state_dict": pre(t, "module.")}, m, t


@case("parallel wrapper", "DataParallel around features only, as in the old imagenet example (features.module.0)")
def dp_features_only():
    t, m = pair(
        lambda: nn.ModuleDict(
            {
                "features": nn.Sequential(C(3, 8, 3), nn.ReLU(), C(8, 12, 3)),
                "classifier": nn.Sequential(nn.Dropout(), L(12, 20), nn.ReLU(), L(20, 5)),
            }
        ),
        2,
    )
    return ren(t, (r"^features\.", "features.module.")), m, t


@case("parallel wrapper", "apex DDP around a DataParallel model inside a trainer: model.module.module.")
def ddp_twice_in_trainer():
    t, m = pair(SmallCNN, 3, IMG)
    return {"net": pre(t, "model.module.module.")}, m, t


@case("parallel wrapper", 'discuss.pytorch.org: target wrapped, file is not (Missing "module.conv1.weight")')
def target_is_wrapped():
    t, m = pair(lambda: nn.DataParallel(SmallCNN()), 4, IMG)
    return ren(t, (r"^module\.", "")), m, t


@case("parallel wrapper", 'replace("module.", "") habit: a submodule truly named module')
def submodule_named_module():
    t, m = pair(lambda: of(module=SmallCNN(), head=L(5, 2)), 5)
    return pre(t, "module."), m, t


# --- torch.compile, FSDP, checkpointing ----------------------------------------------------------------------------
@case("compile and fsdp", "pytorch/pytorch#94575, nanoGPT resume: unwanted_prefix _orig_mod.")
def nanogpt_compiled():
    t, m = pair(NanoGpt, 6)
    return (
        {
            "model": pre(t, "_orig_mod."),
            "iter_num": 400,
            "best_val_loss": torch.tensor(3.2),
            "model_args": {"n_layer": 2},
        },
        m,
        t,
    )


@case("compile and fsdp", "timm#2003: is it _orig_mod.module. or module._orig_mod.?")
def compiled_then_ddp():
    t, m = pair(Vit, 7)
    return pre(t, "module._orig_mod."), m, t


@case("compile and fsdp", "torchtitan#2622, composer#2845: activation checkpointing inside compiled blocks")
def checkpoint_wrapped_blocks():
    t, m = pair(HFLlama, 8)
    return ren(t, (r"^model\.layers\.(\d+)\.", r"model.layers.\1._checkpoint_wrapped_module._orig_mod.")), m, t


@case("compile and fsdp", "FSDP state dicts of old torch: _fsdp_wrapped_module at each level")
def fsdp_mid_path():
    t, m = pair(HFLlama, 9)
    return (
        ren(
            t,
            (r"^", "_fsdp_wrapped_module."),
            (r"self_attn\.", "self_attn._fsdp_wrapped_module."),
            (r"mlp\.", "mlp._fsdp_wrapped_module."),
        ),
        m,
        t,
    )


@case("compile and fsdp", "only the backbone was compiled")
def compiled_backbone_only():
    t, m = pair(lambda: of(backbone=TinyResNet(classes=0, blocks=(1, 1)), head=L(16, 4)), 10)
    return ren(t, (r"^backbone\.", "backbone._orig_mod.")), m, t


# --- Lightning and other trainers ----------------------------------------------------------------------------------
@case("trainer prefix", 'Lightning: state_dict["model.conv1..."] plus hyper_parameters and callbacks')
def lightning_model():
    t, m = pair(SmallCNN, 11, IMG)
    return (
        {
            "epoch": 3,
            "global_step": 99,
            "pytorch-lightning_version": "1.9.0",
            "state_dict": pre(t, "model."),
            "loops": {},
            "callbacks": {},
            "optimizer_states": [],
            "lr_schedulers": [],
            "hyper_parameters": {"lr": 1e-3},
        },
        m,
        t,
    )


@case("trainer prefix", "Lightning with class weights of the loss beside the model")
def lightning_with_criterion():
    t, m = pair(SmallCNN, 12, IMG)
    s = pre(t, "net.")
    s["criterion.weight"] = torch.rand(5)
    return {"state_dict": s, "pytorch-lightning_version": "2.1.0", "epoch": 1}, m, t


@case("trainer prefix", "Lightning with torchmetrics states kept (persistent confusion matrix)")
def lightning_with_metrics():
    t, m = pair(SmallCNN, 13, IMG)
    s = pre(t, "model.")
    s["val_confmat.confmat"] = torch.randint(0, 9, (5, 5))
    s["train_acc.tp"] = torch.tensor([4, 5, 6, 7, 1])
    s["train_acc.fp"] = torch.tensor([4, 5, 6, 7, 2])
    return {"state_dict": s, "pytorch-lightning_version": "2.1.0", "epoch": 1}, m, t


@case("trainer prefix", 'skorch: module_ ; DeepSpeed mp_rank file: {"module": {...}, "ds_config": ...}')
def deepspeed_mp_rank():
    t, m = pair(HFLlama, 14)
    return (
        {"module": pre(t, "module."), "buffer_names": [], "optimizer": None, "ds_version": "0.9.2", "global_steps": 20},
        m,
        t,
    )


@case("trainer prefix", "sentence-transformers saved whole: 0.auto_model.")
def sentence_transformer():
    t, m = pair(HFBert, 15)
    return pre(t, "0.auto_model."), m, t


# --- library wrappers of backbones ---------------------------------------------------------------------------------
@case("backbone prefix", "torchvision detection: backbone.body. from IntermediateLayerGetter, fc not there")
def backbone_body():
    def make():
        return of(backbone__body=TinyResNet(classes=0), backbone__fpn=C(64, 8, 1))

    t, m = pair(make, 16)
    s = drop(t, r"fpn")
    return {"model": ren(s, (r"^backbone\.body\.", ""))}, m, untrained(t, r"fpn")


@case("backbone prefix", "smp: encoder. of a plain torchvision file, decoder new")
def smp_encoder():
    def make():
        return of(
            encoder=TinyResNet(classes=0), decoder__blocks__0__conv1__0=C(96, 8, 3), segmentation_head__0=C(8, 2, 3)
        )

    t, m = pair(make, 17)
    s = ren(drop(t, r"decoder|segm"), (r"^encoder\.", ""))
    s["fc.weight"], s["fc.bias"] = rnd(1, 1000, 64), rnd(2, 1000)
    return s, m, untrained(t, r"decoder|segm")


@case("backbone prefix", "terratorch#410: encoder._timm_module. and stages_2")
def terratorch_timm_module():
    t, m = pair(lambda: of(encoder=Vit(classes=0), decoder=C(24, 2, 1)), 18)
    return (
        {"state_dict": ren(t, (r"^encoder\.", "model.encoder._timm_module."), (r"^decoder\.", "model.decoder."))},
        m,
        t,
    )


@case("backbone prefix", "open_clip with a timm tower: visual.trunk.; only the tower is wanted")
def open_clip_trunk():
    t, m = pair(lambda: Vit(classes=0), 19)
    s = pre(t, "visual.trunk.")
    s["visual.head.proj.weight"] = rnd(3, 16, 24)
    s["logit_scale"] = torch.tensor(4.6)
    s["text.token_embedding.weight"] = rnd(4, 99, 16)
    s["text.ln_final.weight"] = rnd(4, 16)
    return s, m, t


@case("backbone prefix", "transformers: BertModel into BertForSequenceClassification (base prefix absent)")
def bert_base_into_head_model():
    t, m = pair(BertHead, 20)
    return ren(drop(t, r"^classifier"), (r"^bert\.", "")), m, untrained(t, r"^classifier")


# --- self-supervised -----------------------------------------------------------------------------------------------
@case("self-supervised", "moco main_lincls.py: module.encoder_q. without fc")
def moco_v2():
    t, m = pair(TinyResNet, 21, IMG)
    q, k = drop(t, r"^fc"), drop(sd(shake(TinyResNet(), 921, IMG)), r"^fc")
    s = pre(q, "module.encoder_q.")
    s.update(pre(k, "module.encoder_k."))
    for p in ("q", "k"):
        s[f"module.encoder_{p}.fc.0.weight"], s[f"module.encoder_{p}.fc.0.bias"] = rnd(5, 64, 64), rnd(6, 64)
        s[f"module.encoder_{p}.fc.2.weight"], s[f"module.encoder_{p}.fc.2.bias"] = rnd(7, 16, 64), rnd(8, 16)
    s["module.queue"], s["module.queue_ptr"] = rnd(9, 16, 40), torch.zeros(1, dtype=torch.long)
    return {"epoch": 200, "arch": "resnet50", "state_dict": s}, m, untrained(t, r"^fc")


@case("self-supervised", "facebookresearch/dino#30, #217: teacher backbone wanted")
def dino_teacher():
    t, m = pair(lambda: Vit(classes=0), 22)
    head = {
        "head.mlp.0.weight": rnd(1, 32, 24),
        "head.mlp.0.bias": rnd(2, 32),
        "head.last_layer.weight_g": torch.ones(64, 1),
        "head.last_layer.weight_v": rnd(3, 64, 32),
    }
    student = OrderedDict(
        list(pre(sd(shake(Vit(classes=0), 922)), "module.backbone.").items()) + list(pre(head, "module.").items())
    )
    teacher = OrderedDict(list(pre(t, "backbone.").items()) + list(head.items()))
    return {"student": student, "teacher": teacher, "epoch": 100, "dino_loss": {"center": rnd(4, 1, 64)}}, m, t


@case("self-supervised", "MAE pretrain file into a ViT: decoder_ keys and mask_token stay out, head new")
def mae_pretrain():
    t, m = pair(Vit, 23)
    s = drop(t, r"^head")
    s["mask_token"] = rnd(1, 1, 1, 16)
    s["decoder_pos_embed"] = rnd(2, 1, 17, 16)
    s["decoder_embed.weight"], s["decoder_embed.bias"] = rnd(3, 16, 24), rnd(4, 16)
    for k, v in sd(shake(VitBlock(16, 64), 5)).items():
        s["decoder_blocks.0." + k] = v
    s["decoder_norm.weight"], s["decoder_norm.bias"] = rnd(6, 16), rnd(7, 16)
    s["decoder_pred.weight"], s["decoder_pred.bias"] = rnd(8, 48, 16), rnd(9, 48)
    return {"model": s}, m, untrained(t, r"^head")


@case("self-supervised", "byol-pytorch: online_encoder.net. and target_encoder.net.")
def byol_online():
    t, m = pair(lambda: TinyResNet(blocks=(1, 1), classes=6), 24, IMG)
    s = pre(t, "online_encoder.net.")
    s.update(pre(sd(shake(TinyResNet(blocks=(1, 1), classes=6), 924, IMG)), "target_encoder.net."))
    s["online_encoder.projector.0.weight"], s["online_encoder.projector.0.bias"] = rnd(1, 32, 6), rnd(2, 32)
    s["online_predictor.0.weight"], s["online_predictor.0.bias"] = rnd(3, 32, 32), rnd(4, 32)
    return s, m, t


@case("self-supervised", 'SimCLR (sthalles): backbone.fc is a projector, "backbone." must go, fc must not be loaded')
def simclr_backbone():
    t, m = pair(TinyResNet, 25, IMG)
    s = pre(drop(t, r"^fc"), "backbone.")
    s["backbone.fc.0.weight"], s["backbone.fc.0.bias"] = rnd(1, 64, 64), rnd(2, 64)
    s["backbone.fc.2.weight"], s["backbone.fc.2.bias"] = rnd(3, 128, 64), rnd(4, 128)
    return {"epoch": 100, "arch": "resnet18", "state_dict": s}, m, untrained(t, r"^fc")


# --- averaged copies -----------------------------------------------------------------------------------------------
@case("averaged weights", "torch.optim.swa_utils.AveragedModel: module. and n_averaged")
def swa_averaged():
    t, m = pair(SmallCNN, 26, IMG)
    s = OrderedDict(n_averaged=torch.tensor(7))
    s.update(pre(t, "module."))
    return s, m, t


@case("averaged weights", "lucidrains ema_pytorch: ema_model. wanted, online_model. beside it, initted, step")
def ema_pytorch_ema():
    t, m = pair(UNet, 27, (2, 3, 16, 16))
    s = pre(sd(shake(UNet(), 927, (2, 3, 16, 16))), "online_model.")
    s.update(pre(t, "ema_model."))
    s["initted"], s["step"] = torch.tensor([True]), torch.tensor([500])
    return s, m, t


@case(
    "averaged weights",
    "mmcv EMAHook: flat buffers ema_layers_0_weight beside the live weights (O2SFormer#23); live wanted",
)
def mmcv_ema_hook():
    t, m = pair(lambda: Vit(depth=2), 28)
    s = OrderedDict(t)
    for k, v in sd(shake(Vit(depth=2), 928)).items():
        s["ema_" + k.replace(".", "_")] = v
    return {"meta": {"epoch": 2}, "state_dict": s}, m, t


@case("averaged weights", "LDM LitEma: model_ema.<name without dots>; the averaged ones are wanted")
def ldm_lit_ema():
    t, m = pair(
        lambda: of(
            input_blocks__0=C(4, 8, 3), middle_block__0=C(8, 8, 1), out__0=nn.GroupNorm(2, 8), out__2=C(8, 4, 3)
        ),
        29,
    )
    live = sd(
        shake(
            of(input_blocks__0=C(4, 8, 3), middle_block__0=C(8, 8, 1), out__0=nn.GroupNorm(2, 8), out__2=C(8, 4, 3)),
            929,
        )
    )
    s = pre(live, "model.diffusion_model.")
    s.update({"model_ema." + ("diffusion_model." + k).replace(".", ""): v for k, v in t.items()})
    s["model_ema.decay"], s["model_ema.num_updates"] = torch.tensor(0.9999), torch.tensor(10, dtype=torch.int)
    return {"state_dict": s, "global_step": 4}, m, t


@case("averaged weights", "timm train.py: state_dict and state_dict_ema; the averaged ones are wanted")
def timm_state_dict_ema():
    t, m = pair(Vit, 30)
    return (
        {
            "epoch": 3,
            "arch": "vit",
            "state_dict": sd(shake(Vit(), 930)),
            "state_dict_ema": t,
            "version": 2,
            "metric": 77.0,
        },
        m,
        t,
    )


# --- extra tensors -------------------------------------------------------------------------------------------------
@case("extra tensors", "thop left total_ops and total_params in every module (SRADSGAN#10)")
def thop_totals():
    t, m = pair(SmallCNN, 31, IMG)
    s = OrderedDict()
    for k, v in t.items():
        s[k] = v
    for p in ("", "conv1.", "bn1.", "conv2.", "bn2.", "fc1.", "fc2."):
        s[p + "total_ops"], s[p + "total_params"] = (
            torch.zeros(1, dtype=torch.float64),
            torch.zeros(1, dtype=torch.float64),
        )
    return s, m, t


@case("extra tensors", "XAI_Transformers#7: embeddings.position_ids of transformers < 4.31")
def bert_position_ids():
    t, m = pair(BertHead, 32)
    s = OrderedDict(t)
    s["bert.embeddings.position_ids"] = torch.arange(20)[None]
    return s, m, t


@case("extra tensors", "transformers llama of 2023: rotary_emb.inv_freq in each layer")
def llama_inv_freq():
    t, m = pair(HFLlama, 33)
    s = OrderedDict(t)
    for i in range(2):
        s[f"model.layers.{i}.self_attn.rotary_emb.inv_freq"] = 1 / 10000 ** (torch.arange(0, 8, 2) / 8)
    return s, m, t


@case("extra tensors", "old nanoGPT: attn.bias causal masks were buffers")
def nanogpt_causal_bias():
    t, m = pair(NanoGpt, 34)
    s = OrderedDict(t)
    for i in range(2):
        s[f"transformer.h.{i}.attn.bias"] = torch.tril(torch.ones(32, 32))[None, None]
    return s, m, t


@case("extra tensors", "QAT observers left in: activation_post_process, weight_fake_quant")
def qat_observers():
    t, m = pair(SmallCNN, 35, IMG)
    s = OrderedDict(t)
    for p in ("conv1", "conv2", "fc1", "fc2"):
        s[p + ".weight_fake_quant.scale"], s[p + ".weight_fake_quant.zero_point"] = (
            torch.rand(1),
            torch.zeros(1, dtype=torch.int),
        )
        s[p + ".activation_post_process.min_val"], s[p + ".activation_post_process.max_val"] = (
            torch.tensor(-1.0),
            torch.tensor(1.0),
        )
    return s, m, t


# --- missing buffers -----------------------------------------------------------------------------------------------
@case("missing buffers", "files before torch 0.4.1 have no num_batches_tracked")
def no_batches_tracked():
    t, m = pair(TinyResNet, 36, IMG)
    z = torch.tensor(0)
    return drop(t, "num_batches"), m, OrderedDict((k, (None, z) if "num_batches" in k else v) for k, v in t.items())


@case("missing buffers", "nanoGPT target with mask buffers, file of flash attention without")
def target_causal_mask():
    def make():
        g = NanoGpt()
        for b in g.transformer.h:
            b.attn.register_buffer("bias", torch.tril(torch.ones(32, 32))[None, None])
        return g

    t, m = pair(make, 37)
    return (
        drop(t, r"\.attn\.bias$"),
        m,
        OrderedDict((k, (v, None) if k.endswith(".attn.bias") else v) for k, v in t.items()),
    )


@case("missing buffers", "target with sinusoid table as a buffer pe, file saved without")
def target_sinusoid_pe():
    def make():
        pos, div = torch.arange(20)[:, None], torch.exp(torch.arange(0, 12, 2) * (-9.210340371976184 / 12))
        pe = torch.zeros(20, 1, 12)
        pe[:, 0, 0::2], pe[:, 0, 1::2] = torch.sin(pos * div), torch.cos(pos * div)
        return of(
            pos_encoder__pe=pe,
            encoder=nn.TransformerEncoder(nn.TransformerEncoderLayer(12, 2, 24), 2),
            embed=E(30, 12),
            decoder=L(12, 30),
        )

    t, m = pair(make, 38)
    return drop(t, "pe$"), m, OrderedDict((k, (v, None) if k.endswith("pe") else v) for k, v in t.items())


@case("missing buffers", "pixel mean and std became buffers of the model (detectron2 META_ARCH)")
def pixel_mean_std():
    def make():
        return of(
            pixel_mean=torch.tensor([123.675, 116.28, 103.53]).view(3, 1, 1),
            pixel_std=torch.tensor([58.395, 57.12, 57.375]).view(3, 1, 1),
            backbone=SmallCNN(),
        )

    t, m = pair(
        make,
        39,
    )
    return drop(t, "pixel"), m, OrderedDict((k, (v, None) if "pixel" in k else v) for k, v in t.items())


# --- several sets in a file ----------------------------------------------------------------------------------------
@case("several models", "CycleGAN-like file: netG_A, netG_B, netD_A...; the user wants netG_B and knows so")
def cyclegan_one_of():
    def make():
        return nn.Sequential(C(3, 8, 7), nn.ReLU(), C(8, 8, 3), nn.ReLU(), C(8, 3, 7))

    t, m = pair(make, 40)
    return {"netG_A": sd(shake(make(), 940)), "netG_B": t, "epoch": 3}, m, t


@case("several models", "stylegan2-pytorch (rosinality): g, d, g_ema; g_ema is what everybody loads")
def stylegan_g_ema():
    def make():
        return of(style__1=L(8, 8), style__2=L(8, 8), conv1__conv=C(8, 6, 3), to_rgb=C(6, 3, 1))

    t, m = pair(make, 41)
    d = of(convs__0=C(3, 6, 1), final=L(6, 1))
    return (
        {
            "g": sd(shake(make(), 941)),
            "d": sd(shake(d, 942)),
            "g_ema": t,
            "g_optim": {"state": {}, "param_groups": []},
            "ada_aug_p": 0.1,
        },
        m,
        t,
    )


@case("several models", "actor and critic in one dict, target is the actor (other sizes)")
def actor_of_actor_critic():
    t, m = pair(lambda: of(l1=L(7, 16), l2=L(16, 16), l3=L(16, 2)), 42)
    critic = of(l1=L(9, 16), l2=L(16, 16), l3=L(16, 1))
    return {"critic": sd(shake(critic, 943)), "actor": t, "log_alpha": torch.tensor(0.2)}, m, t


@case("several models", "encoder and decoder saved side by side, target has both as children")
def encoder_decoder_side_by_side():
    t, m = pair(
        lambda: of(
            encoder__embedding=E(20, 8),
            encoder__gru=nn.GRU(8, 8),
            decoder__embedding=E(25, 8),
            decoder__gru=nn.GRU(8, 8),
            decoder__out=L(8, 25),
        ),
        43,
    )
    e = {k[8:]: v for k, v in t.items() if k.startswith("encoder.")}
    d = {k[8:]: v for k, v in t.items() if k.startswith("decoder.")}
    return {"iteration": 5, "en": e, "de": d, "loss": 2.0}, m, t


# --- half precision and storage ------------------------------------------------------------------------------------
@case("other precision", "fp16 file of model.half() into a float32 model")
def half_file():
    t, m = pair(Vit, 44)
    t = OrderedDict((k, v.half()) for k, v in t.items())
    return pre(t, "module."), m, t


@case("other precision", "bfloat16 llama")
def bf16_llama():
    t, m = pair(HFLlama, 45)
    t = OrderedDict((k, v.bfloat16()) for k, v in t.items())
    return pre(t, "base."), m, t


@case("other precision", "float64 from a numpy experiment, arrays instead of tensors")
def numpy_arrays():
    t, m = pair(SmallCNN, 46, IMG)
    return {k: v.numpy() for k, v in t.items()}, m, t


@case("other precision", "Parameters and requires_grad kept in the dict")
def parameters_kept():
    t, m = pair(SmallCNN, 47, IMG)
    return pre(OrderedDict((k, nn.Parameter(v) if v.is_floating_point() else v) for k, v in t.items()), "net."), m, t
