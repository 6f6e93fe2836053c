"""What families take, and that a confirmed one is really run: counted on meta, and over noise after a repair."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.architectures.facts import takes_pictures, usual_inputs
from inspector.architectures.targets import parse_spec, target_of
from inspector.architectures.types import ArchitectureSpec, Target
from inspector.checkpoint.types import Checkpoint
from inspector.errors import UsageError
from inspector.flops.count import count_costs
from inspector.keys.diagnose import diagnose
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint

CIFAR = "cifar/resnet?num_classes=10&in_channels=3&blocks=1&width=8,8,16,32"
BERT = (
    "transformers/bert?num_classes=3&activation=gelu&classifier=True&epsilon=1e-12&heads=4&hidden=64&layers=2&mlp=96"
    "&pooler=True&positions=32&types=2&vocab=120"
)


def wrapped(path: Path, target: Target) -> Checkpoint:
    """A file of the target's tensors, seeded, under "module."."""
    draw = torch.Generator().manual_seed(0)
    state = {
        f"module.{t.name}": (torch.rand(t.shape or (), generator=draw) - (len(t.shape or ()) > 1) / 2).to(
            getattr(torch, t.dtype or "float32")
        )
        for t in target.tensors
    }
    torch.save(state, path)
    return open_checkpoint(path)


def proof(checkpoint: Checkpoint, target: Target, name: str) -> tuple[bool | None, str]:
    plan = diagnose(checkpoint, target).plan
    assert plan is not None and plan.complete
    found = {one.id: one for one in verify_plan(checkpoint, plan, target).proofs}
    assert found["strict-load"].passed
    return found[name].passed, found[name].says


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BERT, [("input_ids", (1, 16), "int64", 120)]),
        (BERT.replace("positions=32", "positions=9"), [("input_ids", (1, 9), "int64", 120)]),
        (CIFAR, [("", (1, 3, 32, 32), "float32", 0)]),
        ("torchvision/resnet18?in_channels=1", [("", (1, 1, 224, 224), "float32", 0)]),
        ("torchvision/fasterrcnn_resnet50_fpn", []),
    ],
)
def test_what_is_taken(text: str, expected: list[tuple[object, ...]]) -> None:
    given = usual_inputs(parse_spec(text))
    assert [(one.name, one.shape, one.dtype, one.below) for one in given] == expected
    assert takes_pictures(parse_spec(text)) is not text.startswith("transformers/")


def test_a_confirmed_family_answers_after_a_repair(tmp_path: Path) -> None:
    target = target_of(parse_spec(CIFAR))
    passed, says = proof(wrapped(tmp_path / "a.pth", target), target, "forward")
    assert passed is True and says.startswith("Noise of 1x3x32x32 gives 1x10 values, finite")


def test_an_assumption_is_not_run(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    spec = parse_spec(BERT.replace("&heads=4", ""))
    target = target_of(spec)
    passed, says = proof(wrapped(tmp_path / "a.pth", target), target, "forward")
    assert passed is None and "heads = 1 is assumed" in says
    with pytest.raises(UsageError, match="heads = 1"):
        count_costs(spec)


def test_token_ids_are_run(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    target = target_of(parse_spec(BERT))
    passed, says = proof(wrapped(tmp_path / "a.pth", target), target, "forward")
    assert passed is True and says.startswith("Noise of 1x16 token ids gives 1x3 values, finite")


def test_a_text_model_is_counted_per_sequence() -> None:
    pytest.importorskip("transformers")
    spec = parse_spec(BERT)

    def macs(tokens: int) -> int:
        layer = 4 * 64 * 64 * tokens + 2 * tokens * tokens * 64 + 2 * 64 * 96 * tokens
        return 2 * layer + 64 * 64 + 64 * 3  # the pooler and the classifier see one token

    assert count_costs(spec, second_opinion=False).macs == macs(16)
    assert count_costs(spec, (5,), second_opinion=False).macs == macs(5)
    with pytest.raises(UsageError, match="takes token ids and no picture"):
        count_costs(spec, (3, 8, 8))


def test_a_number_of_tokens_is_no_picture() -> None:
    with pytest.raises(UsageError, match='"5" is no input size'):
        count_costs(ArchitectureSpec(library="torchvision", name="resnet18"), (5,))


def test_a_reference_is_held_against_the_answer_to_token_ids(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from inspector.keys.proofs.answers import prove_reference, reference_of

    target = target_of(parse_spec(BERT))
    checkpoint = wrapped(tmp_path / "a.pth", target)
    reference = reference_of(checkpoint, target)
    from inspector.architectures.build import build_model

    assert target.spec is not None
    model = build_model(target.spec)
    state = {name: tensor.clone() for name, tensor in reference.state.items()}
    model.load_state_dict(state)
    assert prove_reference(model, target, state, reference).passed is True
    state["classifier.bias"] += np.pi
    model.load_state_dict(state)
    assert prove_reference(model, target, state, reference).passed is False
