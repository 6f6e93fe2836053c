"""The families of transformers, diffusers and their authors against state dicts that those libraries made."""

from __future__ import annotations

import random
from functools import cache

import pytest

from inspector.architectures.families import FAMILIES, find_family
from inspector.architectures.families.match import Found, find_families
from inspector.architectures.families.specs import settings_in, target_of_family, words_for
from inspector.architectures.index import load_index
from inspector.architectures.targets import parse_spec
from inspector.architectures.types import Candidate
from tests.architectures.families.recordings import Recording, Shapes, recordings

# Recorded file -> the families that it may be recognised as. Without their base, models of several families have the
# same names and shapes, and are told as twins.
OWNERS = {
    "bert": {"transformers/bert"},
    "distilbert": {"transformers/distilbert"},
    "electra": {"transformers/electra"},
    "roberta": {"transformers/roberta"},
    "gpt2": {"transformers/gpt2"},
    "nanogpt": {"karpathy/nanogpt"},
    "gpt_neox": {"transformers/gpt_neox"},
    "llama": {"transformers/llama", "transformers/qwen2", "transformers/qwen3"},
    "mixtral": {"transformers/mixtral"},
    "llama_meta": {"meta/llama"},
    "t5": {"transformers/t5"},
    "clip": {"transformers/clip", "transformers/clip_text", "transformers/clip_vision"},
    "clip_openai": {"openai/clip", "openai/clip_text"},
    "whisper": {"transformers/whisper"},
    "whisper_openai": {"openai/whisper"},
    "wav2vec2": {"transformers/wav2vec2", "transformers/hubert"},
    "vit": {"transformers/vit"},
    "deit": {"transformers/deit"},
    "diffusers_unet": {"diffusers/unet"},
    "ldm_unet": {"compvis/unet"},
    "diffusers_vae": {"diffusers/vae"},
    "ldm_vae": {"compvis/vae"},
}
LONGEST = 400  # tensors, where every recording of a family would only take longer
# Versions whose modules stand in another order than the template's, which is transformers 4.57's.
OTHER_ORDER = {("transformers-4.30.2", "llama"), ("transformers-5.23.0", "roberta")}


@cache
def every(file: str) -> tuple[Recording, ...]:
    # transformers 5 gave its vision transformers other names, which no template has.
    return tuple(r for r in recordings(file) if file not in ("vit", "deit") or r.source != "transformers-5.23.0")


def first(shapes: Shapes) -> Found:
    found = find_families(shapes, FAMILIES)
    assert found, "no family"
    return found[0]


@cache
def first_of(recording: Recording) -> Found:
    """Of what is saved of it."""
    return first(recording.saved)


def labels(candidate: Candidate) -> set[str]:
    return {f"{candidate.spec.library}/{candidate.spec.name}", *candidate.twins}


@pytest.mark.parametrize("file", OWNERS)
def test_every_recording_is_recognised_whole_and_written_again(file: str) -> None:
    for recording in every(file):
        for shapes, one in ((recording.shapes, first(recording.shapes)), (recording.saved, first_of(recording))):
            candidate = one.candidate
            assert candidate.exact and not candidate.missing and not candidate.extra, recording.id
            assert set(candidate.matched) == shapes.keys() and candidate.wrapper == "", recording.id
            assert labels(candidate) & OWNERS[file], recording.id
            target = target_of_family(one.family, candidate.spec)
            assert {t.name: t.shape for t in target.tensors} == shapes, recording.id
            buffers = {t.name for t in target.tensors if t.is_buffer}
            # transformers 5 has some of what were buffers as parameters that are not trained.
            assert buffers - recording.buffers <= {n for n in buffers if n.endswith("positional_embedding")}, (
                recording.id
            )
            if (recording.source, file) not in OTHER_ORDER and "open_clip" not in recording.label:
                assert [t.name for t in target.tensors] == list(shapes), recording.id
            # What is written on a command line means the same, but for what the shapes left to be assumed.
            read = parse_spec(candidate.spec.label)
            assert settings_in(read) == settings_in(candidate.spec), recording.id


@pytest.mark.parametrize("file", OWNERS)
def test_no_family_claims_anothers_files(file: str) -> None:
    # Found before joining, so that a family cannot hide behind a better one.
    for recording in every(file):
        if len(recording.saved) > LONGEST:
            continue
        exact = set()
        for family in FAMILIES:
            for one in find_families(recording.saved, (family,)):
                if one.candidate.exact:
                    exact.add(family.label)
        twins = labels(first_of(recording).candidate)
        assert exact == twins or exact == twins & exact, recording.id
        assert exact & OWNERS[file], recording.id
        if exact - OWNERS[file]:
            # Only the bare models of BERT's kin and of wav2vec 2.0's share their names.
            assert exact <= {"transformers/bert", "transformers/roberta", "transformers/electra"}, recording.id
            assert not any(name.startswith(("bert.", "roberta.", "electra.")) for name in recording.saved), recording.id


@pytest.mark.parametrize(
    ("file", "label", "expected"),
    [
        ("bert", "bert-base classes", {"layers": 12, "hidden": 768, "mlp": 3072, "vocab": 30522, "num_classes": 2}),
        ("roberta", "xlm-roberta-base", {"layers": 12, "hidden": 768, "vocab": 250002, "positions": 514}),
        ("distilbert", "distilbert-base masked", {"layers": 6, "hidden": 768, "vocab": 30522, "mlm": True}),
        ("gpt2", "gpt2-xl", {"layers": 48, "hidden": 1600, "mlp": 6400, "vocab": 50257, "positions": 1024}),
        ("gpt_neox", "pythia-70m", {"layers": 6, "hidden": 512, "vocab": 50304}),
        ("llama", "llama-3-8b", {"layers": 32, "hidden": 4096, "mlp": 14336, "vocab": 128256, "key_width": 1024}),
        ("llama", "qwen3-0.6b", {"layers": 28, "heads": 16, "key_heads": 8, "head_width": 128, "hidden": 1024}),
        ("llama", "mistral-nemo", {"layers": 40, "hidden": 5120, "query_width": 4096, "key_width": 1024}),
        ("mixtral", "mixtral-8x7b", {"layers": 32, "experts": 8, "mlp": 14336}),
        ("t5", "t5-v1_1-base", {"layers": 12, "decoder_layers": 12, "heads": 12, "head_width": 64, "gated": True}),
        ("clip", "clip-vit-large-patch14", {"text_layers": 12, "vision_layers": 24, "vision_patch": 14}),
        ("whisper", "whisper-large-v3", {"layers": 32, "decoder_layers": 32, "mels": 128, "vocab": 51866}),
        ("whisper_openai", "large-v3-turbo", {"layers": 32, "decoder_layers": 4, "audio_positions": 1500}),
        ("wav2vec2", "wav2vec2-base-960h", {"conv_kernel": (10, 3, 3, 3, 3, 2, 2), "vocab": 32, "convolutions": 7}),
        ("diffusers_unet", "sdxl unet", {"context": 2048, "width": (320, 640, 1280), "attention": (0, 1, 1)}),
        ("ldm_unet", "sd-2.1 unet", {"context": 1024, "linear": True, "width": (320, 640, 1280, 1280)}),
        ("ldm_vae", "sd vae", {"latent": 4, "blocks": 2, "width": (128, 256, 512, 512)}),
    ],
)
def test_published_sizes_are_read_off(file: str, label: str, expected: dict[str, object]) -> None:
    for recording in every(file):
        # transformers 4.30 knew no grouped queries, so its Llama 3 is none.
        if recording.label == label and (recording.source, file) != ("transformers-4.30.2", "llama"):
            settings = settings_in(first_of(recording).candidate.spec)
            assert {name: settings.get(name) for name in expected} == expected, recording.id


@pytest.mark.parametrize("file", OWNERS)
def test_a_tenth_missing_wrapped_and_without_its_last_tensors(file: str) -> None:
    chance = random.Random(file)
    for recording in every(file):
        if not 30 <= len(recording.saved) <= LONGEST:
            continue
        whole = first_of(recording).candidate
        kept = dict(item for item in recording.saved.items() if chance.random() > 0.1)
        damaged = first({f"module.{name}": shape for name, shape in kept.items()}).candidate
        assert damaged.wrapper == "module." and damaged.spec.library == whole.spec.library, recording.id
        # Optional parts may be told by a tensor that is gone, so the family counts and what is left over.
        assert labels(damaged) & OWNERS[file], recording.id
        assert len(damaged.matched) >= 0.97 * len(kept), recording.id


def test_strangers_belong_to_nobody() -> None:
    index = load_index()
    entry = index.find("resnet50", library="torchvision")
    assert entry is not None
    resnet = dict(zip(entry.layout.names, entry.layout.shapes, strict=True))
    mlp: Shapes = {f"layers.{i}.weight": (64, 64) for i in range(40)} | {f"layers.{i}.bias": (64,) for i in range(40)}
    own = [family for family in FAMILIES if family.label in set().union(*OWNERS.values())]
    for shapes in (resnet, mlp):
        assert find_families(shapes, own) == []


def test_words_say_what_the_names_imply() -> None:
    by_label = {(r.source, r.file, r.label): r for r in (*every("bert"), *every("diffusers_unet"), *every("llama"))}

    def words(source: str, file: str, label: str) -> str:
        one = first_of(by_label[source, file, label])
        return words_for(one.family, one.candidate.spec)

    assert words("transformers-4.57.1", "bert", "bert-base classes") == (
        "a BERT encoder under the names of transformers' BertForSequenceClassification with 2 outputs "
        "(12 layers, hidden 768, vocabulary 30,522)"
    )
    assert words("diffusers-0.42.1", "diffusers_unet", "sd-2.1 unet").startswith(
        "a conditional UNet of Stable Diffusion 2, in diffusers' names ("
    )
    # Rotary positions pair channels in two ways that no shape tells; the names do.
    halves, neighbours = find_family("transformers", "llama"), find_family("meta", "llama")
    assert halves is not None and neighbours is not None
    assert "half a head" in halves.notes[0] and "neighbouring" in neighbours.notes[0]
