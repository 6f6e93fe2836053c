"""Models built by transformers and diffusers from what was solved, where those libraries are installed."""

from __future__ import annotations

import copy
import json

import pytest
import torch

from inspector.architectures.build import build_model
from inspector.architectures.families import FAMILIES
from inspector.architectures.families.match import find_families
from inspector.architectures.families.specs import confirm_all
from inspector.errors import InspectorError, MissingLibrary
from tests.architectures.families.recordings import Shapes, recordings

BUILT = [
    ("transformers", "bert", "bert small"),
    ("transformers", "bert", "bert small without pooler"),
    ("transformers", "bert", "bert small MaskedLM"),
    ("transformers", "bert", "bert small PreTraining"),
    ("transformers", "bert", "bert small SequenceClassification"),
    ("transformers", "bert", "bert small TokenClassification"),
    ("transformers", "bert", "bert small QuestionAnswering"),
    ("transformers", "roberta", "roberta small"),
    ("transformers", "roberta", "roberta small without pooler"),
    ("transformers", "roberta", "roberta small MaskedLM"),
    ("transformers", "roberta", "roberta small SequenceClassification"),
    ("transformers", "roberta", "roberta small TokenClassification"),
    ("transformers", "roberta", "roberta small QuestionAnswering"),
    ("transformers", "roberta", "roberta small MultipleChoice"),
    ("transformers", "distilbert", "distilbert small"),
    ("transformers", "distilbert", "distilbert small MaskedLM"),
    ("transformers", "distilbert", "distilbert small SequenceClassification"),
    ("transformers", "distilbert", "distilbert small TokenClassification"),
    ("transformers", "distilbert", "distilbert small QuestionAnswering"),
    ("transformers", "gpt2", "gpt2 small"),
    ("transformers", "gpt2", "gpt2 small lm"),
    ("transformers", "llama", "llama small"),
    ("transformers", "llama", "llama small biases"),
    ("transformers", "llama", "llama-3-8b"),
    ("transformers", "llama", "mistral small"),
    ("transformers", "llama", "qwen2 small"),
    ("transformers", "llama", "qwen3 small"),
    ("transformers", "llama", "qwen3 small model"),
    ("diffusers", "diffusers_vae", "sd vae"),
    ("diffusers", "diffusers_vae", "vae without quantisation layers"),
]


def recorded(file: str, label: str) -> Shapes:
    return next(r.shapes for r in recordings(file) if r.label == label and not r.source.endswith("4.30.2"))


@pytest.mark.parametrize(("library", "file", "label"), BUILT)
def test_the_built_model_has_the_files_tensors(library: str, file: str, label: str) -> None:
    pytest.importorskip(library)
    shapes = recorded(file, label)
    spec = confirm_all(find_families(shapes, FAMILIES)[0].candidate.spec)
    model = build_model(spec, device="meta")
    assert {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()} == shapes


TIED = [
    ("bert", "bert small MaskedLM"),
    ("roberta", "roberta small MaskedLM"),
    ("gpt2", "gpt2 small lm"),
    ("llama", "llama small lm"),
    ("llama", "qwen3 small"),
]


@pytest.mark.parametrize(("file", "label"), TIED)
def test_a_head_that_was_not_saved_is_none_here_and_answers_all_the_same(file: str, label: str) -> None:
    transformers = pytest.importorskip("transformers")
    recording = next(r for r in recordings(file) if r.label == label and r.source.startswith("transformers-5"))
    kind = recording.class_name
    fields = {**recording.config, "tie_word_embeddings": True}
    kinds = {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}} if file == "llama" else {}
    config = getattr(
        transformers, kind.replace("ForMaskedLM", "").replace("ForCausalLM", "").replace("LMHeadModel", "") + "Config"
    )(**fields, **kinds)
    torch.manual_seed(0)
    original = getattr(transformers, kind)(config).eval()
    with torch.no_grad():
        for parameter in original.parameters():
            parameter.normal_(std=0.2)
    ties = [name for name in original.state_dict() if "decoder." in name or name == "lm_head.weight"]
    state = {name: tensor for name, tensor in original.state_dict().items() if name not in ties}
    shapes = {name: tuple(tensor.shape) for name, tensor in state.items()}
    stated = {key: (json.dumps(value), "the file") for key, value in config.to_dict().items()}
    stated |= {
        f"rope_parameters.{key}": (json.dumps(v), "the file") for key, v in kinds.get("rope_parameters", {}).items()
    }
    candidate = find_families(shapes, FAMILIES, stated)[0].candidate
    assert ties and candidate.exact and candidate.spec.assumed == ()
    built = build_model(candidate.spec)
    assert list(built.state_dict()) == list(state)
    built.load_state_dict(state, strict=True)
    ids = torch.randint(2, 90, (2, 7), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        assert torch.equal(built(ids).logits, original(ids).logits)
        assert torch.equal(copy.deepcopy(built)(ids).logits, original(ids).logits)


def test_without_the_library_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "transformers", None)
    spec = confirm_all(find_families(recorded("bert", "bert small"), FAMILIES)[0].candidate.spec)
    with pytest.raises(InspectorError, match="needs transformers") as error:
        build_model(spec, device="meta")
    assert isinstance(error.value, MissingLibrary) and "pip install transformers" in str(error.value.hint)
