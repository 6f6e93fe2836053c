"""The written-down repair, executed: it must do bit for bit what the plan does, on real files."""

from __future__ import annotations

import re

import pytest
import torch
import torchvision
from safetensors.torch import save_file

from inspector.architectures.build import build_model
from inspector.architectures.targets import parse_target
from inspector.exports.export import export_repaired
from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.written import written_code
from inspector.readers import open_checkpoint


def run(code: str, model: torch.nn.Module, folder, monkeypatch) -> dict[str, torch.Tensor]:
    monkeypatch.chdir(folder)
    names: dict[str, object] = {"model": model}
    exec(code, names)
    return names["state"]


def shift(names, place):
    return {n: re.sub(rf"^{place}\.(\d+)\.", lambda f: f"{place}.{int(f[1]) + 1}.", n) for n in names}


def build(name, **options):
    torch.manual_seed(1)
    return getattr(torchvision.models, name)(**options).eval()


CASES = {
    "as it is": ("resnet18", lambda n: n, {}),
    "module": ("resnet18", lambda n: f"module.{n}", {}),
    "both wrappers": ("resnet18", lambda n: f"module._orig_mod.module.{n}", {}),
    "mid-key": ("squeezenet1_1", lambda n: n.replace("features.", "features.module."), {}),
    "a name that also occurs inside": ("squeezenet1_1", lambda n: f"features.{n}", {}),
    "two other names": ("squeezenet1_1", lambda n: f"net_G.enc.{n}", {}),
    "old densenet": ("densenet121", lambda n: re.sub(r"\.(norm|conv|relu)([12])\.", r".\1.\2.", n), {}),
    "shifted": ("mobilenet_v3_small", lambda n: shift([n], "classifier")[n], {}),
    "shifted and wrapped": ("mobilenet_v3_small", lambda n: f"module.{shift([n], 'classifier')[n]}", {}),
    "gamma and beta": (
        "resnet18",
        lambda n: re.sub(
            r"(bn\d|downsample\.1)\.(weight|bias)$", lambda f: f"{f[1]}.{'gamma' if f[2] == 'weight' else 'beta'}", n
        ),
        {},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_code_and_application_agree_bit_for_bit(case, tmp_path, architecture, monkeypatch):
    name, rename, options = CASES[case]
    model = build(name, num_classes=3)
    torch.save({"epoch": 3, "state_dict": {rename(n): t for n, t in model.state_dict().items()}}, tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    plan = diagnose(checkpoint, architecture(name, num_classes=3), **options).plan
    assert plan.complete
    code = python_code(plan, file_name="a.pth")
    fresh = getattr(torchvision.models, name)(num_classes=3)
    state = run(code, fresh, tmp_path, monkeypatch)
    made = apply_plan(checkpoint, plan)
    assert set(state) == set(made)
    for key, tensor in made.items():
        assert torch.equal(state[key], tensor) and torch.equal(fresh.state_dict()[key], model.state_dict()[key])
    assert "renamed = {" not in code  # written as rules, not as a table of keys
    assert len(code.splitlines()) < 25


def test_module_code_reads_as_a_person_would_write_it(tmp_path, architecture):
    model = build("resnet18")
    torch.save({"state_dict": {f"module.{n}": t for n, t in model.state_dict().items()}}, tmp_path / "a.pth")
    plan = diagnose(open_checkpoint(tmp_path / "a.pth"), architecture("resnet18")).plan
    assert python_code(plan, file_name="a.pth").splitlines() == [
        "import torch",
        "",
        "state = torch.load('a.pth', map_location=\"cpu\", weights_only=True)",
        "state = state['state_dict']",
        "",
        "def rename(key):",
        '    key = ".".join(part for part in key.split(".") if part != \'module\')',
        "    return key",
        "",
        "",
        "state = {rename(key): tensor for key, tensor in state.items()}",
        "",
        "# `model` is yours: build it before this line.",
        "model.load_state_dict(state, strict=True)",
    ]


def test_safetensors_buffers_head_and_channels_in_one_program(tmp_path, architecture, monkeypatch):
    model = build("resnet18", num_classes=5)
    state = {f"module.{n}": t.clone() for n, t in model.state_dict().items() if not n.endswith("num_batches_tracked")}
    state |= {"n_averaged": torch.tensor(4), "module.layer1.total_ops": torch.zeros(1)}
    save_file(state, tmp_path / "a.safetensors")
    checkpoint = open_checkpoint(tmp_path / "a.safetensors")
    goal = architecture("resnet18", num_classes=3, in_channels=1)
    plan = diagnose(checkpoint, goal, accept=["head-mismatch", "first-convolution"]).plan
    fresh = build("resnet18", num_classes=3)
    fresh.conv1 = torch.nn.Conv2d(1, 64, 7, 2, 3, bias=False)
    head = fresh.fc.weight.detach().clone()
    result = run(python_code(plan, file_name="a.safetensors"), fresh, tmp_path, monkeypatch)
    made = apply_plan(checkpoint, plan, spec=goal.spec)
    assert set(result) == set(made)
    for key in made:
        if not key.startswith("fc."):
            assert torch.equal(result[key], made[key]), key
    assert torch.equal(fresh.fc.weight, head)  # the caller's own initial head, not the file's


def test_a_reverse_wrapper_is_written_as_an_added_prefix(tmp_path, monkeypatch, target_of):
    model = torch.nn.DataParallel(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)))
    torch.save(model.module.state_dict(), tmp_path / "a.pth")
    goal = target_of({n: tuple(t.shape) for n, t in model.state_dict().items()})
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    code = python_code(diagnose(checkpoint, goal).plan, file_name="a.pth")
    assert "key = 'module.' + key" in code
    state = run(code, model, tmp_path, monkeypatch)
    assert list(state) == list(model.state_dict())


def test_chosen_twins_leave_the_other_out(tmp_path, architecture, monkeypatch):
    model, other = build("squeezenet1_1"), torchvision.models.squeezenet1_1()
    both = {f"model.{n}": t for n, t in other.state_dict().items()}
    both |= {f"ema_model.{n}": t for n, t in model.state_dict().items()}
    torch.save(both, tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    plan = diagnose(checkpoint, architecture("squeezenet1_1"), choose={"twins": "ema_model"}).plan
    code = python_code(plan, file_name="a.pth")
    fresh = torchvision.models.squeezenet1_1()
    run(code, fresh, tmp_path, monkeypatch)
    assert all(torch.equal(fresh.state_dict()[n], t) for n, t in model.state_dict().items())
    assert len(code.splitlines()) < 20


# Names as a file may have them, to leave the string they are written in, or to mean something to re.sub.
HOSTILE = (
    "'",
    '"',
    "'''",
    "\n",
    "\\",
    "\\1",
    "\\g<0>",
    "\\d+",
    "{x}",
    "%s",
    "\x00",
    "\x1b[31m",
    "\u2028",
    "(",
    "$",
    "1\n",
    "١",
    "'+open('ran','w')+'",
    "\n)\nopen('ran','w')\n(",
)


class Loaded(torch.nn.Module):
    """Takes whatever it is given."""

    def load_state_dict(self, state, strict=True):
        self.held = state


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_names_from_the_file_are_never_code(name, tmp_path, target_of, monkeypatch):
    net = {"conv.weight": (2, 3), "conv.bias": (2,), "norm.weight": (4,), "x.0.weight": (5,), "x.3.weight": (7,)}
    put = [
        (lambda n: f"{name}.{n}", lambda n: n),
        (lambda n: n, lambda n: f"{name}.{n}"),
        (lambda n: n.replace("x.", f"x.{name}."), lambda n: n),
        (lambda n: n, lambda n: n.replace("x.", f"x.{name}.")),
        (lambda n: n.replace("x.", f"{name}.module."), lambda n: n.replace("x.", f"{name}.")),
        (lambda n: n.replace("x.", f"{name}."), lambda n: n.replace("x.", f"{name}.module.")),
        (lambda n: n.replace("x.0", f"x.{name}1").replace("x.3", f"x.{name}2"), lambda n: n.replace("x.", f"x.{name}")),
    ]
    for ours, theirs in put:
        state = {ours(n): torch.full(s, float(i)) for i, (n, s) in enumerate(net.items())}
        torch.save(state | {"epoch": 3}, tmp_path / "a.pth")
        checkpoint = open_checkpoint(tmp_path / "a.pth")
        plan = diagnose(checkpoint, target_of({theirs(n): s for n, s in net.items()})).plan
        if plan is None or not plan.complete:
            continue
        model = Loaded()
        run(python_code(plan, file_name="a.pth"), model, tmp_path, monkeypatch)
        made = apply_plan(checkpoint, plan)
        assert set(model.held) == set(made) and all(torch.equal(model.held[k], t) for k, t in made.items())
    assert not (tmp_path / "ran").exists()
    code = python_code(plan, file_name=f"{name}.pth") if plan and plan.complete else ""
    compile(code, "code", "exec")


def test_values_that_are_no_tensors_are_left_out_by_the_code_too(tmp_path, architecture, monkeypatch):
    model = build("squeezenet1_1")
    torch.save({**model.state_dict(), "epoch": 3, "name": "net"}, tmp_path / "a.pth")
    report = diagnose(open_checkpoint(tmp_path / "a.pth"), architecture("squeezenet1_1"))
    assert not report.loads and report.unexpected == ("epoch", "name")
    assert "2 values that are no tensors (epoch, name) are left out" in report.says
    run(python_code(report.plan, file_name="a.pth"), torchvision.models.squeezenet1_1(), tmp_path, monkeypatch)


def test_what_only_the_order_has_placed_is_written_as_a_table_of_modules(tmp_path, architecture, monkeypatch):
    model = build("squeezenet1_1", num_classes=3)
    names = {n: f"net.part{i // 2}.{n.rpartition('.')[2]}" for i, n in enumerate(model.state_dict())}
    torch.save({names[n]: t for n, t in model.state_dict().items()}, tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    goal = architecture("squeezenet1_1", num_classes=3)
    assert not diagnose(checkpoint, goal).plan.complete
    plan = diagnose(checkpoint, goal, accept=["same-order"]).plan
    code = python_code(plan, file_name="a.pth")
    assert len(code.splitlines()) < 20 + len(names) // 2  # by module, not by tensor
    fresh = torchvision.models.squeezenet1_1(num_classes=3)
    state = run(code, fresh, tmp_path, monkeypatch)
    made = apply_plan(checkpoint, plan)
    assert list(state) == list(made) and all(torch.equal(state[key], made[key]) for key in made)
    assert all(torch.equal(t, model.state_dict()[key]) for key, t in fresh.state_dict().items())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("out.safetensors", {"writer": "safetensors"}),
        ("out.pth", {}),
        ("shards", {"writer": "safetensors", "shard_nbytes": 40}),
        ("whole.pth", {"optimizer": True}),
    ],
)
def test_the_written_file_is_loaded_by_lines_of_its_own(name, options, tmp_path, target_of, monkeypatch):
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    held = {f"module.{n}": t for n, t in model.state_dict().items()}
    torch.save({"model": held, "optimizer": optimizer.state_dict()}, tmp_path / "a.pth")
    goal = target_of({n: tuple(t.shape) for n, t in model.state_dict().items()})
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    plan = diagnose(checkpoint, goal).plan
    report = export_repaired(checkpoint, plan, goal, tmp_path / name, **options)
    folder = tmp_path / name if len(report.files) > 1 else tmp_path
    access = plan.access if report.optimizers else ()
    code = written_code([file.name for file in report.files], plan, access=access)
    assert "a.pth" not in code and "rename" not in code and "strict=True" in code
    fresh = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 5))
    run(code, fresh, folder, monkeypatch)
    for key, tensor in model.state_dict().items():
        assert torch.equal(fresh.state_dict()[key], tensor)


def test_a_family_of_ours_is_built_by_the_lines_that_the_code_names(tmp_path):
    label = "cifar/resnet?num_classes=4&in_channels=3&blocks=1&width=4,4,8,16"
    goal = parse_target(label)
    state = {f"module.{n}": t + 1 for n, t in build_model(goal.spec).state_dict().items()}
    torch.save(state, tmp_path / "own.pth")
    code = python_code(diagnose(open_checkpoint(tmp_path / "own.pth"), goal).plan, file_name="own.pth", spec=goal.spec)
    lines = [line.removeprefix("#   ") for line in code.splitlines() if line.startswith("#   ")]
    found: dict[str, object] = {}
    exec("\n".join(lines), found)
    model = found["model"]
    assert isinstance(model, torch.nn.Module)
    model.load_state_dict({n.removeprefix("module."): t for n, t in state.items()}, strict=True)
