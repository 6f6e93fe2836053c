"""What one finding explains is not said a second time of the same tensors."""

from __future__ import annotations

from pathlib import Path

import torch

from inspector.health.checks import CHECKS
from inspector.lint.kinds import with_explaining
from tests.health.observed import layers, observe


def _turned(tensor: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(tensor.numpy().byteswap())


def test_numbers_of_turned_bytes_are_said_to_be_that_and_nothing_else(tmp_path: Path) -> None:
    state = layers()
    state["layers.3.fc.weight"] = _turned(state["layers.3.fc.weight"])
    # Fresh by its making are the others.
    found = [f for f in observe(tmp_path, state) if f.id != "fresh-weights"]
    assert [(f.id, f.subjects) for f in found] == [("byte-swapped", ("layers.3.fc.weight",))]


def test_others_are_judged_as_if_it_were_not_there(tmp_path: Path) -> None:
    state = layers(8)
    state["layers.3.fc.weight"] = _turned(state["layers.3.fc.weight"])
    state["layers.1.fc.weight"][2, 5] = torch.nan
    state["layers.5.fc.weight"] *= 1e5
    found = {f.id: f.subjects for f in observe(tmp_path, state)}
    assert found.pop("fresh-weights") and found.pop("byte-swapped") == ("layers.3.fc.weight",)
    assert found.pop("non-finite") == ("layers.1.fc.weight",)
    assert {*found} >= {"large-weight", "unlike-siblings"}
    assert {*found.values()} == {("layers.5.fc.weight",)}


def test_copied_layers_are_not_said_to_be_stored_twice_as_well(tmp_path: Path) -> None:
    state = layers() | {"wte.weight": torch.randn(300, 32)}
    state["layers.4.fc.weight"] = state["layers.2.fc.weight"].clone()
    state["lm_head.weight"] = state["wte.weight"].clone()
    kinds = ("copied-layers", "equal-weights-stored-twice")
    assert [(f.id, f.subjects) for f in observe(tmp_path, state, *kinds)] == [
        ("copied-layers", ("layers.4.fc.weight",)),
        ("equal-weights-stored-twice", ("wte.weight", "lm_head.weight")),
    ]


def test_what_is_explained_comes_later_and_matters_no_more() -> None:
    place = {kind.id: (number, kind) for number, check in enumerate(CHECKS) for kind in check.kinds}
    for number, kind in place.values():
        least = min((kind.severity, *kind.also), key=lambda one: one.rank)
        for other in kind.explains:
            later, explained = place[other]
            # Of its own kinds a check says one or the other itself.
            assert later >= number, (kind.id, other)
            assert all(one.rank <= least.rank for one in (explained.severity, *explained.also)), kind.id


def test_who_selects_a_kind_hears_what_is_said_in_its_place() -> None:
    assert with_explaining(frozenset({"non-finite"})) == {"non-finite", "byte-swapped", "bits-of-another-type"}
    assert with_explaining(frozenset({"few-values"})) == {"few-values", "whole-numbers"}
    assert with_explaining(frozenset({"sparse-weights"})) == {"sparse-weights"}
