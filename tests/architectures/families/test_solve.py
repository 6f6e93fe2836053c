"""Settings from shapes and back, on templates small enough to compute by hand."""

from __future__ import annotations

import pytest

from inspector.architectures.families import FAMILIES
from inspector.architectures.families.building import builder_of
from inspector.architectures.families.entry import Family, Optional, Repeat, Row, When
from inspector.architectures.families.expressions import evaluate, parse, solve
from inspector.architectures.families.match import find_families
from inspector.architectures.families.solve import all_settings, expand, settings_of, solve_family, unsolved, values_of
from inspector.architectures.index import load_index
from inspector.errors import UsageError

Shapes = dict[str, tuple[int, ...]]

TOY = Family(
    library="toy",
    name="net",
    title="a toy",
    summary="{stages} stages",
    anchors=("@stage{s}.{b}.up.weight",),
    base="body.",
    source="this test",
    rows=(
        Row("@stem.weight", ("width[0]", "in_channels", 3, 3)),
        Repeat(
            "s",
            "stages",
            (
                Repeat(
                    "b",
                    "blocks[s]",
                    (
                        Row("@stage{s}.{b}.up.weight", ("4*width[s]", "width[s-1] if b == 0 else width[s]")),
                        Row("@stage{s}.{b}.seq.{2*b+1}.bias", ("width[s]",)),
                        When(
                            "b == 0 and width[s] != width[s-1]",
                            (Row("@stage{s}.{b}.skip.weight", ("width[s]", "width[s-1]")),),
                        ),
                        Optional("scale[s]", (Row("@stage{s}.{b}.gamma", ("width[s]",)),)),
                    ),
                ),
            ),
            start=1,
        ),
        Optional("head", (Row("fc.weight", ("num_classes", "width[stages]")), Row("fc.bias", ("num_classes",)))),
    ),
)


def by_hand() -> Shapes:
    """width 8, 8, 24; blocks 2 and 1; gammas in the second stage; 5 classes; 2 input channels."""
    return {
        "body.stem.weight": (8, 2, 3, 3),
        "body.stage1.0.up.weight": (32, 8),
        "body.stage1.0.seq.1.bias": (8,),
        "body.stage1.1.up.weight": (32, 8),
        "body.stage1.1.seq.3.bias": (8,),
        "body.stage2.0.up.weight": (96, 8),
        "body.stage2.0.seq.1.bias": (24,),
        "body.stage2.0.skip.weight": (24, 8),
        "body.stage2.0.gamma": (24,),
        "fc.weight": (5, 24),
        "fc.bias": (5,),
    }


WANTED = {
    "in_channels": 2,
    "stages": 2,
    "width": (8, 8, 24),
    "blocks": (2, 1),
    "scale": (0, 1),
    "head": True,
    "num_classes": 5,
}


def names_and_shapes(family: Family, settings: dict[str, object], bare: bool = False) -> Shapes:
    values = values_of(family, settings, bare=bare)  # type: ignore[arg-type]
    return {one.tensor.name: one.tensor.shape or () for one in expand(family, values, bare=bare)}


def test_every_symbol_is_solved_and_written_back_in_order() -> None:
    own = by_hand()
    settings = settings_of(TOY, solve_family(TOY, own, bare=False), bare=False)
    assert settings == WANTED
    assert list(names_and_shapes(TOY, dict(settings)).items()) == list(own.items())


def test_the_bare_spelling_is_a_setting() -> None:
    own = {name.removeprefix("body."): shape for name, shape in by_hand().items()}
    settings = settings_of(TOY, solve_family(TOY, own, bare=True), bare=True)
    assert settings == {**WANTED, "bare": True}
    assert list(names_and_shapes(TOY, dict(settings), bare=True).items()) == list(own.items())


def test_the_majority_decides_and_the_odd_one_is_reshaped() -> None:
    own = by_hand() | {"body.stage2.0.gamma": (7,)}
    assert settings_of(TOY, solve_family(TOY, own, bare=False), bare=False) == WANTED
    (found,) = find_families(own, (TOY,)) or [None]
    assert found is not None
    assert found.candidate.reshaped == (("body.stage2.0.gamma", (7,), (24,)),) and not found.candidate.exact


def test_a_missing_tensor_is_missing_and_its_sizes_come_from_others() -> None:
    own = by_hand()
    del own["body.stage1.0.up.weight"], own["body.stem.weight"]
    (found,) = find_families(own, (TOY,))
    # Nobody tells the channels of the picture; the stem's width is filled up with what most others have.
    assert found.candidate.missing == ("body.stem.weight", "body.stage1.0.up.weight")
    assert found.candidate.spec.in_channels is None and found.candidate.extra == ()


@pytest.mark.parametrize("prefix", ["", "module.", "model.net.", "0."])
def test_prefixes_come_off(prefix: str) -> None:
    (found,) = find_families({prefix + name: shape for name, shape in by_hand().items()}, (TOY,))
    assert (found.candidate.exact, found.candidate.wrapper) == (True, prefix)


def test_a_wrapper_in_the_middle_comes_off() -> None:
    own = {name.replace("up.", "_orig_mod.up."): shape for name, shape in by_hand().items()}
    (found,) = find_families(own, (TOY,))
    assert found.candidate.exact


def test_names_that_only_look_alike_are_not_rows() -> None:
    own = by_hand() | {"body.stage1.00.up.weight": (32, 8), "body.stage0.0.up.weight": (32, 8)}
    own |= {"body.stage1.1.seq.2.bias": (8,)}
    (found,) = find_families(own, (TOY,))
    assert set(found.candidate.extra) == set(own) - set(by_hand())
    assert find_families({"stage.weight": (3, 3), "fc.weight": (5, 24)}, (TOY,)) == []


def test_far_numbers_are_no_layers_and_cost_nothing() -> None:
    own = by_hand() | {f"body.stage{9**9 + i}.0.up.weight": (32, 8) for i in range(3)}
    own |= {"body.stage99999999999999999999.0.up.weight": (32, 8)}
    settings = settings_of(TOY, solve_family(TOY, own, bare=False), bare=False)
    assert settings["stages"] == 2


def test_many_independent_indices_do_not_multiply() -> None:
    grid = Family(
        library="toy",
        name="grid",
        title="a grid",
        summary="",
        anchors=("a{i}.{j}.weight",),
        source="this test",
        rows=(Repeat("i", "rows", (Repeat("j", "columns", (Row("a{i}.{j}.weight", ("width",)),)),)),),
    )
    own: Shapes = {f"a{i}.0.weight": (4,) for i in range(3000)} | {f"a0.{i}.weight": (4,) for i in range(3000)}
    assert find_families(own, (grid,)) == []
    with pytest.raises(UsageError, match="more than any model has"):
        values_of(TOY, {"stages": 9_000_000, "width": 3}, bare=False)


def test_what_is_still_needed_is_named() -> None:
    assert unsolved(TOY, {}, bare=False) == ("stages", "blocks", "width", "in_channels")
    assert unsolved(TOY, {key: value for key, value in WANTED.items() if key != "num_classes"}, bare=False) == (
        "num_classes",
    )
    assert unsolved(TOY, WANTED, bare=False) == ()


def test_builders_get_whole_tuples_and_every_flag() -> None:
    settings = {**WANTED, "width": 8, "scale": True}
    del settings["head"]
    full = all_settings(TOY, settings, bare=False)  # type: ignore[arg-type]
    assert (full["width"], full["scale"], full["head"], full["blocks"]) == ((8, 8, 8), (1, 1), False, (2, 1))


def test_a_tuple_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(UsageError, match="toy/net needs 2 values of blocks, not 3"):
        values_of(TOY, {**WANTED, "blocks": (1, 2, 3)}, bare=False)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "size", "known", "answer"),
    [
        ("3*a", 12, {}, 4),
        ("3*a", 13, {}, None),
        ("a-b", 5, {"b": 2}, 7),
        ("b-a", 5, {"b": 9}, 4),
        ("(a+1)*b", 12, {"b": 3}, 3),
        ("a*b", 12, {}, None),
        ("a//2", 6, {}, None),
        ("a if b > 1 else 7", 6, {"b": 2}, 6),
        ("a if b > 1 else 7", 6, {"b": 1}, None),
    ],
)
def test_sizes_tell_their_symbol(text: str, size: int, known: dict[str, int], answer: int | None) -> None:
    values = {(name, ()): value for name, value in known.items()}
    found = solve(parse(text), size, values, {})
    assert found == (None if answer is None else (("a", ()), answer))
    if answer is not None:
        assert evaluate(parse(text), {**values, ("a", ()): answer}, {}) == size


@pytest.mark.parametrize("text", ["f(a)", "a.b", "'x'", "1.5", "[a]", "lambda: 1"])
def test_nothing_else_is_an_expression(text: str) -> None:
    with pytest.raises(ValueError, match="no expression"):
        parse(text)


def test_every_shipped_template_can_be_read() -> None:
    for family in FAMILIES:
        for bare in (False, True):
            assert unsolved(family, {}, bare=bare), family.label
    assert len({one.label for one in FAMILIES}) == len(FAMILIES)


def test_every_builder_that_is_named_is_there() -> None:
    for family in FAMILIES:
        if family.builder:
            assert callable(builder_of(family)), family.label


def test_no_family_has_the_name_of_a_builder() -> None:
    assert not {family.label for family in FAMILIES} & set(load_index().builders)
