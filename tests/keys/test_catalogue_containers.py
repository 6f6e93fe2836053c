"""Classes 1 to 27 of the catalogue: containers and wrappers, from real files where the container is the matter."""

from __future__ import annotations

from collections import OrderedDict

import numpy
import pytest
import torch
from torch import nn

from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint


@pytest.fixture
def net():
    torch.manual_seed(0)
    return nn.Sequential(OrderedDict(conv=nn.Conv2d(3, 4, 3), norm=nn.BatchNorm2d(4), fc=nn.Linear(4, 2)))


@pytest.fixture
def check(tmp_path, target_of, net):
    """Save it, open it, repair it, and compare every tensor's bytes with the network's."""

    def run(content, accept=(), choose=None, prefix=""):
        path = tmp_path / "net.pth"
        torch.save(content, path)
        checkpoint = open_checkpoint(path)
        goal = {prefix + n: tuple(t.shape) for n, t in net.state_dict().items()}
        report = diagnose(checkpoint, target_of(goal), accept=accept, choose=choose)
        assert report.plan is not None and report.plan.complete, report.says
        made = apply_plan(checkpoint, report.plan)
        assert list(made) == list(goal)
        assert all(torch.equal(made[prefix + n], t) for n, t in net.state_dict().items())
        return report

    return run


def renamed(net, new):
    return OrderedDict((new(n), t) for n, t in net.state_dict().items())


def test_class_01_a_whole_training_checkpoint(check, net):
    moments = {"state": {}, "param_groups": [{"lr": 0.1, "params": [0]}]}
    check({"epoch": 3, "global_step": 9, "state_dict": net.state_dict(), "optimizer_states": [moments]})


@pytest.mark.parametrize("name", ["params", "net_state", "generator", "weights", "model_state_dict"])
def test_class_02_an_unusual_name_for_the_weights(check, net, name):
    check({name: net.state_dict(), "iter": 5})


def test_class_03_a_wrapped_name_for_the_weights(check, net):
    check({"module.model_state_dict": renamed(net, lambda n: "module." + n)})


def test_class_04_a_list_of_state_dicts(check, net):
    check({"model": [net.state_dict(), {"text.weight": torch.zeros(3, 3)}]})


def test_class_05_a_pickled_module(check, net):
    check(net)


def test_class_06_moments_beside_each_weight(check, net):
    state = net.state_dict() | {f"{n}.adam_m": torch.zeros_like(t) for n, t in net.state_dict().items()}
    report = check(state, accept=["extra-tensors"])
    assert "optimizer-among-weights" in [f.id for f in report.findings]


def test_class_07_two_sets_of_weights(check, net, file_of, target_of):
    other = {f"ema_model.{n}": t + 1 for n, t in net.state_dict().items()}
    state = renamed(net, lambda n: "model." + n) | other
    shapes = {n: tuple(t.shape) for n, t in state.items()}
    plan = diagnose(file_of(shapes), target_of({n: tuple(t.shape) for n, t in net.state_dict().items()})).plan
    assert [q.id for q in plan.ambiguities] == ["twins"] and not plan.complete
    check(state, choose={"twins": "model"})


def test_class_08_names_without_dots(check, net):
    check(renamed(net, lambda n: "model_ema." + n.replace(".", "")))


def test_class_09_a_loss_and_a_metric(check, net):
    extra = {"criterion.pos_weight": torch.ones(2), "val_acc.confmat": torch.zeros(2, 2)}
    report = check(net.state_dict() | extra, accept=["extra-tensors"])
    assert "loss-or-metric" in [f.id for f in report.findings]


def test_class_10_values_that_are_no_tensors(check, net):
    state = OrderedDict(net.state_dict()) | {"conv._extra_state": b"", "step": 7}
    report = check(state)
    assert {"not-tensors", "extra-state"} <= {f.id for f in report.findings}


def test_class_11_numpy_arrays_as_values(check, net):
    check({n: numpy.asarray(t) for n, t in net.state_dict().items()})


def every(names, check, net):
    for text in names:
        report = check(renamed(net, text.format))
        assert {use.id for use in report.plan.rules} == {"wrapper-segment"}
        back = text.format("")
        report = check(net.state_dict(), prefix=back)
        assert {use.id for use in report.plan.rules} == {"wrapper-segment"}


def test_class_12_data_parallel(check, net):
    every(["module.{}"], check, net)


def test_class_13_the_model_is_wrapped_and_another_depth_is_said(check, net, file_of, target_of, tiny_vit):
    check(net.state_dict(), prefix="module.")
    deeper = {f"module.{n}": s for n, s in tiny_vit(depth=5).items()}
    report = diagnose(file_of(tiny_vit(depth=3)), target_of(deeper))
    assert not report.plan.complete
    says = next(f.says for f in report.findings if f.id == "other-depth")
    assert "3 blocks in the file and 5" in says


def test_class_14_data_parallel_several_times(check, net):
    every(["module.module.{}", "module.module.module.module.{}"], check, net)


def test_class_15_module_in_the_middle(check, net):
    check(renamed(net, lambda n: n.replace("norm.", "norm.module.")))


def test_class_16_torch_compile(check, net):
    every(["_orig_mod.{}"], check, net)


def test_class_17_compile_and_data_parallel(check, net):
    every(["_orig_mod.module.{}", "module._orig_mod.{}"], check, net)


def test_class_18_lightning_fabric(check, net):
    every(["_forward_module.{}", "_forward_module.net.{}"], check, net)


def test_class_19_names_cut_by_length(file_of, target_of, tiny_vit, placed_as):
    goal = {f"encoder.{n}": s for n, s in tiny_vit().items()}
    report = diagnose(file_of({n[10:]: s for n, s in goal.items()}, ordered=False), target_of(goal))
    assert report.plan.complete and placed_as(report) == {n: n[10:] for n in goal}


def test_class_20_fsdp_at_every_level(check, net):
    check(renamed(net, lambda n: "_fsdp_wrapped_module." + n.replace(".", "._fsdp_wrapped_module.", 1)))


def test_class_21_flat_parameters_are_refused(check, net, file_of, target_of):
    check(renamed(net, lambda n: "_fpw_module." + n))
    goal = {n: tuple(t.shape) for n, t in net.state_dict().items()}
    for name in ("flat_param", "_fpw_module.flat_param_0", "layer._fsdp_wrapped_module.flat_param"):
        report = diagnose(file_of({name: (138,)}), target_of(goal))
        assert report.plan is None and "flat parameters" in report.refusal
    quiet = {"flat_param": (4, 4), "fc.weight": (2, 4)}
    assert diagnose(file_of(quiet), target_of(quiet)).loads


def test_class_22_activation_checkpointing(check, net):
    check(renamed(net, lambda n: n.replace("conv.", "conv._checkpoint_wrapped_module.")))


def test_class_23_an_averaged_model(check, net):
    check(torch.optim.swa_utils.AveragedModel(net).state_dict())


def test_class_24_the_attribute_of_a_lightning_module(check, net):
    every(["model.{}", "net.{}", "backbone.{}"], check, net)


def test_class_25_a_number_before_every_name(check, net):
    check(renamed(net, "0.auto_model.{}".format))


def test_class_26_the_name_of_the_base_model(check, net):
    check(renamed(net, "bert.{}".format) | {"cls.weight": torch.ones(7, 9)}, accept=["extra-tensors"])
    check(net.state_dict(), prefix="roberta.")


def test_class_27_a_detector_for_a_backbone(check, net):
    extra = {f"rpn.head.{i}.weight": torch.ones(5, 6) for i in range(3)}
    check(renamed(net, "backbone.body.{}".format) | extra, accept=["extra-tensors"])


def test_class_89_parts_that_lie_apart(check, net):
    parts: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in net.state_dict().items():
        first, _, rest = name.partition(".")
        parts.setdefault(first, {})[rest] = tensor
    report = check(parts)
    assert len(report.plan.gathered) == len(parts) and "parts-apart" in [f.id for f in report.findings]
