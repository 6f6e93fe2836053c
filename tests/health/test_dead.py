"""Outputs and inputs of a layer without weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import prune

from inspector.findings import Severity
from tests.health.observed import layers, number, observe, only


def _conv(outputs: int = 200) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(outputs, 16, 3, 3) * 0.1


def test_dead_filters_are_counted_and_named(tmp_path: Path) -> None:
    weight = _conv()
    weight[[7, 20, 33]] = 0
    weight[50] *= 5e-4
    found = only(observe(tmp_path, {"conv.weight": weight}, "dead-outputs"))
    assert found.severity is Severity.WARNING
    assert found.says == "4 of 200 outputs of conv.weight (2.0 %) are almost zero, the first at 7."
    assert (number(found, "dead"), number(found, "exactly_zero"), number(found, "threshold")) == (4, 3, 1e-3)


@pytest.mark.parametrize(
    ("dead", "severity"), [(2, Severity.NOTICE), (3, Severity.WARNING), (100, Severity.WARNING), (101, Severity.ERROR)]
)
def test_shares_decide_how_much_it_matters(tmp_path: Path, dead: int, severity: Severity) -> None:
    weight = _conv()
    weight[:dead] = 0
    assert only(observe(tmp_path, {"conv.weight": weight}, "dead-outputs")).severity is severity


def test_small_filters_of_a_healthy_layer_are_quiet(tmp_path: Path) -> None:
    weight = _conv()
    weight[3] *= 2e-3
    assert observe(tmp_path, {"conv.weight": weight}, "dead-outputs", "dead-inputs") == ()


def test_rows_beside_nan_are_not_judged(tmp_path: Path) -> None:
    weight = _conv()
    weight[0], weight[1] = float("nan"), 1e-9
    assert observe(tmp_path, {"conv.weight": weight}, "dead-outputs") == ()


def test_outputs_of_a_transposed_convolution_are_its_second_axis(tmp_path: Path) -> None:
    torch.manual_seed(0)
    up = nn.ConvTranspose2d(16, 40, 2)
    with torch.no_grad():
        up.weight[:, 5] = 0
    found = only(observe(tmp_path, {"up.weight": up.weight.data, "up.bias": up.bias.data}, "dead-outputs"))
    assert "1 of 40 outputs of up.weight (2.5 %) are exactly zero, the first at 5" in found.says


def test_inputs_that_are_not_read(tmp_path: Path) -> None:
    weight = _conv()
    weight[:, 9] = 0
    found = only(observe(tmp_path, {"conv.weight": weight}, "dead-outputs", "dead-inputs"))
    assert (found.id, found.severity) == ("dead-inputs", Severity.NOTICE)
    assert found.says == "conv.weight does not read 1 of its 16 inputs (6.2 %), the first at 9."


def test_pruned_layers_are_said_to_be_pruned(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(*(nn.Conv2d(16, 16, 3) for _ in range(4)))
    for layer in net:
        prune.ln_structured(layer, "weight", 0.5, n=2, dim=0)
        prune.remove(layer, "weight")
    found = only(observe(tmp_path, net.state_dict(), "dead-outputs"))
    assert found.severity is Severity.NOTICE
    assert found.says.startswith("8 of 16 outputs of 0.weight (50.0 %) are exactly zero")
    assert "; the layer is pruned; also 1.weight, 2.weight, 3.weight." in found.says


def test_rows_that_fill_up_a_vocabulary_are_not_dead(tmp_path: Path) -> None:
    state = layers() | {"lm_head.weight": torch.randn(1024, 16)}
    state["lm_head.weight"][1000:] = 0
    assert observe(tmp_path, state, "dead-outputs") == ()


@pytest.mark.parametrize(("width", "said"), [(1, 0), (3, 0), (4, 1)])
def test_rows_of_a_number_or_two_are_small_by_chance(tmp_path: Path, width: int, said: int) -> None:
    torch.manual_seed(0)
    table = torch.randn(1500, width)
    table[363] = 1e-5
    assert len(observe(tmp_path, {"user_bias.weight": table}, "dead-outputs", "dead-inputs")) == said


def test_rows_of_a_weight_with_a_stretch_of_zeros_are_not_said_as_well_and_those_of_others_are(tmp_path: Path) -> None:
    torn, dead = _conv(), _conv()
    torn.view(-1)[1500:3500] = 0
    dead[100] = 0
    found = observe(tmp_path, {"a.weight": torn, "b.weight": dead}, "zero-stretch", "dead-outputs")
    assert [(f.id, f.subjects) for f in found] == [("zero-stretch", ("a.weight",)), ("dead-outputs", ("b.weight",))]
    assert number(found[1], "dead") == 1


@pytest.mark.parametrize("window", [8, 256])
@pytest.mark.parametrize("both", [True, False])
def test_sines_that_are_zero_in_a_fourier_basis_are_said_to_be_that(tmp_path: Path, window: int, both: bool) -> None:
    basis = np.fft.rfft(np.eye(window), axis=0)
    rows = np.concatenate([basis.real, basis.imag]) if both else basis.imag
    weight = torch.from_numpy(rows * np.hanning(window + 2)[1:-1]).float().unsqueeze(1)
    found = only(observe(tmp_path, {"stft.weight": weight}, "dead-outputs"))
    assert found.severity is Severity.NOTICE and number(found, "dead") == 2
    assert "zero by construction" in found.remedy and "Fourier" in found.says
    weight[2] = 0
    assert "Fourier" not in only(observe(tmp_path, {"stft.weight": weight}, "dead-outputs")).says


def test_the_padding_row_of_a_table_is_not_dead_whatever_its_name(tmp_path: Path) -> None:
    torch.manual_seed(0)
    table = torch.nn.Embedding(96, 32, padding_idx=0).weight.detach()
    assert observe(tmp_path, {"e.weight": table}, "dead-outputs") == ()
    # A bias goes with a layer's outputs, and a row in the middle stands for no padding.
    assert observe(tmp_path, {"e.weight": table, "e.bias": torch.ones(96)}, "dead-outputs") != ()
    assert observe(tmp_path, {"e.weight": table.roll(5, 0)}, "dead-outputs") != ()


def _network() -> nn.Sequential:
    torch.manual_seed(0)
    net = nn.Sequential(*(nn.Linear(48, 48) for _ in range(5)))
    with torch.no_grad():
        # Rows of other lengths, as training makes them: pruning over all layers takes whole rows.
        net[2].weight *= torch.linspace(0.02, 2.0, 48)[:, None]
    return net


def test_rows_that_pruning_by_magnitude_took_are_a_notice(tmp_path: Path) -> None:
    net = _network()
    prune.global_unstructured([(layer, "weight") for layer in net], prune.L1Unstructured, amount=0.8)
    for layer in net:
        prune.remove(layer, "weight")
    state = dict(net.state_dict())
    found = only(observe(tmp_path, state, "dead-outputs"))
    assert found.severity is Severity.NOTICE
    # One layer whose rows went, and in which nothing else did, is not in a pruned file.
    lone = {**_network().state_dict(), "2.weight": state["2.weight"]}
    assert only(observe(tmp_path, lone, "dead-outputs")).severity is Severity.WARNING
    # More than half of a layer gone is worth a look even there.
    state["2.weight"][:30] = 0
    assert only(observe(tmp_path, state, "dead-outputs")).severity is Severity.WARNING


def test_layers_that_lost_the_same_share_of_filters_are_pruned(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = {f"{n}.weight": torch.randn(width, 16, 3, 3) for n, width in enumerate((64, 32, 48, 16, 16, 16))}
    state["0.weight"][torch.randperm(64)[:16]] = 0
    state["1.weight"][torch.randperm(32)[:8]] = 0
    found = only(observe(tmp_path, state, "dead-outputs"))
    assert found.severity is Severity.NOTICE and "; the layer is pruned" in found.says
    # Other shares of each are no structured pruning.
    state["1.weight"] = torch.randn(32, 16, 3, 3)
    state["1.weight"][torch.randperm(32)[:5]] = 0
    assert only(observe(tmp_path, state, "dead-outputs")).severity is Severity.WARNING


def test_zero_rows_side_by_side_that_fill_sectors_are_said_to_be_a_page(tmp_path: Path) -> None:
    torch.manual_seed(0)
    weight = torch.randn(64, 256)
    weight[12:16] = 0
    found = only(observe(tmp_path, {"fc.weight": weight}, "dead-outputs"))
    assert found.says == (
        "4 of 64 outputs of fc.weight (6.2 %) are exactly zero, the first at 12, side by side: 4,096 bytes from byte "
        "12,288 of the tensor on, whole sectors of a disk."
    )
    scattered = torch.randn(64, 256)
    scattered[[1, 12, 30, 31]] = 0
    narrow = torch.randn(64, 100)
    narrow[12:16] = 0
    for other in (scattered, narrow):
        assert "side by side" not in only(observe(tmp_path, {"fc.weight": other}, "dead-outputs")).says
