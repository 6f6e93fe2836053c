"""The page's questions and answers, without a browser."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inspector.browser import others
from inspector.browser.pieces import START_APP, own_words
from inspector.browser.session import Session
from inspector.cli.main import run
from inspector.errors import MissingLibrary, UnknownArchitecture
from inspector.graph.boxes import drawn
from inspector.graph.sources import graph_of
from inspector.installed import install_line
from inspector.jobs.kinds import surveys
from inspector.jobs.subjects import FileRef
from inspector.params.count import count_parameters
from inspector.progress import silent
from inspector.readers import open_checkpoint
from inspector.render import files_words
from inspector.render.drawing_data import drawing_data
from inspector.render.unwrap_words import PREFIX_HELP, prefix_answer, prefix_question, salvage_label

SAMPLES = Path(__file__).resolve().parents[2] / "sample_models" / "files"
WRAPPED = str(SAMPLES / "shapes_dp.pth.tar")


@pytest.fixture(scope="module")
def session() -> Session:
    made = Session()
    _value(made, ask="open", path=WRAPPED)
    return made


def _ask(session: Session, **question: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(session.answer(json.dumps(question)))
    return answer


def _value(session: Session, **question: Any) -> Any:
    answer = _ask(session, **question)
    assert answer["ok"], answer
    return answer["value"]


@pytest.mark.parametrize("what", ["open", "diagnose"])
def test_json_is_the_command_lines(session: Session, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    run([what, WRAPPED, "--json"])
    assert _value(session, ask="json", what=what, path=WRAPPED) == capsys.readouterr().out


def test_a_repaired_file_is_the_command_lines(session: Session, tmp_path: Path) -> None:
    assert _value(session, ask="repair", path=WRAPPED)["ready"]
    there = tmp_path / "line.safetensors"
    assert run(["repair", WRAPPED, "--output", str(there)]) == 0
    made = _value(session, ask="write", path=WRAPPED, kind="repair", folder=str(tmp_path), writer="safetensors")
    assert Path(made["path"]).read_bytes() == there.read_bytes()
    assert made["sha256"] in made["html"]


def test_the_graph_in_a_file_is_drawn_as_in_the_app(session: Session) -> None:
    path = str(SAMPLES / "shapes_script.pt")
    assert _value(session, ask="open", path=path)["graph"] is True
    told = _value(session, ask="drawing", path=path)
    checkpoint = open_checkpoint(path)
    carried = graph_of(checkpoint)
    counts = count_parameters(checkpoint, checkpoint.weights)
    assert carried is not None
    columns = {"Parameters": {m.path: float(m.parameters) for m in counts.modules}}
    assert told["drawn"] == drawing_data(drawn(carried).box, columns)
    assert told["says"] == "From the TorchScript code in the file."


def test_a_chosen_box_tells_its_tensors_and_no_others(session: Session) -> None:
    path = str(SAMPLES / "shapes_script.pt")
    _value(session, ask="open", path=path)
    told = _value(session, ask="box", path=path, box="conv1.0")["html"]
    assert "conv1.0.weight" in told and "conv1.1.weight" not in told and "1 tensor in the file, 648 elements" in told
    assert "No tensor of the file" in _value(session, ask="box", path=path, box="maxpool")["html"]
    assert _ask(session, ask="box", path=path, box="<b>")["says"] == "The drawing has no such box."


def test_a_file_without_a_graph_has_no_drawing(session: Session) -> None:
    assert _value(session, ask="open", path=WRAPPED)["graph"] is False
    assert _value(session, ask="drawing", path=WRAPPED)["drawn"] == ""


def test_many_tensors_that_were_not_compared_lie_behind_a_click(session: Session) -> None:
    told = _value(session, ask="compare", path=WRAPPED, other=str(SAMPLES / "shapes_fp16.pth"))["html"]
    assert "<summary>282 tensors not compared</summary>" in told
    alone = _value(session, ask="compare", path=WRAPPED, other=WRAPPED)["html"]
    assert "not compared</summary>" not in alone


def test_names_from_a_file_are_no_markup(session: Session, tmp_path: Path) -> None:
    header = b'{"<img src=x onerror=alert(1)>":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    path = tmp_path / "<b>hostile.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    overview = _value(session, ask="open", path=str(path))
    views = [_value(session, ask=name, path=str(path)) for name in ("contents", "architecture", "repair")]
    html = "".join([overview["answers"], overview["about"], *(view["html"] for view in views)])
    assert "<img" not in html and "<b>hostile" not in html
    assert "&lt;img" in html


def test_what_cannot_be_read_is_an_answer_in_the_pages_words(session: Session, tmp_path: Path) -> None:
    answer = _ask(session, ask="open", path=str(SAMPLES / "picture.pth"))
    assert answer == {"ok": False, "says": "picture.pth is a PNG image, not a checkpoint.", "hint": answer["hint"]}
    assert _ask(session, ask="open", path=str(tmp_path / "gone.pth"))["ok"] is False
    assert "Drop it again" in _ask(session, ask="contents", path="/nowhere")["hint"]


@pytest.mark.parametrize("kind", ["convert", "unwrap"])
def test_what_is_whole_of_a_cut_file_is_the_command_lines(tmp_path: Path, kind: str) -> None:
    path, made = str(SAMPLES / "truncated.pth"), Session()
    _value(made, ask="open", path=path)
    given = _value(made, ask="choices", path=path)[kind]
    assert given["says"] == salvage_label(given["cut"])
    asked = {"ask": "write", "path": path, "kind": kind, "folder": str(tmp_path), "writer": "safetensors"}
    assert not _ask(made, **asked)["ok"]
    written = _value(made, **asked, salvage=True)
    assert run([kind, path, "--salvage", "--output", str(tmp_path / "line.safetensors")]) == 0
    assert Path(written["path"]).read_bytes() == (tmp_path / "line.safetensors").read_bytes()
    assert written["name"] == "truncated-partial.safetensors"


def test_a_prefix_comes_off_only_where_it_is_asked_for(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path, made = tmp_path / "own.pth", Session()
    torch.save({f"net.{n}.weight": torch.ones(2, 2) * n for n in range(3)}, path)
    _value(made, ask="open", path=str(path))
    given = _value(made, ask="choices", path=str(path))["unwrap"]
    assert given["prefixes"] == [["", prefix_answer("")], ["net", 'Drop "net."']] and given["cut"] == 0
    assert given["asks"] == prefix_question(("net",)) and given["help"] == PREFIX_HELP
    assert _value(made, ask="choices", path=str(path))["convert"]["prefixes"] == []
    for prefix, option in (("", []), ("net", ["--drop-prefix", "net"])):
        there = tmp_path / f"line{prefix}.safetensors"
        assert run(["unwrap", str(path), *option, "--output", str(there)]) == 0
        folder = tmp_path / f"page{prefix}"
        folder.mkdir()
        asked = {"ask": "write", "path": str(path), "kind": "unwrap", "folder": str(folder), "writer": "safetensors"}
        written = _value(made, **asked, prefix=prefix)
        assert Path(written["path"]).read_bytes() == there.read_bytes()


def _counted(memory: memoryview, dtype: str) -> list[float]:
    """By torch: what the page counts by typed arrays (site/page/numbers.mjs)."""
    torch = pytest.importorskip("torch")
    values = torch.frombuffer(bytearray(memory), dtype=getattr(torch, dtype)).double()
    finite, odd = values[values.isfinite()], (~values.isfinite()).nonzero()
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (float("nan"), float("nan"))
    nan, zero = int(values.isnan().sum()), int((values == 0).sum())
    return [nan, int(values.isinf().sum()), zero, low, high, int(odd[0]) if len(odd) else -1]


def test_the_numbers_are_judged_as_the_health_check_judges_them(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from inspector.health.examine import examine

    nan, inf = float("nan"), float("inf")
    state = {
        "conv.weight": torch.tensor([[1.0, nan], [0.0, -2.5]]),
        "conv.bias": torch.tensor([inf, 3.0]).half(),
        "mask": torch.full((4, 4), -inf).triu(1),
        "steps": torch.arange(3),
        "empty": torch.zeros(0, 2),
    }
    path = tmp_path / "odd.pth"
    torch.save(state, path)
    made = Session(count=_counted)
    _value(made, ask="open", path=str(path))
    told = _value(made, ask="numbers", path=str(path))
    assert told["counts"][:2] == [
        ["conv.weight", 4, 1, 0, 1, -2.5, 1.0, 1],
        ["conv.bias", 2, 0, 1, 0, 3.0, 3.0, 0],
    ]
    assert told["counts"][-1] == ["empty", 0, 0, 0, 0, None, None, None]
    assert "1 tensor not counted" in told["html"] and "steps" in told["html"]
    right = [one.says for one in examine(open_checkpoint(str(path))).findings if one.id == "non-finite"]
    assert len(right) == len(told["findings"]) == 2
    assert all(says.split(" among ")[0] in html["html"] for says, html in zip(right, told["findings"], strict=True))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_a_negative_variance_is_found_as_the_health_check_finds_it(dtype: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from inspector.health.examine import examine

    kind = getattr(torch, dtype)
    state: dict[str, Any] = {"conv.weight": torch.randn(4, 3, 3, 3)}
    for name, var in (("a", [1.0, -1, 2, -0.5]), ("b", [1.0, 1, 2, 3]), ("c", [1.0, -3]), ("d", [-1.0, float("nan")])):
        state |= {f"{name}.weight": torch.ones(len(var)), f"{name}.bias": torch.zeros(len(var))}
        state |= {
            f"{name}.running_mean": torch.ones(len(var)).to(kind),
            f"{name}.running_var": torch.tensor(var).to(kind),
        }
    # No batch norm: nothing is subtracted.
    state["e.running_var"] = torch.tensor([-2.0])
    path = str(tmp_path / "negative.pth")
    torch.save(state, path)
    made = Session(count=_counted)
    _value(made, ask="open", path=path)
    told = _value(made, ask="numbers", path=path)
    [right] = [one for one in examine(open_checkpoint(path)).findings if one.id == "norm-variance-negative"]
    assert right.says.startswith("3 of 6 channels of a.running_var, c.running_var have a negative running variance")
    [found] = [one for one in told["findings"] if "norm-variance-negative" in one["html"]]
    assert right.says in found["html"] and right.remedy in found["html"] and found["find"] == "a.running_var"
    # It is on the Overview from then on.
    assert any(right.says in one["html"] for one in told["overview"]["findings"])


def test_what_the_page_lacks_is_no_verdict_on_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lacks = MissingLibrary("This needs NumPy (sums), which a browser page does not have.", hint="The app does it.")

    def refused(*_: object, **__: object) -> None:
        raise lacks

    monkeypatch.setattr("inspector.keys.diagnose.diagnose", refused)
    made, path = Session(), str(SAMPLES / "shapes_fp16.pth")
    told = _value(made, ask="open", path=path)
    row = told["answers"].split('<div class="answer ')[1 + told["topics"].index("loading")]
    assert "Not tried here: This needs NumPy (sums)" in row and "Fails" not in row and "error" not in row
    # The form for another target stays, and nothing is written.
    shown = _value(made, ask="repair", path=path)
    assert "Not tried here: This needs NumPy (sums)" in shown["html"] and not shown["ready"]
    asked = {"ask": "write", "path": path, "kind": "repair", "folder": str(tmp_path), "writer": "safetensors"}
    assert _ask(made, **asked)["says"] == lacks.says
    monkeypatch.undo()
    assert _value(made, ask="repair", path=path)["ready"]


def test_nothing_is_written_by_what_was_found_for_another_target(tmp_path: Path) -> None:
    made = Session()
    _value(made, ask="open", path=WRAPPED)
    assert _value(made, ask="repair", path=WRAPPED)["ready"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inspector.browser.views.own_target", _no_target)
        assert not _value(made, ask="repair", path=WRAPPED)["ready"]
    asked = {"ask": "write", "path": WRAPPED, "kind": "repair", "folder": str(tmp_path), "writer": "safetensors"}
    assert _ask(made, **asked)["says"] == "Nothing was diagnosed yet."


def _no_target(*_: object) -> None:
    raise UnknownArchitecture("There is none.")


def test_a_table_says_how_long_all_its_tries_took(session: Session, tmp_path: Path) -> None:
    (tmp_path / "a.pth").write_bytes((SAMPLES / "truncated.pth").read_bytes())
    says = _value(session, ask="scan", folder=str(tmp_path), spent=8000)["says"]
    assert 8000 <= float(says.partition(" in ")[2].partition(" s;")[0]) < 8100


def test_advice_points_at_what_the_page_has() -> None:
    model = "model = Net()\nck = torch.load('a.pth')\nmodel.load_state_dict(ck, strict=False)\nmodel.eval()\n"
    html = others.explain_error(model, None)
    assert "The box &quot;Paste an error, or the code that loads&quot;" in html.replace('"', "&quot;")
    assert "box for code" not in html
    words = own_words("Fetch it again, or pass --salvage to write what is whole.")
    label = salvage_label(2)
    quoted = words.partition('"')[2].partition(" …")[0]
    assert quoted and label.startswith(quoted)


def test_an_archive_of_several_has_a_row_for_each_as_in_the_app(tmp_path: Path) -> None:
    """By what the app's Files page says of the same archive."""
    path = tmp_path / "several.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("shapes.safetensors", "hostile.pth"):
            archive.write(SAMPLES / name, f"runs/{name}")
        archive.writestr("notes.txt", "hello")
        archive.writestr("old/bomb.pkl", b"cos\nsystem\n(S'echo hi'\ntR.")
    made = Session()
    told = _value(made, ask="open", path=str(path))
    bench: Any = SimpleNamespace(progress=silent)
    archived = surveys.of_archive(bench, FileRef(sha256="", name=path.name, path=path))
    rows = files_words.rows_of(archived, path.name)
    assert told["archive"] == "several.zip" and told["says"] == files_words.answer(rows)
    assert [(row["shown"], row["what"]) for row in told["rows"]] == [
        (row.path, files_words.what_it_is(row.row)) for row in rows
    ]
    worst = {row["shown"]: row["says"] for row in told["rows"] if row["word"] == "Error"}
    assert set(worst) == {"runs/hostile.pth", "old/bomb.pkl"} and "os.system" in worst["old/bomb.pkl"]
    # A member is opened as the file that it is: what is said of it is not said of an archive.
    [row] = [row for row in told["rows"] if row["shown"] == "runs/shapes.safetensors"]
    member = _value(made, ask="open", path=str(path), member=row["path"])
    alone = _value(made, ask="open", path=str(SAMPLES / "shapes.safetensors"))
    assert {**member, "path": ""} == {**alone, "path": ""}
    values = [_value(made, ask="values", path=one["path"], set=0, row=3)["values"] for one in (member, alone)]
    assert values[0] == values[1]
    _value(made, ask="close", path=member["path"])


def test_nothing_is_said_to_be_installed_where_nothing_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.keys.verify.is_installed", lambda name: False)
    made = Session()
    _value(made, ask="open", path=WRAPPED)
    html = _value(made, ask="repair", path=WRAPPED)["html"]
    # "Nothing was verified" stood above the table of what was.
    assert "A repair is proved when its file is written" in html and "nothing was verified" not in html
    asked = {"ask": "write", "path": WRAPPED, "kind": "repair", "folder": str(tmp_path), "writer": "safetensors"}
    html = _value(made, **asked)["html"]
    assert "installed" not in html and "that needs the app, which has torch." in html
    error = MissingLibrary("Building it needs timm, which is not installed.", hint=install_line("torch"))
    assert own_words(error.says) == "Building it needs the app, which has timm." and own_words(error.hint) == START_APP
    assert "make app" in START_APP and "streamlit run app.py" in START_APP


def test_what_is_only_renamed_is_named(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    a = {"conv.weight": torch.randn(4, 3), "fc.weight": torch.randn(5, 4)}
    b = {"conv.weight": a["conv.weight"] + 1, "head.weight": a["fc.weight"]}
    one, two, made = str(tmp_path / "a.pth"), str(tmp_path / "b.pth"), Session()
    torch.save(a, one)
    torch.save(b, two)
    _value(made, ask="open", path=one)
    told = _value(made, ask="compare", path=one, other=two)
    assert told["differs"] and "fc.weight is head.weight there" in told["html"]
    assert "1 tensor with the same bytes under another name." in told["html"]
    assert "another name" not in _value(made, ask="compare", path=one, other=one)["html"]


def test_what_was_counted_is_not_called_unread_afterwards(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path, made = str(tmp_path / "odd.pth"), Session(count=_counted)
    torch.save(
        {"conv.weight": torch.tensor([[1.0, float("nan")]]), "steps": torch.arange(3), "q": torch.ones(2).char()}, path
    )
    before = _value(made, ask="open", path=path)
    assert "the numbers have not been read" in before["answers"] and "Not read: 3 tensors." in before["about"]
    after = _value(made, ask="numbers", path=path)["overview"]
    assert (
        "1 error, no warning so far; 1 tensor was looked at for NaN, infinity and negative variances alone, 1 tensor "
        "not at all." in after["answers"]
    )
    assert "Not read" not in after["about"] and "Counted in 1 tensor: NaN, infinite, zero" in after["about"]
    [finding] = [one for one in after["findings"] if "non-finite" in one["html"]]
    assert (finding["tab"], finding["find"]) == ("tensors", "conv.weight")
    # The report that is taken away knows it, too.
    assert "Not read: 3 tensors." not in _value(made, ask="report", path=path)


def test_a_file_that_would_end_python_costs_a_folder_that_file_alone(session: Session, tmp_path: Path) -> None:
    """The page asks again and says which; loose files are what the command line calls the folder it stands in."""
    for name in ("shapes_dp.pth.tar", "truncated.pth"):
        (tmp_path / name).write_bytes((SAMPLES / name).read_bytes())
    folder = str(tmp_path)
    told: list[str] = []
    made = Session(lambda done, total, note: told.append(note))
    whole = json.loads(_value(made, ask="json", what="scan", folder=folder))
    assert whole["name"] == tmp_path.name and told == ["shapes_dp.pth.tar", "truncated.pth", "", ""]
    asked = {"ask": "json", "what": "scan", "folder": folder, "deep": ["truncated.pth"], "name": "."}
    less = json.loads(_value(made, **asked))
    assert less["name"] == "." and less["rows"][0] == whole["rows"][0]
    row = less["rows"][1]
    assert row["kind"] == "unreadable" and row["says"] == "This file is nested more deeply than a page can follow."
    assert row["nbytes"] == whole["rows"][1]["nbytes"] and "make app" in row["findings"][0]["remedy"]
    assert len(_value(made, **{**asked, "ask": "scan"})["rows"]) == 2
