"""A network that nobody knows by name, by one's own code: pasted, with the weights of the file, on each page."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from streamlit.testing.v1 import AppTest

from inspector.jobs.client import Client
from inspector.web import own_code, uploads
from inspector.web.evaluation.data import Held
from inspector.web.explain.pictures import Picture
from inspector.web.front.keys import code_key
from inspector.web.session import Hand
from sample_models.labelled import write_labelled
from tests.web.finishing import finish

NET = """
from torch import nn

class Block(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(nn.Conv2d(i, o, 3, 2, 1), nn.BatchNorm2d(o), nn.ReLU())

class Net(nn.Module):
    def __init__(self, num_classes=4):
        super().__init__()
        self.stem, self.deep = Block(3, 8), Block(8, 16)
        self.fc = nn.Linear(16, num_classes)

    def forward(self, x):
        return self.fc(self.deep(self.stem(x)).mean((2, 3)))
"""


def _made() -> torch.nn.Module:
    # Another seed than one's own code is built with: the file's weights are none that it gives by itself.
    torch.manual_seed(7)
    found: dict[str, Any] = {}
    exec(NET, found)
    made: torch.nn.Module = found["Net"]()
    return made


@pytest.fixture
def own(app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_python: None) -> AppTest:
    """A file of that network under DataParallel in hand, on a server of this machine alone."""
    monkeypatch.setenv("INSPECTOR_ROOT", str(tmp_path / "root"))
    (tmp_path / "root").mkdir()
    monkeypatch.setattr(own_code, "_headers", lambda: {"Host": "localhost:8501"})
    # What needs a worker of its own runs here: the workers have tests of their own.
    monkeypatch.setattr(Client, "runs_own_code", True)
    _take(app, _made(), tmp_path)
    return app


def _take(app: AppTest, model: torch.nn.Module, folder: Path) -> None:
    torch.save({f"module.{n}": t for n, t in model.state_dict().items()}, folder / "net.pth")
    stored = uploads.the_store().put_bytes((folder / "net.pth").read_bytes(), name="net.pth", owner="me")
    app.session_state["hand"] = Hand(sha256=stored.sha256, name="net.pth")


def _page(app: AppTest, name: str) -> AppTest:
    return app.switch_page(f"pages/{name}.py").run()


def _paste(app: AppTest, text: str) -> None:
    next(box for box in app.radio if box.label == "Your code").set_value("pasted").run()
    app.text_area[0].set_value(text).run()


def _says(app: AppTest) -> str:
    shown = [*app.error, *app.warning, *app.success, *app.caption]
    lines = [str(one.value) for one in shown] + [str(html.proto.body) for html in app.get("html")]
    return "\n".join(line for line in lines if not line.startswith("<style")).replace("\\", "")


def _labels(app: AppTest) -> set[str]:
    return {tab.label for tab in app.tabs}


def test_pasted_code_runs_once_agreed_to_and_the_file_s_weights_are_in_it(own: AppTest) -> None:
    _page(own.run(), "architecture")
    assert "Nothing of it runs before you say so" in _says(own)
    _paste(own, NET)
    assert "Run this code?" in _says(own) and "Drawing" not in _labels(own)
    assert own.selectbox(key=_key(own, "maker")).value == "Net"
    own.button(key="code-run").click().run()
    assert not own.exception and not own.error
    assert {"Drawing", "Table", "Memory", "Time", "Run it"} <= _labels(own)
    assert 'fit this code: all 16 tensors of the network come from the file (drop the segment "module")' in _says(own)


def _key(app: AppTest, part: str) -> str:
    return next(str(box.key) for box in app.selectbox if f"-{part}-" in str(box.key))


def _agree(app: AppTest, text: str = NET, page: str = "architecture") -> None:
    _page(app.run(), page)
    _paste(app, text)
    app.button(key="code-run").click().run()
    assert not app.exception


def test_the_run_has_the_file_s_values_and_says_whose_they_are(own: AppTest) -> None:
    _agree(own)
    own.session_state["architecture-own"] = "Run it"
    own.run()
    table = own.dataframe[0].value
    torch.manual_seed(0)
    model = _made().eval()
    given = torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = model.deep(model.stem(given))
    row = table[table["Module"] == "deep"].iloc[0]
    assert row["Max"] == pytest.approx(float(expected.max()), rel=1e-4)
    assert "With the file's weights, loaded strictly: all 16 tensors" in _says(own)
    next(box for box in own.radio if box.label == "Weights").set_value("those that the code gives it").run()
    assert "nothing of the file is in it" in _says(own)
    assert own.dataframe[0].value[table["Module"] == "deep"].iloc[0]["Max"] != row["Max"]


def test_a_class_count_follows_the_file_and_it_is_said(own: AppTest) -> None:
    _agree(own, NET.replace("num_classes=4", "num_classes=7"))
    assert not own.warning and "all 16 tensors" in own.success[0].value
    (said,) = [line for line in _says(own).splitlines() if line.startswith("Built with")]
    assert said.replace("\\", "") == "Built with num_classes=4, as the file's shapes show."


def test_weights_that_do_not_fit_are_said_and_none_of_them_is_run(own: AppTest) -> None:
    _agree(own, NET.replace("Block(8, 16)", "Block(8, 17)").replace("nn.Linear(16", "nn.Linear(17"))
    assert "do not fit this code, so none of them is in it" in own.warning[-1].value
    assert "16x8x3x3 in the file, 17x8x3x3 in the target" in own.warning[-1].value
    own.session_state["architecture-own"] = "Run it"
    own.run()
    assert "nothing of the file is in it" in _says(own)
    assert not any(box.label == "Weights" for box in own.radio)
    _page(own, "explain")
    assert not own.exception and "Nobody knows this network by name" in _says(own)


def test_heat_maps_of_a_network_that_nobody_knows(own: AppTest) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (64, 80, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    own.session_state["picture"] = Picture(name="noise.png", data=buffer.getvalue())
    _agree(own, page="explain")
    assert not own.error
    digest = own.session_state["hand"].sha256
    for name, value in (("resize", 64), ("crop", 64)):
        own.number_input(key=f"{name}-{digest}").set_value(value)
    own.run()
    assert not own.exception and not own.error
    figures = {html for html in (str(h.proto.body) for h in own.get("html")) if "highest of it" in html}
    model = _made().eval()
    left = (80 - 64) // 2
    batch = torch.from_numpy(pixels[:, left : left + 64].astype(np.float32) / 255).permute(2, 0, 1)[None]
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    deep = model.deep(model.stem((batch - mean[:, None, None]) / std[:, None, None])).detach().requires_grad_()
    logits = model.fc(deep.mean((2, 3)))[0]
    asked = next(box.value for box in own.selectbox if box.label == "Class")
    gradient = torch.autograd.grad(logits[asked], deep)[0]
    made = (deep * gradient.mean((2, 3), keepdim=True)).sum(1).detach()
    (row,) = figures
    assert f">{made.min():.3g}<" in row and f">{made.max():.3g}<" in row
    (command,) = [code.value for code in own.code if "inspector explain" in code.value]
    assert "--target code:pasted_" in command and "Save what you pasted" in _says(own)


def test_what_was_agreed_to_is_not_asked_again_on_another_page_but_another_byte_is(own: AppTest) -> None:
    """That the text itself stands there is seen in a browser (tests/e2e): the driver of these tests keeps no boxes."""
    _agree(own)
    _page(own, "explain")
    _paste(own, NET)
    assert "Run this code?" not in _says(own) and "all 16 tensors" in _says(own)
    own.text_area[0].set_value(NET + "# another byte").run()
    assert "Run this code?" in _says(own) and "all 16 tensors" not in _says(own)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("class Net(:\n", "This is no Python: invalid syntax in line 1"),
        ("x = 3\n", "There is no class and no function in it"),
        (NET.replace("Block(3, 8)", "Black(3, 8)"), "name 'Black' is not defined"),
        (NET.replace("mean((2, 3))", "mean((2, 9))"), "It fails in"),
    ],
)
def test_an_error_of_one_s_own_code_stands_once(own: AppTest, text: str, says: str) -> None:
    _page(own.run(), "architecture")
    _paste(own, text)
    if any(one.key == "code-run" for one in own.button):
        own.button(key="code-run").click().run()
    assert not own.exception
    assert sum(says in str(one.value).replace("\\", "") for one in own.error) == 1, _says(own)
    assert len(own.error) == 1


def test_of_several_that_could_make_it_the_visitor_chooses(own: AppTest) -> None:
    _page(own.run(), "architecture")
    _paste(own, NET + "\ndef train(epochs):\n    pass\n")
    assert "Several of them could make it" in _says(own)
    assert not any(one.key == "code-run" for one in own.button)
    own.selectbox(key=_key(own, "maker")).set_value("Net").run()
    assert "Run this code?" in _says(own)


def test_the_example_of_an_input_is_one_of_this_file(own: AppTest, tmp_path: Path) -> None:
    text = """
from torch import nn

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.reads = nn.LSTM(37, 24, batch_first=True)
        self.says = nn.Linear(24, 5)

    def forward(self, x):
        return self.says(self.reads(x)[0][:, -1])
"""
    found: dict[str, Any] = {}
    exec(text, found)
    _take(own, found["Reader"](), tmp_path)
    _agree(own, text)
    (box,) = [box for box in own.text_input if box.label == "Input without the batch"]
    assert box.placeholder == "20x37"


def test_on_a_server_of_others_no_page_offers_to_run_code(own: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    _agree(own)
    monkeypatch.setattr(own_code, "_headers", lambda: {"Host": "localhost:8501", "Via": "1.1 proxy"})
    for page in ("architecture", "explain"):
        _page(own, page)
        assert not own.exception
        assert not any(box.label in ("The network's code", "Code key") for box in [*own.text_area, *own.text_input])
        assert "`python -m inspector app` on your own machine" in _says(own)


def test_without_workers_the_file_s_weights_stay_out_of_one_s_own_code(
    own: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Client, "runs_own_code", False)
    _agree(own)
    assert not own.error and "Drawing" in _labels(own)  # What needs no weights has a process of its own.
    own.session_state["architecture-own"] = "Run it"
    own.run()
    (error,) = own.error
    assert "this server has none" in error.value and "INSPECTOR" in error.value
    next(box for box in own.radio if box.label == "Weights").set_value("those that the code gives it").run()
    assert not own.error and "nothing of the file is in it" in _says(own)
    _page(own, "explain")
    _paste(own, NET)
    assert "this server has none" in own.error[0].value


CIFAR = """
import torchvision
from torch import nn

def build(num_classes=3):
    made = torchvision.models.resnet18(num_classes=num_classes)
    made.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    made.maxpool = nn.Identity()
    return made
"""


def _take_near(app: AppTest, folder: Path) -> None:
    found: dict[str, Any] = {}
    exec(CIFAR, found)
    _take(app, found["build"](), folder)


def test_what_is_only_near_a_known_network_has_not_its_costs_and_own_code_counts_it(
    own: AppTest, tmp_path: Path
) -> None:
    _take_near(own, tmp_path)
    _page(own.run(), "architecture")
    assert not own.exception and not own.error
    (why,) = [str(one.value).replace("\\", "") for one in own.info]
    assert "This file is not torchvision/resnet18?num_classes=3: its conv1.weight is 64x3x3x3, not 64x3x7x7." in why
    assert "MACs" not in _says(own) and not {"Drawing", "Table", "Memory", "Time", "Run it"} & _labels(own)
    # In view for whoever comes for it: before what names and shapes tell.
    assert [one.value for one in own.header][:2] == ["Your own code for it", "From names and shapes"]
    _paste(own, CIFAR)
    own.button(key="code-run").click().run()
    assert not own.exception and not own.error and {"Drawing", "Table", "Run it"} <= _labels(own)
    assert "fit this code: all 122 tensors" in _says(own)
    # By hand: a ResNet-18 on 224 pixels without its first stride and its pooling has each stage at 16 times the places.
    stem = 224 * 224 * 64 * 27
    stages = [224 * 224 * 4 * 64 * 64 * 9]
    for width, side in ((128, 112), (256, 56), (512, 28)):
        stages.append(side * side * (width * width // 2 * (9 + 1) + 3 * width * width * 9))
    assert f"{stem + sum(stages) + 512 * 3:,}" in _says(own)


def test_overview_says_what_can_be_done_with_what_is_only_near_a_known_network(own: AppTest, tmp_path: Path) -> None:
    _take_near(own, tmp_path)
    _page(own.run(), "overview")
    assert not own.exception and not own.error
    assert "What can be done with it" in [one.value for one in own.header]
    assert any("This file is not torchvision" in str(one.value).replace("\\", "") for one in own.caption)


def test_explain_offers_own_code_for_what_is_only_near_a_known_network(own: AppTest, tmp_path: Path) -> None:
    _take_near(own, tmp_path)
    _page(own.run(), "explain")
    assert not own.exception and not own.error
    (why,) = [str(one.value).replace("\\", "") for one in own.info]
    assert "has another shape" in why
    _paste(own, CIFAR)
    own.button(key="code-run").click().run()
    assert not own.exception and not own.error
    assert "Your code with the file's weights, loaded strictly" in _says(own)


def test_where_own_code_is_not_offered_the_pages_say_how_it_is(
    own: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECTOR_CODE", "off")
    _take_near(own, tmp_path)
    for page in ("architecture", "explain"):
        _page(own.run(), page)
        assert not own.exception and not own.error
        told = _says(own) + "".join(str(one.value) for one in own.info)
        assert told.count("`python -m inspector app` without INSPECTOR_CODE=off") == 1


def test_a_server_without_a_folder_asks_for_the_key_of_its_terminal_and_then_for_the_code(
    own: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("INSPECTOR_ROOT")
    _page(own, "explain")
    assert not own.exception and not own.error
    (box,) = own.text_input
    assert box.label == "Code key" and not own.radio
    box.set_value("not the key").run()
    assert "not this server's code key" in own.error[0].value and not own.text_area
    (box,) = own.text_input
    box.set_value(code_key().secret).run()
    assert not own.exception and not own.error
    (way,) = [one for one in own.radio if one.label == "Your code"]
    assert way.options == ["pasted"]
    own.text_area[0].set_value(NET).run()
    own.button(key="code-run").click().run()
    assert not own.exception and not own.error
    assert "Your code with the file's weights, loaded strictly" in _says(own)
    # The next page of the same visit does not ask again.
    _page(own, "architecture")
    assert not own.exception and not any(box.label == "Code key" for box in own.text_input)


def test_wrappers_are_offered_to_be_taken_off_only_where_some_lie_around_the_weights(
    own: AppTest, tmp_path: Path
) -> None:
    def offered() -> list[str]:
        _page(own, "overview")
        assert not own.exception and not own.error
        links = [str(one.proto.label) for one in own.get("page_link")]
        return [label for label in links if label.startswith(("Take its", "Run it", "Compare with"))]

    rest = ["Run it with your own code", "Compare with your model's keys or another file"]
    assert offered() == ["Take its wrappers off", *rest]
    torch.save(_made().state_dict(), tmp_path / "bare.pth")
    stored = uploads.the_store().put_bytes((tmp_path / "bare.pth").read_bytes(), name="bare.pth", owner="me")
    own.session_state["hand"] = Hand(sha256=stored.sha256, name="bare.pth")
    assert offered() == rest


def _take_onnx(app: AppTest, weights: dict[str, torch.Tensor], folder: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    held = [onnx.numpy_helper.from_array(tensor.numpy(), name) for name, tensor in weights.items()]
    ends = [helper.make_tensor_value_info(name, kind, ["batch", 3]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "net", ends[:1], ends[1:], held)
    (folder / "net.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    stored = uploads.the_store().put_bytes((folder / "net.onnx").read_bytes(), name="net.onnx", owner="me")
    app.session_state["hand"] = Hand(sha256=stored.sha256, name="net.onnx")


@pytest.mark.parametrize("page", ["explain", "architecture", "repair"])
def test_an_onnx_model_is_told_what_it_is_and_asked_for_no_code_to_run(own: AppTest, tmp_path: Path, page: str) -> None:
    """What an exporter folded and renamed fits nobody's code; the box for it stood there all the same."""
    _take_onnx(own, {"onnx::Conv_12": torch.ones(3, 2)}, tmp_path)
    _page(own.run(), page)
    assert not own.exception and not own.error
    says = _says(own) + "".join(one.value.replace("\\", "") for one in own.info)
    assert "An ONNX model is a program with its weights, and not run here" in says
    if page != "repair":
        assert "This is an ONNX model: a graph of 1 operator from x (float32 [batch, 3])" in says
        assert not any(box.label == "Your code" for box in own.radio) and "code that builds" not in says
    links = [link.proto.label for link in own.get("page_link")]
    assert "Hold it against the PyTorch file" in links and "Run it with your own code" not in links
    assert ("Its graph, drawn" in links) == (page != "architecture")


def test_an_onnx_model_with_a_known_network_s_tensors_says_whose_maps_are_drawn(own: AppTest, tmp_path: Path) -> None:
    import torchvision

    net = torchvision.models.get_model("squeezenet1_1", weights=None, num_classes=4)
    _take_onnx(own, net.state_dict(), tmp_path)
    _page(own.run(), "explain")
    assert not own.exception and not own.error
    (says,) = [one.value.replace("\\", "") for one in own.info if "ONNX" in one.value]
    assert says.startswith("The graph in this ONNX model is not run: the maps are of torchvision/squeezenet1_1")


def test_evaluation_of_a_network_that_nobody_knows_asks_for_its_code_and_goes_on(own: AppTest, tmp_path: Path) -> None:
    _page(own.run(), "evaluation")
    assert not own.exception and not own.error
    assert "With the code that builds it and the file's weights in it, its evaluation begins here." in _says(own)
    _agree(own, page="evaluation")
    assert not own.error and "Your code with the file's weights, loaded strictly" in _says(own)
    packed = write_labelled(tmp_path / "shapes.zip", each=2).read_bytes()
    digest = uploads.the_store().put_bytes(packed, name="shapes.zip", owner="me").sha256
    own.session_state["evaluation-data"] = Held(name="shapes.zip", sha256=digest)
    own.run()
    next(button for button in own.button if "Evaluate · 8 pictures" in button.label).click().run()
    finish(own)
    assert not own.exception and not own.error
    assert "of 8 pictures" in " ".join(str(html.proto.body) for html in own.get("html"))
