"""Which class folder is which output: by names, WordNet's ids, numbers, sorted order; else refused with both lists."""

from __future__ import annotations

import pytest

from inspector.cam.inputs.class_lists import list_named
from inspector.errors import UsageError
from inspector.evaluate.mapping import By, check_given, map_classes
from inspector.evaluate.wordnet_ids import WORDNET_IDS

SHAPES = ("circle", "square", "star", "triangle")


def test_nobody_names_them_so_sorted_order_is_taken_and_said() -> None:
    found = map_classes(SHAPES, 4)
    assert (found.by, found.indices, found.names, found.reordered) == (By.ORDER, (0, 1, 2, 3), SHAPES, False)
    assert "in sorted order, as ImageFolder has it" in found.says


def test_a_head_with_names_in_another_order_is_matched_by_name_and_told() -> None:
    found = map_classes(SHAPES, 4, ("triangle", "circle", "square", "star"))
    assert (found.by, found.indices, found.reordered) == (By.NAMES, (1, 2, 3, 0), True)
    assert "in another order than the sorted folders: folder 0 is output 1, 'circle'" in found.says
    same = map_classes(SHAPES, 4, SHAPES)
    assert not same.reordered and "another order" not in same.says


def test_some_of_the_classes_are_enough_where_names_say_which() -> None:
    found = map_classes(("square", "star"), 4, SHAPES)
    assert (found.indices, found.missing) == ((1, 2), (0, 3))


@pytest.mark.parametrize(
    "stated", [("Hot_Dog", "ice cream"), ("hot-dog", "Ice__Cream "), ("hot dog, frank", "ice cream")]
)
def test_names_are_compared_as_people_write_them(stated: tuple[str, ...]) -> None:
    assert map_classes(("hot_dog", "ice_cream"), 2, stated).indices == (0, 1)


def test_labels_that_do_not_fit_are_refused_with_both_lists() -> None:
    with pytest.raises(UsageError) as found:
        map_classes(("cat", "dog", "star", "square"), 4, SHAPES)
    says = found.value.says
    assert "4 class folders: cat, dog, star, square" in says
    assert "4 outputs: circle, square, star, triangle" in says
    assert "Not among the outputs: cat, dog." in says


def test_another_count_is_refused_with_both_sides() -> None:
    with pytest.raises(UsageError, match=r"2 class folders: train, val\. The head has 4 outputs, which nobody names"):
        map_classes(("train", "val"), 4)


def test_a_name_of_two_outputs_is_not_guessed() -> None:
    with pytest.raises(UsageError, match="those of two outputs"):
        map_classes(("crane", "dog"), 3, ("crane", "dog", "crane"))
    with pytest.raises(UsageError):
        map_classes(("hot dog", "hot_dog"), 2, ("hot dog", "cat"))


def test_names_of_another_count_are_not_used_and_said() -> None:
    found = map_classes(SHAPES, 4, ("a", "b"))
    assert found.by is By.ORDER and "2 names are stated for 4 outputs: they are not used." in found.says


def test_numbers_are_not_guessed_where_they_sort_otherwise() -> None:
    folders = tuple(sorted(str(n) for n in range(11)))
    with pytest.raises(UsageError, match=r"folder '10' may be output 2, as ImageFolder counts, or output 10"):
        map_classes(folders, 11)
    padded = tuple(f"{n:02d}" for n in range(11))
    assert map_classes(padded, 11).indices == tuple(range(11))
    with pytest.raises(UsageError, match="folder '10' may be output 0, as ImageFolder counts, or output 1"):
        map_classes(("10", "9"), 2)
    assert map_classes(folders, 11, [str(n) for n in range(11)]).indices == tuple(int(name) for name in folders)


def test_imagenet_by_wordnet_by_name_by_number() -> None:
    names = list_named("imagenet-1k").names()  # type: ignore[union-attr]
    found = map_classes(("n01440764", "n02102040", "n15075141"), 1000)
    assert (found.by, found.indices) == (By.WORDNET, (0, 217, 999))
    assert [names[index] for index in found.indices] == ["tench", "English springer", "toilet tissue"]
    assert map_classes(("n01440764",), 1000, names).by is By.WORDNET
    assert map_classes(("English_springer", "tench"), 1000).indices == (217, 0)
    synonyms = ["tench, Tinca tinca", *names[1:999], "toilet tissue, toilet paper"]
    assert map_classes(("tench", "toilet tissue"), 1000, synonyms).indices == (0, 999)
    assert map_classes(("n01440764",), 1000, synonyms).indices == (0,)
    found = map_classes(("10", "9", "999"), 1000)
    assert (found.by, found.indices) == (By.INDICES, (10, 9, 999))
    with pytest.raises(UsageError, match="ImageNet-1k has no n99999999"):
        map_classes(("n01440764", "n99999999"), 1000)
    with pytest.raises(UsageError, match="1,000 outputs: mine 0, mine 1"):
        map_classes(("n01440764",), 1000, [f"mine {n}" for n in range(1000)])
    with pytest.raises(UsageError, match="which nobody names"):
        map_classes(("1000",), 1000)


def test_wordnet_ids_are_a_thousand_in_sorted_order() -> None:
    assert len(set(WORDNET_IDS)) == 1000 and list(WORDNET_IDS) == sorted(WORDNET_IDS)


@pytest.mark.parametrize("outputs", [0, 1])
def test_a_single_number_is_no_class(outputs: int) -> None:
    with pytest.raises(UsageError, match="need a score for each class"):
        map_classes(("no", "yes"), outputs)


def test_given_names_that_do_not_fit_the_outputs_are_refused() -> None:
    with pytest.raises(
        UsageError, match=r"4 names are given for 7 outputs: a, b, c, d\. The checkpoint's own names: x, y"
    ):
        check_given(("a", "b", "c", "d"), 7, ("x", "y"))
    with pytest.raises(UsageError, match="The checkpoint names none"):
        check_given(("a",), 2, ())
    check_given(("a", "b"), 2, ("x", "y", "z"))
