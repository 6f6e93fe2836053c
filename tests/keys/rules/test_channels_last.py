"""Kernels in another order of axes: proven by shapes, inherited, asked about, and left alone where they disagree."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from inspector.architectures.types import TargetKind
from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.report import StepKind
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint

# As Keras, MLX and spconv 2 store what torch has as (out, in, ...).
HWIO, OHWI, ODHWI = (2, 3, 1, 0), (0, 2, 3, 1), (0, 2, 3, 4, 1)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3)
        self.same = nn.Conv2d(3, 3, 3)  # its shape tells nothing
        self.deep = nn.Conv2d(8, 8, 3, groups=8, bias=False)
        self.bn = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 5)


def stored(model, order, *, dense=False):
    """The model's tensors as the other library stores them, made with NumPy's transpose."""
    made = {}
    for name, tensor in model.state_dict().items():
        array = tensor.numpy()
        if array.ndim == 4:
            depthwise = array.shape[1] == 1 and order == HWIO
            array = array.transpose((2, 3, 0, 1) if depthwise else order)
        elif array.ndim == 2 and dense:
            array = array.T
        made[name] = torch.from_numpy(array.copy())
    return made


def shapes(state):
    return {n: tuple(t.shape) for n, t in state.items()}


def moved(plan):
    return {s.target for s in plan.steps if s.rule == "channels-last"}


@pytest.mark.parametrize("order", [HWIO, OHWI])
def test_there_by_the_shapes_of_all(order, tmp_path, target_of, monkeypatch):
    torch.manual_seed(0)
    model = Net()
    torch.save(stored(model, order, dense=order == HWIO), tmp_path / "a.pth")
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), target_of(shapes(model.state_dict()))
    waiting = diagnose(checkpoint, goal).plan
    # All kernels are 3 x 3: nothing says that height comes before width.
    assert [q.id for q in waiting.ambiguities] == ["channels-last"] and not waiting.complete
    # What "weight" is called and shows nothing itself does not go as the others by itself.
    asked = diagnose(checkpoint, goal, choose={"channels-last": "hwio" if order == HWIO else "ohwi"}).plan
    assert [q.id for q in asked.ambiguities] == ["kernel-order"] and not asked.complete
    answers = {"channels-last": "hwio" if order == HWIO else "ohwi", "kernel-order": "as-the-others"}
    # A kernel of equal channels could be a transposed convolution's, whose own order nothing shows.
    assert [q.id for q in diagnose(checkpoint, goal, choose=answers).plan.ambiguities] == ["transposed-convolution"]
    answers["transposed-convolution"] = "as-the-others"
    plan = diagnose(checkpoint, goal, choose=answers).plan
    assert plan.complete and verify_plan(checkpoint, plan, goal).holds
    made = apply_plan(checkpoint, plan)
    assert all(torch.equal(made[n], t) for n, t in model.state_dict().items())
    fresh = Net()
    monkeypatch.chdir(tmp_path)
    exec(python_code(plan, file_name="a.pth"), {"model": fresh})
    assert all(torch.equal(fresh.state_dict()[n], t) for n, t in model.state_dict().items())


def test_one_kernel_that_is_not_square_proves_the_order(file_of, target_of):
    goal = {"a.weight": (8, 3, 3, 3), "b.weight": (3, 3, 3, 3), "c.weight": (8, 8, 1, 7)}
    ours = {n: tuple(s[i] for i in HWIO) for n, s in goal.items()}
    known = target_of(goal, kind=TargetKind.ARCHITECTURE)
    waiting = diagnose(file_of(ours), known).plan
    assert [q.id for q in waiting.ambiguities] == ["kernel-order"] and not waiting.complete
    plan = diagnose(file_of(ours), known, choose={"kernel-order": "as-the-others"}).plan
    assert plan.complete and moved(plan) == set(goal)
    assert {s.axes for s in plan.steps} == {(3, 2, 0, 1)}


def test_the_name_kernel_says_that_it_is_keras_order(file_of, target_of):
    goal = {"a.weight": (8, 3, 3, 3), "b.weight": (3, 3, 3, 3)}
    ours = {n.replace("weight", "kernel"): tuple(s[i] for i in HWIO) for n, s in goal.items()}
    plan = diagnose(file_of(ours), target_of(goal, kind=TargetKind.ARCHITECTURE)).plan
    if plan is not None:  # where kernels are renamed at all
        assert plan.complete and {s.axes for s in plan.steps} == {(3, 2, 0, 1)}


def test_equal_channels_leave_the_order_to_the_user(file_of, target_of):
    goal = {"a.weight": (8, 8, 3, 5, 7), "b.weight": (4, 4, 1, 2, 3)}
    ours = {n: tuple(s[i] for i in ODHWI) for n, s in goal.items()}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert not plan.complete and [q.id for q in plan.ambiguities] == ["channels-last"]
    assert {option for option, _ in plan.ambiguities[0].options} == {"odhwi", "idhwo"}
    more = goal | {"c.weight": (6, 4, 1, 2, 3)}
    ours = {n: tuple(s[i] for i in ODHWI) for n, s in more.items()}
    plan = diagnose(file_of(ours), target_of(more, kind=TargetKind.ARCHITECTURE)).plan
    assert plan.complete and {s.axes for s in plan.steps} == {(0, 4, 1, 2, 3)}


@pytest.mark.parametrize(
    "ours",
    [
        {"a.weight": (3, 3, 3, 8), "b.weight": (16, 8, 1, 7)},  # b is as torch has it
        {"a.weight": (3, 3, 3, 8), "b.weight": (16, 1, 7, 8)},  # two orders in one file
        {"a.weight": (3, 8, 3, 3), "b.weight": (8, 16, 1, 7)},  # a transposed convolution's, another layer
        {"a.weight": (3, 3, 3, 8), "b.weight": (1, 7, 8, 17)},  # another size
    ],
)
def test_files_of_two_minds_are_refused(ours, file_of, target_of):
    goal = {"a.weight": (8, 3, 3, 3), "b.weight": (16, 8, 1, 7), "n.weight": (4,)}
    plan = diagnose(file_of(ours | {"n.weight": (4,)}), target_of(goal)).plan
    assert plan is None or not plan.complete


def test_square_matrices_beside_such_kernels_are_asked_about(file_of, target_of):
    goal = {"a.weight": (8, 3, 1, 3), "fc.weight": (8, 8), "fc.bias": (8,)}
    ours = goal | {"a.weight": (1, 3, 3, 8)}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert not plan.complete and [q.id for q in plan.ambiguities] == ["transposed"]
    turned = diagnose(file_of(ours), target_of(goal), choose={"transposed": "transposed"}).plan
    assert turned.complete and (1, 0) in {s.axes for s in turned.steps}
    # Nor does another matrix that shows its own layout speak for it: they may be of different libraries.
    more = {"x.weight": (8, 5), "x.bias": (8,)}
    assert not diagnose(file_of(ours | more), target_of(goal | more)).plan.complete


@pytest.mark.parametrize("dense", [True, False])
def test_a_flattened_picture_is_asked_about_and_reordered(dense, tmp_path, target_of, monkeypatch):
    torch.manual_seed(0)
    conv, fc, head = nn.Conv2d(2, 3, (1, 2)), nn.Linear(3 * 4, 6), nn.Linear(6, 5)
    model = nn.Sequential(conv, fc, head)
    ours = {n: t.clone() for n, t in model.state_dict().items()}
    ours["0.weight"] = ours["0.weight"].permute(HWIO).contiguous()
    matrix = fc.weight.detach().reshape(6, 3, 2, 2).permute(0, 2, 3, 1).reshape(6, 12)
    ours["1.weight"], ours["2.weight"] = (
        (matrix.t().contiguous(), head.weight.t().contiguous()) if dense else (matrix, head.weight)
    )
    torch.save(ours, tmp_path / "a.pth")
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), target_of(shapes(model.state_dict()))
    waiting = diagnose(checkpoint, goal).plan
    assert not waiting.complete and [q.id for q in waiting.ambiguities] == ["flatten-order"]
    plan = diagnose(checkpoint, goal, choose={"flatten-order": "channels-last"}).plan
    assert plan.complete and verify_plan(checkpoint, plan, goal).holds
    made = apply_plan(checkpoint, plan)
    assert all(torch.equal(made[n], t) for n, t in model.state_dict().items())
    fresh = nn.Sequential(nn.Conv2d(2, 3, (1, 2)), nn.Linear(12, 6), nn.Linear(6, 5))
    monkeypatch.chdir(tmp_path)
    exec(python_code(plan, file_name="a.pth"), {"model": fresh})
    assert all(torch.equal(fresh.state_dict()[n], t) for n, t in model.state_dict().items())
    other = diagnose(checkpoint, goal, choose={"flatten-order": "channels-first"}).plan
    assert other.complete and not any(s.value for s in other.steps)


def test_torchs_own_order_is_untouched(file_of, target_of):
    net = {"a.weight": (8, 3, 3, 3), "b.weight": (3, 3, 3, 3), "fc.weight": (8, 8)}
    assert diagnose(file_of(net), target_of(net)).plan.rules == ()
    assert StepKind.PERMUTE not in {s.kind for s in diagnose(file_of(net), target_of(net)).plan.steps}


@pytest.mark.parametrize("name", ["kernel", "w"])
@pytest.mark.parametrize("shape", [(3, 3, 3, 3), (4, 4, 4)])
def test_a_kernel_as_wide_as_it_has_channels_is_asked_about(name, shape, file_of, target_of):
    goal = {"a.weight": shape, "a.bias": shape[:1]}
    ours = {f"a.{name}": shape, "a.bias": shape[:1]}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert not plan.complete and [q.id for q in plan.ambiguities] == ["channels-last"]
    own, keras = ("oihw", "hwio") if len(shape) == 4 else ("oiw", "wio")
    for answer, axes in ((own, ()), (keras, tuple(reversed(range(len(shape)))) if len(shape) == 3 else (3, 2, 0, 1))):
        choose = {"channels-last": answer}
        plan = diagnose(file_of(ours), target_of(goal), choose=choose).plan
        if answer == keras:
            # Flax's transposed convolution would lie otherwise, and equal channels do not show it.
            assert not plan.complete and [q.id for q in plan.ambiguities] == ["transposed-convolution"]
            choose["transposed-convolution"] = "as-the-others"
            plan = diagnose(file_of(ours), target_of(goal), choose=choose).plan
        assert plan.complete and {s.axes for s in plan.steps if s.target == "a.weight"} == {axes}


def test_a_librarys_names_prove_nothing_beside_torchs_statistics(file_of, target_of):
    """gamma and kernel were Keras's, and a kernel of torch's lay as Keras has it, unasked."""
    norm = {"bn.weight": (3,), "bn.bias": (3,)}
    goal = {"a.weight": (3, 3, 3, 3), "a.bias": (3,)} | norm
    ours = {"a.kernel": (3, 3, 3, 3), "a.bias": (3,), "bn.gamma": (3,), "bn.beta": (3,)}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert plan.complete and {s.axes for s in plan.steps if s.target == "a.weight"} == {(3, 2, 0, 1)}
    more = {"bn.running_mean": (3,), "bn.running_var": (3,)}
    plan = diagnose(file_of(ours | more), target_of(goal | more)).plan
    assert [q.id for q in plan.ambiguities] == ["channels-last"]


def test_a_torch_kernel_beside_keras_kernels_is_not_put_into_their_order(file_of, target_of):
    goal = {"a.weight": (8, 4, 3, 3), "b.weight": (3, 3, 3, 3)}
    ours = {"a.kernel": (3, 3, 4, 8), "b.weight": (3, 3, 3, 3)}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert not plan.complete and [q.id for q in plan.ambiguities] == ["channels-last"]
    plan = diagnose(file_of(ours), target_of(goal), choose={"channels-last": "oihw"}).plan
    assert plan.complete and moved(plan) == {"a.weight"}


@pytest.mark.parametrize("side", [1, 3, 4])
def test_a_transposed_convolution_whose_axes_are_all_equal_is_asked_about(side, file_of, target_of):
    for name, layout, own in (("kernel", "hwio", "flipped"), ("weight", "ohwi", "swapped")):
        shape = (4, 4, side, side)
        ours = {f"up.{name}": tuple(shape["oihw".index(x)] for x in layout), "n.weight": (4,), "o.weight": (3, 5, 7, 2)}
        goal = {"up.weight": shape, "n.weight": (4,), "o.weight": (3, 2, 5, 7)}
        answers: dict[str, str] = {}
        asked = set()
        for _ in range(6):
            plan = diagnose(file_of(ours), target_of(goal), choose=answers).plan
            if plan.complete:
                break
            asked |= {q.id for q in plan.ambiguities}
            known = {"channels-last": layout, "kernel-order": "as-the-others", "transposed-convolution": own}
            answers |= {q.id: known[q.id.partition(":")[0]] for q in plan.ambiguities}
        assert plan.complete and "transposed-convolution" in asked, name


@pytest.mark.parametrize("places", [2, 3, 6])
def test_a_matrix_behind_and_in_front_of_pictures_is_reordered(places, tmp_path, target_of):
    torch.manual_seed(0)
    truth = {
        "conv.weight": torch.randn(4, 2, 3),
        "fc.weight": torch.randn(5, 4 * places),
        "fc.bias": torch.randn(5),
        "fc2.weight": torch.randn(4 * places, 5),
        "fc2.bias": torch.randn(4 * places),
        "out.weight": torch.randn(7, 4, 3),
    }
    ours = {
        "conv.kernel": truth["conv.weight"].permute(2, 1, 0),
        "fc.kernel": truth["fc.weight"].reshape(5, 4, places).permute(0, 2, 1).reshape(5, -1).t(),
        "fc.bias": truth["fc.bias"],
        "fc2.kernel": truth["fc2.weight"].reshape(4, places, 5).permute(1, 0, 2).reshape(-1, 5).t(),
        "fc2.bias": truth["fc2.bias"].reshape(4, places).t().reshape(-1),
        "out.kernel": truth["out.weight"].permute(2, 1, 0),
    }
    torch.save({n: t.contiguous() for n, t in ours.items()}, tmp_path / "a.pth")
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), target_of(shapes(truth))
    waiting = diagnose(checkpoint, goal).plan
    assert not waiting.complete and {q.id for q in waiting.ambiguities} == {"flatten-order", "unfold-order"}
    answers = {"flatten-order": "channels-last", "unfold-order": "channels-last"}
    plan = diagnose(checkpoint, goal, choose=answers).plan
    assert plan.complete and verify_plan(checkpoint, plan, goal).holds
    made = apply_plan(checkpoint, plan)
    assert all(torch.equal(made[n], t) for n, t in truth.items())
    code = python_code(plan, file_name=str(tmp_path / "a.pth"))
    parts = {n: nn.Module() for n in ("conv", "fc", "fc2", "out")}
    for name, tensor in truth.items():
        parts[name.split(".")[0]].register_parameter(name.split(".")[1], nn.Parameter(torch.zeros_like(tensor)))
    model = nn.ModuleDict(parts)
    exec(code, {"model": model})
    assert all(torch.equal(model.state_dict()[n], t) for n, t in truth.items())


@pytest.mark.parametrize("out", [4, 6])
def test_a_transposed_convolution_of_flax_is_flipped(out, tmp_path, target_of):
    torch.manual_seed(0)
    conv, up = nn.Conv2d(3, 4, 3), nn.ConvTranspose2d(4, out, 3)
    truth = {"conv.weight": conv.weight.detach(), "up.weight": up.weight.detach()}
    flax = up.weight.detach().numpy()[:, :, ::-1, ::-1].transpose(2, 3, 0, 1)
    ours = {"conv.kernel": truth["conv.weight"].permute(HWIO).contiguous(), "up.kernel": torch.from_numpy(flax.copy())}
    torch.save(ours, tmp_path / "a.pth")
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), target_of(shapes(truth))
    waiting = diagnose(checkpoint, goal).plan
    assert not waiting.complete and [q.id for q in waiting.ambiguities] == ["transposed-convolution"]
    plan = diagnose(checkpoint, goal, choose={"transposed-convolution": "flipped"}).plan
    assert plan.complete and verify_plan(checkpoint, plan, goal).holds
    made = apply_plan(checkpoint, plan)
    assert all(torch.equal(made[n], t) for n, t in truth.items())
    names: dict[str, object] = {"model": nn.ModuleDict({"conv": nn.Conv2d(3, 4, 3, bias=False)})}
    names["model"]["up"] = nn.ConvTranspose2d(4, out, 3, bias=False)
    code = python_code(plan, file_name=str(tmp_path / "a.pth"))
    exec(code, names)
    assert torch.equal(names["model"]["up"].weight, up.weight)
