"""What two files have to do with each other: each relationship made by its definition, beside a twin without it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from inspector.compare.diff import compare_checkpoints
from inspector.compare.merges import find_merge
from inspector.compare.relatives.permuted import pattern_of
from inspector.compare.report import Verdict
from tests.compare.files import bf16, compare, opened, write

Arrays = dict[str, NDArray[np.float32]]


def network(seed: int) -> Arrays:
    """Three layers, as any training might leave them."""
    random = np.random.default_rng(seed)
    made = {}
    for n, (rows, columns) in enumerate(((48, 40), (64, 48), (12, 64))):
        made[f"f{n}.weight"] = (random.standard_normal((rows, columns)) / columns**0.5).astype(np.float32)
        made[f"f{n}.bias"] = (0.1 * random.standard_normal(rows)).astype(np.float32)
    return made


def verdicts(folder: Path, a: Arrays, b: dict[str, object]) -> dict[str, Verdict]:
    return {verdict.id: verdict for verdict in compare(folder, a, b).verdicts}


def on_weights(state: Arrays, change: object) -> Arrays:
    return {name: change(x) if x.ndim > 1 else x for name, x in state.items()}  # type: ignore[operator]


def quantise(x: NDArray[np.float32], top: int = 127) -> NDArray[np.float32]:
    step = np.abs(x).max(axis=1, keepdims=True) / top
    return (np.rint(x / step) * step).astype(np.float32)


def test_two_that_have_nothing_in_common(tmp_path: Path) -> None:
    found = verdicts(tmp_path, network(1), network(2))
    assert set(found) == {"unrelated"}
    assert not found["unrelated"].proved


@pytest.mark.parametrize("top", [127, 7])
def test_a_quantised_copy_is_proved_by_half_a_step(tmp_path: Path, top: int) -> None:
    found = verdicts(tmp_path, network(1), on_weights(network(1), lambda x: quantise(x, top)))
    assert found["quantised"].proved
    assert found["quantised"].number == pytest.approx(1, abs=0.02)
    assert len(found["quantised"].subjects) == 3


def test_levels_further_than_half_a_step_are_a_likeness(tmp_path: Path) -> None:
    """As GPTQ leaves them: on the grid, and moved to make up for one another."""

    def compensated(x: NDArray[np.float32]) -> NDArray[np.float32]:
        step = np.abs(x).max(axis=1, keepdims=True) / 7
        level = np.rint(x / step)
        level[:, ::3] += 1
        return (np.clip(level, -8, 7) * step).astype(np.float32)

    found = verdicts(tmp_path, network(1), on_weights(network(1), compensated))
    assert not found["quantised"].proved


def test_numbers_of_another_network_on_a_grid_are_no_copy(tmp_path: Path) -> None:
    assert "quantised" not in verdicts(tmp_path, network(1), on_weights(network(2), quantise))


@pytest.mark.parametrize("how", ["tensor", "rows", "random"])
def test_a_pruned_copy(tmp_path: Path, how: str) -> None:
    random = np.random.default_rng(3)

    def prune(x: NDArray[np.float32]) -> NDArray[np.float32]:
        if how == "tensor":
            return np.where(np.abs(x) < np.median(np.abs(x)), 0, x).astype(np.float32)
        gone = random.random(x.shape if how == "random" else (len(x), 1)) < 0.4
        return np.where(gone, 0, x).astype(np.float32)

    found = verdicts(tmp_path, network(1), on_weights(network(1), prune))["pruned"]
    assert found.proved
    said = {"tensor": "the smallest of each tensor", "rows": "in whole rows", "random": "not the smallest ones"}
    assert said[how] in found.says


def test_a_pruned_copy_that_was_trained_on_is_a_likeness(tmp_path: Path) -> None:
    def prune(x: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.where(np.abs(x) < np.median(np.abs(x)), 0, 1.03 * x + np.sign(x) * 1e-3).astype(np.float32)

    assert not verdicts(tmp_path, network(1), on_weights(network(1), prune))["pruned"].proved


def test_zeros_in_another_network_are_no_pruning_of_this_one(tmp_path: Path) -> None:
    def prune(x: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.where(np.abs(x) < np.median(np.abs(x)), 0, x).astype(np.float32)

    assert "pruned" not in verdicts(tmp_path, network(1), on_weights(network(2), prune))


def low_rank(x: NDArray[np.float32], rank: int, seed: int = 5) -> NDArray[np.float32]:
    random = np.random.default_rng(seed)
    delta = random.standard_normal((len(x), rank)) @ random.standard_normal((rank, x.shape[1]))
    return (x + 0.3 * np.linalg.norm(x) / np.linalg.norm(delta) * delta).astype(np.float32)


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_a_merged_lora_by_its_rank(tmp_path: Path, kind: str) -> None:
    made: dict[str, object] = dict(on_weights(network(1), lambda x: low_rank(x, 2)))
    if kind == "bfloat16":
        made = {name: ("BF16", bf16(x)) for name, x in made.items()}  # type: ignore[arg-type]
        found = verdicts(tmp_path, {k: ("BF16", bf16(x)) for k, x in network(1).items()}, made)  # type: ignore[misc]
    else:
        found = verdicts(tmp_path, network(1), made)
    assert "rank 2" in found["low-rank"].says


def test_a_few_new_rows_are_no_low_rank_change(tmp_path: Path) -> None:
    state = network(1)
    state["f1.weight"][:3] += 1
    assert "low-rank" not in verdicts(tmp_path, network(1), state)


def test_a_change_of_full_rank_is_none(tmp_path: Path) -> None:
    noise = np.random.default_rng(4)
    state = on_weights(network(1), lambda x: (x + 0.01 * noise.standard_normal(x.shape)).astype(np.float32))
    assert set(verdicts(tmp_path, network(1), state)) == {"same-direction"}


def permuted(state: Arrays) -> Arrays:
    random = np.random.default_rng(6)
    p, q = random.permutation(48), random.permutation(64)
    return {
        "f0.weight": state["f0.weight"][p],
        "f0.bias": state["f0.bias"][p],
        "f1.weight": state["f1.weight"][q][:, p],
        "f1.bias": state["f1.bias"][q],
        "f2.weight": state["f2.weight"][:, q],
        "f2.bias": state["f2.bias"],
    }


def test_a_permuted_copy_is_proved_by_every_bit(tmp_path: Path) -> None:
    assert verdicts(tmp_path, network(1), permuted(network(1)))["permuted"].proved


def test_a_bias_in_another_order_than_its_layer_is_no_proof(tmp_path: Path) -> None:
    state = permuted(network(1))
    state["f0.bias"] = np.roll(state["f0.bias"], 1)
    assert not verdicts(tmp_path, network(1), state)["permuted"].proved


def test_a_permuted_copy_that_was_trained_on_is_a_likeness(tmp_path: Path) -> None:
    noise = np.random.default_rng(7)
    state = on_weights(permuted(network(1)), lambda x: (x + 0.02 * noise.standard_normal(x.shape)).astype(np.float32))
    found = verdicts(tmp_path, network(1), state)["permuted"]
    assert not found.proved
    assert found.number is not None
    assert 0.9 < found.number < 1


def test_the_order_of_rotary_pairs_has_a_name() -> None:
    halves = np.arange(128).reshape(2, 2, 32).transpose(0, 2, 1).reshape(-1)
    assert "heads of 64" in pattern_of(halves)
    assert not pattern_of(np.random.default_rng(0).permutation(128))


def test_structure_that_all_networks_share_is_no_shared_start(tmp_path: Path) -> None:
    """A common mean of columns gives two unrelated matrices a cosine; the same rows in another order have it too."""
    common = np.random.default_rng(8).standard_normal(48).astype(np.float32)
    states = [
        on_weights(network(n), lambda x: x + (common[: x.shape[1]] / 7 if x.shape[1] <= 48 else 0)) for n in (1, 2)
    ]
    diff = compare(tmp_path, *states)
    cosine = next(t.numbers.centred_cosine for t in diff.tensors if t.name == "f1.weight" and t.numbers)
    assert cosine is not None
    assert cosine > 0.3
    assert "same-direction" not in {verdict.id for verdict in diff.verdicts}


def merge_of(folder: Path, *states: dict[str, object]) -> Verdict | None:
    return find_merge([opened(write(folder / f"{n}.safetensors", state)) for n, state in enumerate(states)])


def test_a_linear_merge_has_its_coefficients(tmp_path: Path) -> None:
    a, b = network(1), network(2)
    mix = {name: (np.float32(0.3) * a[name] + np.float32(0.7) * b[name]).astype(np.float32) for name in a}
    found = merge_of(tmp_path, a, mix, b)
    assert found is not None
    assert found.id == "merge"
    assert "1.safetensors = 0.30000 x 0.safetensors + 0.70000 x 2.safetensors" in found.says


def test_other_coefficients_in_each_tensor_are_a_blend(tmp_path: Path) -> None:
    a, b = network(1), network(2)
    mix = {n: ((0.1 * k + 0.05) * a[n] + (0.95 - 0.1 * k) * b[n]).astype(np.float32) for k, n in enumerate(a)}
    found = merge_of(tmp_path, a, b, mix)
    assert found is not None
    assert found.id == "blend"


def test_what_is_only_near_a_merge_is_none(tmp_path: Path) -> None:
    a, b = network(1), network(2)
    noise = np.random.default_rng(9)
    near = {n: (0.5 * (a[n] + b[n]) + 1e-5 * noise.standard_normal(a[n].shape)).astype(np.float32) for n in a}
    assert merge_of(tmp_path, a, b, near) is None
    assert merge_of(tmp_path, a, b, network(3)) is None
    assert merge_of(tmp_path, a, b, a) is None


def test_only_names_make_an_average(tmp_path: Path) -> None:
    a, b = network(1), {name: (0.9 * x).astype(np.float32) for name, x in network(1).items()}
    assert "average" not in verdicts(tmp_path, a, b)
    torch.save({"state_dict": tensors(a), "ema_state_dict": tensors(b)}, tmp_path / "run.ckpt")
    file = opened(tmp_path / "run.ckpt")
    own, averaged = (
        next(s for s in file.state_dicts if s.path == (name,)) for name in ("state_dict", "ema_state_dict")
    )
    found = compare_checkpoints(file, file, a_state=own, b_state=averaged)
    assert [v.proved for v in found.verdicts if v.id == "average"] == [False]


def tensors(state: Arrays) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(x) for name, x in state.items()}


def test_a_parent_given_twice_leaves_no_coefficient_open(tmp_path: Path) -> None:
    a, b = network(1), network(2)
    half = {name: (np.float32(0.5) * a[name] + np.float32(0.5) * b[name]).astype(np.float32) for name in a}
    found = merge_of(tmp_path, a, a, b, half)
    assert found is not None
    assert "3.safetensors = 0.50000 x 0.safetensors + 0.50000 x 2.safetensors" in found.says
    # A file that is another's double is no merge.
    assert merge_of(tmp_path, a, b, a) is None
