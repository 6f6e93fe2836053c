"""Classes 77 to 87 of the catalogue: types, packed numbers, adapters, and parts of a network."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from inspector.architectures.types import ArchitectureSpec
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint


@pytest.fixture
def ids():
    return lambda report: {f.id for f in report.findings}


def refused(report):
    assert report.plan is None
    return report.refusal


def test_class_77_another_type(saved, target_of, ids, tiny_cnn):
    state = {n: torch.ones(s, dtype=torch.float16) for n, s in tiny_cnn.items()}
    assert "dtype-differs" in ids(diagnose(saved(state), target_of(tiny_cnn)))
    scaled = {"fc.weight": torch.ones(4, 4).to(torch.float8_e4m3fn), "fc.weight_scale": torch.ones(())}
    assert "float8" in refused(diagnose(saved(scaled), target_of({"fc.weight": (4, 4)})))
    bare = {"fc.weight": scaled["fc.weight"]}
    assert diagnose(saved(bare), target_of({"fc.weight": (4, 4)})).loads


def test_class_78_int8_with_scales(saved, file_of, target_of):
    goal = target_of({"fc.weight": (4, 6), "fc.bias": (4,)})
    weight = torch.ones(4, 6, dtype=torch.int8)
    scaled = {
        "fc.weight": weight,
        "fc.bias": torch.ones(4),
        "fc.scale": torch.ones(()),
        "fc.zero_point": torch.ones(()),
    }
    assert "quantised by torch" in refused(diagnose(saved(scaled), goal))
    assert "whole numbers of eight bits" in refused(
        diagnose(saved({"fc.weight": weight, "fc.bias": torch.ones(4)}), goal)
    )
    packed = file_of(
        {"fc.bias": (4,), "fc.scale": (), "fc.zero_point": ()}, others=("fc._packed_params._packed_params",)
    )
    assert "quantised by torch" in refused(diagnose(packed, goal))


PACKED = {
    "GPTQ": {"qweight": (1, 4), "qzeros": (1, 1), "scales": (1, 4), "g_idx": (6,)},
    "bitsandbytes": {"weight": (12, 1), "weight.absmax": (1,), "weight.quant_map": (16,)},
}


@pytest.mark.parametrize("who", sorted(PACKED))
def test_class_79_packed_weights(file_of, target_of, who):
    ours = {f"l{i}.{leaf}": s for i in range(3) for leaf, s in PACKED[who].items()} | {"norm.weight": (4,)}
    says = refused(
        diagnose(file_of(ours), target_of({f"l{i}.weight": (4, 6) for i in range(3)} | {"norm.weight": (4,)}))
    )
    assert who in says and "3 layers" in says
    assert diagnose(file_of(ours), target_of(ours)).loads


def test_class_80_complex_tensors(saved, target_of, ids):
    state = {"fc.weight": torch.ones(4, 4), "rotation": torch.ones(8, 2, dtype=torch.complex64)}
    report = diagnose(saved(state), target_of({"fc.weight": (4, 4)}), accept=["extra-tensors"])
    assert "complex-tensors" in ids(report)
    goal = target_of({n: tuple(t.shape) for n, t in state.items()})
    wanted = tuple(replace(t, dtype="complex64") if t.name == "rotation" else t for t in goal.tensors)
    assert "complex-tensors" not in ids(diagnose(saved(state), replace(goal, tensors=wanted)))


def lora(start, infix=""):
    found = {}
    for i in range(3):
        found |= {f"{start}blocks.{i}.attn.qkv.lora_A{infix}.weight": (2, 4)}
        found |= {f"{start}blocks.{i}.attn.qkv.lora_B{infix}.weight": (12, 2)}
    return found


def test_class_81_a_full_save_with_adapters(file_of, target_of, tiny_vit, placed_as, ids):
    goal = tiny_vit()
    truth = {n: "base_model.model." + n.replace(".qkv.", ".qkv.base_layer.") for n in goal}
    ours = {truth[n]: s for n, s in goal.items()} | lora("base_model.model.", ".default")
    report = diagnose(file_of(ours), target_of(goal))
    assert report.plan.needs_accept and "adapter-inside" in ids(report)
    done = diagnose(file_of(ours), target_of(goal), accept=["extra-tensors"])
    assert done.plan.complete and placed_as(done) == truth
    assert any("called default" in f.says for f in done.findings)


def test_class_82_an_adapters_own_name(file_of, target_of, placed_as):
    plain, infix = lora("base_model.model."), lora("base_model.model.", ".default")
    for ours, goal in ((plain, infix), (infix, plain)):
        report = diagnose(file_of(ours, ordered=False), target_of(goal))
        assert report.plan.complete and placed_as(report) == dict(zip(goal, ours, strict=True))


def test_class_83_an_adapter_alone(file_of, target_of, tiny_vit):
    says = refused(diagnose(file_of(lora("base_model.model.")), target_of(tiny_vit())))
    assert "an adapter of rank 2 for 3 layers (qkv)" in says
    kohya = {
        f"lora_unet_down_{i}_to_q.lora_{way}.weight": s
        for i in range(2)
        for way, s in (("down", (4, 8)), ("up", (8, 4)))
    }
    kohya |= {f"lora_unet_down_{i}_to_q.alpha": () for i in range(2)}
    assert "an adapter of rank 4 for 2 layers" in refused(diagnose(file_of(kohya), target_of(tiny_vit())))


def test_class_84_names_like_a_wrappers_stay(file_of, target_of, tiny_vit):
    extra = {
        "lora_head.weight": (3, 4),
        "my_module.weight": (2, 4),
        "module.weight": (5, 4),
        "flat_param.weight": (2, 2),
    }
    goal = tiny_vit() | extra
    report = diagnose(file_of(goal), target_of(goal))
    assert report.loads and report.plan.rules == ()


def test_class_85_old_and_new_archives(tmp_path, target_of):
    state = {"fc.weight": torch.rand(4, 4)}
    for new in (True, False):
        torch.save(state, tmp_path / "net.pth", _use_new_zipfile_serialization=new)
        assert diagnose(open_checkpoint(tmp_path / "net.pth"), target_of({"fc.weight": (4, 4)})).loads


def test_class_86_a_part_of_the_network(file_of, target_of, tiny_vit, ids):
    part = {n: s for n, s in tiny_vit().items() if n.startswith("blocks.")}
    report = diagnose(file_of(part), target_of(tiny_vit()))
    assert not report.plan.complete and "missing-tensors" in ids(report)
    assert f"{len(part)} of {len(tiny_vit())} tensors" in report.says


def test_class_87_nothing_in_common(file_of, target_of, tiny_vit):
    says = refused(diagnose(file_of({"a.b": (3,), "c.d": (7, 9)}), target_of(tiny_vit())))
    assert f"strict=False would load 0 of {len(tiny_vit())}" in says


def twin(report):
    found = [f for f in report.findings if ("about", "architecture-twins") in f.evidence]
    return [(f.severity.value, f.says) for f in found]


def test_networks_with_the_same_names_and_shapes_are_named(file_of, architecture, shapes):
    report = diagnose(file_of(shapes("resnet50")), architecture("resnet50"))
    ((severity, says),) = twin(report)
    assert severity == "notice" and "resnetaa50" in says and report.loads
    stated = replace(file_of(shapes("resnet50")), metadata=(("arch", "'resnetaa50'"),))
    assert [severity for severity, _ in twin(diagnose(stated, architecture("resnet50")))] == ["warning"]
    assert twin(diagnose(file_of(shapes("vgg13")), architecture("vgg13"))) == []


def test_a_target_that_is_no_architecture_has_no_twins(file_of, target_of, shapes):
    goal = target_of(shapes("resnet18"))
    assert twin(diagnose(file_of(shapes("resnet18")), goal)) == []
    unknown = replace(goal, spec=ArchitectureSpec(library="torchvision", name="nothing"))
    assert twin(diagnose(file_of(shapes("resnet18")), unknown)) == []
