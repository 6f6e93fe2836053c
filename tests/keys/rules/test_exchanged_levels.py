"""Two numbered levels in the other nesting: each number goes with its word, or the user is asked."""

from __future__ import annotations

import pytest

from inspector.keys.diagnose import diagnose

LAYER = {"weight": (6, 6), "bias": (6,)}


def grid(template: str, *, exchanged: bool = False, count: int = 3) -> dict[str, tuple[int, ...]]:
    """template: of both numbers, the target's outer one first. exchanged: listed by the inner one."""
    places = [(b, a) if exchanged else (a, b) for a in range(count) for b in range(count)]
    return {f"{template.format(*at)}.{leaf}": shape for at in places for leaf, shape in LAYER.items()}


def truth(ours: str, theirs: str, count: int = 3) -> dict[str, str]:
    return {
        f"{theirs.format(a, b)}.{leaf}": f"{ours.format(a, b)}.{leaf}"
        for a in range(count)
        for b in range(count)
        for leaf in LAYER
    }


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("blocks.{1}.stages.{0}", "stages.{0}.blocks.{1}"),
        ("expert{1}.layer{0}", "layers.{0}.experts.{1}"),
        ("expert_{1}.block_{0}", "layers.{0}.experts.{1}"),
        ("stage{1}.branch{0}", "branches.{0}.stages.{1}"),
        ("stage{1}_branch{0}", "branches.{0}.stages.{1}"),
        ("layer{1}.disc{0}", "discriminators.{0}.layers.{1}"),
        ("conv{1}.stream{0}", "streams.{0}.convs.{1}"),
        ("block{1}.enc{0}", "encoders.{0}.blocks.{1}"),
        ("block{1}.repeat{0}", "repeats.{0}.blocks.{1}"),
        ("net.experts.{1}.layers.{0}.mlp", "layers.{0}.experts.{1}.mlp"),
    ],
)
@pytest.mark.parametrize("ordered", [False, True])
def test_a_number_goes_with_its_word(ours, theirs, count, ordered, file_of, target_of, placed_as):
    for one, other in ((ours, theirs), (theirs, ours)):
        file = file_of(grid(one, exchanged=True, count=count), ordered=ordered)
        report = diagnose(file, target_of(grid(other, count=count)))
        assert report.plan.complete and not report.plan.needs_accept
        assert placed_as(report) == truth(one, other, count)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("{0}.{1}", "layers.{0}.experts.{1}"),
        ("layers.{0}.experts.{1}", "{0}.{1}"),
        # FocalNet's words in two libraries: any level of blocks is called a layer.
        ("stages.{0}.layers.{1}", "layers.{0}.blocks.{1}"),
        ("branches.{0}.layers.{1}", "layers.{0}.experts.{1}"),
    ],
)
def test_a_square_whose_words_do_not_tell_is_asked_about_with_both_readings(
    ours, theirs, file_of, target_of, placed_as
):
    file, goal = file_of(grid(ours), ordered=False), target_of(grid(theirs))
    report = diagnose(file, goal)
    assert not report.plan.complete and [q.id for q in report.plan.ambiguities] == ["exchanged-levels"]
    same = diagnose(file, goal, choose={"exchanged-levels": "outer-is-outer"})
    assert same.plan.complete and placed_as(same) == truth(ours, theirs)
    other = diagnose(file, goal, choose={"exchanged-levels": "outer-is-inner"})
    turned = theirs.format("{1}", "{0}")
    assert other.plan.complete and placed_as(other) == truth(ours, turned)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("stages.{0}.blocks.{1}", "layers.{0}.units.{1}"),
        ("stage{0}.block{1}", "stages.{0}.blocks.{1}"),
        ("repeat{0}.block{1}", "repeats.{0}.blocks.{1}"),
        ("module.stages.{0}.blocks.{1}", "stages.{0}.blocks.{1}"),
        ("{0}.{1}", "layers.{0}.{1}"),
    ],
)
def test_levels_of_one_nesting_are_left_alone(ours, theirs, file_of, target_of, placed_as):
    report = diagnose(file_of(grid(ours)), target_of(grid(theirs)))
    assert report.plan.complete and not report.plan.needs_accept and placed_as(report) == truth(ours, theirs)


def test_shapes_that_tell_the_levels_apart_are_not_asked_about(file_of, target_of, placed_as):
    """FocalNet's words, and stages of two widths."""
    ours = {f"stages.{a}.layers.{b}.weight": (4 + a, 4 + a) for a in range(2) for b in range(2)}
    theirs = {f"layers.{a}.blocks.{b}.weight": (4 + a, 4 + a) for a in range(2) for b in range(2)}
    report = diagnose(file_of(ours), target_of(theirs))
    assert report.plan.complete and placed_as(report) == dict(zip(theirs, ours, strict=True))


def test_a_word_that_begins_as_anothers_and_is_known_is_not_its_beginning(file_of, target_of, placed_as):
    """units.N.layernorm_N beside layers.N.normN: a layernorm is a norm, and no layer."""
    cells = [(a, b) for a in range(3) for b in (1, 2, 3)]
    ours = {f"dec.units.{a}.layernorm_{b}.{x}": (8,) for a, b in cells for x in ("weight", "bias")}
    goal = {f"decoder.layers.{a}.norm{b}.{x}": (8,) for a, b in cells for x in ("weight", "bias")}
    rest = {f"units.{a}.fc.weight": (8, 8) for a in range(3)}
    ours |= {f"dec.{name}": shape for name, shape in rest.items()}
    goal |= {f"decoder.{name.replace('units', 'layers')}": shape for name, shape in rest.items()}
    report = diagnose(file_of(ours), target_of(goal))
    placed = placed_as(report)
    assert report.plan is not None
    assert all(
        placed.get(f"decoder.layers.{a}.norm{b}.{x}", f"dec.units.{a}.layernorm_{b}.{x}")
        == f"dec.units.{a}.layernorm_{b}.{x}"
        for a, b in cells
        for x in ("weight", "bias")
    )
    assert "exchanged-levels" not in {use.id for use in report.plan.rules}
