"""Work is counted as it is done, one bar goes evenly through all of it, and it can be stopped everywhere."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from inspector.cam.report import Options
from inspector.cam.trust import cost as counting
from inspector.cam.trust.cost import Ledger, Pace, Work, at_once
from inspector.cam.trust.infill import impute
from inspector.cam.trust.measures import MEASURES
from inspector.progress import Stopped
from tests.cam.measuring import assessed, priced


class Counting(nn.Module):
    """Says how many pictures went through it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(8, 4)
        self.seen: list[int] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x.shape[0])
        found: Tensor = self.head(self.body(x).mean(dim=(2, 3)))
        return found


@pytest.fixture
def net() -> Counting:
    return Counting().eval()


@pytest.fixture
def picture() -> Tensor:
    return torch.randn(1, 3, 24, 32, generator=torch.Generator().manual_seed(5))


BOTH = ("body.0", "body.1")
PACE = Pace(one_pass=1.0, one_map=3.0, other_map=3.0, fill=0.5, weight=1e-3)


def test_passes_are_counted_as_they_are_run(net: Counting, picture: Tensor) -> None:
    found = priced(net, picture, layer="body.1", randomise=False, compare=False)
    assert found.seconds > 0
    net.seen.clear()
    trust = assessed(net, picture, layer="body.1", target=1, randomise=False, compare=False, timed=found.pace)
    assert trust.passes == found.passes
    # Eleven maps (eight of noise) take 2 + 2 + 25 + 25 + 8 passes, the test by chance 512 for all of them; the map
    # itself, and once more for each try of the sensitivity.
    wanted = 11 * 62 + 512 + 3 * (1 + 8)
    assert found.passes == wanted
    # A map counts as three passes: its backward takes two. Each of two scenes has one forward of its own.
    assert sum(net.seen) == 11 * 62 + 512 + (1 + 8) + 2


def test_a_method_that_is_smoothed_and_fused_costs_more(net: Counting, picture: Tensor) -> None:
    passes = {
        options: priced(net, picture, layer="body.1", layers=BOTH, options=options, compare=False).passes
        for options in (Options(), Options(augmented=True), Options(augmented=True, fusion="mean"))
    }
    base = 11 * 62 + 512
    one, seven, fourteen = passes.values()
    assert (seven - base, fourteen - base) == (7 * (one - base), 14 * (one - base))


def test_the_bar_never_goes_back_and_reaches_every_part(net: Counting, picture: Tensor) -> None:
    seen: list[float] = []
    notes: list[str] = []

    def report(done: int, total: int | None, note: str) -> None:
        seen.append(done / total if total else 0.0)
        notes.append(note)

    for options in (Options(), Options(augmented=True, fusion="mean")):
        seen.clear()
        assessed(net, picture, layer="body.1", layers=BOTH, options=options, timed=PACE, progress=report)
        assert all(a <= b for a, b in pairwise(seen))
        assert seen[0] == 0 and 0.9 < seen[-1] <= 1
        # No jump: with these times no single piece between two reports is a tenth of all.
        assert max(b - a for a, b in pairwise(seen)) < 0.1
    assert {"removing pixels", "forgetting what was learned", "comparing the methods"} <= set(notes)


def test_pieces_share_one_bar_by_their_time() -> None:
    seen: list[tuple[int, int | None]] = []
    ledger = Ledger(lambda done, total, note: seen.append((done, total)), PACE, Work(passes=4, fills=2, maps=1))
    first, second = ledger.begin(Work(passes=4)), ledger.begin(Work(fills=2, maps=1))
    first(1, 4, "")
    second(0, 2, "")
    second(1, 2, "")
    second.within(1, 2, "")
    first(0, 4, "")
    assert seen == [(1000, 8000), (4000, 8000), (6000, 8000), (7000, 8000), (7000, 8000)]


@pytest.mark.parametrize("where", ["removing pixels", "forgetting what was learned", "comparing the methods"])
def test_it_stops_where_it_is_asked_to(net: Counting, picture: Tensor, where: str) -> None:
    calls: list[str] = []

    def stop(_done: int, _total: int | None, note: str) -> None:
        calls.append(note)
        if calls.count(where) == 3:
            raise Stopped

    with pytest.raises(Stopped):
        assessed(net, picture, layer="body.1", progress=stop, timed=PACE)
    assert calls.count(where) == 3 and not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())


def test_filling_in_can_be_stopped_between_its_steps() -> None:
    steps: list[int] = []

    def pause() -> None:
        steps.append(1)
        if len(steps) == 2:
            raise Stopped

    mask = torch.ones(64, 64, dtype=torch.bool)
    mask[0] = False
    with pytest.raises(Stopped):
        impute(torch.rand(3, 64, 64), mask, pause)


def test_large_tensors_are_drawn_in_pieces(monkeypatch: pytest.MonkeyPatch, net: Counting, picture: Tensor) -> None:
    whole = assessed(net, picture, layer="body.1", measures=(), compare=False, timed=PACE).stages
    calls: list[str] = []
    monkeypatch.setattr("inspector.cam.trust.randomise._DRAWN", 10)
    assessed(
        net, picture, layer="body.1", measures=(), compare=False, timed=PACE,
        progress=lambda d, t, note: calls.append(note),
    )  # fmt: skip
    assert calls.count("forgetting what was learned") > sum(p.numel() for p in net.parameters()) // 10
    assert len(whole) == 2


def test_heavy_models_take_one_picture_at_a_time(net: Counting, picture: Tensor) -> None:
    assert at_once(net, picture) == counting._AT_ONCE
    with torch.device("meta"):
        heavy = nn.Linear(10_000, 6_000)
    assert at_once(heavy, torch.empty(1, 3, 224, 224)) == 1
    assert at_once(heavy, torch.empty(1, 3, 64, 64)) == 4


def test_every_measure_says_what_it_costs() -> None:
    assert all(m.passes or m.maps for m in MEASURES)
