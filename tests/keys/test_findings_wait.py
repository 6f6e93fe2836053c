"""What is said beside a repair waits until nothing is open, and concerns only what is really there."""

from __future__ import annotations

import pytest

from inspector.keys.diagnose import diagnose


@pytest.fixture
def ids():
    return lambda report: {finding.id for finding in report.findings}


@pytest.fixture
def byol(tiny_cnn):
    """Two sets of weights under names that a learner keeps them under."""
    return {f"{prefix}.{n}": s for prefix in ("ema_model", "online_model") for n, s in tiny_cnn.items()}


def test_nothing_is_said_about_tensors_that_wait_for_an_answer(byol, tiny_cnn, file_of, target_of, ids):
    report = diagnose(file_of(byol), target_of(tiny_cnn))
    assert [question.id for question in report.plan.ambiguities] == ["twins"]
    assert ids(report) <= {"ambiguous", "bookkeeping-buffers"}


@pytest.mark.parametrize("chosen", ["ema_model", "online_model"])
def test_the_set_that_was_not_chosen_is_no_probe_and_has_no_statistics_to_spare(
    byol, tiny_cnn, file_of, target_of, ids, chosen
):
    report = diagnose(file_of(byol), target_of(tiny_cnn), choose={"twins": chosen})
    assert report.plan.complete and ids(report) == {"twins", "wrapper-segment"}


def test_an_online_probe_beside_the_network_is_told(tiny_cnn, file_of, target_of, ids):
    probe = {"online_evaluator.fc.weight": (10, 16)}
    assert "loss-or-metric" in ids(diagnose(file_of(tiny_cnn | probe), target_of(tiny_cnn)))


def test_blocks_that_the_file_lacks_lack_more_than_statistics(shapes, file_of, target_of, ids):
    report = diagnose(file_of(shapes("resnet18")), target_of(shapes("resnet34")))
    assert not report.plan.complete and "no-statistics" not in ids(report)


def test_a_network_that_is_left_out_says_nothing_about_norms(tiny_cnn, file_of, target_of, ids):
    """A discriminator's statistics have no place because it has none, not because norms work otherwise."""
    other = {f"netD.{n}": s for n, s in tiny_cnn.items() if n.startswith("bn")}
    goal = {"conv.weight": (4, 3), "fc.weight": (2, 4)}
    report = diagnose(file_of(goal | other), target_of(goal), accept=["extra-tensors"])
    assert report.plan.complete and "unused-statistics" not in ids(report)


def test_statistics_of_norms_without_weights_are_told(file_of, target_of, ids):
    """pix2pix's InstanceNorm before torch 0.4: no weight, but statistics."""
    goal = {"model.0.weight": (4, 3, 3, 3), "model.3.weight": (4, 4, 3, 3)}
    ours = goal | {"model.1.running_mean": (4,), "model.1.running_var": (4,)}
    report = diagnose(file_of(ours), target_of(goal), accept=["extra-tensors"])
    assert report.plan.complete and "unused-statistics" in ids(report)
