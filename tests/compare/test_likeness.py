"""Likeness is told as such: common structure, outliers, tables and names are no common past."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from inspector.compare import verdicts as verdict_tests
from inspector.compare.diff import compare_checkpoints
from inspector.compare.relatives import quantised
from inspector.compare.report import Verdict
from tests.compare.files import bf16, compare, opened

Arrays = dict[str, NDArray[np.float32]]


def square(seed: int, add: NDArray[np.floating] | float = 0.0) -> Arrays:
    """Three layers of 64 x 64, and what their initialisation has in common."""
    random = np.random.default_rng(seed)
    return {f"f{n}.weight": (random.standard_normal((64, 64)) / 8 + add).astype(np.float32) for n in range(3)}


def ids(folder: Path, a: dict[str, object], b: dict[str, object]) -> dict[str, Verdict]:
    return {verdict.id: verdict for verdict in compare(folder, a, b).verdicts}


def near(state: Arrays, size: float = 0.01) -> Arrays:
    random = np.random.default_rng(99)
    # What is zero stays so, as under a mask.
    return {n: (x + size * random.standard_normal(x.shape) * (x != 0)).astype(np.float32) for n, x in state.items()}


AT = np.arange(64)
BAND = np.exp(-(((AT[:, None] - AT[None]) / 3.0) ** 2))


def structured(kind: str, seed: int) -> Arrays:
    random = np.random.default_rng(seed)
    if kind == "dirac":
        made = 0.05 * random.standard_normal((3, 32, 32, 3, 3))
        made[:, np.arange(32), np.arange(32), 1, 1] += 1
        return {f"f{n}.weight": x.astype(np.float32) for n, x in enumerate(made)}
    plain = square(seed)
    if kind == "identity":
        return {name: (x + np.eye(64)).astype(np.float32) for name, x in plain.items()}
    if kind == "band":
        return {name: (0.3 * x + BAND).astype(np.float32) for name, x in plain.items()}
    if kind == "mask":
        return {name: np.tril(np.abs(x)) for name, x in plain.items()}
    # Outliers at the same places, each with a sign of its own.
    for x in plain.values():
        x.reshape(-1)[::97] *= 1000
    return plain


@pytest.mark.parametrize("kind", ["dirac", "identity", "band", "mask", "outliers"])
def test_structure_in_common_is_no_likeness(tmp_path: Path, kind: str) -> None:
    assert "same-direction" not in ids(tmp_path, structured(kind, 1), structured(kind, 2))
    # The same structure hides no copy.
    assert "same-direction" in ids(tmp_path, structured(kind, 1), near(structured(kind, 1)))


def test_a_likeness_names_what_else_would_explain_it(tmp_path: Path) -> None:
    found = ids(tmp_path, square(1), near(square(1)))["same-direction"]
    assert not found.proved
    assert "3 of 3 large matrices point the same way" in found.says
    assert "one optimum" in found.says and "structure that both began with" in found.says
    assert "share a starting point" not in found.says.lower()


def test_a_cast_or_a_frozen_rest_leaves_no_likeness_to_tell(tmp_path: Path) -> None:
    half: dict[str, object] = {name: x.astype(np.float16) for name, x in square(1).items()}
    assert set(ids(tmp_path, square(1), half)) == {"after-cast"}
    head = {**square(1), "f2.weight": near(square(1))["f2.weight"]}
    assert set(ids(tmp_path, square(1), head)) == {"only-some"}


SINUSOID = np.sin(AT[:, None] * np.exp(-AT[None] / 16)).astype(np.float32)


@pytest.mark.parametrize(
    "table",
    [SINUSOID, np.tril(np.ones((64, 64), np.float32)), np.eye(64, dtype=np.float32), np.ones((8, 8), np.float32)],
    ids=["sinusoid", "mask", "identity", "ones"],
)
def test_an_equal_table_proves_no_frozen_rest(tmp_path: Path, table: NDArray[np.float32]) -> None:
    assert set(ids(tmp_path, {**square(1), "t": table}, {**square(2), "t": table})) == {"unrelated"}
    weight = np.random.default_rng(5).standard_normal((8, 8)).astype(np.float32)
    found = ids(tmp_path, {**square(1), "t": table, "w": weight}, {**square(2), "t": table, "w": weight})
    assert set(found) == {"only-some"}


def test_one_equal_tensor_is_told_in_the_singular(tmp_path: Path) -> None:
    state = {**near(square(1)), "f0.weight": square(1)["f0.weight"]}
    assert ids(tmp_path, square(1), state)["only-some"].says.endswith("the other tensor is equal to the last bit.")


def test_names_of_an_average_that_the_numbers_contradict(tmp_path: Path) -> None:
    def file(name: str, key: str, state: Arrays) -> Path:
        torch.save({key: {k: torch.from_numpy(x) for k, x in state.items()}}, tmp_path / name)
        return tmp_path / name

    plain = opened(file("a.pth", "model", square(1)))
    other = compare_checkpoints(plain, opened(file("b.pth", "model_ema", square(2)))).verdicts
    assert [verdict.id for verdict in other] == ["unrelated"]
    assert "the second is an average, but not of the other" in other[0].says
    own = compare_checkpoints(plain, opened(file("c.pth", "model_ema", near(square(1))))).verdicts
    assert [verdict.id for verdict in own] == ["average", "same-direction"]


def quantise(x: NDArray[np.float32]) -> NDArray[np.float32]:
    step = np.abs(x).max(axis=1, keepdims=True) / 127
    return (np.rint(x / step) * step).astype(np.float32)


def test_the_rounder_file_may_be_the_first(tmp_path: Path) -> None:
    found = ids(tmp_path, {name: quantise(x) for name, x in square(1).items()}, square(1))["quantised"]
    assert found.proved and "3 tensors of the first lie on a grid" in found.says
    assert "quantised" not in ids(tmp_path, {name: quantise(x) for name, x in square(2).items()}, square(1))


def test_the_pruned_file_may_be_the_first(tmp_path: Path) -> None:
    def prune(state: Arrays) -> Arrays:
        return {n: np.where(np.abs(x) < np.median(np.abs(x)), 0, x).astype(np.float32) for n, x in state.items()}

    found = ids(tmp_path, prune(square(1)), square(1))["pruned"]
    assert found.proved and "6,144 elements (50.0 %) of 3 tensors are zero in the first alone" in found.says
    assert "the smallest of each tensor" in found.says
    assert "pruned" not in ids(tmp_path, prune(square(2)), square(1))


def test_a_square_matrix_transposed_is_told(tmp_path: Path) -> None:
    turned = {**square(1), "f1.weight": np.ascontiguousarray(square(1)["f1.weight"].T)}
    diff = compare(tmp_path, square(1), turned)
    (moved,) = [tensor for tensor in diff.tensors if tensor.axes]
    assert (moved.name, moved.axes, moved.note) == ("f1.weight", (1, 0), "axes exchanged, to the last bit")
    assert [verdict.id for verdict in diff.verdicts] == ["transposed", "only-some"]
    assert "1 of them square" in diff.says
    turned["f1.weight"][3, 4] += 1
    assert "transposed" not in ids(tmp_path, square(1), turned)


META = {"q_proj": "wq", "k_proj": "wk", "v_proj": "wv", "o_proj": "wo"}


def llama(*, meta: bool, rotary: bool, short: bool) -> dict[str, object]:
    random = np.random.default_rng(3)
    made: dict[str, object] = {}
    for layer in range(2):
        for own, theirs in META.items():
            x = random.standard_normal((64, 64)).astype(np.float32)
            if rotary and own in ("q_proj", "k_proj"):
                x = np.ascontiguousarray(x.reshape(4, 8, 2, 64).transpose(0, 2, 1, 3).reshape(64, 64))
            name = f"layers.{layer}.attention.{theirs}" if meta else f"model.layers.{layer}.self_attn.{own}"
            made[f"{name}.weight"] = ("BF16", bf16(x)) if short else x
    norm = random.standard_normal(64).astype(np.float32)
    made["norm.weight" if meta else "model.norm.weight"] = ("BF16", bf16(norm)) if short else norm
    return made


@pytest.mark.parametrize("rotary", [True, False])
@pytest.mark.parametrize("short", [True, False])
def test_metas_names_beside_hugging_faces(tmp_path: Path, rotary: bool, short: bool) -> None:
    diff = compare(tmp_path, llama(meta=True, rotary=False, short=False), llama(meta=False, rotary=rotary, short=short))
    assert (diff.alignment.by_other, len(diff.tensors)) == (9, 9)
    found = {verdict.id for verdict in diff.verdicts if verdict.proved}
    # bf16() cuts low bits off, so that no rounding of the first gives them in another order.
    wanted = {(True, False): {"only-some", "permuted"}, (False, True): {"after-cast"}, (False, False): {"other-names"}}
    assert found == wanted.get((rotary, short), set())
    if rotary:
        assert any(v.id == "permuted" and "rotary" in v.says for v in diff.verdicts)


def test_a_verdict_that_breaks_off_is_named_and_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(quantised, "_one_way", breaks)
    diff = compare(tmp_path, square(1), near(square(1)))
    assert [verdict.id for verdict in diff.verdicts] == ["same-direction"]
    assert [text for text in diff.skipped if "“Quantised copy”" in text and "by zero" in text]
    entry = verdict_tests.VERDICTS[0]
    object.__setattr__(entry, "decide", lambda diff, own=entry.decide: breaks() if diff.a.name else own(diff))
    try:
        assert [text for text in compare(tmp_path, square(1), square(2)).skipped if "“Same weights”" in text]
    finally:
        monkeypatch.undo()
        object.__setattr__(entry, "decide", verdict_tests.same._decide)
