"""False alarms are counted: of healthy networks nothing is said in error or warning."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import torch
import torchvision

from inspector.checkpoint.types import StateRole
from inspector.findings import Finding, Severity
from inspector.health.examine import examine
from inspector.readers import open_checkpoint
from tests.health.zoo import builders, recipes, trained

SAMPLES = Path(__file__).resolve().parents[2] / "sample_models" / "files"
# Samples of what can be wrong; the rest are healthy.
NOT_HEALTHY = {
    "shapes_sick.pth": "made sick",
    "truncated.pth": "cut short",
    "shapes_run.zip": "several files, one of them cut short: a test of their own",
    **dict.fromkeys(("download_page.pth", "lfs_pointer.bin", "picture.pth", ".made"), "no checkpoint"),
}


def alarms(path: Path) -> list[str]:
    """What is said in error or warning of any set of weights in the file."""
    checkpoint = open_checkpoint(path)
    states = [s for s in checkpoint.state_dicts if s.role in (StateRole.WEIGHTS, StateRole.EMA, StateRole.OTHER)]
    found: list[Finding] = [f for state in states or [None] for f in examine(checkpoint, state).findings]
    return [f"{f.id}: {f.says}" for f in found if f.severity.rank >= Severity.WARNING.rank]


@pytest.mark.parametrize("name", recipes())
def test_small_networks_of_many_kinds(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    torch.save(recipes()[name](), tmp_path / "made.pth")
    assert alarms(tmp_path / "made.pth") == []


@pytest.mark.parametrize("path", sorted(p for p in SAMPLES.glob("*.*") if p.is_file()), ids=lambda p: p.name)
def test_the_trained_samples(path: Path) -> None:
    if path.name in NOT_HEALTHY:
        pytest.skip(NOT_HEALTHY[path.name])
    assert alarms(path) == []


def test_the_checkpoints_of_the_sample_run(tmp_path: Path) -> None:
    with zipfile.ZipFile(SAMPLES / "shapes_run.zip") as archive:
        archive.extractall(tmp_path)
    whole = sorted(path for path in tmp_path.rglob("epoch_*.pth") if path.name != "epoch_5.pth")
    assert len(whole) == 7
    assert {path.name: alarms(path) for path in whole} == {path.name: [] for path in whole}


@pytest.mark.parametrize(
    "name", ["resnet18", "shufflenet_v2_x0_5", "squeezenet1_1", "mobilenet_v3_small", "mnasnet0_5"]
)
def test_builders_as_they_begin(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    torch.save(torchvision.models.get_model(name, weights=None).state_dict(), tmp_path / "made.pth")
    assert alarms(tmp_path / "made.pth") == []


def test_every_builder_as_it_begins(thorough: bool, tmp_path: Path) -> None:
    if not thorough:
        pytest.skip("all of torchvision: an hour")
    found = {}
    for name, build in builders():
        torch.manual_seed(0)
        torch.save(build().state_dict(), tmp_path / "made.pth")
        found[name] = alarms(tmp_path / "made.pth")
    assert {name: said for name, said in found.items() if said} == {}


def test_every_small_builder_after_twenty_steps(thorough: bool, tmp_path: Path) -> None:
    if not thorough:
        pytest.skip("twenty steps of each classifier under 15 million parameters: half an hour")
    found = {}
    for name, build in builders(15e6):
        if name.startswith(("rcnn", "ssd", "raft", "lraspp", "fcn", "deeplab", "fcos", "retina")):
            continue
        torch.manual_seed(0)
        model = build()
        side = 299 if name.startswith("inception") else 64
        try:
            torch.save(trained(model, side=side), tmp_path / "made.pth")
        except RuntimeError:
            continue  # Takes no pictures of that size, or a film.
        found[name] = alarms(tmp_path / "made.pth")
    assert len(found) > 15
    assert {name: said for name, said in found.items() if said} == {}
