"""Optimizer state follows its parameters: one more step after the repair is bit for bit the step without the damage."""

from __future__ import annotations

import copy
from collections import OrderedDict

import pytest
import torch
from torch import nn

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.errors import ExportError, UsageError
from inspector.exports.export import export_repaired
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint


class Attention(nn.Module):
    """Query, key and value in one matrix, or apart."""

    def __init__(self, apart: bool) -> None:
        super().__init__()
        for name, width in (("q_proj", 6), ("k_proj", 6), ("v_proj", 6)) if apart else (("qkv", 18),):
            self.add_module(name, nn.Linear(6, width))
        self.proj = nn.Linear(6, 6)

    def forward(self, x):
        q, k, v = (
            (self.qkv(x).chunk(3, -1)) if hasattr(self, "qkv") else (self.q_proj(x), self.k_proj(x), self.v_proj(x))
        )
        return self.proj(torch.softmax(q @ k.transpose(-1, -2), -1) @ v)


class Net(nn.Module):
    def __init__(self, apart: bool = False, classes: int = 3) -> None:
        super().__init__()
        self.stem = nn.Linear(5, 6)
        self.norm = nn.BatchNorm1d(6)
        self.attn = Attention(apart)
        self.head = nn.Linear(6, classes)

    def forward(self, x):
        return self.head(self.attn(self.norm(self.stem(x))))


class Turned(nn.Module):
    """The same layers, written down in another order."""

    def __init__(self) -> None:
        super().__init__()
        other = Net()
        self.head, self.attn, self.norm, self.stem = other.head, other.attn, other.norm, other.stem

    forward = Net.forward


def target(model: nn.Module, **more) -> Target:
    tensors = tuple(
        TargetTensor(name=n, shape=tuple(t.shape), dtype=str(t.dtype).removeprefix("torch."))
        for n, t in model.state_dict().items()
    )
    return Target(**({"label": "the model", "kind": TargetKind.FILE, "tensors": tensors} | more))


def decay_groups(model: nn.Module) -> list[dict[str, object]]:
    matrices = [p for p in model.parameters() if p.ndim > 1]
    return [
        {"params": matrices, "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]


OPTIMIZERS = {
    "adam": lambda m: torch.optim.Adam(m.parameters(), lr=0.01, amsgrad=True),
    "momentum": lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9),
    "adamw in groups": lambda m: torch.optim.AdamW(decay_groups(m), lr=0.01),
    "named": lambda m: torch.optim.AdamW(m.named_parameters(), lr=0.01),
    "rmsprop": lambda m: torch.optim.RMSprop(m.parameters(), lr=0.01, momentum=0.5),
}


def step(model: nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.randn(7, 5, generator=generator), torch.randint(3, (7,), generator=generator)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()


def trained(make, build=Net, seed: int = 0):
    torch.manual_seed(seed)
    model = build()
    optimizer = make(model)
    for n in range(3):
        step(model, optimizer, n)
    return model, optimizer


def renamed(state, rename):
    return OrderedDict((rename(key), value) for key, value in state.items())


def repaired(tmp_path, content, goal, *, accept=(), **more):
    path, out = tmp_path / "run.pth", tmp_path / "new.pth"
    torch.save(content, path)
    checkpoint = open_checkpoint(path)
    plan = diagnose(checkpoint, goal, accept=accept, **more).plan
    report = export_repaired(checkpoint, plan, goal, out, optimizer=True)
    return report, torch.load(out, weights_only=True)


def same(one: nn.Module, other: nn.Module) -> bool:
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[k], theirs[k]) for k in ours)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("prefix", ["module.", "net._orig_mod."])
def test_one_more_step_after_a_renaming(kind, prefix, tmp_path):
    model, optimizer = trained(OPTIMIZERS[kind])
    content = {"epoch": 3, "args": {"lr": 0.1, "tags": ["a", (1, None)]}, "optimizer": optimizer.state_dict()}
    content["state_dict"] = renamed(model.state_dict(), lambda k: prefix + k)
    if kind == "named":
        for group in content["optimizer"]["param_groups"]:
            group["param_names"] = [prefix + name for name in group["param_names"]]
    report, made = repaired(tmp_path, content, target(Net()))
    assert made["epoch"] == 3 and made["args"] == {"lr": 0.1, "tags": ["a", (1, None)]} and report.lost == ()
    assert {p.id: p.passed for p in report.verification.proofs if p.id in ("reread", "library", "optimizer")} == {
        "reread": True,
        "library": True,
        "optimizer": True,
    }
    fresh = Net()
    fresh.load_state_dict(made["state_dict"])
    again = OPTIMIZERS[kind](fresh)
    again.load_state_dict(made["optimizer"])
    if kind == "named":
        assert made["optimizer"]["param_groups"][0]["param_names"] == [n for n, _ in fresh.named_parameters()]
    step(model, optimizer, 9)
    step(fresh, again, 9)
    assert same(model, fresh)


@pytest.mark.parametrize("kind", ["adam", "momentum", "adamw in groups"])
def test_another_order_of_the_target_gets_other_indices(kind, tmp_path):
    model, optimizer = trained(OPTIMIZERS[kind])
    content = {"state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}
    _, made = repaired(tmp_path, content, target(Turned()))
    turned = Turned()
    turned.load_state_dict(made["state_dict"])
    again = OPTIMIZERS[kind](turned)
    again.load_state_dict(made["optimizer"])
    step(model, optimizer, 9)
    step(turned, again, 9)
    other = turned.state_dict()
    assert all(torch.equal(value, other[key]) for key, value in model.state_dict().items())
    # The test sees a wrong index: with the old ones it fails.
    shapes = [tuple(p.shape) for p in turned.parameters()]
    assert shapes != [tuple(p.shape) for p in model.parameters()]


@pytest.mark.parametrize("kind", ["adam", "momentum"])
@pytest.mark.parametrize("apart", [True, False])
def test_moments_are_joined_and_taken_apart_with_their_matrices(kind, apart, tmp_path):
    model, optimizer = trained(OPTIMIZERS[kind], lambda: Net(apart=not apart))
    content = {"model": renamed(model.state_dict(), lambda k: f"module.{k}"), "optim": optimizer.state_dict()}
    _, made = repaired(tmp_path, content, target(Net(apart=apart)), choose={"qkv-order": "q-k-v"})
    fresh = Net(apart=apart)
    fresh.load_state_dict(made["model"])
    again = OPTIMIZERS[kind](fresh)
    again.load_state_dict(made["optim"])
    # Attention computes the same up to the order of its sums; the moments themselves are compared bit for bit.
    old = {n: optimizer.state[p] for n, p in model.named_parameters()}
    new = {n: again.state[p] for n, p in fresh.named_parameters()}
    field = "exp_avg" if kind == "adam" else "momentum_buffer"
    for leaf in ("weight", "bias"):
        split, whole = (new, old) if apart else (old, new)
        parts = [split[f"attn.{x}_proj.{leaf}"][field] for x in "qkv"]
        assert torch.equal(torch.cat(parts), whole[f"attn.qkv.{leaf}"][field])
    assert torch.equal(old["head.weight"][field], new["head.weight"][field])
    step(model, optimizer, 9)
    step(fresh, again, 9)
    assert torch.allclose(model.head.weight, fresh.head.weight, atol=1e-5)


def test_transposed_moments(tmp_path):
    class Flat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(5, 6), nn.Linear(6, 3)

        def forward(self, x):
            return self.b(self.a(x))

    model, optimizer = trained(OPTIMIZERS["adam"], Flat)
    state = OrderedDict((k, v.t().contiguous() if v.ndim == 2 else v) for k, v in model.state_dict().items())
    stored = copy.deepcopy(optimizer.state_dict())
    for entry in stored["state"].values():
        entry.update({k: v.t().contiguous() for k, v in entry.items() if v.ndim == 2})
    goal = target(Flat())
    _, made = repaired(tmp_path, {"state_dict": state, "optimizer": stored}, goal)
    fresh = Flat()
    fresh.load_state_dict(made["state_dict"])
    again = OPTIMIZERS["adam"](fresh)
    again.load_state_dict(made["optimizer"])
    step(model, optimizer, 9)
    step(fresh, again, 9)
    assert same(model, fresh)


def test_a_new_head_starts_without_state_and_shifts_nobody(tmp_path):
    model, optimizer = trained(OPTIMIZERS["adam"])
    state = renamed(model.state_dict(), lambda k: f"module.{k}")
    kept = OrderedDict((k, v) for k, v in state.items() if "head" not in k)
    kept["module.aux.weight"] = torch.zeros(2, 4)
    # aux trained in the place of the head, so that an index dropped shifts nothing by luck.
    stored = optimizer.state_dict()
    last = max(stored["state"])
    stored["state"][last - 1] = {k: torch.zeros(2, 4) if v.ndim else v for k, v in stored["state"][last - 1].items()}
    del stored["state"][last]
    stored["param_groups"][0]["params"].remove(last)
    content = {"state_dict": kept, "optimizer": stored}
    report, made = repaired(tmp_path, content, target(Net()), accept=("extra-tensors",), partial=True)
    assert report.stays_initial == ("head.weight", "head.bias")
    assert any("module.aux.weight: left out, and its optimizer state" in says for says in report.lost)
    fresh = Net()
    fresh.load_state_dict(made["state_dict"], strict=False)
    again = OPTIMIZERS["adam"](fresh)
    again.load_state_dict(made["optimizer"])
    old = {n: optimizer.state[p] for n, p in model.named_parameters()}
    for name, parameter in fresh.named_parameters():
        if name.startswith("head"):
            assert not again.state[parameter]
        else:
            assert torch.equal(again.state[parameter]["exp_avg"], old[name]["exp_avg"])
    step(fresh, again, 9)


def test_what_is_no_plain_value_is_never_copied(tmp_path):
    class Unknown:
        pass

    import tests.exports.test_training as own

    Unknown.__module__, Unknown.__qualname__ = own.__name__, "Unknown"
    own.Unknown = Unknown
    model, optimizer = trained(OPTIMIZERS["momentum"])
    content = {
        "state_dict": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "config": Unknown(),
        "milestones": {30: 1},
        "best": 0.5,
        "limit": float("inf"),
    }
    report, made = repaired(tmp_path, content, target(Net()))
    assert set(made) == {"state_dict", "optimizer", "best", "limit"} and made["limit"] == float("inf")
    assert {says.partition(":")[0] for says in report.lost} == {"config", "milestones"}


def test_lightning_keeps_its_list_of_optimizers(tmp_path):
    model, optimizer = trained(OPTIMIZERS["adam"])
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    content = {
        "epoch": 1,
        "pytorch-lightning_version": "2.0",
        "state_dict": renamed(model.state_dict(), lambda k: f"model.{k}"),
        "optimizer_states": [optimizer.state_dict()],
        "lr_schedulers": [schedule.state_dict()],
    }
    _, made = repaired(tmp_path, content, target(Net()))
    assert made["lr_schedulers"] == [schedule.state_dict()]
    fresh = Net()
    fresh.load_state_dict(made["state_dict"])
    again = OPTIMIZERS["adam"](fresh)
    again.load_state_dict(made["optimizer_states"][0])
    step(model, optimizer, 9)
    step(fresh, again, 9)
    assert same(model, fresh)


def test_an_optimizer_of_another_network_stays_and_is_said(tmp_path):
    model, optimizer = trained(OPTIMIZERS["adam"])
    other = nn.Linear(40, 2)
    theirs = torch.optim.Adam(other.parameters())
    other(torch.ones(1, 40)).sum().backward()
    theirs.step()
    content = {"g": model.state_dict(), "opt_g": optimizer.state_dict(), "opt_d": theirs.state_dict()}
    report, made = repaired(tmp_path, content, target(Net()))
    assert set(made) == {"g", "opt_g"}
    assert any(says.startswith("opt_d: the optimizer state cannot travel") for says in report.lost)
    assert len(report.optimizers) == 2
    listed = {"g": model.state_dict(), "opts": [theirs.state_dict(), optimizer.state_dict()]}
    with pytest.raises(ExportError, match="cannot travel"):
        repaired(tmp_path, listed, target(Net()))


def refusal(tmp_path, content, goal, **more) -> str:
    (tmp_path / "new.pth").unlink(missing_ok=True)
    with pytest.raises(ExportError) as raised:
        repaired(tmp_path, content, goal, **more)
    assert not (tmp_path / "new.pth").exists() and not list(tmp_path.glob(".writing-*"))
    return str(raised.value)


def test_wrong_shapes_and_wrong_counts_are_refused(tmp_path):
    model, optimizer = trained(OPTIMIZERS["adam"])
    _, others = trained(OPTIMIZERS["adam"], Turned)
    goal = target(Net())
    state = renamed(model.state_dict(), lambda k: f"module.{k}")
    assert "which would be its parameter" in refusal(
        tmp_path, {"state_dict": state, "optimizer": others.state_dict()}, goal
    )
    more = optimizer.state_dict()
    more["param_groups"][0]["params"].append(99)
    assert "these weights have" in refusal(tmp_path, {"state_dict": state, "optimizer": more}, goal)
    assert "holds no optimizer state" in refusal(tmp_path, {"state_dict": state}, goal)
    assert "averaged" in refusal(tmp_path, {"ema": state, "optimizer": optimizer.state_dict()}, goal)


def test_symmetric_groups_are_refused_not_guessed(tmp_path):
    class Towers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(5, 5), nn.Linear(5, 5)

        def forward(self, x):
            return self.b(self.a(x))[:, :3]

    def make(model):
        return torch.optim.Adam([{"params": model.b.parameters()}, {"params": model.a.parameters(), "lr": 0.1}])

    model, optimizer = trained(make, Towers)
    content = {"state_dict": renamed(model.state_dict(), lambda k: f"module.{k}"), "optimizer": optimizer.state_dict()}
    assert "several ways" in refusal(tmp_path, content, target(Towers()))


def test_frozen_layers_are_found_by_shape_or_refused(tmp_path):
    model, optimizer = trained(lambda m: torch.optim.Adam(m.head.parameters(), lr=0.01))
    content = {"state_dict": renamed(model.state_dict(), lambda k: f"module.{k}"), "optimizer": optimizer.state_dict()}
    _, made = repaired(tmp_path, content, target(Turned()))
    turned = Turned()
    turned.load_state_dict(made["state_dict"])
    again = torch.optim.Adam(turned.head.parameters(), lr=0.01)
    again.load_state_dict(made["optimizer"])
    assert torch.equal(again.state[turned.head.weight]["exp_avg"], optimizer.state[model.head.weight]["exp_avg"])

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(5, 5), nn.Linear(5, 5)

        def forward(self, x):
            return self.b(self.a(x))[:, :3]

    two, optimizer = trained(lambda m: torch.optim.Adam(m.b.parameters(), lr=0.01), Two)
    content = {"state_dict": renamed(two.state_dict(), lambda k: f"module.{k}"), "optimizer": optimizer.state_dict()}
    assert "more than one way" in refusal(tmp_path, content, target(Two()))


def test_tied_weights_are_one_parameter(tmp_path):
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.out = nn.Linear(5, 5, bias=False), nn.Linear(5, 5)
            self.out.weight = self.stem.weight

        def forward(self, x):
            return self.out(self.stem(x))[:, :3]

    model, optimizer = trained(OPTIMIZERS["adam"], Tied)
    content = {"state_dict": renamed(model.state_dict(), lambda k: f"module.{k}"), "optimizer": optimizer.state_dict()}
    path = tmp_path / "goal.pth"
    torch.save(Tied().state_dict(), path)
    from inspector.architectures.targets import target_of_checkpoint

    goal = target_of_checkpoint(open_checkpoint(path), "goal.pth")
    text = ""
    try:
        _, made = repaired(tmp_path, content, goal)
    except ExportError as error:
        text = str(error)
    # A target that is a list of tensors does not tell that two are one: then the state stays.
    assert "no parameter of it" in text or len(made["optimizer"]["param_groups"][0]["params"]) == 2


def test_other_formats_and_casts_cannot_take_it_along(tmp_path):
    model, optimizer = trained(OPTIMIZERS["adam"])
    path = tmp_path / "run.pth"
    torch.save({"state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    checkpoint, goal = open_checkpoint(path), target(Net())
    plan = diagnose(checkpoint, goal).plan
    for more in ({"writer": "safetensors"}, {"dtype": "float16"}, {"shard_nbytes": 10**6}):
        with pytest.raises(UsageError, match=r"one \.pth"):
            export_repaired(checkpoint, plan, goal, tmp_path / "new.pth", optimizer=True, **more)
