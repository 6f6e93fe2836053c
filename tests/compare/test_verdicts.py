"""What a comparison says as a whole: each verdict with its quiet twin, modules, what else differs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.compare.diff import compare_checkpoints
from inspector.compare.optimizer_names import entry_names
from inspector.compare.report import Diff, OtherKind, Relation
from inspector.compare.verdicts import VERDICTS
from tests.compare.files import bf16, compare, opened

Arrays = dict[str, object]


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    made = {f"layer{i}.{kind}": rng.standard_normal((6, 5)).astype(np.float32) for i in range(3) for kind in "wv"}
    return {**made, "bn.running_mean": np.zeros(5, np.float32), "bn.num_batches_tracked": np.int64(3)}


def ids(diff: Diff) -> list[str]:
    return [verdict.id for verdict in diff.verdicts]


def test_the_same(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    found = compare(tmp_path, arrays, arrays)
    assert (ids(found), found.says) == (["same"], "The same weights: 8 tensors, equal to the last bit.")
    assert not found.differs()
    (verdict,) = found.verdicts
    assert (verdict.proved, verdict.number, verdict.threshold) == (True, 1.0, 1.0)
    assert verdict.test and verdict.refuted_by


def test_after_a_cast(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    half: Arrays = {n: v.astype(np.float16) if v.dtype == np.float32 else v for n, v in arrays.items()}
    found = compare(tmp_path, dict(arrays), half)
    assert ids(found) == ["after-cast"]
    assert "7 tensors (7 from float32 to float16) bit for bit, 1 as they were" in found.says
    assert found.differs()
    assert not found.differs(1e-3)
    half["layer0.w"] = arrays["layer0.w"].astype(np.float16) + np.float16(1)
    assert ids(compare(tmp_path, dict(arrays), half)) == []
    cut: Arrays = {n: ("BF16", bf16(v)) if v.dtype == np.float32 else v for n, v in arrays.items()}
    assert "cut off instead of rounded" in compare(tmp_path, dict(arrays), cut).says


def test_only_some_layers(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    moved: Arrays = {**arrays, "layer1.w": arrays["layer1.w"] * 1.1, "bn.num_batches_tracked": np.int64(9)}
    found = compare(tmp_path, dict(arrays), moved)
    (verdict,) = found.verdicts
    assert (verdict.id, verdict.subjects, verdict.number) == ("only-some", ("layer1",), 30 / 186)
    assert "beside 1 running statistic or counter" in verdict.says
    assert "the other 6 tensors are equal to the last bit" in verdict.says
    everything: Arrays = {
        n: v + 1 if v.dtype == np.float32 and not n.startswith("bn") else v for n, v in arrays.items()
    }
    assert ids(compare(tmp_path, dict(arrays), everything)) == []
    statistics: Arrays = {**arrays, "bn.running_mean": arrays["bn.running_mean"] + 1}
    assert ids(compare(tmp_path, dict(arrays), statistics)) == []


def test_grown(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    more: Arrays = {**arrays, "layer0.w": np.concatenate([arrays["layer0.w"], np.ones((2, 5), np.float32)])}
    found = compare(tmp_path, dict(arrays), more)
    assert ids(found) == ["grown"]
    assert found.says.startswith("Grown: the rows that both files have of 1 tensor (layer0.w) are equal")
    assert found.differs(1.0)
    assert compare(tmp_path, more, dict(arrays)).says.startswith("Shrunk")
    more["layer2.v"] = arrays["layer2.v"] * 2
    assert ids(compare(tmp_path, dict(arrays), more)) == []


def test_every_verdict_has_its_own_id_and_a_sentence() -> None:
    assert len({entry.id for entry in VERDICTS}) == len(VERDICTS)
    assert all(entry.title and entry.says.endswith(".") for entry in VERDICTS)


def test_modules_add_up(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    moved: Arrays = {**arrays, "layer1.w": arrays["layer1.w"] * 1.5, "layer2.v": arrays["layer2.v"] + 1}
    found = compare(tmp_path, dict(arrays), moved)
    of = {module.path: module for module in found.modules}
    assert list(of) == ["", "layer0", "layer1", "layer2", "bn"]
    assert [of[path].totals.count(Relation.CHANGED) for path in of] == [2, 0, 1, 1, 0]
    assert of["layer1"].totals.relative == pytest.approx(0.5, rel=1e-6)
    assert of["layer0"].totals.relative is None
    assert of["layer1"].totals.share_changed == 0.5
    w, v = arrays["layer1.w"].astype(np.float64), arrays["layer2.v"].astype(np.float64)
    apart = (w * 1.5 - w, np.ones(30))
    exact = np.sqrt(sum((d**2).sum() for d in apart) / ((w**2).sum() + (v**2).sum()))
    assert found.totals.relative == pytest.approx(exact, rel=1e-6)
    assert (found.totals.parameters_a, found.totals.elements) == (186, 186)


def test_tolerance_does_not_forgive_a_nan(tmp_path: Path) -> None:
    a = np.arange(1.0, 100.0)
    b = a.copy()
    b[5] = np.nan
    found = compare(tmp_path, {"w": a}, {"w": b})
    assert found.differs(1e9)
    again = compare(tmp_path, {"w": b}, {"w": np.where(np.isnan(b), b, b * (1 + 1e-9))})
    assert not again.differs(1e-6)
    assert again.differs(1e-12)


def test_what_else_differs(tmp_path: Path) -> None:
    weights = {"w": torch.ones(2, 3), "b": torch.zeros(2)}
    optimizer = {"state": {0: {"step": torch.tensor(5.0)}}, "param_groups": [{"lr": 0.1, "params": [0]}]}
    later = {"state": {0: {"step": torch.tensor(9.0)}}, "param_groups": [{"lr": 0.01, "params": [0]}]}
    a = {"model": weights, "epoch": 3, "classes": ["cat", "dog"], "args": {"width": 8}, "optimizer": optimizer}
    b = {"model": weights, "epoch": 4, "classes": ["cat", "cow"], "args": {"width": 8}, "optimizer": later}
    for name, content in (("a", a), ("b", b)):
        torch.save(content, tmp_path / f"{name}.pth")
    found = compare_checkpoints(opened(tmp_path / "a.pth"), opened(tmp_path / "b.pth"))
    assert ids(found) == ["same"]
    assert not found.differs()
    said = {(other.kind, other.where): (other.a, other.b) for other in found.others}
    assert said[(OtherKind.METADATA, "epoch")] == ("3", "4")
    assert said[(OtherKind.CLASS_NAMES, "classes.1")] == ("dog", "cow")
    assert said[(OtherKind.OPTIMIZER, "optimizer.param_groups.0.lr")] == ("0.1", "0.01")
    assert ("5.0", "9.0") in said.values()
    assert not [key for key in said if key[1].startswith("args")]
    assert "Beside the weights differ: metadata, optimizer" in found.says
    assert any("other state dicts" in text for text in found.skipped)


def test_classes_of_modules_and_their_settings(tmp_path: Path) -> None:
    for name, model in (("a", torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())),
                        ("b", torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.GELU()))):  # fmt: skip
        torch.save(model, tmp_path / f"{name}.pth")
    found = compare_checkpoints(opened(tmp_path / "a.pth"), opened(tmp_path / "b.pth"))
    kinds = [other for other in found.others if other.kind is OtherKind.MODULE_CLASS]
    assert [(k.where, k.a and k.a.rpartition(".")[2], k.b and k.b.rpartition(".")[2]) for k in kinds] == [
        ("1", "ReLU", "GELU")
    ]


def test_code_and_shared_memory(tmp_path: Path) -> None:
    class Sneaky:
        def __reduce__(self) -> tuple[object, ...]:
            return (print, ("hello",))

    weight = torch.ones(3, 3)
    torch.save({"a": weight, "b": weight}, tmp_path / "a.pth")
    torch.save({"a": weight, "b": weight.clone(), "x": Sneaky()}, tmp_path / "b.pth")
    found = compare_checkpoints(opened(tmp_path / "a.pth"), opened(tmp_path / "b.pth"))
    kinds = {other.kind: other for other in found.others}
    assert "print" in kinds[OtherKind.CODE].where
    assert (kinds[OtherKind.SHARING].a, kinds[OtherKind.SHARING].b) == ("one memory", None)
    assert kinds[OtherKind.SHARING].where == "a, b"


def _trained(folder: Path, name: str, *, steps: int) -> Path:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
    path = folder / name
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    return path


def test_entries_of_an_optimizer_have_the_names_of_their_parameters(tmp_path: Path) -> None:
    files = [opened(_trained(tmp_path, f"{n}.pth", steps=n)) for n in (1, 2)]
    found = compare_checkpoints(*files).others
    names = {change.where: change.parameter for change in found if change.kind is OtherKind.OPTIMIZER}
    assert names["optimizer: state.2.step"] == "1.weight" and names["optimizer: state.1.step"] == "0.bias"
    entries = entry_names(files[0], next(s for s in files[0].state_dicts if s.path == ("optimizer",)))
    assert entries.why_not == "" and entries.name("state.3.exp_avg") == "1.bias"
    assert entries.name("param_groups") == ""


def test_where_the_order_proves_nothing_the_entries_have_no_names_and_the_reason_stands(tmp_path: Path) -> None:
    moments = {n: {"exp_avg": torch.ones(7), "exp_avg_sq": torch.ones(7)} for n in range(2)}
    optimizer = {"state": moments, "param_groups": [{"lr": 0.1, "params": [0, 1]}]}
    torch.save(
        {"model": {"a.weight": torch.ones(3, 3), "a.bias": torch.ones(3)}, "optimizer": optimizer}, tmp_path / "a"
    )
    checkpoint = opened(tmp_path / "a")
    entries = entry_names(checkpoint, next(s for s in checkpoint.state_dicts if s.path == ("optimizer",)))
    assert entries.of == {} and entries.why_not
    assert entry_names(checkpoint, checkpoint.weights).why_not == ""


def test_parameters_of_a_group_are_one_line(tmp_path: Path) -> None:
    for name, params in (("a", [0, 1, 2]), ("b", [0, 1, 2, 3]), ("c", [0, 2, 1])):
        content = {"optimizer": {"state": {}, "param_groups": [{"lr": 0.1, "params": params}]}, "w": torch.ones(2)}
        torch.save(content, tmp_path / name)
    for other, says in (("b", "4 parameters (0 to 3)"), ("c", "3 parameters (0, 2, 1)")):
        found = compare_checkpoints(opened(tmp_path / "a"), opened(tmp_path / other)).others
        assert [(c.where, c.a, c.b) for c in found if "params" in c.where] == [
            ("optimizer.param_groups.0.params", "3 parameters (0 to 2)", says)
        ]
