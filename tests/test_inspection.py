"""One checkpoint, several questions: each answered, or skipped with its reason; a stop passes through."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torchvision

from inspector.architectures.targets import target_of
from inspector.architectures.types import ArchitectureSpec
from inspector.inspection import HEADER_QUESTIONS, Question, inspect
from inspector.progress import Stopped
from inspector.readers import open_checkpoint


@pytest.fixture(scope="module")
def wrapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    model = torchvision.models.squeezenet1_1(num_classes=5)
    path = tmp_path_factory.mktemp("inspection") / "s.pth"
    torch.save({"net": {f"module.{k}": v for k, v in model.state_dict().items()}}, path)
    return path


def test_all_questions_of_a_known_model(wrapped: Path) -> None:
    found = inspect(open_checkpoint(wrapped), Question)
    assert found.skipped == ()
    assert found.recognition is not None
    assert found.recognition.best is not None
    assert found.recognition.best.spec.label == "torchvision/squeezenet1_1?num_classes=5"
    expected = sum(p.numel() for p in torchvision.models.squeezenet1_1(num_classes=5).parameters())
    assert found.parameters is not None
    assert found.parameters.total.parameters == expected
    assert found.keys is not None
    assert not found.keys.loads
    assert found.keys.plan is not None
    assert found.keys.plan.complete
    assert found.costs is not None
    assert found.costs.parameters == expected
    assert found.health is not None
    assert len(found.health.weights.tensors) == 52
    # 26 convolutions, and nothing else with two dimensions.
    assert found.health.spectra is not None and len(found.health.spectra.spectra) == 26
    assert {name for name, _ in found.seconds} == {q.value for q in Question}


def test_only_what_was_asked_is_answered(wrapped: Path) -> None:
    found = inspect(open_checkpoint(wrapped), [Question.PARAMETERS])
    assert found.parameters is not None
    assert (found.recognition, found.keys, found.costs, found.health) == (None, None, None, None)


def test_a_given_target_is_used_instead_of_the_candidate(wrapped: Path) -> None:
    target = target_of(ArchitectureSpec(library="torchvision", name="resnet18"))
    found = inspect(open_checkpoint(wrapped), [Question.KEYS, Question.COSTS], target=target, input_size=(3, 64, 64))
    assert found.keys is not None
    assert found.keys.refusal
    assert found.costs is not None
    assert found.costs.input_shape == (1, 3, 64, 64)
    assert found.costs.target == "torchvision/resnet18"


def test_an_unknown_network_has_counts_and_says_why_it_has_no_costs(tmp_path: Path) -> None:
    torch.save(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)).state_dict(), tmp_path / "m.pth")
    found = inspect(open_checkpoint(tmp_path / "m.pth"), Question)
    assert found.parameters is not None
    assert found.parameters.total.parameters == 3 * 4 + 4 + 4 * 2 + 2
    assert {name for name, _ in found.skipped} == {"keys", "costs"}
    assert found.health is not None


def test_a_bare_tensor_skips_every_question_with_the_reason(tmp_path: Path) -> None:
    torch.save(torch.ones(3), tmp_path / "t.pt")
    found = inspect(open_checkpoint(tmp_path / "t.pt"), HEADER_QUESTIONS)
    assert {name for name, _ in found.skipped} == {q.value for q in HEADER_QUESTIONS}
    assert all("no state dict" in why for _, why in found.skipped)


def test_a_stop_ends_the_inspection(wrapped: Path) -> None:
    def stop(done: int, total: int | None, note: str) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        inspect(open_checkpoint(wrapped), [Question.HEALTH], progress=stop)
