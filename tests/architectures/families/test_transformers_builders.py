"""Models built by transformers and diffusers from what was solved, where those libraries are installed."""

from __future__ import annotations

import pytest

from inspector.architectures.build import build_model
from inspector.architectures.families import FAMILIES
from inspector.architectures.families.match import find_families
from inspector.architectures.families.specs import confirm_all
from inspector.errors import InspectorError, MissingLibrary, UsageError
from tests.architectures.families.recordings import Shapes, recordings

BUILT = [
    ("transformers", "bert", "bert small"),
    ("transformers", "bert", "bert small without pooler"),
    ("transformers", "bert", "bert small MaskedLM"),
    ("transformers", "bert", "bert small PreTraining"),
    ("transformers", "bert", "bert small SequenceClassification"),
    ("transformers", "bert", "bert small TokenClassification"),
    ("transformers", "bert", "bert small QuestionAnswering"),
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


def test_a_head_that_was_not_saved_is_said_to_be_tied() -> None:
    pytest.importorskip("transformers")
    shapes = {name: shape for name, shape in recorded("gpt2", "gpt2 small lm").items() if name != "lm_head.weight"}
    spec = confirm_all(find_families(shapes, FAMILIES)[0].candidate.spec)
    with pytest.raises(UsageError, match="lm_head, which this file leaves out because it is tied"):
        build_model(spec, device="meta")


def test_without_the_library_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "transformers", None)
    spec = confirm_all(find_families(recorded("bert", "bert small"), FAMILIES)[0].candidate.spec)
    with pytest.raises(InspectorError, match="needs transformers") as error:
        build_model(spec, device="meta")
    assert isinstance(error.value, MissingLibrary) and "pip install transformers" in str(error.value.hint)
