"""Networks that cannot be built, and how one's own code is named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from inspector.architectures.code_runner import one_model
from inspector.architectures.source_names import offered_names
from inspector.architectures.user_code import parse_factory
from inspector.cli.options import refuse_unnamed_code
from inspector.doctor.building import not_built
from inspector.doctor.report import Trace
from inspector.errors import UsageError

_NET = (
    "from torch import nn\nclass Block(nn.Module):\n    pass\nclass Net(nn.Module):\n    def __init__(self, n):\n"
    "        self.fc = nn.Linear(n, 2)\n        self.block = Block()\ndef build():\n    return Net(3)\n"
    "def train(model):\n    return model\nnet = build()\n"
)


def _built(folder: Path, kind: str, says: str, line: int) -> Trace:
    (folder / "net.py").write_text(_NET)
    answer = {"kind": kind, "says": says, "file": "net.py", "line": line, "text": "self.fc = nn.Linear(n, 2)"}
    return not_built(answer, parse_factory("code:net.py:build"), folder, training=False)


def test_what_is_raised_before_there_is_a_model_is_an_answer(tmp_path: Path) -> None:
    trace = _built(tmp_path, "AttributeError", "cannot assign module before Module.__init__() call", 6)
    assert trace.diagnosis is not None and trace.failure is not None and trace.failure.line is not None
    assert trace.diagnosis.cause == "no-super-init" and trace.diagnosis.code == "super().__init__()"
    assert trace.diagnosis.change is not None and trace.diagnosis.change.line == 5
    assert trace.failure.line.line == 6 and trace.findings[0].id == "forward-fails"


@pytest.mark.parametrize(
    ("kind", "says", "told"),
    [
        ("TypeError", "build() missing 1 required positional argument: 'n'", "takes 1 argument that nobody gave: n"),
        ("ValueError", "num_channels must be divisible by num_groups", "is refused: num_channels must be divisible"),
        ("AttributeError", "'Net' object has no attribute 'dim'", "Net has no dim in net.py, line 6"),
        ("KeyError", "'width'", "Building the network raises KeyError in net.py, line 6"),
    ],
)
def test_what_it_says(tmp_path: Path, kind: str, says: str, told: str) -> None:
    trace = _built(tmp_path, kind, says, 6)
    assert trace.diagnosis is not None and told in trace.diagnosis.says


def test_an_answer_that_is_none_is_no_crash() -> None:
    trace = not_built({"kind": 3, "line": -4, "file": None}, parse_factory("code:a.b:c"), Path(), training=True)
    assert trace.failure is not None and trace.failure.line is None


def test_the_names_that_are_worth_trying() -> None:
    assert offered_names(_NET)[:2] == ("build", "Net") and set(offered_names(_NET)) == {"build", "Net", "net", "Block"}


@pytest.mark.parametrize("prefix", ["", "code:"])
def test_source_without_a_name_is_told_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(_NET)
    with pytest.raises(UsageError, match="say which network") as raised:
        refuse_unnamed_code(f"{prefix}net.py")
    assert raised.value.hint.startswith("Write code:net.py:build or code:net.py:Net")


def test_what_names_a_network_or_no_file_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(_NET)
    for text in ("code:net.py:build", "other.py", "torchvision/resnet18", "weights.pt"):
        refuse_unnamed_code(text)


def test_the_network_beside_its_loss_and_optimizer() -> None:
    net, loss = nn.Linear(2, 2), nn.CrossEntropyLoss()
    holder = type("Holder", (), {})()
    holder.model, holder.steps = net, 3
    for made in ((net, loss, torch.optim.SGD(net.parameters(), 0.1)), {"net": net, "loss": loss}, [net, net], holder):
        assert one_model(made) is net
    assert one_model(loss) is loss and one_model((1, 2)) == (1, 2) and one_model(None) is None
    assert "several networks (Linear, ReLU" not in str(one_model((net, nn.ReLU())))
    assert "several networks (Linear, Bilinear)" in one_model((net, nn.Bilinear(2, 2, 2)))["error"]
    state = {"weight": torch.ones(2)}
    assert one_model(state) is state
