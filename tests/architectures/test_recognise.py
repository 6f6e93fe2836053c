"""From names and shapes to an architecture: right, right under damage, and silent about strangers."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest

from inspector.architectures.index import load_index
from inspector.architectures.match import compare, fit
from inspector.architectures.recognise import rank, recognise
from inspector.architectures.types import Candidate, Recognition
from inspector.architectures.wrappers import View
from inspector.checkpoint.types import Checkpoint, Part

Shapes = dict[str, tuple[int, ...]]
Make = Callable[..., Checkpoint]
Of = Callable[[str], Shapes]

ALL = tuple(dict.fromkeys(entry.label for entry in load_index().entries))


def best(recognition: Recognition) -> Candidate:
    assert recognition.best is not None, recognition.says
    return recognition.best


def test_an_intact_file_is_exact_and_says_so(checkpoint: Make, shapes: Of) -> None:
    found = recognise(checkpoint(shapes("resnet34")))
    one = best(found)
    assert (one.spec.label, one.exact, one.score, one.wrapper) == ("torchvision/resnet34", True, 1.0, "")
    assert (len(one.matched), one.missing, one.extra, one.reshaped) == (218, (), (), ())
    assert found.says == (
        "This is torchvision's resnet34: all 218 tensors fit by name and shape. "
        "The file cannot tell it from timm/resnet34: the names and shapes are the same."
    )
    # resnet18 is wholly inside resnet34, and is not offered beside an exact match.
    assert len(found.candidates) == 1 and found.state_dict == ("state_dict",)


def test_classes_and_channels_are_inferred(checkpoint: Make, shapes: Of) -> None:
    found = recognise(checkpoint(shapes("resnet18?num_classes=10&in_channels=4")))
    assert best(found).spec.label == "torchvision/resnet18?num_classes=10&in_channels=4"
    assert best(found).exact and "with 10 classes and 4 input channels" in found.says


@pytest.mark.parametrize(
    "target",
    [
        "vgg16_bn?num_classes=2&in_channels=1",
        "vit_b_16?image_size=384&num_classes=5",
        "vit_l_32",
        "regnet_y_32gf",
        "fcn_resnet50?num_classes=3&aux_loss=true",
        "googlenet?aux_logits=false",
        "fasterrcnn_resnet50_fpn?num_classes=5&frozen_norm=true",
        "ssd300_vgg16?num_classes=4",
        "quantized_resnet18?quantize=true",
        "r3d_18?num_classes=12",
        "raft_small",
    ],
)
def test_every_kind_of_model_comes_back_with_its_settings(target: str, checkpoint: Make, shapes: Of) -> None:
    one = best(recognise(checkpoint(shapes(target))))
    name, _, query = one.spec.label.removeprefix("torchvision/").partition("?")
    wanted, _, settings = target.partition("?")
    assert (name, set(filter(None, query.lower().split("&")))) == (wanted, set(filter(None, settings.split("&"))))
    assert one.exact and not one.missing and not one.extra


@pytest.mark.parametrize(
    ("prefix", "wrapper"),
    [
        ("module.", "module."),
        ("module.module.", "module.module."),
        ("_orig_mod.module.", "_orig_mod.module."),
        ("model.", "model."),
        ("backbone.", "backbone."),
        ("net_G.enc.", "net_G.enc."),
        ("encoder.features.", "encoder.features."),
        ("0.", "0."),
    ],
)
def test_any_prefix_comes_off(prefix: str, wrapper: str, checkpoint: Make, shapes: Of) -> None:
    wrapped = {prefix + name: shape for name, shape in shapes("resnet50?num_classes=7").items()}
    one = best(recognise(checkpoint(wrapped)))
    assert (one.spec.label, one.exact, one.wrapper) == ("torchvision/resnet50?num_classes=7", True, wrapper)


@pytest.mark.parametrize("segment", ["module", "_fsdp_wrapped_module", "wrapped"])
def test_a_wrapper_in_the_middle_comes_off(segment: str, checkpoint: Make, shapes: Of) -> None:
    wrapped = {n.replace("features.", f"features.{segment}."): s for n, s in shapes("vgg16").items()}
    one = best(recognise(checkpoint(wrapped)))
    assert (one.spec.name, one.exact, one.wrapper) == ("vgg16", True, f"…{segment}.")


def test_bookkeeping_does_not_matter(checkpoint: Make, shapes: Of) -> None:
    own = shapes("resnet18")
    old = {name: shape for name, shape in own.items() if not name.endswith("num_batches_tracked")}
    found = recognise(checkpoint(old))
    assert best(found).exact and best(found).score == 1.0 and len(best(found).missing) == 20
    assert "all 102 weights fit by name and shape, only 20 batch counters are absent" in found.says
    averaged: Shapes = {"n_averaged": (), **{f"module.{name}": shape for name, shape in own.items()}}
    assert best(recognise(checkpoint(averaged))).exact
    profiled: Shapes = {**own, "total_ops": (1,), "layer1.total_params": (1,)}
    assert best(recognise(checkpoint(profiled))).exact


def test_a_backbone_inside_another_model_is_not_exact(checkpoint: Make, shapes: Of) -> None:
    trunk = {f"backbone.{n}": s for n, s in shapes("resnet18").items() if not n.startswith("fc.")}
    own: Shapes = {"head.0.weight": (128, 512), "head.0.bias": (128,), "head.2.weight": (4, 128)}
    found = recognise(checkpoint({**trunk, **own}))
    one = best(found)
    assert (one.spec.name, one.exact, one.wrapper) == ("resnet18", False, "backbone.")
    assert set(one.extra) == set(own) and set(one.missing) == {"fc.weight", "fc.bias"}
    assert found.says.startswith('This contains torchvision\'s resnet18 under "backbone.": 120 of its 122 tensors')
    # 100 weights that fit, of 102 that resnet18 has and 3 that it has not.
    assert one.score == pytest.approx(100 / 105)


def test_a_changed_relative_is_near_and_nothing_more(checkpoint: Make, shapes: Of) -> None:
    """A variant that names its shortcuts and its head otherwise, with a 3x3 stem."""
    own = {
        name.replace("downsample", "skip").replace("fc.", "out."): shape
        for name, shape in shapes("resnet18?num_classes=10").items()
    }
    own["conv1.weight"] = (64, 3, 3, 3)
    found = recognise(checkpoint(own))
    assert not best(found).exact and found.says.startswith("This is near torchvision's resnet18")
    assert best(found).reshaped == (("conv1.weight", (64, 3, 3, 3), (64, 3, 7, 7)),)


def test_a_part_of_a_file_is_a_part(checkpoint: Make, shapes: Of) -> None:
    own = list(shapes("densenet121").items())
    found = recognise(checkpoint(dict(own[: len(own) // 4])))
    assert best(found).spec.name == "densenet121" and not best(found).exact
    assert found.says.startswith("This is a part of torchvision's densenet121")


def test_size_variants_are_not_confused(checkpoint: Make, shapes: Of) -> None:
    for name in ("resnet50", "wide_resnet50_2", "resnext50_32x4d", "vit_l_16", "vit_b_16", "efficientnet_b3", "swin_s"):
        found = recognise(checkpoint(shapes(name)))
        assert best(found).spec.name == name
        assert all(not other.exact for other in found.candidates[1:])


def test_true_twins_are_a_class_and_the_file_cannot_tell(checkpoint: Make, shapes: Of) -> None:
    found = recognise(checkpoint(shapes("fasterrcnn_mobilenet_v3_large_320_fpn")))
    one = best(found)
    assert {one.spec.name, *one.twins} == {
        "fasterrcnn_mobilenet_v3_large_fpn",
        "torchvision/fasterrcnn_mobilenet_v3_large_320_fpn",
    }
    assert "The file cannot tell it from fasterrcnn_mobilenet_v3_large_320_fpn" in found.says
    assert [finding.id for finding in found.findings] == ["architecture-twins"]


def test_an_unquantised_builder_is_no_rival(checkpoint: Make, shapes: Of) -> None:
    found = recognise(checkpoint(shapes("vgg16")))
    assert best(found).twins == () and found.findings == ()
    found = recognise(checkpoint(shapes("mobilenet_v2")))
    assert best(found).twins == ("torchvision/quantized_mobilenet_v2",)
    assert found.findings == () and "cannot tell" not in found.says


def test_twins_of_both_libraries_are_one_candidate_by_torchvisions_name(checkpoint: Make, shapes: Of) -> None:
    found = recognise(checkpoint(shapes("timm/resnetblur50")))
    one = best(found)
    assert one.exact and one.spec.label == "torchvision/resnet50"
    assert not any("resnet50" in (c.spec.name, *c.twins) for c in found.candidates[1:])
    rivals = {"timm/resnet50", "timm/resnetaa50", "timm/resnetblur50"}
    assert set(one.twins) == rivals | {"torchvision/quantized_resnet50"}
    assert "The file cannot tell it from timm/resnet" in found.says
    assert [finding.id for finding in found.findings] == ["architecture-twins"]
    assert set(found.findings[0].subjects) == {"resnet50", *rivals}


@pytest.mark.parametrize(
    ("metadata", "label", "where"),
    [
        ((("config.json: architecture", "resnetaa50"),), "timm/resnetaa50", "config.json beside the file"),
        ((("config.json: architecture", '"resnet50"'),), "timm/resnet50", "config.json beside the file"),
        ((("arch", "resnet50"),), "torchvision/resnet50", '"arch" in the file'),
        ((("args.model", "'resnetblur50'"),), "timm/resnetblur50", '"args.model" in the file'),
        ((("arch", "timm/resnet50.a1_in1k"),), "timm/resnet50", '"arch" in the file'),
        ((("arch", "hf-hub:timm/resnet50.a1_in1k"),), "timm/resnet50", '"arch" in the file'),
    ],
)
def test_what_names_one_of_the_twins_decides(
    metadata: tuple[tuple[str, str], ...], label: str, where: str, checkpoint: Make, shapes: Of
) -> None:
    plain = checkpoint(shapes("resnet50?num_classes=10"))
    found = recognise(
        replace(plain, metadata=metadata, parts=(Part(name="config.json", nbytes=1, says="read as evidence"),))
    )
    assert best(found).spec.label == f"{label}?num_classes=10" and found.says.endswith(f"It is named in {where}.")
    assert found.findings == () and "torchvision/resnet50" in (label, *best(found).twins)


@pytest.mark.parametrize(
    "text", ["resnet34", "vit_base_patch16_224", "no_such", "x/resnet50", '"', "", "timm/", "a" * 300, "['resnet50']"]
)
def test_a_name_that_does_not_fit_the_shapes_decides_nothing(text: str, checkpoint: Make, shapes: Of) -> None:
    found = recognise(replace(checkpoint(shapes("resnet50")), metadata=(("arch", text),)))
    assert best(found).spec.label == "torchvision/resnet50" and "named in" not in found.says


@pytest.mark.parametrize(
    "target",
    [
        "timm/vit_base_patch16_224?num_classes=5",
        "timm/vit_base_patch16_384?in_channels=1",
        "timm/vit_base_patch16_224?image_size=512&num_classes=3",
        "timm/deit_base_distilled_patch16_224?num_classes=4",
        "timm/levit_256?num_classes=6",
        "timm/tresnet_m?in_channels=4",
        "timm/coatnet_0_rw_224?image_size=448",
        "timm/aimv2_large_patch14_224?num_classes=9",
        "timm/convnext_base?num_classes=12",
        "timm/mobilenetv3_large_100?num_classes=2&in_channels=1",
    ],
)
def test_timm_models_come_back_with_their_settings(target: str, checkpoint: Make, shapes: Of) -> None:
    one = best(recognise(checkpoint(shapes(target))))
    assert one.exact and not one.missing and not one.extra
    name, _, settings = one.spec.label.partition("?")
    wanted, _, asked = target.partition("?")
    assert wanted in (name, *one.twins)
    assert set(filter(None, settings.split("&"))) == set(asked.split("&"))


def test_an_architecture_with_module_in_its_names_is_read_both_ways(checkpoint: Make, shapes: Of) -> None:
    own = shapes("timm/caformer_s18") if "timm/iformer_s" not in ALL else shapes("timm/iformer_s")
    for wrapped in (own, {f"module.{name}": shape for name, shape in own.items()}):
        assert best(recognise(checkpoint(wrapped))).exact


def test_strangers_are_not_named(identify_benchmark: ModuleType, checkpoint: Make) -> None:
    strangers = identify_benchmark.strangers()
    assert len(strangers) >= 8
    for label, own in strangers.items():
        found = recognise(checkpoint(own))
        of_family = {"CIFAR resnet20": "cifar", "GPT-2": "transformers"}.get(label)
        if of_family is not None:
            # A stranger to the index, and one of a family.
            assert best(found).spec.library == of_family
            continue
        assert found.candidates == (), label
        assert found.says.startswith("This is not one of torchvision's or timm's architectures"), label


def test_the_nearest_is_mentioned_only_when_it_is_near(checkpoint: Make) -> None:
    widths = {0: (64, 3), 3: (128, 64), 6: (256, 128)}
    own: Shapes = {f"features.{i}.weight": (o, n, 3, 3) for i, (o, n) in widths.items()}
    own |= {f"features.{i}.bias": (o,) for i, (o, _) in widths.items()}
    own |= {"classifier.weight": (10, 4096), "classifier.bias": (10,)}
    found = recognise(checkpoint(own))
    assert found.candidates == ()
    assert found.says.endswith("the nearest is torchvision's vgg11, of whose 22 tensors 6 fit.")
    assert recognise(checkpoint({"fc.weight": (1000, 512), "fc.bias": (1000,)})).says.endswith(
        "families known beside them."
    )
    last: Shapes = {"classifier.6.weight": (1000, 4096), "classifier.6.bias": (1000,)}
    assert recognise(checkpoint(last)).candidates == ()


def test_a_file_without_a_state_dict_is_an_answer(checkpoint: Make) -> None:
    assert recognise(checkpoint({})).says.startswith("There is no state dict in the file")


def test_the_named_state_dict_is_the_one_recognised(checkpoint: Make, shapes: Of) -> None:
    both = checkpoint(shapes("resnet18"))
    other = replace(checkpoint(shapes("alexnet")).state_dicts[0], path=("ema",))
    found = recognise(replace(both, state_dicts=(*both.state_dicts, other)), other)
    assert (best(found).spec.name, found.state_dict) == ("alexnet", ("ema",))


def test_the_quick_score_is_the_score_of_the_evidence(shapes: Of) -> None:
    index = load_index()
    own = dict(list(shapes("resnet50?num_classes=4").items())[::2]) | {"other.weight": (3, 3), "x.total_ops": (1,)}
    view = View(shapes=own, outside=("apart.weight",), wrapper="", weighty=sum("num_b" not in n for n in own))
    shared = index.shared(own)
    for name in ("resnet50", "resnet18", "fcn_resnet50", "alexnet"):
        entry = index.find(name)
        assert entry is not None
        assert fit(entry, view, shared[entry.layout.number]).score == pytest.approx(compare(entry, view).score)


def test_long_files_and_long_names_end_soon(shapes: Of) -> None:
    own = shapes("resnet18")
    own |= {f"layer{k % 97}.block{k}.weight": (k,) for k in range(20_000)}
    own |= {"a." * 50_000 + str(k): (1,) for k in range(20)}
    one = rank(own, load_index())[0]
    assert (one.spec.name, one.exact, len(one.matched), len(one.extra)) == ("resnet18", False, 122, 20_020)


@pytest.mark.parametrize("label", ALL[::31])
def test_a_slice_of_the_benchmark(label: str, identify_benchmark: ModuleType) -> None:
    index = load_index()
    library, _, name = label.partition("/")
    entry = index.find(name, library=library)
    assert entry is not None
    for damage, spoil in identify_benchmark.SPOILS:
        if "missing" in damage or (damage == "trunk of another model" and library == "timm"):
            continue  # a distilled model without its heads is its plain sibling
        ranked = rank(spoil(entry, random.Random(f"17 {label}")), index)
        assert label in identify_benchmark.labels_of(ranked[0]), damage
        if "10 classes" in damage and entry.heads:
            assert ranked[0].spec.num_classes == 10, damage
        if damage == "1 input channel":
            assert ranked[0].spec.in_channels == (1 if entry.channels else None)
