"""The shipped index against torchvision itself; `test_timm` holds the other half."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tracemalloc
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import torchvision

from inspector.architectures import store
from inspector.architectures.index import INDEX_FILE, Index, load_index, read_data
from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.types import Shape
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS


def test_the_index_is_of_the_installed_torchvision() -> None:
    assert load_index().versions["torchvision"] == torchvision.__version__.partition("+")[0]
    own = {label.partition("/")[2] for label in load_index().builders if label.startswith("torchvision/")}
    assert own == set(torchvision.models.list_models())


def test_resnet18_is_what_torchvision_builds() -> None:
    with torch.device("meta"):
        model = torchvision.models.resnet18(weights=None)
    parameters = {name for name, _ in model.named_parameters()}
    entry = load_index().find("resnet18")
    assert entry is not None
    assert [(t.name, t.shape, f"torch.{t.dtype}", t.is_buffer) for t in entry.tensors] == [
        (name, tuple(v.shape), str(v.dtype), name not in parameters) for name, v in model.state_dict().items()
    ]
    assert (entry.num_classes, entry.task, entry.tensors[0].shape) == (1000, "classification", (64, 3, 7, 7))


@pytest.mark.parametrize("name", ["ssd300_vgg16", "retinanet_resnet50_fpn", "maskrcnn_resnet50_fpn", "googlenet"])
def test_heads_follow_the_class_count_as_in_torchvision(name: str) -> None:
    arguments: dict[str, Any] = {"init_weights": False} if name == "googlenet" else {"weights_backbone": None}
    with torch.device("meta"):
        model = torchvision.models.get_model(name, weights=None, num_classes=5, **arguments)
    entry = load_index().find(name)
    assert entry is not None
    found = entry.at(num_classes=5, in_channels=None, image_size=None)
    assert found == tuple(tuple(v.shape) for v in model.state_dict().values())
    assert found != tuple(t.shape for t in entry.tensors)


def test_position_embeddings_follow_the_picture_size() -> None:
    with torch.device("meta"):
        model = torchvision.models.vit_h_14(weights=None, image_size=518)
    entry = load_index().find("vit_h_14")
    assert entry is not None
    found = entry.at(num_classes=None, in_channels=None, image_size=518)
    assert found == tuple(tuple(v.shape) for v in model.state_dict().values())
    # (518 / 14)^2 patches and the class token.
    assert dict(zip((t.name for t in entry.tensors), found, strict=True))["encoder.pos_embedding"] == (1, 1370, 1280)


def test_the_shipped_data_is_what_the_program_writes(index_program: ModuleType) -> None:
    names = ("alexnet", "regnet_y_400mf", "vit_b_32", "lraspp_mobilenet_v3_large", "quantized_shufflenet_v2_x0_5")
    written = list(index_program.entries_of(names))
    index = load_index()
    assert len(written) == 6  # the quantised builder has two variants
    for made in written:
        entry = index.find(made["name"], made["options"].items())
        assert entry is not None and entry.options == tuple(sorted(made["options"].items()))
        assert [(t.name, t.shape, t.dtype, t.is_buffer) for t in entry.tensors] == made["rows"]
        assert (list(entry.heads), list(entry.channels)) == (made.get("heads", []), made["channels"])
        assert (list(entry.positions), entry.image_size) == (made.get("positions", []), made.get("image_size"))
        assert (entry.num_classes, entry.task) == (made.get("num_classes"), made["task"])


def test_what_is_packed_is_unpacked(index_program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kinds of one (name, shape), a shared layout, negative steps between tensors, and an unusual setting."""
    one = [("b.weight", (2, 3), "float32", False), ("a.num_batches_tracked", (), "int64", True)]
    two = [("a.bias", (2,), "float32", False), ("b.weight", (2, 3), "qint8", True)]
    rest = {"library": "torchvision", "options": {}, "channels": []}
    packed = index_program.packed(
        [
            {**rest, "name": "first", "task": "video", "rows": one, "heads": [(0, 0, 1, 0)], "num_classes": 2},
            {**rest, "name": "second", "library": "timm", "rows": two, "facts": {"mean": [0.5]}},
            {**rest, "name": "third", "rows": one},
        ],
        {"torchvision": "1", "timm": "2"},
    )
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_bytes(gzip.compress(packed))
    monkeypatch.setattr(store, "files", lambda package: tmp_path)
    index = Index(*store.unpack("x"))
    assert [(e.label, e.task, e.num_classes, dict(e.facts)) for e in index.entries] == [
        ("torchvision/first", "video", 2, {}),
        ("timm/second", "classification", None, {"mean": [0.5]}),
        ("torchvision/third", "classification", None, {}),
    ]
    assert [tuple((t.name, t.shape, t.dtype, t.is_buffer) for t in e.tensors) for e in index.entries] == [
        tuple(one),
        tuple(two),
        tuple(one),
    ]
    assert index.entries[0].layout is index.entries[2].layout
    assert dict(index.shared({"b.weight": (2, 3), "a.bias": (2,), "a.num_batches_tracked": ()})) == {0: 1, 1: 2}
    assert ("b.weight", (2, 3)) in index and ("b.weight", (3, 2)) not in index and ("a.weight", (2, 3)) not in index
    assert ("a.num_batches_tracked", ()) not in index and index.sizes == (1, 2)


def test_the_shipped_weights_table_is_what_the_program_writes(index_program: ModuleType) -> None:
    names = ("alexnet", "regnet_y_400mf", "fasterrcnn_mobilenet_v3_large_320_fpn")
    shipped = read_data("torchvision-weights.json.gz")
    written = index_program.weights_of(names)

    def rows(data: dict[str, Any]) -> list[dict[str, Any]]:
        mine = [w for w in data["weights"] if w["builder"] in names]
        return [{**w, "categories": data["categories"][w["categories"]]} for w in sorted(mine, key=lambda w: w["name"])]

    # Tuples become lists on the way through JSON.
    assert [{**w, "categories": list(w["categories"])} for w in rows(written)] == rows(shipped)


def test_variants_are_chosen_by_options() -> None:
    index = load_index()
    plain, aux = index.find("fcn_resnet50"), index.find("fcn_resnet50", (("aux_loss", True),))
    assert plain is not None and aux is not None
    assert {t.name for t in aux.tensors} - {t.name for t in plain.tensors} == {
        f"aux_classifier.{rest}"
        for rest in (
            *("0.weight", "4.weight", "4.bias"),
            *(f"1.{leaf}" for leaf in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")),
        )
    }
    assert index.find("fcn_resnet50", (("transform_input", True),)) is plain
    assert index.find("no_such_model") is None


def test_module_is_the_one_wrapper_segment_that_is_part_of_architectures() -> None:
    """Which is why both readings of it compete; see `wrappers.views`."""
    assert WRAPPER_SEGMENTS & load_index().segments == {"module"}
    assert "layer1" in load_index().segments


def test_bookkeeping_is_known_by_its_last_segment() -> None:
    assert is_bookkeeping("layer1.bn1.num_batches_tracked") and is_bookkeeping("n_averaged")
    assert not is_bookkeeping("num_batches_tracked.weight") and not is_bookkeeping("bn1.running_mean")


def test_recognising_imports_no_torch() -> None:
    code = (
        "import sys\n"
        "from inspector.architectures import facts, official, recognise, targets\n"
        "target = targets.parse_target('torchvision/resnet18?num_classes=3')\n"
        "shapes = {t.name: t.shape for t in target.tensors}\n"
        "best = recognise.rank(shapes, recognise.load_index())[0]\n"
        "facts.default_input(best.spec)\n"
        "print(best.spec.label, 'torch' in sys.modules, 'torchvision' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["torchvision/resnet18?num_classes=3", "False", "False"]


def test_what_is_packed_is_left_as_it_was() -> None:
    # timm's entries come from a generator that makes an entry with a head from the one before.
    from scripts.build_index import packed

    def one() -> dict[str, Any]:
        rows = [("stem.weight", (8, 3, 3, 3), "float32", False)]
        return {"library": "timm", "name": "a", "rows": rows, "facts": {"input_size": [3, 32, 32]}}

    def made() -> Iterator[dict[str, Any]]:
        first = one()
        yield first
        assert first == one()
        yield {**first, "rows": [*first["rows"], ("head.weight", (7, 8), "float32", False)], "num_classes": 7}

    assert packed(made(), {"timm": "1"}) == packed(list(made()), {"timm": "1"})


def test_the_shipped_index_is_small_in_memory_and_finds_every_holder() -> None:
    """Kept as lists and Python's own numbers it took 110 MB of every process that looks at a file."""
    tracemalloc.start()
    try:
        index = Index(*store.unpack(INDEX_FILE))
        index.warm()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 45e6
    naive: defaultdict[tuple[str, Shape], set[int]] = defaultdict(set)
    for number, entries in enumerate(index.of_layout):
        for tensor in entries[0].layout.tensors:
            naive[tensor.name, tensor.shape].add(number)
    for name, shape in list(naive)[::97]:
        expected = {} if is_bookkeeping(name) else dict.fromkeys(naive[name, shape], 1)
        assert dict(index.shared({name: shape})) == expected
