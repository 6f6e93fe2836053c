"""Which tensors of a model are the file's, by number: each silent failure once, and its quiet twin."""

from __future__ import annotations

import copy
import json
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
from safetensors.torch import save_file
from torch import Tensor, nn

from inspector import NotLoaded, check_loaded, open_checkpoint
from inspector.errors import UsageError
from inspector.loaded.report import Held, LoadedReport
from inspector.testing import assert_loaded


class Net(nn.Module):
    """11 tensors of usual layers."""

    def __init__(self, classes: int = 5, *, tied: bool = False) -> None:
        super().__init__()
        self.emb = nn.Embedding(50, 16, padding_idx=0)
        self.rnn = nn.LSTM(16, 16, batch_first=True)
        self.norm = nn.LayerNorm(16)
        self.drop = nn.Dropout(0.1)
        self.square = nn.Linear(16, 16)
        self.head = nn.Linear(16, classes)
        if tied:
            self.out = nn.Linear(16, 50, bias=False)
            self.out.weight = self.emb.weight


def _trained(net: nn.Module, seed: int = 3) -> nn.Module:
    """With numbers that no initialiser makes, batch statistics too."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in net.state_dict().values():
            if tensor.is_floating_point():
                tensor.add_(torch.rand(tensor.shape, generator=random) * 0.05 + 0.01)
            else:
                tensor.add_(7)
    return net.eval()


@pytest.fixture
def state() -> dict[str, Tensor]:
    torch.manual_seed(0)
    return dict(_trained(Net()).state_dict())


@pytest.fixture
def loaded(state: dict[str, Tensor]) -> Net:
    net = Net()
    net.load_state_dict(state)
    net.eval()
    return net


def _ids(report: LoadedReport) -> list[str]:
    return [one.id for one in report.findings]


def test_a_loaded_model_is_quiet(loaded: Net, state: dict[str, Tensor]) -> None:
    report = check_loaded(loaded, state)
    assert report.holds and report.findings == () and report.loaded == 11
    assert report.says == "All 11 tensors of Net are those of the state dict, bit for bit."
    assert report.repair == report.code == "" and report.unused == ()


@pytest.mark.parametrize("build", ["mobilenet_v3_small", "shufflenet_v2_x0_5", "vit"])
def test_torchvision_models_are_told_from_fresh_ones(build: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    make = getattr(torchvision.models, build, _small_vit)
    net = _trained(make(num_classes=4))
    torch.save(net.state_dict(), tmp_path / "net.pth")
    report = check_loaded(net, tmp_path / "net.pth")
    assert report.holds and report.loaded == len(report.tensors) == len(net.state_dict())
    fresh = check_loaded(make(num_classes=4), tmp_path / "net.pth")
    assert fresh.loaded == 0 and _ids(fresh)[0] == "nothing-loaded"
    assert fresh.of(Held.ABSENT) == fresh.of(Held.OTHER) == ()
    # Truncated normal numbers and small vectors are not always told from trained ones: these are "other values".
    known = [one for one in fresh.tensors if len(one.shape) > 1 and one.held is Held.INITIAL]
    assert len(known) >= 0.9 * sum(len(one.shape) > 1 for one in fresh.tensors)


def _small_vit(*, num_classes: int) -> nn.Module:
    sizes = {"image_size": 32, "patch_size": 16, "num_layers": 2, "num_heads": 2, "hidden_dim": 32, "mlp_dim": 64}
    return torchvision.models.VisionTransformer(**sizes, num_classes=num_classes)


def test_an_assigned_state_dict_loads_nothing(state: dict[str, Tensor]) -> None:
    net = Net()
    net.state_dict = OrderedDict(state)  # type: ignore[method-assign, assignment]
    report = check_loaded(net, state)
    assert _ids(report)[:2] == ["state-dict-replaced", "nothing-loaded"]
    assert report.findings[0].says.startswith("model.state_dict is an OrderedDict: it was assigned")
    assert report.loaded == 0 and len(report.of(Held.INITIAL)) == 11


def test_a_part_whose_method_was_overwritten(loaded: Net, state: dict[str, Tensor]) -> None:
    loaded.head.load_state_dict = dict(state)  # type: ignore[method-assign, assignment]
    report = check_loaded(loaded, state)
    assert _ids(report) == ["state-dict-replaced"] and "model.head.load_state_dict is a dict" in report.findings[0].says


def test_a_method_put_in_place_of_a_method_is_left_alone(loaded: Net, state: dict[str, Tensor]) -> None:
    loaded.state_dict = (lambda self, *_: {}).__get__(loaded)  # type: ignore[method-assign]
    assert check_loaded(loaded, state).holds


def test_a_fresh_model_with_the_evidence(state: dict[str, Tensor]) -> None:
    torch.manual_seed(5)
    report = check_loaded(Net(), state)
    held = {one.name: one for one in report.tensors}
    assert held["square.weight"].why == "bit for bit numbers of uniform_(±0.25), nn.Linear.reset_parameters"
    assert held["rnn.weight_hh_l0"].why == "bit for bit numbers of uniform_(±0.25), nn.LSTM.reset_parameters"
    assert "normal_(0," in held["emb.weight"].why
    assert held["norm.weight"].why == "all 1, as LayerNorm.weight begins or is reset to"
    assert not held["head.bias"].proved and held["square.weight"].proved


def test_strict_false_over_a_prefix_names_the_repair(state: dict[str, Tensor], tmp_path: Path) -> None:
    path = tmp_path / "dp.pth"
    torch.save({f"module.{name}": tensor for name, tensor in state.items()}, path)
    net = Net()
    net.load_state_dict(torch.load(path, weights_only=True), strict=False)
    report = check_loaded(net, path)
    assert _ids(report)[0] == "nothing-loaded"
    assert report.repair == 'All 11 tensors fit once "module." is dropped. Lossless.'
    namespace: dict[str, Any] = {"model": net}
    exec(report.code.replace("'dp.pth'", repr(str(path))).replace('"dp.pth"', repr(str(path))), namespace)
    assert check_loaded(net.eval(), path).holds


def test_wrappers_on_either_side_are_looked_through(loaded: Net, state: dict[str, Tensor]) -> None:
    assert check_loaded(nn.DataParallel(loaded).eval(), state).loaded == 11
    assert check_loaded(loaded, {f"module.{name}": tensor for name, tensor in state.items()}).holds


def test_a_head_of_another_class_count(state: dict[str, Tensor]) -> None:
    net = Net(classes=3)
    net.load_state_dict({name: tensor for name, tensor in state.items() if "head" not in name}, strict=False)
    net.eval()
    report = check_loaded(net, state)
    assert _ids(report) == ["left-out-by-shape"] and report.loaded == 9
    assert "head.weight has 5 outputs in the file, 3 in the model. 2 of 2 are at their init" in report.findings[0].says
    assert [one.name for one in report.unused] == ["head.weight", "head.bias"]
    assert check_loaded(net, state, leave_out=["head.*"]).holds
    assert check_loaded(net, state, leave_out=["head"]).holds
    assert not check_loaded(net, state, leave_out=["hea"]).holds


def _twice() -> nn.Module:
    """Two basic blocks of ResNet: four kernels of one shape."""
    return nn.Sequential(*(torchvision.models.resnet.BasicBlock(8, 8) for _ in range(2)))


def test_exchanged_layers_are_named(state: dict[str, Tensor]) -> None:
    torch.manual_seed(2)
    source = _trained(_twice()).state_dict()
    one, other = "0.conv1.weight", "0.conv2.weight"
    net = _twice()
    net.load_state_dict({**source, one: source[other], other: source[one]})
    report = check_loaded(net.eval(), source)
    assert _ids(report) == ["exchanged-tensors"] and report.of(Held.OTHER) == (one, other)
    assert f"{one} is {other}, {other} is {one}" in report.findings[0].says
    assert report.unused == ()


def test_a_square_matrix_transposed(loaded: Net, state: dict[str, Tensor]) -> None:
    with torch.no_grad():
        loaded.square.weight.copy_(loaded.square.weight.t().clone())
    report = check_loaded(loaded, state)
    assert report.of(Held.TRANSPOSED) == ("square.weight",) and _ids(report) == ["exchanged-tensors"]


def test_another_matrix_transposed(loaded: Net, state: dict[str, Tensor]) -> None:
    """Of the other orientation, from another place."""
    state["extra.weight"] = torch.randn(16, 5)
    with torch.no_grad():
        loaded.head.weight.copy_(state["extra.weight"].t())
    (wrong,) = [one for one in check_loaded(loaded, state).tensors if not one.is_loaded]
    assert (wrong.held, wrong.source, wrong.why) == (Held.OTHER, "extra.weight", "transposed")


def test_equal_constants_are_no_exchange() -> None:
    """Fresh norms hold ones as other norms of the file do: that is an initialisation, no other tensor."""
    net = nn.Sequential(nn.BatchNorm1d(4), nn.BatchNorm1d(4)).eval()
    state = {**net.state_dict(), "0.weight": torch.rand(4) + 2}
    (left,) = [one for one in check_loaded(net, state).tensors if not one.is_loaded]
    assert (left.name, left.held) == ("0.weight", Held.INITIAL)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_file_of_another_type_is_equal_after_a_cast(loaded: Net, dtype: torch.dtype) -> None:
    state = {name: tensor.to(dtype) for name, tensor in loaded.state_dict().items()}
    loaded.load_state_dict(state)
    report = check_loaded(loaded, state)
    assert report.holds and len(report.of(Held.CAST)) == 11
    assert report.tensors[0].why == f"{str(dtype)[6:]} to float32"
    assert "11 of them after a cast" in report.says


def test_a_model_that_was_half_for_a_while(loaded: Net, state: dict[str, Tensor]) -> None:
    report = check_loaded(copy.deepcopy(loaded).bfloat16().float(), state)
    assert report.holds and report.tensors[0].why == "float32 to bfloat16 and back"
    assert check_loaded(copy.deepcopy(loaded).half(), state).tensors[0].why == "float32 to float16"
    assert check_loaded(loaded.bfloat16().half(), state).tensors[0].why == "float32 to bfloat16 and on to float16"


def test_nan_is_equal_to_nan(loaded: Net, state: dict[str, Tensor]) -> None:
    state["head.bias"][0] = float("nan")
    loaded.load_state_dict(state)
    assert check_loaded(loaded, state).holds
    assert check_loaded(loaded, {name: tensor.half() for name, tensor in state.items()}).loaded < 11


def test_trained_on_after_loading(loaded: Net, state: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for parameter in loaded.parameters():
            parameter.mul_(1.01)
    report = check_loaded(loaded, state)
    assert _ids(report) == ["values-changed"] and len(report.of(Held.CHANGED)) == 11
    assert all(one.difference == pytest.approx(0.01, rel=1e-3) for one in report.tensors)
    assert "by 0.01 (relative L2)" in report.findings[0].says


def test_statistics_that_moved_in_train_mode() -> None:
    torch.manual_seed(4)
    net = _trained(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3)))
    state = copy.deepcopy(net.state_dict())
    net.train()(torch.randn(4, 3, 9, 9))
    report = check_loaded(net.eval(), state)
    assert _ids(report) == ["statistics-moved"] and report.of(Held.CHANGED) == tuple(
        f"1.{name}" for name in ("running_mean", "running_var", "num_batches_tracked")
    )


class Listed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(8, 8)
        self.blocks = [nn.Linear(8, 8) for _ in range(3)]
        self.scale = torch.full((8,), 2.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.stem(x) * self.scale


class Registered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(8, 8)
        self.blocks = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.register_buffer("scale", torch.full((8,), 2.0))


def test_layers_in_a_plain_list_and_a_tensor_in_an_attribute() -> None:
    state = Registered().state_dict()
    net = Listed()
    net.load_state_dict(state, strict=False)
    report = check_loaded(net.eval(), state)
    assert _ids(report) == ["layers-in-plain-container", "file-tensors-unused", "tensor-in-plain-attribute"]
    assert "blocks is a plain list of 3 layers (216 weights)" in report.findings[0].says
    assert report.unregistered == (*(f"blocks.{i}.{leaf}" for i in range(3) for leaf in ("weight", "bias")), "scale")
    assert report.says.startswith("All 2 tensors of Listed are those") and "plain attributes" in report.says
    assert {one.why for one in report.unused} == {"the model keeps these layers in a plain attribute"}


def test_registered_layers_are_quiet() -> None:
    net = Registered().eval()
    assert check_loaded(net, net.state_dict()).findings == ()


@pytest.mark.parametrize("box", ["dict", "tuple"])
def test_layers_in_a_plain_dict_or_tuple(box: str) -> None:
    net = nn.Sequential(nn.Linear(2, 2)).eval()
    layer = nn.Linear(3, 3)
    net.heads = {"a": layer} if box == "dict" else (layer,)  # type: ignore[assignment]
    report = check_loaded(net, net.state_dict())
    assert _ids(report) == ["layers-in-plain-container"]
    assert report.unregistered == (
        ("heads.a.weight", "heads.a.bias") if box == "dict" else ("heads.0.weight", "heads.0.bias")
    )


def test_tied_places() -> None:
    net = _trained(Net(tied=True))
    state = dict(net.state_dict())
    assert check_loaded(net, state).ties == (("emb.weight", "out.weight"),)
    del state["out.weight"]
    report = check_loaded(net, state)
    assert report.holds and report.tensors[-1].source == "emb.weight"
    split = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    split["out.weight"] += 1
    net.load_state_dict(split)
    report = check_loaded(net, split)
    assert _ids(report) == ["tied-places-differ"] and "emb.weight and out.weight are one parameter" in str(report)


def test_averages_that_the_model_does_not_hold(loaded: Net, state: dict[str, Tensor]) -> None:
    file = {"model": state, "ema": {name: tensor + 0.01 for name, tensor in state.items()}, "epoch": 3}
    report = check_loaded(loaded, file)
    assert (report.state_dict, _ids(report), report.holds) == ("model", ["averages-unused"], True)
    loaded.load_state_dict(file["ema"])  # type: ignore[arg-type]
    report = check_loaded(loaded, file)
    assert (report.state_dict, report.findings) == ("ema", ())
    assert check_loaded(loaded, file, state="model").of(Held.EQUAL) == ()
    same = {"model": state, "ema": {name: tensor.clone() for name, tensor in state.items()}}
    loaded.load_state_dict(state)
    assert check_loaded(loaded, same).findings == ()


def test_averages_under_a_prefix(loaded: Net, state: dict[str, Tensor]) -> None:
    file = {
        f"{side}.{name}": tensor + add
        for side, add in (("model", 0), ("model_ema", 1))
        for name, tensor in state.items()
    }
    report = check_loaded(loaded, file)
    assert report.loaded == 11 and "averages-unused" in _ids(report)
    assert len(report.unused) == 11 and {one.why for one in report.unused} == {"they are averages"}


def test_the_optimizer_is_no_state_dict_to_compare(loaded: Net, state: dict[str, Tensor], tmp_path: Path) -> None:
    optimizer = torch.optim.Adam(loaded.parameters())
    loaded.emb.weight.sum().backward()
    torch.save({"optimizer": optimizer.state_dict(), "net": state, "epoch": 1}, tmp_path / "c.pth")
    report = check_loaded(loaded, tmp_path / "c.pth")
    assert report.state_dict == "net" and report.holds


def test_the_script_renames(loaded: Net, state: dict[str, Tensor]) -> None:
    file = {f"net.{name.replace('rnn', 'lstm')}": tensor for name, tensor in state.items()}
    assert check_loaded(loaded, file, rename=lambda name: name[4:].replace("lstm", "rnn")).findings == ()
    names = {name: name[4:].replace("lstm", "rnn") for name in file}
    assert check_loaded(loaded, file, rename=names).findings == ()
    names["net.square.weight"], names["net.head.bias"] = "square.weight", "head.bias"
    wrong = check_loaded(loaded, file, rename={**names, "net.head.bias": "norm.bias", "net.norm.bias": "nowhere"})
    assert not wrong.holds
    with pytest.raises(UsageError, match=r"rename makes emb.weight of both"):
        check_loaded(loaded, file, rename=lambda name: "emb.weight")


def test_a_script_that_renamed_without_saying_so(loaded: Net, state: dict[str, Tensor]) -> None:
    """The values say what the names do not: each tensor of the model is one of the file."""
    file = {f"net.{name.replace('rnn', 'lstm')}": tensor for name, tensor in state.items()}
    report = check_loaded(loaded, file)
    assert report.holds and {one.name: one.source for one in report.tensors}["rnn.bias_ih_l0"] == "net.lstm.bias_ih_l0"


def test_a_split_projection_that_the_script_fused() -> None:
    """The repair knows how the file's three matrices become the model's one, and that is what the model holds."""
    torch.manual_seed(6)
    attention = nn.ModuleDict({"qkv": nn.Linear(6, 18), "proj": nn.Linear(6, 6)})
    net = nn.ModuleDict({"layer": nn.ModuleDict({"attn": attention, "fc": nn.Linear(6, 7)})})
    state = _trained(net).state_dict()
    file = {name: tensor for name, tensor in state.items() if "qkv" not in name}
    for i, part in enumerate("qkv"):
        for leaf in ("weight", "bias"):
            rows = state[f"layer.attn.qkv.{leaf}"][6 * i : 6 * i + 6]
            file[f"layer.attn.{part}_proj.{leaf}"] = rows.clone()
    report = check_loaded(net, file)
    assert report.loaded == 6 and report.unused == ()


def test_modes_and_gradients(loaded: Net, state: dict[str, Tensor]) -> None:
    loaded.drop.train()
    assert _ids(check_loaded(loaded, state)) == ["mixed-modes"]
    loaded.train()
    report = check_loaded(loaded, state)
    assert (_ids(report), report.active, report.training, report.holds) == (["train-mode"], ("drop",), True, True)
    loaded.requires_grad_(False)
    assert _ids(check_loaded(loaded, state)) == ["all-frozen", "train-mode"]
    loaded.eval()
    assert check_loaded(loaded, state).findings == ()


def test_types_and_the_meta_device(loaded: Net, state: dict[str, Tensor]) -> None:
    loaded.head.half()
    report = check_loaded(loaded, state)
    assert _ids(report) == ["several-types"] and "float32 (9), float16 (2)" in report.findings[0].says and report.holds
    with torch.device("meta"):
        empty = Net().eval()
    report = check_loaded(empty, state)
    assert _ids(report) == ["places-without-numbers"] and len(report.of(Held.UNKNOWN)) == 11
    assert len(report.not_examined) == 1 and report.not_examined[0].startswith("11 tensors (")


def test_a_lazy_parameter_is_said_to_be_one(state: dict[str, Tensor]) -> None:
    report = check_loaded(nn.Sequential(nn.LazyLinear(3)), state)
    assert report.of(Held.UNKNOWN) == ("0.weight", "0.bias") and "before its first forward" in report.not_examined[0]


def test_old_files_without_batch_counters() -> None:
    net = _trained(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)))
    state = {name: tensor for name, tensor in net.state_dict().items() if "num_batches" not in name}
    assert check_loaded(net, state).holds


@pytest.mark.parametrize("form", ["pth", "safetensors", "opened", "model"])
def test_sources(form: str, loaded: Net, state: dict[str, Tensor], tmp_path: Path) -> None:
    torch.save(state, tmp_path / "a.pth")
    save_file(state, tmp_path / "a.safetensors")
    source: Any = {
        "pth": tmp_path / "a.pth",
        "safetensors": str(tmp_path / "a.safetensors"),
        "opened": open_checkpoint(tmp_path / "a.pth"),
        "model": loaded,
    }[form]
    assert check_loaded(loaded, source).holds


def test_nothing_in_a_file_is_run(loaded: Net, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "ran",))

    (tmp_path / "trap.pth").write_bytes(pickle.dumps({"w": torch.zeros(3), "x": Trap()}))
    check_loaded(loaded, tmp_path / "trap.pth")
    assert not (tmp_path / "ran").exists()


def test_what_means_nothing_is_said(loaded: Net, state: dict[str, Tensor]) -> None:
    with pytest.raises(UsageError, match='has no state dict "ema"'):
        check_loaded(loaded, state, state="ema")
    with pytest.raises(UsageError, match="no tensor in this mapping"):
        check_loaded(loaded, {"epoch": 3})


def test_strict_raises_with_the_report(loaded: Net, state: dict[str, Tensor]) -> None:
    assert check_loaded(loaded, state, strict=True).holds
    with pytest.raises(NotLoaded, match="0 of 11 tensors of Net") as caught:
        check_loaded(Net(), state, strict=True)
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.report == caught.value.report and again.report.loaded == 0


def test_the_assertion(loaded: Net, state: dict[str, Tensor]) -> None:
    assert assert_loaded(loaded, state).loaded == 11
    with pytest.raises(AssertionError, match="error: None of the 11 tensors"):
        assert_loaded(Net(), state)
    loaded.head.reset_parameters()
    assert_loaded(loaded, state, leave_out=["head.*"])


def test_the_model_is_left_as_it_was(state: dict[str, Tensor]) -> None:
    net = Net().train()
    net.head.eval()
    before = {name: (id(tensor), tensor.detach().clone()) for name, tensor in net.named_parameters()}
    check_loaded(net, state)
    after = dict(net.named_parameters())
    assert all(id(after[name]) == i and torch.equal(after[name], values) for name, (i, values) in before.items())
    assert net.training and not net.head.training


def test_json_and_a_notebook(loaded: Net, state: dict[str, Tensor]) -> None:
    class Markup(Net):
        pass

    Markup.__name__ = "<b>Net</b>"
    report = check_loaded(Markup(), state)
    data = json.loads(report.to_json())
    assert data["loaded"] == 0 and data["holds"] is False and len(data["tensors"]) == 11
    assert "<b>Net</b>" not in report._repr_html_() and "&lt;b&gt;Net" in report._repr_html_()
    assert str(check_loaded(loaded, state)) == "All 11 tensors of Net are those of the state dict, bit for bit."
