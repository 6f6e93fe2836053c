"""Which tensor is paired with which, by what, and what is refused."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import nn

from inspector.compare.diff import compare_checkpoints
from inspector.compare.ggml_names import counterparts
from inspector.compare.report import Diff, Relation, Way
from inspector.render.diff_text import diff_text
from tests.compare.files import compare, opened, write

SAME = Relation.SAME


def net(seed: int = 0) -> dict[str, torch.Tensor]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8, 4))
    return dict(model.state_dict())


def saved(folder: Path, a: object, b: object) -> Diff:
    for name, state in (("a", a), ("b", b)):
        torch.save(state, folder / f"{name}.pth")
    return compare_checkpoints(opened(folder / "a.pth"), opened(folder / "b.pth"))


def test_equal_names(tmp_path: Path) -> None:
    found = saved(tmp_path, net(), net(1))
    assert (found.alignment.way, found.alignment.by_name, found.alignment.by_other) == (Way.NAMES, 9, 0)
    assert found.alignment.says == "9 tensors paired by equal names."


@pytest.mark.parametrize("prefix", ["module.", "model.backbone."])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_head_of_other_classes_under_a_wrapper_is_still_the_head(tmp_path: Path, prefix: str, swapped: bool) -> None:
    plain, other = net(), net()
    other["4.weight"], other["4.bias"] = torch.randn(7, 8), torch.randn(7)
    wrapped = {prefix + name: tensor for name, tensor in other.items()}
    found = saved(tmp_path, *((wrapped, plain) if swapped else (plain, wrapped)))
    assert not found.alignment.only_a and not found.alignment.only_b
    relations = {t.name.removeprefix(prefix): t.relation for t in found.tensors}
    assert {name for name, relation in relations.items() if relation is Relation.RESHAPED} == {"4.weight", "4.bias"}
    assert all(relation in (SAME, Relation.RESHAPED) for relation in relations.values())
    assert f"“{prefix}”" in " ".join(found.alignment.rules)


def test_two_prefixes_that_fit_alike_pair_nothing(tmp_path: Path) -> None:
    """An online and a target network: which is meant is not told by names."""
    a, b = net(), {f"{side}.{name}": torch.randn(3) for side in ("online", "target") for name in net()}
    assert not saved(tmp_path, a, b).alignment.pairs


def test_a_wrapper_segment_is_taken_off_by_the_plan(tmp_path: Path) -> None:
    a = net()
    for wrapped, plain in (
        ({f"module.{k}": v for k, v in a.items()}, a),
        (a, {f"module.{k}": v for k, v in a.items()}),
    ):
        found = saved(tmp_path, wrapped, plain)
        assert (found.alignment.way, found.alignment.by_other) == (Way.PLAN, 9)
        assert found.alignment.rules
        assert all(t.relation is SAME and t.renamed for t in found.tensors)
        assert not found.differs()
        assert [v.id for v in found.verdicts] == ["other-names"]


def test_other_names_with_the_same_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = [rng.standard_normal((4, 4)) for _ in range(5)]
    a = {f"alpha{i}": value for i, value in enumerate(values)}
    b = {name: values[i] for name, i in (("p", 3), ("q", 0), ("r", 4), ("s", 2), ("t", 1))}
    found = compare(tmp_path, a, b)
    assert found.alignment.way in (Way.BYTES, Way.PLAN)
    assert {t.a.name: t.b.name for t in found.tensors if t.a and t.b} == {
        "alpha0": "q", "alpha1": "t", "alpha2": "s", "alpha3": "p", "alpha4": "r",
    }  # fmt: skip
    assert [v.id for v in found.verdicts] == ["other-names"]


def test_one_renamed_among_many(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a = {f"l{i}.weight": rng.standard_normal((3, 3)) for i in range(5)}
    b = {("head.weight" if name == "l4.weight" else name): value for name, value in a.items()}
    found = compare(tmp_path, a, b)
    assert (found.alignment.way, found.alignment.by_name, found.alignment.by_other) == (Way.BYTES, 4, 1)
    assert not found.differs()
    b["head.weight"] = b["head.weight"] + 1
    changed = compare(tmp_path, a, b)
    assert (changed.alignment.only_a, changed.alignment.only_b) == (("l4.weight",), ("head.weight",))
    assert changed.totals.count(Relation.ADDED, Relation.REMOVED) == 2


def test_several_of_the_same_bytes_are_paired_only_where_it_makes_no_difference(tmp_path: Path) -> None:
    zero, one = np.zeros(4), np.ones(4)
    rest = {f"k{i}": np.arange(float(i), i + 3.0) for i in range(6)}
    even = compare(tmp_path, {**rest, "a": zero, "b": zero, "c": one}, {**rest, "x": zero, "y": zero, "z": one})
    assert {t.name: t.b.name for t in even.tensors if t.renamed and t.b} == {"a": "x", "b": "y", "c": "z"}
    odd = compare(tmp_path, {**rest, "a": zero, "b": zero}, {**rest, "x": zero})
    assert odd.alignment.only_a == ("a", "b")


def test_nothing_in_common_is_said(tmp_path: Path) -> None:
    found = compare(tmp_path, {"a": np.ones(3), "b": np.ones(4)}, {"x": np.ones((2, 2)), "y": np.ones((5, 5))})
    assert (found.alignment.way, found.alignment.pairs) == (Way.NONE, 0)
    assert found.says == ("The two have nothing in common. Nothing is paired: no name and no shape is in both files.")
    assert found.totals.count(Relation.ADDED) == found.totals.count(Relation.REMOVED) == 2


def test_order_is_refused_where_the_file_does_not_keep_it(tmp_path: Path) -> None:
    """safetensors sorts by itself, so that its order says nothing of the model's."""
    rng = np.random.default_rng(0)
    a = {f"a{i}": rng.standard_normal((4, 4)) for i in range(3)}
    b = {f"zz{i}": rng.standard_normal((4, 4)) for i in range(3)}
    found = compare(tmp_path, a, b)
    assert found.alignment.pairs == 0


def test_a_file_without_tensors(tmp_path: Path) -> None:
    found = compare(tmp_path, {}, {})
    assert found.says == "Neither file has tensors to compare."
    assert not found.differs()
    assert compare(tmp_path, {"a": np.ones(2)}, {}).differs()


@pytest.mark.parametrize(
    ("ggml", "other"),
    [
        ("token_embd.weight", "model.embed_tokens.weight"),
        ("blk.3.attn_q.weight", "model.layers.3.self_attn.q_proj.weight"),
        ("blk.0.ffn_down.weight", "layers.0.mlp.down_proj.weight"),
        ("blk.11.attn_norm.bias", "transformer.h.11.ln_1.bias"),
        ("blk.2.attn_output.weight", "bert.encoder.layer.2.attention.output.dense.weight"),
        ("output_norm.weight", "model.norm.weight"),
        ("output.weight", "lm_head.weight"),
    ],
)
def test_llama_cpps_names(ggml: str, other: str) -> None:
    assert counterparts([ggml, "blk.0.nothing.weight"], [other, "else"]) == {ggml: other}


def test_names_of_llama_cpp_that_two_would_claim_are_nobodys() -> None:
    names = ["blk.0.ffn_norm.weight", "blk.0.post_attention_norm.weight"]
    only = ["model.layers.0.post_attention_layernorm.weight"]
    assert counterparts(names, only) == {}
    both = [*only, "model.layers.0.pre_feedforward_layernorm.weight"]
    assert counterparts(names, both) == {names[0]: both[1], names[1]: both[0]}


def test_a_converted_model_is_paired_by_the_table(tmp_path: Path) -> None:
    import gguf

    rng = np.random.default_rng(0)
    layer = {"attn_q": "self_attn.q_proj", "attn_output": "self_attn.o_proj", "ffn_up": "mlp.up_proj"}
    values = {name: rng.standard_normal((8, 8)).astype(np.float32) for name in layer}
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    for name, value in values.items():
        writer.add_tensor(f"blk.0.{name}.weight", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    other = {f"model.layers.0.{layer[name]}.weight": value for name, value in values.items()}
    b = write(tmp_path / "b.safetensors", other)
    for one, two in ((tmp_path / "a.gguf", b), (b, tmp_path / "a.gguf")):
        found = compare_checkpoints(opened(one), opened(two))
        assert (found.alignment.way, found.alignment.pairs) == (Way.TABLE, 3)
        assert not found.differs()


def test_what_has_another_name_is_said_beside_what_changed(tmp_path: Path) -> None:
    a = net()
    b = {name.replace("4.", "head."): value for name, value in a.items()} | {"0.bias": a["0.bias"] + 1}
    found = saved(tmp_path, a, b)
    says = "2 tensors with the same numbers have another name in the second file: for example 4.weight is head.weight"
    assert says in found.says
    out = io.StringIO()
    Console(file=out, width=240).print(diff_text(found))
    rows = [line.split() for line in out.getvalue().splitlines()]
    assert [row[1:4] for row in rows if row[:1] == ["renamed"]] == [
        ["4.weight", "=>", "head.weight"],
        ["4.bias", "=>", "head.bias"],
    ]
    # What is said of the whole is not said again, and of equal names nothing.
    same = saved(tmp_path, a, {name.replace("4.", "head."): value for name, value in a.items()})
    assert same.says.startswith("The same weights under other names") and "for example" not in same.says
    assert "another name" not in saved(tmp_path, a, {**a, "0.bias": a["0.bias"] + 1}).says
