"""What is only a part of something larger says so first: LoRA, VAE, diffusion model, one encoder, head."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from inspector.architectures.index import load_index
from inspector.architectures.parts import name_part
from inspector.overview import summarise
from inspector.readers import open_checkpoint
from tests.architectures.families.recordings import Shapes, recordings


def recorded(source: str, file: str, label: str) -> Shapes:
    return next(r for r in recordings(file) if (r.source, r.label) == (source, label)).saved


def under(prefix: str, shapes: Shapes) -> Shapes:
    return {prefix + name: shape for name, shape in shapes.items()}


UNET = recorded("diffusers-0.42.1", "diffusers_unet", "sd-1.5 unet")
LDM_UNET = under("model.diffusion_model.", recorded("originals", "ldm_unet", "sd-1.5 unet"))
VAE = recorded("diffusers-0.42.1", "diffusers_vae", "sd vae")
LDM_VAE = under("first_stage_model.", recorded("originals", "ldm_vae", "sd vae"))
TEXT = recorded("transformers-4.57.1", "clip", "clip-vit-large-patch14 text")
LDM_TEXT = under("cond_stage_model.transformer.", TEXT)
T5 = recorded("transformers-4.57.1", "t5", "t5-small")
FLUX: Shapes = {
    "img_in.weight": (3072, 64),
    "double_blocks.0.img_attn.qkv.weight": (9216, 3072),
    "single_blocks.0.linear1.weight": (21504, 3072),
    "final_layer.linear.weight": (64, 3072),
}
FLUX_DIFFUSERS: Shapes = {
    "x_embedder.weight": (3072, 64),
    "transformer_blocks.0.attn.to_q.weight": (3072, 3072),
    "single_transformer_blocks.0.attn.to_q.weight": (3072, 3072),
    "norm_out.linear.weight": (6144, 3072),
    "proj_out.weight": (64, 3072),
}

PARTS: dict[str, tuple[Shapes, str]] = {
    "diffusers' UNet": (
        UNET,
        "only the diffusion model (a UNet) of a pipeline: neither a VAE nor a text encoder is in",
    ),
    "the authors' UNet": (
        LDM_UNET,
        "only the diffusion model (a UNet) of a pipeline: neither a VAE nor a text encoder",
    ),
    "UNet and VAE": (
        LDM_UNET | LDM_VAE,
        "only the diffusion model (a UNet) and a VAE of a pipeline: no text encoder is",
    ),
    "UNet and text encoder": (
        LDM_UNET | LDM_TEXT,
        "only the diffusion model (a UNet) and the text encoder of a pipeline",
    ),
    "Flux": (FLUX, "only the diffusion model (a transformer) of a pipeline"),
    "Flux under a prefix": (under("model.diffusion_model.", FLUX), "only the diffusion model (a transformer)"),
    "Flux in diffusers": (FLUX_DIFFUSERS, "only the diffusion model (a transformer)"),
    "diffusers' VAE": (VAE, "a VAE, as diffusion pipelines have one between pictures and latents: neither a diffusion"),
    "the authors' VAE": (LDM_VAE, "a VAE, as diffusion pipelines"),
    "the decoder alone": ({n: s for n, s in VAE.items() if n.startswith("decoder.")}, "only the decoder of an autoenc"),
    "CLIP's text encoder": (TEXT, "only the text encoder, in CLIP's names: no picture encoder is in the file."),
    "CLIP's text encoder alone in its prefix": (LDM_TEXT, "only the text encoder, in CLIP's names"),
    "T5's encoder": (
        {n: s for n, s in T5.items() if n.startswith(("encoder.", "shared."))},
        "only the text encoder, in T5's names: no decoder is in the file.",
    ),
    "a head": (
        {"fc.weight": (10, 512), "fc.bias": (10,)},
        'only a linear layer called "fc", from 512 features',
    ),
    "a head of two layers": (
        {"classifier.0.weight": (256, 512), "classifier.0.bias": (256,), "classifier.3.weight": (7, 256)},
        'only 2 linear layers called "classifier", from 512 features to 7 answers',
    ),
}


@pytest.mark.parametrize("kind", PARTS)
def test_a_part_is_called_a_part(kind: str) -> None:
    shapes, says = PARTS[kind]
    assert name_part(shapes).startswith(f"This is {says}")


def lora(names: dict[str, tuple[int, int]], down: str, up: str, rank: int = 4, alpha: bool = False) -> Shapes:
    made: Shapes = {}
    for layer, (out, inner) in names.items():
        made |= {layer + down: (rank, inner), layer + up: (out, rank)}
        if alpha:
            made[f"{layer}.alpha"] = ()
    return made


UNET_LAYERS = {f"down_blocks.{i}.attentions.0.transformer_blocks.0.attn1.to_q": (320, 320) for i in range(3)}
FLAT = {f"lora_unet_{layer.replace('.', '_')}": size for layer, size in UNET_LAYERS.items()}
ENCODER = {"lora_te_text_model_encoder_layers_0_self_attn_q_proj": (768, 768)}
LORAS: dict[str, tuple[Shapes, str]] = {
    "kohya": (
        lora(FLAT | ENCODER, ".lora_down.weight", ".lora_up.weight", alpha=True),
        "of rank 4 for 3 layers of a diffusion model and 1 layer of a text encoder",
    ),
    "diffusers": (
        lora({f"unet.{n}": s for n, s in UNET_LAYERS.items()}, ".lora_A.weight", ".lora_B.weight"),
        "of rank 4 for 3 layers of a diffusion model",
    ),
    "diffusers before PEFT": (
        lora(
            {f"unet.{n}.processor.to_q": s for n, s in UNET_LAYERS.items()}, "_lora.down.weight", "_lora.up.weight"
        ),
        "of rank 4 for 3 layers of a diffusion model",
    ),
    "Flux in diffusers": (
        lora({"transformer.transformer_blocks.0.attn.to_q": (64, 64)}, ".lora_A.weight", ".lora_B.weight"),
        "of rank 4 for 1 layer of a diffusion model",
    ),
    "PEFT": (
        lora(
            {f"base_model.model.layers.{i}.self_attn.{n}": (64, 64) for i in range(2) for n in ("q_proj", "v_proj")},
            ".lora_A.weight", ".lora_B.weight", rank=8,
        ),
        "of rank 8 for 4 layers (q_proj, v_proj): only what is added",
    ),
    "PEFT with a head": (
        lora({"base_model.model.bert.query": (64, 64)}, ".lora_A.weight", ".lora_B.weight")
        | {"base_model.model.classifier.weight": (2, 64), "base_model.model.classifier.bias": (2,)},
        "of rank 4 for 1 layer (query), with 2 tensors trained whole: only what is added",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", LORAS)
def test_a_lora_without_a_config_beside_it_is_called_one(kind: str, tmp_path: Path) -> None:
    shapes, says = LORAS[kind]
    assert name_part(shapes).startswith(f"This is a LoRA {says}")
    save_file({name: torch.zeros(shape) for name, shape in shapes.items()}, tmp_path / "l.safetensors")
    answer = summarise(open_checkpoint(tmp_path / "l.safetensors")).answers[0].says
    assert answer.startswith("This is a LoRA of rank") and "not one of" not in answer


def first_sentence(state: dict[str, Tensor], tmp_path: Path) -> str:
    torch.save(state, tmp_path / "p.pth")
    return summarise(open_checkpoint(tmp_path / "p.pth")).answers[0].says


def test_the_overview_says_it_first(tmp_path: Path) -> None:
    assert first_sentence({"fc.weight": torch.ones(10, 512), "fc.bias": torch.ones(10)}, tmp_path).startswith(
        "This is only a linear layer called"
    )


WHOLE: dict[str, Shapes] = {
    "Stable Diffusion": LDM_UNET | LDM_VAE | LDM_TEXT,
    "a UNet that takes no text": {n: s for n, s in UNET.items() if "attn2" not in n},
    "CLIP": recorded("transformers-4.57.1", "clip", "clip small"),
    "OpenAI's CLIP": recorded("originals", "clip_openai", "small"),
    "T5": T5,
    "a caption model": TEXT | {"text_decoder.bert.layer.weight": (4, 4)},
    "a picture model with a language model": under("vision_tower.", {
        "vision_model.encoder.layers.0.mlp.fc1.weight": (4, 4),
        "vision_model.embeddings.patch_embedding.weight": (4, 3, 2, 2),
    }) | {"language_model.lm_head.weight": (9, 4)},
    "convolutions under the name of a head": {"head.0.weight": (8, 3, 3, 3), "head.1.weight": (2, 8)},
    "a network with a head": {"conv.weight": (8, 3, 3, 3), "fc.weight": (2, 8)},
    "a linear model": {"weight": (2, 8), "bias": (2,)},
    "a model with its adapter inside": {
        "base_model.model.q.base_layer.weight": (4, 4),
        "base_model.model.q.lora_A.default.weight": (2, 4),
        "base_model.model.q.lora_B.default.weight": (4, 2),
    },
    "names of a VAE over other shapes": {n: s[:1] for n, s in VAE.items()},
}  # fmt: skip


@pytest.mark.parametrize("kind", WHOLE)
def test_a_whole_model_is_not_called_a_part(kind: str) -> None:
    assert name_part(WHOLE[kind]) == ""


def test_no_builder_of_torchvision_or_timm_is_called_a_part() -> None:
    index = load_index()
    entries = [group[0] for group in index.of_layout if group]
    assert len(entries) > 500
    called = {
        entry.label: part
        for entry in entries
        if (part := name_part(dict(zip(entry.layout.names, entry.layout.shapes, strict=True))))
    }
    assert called == {}


def test_names_of_hostile_length_cost_no_time() -> None:
    assert name_part({"a." * 200_000 + str(i): (1,) for i in range(20)}) == ""


@pytest.mark.parametrize("prefix", ["cond_stage_model.", "text_encoder.", "conditioner.embedders.0.", "te1."])
def test_a_text_encoder_of_two_tensors_is_not_said_to_be_absent(prefix: str) -> None:
    text = {f"{prefix}embedding.weight": (1000, 768), f"{prefix}norm.weight": (768,)}
    assert "no text encoder" not in name_part(LDM_UNET | LDM_VAE | text)
    assert "text encoder" not in name_part(LDM_UNET | text)
    assert "nor a text encoder" in name_part(LDM_UNET)


def test_a_networks_own_blocks_of_an_adapters_name_are_no_lora() -> None:
    own = {
        "enc.lora_down.weight": (8, 64),
        "enc.lora_down.bias": (8,),
        "enc.lora_up.weight": (64, 8),
        "enc.lora_up.bias": (64,),
    }
    assert name_part(own) == ""
    assert (
        name_part({f"net.lora_down.{n}": s for n, s in {"conv.weight": (8, 3, 3, 3), "bn.weight": (8,)}.items()}) == ""
    )
    adapter = {name: shape for name, shape in own.items() if not name.endswith("bias")}
    assert name_part(adapter).startswith("This is a LoRA of rank 8 for 1 layer")


def test_a_diffusion_model_without_a_context_is_no_conditional_unet(tmp_path: Path) -> None:
    # guided-diffusion's names are those of the conditional one, but for the attention.
    def without_context(shapes: Shapes) -> Shapes:
        return {name: shape for name, shape in shapes.items() if ".transformer_blocks." not in name}

    for shapes in (without_context(recorded("originals", "ldm_unet", "sd-1.5 unet")), without_context(UNET)):
        state = {name: torch.empty(shape, device="meta") for name, shape in shapes.items()}
        torch.save(state, tmp_path / "m.pth")
        says = summarise(open_checkpoint(tmp_path / "m.pth")).answers[0].says
        assert "conditional" not in says and "UNet" not in says
