"""Parts of one model that lie apart in the file: put together by contents and names; copies never mixed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from inspector.errors import ExportError, UsageError
from inspector.exports.training import export_training
from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint


def encoder():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 6, 3))


def decoder():
    return nn.Sequential(nn.ConvTranspose2d(6, 4, 3), nn.BatchNorm2d(4), nn.ConvTranspose2d(4, 3, 3))


def state_of(module, seed):
    generator = torch.Generator().manual_seed(seed)
    made = {
        n: torch.rand(t.shape, generator=generator) + (0.1 if t.dim() < 2 else -0.5)
        for n, t in module.state_dict().items()
    }
    return {n: t if module.state_dict()[n].is_floating_point() else torch.tensor(seed) for n, t in made.items()}


def under(prefix, state):
    return {prefix + name: tensor for name, tensor in state.items()}


E, D, OTHER = state_of(encoder(), 1), state_of(decoder(), 2), state_of(encoder(), 3)
WHOLE = under("encoder.", E) | under("decoder.", D)


@pytest.fixture
def opened(tmp_path):
    def make(content):
        torch.save(content, tmp_path / "parts.pth")
        return open_checkpoint(tmp_path / "parts.pth")

    return make


@pytest.fixture
def target(target_of):
    return lambda state: target_of({n: tuple(t.shape) for n, t in state.items()})


class Loaded:
    def load_state_dict(self, state, strict):
        self.held = state


def holds(checkpoint, plan, goal):
    made = apply_plan(checkpoint, plan)
    return set(made) == set(goal) and all(torch.equal(made[n], t) for n, t in goal.items())


APART = [
    {"encoder": E, "decoder": D},
    {"epoch": 3, "enc": E, "dec": D, "optimizer": {"state": {}, "param_groups": [{"lr": 0.1}]}},
    {"encoder_state_dict": E, "decoder_state_dict": D},
    {"E": E, "D": D},
    {"a": D, "b": E},
    {"encoder": under("module.", E), "decoder": D},
    {"models": {"encoder": E, "decoder": D}},
    {"encoder": {"state_dict": E, "lr": 0.1}, "decoder": {"state_dict": D, "lr": 0.1}},
    [E, D],
    {"encoder": E, "decoder": D, "encoder_ema": OTHER},
]


@pytest.mark.parametrize("content", APART)
def test_parts_are_one_model_and_the_printed_code_says_so(content, opened, target, tmp_path, monkeypatch):
    checkpoint, goal = opened(content), target(WHOLE)
    report = diagnose(checkpoint, goal)
    assert report.plan.complete and not report.loads and not report.strict
    assert "parts-apart" in [f.id for f in report.findings] and "put together" in report.says
    assert holds(checkpoint, report.plan, WHOLE)
    assert all(p.passed is not False for p in verify_plan(checkpoint, report.plan, goal).proofs)
    monkeypatch.chdir(tmp_path)
    model = Loaded()
    exec(python_code(report.plan, file_name="parts.pth"), {"model": model})
    assert set(model.held) == set(WHOLE) and all(torch.equal(model.held[n], t) for n, t in WHOLE.items())


def test_a_tensor_beside_the_parts_goes_to_the_top(opened, target, tmp_path, monkeypatch):
    goal = WHOLE | {"scale": torch.rand(3)}
    checkpoint = opened({"encoder": E, "decoder": D, "scale": goal["scale"], "step": 4})
    plan = diagnose(checkpoint, target(goal)).plan
    assert plan.complete and holds(checkpoint, plan, goal)
    monkeypatch.chdir(tmp_path)
    model = Loaded()
    exec(python_code(plan, file_name="parts.pth"), {"model": model})
    assert set(model.held) == set(goal)


@pytest.mark.parametrize("names", [("G", "D"), ("netG", "netD"), ("gen", "disc"), ("g", "d"), ("G_state", "D_state")])
def test_halves_of_a_gan_of_equal_shapes_go_by_their_names(names, opened, target):
    goal = under("generator.", E) | under("discriminator.", OTHER)
    checkpoint = opened(dict(zip(names, (E, OTHER), strict=True)))
    plan = diagnose(checkpoint, target(goal)).plan
    assert plan.complete and holds(checkpoint, plan, goal)


@pytest.mark.parametrize(
    "ours, theirs",
    [(("first", "second"), ("net_a", "net_b")), (("enc1", "enc2"), ("encoder0", "encoder1"))],
    ids=["no words", "numbers that moved"],
)
def test_equal_parts_that_no_name_tells_apart_are_asked_about(ours, theirs, opened, target):
    goal = under(f"{theirs[0]}.", E) | under(f"{theirs[1]}.", OTHER)
    checkpoint = opened(dict(zip(ours, (E, OTHER), strict=True)))
    waiting = diagnose(checkpoint, target(goal)).plan
    (question,) = waiting.ambiguities
    assert question.id == "parts-apart" and len(question.options) == 2 and not waiting.complete
    right = f"{ours[0]}-as-{theirs[0]},{ours[1]}-as-{theirs[1]}"
    plan = diagnose(checkpoint, target(goal), choose={"parts-apart": right}).plan
    assert plan.complete and holds(checkpoint, plan, goal)
    (other,) = (option for option, _ in question.options if option != right)
    swapped = diagnose(checkpoint, target(goal), choose={"parts-apart": other}).plan
    assert swapped.complete and not holds(checkpoint, swapped, goal)
    with pytest.raises(UsageError):
        diagnose(checkpoint, target(goal), choose={"parts-apart": "neither"})


def test_a_second_copy_that_is_no_average_is_asked_about(opened, target):
    checkpoint = opened({"encoder": E, "encoder_old": OTHER, "decoder": D})
    waiting = diagnose(checkpoint, target(WHOLE)).plan
    assert [q.id for q in waiting.ambiguities] == ["parts-apart"]
    plan = diagnose(checkpoint, target(WHOLE), choose={"parts-apart": "encoder_old-as-encoder"}).plan
    assert holds(checkpoint, plan, WHOLE | under("encoder.", OTHER))


def test_parts_of_two_epochs_are_never_mixed(opened, target):
    later = {"encoder": OTHER, "decoder": state_of(decoder(), 5)}
    checkpoint = opened({"epoch1": {"encoder": E, "decoder": D}, "epoch2": later})
    waiting = diagnose(checkpoint, target(WHOLE)).plan
    assert [q.id for q in waiting.ambiguities] == ["state"] and not waiting.complete
    second = waiting.ambiguities[0].options[1][0]
    plan = diagnose(checkpoint, target(WHOLE), choose={"state": second}).plan
    assert holds(checkpoint, plan, under("encoder.", OTHER) | under("decoder.", later["decoder"]))


def test_one_half_alone_is_the_whole_of_its_own_target(opened, target):
    checkpoint = opened({"encoder": E, "decoder": D})
    report = diagnose(checkpoint, target(E))
    assert report.plan.complete and not report.plan.gathered and holds(checkpoint, report.plan, E)
    assert "parts-apart" not in [f.id for f in report.findings]


def test_two_copies_of_one_network_are_no_parts(opened, target):
    report = diagnose(opened({"model": E, "model_ema": OTHER}), target(under("net.", E)))
    assert [q.id for q in report.plan.ambiguities] == ["state"] and not report.plan.gathered


def test_no_optimizer_travels_with_parts(opened, target, tmp_path):
    checkpoint, goal = opened({"encoder": E, "decoder": D}), target(WHOLE)
    with pytest.raises(ExportError, match="lie apart"):
        export_training(checkpoint, diagnose(checkpoint, goal).plan, goal, tmp_path / "out.pth")
