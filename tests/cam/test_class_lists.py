"""Well-known class lists, and what this project's own samples call their classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.cam.inputs.class_lists import CLASS_LISTS, list_holding, list_named, lists_of, suggestion
from inspector.cam.inputs.classes import class_names
from inspector.cli.options import open_file

FILES = Path(__file__).resolve().parents[2] / "sample_models" / "files"


def test_every_list_has_as_many_different_names_as_it_says() -> None:
    for one in CLASS_LISTS:
        assert len(one.names()) == one.count and list_holding(one.names()) is one and list_named(one.id) is one
    assert len(set(CLASS_LISTS[0].names())) == 10 and len(set(CLASS_LISTS[1].names())) == 100


def test_the_lists_are_those_of_torchvision_and_of_the_data_sets() -> None:
    from torchvision.models import ResNet50_Weights

    by_id = {one.id: one.names() for one in CLASS_LISTS}
    assert by_id["imagenet-1k"] == tuple(ResNet50_Weights.IMAGENET1K_V2.meta["categories"])
    assert (by_id["cifar-10"][3], by_id["cifar-10"][9]) == ("cat", "truck")
    # CIFAR-100's fine labels are numbered by the alphabet of their names as the data set writes them.
    assert [name.replace(" ", "_") for name in by_id["cifar-100"]] == sorted(
        name.replace(" ", "_") for name in by_id["cifar-100"]
    )
    assert (by_id["cifar-100"][0], by_id["cifar-100"][52], by_id["cifar-100"][99]) == ("apple", "oak tree", "worm")


def test_nothing_is_suggested_where_no_list_fits() -> None:
    assert lists_of(4) == () and suggestion(4) == "" and list_holding(("a", "b")) is None
    assert "as many as CIFAR-100 has: perhaps those" in suggestion(100)


@pytest.mark.parametrize("name", ["shapes.pth", "shapes_dp.pth.tar", "shapes_module.pth", "shapes_vit.safetensors"])
def test_every_sample_names_its_classes_whether_or_not_the_file_does(name: str) -> None:
    if not (FILES / name).is_file():
        pytest.fail("The sample files are missing: python sample_models/build.py derive")
    assert class_names(None, open_file(str(FILES / name), digest=True)) == ("circle", "square", "triangle", "star")


def test_a_file_that_only_has_a_samples_name_has_no_names(tmp_path: Path) -> None:
    other = (FILES / "shapes_fp16.pth").read_bytes()
    (tmp_path / "shapes.pth").write_bytes(other)
    assert class_names(None, open_file(str(tmp_path / "shapes.pth"), digest=True)) == ()
    (tmp_path / "net.pth").write_bytes((FILES / "shapes.pth").read_bytes())
    assert class_names(None, open_file(str(tmp_path / "net.pth"), digest=True)) == ()
