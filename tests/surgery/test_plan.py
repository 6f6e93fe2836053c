"""What is left is bit for bit the file's and nothing else: held against the same done with a dict in plain torch."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from inspector.checkpoint.types import Checkpoint
from inspector.errors import UsageError
from inspector.exports.export import export_repaired
from inspector.keys.code import python_code
from inspector.readers import open_checkpoint
from inspector.surgery.plan import plan_surgery
from inspector.surgery.report import Drop, Extract, Fate, NewHead, Operation
from inspector.surgery.rules import RULES
from tests.surgery.networks import same, saved

Detected = tuple[Checkpoint, dict[str, Tensor]]


def written(checkpoint: Checkpoint, path: Path, *steps: Operation) -> dict[str, Tensor]:
    """What a surgery writes, as torch reads it."""
    report = plan_surgery(checkpoint, steps)
    export_repaired(checkpoint, report.plan, report.target, path)
    found: dict[str, Tensor] = torch.load(path, weights_only=True)
    return found


def without(state: dict[str, Tensor], *modules: str) -> dict[str, Tensor]:
    return {name: t for name, t in state.items() if not name.startswith(tuple(f"{module}." for module in modules))}


def inside(state: dict[str, Tensor], module: str) -> dict[str, Tensor]:
    return {name.removeprefix(f"{module}."): t for name, t in state.items() if name.startswith(f"{module}.")}


def test_a_module_is_left_out_and_nothing_else(detector: Detected, tmp_path: Path) -> None:
    checkpoint, state = detector
    assert same(written(checkpoint, tmp_path / "o.pth", Drop(module="neck")), without(state, "neck"))


def test_a_module_is_no_prefix_of_a_name(tmp_path: Path) -> None:
    state = {"layer1.w": torch.ones(2), "layer10.w": torch.zeros(2), "layer1": torch.ones(1)}
    checkpoint = saved(state, tmp_path / "a.pth")
    assert list(written(checkpoint, tmp_path / "o.pth", Drop(module="layer1"))) == ["layer10.w", "layer1"]


def test_a_module_alone_under_its_own_names_or_those_of_the_whole(detector: Detected, tmp_path: Path) -> None:
    checkpoint, state = detector
    alone = inside(state, "body")
    assert same(written(checkpoint, tmp_path / "o.pth", Extract(module="body")), alone)
    kept = written(checkpoint, tmp_path / "k.pth", Extract(module="body", keep_prefix=True))
    assert same(kept, {f"body.{name}": tensor for name, tensor in alone.items()})


def test_steps_speak_of_names_as_the_ones_before_left_them(detector: Detected, tmp_path: Path) -> None:
    checkpoint, state = detector
    made = written(checkpoint, tmp_path / "o.pth", Extract(module="body"), Drop(module="1"), Drop(module="3"))
    assert same(made, without(inside(state, "body"), "1", "3"))


def test_the_preview_adds_up_and_says_what_is_written(detector: Detected, tmp_path: Path) -> None:
    checkpoint, state = detector
    report = plan_surgery(checkpoint, [Drop(module="boxes"), Extract(module="body")])
    nbytes = {name: tensor.numel() * tensor.itemsize for name, tensor in state.items()}
    assert report.before.tensors == len(state) and report.before.nbytes == sum(nbytes.values())
    body = [name for name in state if name.startswith("body.")]
    assert report.after.tensors == len(body) == report.count(Fate.RENAMED)
    assert report.after.nbytes == sum(nbytes[name] for name in body)
    assert report.count(Fate.DROPPED) == len(state) - len(body) and report.count(Fate.KEPT) == 0
    assert next(row.becomes for row in report.rows if row.fate is Fate.RENAMED) == "0.weight"


def test_a_pattern_of_the_preview_holds_no_more_than_is_left_out(tmp_path: Path) -> None:
    names = ["net.a.x", "net.a.y", "net.b.x", "net.b.y", "net.c.x", "net.c.y"]
    checkpoint = saved({name: torch.rand(2) for name in names}, tmp_path / "a.pth")
    report = plan_surgery(checkpoint, [Drop(module="net.a"), Drop(module="net.b")])
    assert [row.pattern for row in report.rows if row.fate is Fate.DROPPED] == ["net.a.{x,y}", "net.b.{x,y}"]
    names = ["top.w", "net.a.c.w", "net.a.c.b", "net.a.d.v", "net.a.e.w", "end.f.w", "end.g.v"]
    checkpoint = saved({name: torch.rand(2) for name in names}, tmp_path / "b.pth")
    report = plan_surgery(checkpoint, [Drop(module=module) for module in ("net.a.c", "net.a.d", "end")])
    found = [row.pattern for row in report.rows if row.fate is Fate.DROPPED]
    assert found == ["net.a.c.{w,b}", "net.a.d.v", "end.*"]


def test_what_was_one_memory_stays_one(tmp_path: Path) -> None:
    table = torch.randn(6, 4)
    state = {"emb.weight": table, "mid.weight": torch.randn(3, 4), "out.weight": table, "flat.rows": table[2:]}
    checkpoint = saved(state, tmp_path / "a.pth")
    report = plan_surgery(checkpoint, [Drop(module="mid")])
    assert "emb.weight and out.weight are one memory and stay so." in report.notes
    assert report.before.nbytes == 4 * (24 + 12)
    made = written(checkpoint, tmp_path / "o.pth", Drop(module="mid"))
    assert made["emb.weight"].data_ptr() == made["out.weight"].data_ptr()
    assert made["flat.rows"].data_ptr() == made["emb.weight"].data_ptr() + 2 * 4 * 4
    left = plan_surgery(checkpoint, [Drop(module="emb")])
    assert "out.weight stays; emb.weight, which is the same memory, is left out." in left.notes


def test_a_trunk_is_held_against_the_architecture_it_is_a_part_of(resnet: nn.Module, tmp_path: Path) -> None:
    checkpoint = saved({f"net.{name}": t for name, t in resnet.state_dict().items()}, tmp_path / "a.pth")
    report = plan_surgery(checkpoint, [Drop(module="net.fc"), Extract(module="net")])
    assert report.target.label == "torchvision/resnet18" and report.plan.missing == ("fc.weight", "fc.bias")
    verified = export_repaired(checkpoint, report.plan, report.target, tmp_path / "o.pth").verification
    strict = next(proof for proof in verified.proofs if proof.id == "strict-load")
    assert strict.passed and "exactly the 2 tensors" in strict.says


@pytest.mark.parametrize(("module", "missing"), [("layer4", 25), ("layer1.0.bn1", 4)])
def test_what_is_dropped_is_missing_as_torch_reports_it(
    module: str, missing: int, resnet: nn.Module, tmp_path: Path
) -> None:
    """torch fills the counters of batch norms in by itself where a file has no version of them."""
    from torchvision.models import resnet18

    checkpoint = saved(resnet.state_dict(), tmp_path / "a.pth")
    report = plan_surgery(checkpoint, [Drop(module=module)])
    for name in ("o.pth", "o.safetensors"):
        kind = "safetensors" if name.endswith("safetensors") else "pth"
        export_repaired(checkpoint, report.plan, report.target, tmp_path / name, writer=kind)
    found = resnet18(num_classes=4).load_state_dict(torch.load(tmp_path / "o.pth"), strict=False)
    bare = resnet18(num_classes=4).load_state_dict(load_file(tmp_path / "o.safetensors"), strict=False)
    assert set(found.missing_keys) == set(bare.missing_keys) == set(report.plan.missing)
    assert len(report.plan.missing) == missing and not found.unexpected_keys


def test_a_path_is_found_below_the_wrapper_and_the_names_stay(resnet: nn.Module, tmp_path: Path) -> None:
    wrapped = {f"module.{name}": t for name, t in resnet.state_dict().items()}
    checkpoint = saved(wrapped, tmp_path / "a.pth")
    report = plan_surgery(checkpoint, [Drop(module="layer4")])
    assert report.notes[0] == 'layer4 was found below "module.": every name begins with it.'
    assert 'without "module."' in report.goes_into and "Extract module" in report.goes_into
    made = written(checkpoint, tmp_path / "o.pth", Drop(module="layer4"))
    assert same(made, without(wrapped, "module.layer4"))


def test_a_pickled_module_gives_its_tensors_and_nothing_of_it_runs(resnet: nn.Module, tmp_path: Path) -> None:
    checkpoint = saved(resnet, tmp_path / "a.pth")
    made = written(checkpoint, tmp_path / "o.pth", Drop(module="fc"))
    assert same(made, without(dict(resnet.state_dict()), "fc"))


def test_shards_are_read_as_one(detector: Detected, tmp_path: Path) -> None:
    _, state = detector
    parts = [dict(list(state.items())[:6]), dict(list(state.items())[6:])]
    where = {}
    for number, part in enumerate(parts, start=1):
        name = f"model-0000{number}-of-00002.safetensors"
        save_file(part, tmp_path / name)
        where |= dict.fromkeys(part, name)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
    made = written(open_checkpoint(tmp_path), tmp_path / "o.pth", Drop(module="boxes"))
    assert {n: t.tolist() for n, t in made.items()} == {n: t.tolist() for n, t in without(state, "boxes").items()}


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("bdy", 'no module "bdy".*Did you mean body'),
        ("2", 'no module "2".*Did you mean body.2'),
        ("neck.weight", "is a tensor, and what is cut is a module.*neck"),
        (" . ", "Which module"),
    ],
)
def test_a_path_that_is_none_is_refused_with_the_nearest(detector: Detected, path: str, says: str) -> None:
    for step in (Drop(module=path), Extract(module=path), NewHead(module=path, classes=3)):
        with pytest.raises(UsageError) as error:
            plan_surgery(detector[0], [step])
        assert re.search(says, str(error.value))


def test_leaving_out_everything_is_refused(detector: Detected) -> None:
    steps = [Drop(module=name) for name in ("body", "neck", "classes", "boxes")]
    with pytest.raises(UsageError, match="Nothing of the file would be left"):
        plan_surgery(detector[0], steps)


def test_without_steps_nothing_changes(detector: Detected, tmp_path: Path) -> None:
    checkpoint, state = detector
    assert same(written(checkpoint, tmp_path / "o.pth"), state)


@pytest.mark.parametrize("steps", [(Drop(module="neck"),), (Drop(module="body.1"), Extract(module="body"))])
def test_the_plan_as_python_makes_the_same_tensors(
    detector: Detected, steps: tuple[Operation, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, _ = detector
    monkeypatch.chdir(tmp_path)
    code = python_code(plan_surgery(checkpoint, steps).plan, file_name="detector.pth", rules=RULES)
    ran: dict[str, object] = {"model": SimpleNamespace(load_state_dict=lambda state, strict: None)}
    exec(code, ran)
    state = ran["state"]
    assert isinstance(state, dict) and same(state, written(checkpoint, tmp_path / "o.pth", *steps))


def test_optimizer_state_of_what_is_left_out_is_said_and_left_out(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 5), nn.Linear(5, 2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(2, 3)).sum().backward()
    optimizer.step()
    training = {"state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}
    checkpoint = saved(training, tmp_path / "a.pth")
    report = plan_surgery(checkpoint, [Drop(module="2")], whole=True)
    assert report.notes == ("optimizer: Adam-like state of 2 of 6 parameters is left out with them.",)
    export_repaired(checkpoint, report.plan, report.target, tmp_path / "o.pth", optimizer=True)
    made = torch.load(tmp_path / "o.pth", weights_only=True)
    assert list(made["state_dict"]) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert made["optimizer"]["param_groups"][0]["params"] == [0, 1, 2, 3]
    for number in range(4):
        for name, tensor in optimizer.state_dict()["state"][number].items():
            assert torch.equal(made["optimizer"]["state"][number][name], tensor)
