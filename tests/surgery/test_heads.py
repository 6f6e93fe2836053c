"""A new head begins as torch's own layer does; what cannot be told a head is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import weight_norm

from inspector.checkpoint.types import Checkpoint
from inspector.errors import ExportError, UsageError
from inspector.exports.export import export_repaired
from inspector.keys.code import python_code
from inspector.readers import open_checkpoint
from inspector.surgery.plan import plan_surgery
from inspector.surgery.report import Drop, Extract, Initial, NewHead, Operation
from inspector.surgery.rules import RULES
from tests.surgery.networks import Detector, same, saved, trained

Detected = tuple[Checkpoint, dict[str, Tensor]]


def written(checkpoint: Checkpoint, path: Path, *steps: Operation) -> dict[str, Tensor]:
    report = plan_surgery(checkpoint, steps)
    export_repaired(checkpoint, report.plan, report.target, path)
    found: dict[str, Tensor] = torch.load(path, weights_only=True)
    return found


def with_head(state: dict[str, Tensor], module: str, layer: nn.Module) -> dict[str, Tensor]:
    new = {f"{module}.{name}": tensor.detach() for name, tensor in layer.state_dict().items()}
    return {name: new.get(name, tensor) for name, tensor in state.items()}


def test_it_begins_as_the_layer_of_torch_with_that_seed(detector: Detected, tmp_path: Path) -> None:
    checkpoint, state = detector
    before = torch.random.get_rng_state()
    made = written(checkpoint, tmp_path / "o.pth", NewHead(module="boxes", classes=9, seed=3))
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(3)
    assert same(made, with_head(state, "boxes", nn.Linear(6, 9)))


def test_a_convolution_begins_as_torchs_convolution(tmp_path: Path) -> None:
    model = trained(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 5, 1)))
    checkpoint = saved(model.state_dict(), tmp_path / "a.pth")
    made = written(checkpoint, tmp_path / "o.pth", NewHead(module="2", classes=2))
    torch.manual_seed(0)
    assert same(made, with_head(model.state_dict(), "2", nn.Conv2d(8, 2, 1)))


def test_zeros_and_the_type_of_the_old_head(tmp_path: Path) -> None:
    model = trained(Detector()).to(torch.bfloat16)
    checkpoint = saved(model.state_dict(), tmp_path / "a.pth")
    made = written(checkpoint, tmp_path / "o.pth", NewHead(module="boxes", classes=3, how=Initial.ZEROS))
    assert made["boxes.weight"].dtype is torch.bfloat16 and made["boxes.weight"].shape == (3, 6)
    assert not made["boxes.weight"].any() and not made["boxes.bias"].any()
    begun = written(checkpoint, tmp_path / "b.pth", NewHead(module="boxes", classes=3))
    torch.manual_seed(0)
    assert torch.equal(begun["boxes.weight"], nn.Linear(6, 3).weight.detach().to(torch.bfloat16))


def test_it_loads_strictly_into_the_architecture_of_so_many_classes(resnet: nn.Module, tmp_path: Path) -> None:
    from torchvision.models import resnet18

    checkpoint = saved(resnet.state_dict(), tmp_path / "a.pth")
    report = plan_surgery(checkpoint, [NewHead(module="fc", classes=7)])
    assert report.target.label == "torchvision/resnet18?num_classes=7" and not report.plan.missing
    verified = export_repaired(checkpoint, report.plan, report.target, tmp_path / "o.pth").verification
    assert {proof.id for proof in verified.proofs if proof.passed} >= {"strict-load", "bytes", "forward", "reread"}
    made = torch.load(tmp_path / "o.pth", weights_only=True)
    torch.manual_seed(0)
    assert same(made, with_head(dict(resnet.state_dict()), "fc", nn.Linear(512, 7)))
    resnet18(num_classes=7).load_state_dict(made, strict=True)


def test_a_wrapper_comes_off_and_the_head_is_new(resnet: nn.Module, tmp_path: Path) -> None:
    wrapped = {f"module.{name}": tensor for name, tensor in resnet.state_dict().items()}
    checkpoint = saved(wrapped, tmp_path / "a.pth")
    report = plan_surgery(checkpoint, [NewHead(module="fc", classes=7), Extract(module="module")])
    assert report.target.label == "torchvision/resnet18?num_classes=7"
    other = plan_surgery(checkpoint, [Extract(module="module"), NewHead(module="fc", classes=7)])
    assert other.target.label == report.target.label


def test_all_heads_of_one_number_of_classes_go_together(tmp_path: Path) -> None:
    """A detector has one row per class for scores and four for boxes, in layers of their own."""
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn as build

    model = trained(build(weights=None, weights_backbone=None, num_classes=6))
    checkpoint = saved(model.state_dict(), tmp_path / "a.pth")
    report = plan_surgery(checkpoint, [NewHead(module="roi_heads.box_predictor", classes=3)])
    shapes = {step.target: step.shape for step in report.plan.steps if step.source is None}
    assert {name: shape[0] for name, shape in shapes.items() if shape} == {
        "roi_heads.box_predictor.cls_score.weight": 3,
        "roi_heads.box_predictor.cls_score.bias": 3,
        "roi_heads.box_predictor.bbox_pred.weight": 12,
        "roi_heads.box_predictor.bbox_pred.bias": 12,
    }
    assert report.target.spec is not None and report.target.spec.num_classes == 3
    scores = NewHead(module="roi_heads.box_predictor.cls_score", classes=3)
    with pytest.raises(ExportError, match=r"also decides roi_heads\.box_predictor\.bbox_pred"):
        plan_surgery(checkpoint, [scores])
    boxes = NewHead(module="roi_heads.box_predictor.bbox_pred", classes=4)
    with pytest.raises(ExportError, match="one number of classes, and its heads were given 3 and 4"):
        plan_surgery(checkpoint, [scores, boxes])
    plan_surgery(checkpoint, [scores, Drop(module="roi_heads.box_predictor.bbox_pred")])


def test_a_head_is_known_by_what_the_file_was_before_something_was_left_out(tmp_path: Path) -> None:
    from torchvision.models import squeezenet1_1

    checkpoint = saved(trained(squeezenet1_1(num_classes=4)).state_dict(), tmp_path / "a.pth")
    steps = [Drop(module="features.12"), NewHead(module="classifier", classes=3)]
    report = plan_surgery(checkpoint, steps)
    assert {step.target: step.shape for step in report.plan.steps if step.source is None} == {
        "classifier.1.weight": (3, 512, 1, 1),
        "classifier.1.bias": (3,),
    }


def test_another_layer_of_a_known_architecture_is_no_head(resnet: nn.Module, tmp_path: Path) -> None:
    checkpoint = saved(resnet.state_dict(), tmp_path / "a.pth")
    with pytest.raises(ExportError, match=r"conv1 is no head of torchvision/resnet18.*decides fc"):
        plan_surgery(checkpoint, [NewHead(module="conv1", classes=7)])


REFUSED = {
    "a layer feeds the next": (nn.Linear(4, 6), nn.Linear(6, 2), "0.*takes them"),
    "a batch norm follows": (nn.Conv2d(3, 6, 1), nn.BatchNorm2d(6), "0.*takes them"),
    "a depthwise layer follows": (nn.Conv2d(3, 6, 1), nn.Conv2d(6, 6, 3, groups=6), "0.*may take them"),
    "it is flattened": (nn.Conv2d(3, 6, 1), nn.Linear(6 * 49, 2), "0.*may take them"),
    "a PReLU lies between": (nn.Linear(4, 6), nn.Sequential(nn.PReLU(), nn.Linear(6, 2)), "0.*takes them"),
    "an embedding": (nn.Embedding(6, 4), nn.Linear(4, 2), "0 has no bias.*embeddings"),
    "a transposed convolution": (nn.ConvTranspose2d(4, 6, 2), nn.Identity(), "0.*transposed convolution"),
    "a square transposed one": (nn.ConvTranspose2d(4, 4, 2), nn.Identity(), "could be a transposed"),
    "a weight norm": (weight_norm(nn.Linear(4, 6)), nn.Identity(), "0 holds bias, weight_g, weight_v"),
    "several layers": (nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)), nn.Identity(), "no single layer.*0.0, 0.1"),
    "a norm": (nn.BatchNorm1d(4), nn.Identity(), "0 holds weight, bias, running_mean"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_what_is_no_head_for_sure_is_refused(case: str, tmp_path: Path) -> None:
    first, second, says = REFUSED[case]
    assert isinstance(says, str)
    checkpoint = saved(nn.Sequential(first, second).state_dict(), tmp_path / "a.pth")
    with pytest.raises(ExportError, match=says):
        plan_surgery(checkpoint, [NewHead(module="0", classes=3)])


def test_two_heads_of_one_size_are_no_chain(detector: Detected) -> None:
    plan_surgery(detector[0], [NewHead(module="classes", classes=3)])


def test_in_a_sorted_file_any_layer_may_follow(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    state = {
        "z.weight": torch.rand(6, 4),
        "z.bias": torch.rand(6),
        "a.weight": torch.rand(2, 6),
        "a.bias": torch.rand(2),
    }
    save_file(state, tmp_path / "a.safetensors")
    checkpoint = open_checkpoint(tmp_path / "a.safetensors")
    with pytest.raises(ExportError, match=r"z is no head.*a\.weight"):
        plan_surgery(checkpoint, [NewHead(module="z", classes=3)])
    plan_surgery(checkpoint, [NewHead(module="a", classes=3)])


def test_a_tied_head_is_refused_shared_or_copied(tmp_path: Path) -> None:
    table = torch.randn(9, 4)
    for tied in (table, table.clone()):
        state = {"emb.weight": table, "out.weight": tied, "out.bias": torch.zeros(9)}
        checkpoint = saved(state, tmp_path / "a.pth")
        with pytest.raises(ExportError, match=r"out\.weight and emb\.weight (are one memory|hold the same numbers)"):
            plan_surgery(checkpoint, [NewHead(module="out", classes=3)])
    free = {"emb.weight": table, "out.weight": torch.randn(9, 4), "out.bias": torch.zeros(9)}
    plan_surgery(saved(free, tmp_path / "a.pth"), [NewHead(module="out", classes=3)])


@pytest.mark.parametrize("classes", [0, -1, 1 << 21])
def test_a_number_that_is_none_of_classes(detector: Detected, classes: int) -> None:
    with pytest.raises(UsageError, match="is no number of classes"):
        plan_surgery(detector[0], [NewHead(module="boxes", classes=classes)])


def test_whole_numbers_are_no_head(tmp_path: Path) -> None:
    state = {"a.weight": torch.ones(3, 4, dtype=torch.int8), "a.bias": torch.ones(3)}
    with pytest.raises(ExportError, match=r"a\.weight is int8"):
        plan_surgery(saved(state, tmp_path / "a.pth"), [NewHead(module="a", classes=3)])


@pytest.mark.parametrize("how", list(Initial))
def test_the_plan_as_python_makes_the_same_head(
    how: Initial, resnet: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    halved = {name: t.half() if t.is_floating_point() else t for name, t in resnet.state_dict().items()}
    checkpoint = saved(halved, tmp_path / "a.pth")
    step = NewHead(module="fc", classes=7, how=how, seed=5)
    report = plan_surgery(checkpoint, [step])
    monkeypatch.chdir(tmp_path)
    ran: dict[str, object] = {}
    exec(python_code(report.plan, file_name="a.pth", rules=RULES, spec=report.target.spec), ran)
    state = ran["state"]
    made = written(checkpoint, tmp_path / "o.pth", step)
    assert isinstance(state, dict) and state.keys() == made.keys()
    assert all(state[name].dtype is t.dtype and torch.equal(state[name], t) for name, t in made.items())
