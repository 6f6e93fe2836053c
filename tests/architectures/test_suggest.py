"""Near misses."""

from __future__ import annotations

from inspector.architectures.suggest import suggest

KNOWN = ("resnet18", "resnet34", "vgg16", "mobilenet_v3_small", *(f"model{i}" for i in range(9)))


def test_case_and_separators_do_not_matter() -> None:
    assert suggest("ResNet-34", KNOWN, most=1) == "Did you mean resnet34?"
    assert suggest("mobilenetv3 small", KNOWN, most=1) == "Did you mean mobilenet_v3_small?"


def test_several_are_listed_best_first() -> None:
    assert suggest("resnet1", KNOWN, most=2) == "Did you mean resnet18 or resnet34?"


def test_nothing_near_is_nothing_said_unless_few_are_known() -> None:
    assert suggest("xyzzy", KNOWN) == ""
    assert suggest("xyzzy", ("alpha", "beta")) == "Known are alpha, beta."
