"""A run measured: every series against numpy's from the same files, and what is no part of it."""

from __future__ import annotations

import tarfile
import zipfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from inspector.compare.report import Way
from inspector.errors import UsageError
from inspector.progress import Stopped
from inspector.readers import open_checkpoint
from inspector.run.files import RunFile, files_at
from inspector.run.groups import (
    By,
    distance_from_first,
    distance_from_last,
    groups_of,
    histogram_of,
    proposed_row,
    quantiles_of,
    series_of,
)
from inspector.run.measure import measure_run
from inspector.run.report import BINS, Measure, RunReport
from tests.run.made import State, save, save_all, states


def _numpy(of: list[State], name: str) -> list[np.ndarray]:
    return [state[name].numpy().astype(np.float64) for state in of]


def _row(report: RunReport, measure: Measure, name: str) -> np.ndarray:
    (row,) = (n for n, tensor in enumerate(report.tensors) if tensor.name == name)
    return report.series(measure)[row]


def _ids(report: RunReport) -> list[str]:
    return [finding.id for finding in report.findings]


@pytest.mark.parametrize("kept_nbytes", [64 << 20, 0], ids=["kept", "streamed"])
def test_every_series_is_numpys(tmp_path: Path, kept_nbytes: int) -> None:
    of = states(5, step=0.2)
    of[3]["conv.weight"][2] = 0.0
    report = measure_run(save_all(tmp_path, of), kept_nbytes=kept_nbytes)
    assert [member.name for member in report.members] == [f"epoch_{n}.pth" for n in range(1, 6)]
    assert (report.ordered_by, report.axis, list(report.places)) == ("epoch", "epoch", [1, 2, 3, 4, 5])
    for name in of[0]:
        x = _numpy(of, name)
        want = {
            Measure.RMS: [np.sqrt((v**2).mean()) for v in x],
            Measure.MEAN: [v.mean() for v in x],
            Measure.STD: [v.std() for v in x],
            Measure.MINIMUM: [v.min() for v in x],
            Measure.MAXIMUM: [v.max() for v in x],
            Measure.ZERO: [(v == 0).mean() for v in x],
            Measure.NOT_FINITE: [0.0] * 5,
            Measure.MOVED: [np.nan, *(np.linalg.norm((b - a).ravel()) for a, b in pairwise(x))],
            Measure.UPDATE: [
                np.nan,
                *(np.linalg.norm((b - a).ravel()) / np.linalg.norm(a.ravel()) for a, b in pairwise(x)),
            ],
            Measure.FLIPS: [np.nan, *((np.sign(a) * np.sign(b) < 0).mean() for a, b in pairwise(x))],
            Measure.FROM_FIRST: [np.linalg.norm((v - x[0]).ravel()) for v in x],
            Measure.FROM_LAST: [np.linalg.norm((x[-1] - v).ravel()) for v in x],
        }
        for measure, values in want.items():
            np.testing.assert_allclose(_row(report, measure, name), values, rtol=1e-11, atol=1e-12, err_msg=measure)
    assert list(_row(report, Measure.ZERO_ROWS, "conv.weight")) == [0, 0, 0, 1, 0]
    assert np.isnan(_row(report, Measure.ZERO_ROWS, "fc.bias")).all()


def test_a_group_is_its_tensors_as_one_vector(tmp_path: Path) -> None:
    of = states(3, step=0.3)
    report = measure_run(save_all(tmp_path, of))
    groups = {group.name: group for group in groups_of(report, By.MODULE)}
    assert list(groups) == ["conv", "bn", "fc"]
    x = [np.concatenate([state["fc.weight"].numpy().ravel(), state["fc.bias"].numpy()]).astype(float) for state in of]
    fc = groups["fc"]
    for measure, values in {
        Measure.RMS: [np.sqrt((v**2).mean()) for v in x],
        Measure.STD: [v.std() for v in x],
        Measure.MAXIMUM: [v.max() for v in x],
        Measure.UPDATE: [
            np.nan,
            *(np.linalg.norm(b - a) / np.linalg.norm(a) for a, b in pairwise(x)),
        ],
        Measure.FLIPS: [np.nan, *((a * b < 0).mean() for a, b in pairwise(x))],
    }.items():
        np.testing.assert_allclose(series_of(report, fc, measure), values, rtol=1e-9)
    apart = [np.linalg.norm(v - x[0]) / np.linalg.norm(x[0]) for v in x]
    np.testing.assert_allclose(distance_from_first(report, fc), apart, rtol=1e-9)
    assert [group.name for group in groups_of(report, By.TENSOR)] == list(of[0])
    assert "running mean" in [group.name for group in groups_of(report, By.ROLE)]


def test_histograms_count_every_number(tmp_path: Path) -> None:
    of = states(3)
    of[2]["fc.weight"] = of[2]["fc.weight"] * 4
    report = measure_run(save_all(tmp_path, of))
    spans, counts = report.histograms()
    for row, tensor in enumerate(report.tensors):
        np.testing.assert_allclose(counts[row].sum(axis=1), tensor.numel, rtol=1e-6)
    (fc,) = (group for group in groups_of(report, By.TENSOR) if group.name == "fc.weight")
    edges, shares = histogram_of(report, fc)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-6)
    assert edges[0] == pytest.approx(np.nanmin(spans[fc.rows[0]])) and len(edges) == BINS + 1
    # Four times as wide.
    centres = (edges[1:] + edges[:-1]) / 2
    wide = np.sqrt((shares * centres**2).sum(axis=1))
    assert wide[2] / wide[0] == pytest.approx(4, rel=0.1)


def test_nan_is_named_with_the_member_and_the_tensor_it_began_in(tmp_path: Path) -> None:
    of = states(5)
    of[3]["fc.weight"][1, 2] = float("nan")
    of[4]["fc.weight"][:] = float("nan")
    of[4]["conv.weight"][:] = float("inf")
    report = measure_run(save_all(tmp_path, of))
    (finding,) = (one for one in report.findings if one.id == "run-not-finite")
    assert finding.subjects == ("fc.weight",) and dict(finding.evidence)["member"] == "epoch_4.pth"
    assert "it began in fc.weight, in 1 of 32 numbers; epoch_3.pth before it is finite" in report.says
    assert np.isnan(_row(report, Measure.UPDATE, "fc.weight")[3:]).all()
    assert not np.isnan(_row(report, Measure.UPDATE, "fc.bias")[1:]).any()
    # As one vector it cannot be measured where a part cannot.
    (fc,) = (group for group in groups_of(report, By.MODULE) if group.name == "fc")
    assert np.isnan(series_of(report, fc, Measure.UPDATE)).tolist() == [True, False, False, True, True]


def test_a_healthy_run_has_no_findings(tmp_path: Path) -> None:
    report = measure_run(save_all(tmp_path, states(4)))
    assert report.findings == () and report.left_out == () and report.notes == ()
    assert "5 learned tensors moved" in report.says


def test_what_did_not_move_is_named(tmp_path: Path) -> None:
    of = states(6)
    for n, state in enumerate(of):
        state["conv.weight"] = of[0]["conv.weight"]
        state["fc.bias"] = of[max(0, n - 3)]["fc.bias"] if n < 4 else state["fc.bias"]
        state["fc.weight"] = of[min(n, 2)]["fc.weight"]
    report = measure_run(save_all(tmp_path, of))
    found = {finding.id: finding for finding in report.findings}
    assert found["run-unmoved"].subjects == ("conv.weight",)
    assert found["run-late"].subjects == ("fc.bias",) and dict(found["run-late"].evidence)["member"] == "epoch_5.pth"
    assert found["run-stopped"].subjects == ("fc.weight",)
    assert dict(found["run-stopped"].evidence)["member"] == "epoch_3.pth"


def test_names_and_order_given_do_not_matter_where_the_files_state_it(tmp_path: Path) -> None:
    of = states(3)
    files = [save(tmp_path, name, of[at], epoch=at) for name, at in (("best.pth", 2), ("zero.pth", 0), ("a.pth", 1))]
    assert [member.name for member in measure_run(files).members] == ["zero.pth", "a.pth", "best.pth"]


def test_without_an_epoch_names_order_with_numbers_by_value(tmp_path: Path) -> None:
    of = states(3)
    files = [save(tmp_path, f"step{n}.pth", of[at]) for at, n in enumerate((2, 10, 9))]
    report = measure_run(files)
    assert [member.name for member in report.members] == ["step2.pth", "step9.pth", "step10.pth"]
    assert report.axis == "checkpoint" and "since not all state an epoch or a step" in report.says


def test_a_broken_member_is_left_out_and_named(tmp_path: Path) -> None:
    of = states(5)
    files = save_all(tmp_path, of)
    (tmp_path / "epoch_3.pth").write_bytes((tmp_path / "epoch_3.pth").read_bytes()[:700])
    whole = tmp_path / "epoch_6.safetensors"
    save_file(of[4], whole)
    # The header is whole, the numbers are not.
    whole.write_bytes(whole.read_bytes()[:-40])
    files.append(RunFile(name=whole.name, opening=lambda: open_checkpoint(whole)))
    report = measure_run(files)
    assert [member.name for member in report.members] == [f"epoch_{n}.pth" for n in (1, 2, 4, 5)]
    assert {left.name for left in report.left_out} == {"epoch_3.pth", "epoch_6.safetensors"}
    assert all(left.broken for left in report.left_out)
    assert _ids(report)[0] == "run-left-out"
    x = _numpy(of, "fc.weight")
    assert _row(report, Measure.MOVED, "fc.weight")[2] == pytest.approx(np.linalg.norm(x[3] - x[1]))
    assert _row(report, Measure.FROM_LAST, "fc.weight")[0] == pytest.approx(np.linalg.norm(x[4] - x[0]))


def test_what_has_nothing_in_common_is_told_so(tmp_path: Path) -> None:
    files = save_all(tmp_path, states(3))
    stranger = {"up.weight": torch.ones(7, 7), "down.weight": torch.ones(5, 7)}
    files.append(save(tmp_path, "stranger.pth", stranger, epoch=2))
    report = measure_run(files)
    (left,) = report.left_out
    assert left.name == "stranger.pth" and not left.broken
    assert "Of the 7 tensors of epoch_1.pth it has 0. Nothing is paired: no name and no shape is in both" in left.why
    alone = measure_run([files[0], files[-1]])
    assert alone.says.startswith("No run: epoch_1.pth has nothing beside it")


def test_a_wrapped_member_is_paired_by_the_plan_between_the_names(tmp_path: Path) -> None:
    of = states(3)
    files = save_all(tmp_path, of)
    files[1] = save(tmp_path, "epoch_2.pth", {f"module.{name}": value for name, value in of[1].items()}, epoch=2)
    report = measure_run(files)
    assert [member.way for member in report.members] == [Way.NAMES, Way.PLAN, Way.NAMES]
    x = _numpy(of, "fc.weight")
    assert _row(report, Measure.MOVED, "fc.weight")[1] == pytest.approx(np.linalg.norm(x[1] - x[0]))


def test_stated_numbers_that_change_are_series(tmp_path: Path) -> None:
    of = states(4)
    files = [
        save(
            tmp_path,
            f"{n}.pth",
            state,
            epoch=n,
            loss=1.0 / (n + 1),
            best=torch.tensor(90.0 + n),
            title="run",
            batch=32,
            optimizer={"state": {}, "param_groups": [{"lr": lr, "params": [0]}]},
        )
        for n, (state, lr) in enumerate(zip(of, (0.1, 0.01, 0.001, 0.1), strict=True))
    ]
    report = measure_run(files)
    stated = {one.name: one.array.tolist() for one in report.stated}
    assert stated["loss"] == [1.0, 0.5, 1 / 3, 0.25] and stated["best"] == [90, 91, 92, 93]
    assert stated["optimizer.param_groups.0.lr"] == [0.1, 0.01, 0.001, 0.1]
    assert "batch" not in stated
    assert _ids(report) == ["run-rate-raised"]


def test_weights_stored_twice_gaps_and_strangers_weights_are_noticed(tmp_path: Path) -> None:
    of = states(6)
    of[2] = of[1]
    files = [save(tmp_path, f"{n}.pth", state, epoch=n if n < 5 else 50) for n, state in enumerate(of)]
    assert sorted(_ids(measure_run(files))) == ["run-gap", "run-repeated"]
    other = states(1, seed=9)[0]
    files = [save(tmp_path, f"{n}.pth", other if n == 4 else state, epoch=n) for n, state in enumerate(states(6))]
    found = [one for one in measure_run(files).findings if one.id == "run-leap"]
    assert [one.subjects for one in found] == [("4.pth",), ("5.pth",)]


def test_checkpoints_of_one_place_are_told(tmp_path: Path) -> None:
    of = states(3)
    files = [save(tmp_path, name, of[n], epoch=min(n, 1)) for n, name in enumerate(("a.pth", "b.pth", "c.pth"))]
    report = measure_run(files)
    assert _ids(report) == ["run-same-place"] and report.axis == "checkpoint"


@pytest.mark.parametrize("kind", ["zip", "tar", "tgz"])
def test_an_archive_is_a_run(tmp_path: Path, kind: str) -> None:
    of = states(3)
    save_all(tmp_path, of)
    packed = tmp_path / f"run.{kind}"
    names = [f"epoch_{n}.pth" for n in (1, 2, 3)]
    if kind == "zip":
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                archive.write(tmp_path / name, f"run/{name}")
    else:
        with tarfile.open(packed, "w:gz" if kind == "tgz" else "w") as tar:
            for name in names:
                tar.add(tmp_path / name, f"run/{name}")
    whole = RunFile(name=packed.name, opening=lambda: open_checkpoint(packed))
    files, logs = files_at(packed, packed.name, whole)
    assert logs == []
    report = measure_run(files)
    assert [member.name for member in report.members] == [f"run/{name}" for name in names]
    x = _numpy(of, "conv.weight")
    np.testing.assert_allclose(
        _row(report, Measure.FROM_FIRST, "conv.weight"), [np.linalg.norm((v - x[0]).ravel()) for v in x], rtol=1e-11
    )
    one = files_at(tmp_path / names[0], names[0], whole)
    assert one == ([whole], [])


def test_a_budget_reads_evenly_spaced_members_and_says_so(tmp_path: Path) -> None:
    files = save_all(tmp_path, states(9))
    nbytes = 284 * 4
    report = measure_run(files, budget_nbytes=5 * nbytes)
    assert [member.at for member in report.members] == [1, 3, 5, 7, 9]
    assert report.notes[0].startswith("5 of 9 checkpoints were read, evenly spaced")


def test_it_stops_where_progress_raises(tmp_path: Path) -> None:
    def stop(done: int, total: int | None, note: str) -> None:
        if total is not None:
            raise Stopped

    with pytest.raises(Stopped):
        measure_run(save_all(tmp_path, states(3)), progress=stop)


def test_nothing_to_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.pth").write_text("no")
    with pytest.raises(UsageError, match=r"None of the 1 file is a checkpoint. notes.pth: "):
        measure_run([RunFile(name="notes.pth", opening=lambda: open_checkpoint(tmp_path / "notes.pth"))])
    with pytest.raises(UsageError, match="There is no file"):
        measure_run([])


def test_half_precision_and_a_missing_tensor(tmp_path: Path) -> None:
    of = states(3)
    of[1] = {name: value.half() for name, value in of[1].items()}
    del of[2]["fc.bias"]
    report = measure_run(save_all(tmp_path, of))
    x = _numpy(of[:2], "fc.weight")
    assert _row(report, Measure.MOVED, "fc.weight")[1] == pytest.approx(np.linalg.norm(x[1] - x[0]), rel=1e-11)
    assert np.isnan(_row(report, Measure.RMS, "fc.bias")).tolist() == [False, False, True]


def test_from_last_quantiles_and_the_tensor_to_begin_with(tmp_path: Path) -> None:
    of = states(4, step=0.01)
    for n, state in enumerate(of):
        state["fc.weight"] = of[0]["fc.weight"] * (1 + n)
        state["bn.running_var"] = of[0]["bn.running_var"] * (1 + 5 * n)
    report = measure_run(save_all(tmp_path, of))
    groups = {group.name: group for group in groups_of(report, By.TENSOR)}
    np.testing.assert_allclose(distance_from_last(report, groups["fc.weight"]), [0.75, 0.5, 0.25, 0], atol=1e-7)
    # What an optimizer does not move is no beginning.
    assert report.tensors[proposed_row(report)].name == "fc.weight"
    edges, shares = histogram_of(report, groups["fc.weight"])
    found = quantiles_of(edges, shares, [0.0, 0.25, 0.5, 1.0])
    for at, values in enumerate(_numpy(of, "fc.weight")):
        np.testing.assert_allclose(
            found[:, at], np.quantile(values, [0, 0.25, 0.5, 1]), atol=1.5 * (edges[1] - edges[0])
        )
    assert np.isnan(quantiles_of(edges, np.zeros((1, BINS)), [0.5])).all()
    of[2]["conv.weight"][0] = float("nan")
    report = measure_run(save_all(tmp_path, of))
    assert report.tensors[proposed_row(report)].name == "conv.weight"


@pytest.mark.parametrize(
    ("rates", "ids", "says"),
    [
        (
            (1e-3, 1e-3, 1e-3, 0.1, 1e-3, 1e-3),
            ["run-rate-jump"],
            "jumps from 0.001 to 0.1 (100 times) in epoch_4.pth, and is",
        ),
        ((1e-3, 1e-3, 1e-3, 0.1, 0.1, 0.1), ["run-rate-jump"], "jumps from 0.001 to 0.1 (100 times) in epoch_4.pth."),
        ((1e-3, 9e-4, 8e-4, 0.05, 7e-4, 6e-4), ["run-rate-jump"], "and is 0.0007 again in epoch_5.pth."),
        # A warm-up, one cycle, cycles, a decay: none of them jumps.
        ((1e-6, 1e-4, 1e-3, 1e-3, 1e-3, 9e-4), [], ""),
        ((4e-5, 5e-4, 1e-3, 7e-4, 3e-4, 1e-5), [], ""),
        ((1e-3, 1e-3, 5e-4, 2e-4, 1e-4, 1e-6), [], ""),
        ((1e-3, 1e-3, 0.1, 1e-3, 1e-3, 0.1), [], ""),
    ],
)
def test_a_rate_that_jumps_is_said(tmp_path: Path, rates: tuple[float, ...], ids: list[str], says: str) -> None:
    found = measure_run(
        [
            save(tmp_path, f"epoch_{n}.pth", state, epoch=n, lr=lr)
            for n, (state, lr) in enumerate(zip(states(6), rates, strict=True), 1)
        ]
    ).findings
    told = [finding for finding in found if finding.id.startswith("run-rate")]
    assert [finding.id for finding in told if finding.id == "run-rate-jump"] == ids
    assert all(says in finding.says for finding in told) or not ids
    # Back again at once it is an accident; else it may be meant.
    assert [finding.severity.value for finding in told if ids] == [
        "warning" if "and" in says else "notice" for _ in ids
    ]


@pytest.mark.parametrize(
    ("rates", "losses", "told"),
    [
        # One checkpoint before the peak: the loss tells an accident from a cycle.
        ((0.1, 2.5, 0.05), (0.94, 10.5, 1.4), {"run-rate-jump": "warning", "run-loss-leap": "warning"}),
        ((0.1, 2.5, 0.05), (0.94, 0.7, 0.5), {"run-rate-jump": "notice"}),
        ((0.1, 0.1, 0.1), (0.94, 10.5, 1.4), {"run-loss-leap": "warning"}),
        # Warm-ups with a decay behind, cycles, and noise about a loss that has become small.
        ((1e-6, 0.1, 0.01, 1e-3), (2.3, 2.0, 1.5, 1.4), {}),
        ((1e-4, 0.1, 0.1, 0.1), (2.3, 2.0, 1.5, 1.4), {}),
        ((1e-3, 0.1, 1e-3, 0.1, 1e-3), (2.3, 2.0, 1.5, 1.4, 1.3), {}),
        ((0.1, 0.1, 0.1, 0.1), (2.3, 0.01, 0.001, 0.02), {}),
        ((0.1, 0.1, 0.1, 0.1, 0.1), (0.1, 1.0, 0.1, 2.0, 0.1), {}),
    ],
)
def test_a_spike_of_rate_and_loss_is_said_first(
    tmp_path: Path, rates: tuple[float, ...], losses: tuple[float, ...], told: dict[str, str]
) -> None:
    of = zip(states(len(rates)), rates, losses, strict=True)
    report = measure_run(
        [save(tmp_path, f"epoch_{n}.pth", state, epoch=n, lr=lr, loss=loss) for n, (state, lr, loss) in enumerate(of)]
    )
    spikes = {f.id: f.severity.value for f in report.findings if f.id in ("run-rate-jump", "run-loss-leap")}
    assert spikes == told
    if "warning" not in told.values():
        assert "epoch 0 to" in report.says and ": all numbers are finite" in report.says
        return
    worst = next(f for f in report.findings if f.severity.value == "warning").says
    assert f": t{worst[1:]} All numbers are finite, " in report.says
    assert "The loss (loss) leaps from 0.94 to 10.5 (11.2 times) in epoch_1.pth, and is 1.4 in epoch_2.pth." in [
        finding.says for finding in report.findings
    ]
