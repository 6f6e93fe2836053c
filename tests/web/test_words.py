"""What pages say: trees, tables, file stems, edited preprocessing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inspector.cam.inputs.picture import input_shape
from inspector.cam.report import Preprocessing
from inspector.checkpoint.types import ModuleNode, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.errors import UsageError
from inspector.findings import Finding, Severity
from inspector.overview import count_words
from inspector.render.tree_html import _rows, module_branch, value_branch
from inspector.web.architecture import _nest
from inspector.web.components import _card, _few_of_each
from inspector.web.explain.inputs import as_linked, edited, settings
from inspector.web.tensor_table import filtered, modules
from inspector.web.writing import stem_of


def _tensor(name: str, shape: tuple[int, ...] = (2, 3)) -> TensorInfo:
    return TensorInfo(name=name, path=(name,), shape=shape, dtype="float32", nbytes=24, storage_id="0")


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("shapes_dp.pth.tar", "shapes_dp"),
        ("a.safetensors", "a"),
        ("model.v2.ckpt", "model.v2"),
        ("weights", "weights"),
        (".pth", ".pth"),
        ("resnet20-12fca82f.th", "resnet20-12fca82f"),
    ],
)
def test_a_stem_keeps_what_is_no_format(name: str, stem: str) -> None:
    assert stem_of(name) == stem


def test_rows_nest_by_depth() -> None:
    rows = [("", 0), ("a", 1), ("a.b", 2), ("c", 1), ("c.d", 2), ("c.d.e", 3)]
    (root,) = _nest((path, depth, "", "", ()) for path, depth in rows)
    assert root.label == "model"
    assert [(b.label, [c.label for c in b.children]) for b in root.children] == [("a", ["b"]), ("c", ["d"])]
    assert root.children[1].children[0].children[0].label == "e"


def test_a_tensor_whose_module_has_no_name_keeps_its_row() -> None:
    """ ".weight" was taken for the whole model, whose numbers it put its own in place of."""
    rows = [("", 0, "", "", ("14",)), ("", 1, "", "", ("6",)), ("b", 1, "", "", ("2",)), ("b.", 2, "", "", ("2",))]
    (root,) = _nest(rows)
    assert (root.label, root.right) == ("model", ("14",))
    assert [(b.label, b.right) for b in root.children] == [("(no name)", ("6",)), ("b", ("2",))]
    assert [b.label for b in root.children[1].children] == ["(no name)"]


def test_a_value_from_a_file_cannot_become_markup() -> None:
    value = Value(kind=ValueKind.TEXT, type_name="<b>", says="<script>alert(1)</script>", size=25)
    drawn = _rows([value_branch("<img src=x>", value)], 0, 1, [100])
    assert "<script" not in drawn
    assert "<img" not in drawn
    assert "&lt;img src=x&gt;" in drawn


def test_what_is_left_out_is_counted() -> None:
    child = Value(kind=ValueKind.NUMBER, type_name="int", says="1")
    value = Value(
        kind=ValueKind.SEQUENCE,
        type_name="list",
        says="500 items",
        children=tuple((str(i), child) for i in range(200)),
        size=500,
    )
    branch = value_branch("x", value)
    assert len(branch.children) == 120
    assert branch.left_out == 380
    assert "and 380 more" in _rows([branch], 0, 1, [1000])


def test_a_text_has_a_length_and_nothing_below_it() -> None:
    assert value_branch("x", Value(kind=ValueKind.TEXT, type_name="str", says="abc", size=3)).left_out == 0


def test_what_was_not_executed_is_marked() -> None:
    inert = Value(kind=ValueKind.OBJECT, type_name="os.system", says="", inert=True)
    assert "not executed" in _rows([value_branch("x", inert)], 0, 1, [10])
    assert "not executed" not in _rows(
        [value_branch("x", Value(kind=ValueKind.NONE, type_name="", says=""))], 0, 1, [10]
    )


def test_the_tree_has_an_end() -> None:
    branches = [value_branch(str(i), Value(kind=ValueKind.NUMBER, type_name="int", says="1")) for i in range(50)]
    drawn = _rows(branches, 0, 1, [10])
    assert drawn.count("mi-label") == 10
    assert "more is not shown here" in drawn


def test_a_module_counts_everything_below_it() -> None:
    tree = ModuleNode(
        name="",
        path="",
        tensors=(_tensor("w"),),
        children=(ModuleNode(name="a", path="a", kind="torch.nn.Linear", tensors=(_tensor("a.w", (1000, 2)),)),),
    )
    branch = module_branch(tree)
    assert branch.right == ("2.01 K",)
    assert branch.children[1].kind == "Linear"
    assert branch.children[1].right == ("2.00 K",)


def test_findings_are_counted_in_words() -> None:
    def finding(severity: Severity) -> Finding:
        return Finding(id="x", severity=severity, says="<i>")

    assert count_words([]) == "no error, no warning"
    assert count_words([finding(s) for s in (Severity.ERROR, Severity.WARNING, Severity.WARNING, Severity.NOTICE)]) == (
        "1 error, 2 warnings, 1 note"
    )
    assert "&lt;i&gt;" in _card(finding(Severity.ERROR))


def test_filtering_asks_for_every_word() -> None:
    tensors = [_tensor("layer1.conv.weight", (64, 3)), _tensor("layer1.bn.weight"), _tensor("layer10.conv.weight")]
    assert [t.name for t in filtered(tensors, "conv 64x3", "")] == ["layer1.conv.weight"]
    assert [t.name for t in filtered(tensors, "", "layer1")] == ["layer1.conv.weight", "layer1.bn.weight"]
    assert len(filtered(tensors, "FLOAT32", "")) == 3
    assert modules(tensors) == ["layer1", "layer1.conv", "layer1.bn", "layer10", "layer10.conv"]


START = Preprocessing(
    resize=256,
    crop=(224, 224),
    mean=(0.5, 0.5, 0.5),
    std=(0.25, 0.25, 0.25),
    channels=3,
    interpolation="bilinear",
    source="stated",
    assumed=False,
)


def _edit(**changes: object) -> Preprocessing:
    usual: dict[str, object] = {
        "resize": 256,
        "crop": 224,
        "mean": "0.5, 0.5, 0.5",
        "std": "0.25 0.25 0.25",
        "interpolation": "bilinear",
    }
    return edited(START, **(usual | changes))  # type: ignore[arg-type]


def test_untouched_preprocessing_is_the_same() -> None:
    assert _edit() is START


def test_a_mean_of_many_digits_is_untouched_as_its_box_shows_it() -> None:
    start = replace(START, mean=(0.48145466, 0.4578275, 0.40821073))
    boxes = {one.name: str(one.first) for one in settings(start, "0")}
    assert boxes["mean"] == "0.48145466, 0.4578275, 0.40821073"
    shown = edited(start, resize=256, crop=224, mean=boxes["mean"], std=boxes["std"], interpolation="bilinear")
    assert shown is start and not any(as_linked(start, shown).values())


def test_changed_preprocessing_says_who_set_it() -> None:
    changed = _edit(crop=160, mean="0 0 0")
    assert changed.crop == (160, 160)
    assert changed.mean == (0.0, 0.0, 0.0)
    assert changed.source == "set on this page"
    assert input_shape(changed) == (3, 160, 160)
    assert input_shape(_edit(crop=0, resize=0)) == (3, 224, 224)


@pytest.mark.parametrize("mean", ["0.5", "a b c", "0.5 0.5 nan", ""])
def test_other_counts_of_numbers_are_refused(mean: str) -> None:
    with pytest.raises(UsageError, match="The mean needs 3 numbers, one per channel"):
        _edit(mean=mean)


def test_a_deviation_of_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="above 0"):
        _edit(std="0.25 0 0.25")


def test_thousands_of_equal_findings_are_a_few_cards() -> None:
    same = [Finding(id="nan", severity=Severity.ERROR, says=f"w{n} holds NaN.") for n in range(3000)]
    other = Finding(id="cut", severity=Severity.WARNING, says="Cut short.")
    shown = _few_of_each([*same, other])
    assert [f.says for f in shown] == [*(f"w{n} holds NaN." for n in range(5)), "Cut short."]


def test_a_name_of_thousands_of_characters_is_one_line_of_the_tree() -> None:
    row = _rows([value_branch("x" * 5000, Value(kind=ValueKind.TEXT, type_name="str", says="y" * 5000))], 0, 0, [9])
    shown = row.replace(f'title="{"x" * 5000}"', "").replace(f'title="{"y" * 5000}"', "")
    assert len(shown) < 1000
    assert f'title="{"x" * 5000}"' in row
