"""Sizes that stand in another place than the code takes them: indices, axes of clips, states, tables, views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from inspector.architectures.user_code import parse_factory
from inspector.doctor.own_code import line_that_sets, with_source
from inspector.doctor.report import Diagnosis, Modes, Sureness, Trace
from inspector.doctor.run import Wish, input_numel
from inspector.doctor.trace import trace_model
from inspector.render.trace_text import modes_sentence
from tests.doctor.made_modules import Net, forward_written


def diagnosed(model: nn.Module, *args: Any) -> Diagnosis:
    found = trace_model(model, args, label="net", modes=False).diagnosis
    assert found is not None
    return found


INDEX = torch.tensor([0, 2, 1, 0])


@pytest.mark.parametrize(
    ("expression", "says", "code"),
    [
        ("torch.zeros(5, 3).scatter_add(0, m.at, x)", "It has 1 dimension and needs 2", "m.at"),
        ("torch.zeros(5, 3).scatter_(0, m.at, x)", "It has 1 dimension and needs 2", "m.at"),
        ("x.gather(1, m.at)", "It has 1 dimension and needs 2", ".unsqueeze(1)"),
        ("x.gather(0, torch.zeros(1, 9, dtype=torch.int64))", "In dimension 1 the index has 9", ""),
        ("torch.zeros(5, 3).index_add(0, m.at[:2], x)", "one index for each entry of dimension 0", ""),
        ("x.index_select(0, m.at[None])", "one index for each entry of dimension 0", ".flatten()"),
        ("x[m.at[:3], m.at[:2]]", "they do not fit each other", ""),
        ("x[torch.ones(3, 4, dtype=torch.bool)]", "by a mask of 3x4", "x[mask.t()]"),
    ],
)
def test_an_index_of_another_shape(tmp_path: Path, expression: str, says: str, code: str) -> None:
    model = Net(forward_written(tmp_path, expression))
    model.register_buffer("at", INDEX)
    said = diagnosed(model, torch.rand(4, 3))
    assert said.cause == "index-shape" and says in said.says and code.removeprefix("m.at") in said.code


def test_the_line_for_scatter_runs() -> None:
    model = Net(lambda m, x, at: torch.zeros(5, 3).scatter_add(0, at, x))
    said = diagnosed(model, torch.rand(4, 3), INDEX)
    names: dict[str, Any] = {"index": INDEX, "at": INDEX}
    exec(said.code, names)
    index = names["at"] if names["at"] is not INDEX else names["index"]
    x = torch.rand(4, 3)
    assert torch.equal(torch.zeros(5, 3).scatter_add(0, index, x), torch.zeros(5, 3).index_add(0, INDEX, x))


def test_a_pair_that_lies_across_is_transposed(tmp_path: Path) -> None:
    class Graph(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            src, dst = edge_index
            return x[src] + x[dst]

    said = diagnosed(Graph(), torch.rand(6, 3), torch.zeros(9, 2, dtype=torch.int64))
    assert said.cause == "unpacking" and said.code == "edge_index = edge_index.t()"
    assert said.tried == ("edge_index.transpose(0, 1): runs through",)
    plain = diagnosed(Graph(), torch.rand(6, 3), torch.zeros(9, 3, dtype=torch.int64))
    assert plain.cause == "unpacking" and plain.code == ""


def test_channels_that_a_view_splits_otherwise(tmp_path: Path) -> None:
    def head(expression: str) -> Diagnosis:
        return diagnosed(Net(forward_written(tmp_path, expression), conv=nn.Conv2d(4, 72, 1)), torch.rand(1, 4, 6, 6))

    said = head("m.conv(x).view(x.shape[0], 3, 25, 6, 6)")
    assert "3 x 25 = 75 channels are wanted, conv gives 72 = 3 x 24" in said.says and "-1" not in said.fix
    flat = diagnosed(Net(lambda m, x: m.fc(x).view(1, 4, 7, 7), fc=nn.Linear(9, 256)), torch.rand(1, 9))
    assert "4 x 7 x 7 = 196 values are wanted, fc gives 256 = 4 x 8 x 8" in flat.says


@pytest.mark.parametrize(
    ("shape", "code", "cause"),
    [
        ((2, 8, 3, 9, 9), "x = x.permute(0, 2, 1, 3, 4)", "channels-elsewhere"),
        ((2, 8, 9, 9, 3), "x = x.permute(0, 4, 1, 2, 3)", "channels-last"),
        ((8, 9, 9, 3), "x = x.permute(3, 0, 1, 2).unsqueeze(0)", "channels-last"),
    ],
)
def test_the_channels_of_a_clip_in_another_dimension(shape: tuple[int, ...], code: str, cause: str) -> None:
    model = nn.Sequential(nn.Conv3d(3, 4, 3, padding=1), nn.BatchNorm3d(4))
    said = diagnosed(model, torch.rand(shape))
    assert (said.cause, said.code) == (cause, code) and said.tried
    names: dict[str, Any] = {"x": torch.rand(shape)}
    exec(said.code, names)
    model.eval()(names["x"])


def test_a_state_whose_batch_is_the_other_dimension() -> None:
    class Stock(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(8, 6, 2)

        def forward(self, x: Tensor) -> Tensor:
            state = torch.zeros(2, x.size(0), 6)
            return self.lstm(x, (state, state))[0]  # type: ignore[no-any-return]

    model = Stock()
    said = diagnosed(model, torch.rand(4, 5, 8))
    assert said.cause == "recurrent-state" and "without batch_first=True" in said.says
    assert said.code == "nn.LSTM(8, 6, 2, batch_first=True)" and said.tried == ("batch_first=True: runs through",)
    assert model.lstm.batch_first is False
    # A state that fits neither way is another matter.
    other = diagnosed(Net(lambda m, x: m.g(x, torch.zeros(1, 7, 6)), g=nn.GRU(8, 6)), torch.rand(4, 5, 8))
    assert "has to be 1x5x6 and is 1x7x6" in other.says


def test_a_class_token_without_a_row_in_the_table() -> None:
    def forward(net: Any, x: Tensor) -> Tensor:
        return torch.cat([net.cls.expand(x.shape[0], -1, -1), x], 1) + net.pos  # type: ignore[no-any-return]

    cls, pos = nn.Parameter(torch.zeros(1, 1, 4)), nn.Parameter(torch.zeros(1, 9, 4))
    said = diagnosed(Net(forward, cls=cls, pos=pos), torch.rand(2, 9, 4))
    assert said.cause == "position-table" and "a class token (cls) before the 9" in said.says
    assert said.code == "self.pos = nn.Parameter(torch.zeros(1, 10, 4))"
    longer = diagnosed(Net(lambda m, x: x + m.pos, pos=pos), torch.rand(2, 10, 4))
    assert longer.cause == "position-table" and "token" not in longer.says


def test_a_head_of_ones_own_is_made_anew_before_pictures_are_resized() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.fc = nn.Conv2d(1, 4, 3), nn.Linear(4 * 14 * 14, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(self.conv(x).flatten(1))  # type: ignore[no-any-return]

    said = diagnosed(Own(), torch.rand(1, 1, 12, 12))
    assert said.fix.startswith("Make the layer for 400 features") and said.code == "self.fc = nn.Linear(400, 2)"
    assert said.tried == ("a picture of 16x16: runs through",) and said.sureness is Sureness.CERTAIN


SOURCE = """
def build():
    model = models.resnet18()
    other.head = nn.Linear(3, 3)
    model.fc = nn.Sequential(nn.Linear(7, 2))
    model.layer1[0].conv1 = nn.Conv2d(3, 3, 3)
    return model
"""


@pytest.mark.parametrize(("path", "line"), [("fc.0", 5), ("fc", 5), ("layer1.0.conv1", 6), ("layer1.0", 0), ("f", 0)])
def test_the_line_where_a_layer_of_a_packages_network_was_set(path: str, line: int) -> None:
    found = line_that_sets(SOURCE, "net.py", path)
    assert (found.line if found is not None else 0) == line


def test_a_failure_in_a_packages_forward_shows_ones_own_line(tmp_path: Path) -> None:
    from torchvision import models

    text = SOURCE.replace("    other.head = nn.Linear(3, 3)\n", "")
    (tmp_path / "net.py").write_text(f"from torch import nn\nfrom torchvision import models\n{text}")
    model = models.resnet18(weights=None)
    model.fc = nn.Sequential(nn.Linear(7, 2))
    trace = trace_model(model, (torch.rand(1, 3, 32, 32),), label="net", modes=False)
    assert trace.failure is not None and trace.failure.line is not None
    assert trace.failure.line.file.startswith("torchvision/")
    assert trace.diagnosis is not None and trace.diagnosis.code == "model.fc[0] = nn.Linear(512, 2)"
    shown = with_source(trace, parse_factory("net.py:build"), tmp_path).failure
    assert shown is not None and shown.line is not None and (shown.line.file, shown.line.line) == ("net.py", 6)


def test_one_module_behaves_and_two_behave() -> None:
    def said(*modules: tuple[str, int]) -> str:
        modes = Modes(modules=modules, difference=0.1, relative=0.1)
        return modes_sentence(Trace(target="", inputs=(), input_from="", training=False, calls=(), modes=modes))

    assert said(("VAE", 1)).startswith("1 VAE behaves differently") and "2 VAE behave d" in said(("VAE", 2))
    assert "1 A, 1 B behave d" in said(("A", 1), ("B", 1))


def test_the_batch_counts_in_the_size_of_an_input() -> None:
    one, four = torch.zeros(1, 3, 8, 8), torch.zeros(4, 3, 8, 8)
    assert input_numel(None, Wish(tensors={"x": one}, batch=4)) == four.numel()
    # What is a batch already is not repeated.
    assert input_numel(None, Wish(tensors={"x": four}, batch=2)) == four.numel()
