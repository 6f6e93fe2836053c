"""Trust over several pictures: means with intervals, class by class, and what failed is said while the others go on."""

from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from inspector.cam.describe import Setting
from inspector.cam.inputs.preprocess import stated_preprocessing
from inspector.cam.spec import MapRequest
from inspector.cam.trust.assess import EDGES
from inspector.cam.trust.cost import Plan
from inspector.cam.trust.intervals import By, student, student_quantile, wilson
from inspector.cam.trust.measures import MEASURES
from inspector.cam.trust.pictures import TrustOfPictures, assess_pictures, cost_of_pictures
from inspector.cam.trust.pictures_words import failures_text, intervals_text, pictures_summary
from inspector.cam.trust.verdicts import Verdict
from inspector.errors import ExplainError, UsageError
from inspector.progress import Progress, Stopped, silent
from inspector.render.json import as_json
from inspector.render.trust_pictures import listings, sentences, trust_of_pictures_csv

PLAN = Plan(measures=[m for m in MEASURES if m.id in ("deletion", "increase-in-confidence")], compare=False)


class TwoCorners(nn.Module):
    """Class 0 where the upper left corner is bright, class 1 where the lower right one is."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 1)
        with torch.no_grad():
            self.conv.weight.fill_(1.0)
            self.conv.bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        cells = nn.functional.avg_pool2d(self.conv(x), 4)
        return torch.stack([cells[:, 0, :3, :3].mean(dim=(1, 2)), cells[:, 1, -3:, -3:].mean(dim=(1, 2))], dim=1) * 4


def picture(seed: int, bright: int) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(60, 120, (32, 32), dtype=np.uint8)
    corner = np.s_[:12, :12] if bright == 0 else np.s_[-12:, -12:]
    pixels[corner] += 100
    return Image.fromarray(pixels)


def unreadable() -> Image.Image:
    raise ExplainError("The picture cannot be read: it ends early.")


def measured(*, progress: Progress = silent, bad: int = 1) -> TrustOfPictures:
    named = [(f"{n}.png", lambda n=n: picture(n, n % 2 if n < 4 else 0)) for n in range(5)]
    named += [(f"bad{n}.png", unreadable) for n in range(bad)]
    return assess_pictures(TwoCorners().eval(), named, request(), setting(), plan=PLAN, progress=progress)


def request() -> MapRequest:
    return MapRequest(layers=("conv",))


def setting() -> Setting:
    steps = stated_preprocessing({"mean": [0.5], "std": [0.5], "resize": None, "crop": None}, "stated")
    return Setting(preprocessing=steps, categories=("first", "second"))


def test_students_quantiles_are_those_of_the_density() -> None:
    # By integrating the density, which the quantiles were not made with.
    x = np.linspace(0, 13, 400_001)
    for freedom in (1, 2, 5, 9, 10, 11, 30, 120):
        scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
        density = scale * (1 + x**2 / freedom) ** (-(freedom + 1) / 2)
        below = 0.5 + np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2) * (x[1] - x[0])])
        assert student_quantile(freedom) == pytest.approx(float(np.interp(0.975, below, x)), abs=2e-4)


def test_an_interval_by_hand() -> None:
    # Mean 2, deviation 1: 3.1824 / 2 either way with four numbers.
    found = student([1.0, 2.0, 2.0, 3.0, math.nan])
    half = 3.1824463 * math.sqrt(2 / 3) / 2
    assert (found.mean, found.pictures, found.by) == (2.0, 4, By.STUDENT)
    assert (found.low, found.high) == pytest.approx((2 - half, 2 + half))
    # 8 of 10, from Wilson's formula: (0.8 + z^2/20 -+ z sqrt(0.016 + z^2/400)) / (1 + z^2/10).
    found = wilson([1.0] * 8 + [0.0] * 2)
    assert (found.low, found.high) == pytest.approx((0.49016, 0.94332), abs=1e-5)
    assert wilson([1.0] * 4).high == 1.0 and 0.4 < wilson([1.0] * 4).low < 0.6


def test_one_number_has_no_interval() -> None:
    one = student([0.5])
    assert one.by is By.NONE and one.mean == 0.5 and math.isnan(one.low)
    assert math.isnan(student([]).mean) and math.isnan(wilson([]).mean)


def test_a_picture_that_cannot_be_read_is_said_and_the_others_go_on() -> None:
    report = measured(bad=2)
    assert [row.verdict is Verdict.FAILED for row in report.rows] == [False] * 5 + [True] * 2
    assert report.failures == (("The picture cannot be read: it ends early.", 2),)
    assert failures_text(report) == "2 pictures of 7 gave no map. 2 x: The picture cannot be read: it ends early."
    assert report.whole.pictures == 5


def test_means_are_over_pictures_and_by_the_class_that_was_answered() -> None:
    report = measured()
    assert [(group.name, group.pictures) for group in report.groups] == [("", 5), ("first", 3), ("second", 2)]
    for group, rows in zip(report.groups, (report.rows[:5], [*report.rows[0:5:2]], [*report.rows[1:5:2]]), strict=True):
        own = [dict(row.values)["deletion"] for row in rows]
        edges = [dict(dict(row.others)[EDGES])["deletion"] for row in rows]
        averages = {(one.measure, one.of): one for one in group.averages}
        assert averages["deletion", "grad-cam"].mean == student(own)
        assert averages["deletion", EDGES].mean == student(edges)
        assert averages["deletion", EDGES].lead == student([a - b for a, b in zip(own, edges, strict=True)])
        assert averages["increase-in-confidence", "grad-cam"].mean.by is By.WILSON
        assert group.better == wilson([float(row.verdict is Verdict.BETTER) for row in rows])
    counts = sum(count for _, count in report.whole.verdicts)
    assert counts == 5 and pictures_summary(report).startswith(f"{round(5 * report.whole.better.mean)} of 5 maps")


def test_few_pictures_are_said_to_be_few() -> None:
    report = measured(bad=0)
    assert "5 pictures are few" in intervals_text(report) and "Student's t" in intervals_text(report)
    alone = assess_pictures(TwoCorners().eval(), [("a", lambda: picture(0, 0))], request(), setting(), plan=PLAN)
    assert intervals_text(alone).startswith("One picture has no interval")
    none = assess_pictures(TwoCorners().eval(), [("a", unreadable)], request(), setting(), plan=PLAN)
    assert sentences(none)[0] == "None of 1 picture gave a map: nothing was measured."
    assert json.loads(as_json(none))["rows"][0]["verdict"] == "no map"
    with pytest.raises(UsageError, match="Which pictures"):
        assess_pictures(TwoCorners().eval(), [], request(), setting())


def test_progress_counts_pictures_and_stops() -> None:
    told: list[tuple[int, int | None]] = []
    measured(progress=lambda done, total, note: told.append((done, total)))
    assert {total for _, total in told} == {6000}
    assert [done for done, _ in told] == sorted(done for done, _ in told) and told[-1][0] >= 5000

    def stop(done: int, total: int | None, note: str) -> None:
        if done >= 2000:
            raise Stopped

    with pytest.raises(Stopped):
        measured(progress=stop)


def test_the_estimate_is_for_all_pictures_and_passes_over_one_that_cannot_be_read() -> None:
    named = [("bad", unreadable), *((f"{n}", lambda n=n: picture(n, 0)) for n in range(3))]
    found = cost_of_pictures(TwoCorners().eval(), named, request(), setting(), plan=PLAN)
    report = assess_pictures(TwoCorners().eval(), named, request(), setting(), plan=PLAN)
    assert found.passes == pytest.approx(report.passes * 4 / 3) and found.seconds > 0


def test_every_face_has_the_same_numbers() -> None:
    report = measured()
    rows = list(csv.DictReader(io.StringIO(trust_of_pictures_csv(report))))
    better = next(row for row in rows if row["kind"] == "better" and not row["class"])
    assert float(better["value"]) == report.whole.better.mean and better["interval"] == "wilson"
    lead = next(r for r in rows if (r["kind"], r["measure"], r["of"], r["class"]) == ("lead", "deletion", "edges", "1"))
    wanted = next(o for o in report.groups[2].averages if (o.measure, o.of) == ("deletion", "edges")).lead
    assert wanted is not None and (float(lead["low"]), float(lead["high"])) == (wanted.low, wanted.high)
    failed = next(row for row in rows if row["verdict"] == "no map")
    assert failed["picture"] == "bad0.png" and "ends early" in failed["why"]
    answers, means, pictures = listings(report)
    assert [row[0] for row in answers.rows] == ["all", "first", "second"]
    assert f"{wanted.mean:.3f} ({wanted.low:.3f} to {wanted.high:.3f})".replace("-0.000", "0.000") in [
        row[6] for row in means.rows
    ]
    assert [row[0] for row in pictures.rows][-1] == "bad0.png"
    plain = json.loads(as_json(report))
    assert plain["groups"][0]["better"]["by"] == "wilson" and len(plain["rows"]) == 6
