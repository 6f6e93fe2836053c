"""The four sentences about a file: one answer per topic, the same on every face, all findings once."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from inspector.checkpoint.layout import fraction_lost, nbytes_lost
from inspector.file_report.make import report_of
from inspector.findings import Severity
from inspector.inspection import HEADER_QUESTIONS, Question, inspect
from inspector.keys.plain_load import plain_load
from inspector.overview import Overview, Topic, summarise, summarise_reports
from inspector.params.count import count_parameters
from inspector.readers import open_checkpoint
from inspector.render.page_report import sections
from inspector.web.answers import figures_of

TOPICS = ["model", "loading", "code", "noticed"]


def answered(found: Overview) -> dict[Topic, tuple[str, Severity | None]]:
    return {answer.topic: (answer.says, answer.severity) for answer in found.answers}


@pytest.fixture
def resnet(tmp_path: Path) -> Path:
    import torchvision

    path = tmp_path / "r.pth"
    torch.save(torchvision.models.resnet18(num_classes=3).state_dict(), path)
    return path


def test_a_known_network_is_named_and_loads(resnet: Path) -> None:
    found = answered(summarise(open_checkpoint(resnet)))
    assert [topic.value for topic in found] == TOPICS
    assert "resnet18" in found[Topic.MODEL][0]
    assert found[Topic.LOADING][1] is Severity.INFO
    assert found[Topic.CODE][1] is Severity.INFO


def test_what_is_only_near_a_known_network_has_no_tick(tmp_path: Path) -> None:
    import torchvision

    near = torchvision.models.resnet18(num_classes=3)
    near.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    torch.save(near.state_dict(), tmp_path / "n.pth")
    torch.save(torchvision.models.resnet18(num_classes=3).state_dict(), tmp_path / "r.pth")
    says, severity = answered(summarise(open_checkpoint(tmp_path / "n.pth")))[Topic.MODEL]
    assert says.startswith("This is near torchvision's resnet18")
    # What it is and what differs; blocks and ends stand behind `identify`.
    assert "it differs: 3x3 convolution at the beginning instead of one of 7x7" in says
    assert "Blocks:" not in says and "20 convolutions" not in says
    assert severity is Severity.NOTICE
    assert answered(summarise(open_checkpoint(tmp_path / "r.pth")))[Topic.MODEL][1] is Severity.INFO


def test_an_unknown_network_is_not_checked(tmp_path: Path) -> None:
    torch.save({"a.weight": torch.ones(3, 3), "b.weight": torch.ones(2)}, tmp_path / "u.pth")
    says, severity = answered(summarise(open_checkpoint(tmp_path / "u.pth")))[Topic.LOADING]
    assert says.startswith("Not checked")
    assert severity is None


def test_an_adapter_is_not_asked_for_an_architecture(tmp_path: Path) -> None:
    pair = {"A": torch.ones(1, 3), "B": torch.ones(2, 1)}
    torch.save({f"base_model.model.fc.lora_{k}.weight": v for k, v in pair.items()}, tmp_path / "adapter_model.bin")
    says, severity = answered(summarise(open_checkpoint(tmp_path / "adapter_model.bin")))[Topic.LOADING]
    assert "merged into it" in says and severity is Severity.NOTICE


def test_a_file_without_a_state_dict_is_not_said_to_load(tmp_path: Path) -> None:
    torch.save(torch.ones(3), tmp_path / "t.pt")
    found = answered(summarise(open_checkpoint(tmp_path / "t.pt")))
    says, severity = found[Topic.LOADING]
    assert says.endswith("ends with \"Expected state_dict to be dict-like, got <class 'torch.Tensor'>\".")
    assert severity is Severity.WARNING
    assert found[Topic.MODEL][1] is Severity.NOTICE


def test_findings_of_reader_recognition_and_numbers_stand_once_worst_first(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    with torch.no_grad():
        net[0].weight[0, 0] = float("nan")
    path = tmp_path / "n.pth"
    torch.save(net.state_dict(), path)
    checkpoint = open_checkpoint(path)
    bare, measured = (
        summarise_reports(inspect(checkpoint, questions))
        for questions in (HEADER_QUESTIONS, (*HEADER_QUESTIONS, Question.HEALTH))
    )
    assert [f.id for f in bare.findings] == []
    assert [f.id for f in measured.findings] == ["non-finite"]
    ranks = [f.severity.rank for f in summarise(open_checkpoint(resaved(tmp_path))).findings]
    assert ranks == sorted(ranks, reverse=True)


def resaved(tmp_path: Path) -> Path:
    """A file with several findings of different weight: a slice of a large tensor, tied names, on a GPU's key."""
    large = torch.zeros(100_000)
    tied = torch.ones(8, 8)
    path = tmp_path / "s.pth"
    torch.save({"a": large[:3], "b.weight": tied, "c.weight": tied, "extra": print}, path)
    return path


def test_open_prints_the_sentences_of_the_overview_and_json_holds_them(tmp_path: Path) -> None:
    save_file({"a.weight": torch.ones(3, 3)}, tmp_path / "a.safetensors")
    expected = summarise(open_checkpoint(tmp_path / "a.safetensors"))
    command = [sys.executable, "-m", "inspector", "open", str(tmp_path / "a.safetensors")]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert all(answer.says in " ".join(text.split()) for answer in expected.answers)
    report = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout)
    assert [(a["topic"], a["says"]) for a in report["overview"]["answers"]] == [
        (a.topic.value, a.says) for a in expected.answers
    ]
    assert report["format"] == "safetensors"  # what was there before the overview stays where it was


def loading(value: object, tmp_path: Path, cut: int = 0) -> tuple[str, Severity | None]:
    path = tmp_path / "l.pth"
    torch.save(value, path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size - cut])
    return answered(overview_of_path(path))[Topic.LOADING]


def overview_of_path(path: Path) -> Overview:
    return summarise(open_checkpoint(path))


def test_nested_weights_are_no_green_tick(resnet: Path, tmp_path: Path) -> None:
    says, severity = loading({"model": torch.load(resnet)}, tmp_path)
    assert says.startswith("Fails as it is: the weights lie under ['model'], not at the top.")
    assert "no name or shape needs repair" not in says
    assert severity is Severity.WARNING


def test_a_whole_module_is_refused_by_todays_torch_load(tmp_path: Path) -> None:
    import torchvision

    says, severity = loading(torchvision.models.squeezenet1_1(num_classes=3), tmp_path)
    assert says.startswith('Fails as it is: torch.load says "Unsupported global')
    assert severity is Severity.WARNING


def test_half_a_file_counts_its_whole_weights(resnet: Path, tmp_path: Path) -> None:
    says, severity = loading(torch.load(resnet), tmp_path, cut=4_000_000)
    assert "tensors are whole" in says
    assert "Lossless" not in says
    assert severity is Severity.ERROR


def test_a_cut_file_is_no_green_tick_and_promises_nothing(resnet: Path, tmp_path: Path) -> None:
    wrapped = {f"module.{name}": tensor for name, tensor in torch.load(resnet).items()}
    path = tmp_path / "half.pth"
    torch.save(wrapped, path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    checkpoint = open_checkpoint(path)
    assert checkpoint.weights is not None
    tensors = checkpoint.weights.tensors
    broken = sum(fraction_lost(tensor, checkpoint.storages) > 0 for tensor in tensors)
    answers = answered(summarise(checkpoint))
    says, severity = answers[Topic.MODEL]
    assert severity is Severity.ERROR
    assert says.endswith(f" {broken} of its {len(tensors)} tensors are not whole in the file.")
    says, severity = answers[Topic.LOADING]
    assert severity is Severity.ERROR and "Lossless" not in says
    assert says.endswith(
        f'By name and shape all {len(tensors)} tensors fit once "module." is dropped, '
        f"and {broken} of the file's tensors are not whole."
    )
    # Beside headers, what the file has of them is at most its own length.
    lost = nbytes_lost(tensors, checkpoint.storages)
    assert 0 <= sum(tensor.nbytes for tensor in tensors) - lost <= path.stat().st_size
    assert lost > path.stat().st_size // 2
    counts = count_parameters(checkpoint)
    whole = f"{counts.total.parameter_nbytes + counts.total.buffer_nbytes:,} bytes"
    (held,) = [one for one in figures_of(checkpoint, counts) if one.label == "weights and buffers"]
    assert " of " in held.says and held.exact.endswith(f" of {whole}")


def test_weights_saved_on_a_gpu_say_what_other_machines_need(resnet: Path) -> None:
    checkpoint = open_checkpoint(resnet)
    weights = checkpoint.weights
    assert weights is not None
    moved = tuple(replace(tensor, device="cuda:0") for tensor in weights.tensors)
    found = plain_load(checkpoint, replace(weights, tensors=moved))
    assert found.obstacles == ()
    assert found.note == 'on a machine without cuda:0 it needs map_location="cpu"'


def test_noticed_is_neutral_until_the_numbers_were_read(resnet: Path) -> None:
    checkpoint = open_checkpoint(resnet)
    says, severity = answered(summarise(checkpoint))[Topic.NOTICED]
    assert says.endswith("the numbers have not been read.")
    assert severity is None
    measured = summarise_reports(inspect(checkpoint, (*HEADER_QUESTIONS, Question.HEALTH)))
    # Nobody has trained it.
    assert answered(measured)[Topic.NOTICED] == ("No error, no warning, 1 note.", Severity.NOTICE)
    assert [f.id for f in measured.findings if f.severity is Severity.NOTICE] == ["fresh-weights"]


def test_what_the_numbers_say_is_counted_with_the_rest(tmp_path: Path) -> None:
    """An error, two warnings, and the note about the wrapper with whatever other notes there are."""
    torch.manual_seed(0)
    state = {f"module.{name}.weight": torch.randn(8, 8) / 3 for name in "abcd"}
    state["module.a.weight"][0, 0] = float("nan")
    state["module.b.weight"][:] = 0.05
    state["module.c.weight"][0, 0] = 5e3
    torch.save(state, tmp_path / "sick.pth")
    checkpoint = open_checkpoint(tmp_path / "sick.pth")
    inspection = inspect(checkpoint, (*HEADER_QUESTIONS, Question.HEALTH))
    assert inspection.health is not None
    found = summarise_reports(inspection)
    loud = [f.id for f in found.findings if f.severity.rank >= Severity.WARNING.rank]
    assert sorted(loud) == ["constant-weight", "large-weight", "non-finite"]
    notes = sum(f.severity is Severity.NOTICE for f in found.findings)
    assert notes >= 1 and {f.id for f in inspection.health.findings} <= {f.id for f in found.findings}
    says = f"1 error, 2 warnings, {notes} note{'s' if notes > 1 else ''}."
    assert answered(found)[Topic.NOTICED] == (says, Severity.ERROR)
    assert answered(summarise(checkpoint))[Topic.NOTICED][0].startswith("No error, no warning")


def test_loading_has_no_bare_tick_beside_numbers_that_are_broken(tmp_path: Path) -> None:
    import torchvision

    state = torchvision.models.resnet18(num_classes=3).state_dict()
    whole, sick = tmp_path / "whole.pth", tmp_path / "sick.pth"
    torch.save(state, whole)
    state["conv1.weight"][0, 0, 0, 0] = float("nan")
    state["bn1.running_var"][0] = -1.0
    torch.save(state, sick)
    fits = "All 122 tensors fit torchvision/resnet18?num_classes=3 as they are; no name or shape needs repair."
    asked = (*HEADER_QUESTIONS, Question.HEALTH)
    of = {path: answered(summarise_reports(inspect(open_checkpoint(path), asked))) for path in (whole, sick)}
    assert of[whole][Topic.LOADING] == (fits, Severity.INFO)
    says = f"{fits} A load does not look at numbers: 2 errors of its numbers are noticed."
    assert of[sick][Topic.LOADING] == (says, Severity.NOTICE)


@pytest.mark.parametrize(
    ("sets", "says"), [(1, ""), (2, "discriminator"), (3, "discriminator and 1 more set of weights")]
)
def test_other_sets_of_weights_are_said_not_to_have_been_examined(sets: int, says: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    keys = ("generator", "discriminator", "critic")[:sets]
    held = {key: {"a.weight": torch.randn(8, 8), "b.weight": torch.randn(8, 8).tanh()} for key in keys}
    torch.save({**held, "best_acc1": torch.tensor(0.5)}, tmp_path / "run.pth")
    checkpoint = open_checkpoint(tmp_path / "run.pth")
    inspection = inspect(checkpoint, (*HEADER_QUESTIONS, Question.HEALTH))
    text, severity = answered(summarise_reports(inspection))[Topic.NOTICED]
    left = f" so far; the numbers of {says} have not been examined by themselves" if says else ""
    assert text == f"No error, no warning{left}."
    assert severity is (None if says else Severity.INFO)


@pytest.mark.parametrize("trained", [True, False])
def test_a_file_that_is_mostly_optimizer_state_says_so_in_what_it_is(tmp_path: Path, trained: bool) -> None:
    model = nn.Linear(64, 64)
    optimizer = torch.optim.Adam(model.parameters()) if trained else torch.optim.SGD(model.parameters())
    model(torch.ones(1, 64)).sum().backward()
    optimizer.step()
    torch.save({"state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "run.pth")
    says = answered(summarise(open_checkpoint(tmp_path / "run.pth")))[Topic.MODEL][0]
    # Two moments of 64 x 64 + 64 float32 each, and two step counters.
    assert ("33.3 kB of 49.9 kB are optimizer state." in says) == trained, says
    assert ("optimizer" in says) == trained


def test_an_optimizers_state_alone_is_called_one(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    torch.save(optimizer.state_dict(), tmp_path / "o.pt")
    says, severity = answered(summarise(open_checkpoint(tmp_path / "o.pt")))[Topic.MODEL]
    assert says == "This is only an optimizer's state (6 tensors): no weights are in it."
    assert severity is Severity.NOTICE


def test_names_that_torch_refuses_are_not_said_to_be_its_own(tmp_path: Path) -> None:
    torch.save({"model": {"a.weight": torch.ones(2, 2)}, "args": argparse.Namespace(lr=1)}, tmp_path / "n.pth")
    says, _ = answered(summarise(open_checkpoint(tmp_path / "n.pth")))[Topic.CODE]
    assert says.endswith("all known, 1 of them not to torch's own loader. Nothing was executed.")


RUNS = b"cposix\nsystem\n(Vtrue\ntR."


@pytest.mark.parametrize(
    "before",
    [b"(" * 5_000_000, b"K\x010" * 12_000_000, b"\x8d" + (40_000_000).to_bytes(8, "little") + b"a" * 40_000_000 + b"0"],
    ids=["memory", "steps", "constant"],
)
def test_code_behind_a_limit_of_the_reader_gets_no_tick(before: bytes, tmp_path: Path) -> None:
    """pickle.load goes on where this reader stops, and runs what stands there."""
    (tmp_path / "hidden.pkl").write_bytes(b"\x80\x04" + before + RUNS)
    code = next(a for a in summarise(open_checkpoint(tmp_path / "hidden.pkl")).answers if a.topic is Topic.CODE)
    assert code.severity is Severity.ERROR
    assert "may name anything" in code.says and "at all" not in code.says


def test_code_behind_a_limit_in_an_archive_gets_no_tick(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "net.pth")
    with zipfile.ZipFile(tmp_path / "net.pth") as whole, zipfile.ZipFile(tmp_path / "hidden.pth", "w") as made:
        for name in whole.namelist():
            data = whole.read(name)
            made.writestr(name, data[:2] + b"K\x010" * 12_000_000 + RUNS if name.endswith("data.pkl") else data)
    code = next(a for a in summarise(open_checkpoint(tmp_path / "hidden.pth")).answers if a.topic is Topic.CODE)
    assert code.severity is Severity.ERROR and "may name anything" in code.says


def test_loading_begins_with_fails_where_a_key_is_too_many_or_missing(tmp_path: Path) -> None:
    import torchvision

    state = torchvision.models.shufflenet_v2_x0_5(weights=None, num_classes=4).state_dict()
    (cut := dict(state)).pop("fc.bias")
    for case in ({**state, "foo.weight": torch.zeros(2)}, cut):
        torch.save(case, tmp_path / "net.pth")
        loading = next(a for a in summarise(open_checkpoint(tmp_path / "net.pth")).answers if a.topic is Topic.LOADING)
        assert loading.says.startswith("Fails as it is")


def _pair(folder: Path) -> Path:
    path = folder / "gan.pt"
    generator = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 6))
    discriminator = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(4, 1))
    torch.save({"generator": generator.state_dict(), "discriminator": discriminator.state_dict(), "epoch": 3}, path)
    return path


def test_two_networks_in_one_file_are_a_question_and_not_the_first_of_them(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(_pair(tmp_path))
    says, severity = answered(summarise(checkpoint))[Topic.MODEL]
    assert says.startswith(
        '2 sets of weights lie in it: "generator" (6 tensors), "discriminator" (4 tensors). Say with'
    )
    assert 'Of "generator": ' in says and severity is Severity.WARNING
    other = next(s for s in checkpoint.state_dicts if s.label == "discriminator")
    says, severity = answered(summarise(checkpoint, state=other))[Topic.MODEL]
    assert "1 convolution" in says and says.endswith('this is "discriminator".') and severity is not Severity.WARNING
    assert "['discriminator']" in answered(summarise(checkpoint, state=other))[Topic.LOADING][0]


def test_an_average_a_loss_and_parts_of_one_network_are_no_second_network(tmp_path: Path) -> None:
    net = nn.Sequential(*(nn.Linear(4, 4) for _ in range(12))).state_dict()
    parts = {name: nn.Linear(4, 4).state_dict() for name in ("stem", "head")}
    for beside in ({"ema": net}, {"criterion": {"x.weight": torch.ones(3)}}, {"again": net}):
        torch.save({"model": net, **beside}, tmp_path / "m.pt")
        assert answered(summarise(open_checkpoint(tmp_path / "m.pt")))[Topic.MODEL][1] is not Severity.WARNING
    torch.save(parts, tmp_path / "parts.pt")
    assert answered(summarise(open_checkpoint(tmp_path / "parts.pt")))[Topic.MODEL][1] is not Severity.WARNING


def test_an_onnx_model_is_called_one_with_what_it_takes_and_gives(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weight = onnx.numpy_helper.from_array(torch.ones(3, 2).numpy(), "fc.weight")
    ends = [helper.make_tensor_value_info(name, kind, ["batch", size]) for name, size in (("x", 3), ("y", 2))]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "fc.weight"], ["y"])], "net", ends[:1], ends[1:], [weight]
    )
    (tmp_path / "net.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    says, _ = answered(summarise(open_checkpoint(tmp_path / "net.onnx")))[Topic.MODEL]
    way = "from x (float32 [batch, 3]) to y (float32 [batch, 2])"
    assert says.startswith(f"This is an ONNX model: a graph of 1 operator {way}, with its weights. ")
    torch.save({"fc.weight": torch.ones(3, 2)}, tmp_path / "net.pth")
    assert "ONNX" not in answered(summarise(open_checkpoint(tmp_path / "net.pth")))[Topic.MODEL][0]


@pytest.mark.parametrize("form", ["beside", "prefix"])
def test_an_averaged_copy_is_named_beside_the_weights(form: str, tmp_path: Path) -> None:
    """ "All fit" was said of a file half of which is a second copy, and not of which half."""
    import torchvision

    weights = torchvision.models.resnet18(num_classes=3).state_dict()
    twin = {name: tensor.clone() for name, tensor in weights.items()}
    file = {"model": weights, "model_ema": twin, "epoch": 3}
    if form == "prefix":
        file = {f"{first}.{name}": t for first in ("model", "model_ema") for name, t in weights.items()}
    torch.save(file, tmp_path / "e.pth")
    says, _ = answered(summarise(open_checkpoint(tmp_path / "e.pth")))[Topic.MODEL]
    where = "model_ema." if form == "prefix" else "model_ema"
    assert f'Averaged weights (EMA), a second copy, lie under "{where}" (122 tensors).' in says
    assert ('This is said of "model".' in says) is (form == "beside")
    for alone in ({"model": weights}, {"model_ema": twin}, weights):
        torch.save(alone, tmp_path / "w.pth")
        assert "Averaged" not in answered(summarise(open_checkpoint(tmp_path / "w.pth")))[Topic.MODEL][0]


def test_what_gguf_calls_itself_is_quoted(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    for word in ("llama", "my own"):
        writer = gguf.GGUFWriter(tmp_path / "w.gguf", word)
        writer.add_tensor("token_embd.weight", torch.ones(4, 8).numpy())
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        says, _ = answered(summarise(open_checkpoint(tmp_path / "w.gguf")))[Topic.MODEL]
        assert says.startswith(f'The file calls its architecture "{word}". ')


def test_element_types_beyond_three_are_counted(tmp_path: Path) -> None:
    types = [torch.float64, torch.float32, torch.float16, torch.int8, torch.uint8]
    torch.save({f"l{n}.weight": torch.ones(8, 8, dtype=one) for n, one in enumerate(types)}, tmp_path / "t.pth")
    inspection = inspect(open_checkpoint(tmp_path / "t.pth"), HEADER_QUESTIONS)
    [figure] = [one for one in figures_of(inspection.checkpoint, inspection.parameters) if "type" in one.label]
    assert figure.label == "element types" and figure.says.endswith(" and 2 more") and figure.says.count(",") == 2
    assert all(str(one).removeprefix("torch.") in figure.exact for one in types)
    assert f"<b>{figure.says}</b>" in sections.numbers(report_of(inspection))
