"""Names and shapes that were asked about before: the same answer, worked out once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.architectures.families import ranking
from inspector.architectures.families.match import find_families
from inspector.architectures.once import once_per_network
from inspector.architectures.recognise import recognise
from inspector.architectures.targets import parse_spec, target_of
from inspector.readers import open_checkpoint

BERT = "transformers/bert?hidden=48&layers=2&mlp=80&pooler=True&positions=32&types=2&vocab=77"


def test_the_same_network_is_asked_about_once() -> None:
    asked: list[tuple[object, ...]] = []

    def work(shapes: dict[str, tuple[int, ...]], more: str) -> list[str]:
        asked.append((*shapes, more))
        return [more, *shapes]

    once = once_per_network(work)
    first = once({"a": (1,), "b": (2,)}, "x")
    first.append("changed by whoever asked")
    assert once({"a": (1,), "b": (2,)}, "x") == ["x", "a", "b"] and len(asked) == 1
    # Another shape, another order, another argument: another question.
    once({"a": (1,), "b": (3,)}, "x")
    assert once({"b": (2,), "a": (1,)}, "x") == ["x", "b", "a"]
    assert once({"a": (1,), "b": (2,)}, "y")[0] == "y"
    assert len(asked) == 4


def test_an_answer_about_a_giant_is_not_kept() -> None:
    asked: list[int] = []

    def work(shapes: dict[str, tuple[int, ...]]) -> list[int]:
        asked.append(len(shapes))
        return [len(shapes)]

    once = once_per_network(work)
    giant = {str(number): (1,) for number in range(3_000)}
    assert once(giant) == once(giant) == [3_000] and len(asked) == 2


def test_a_training_of_one_network_is_recognised_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What else its files say (an epoch, a rate) is another in each; what a family looks at counts."""
    asked: list[int] = []

    def counted(*given: object) -> list[object]:
        asked.append(1)
        return list(find_families(*given))  # type: ignore[arg-type]

    monkeypatch.setattr(ranking, "find_families", counted)
    state = {t.name: torch.from_numpy(np.zeros(t.shape or (), np.float32)) for t in target_of(parse_spec(BERT)).tensors}
    found = []
    for epoch in range(3):
        place = tmp_path / f"epoch{epoch}.pth"
        torch.save({"state_dict": state, "epoch": epoch, "lr": 0.1 / (1 + epoch)}, place)
        found.append(recognise(open_checkpoint(place)).best)
    assert found[0] is not None and found[0].spec.name == "bert" and found[0] == found[1] == found[2]
    assert len(asked) == 1
    torch.save({"state_dict": state, "num_attention_heads": 4}, place)
    told = recognise(open_checkpoint(place)).best
    assert told is not None and dict(told.spec.options)["heads"] == 4 and len(asked) == 2
