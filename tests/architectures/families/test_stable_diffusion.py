"""Whole checkpoints of Stable Diffusion: several models in one file, put together from recorded ones."""

from __future__ import annotations

import pytest

from inspector.architectures.families import FAMILIES
from inspector.architectures.families.match import find_families
from inspector.architectures.families.specs import settings_in, target_of_family, words_for
from inspector.architectures.families.stable_diffusion import POSTERIOR, SCHEDULE
from tests.architectures.families.recordings import Shapes, recordings


def of(source: str, file: str, label: str) -> Shapes:
    return next(r for r in recordings(file) if (r.source, r.label) == (source, label)).shapes


def under(prefix: str, shapes: Shapes) -> Shapes:
    return {prefix + name: shape for name, shape in shapes.items()}


def unet(label: str) -> Shapes:
    return under("model.diffusion_model.", of("originals", "ldm_unet", label))


VAE = under("first_stage_model.", of("originals", "ldm_vae", "sd vae"))
# transformers 4.30 keeps position numbers in the file, as published checkpoints of that time have them.
CLIP = of("transformers-4.30.2", "clip", "clip-vit-large-patch14 text")
OPEN_CLIP = of("originals", "clip_openai", "ViT-H-14 open_clip")
TEXT_H = {name: shape for name, shape in OPEN_CLIP.items() if not name.startswith("visual.")}
STEPS: Shapes = dict.fromkeys((*SCHEDULE, *POSTERIOR), (1000,))

FILES: dict[str, Shapes] = {
    "stable-diffusion-1": STEPS | unet("sd-1.5 unet") | VAE | under("cond_stage_model.transformer.", CLIP),
    "stable-diffusion-2": STEPS | unet("sd-2.1 unet") | VAE | under("cond_stage_model.model.", TEXT_H),
    "stable-diffusion-xl": unet("sdxl unet")
    | VAE
    | under("conditioner.embedders.0.transformer.", CLIP)
    | under("conditioner.embedders.1.model.", TEXT_H),
    "stable-diffusion-xl-refiner": unet("sdxl refiner unet") | VAE | under("conditioner.embedders.0.model.", TEXT_H),
}


@pytest.mark.parametrize("name", FILES)
def test_a_whole_checkpoint_is_several_models(name: str) -> None:
    shapes = FILES[name]
    (one, *_) = find_families(shapes, FAMILIES)
    candidate = one.candidate
    assert one.family.label == f"compvis/{name}" and candidate.exact and candidate.twins == ()
    assert set(candidate.matched) == shapes.keys()
    target = target_of_family(one.family, candidate.spec)
    assert {t.name: t.shape for t in target.tensors} == shapes
    assert "models in one file" in words_for(one.family, candidate.spec)


def test_the_generations_are_told_apart_by_what_they_show() -> None:
    contexts = {}
    for name, shapes in FILES.items():
        settings = settings_in(find_families(shapes, FAMILIES)[0].candidate.spec)
        contexts[name] = (settings["context"], settings["text_hidden"], settings["vae_latent"])
    assert list(contexts.values()) == [(768, 768, 4), (1024, 1024, 4), (2048, 768, 4), (1280, 1024, 4)]


def test_a_merge_without_schedule_and_position_numbers_is_the_same() -> None:
    kept = {
        name: shape
        for name, shape in FILES["stable-diffusion-1"].items()
        if name not in STEPS and not name.endswith("position_ids")
    }
    assert find_families(kept, FAMILIES)[0].candidate.exact


def test_the_old_names_of_the_autoencoders_attention() -> None:
    old = {"to_q": "query", "to_k": "key", "to_v": "value", "to_out.0": "proj_attn"}
    shapes = {}
    for name, shape in of("diffusers-0.42.1", "diffusers_vae", "sd vae").items():
        for new, before in old.items():
            name = name.replace(f"attentions.0.{new}.", f"attentions.0.{before}.")
        shapes[name] = shape
    (one, *_) = find_families(shapes, FAMILIES)
    assert one.family.label == "diffusers/vae" and one.candidate.exact
