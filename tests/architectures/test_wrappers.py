"""Segments that come off, and those that must stay."""

from __future__ import annotations

from inspector.architectures.wrappers import contract, views

SEGMENTS = frozenset({"layer1", "conv1", "fc", "weight", "bias", "features", "0", "1", "bn1"})


def test_wrapper_segments_come_off_everywhere() -> None:
    names = ("module.layer1._orig_mod.0.weight", "module.fc.bias")
    assert contract(names, SEGMENTS) == {names[0]: "layer1.0.weight", names[1]: "fc.bias"}
    beside = ("module.fc.weight", "module.conv1.weight", "loss.weight")
    assert list(contract(beside, SEGMENTS).values()) == ["fc.weight", "conv1.weight", "loss.weight"]


def test_a_segment_that_only_contains_a_wrapper_name_stays() -> None:
    names = ("my_module.fc.weight", "modules.fc.weight", "fc.module")
    assert contract(names, SEGMENTS) == {name: name for name in names}


def test_a_wrapper_name_that_an_architecture_uses_stays() -> None:
    names = ("module.fc.weight", "module.fc.bias")
    assert contract(names, SEGMENTS | {"module"}) == {name: name for name in names}


def test_an_only_child_comes_off_unless_it_is_a_known_segment() -> None:
    names = ("net.features.inner.0.weight", "net.features.inner.1.weight", "net.fc.weight")
    assert list(contract(names, SEGMENTS).values()) == ["features.0.weight", "features.1.weight", "fc.weight"]
    known = ("features.0.weight", "features.0.bias")
    assert list(contract(known, SEGMENTS).values()) == list(known)
    siblings = ("student.fc.weight", "teacher.fc.weight")
    assert list(contract(siblings, SEGMENTS).values()) == list(siblings)


def test_names_never_merge() -> None:
    names = ("fc.weight", "module.fc.weight")
    assert contract(names, SEGMENTS) == {name: name for name in names}


def test_the_prefix_with_the_most_known_names_is_tried() -> None:
    known = {("conv1.weight", (8, 3)): 0, ("fc.weight", (2, 8)): 0, ("fc.bias", (2,)): 0}
    shapes = {"a.enc.conv1.weight": (8, 3), "a.enc.fc.weight": (2, 8), "a.enc.fc.bias": (2,), "b.other": (1,)}
    found = {view.wrapper: view for view in views(shapes, ("aside",), known, SEGMENTS)}
    view = found["a.enc."]
    assert view.shapes == {"conv1.weight": (8, 3), "fc.weight": (2, 8), "fc.bias": (2,)}
    assert view.outside == ("b.other", "aside") and view.weighty == 5
    # Without taking a prefix off, every name is inside, but for those that were put aside.
    first = views(shapes, ("aside",), known, SEGMENTS)[0]
    assert len(first.shapes) == 4 and first.outside == ("aside",)
