"""What feeds what, and the numbers of one chain, against torch running it and against formulas."""

from __future__ import annotations

import math
from itertools import permutations
from statistics import NormalDist

import numpy as np
import pytest
import torch
from torch import nn

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.graph.from_forward import graph_of_forward
from inspector.keys.certificate.activations import ACTIVATIONS, moments
from inspector.keys.certificate.chains import sums_of, through
from inspector.keys.certificate.from_graph import wiring_of
from inspector.keys.certificate.from_names import wiring_by_order
from inspector.keys.certificate.ranks import carriers, log_chance, ranked


class Net(nn.Module):
    """A norm behind each kernel; a skip connection, a concatenation and a gate between them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1, groups=2), nn.BatchNorm2d(8)
        self.conv3, self.bn3 = nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8)
        self.conv4, self.bn4 = nn.Conv2d(16, 4, 1), nn.BatchNorm2d(4)
        self.conv5, self.bn5 = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.bn1(self.conv1(x)))
        y = nn.functional.silu(self.bn2(self.conv2(x)))
        z = self.bn3(self.conv3(x + y))
        z = self.bn4(self.conv4(torch.cat([y, nn.functional.leaky_relu(z, 0.3)], 1)))
        return self.bn5(self.conv5(z * torch.sigmoid(z)))


def test_the_graph_tells_what_feeds_a_kernel_and_why_where_nothing_is_known():
    with torch.device("meta"):
        wiring = wiring_of(graph_of_forward(Net().eval(), (torch.empty(1, 3, 8, 8),)))
    links = {link.kernel: link for link in wiring.links}
    assert links["conv1.weight"].missing == "it reads the network's own input"
    one = links["conv2.weight"]
    assert (one.groups, one.bias, one.norm.mean) == (2, "conv2.bias", "bn2.running_mean")
    assert [(f.norm.weight, f.activations) for f in one.feeds if f.norm] == [("bn1.weight", ("relu",))]
    assert links["conv3.weight"].missing == "a sum comes in (a skip connection)"
    both = [(f.norm.weight, f.activations, f.slope) for f in links["conv4.weight"].feeds if f.norm]
    assert both == [("bn2.weight", ("silu",), 0.01), ("bn3.weight", ("leaky_relu",), 0.3)]
    assert links["conv5.weight"].missing == "a product comes in (a gate)"


def test_a_norm_that_runs_twice_says_nothing():
    norm = nn.BatchNorm2d(4)
    with torch.device("meta"):
        model = nn.Sequential(nn.Conv2d(4, 4, 1), norm, nn.Conv2d(4, 4, 1), norm).to("meta").eval()
        assert wiring_of(graph_of_forward(model, (torch.empty(1, 4, 8, 8),))).links == ()


def test_the_order_of_definition_pairs_neighbours_alone():
    with torch.device("meta"):
        state = Net().state_dict()
    tensors = tuple(TargetTensor(name=n, shape=tuple(t.shape)) for n, t in state.items())
    wiring = wiring_by_order(Target(label="", kind=TargetKind.KEYS, tensors=tensors))
    second = wiring.links[1]
    assert (second.kernel, second.groups, second.certain) == ("conv2.weight", 2, False)
    assert second.feeds[0].norm is not None and second.feeds[0].norm.weight == "bn1.weight"
    assert wiring_by_order(Target(label="", kind=TargetKind.KEYS, tensors=tensors, ordered=False)).links == ()


def test_moments_of_a_relu_by_its_formula():
    # E max(z, 0) = b Phi(b/a) + a phi(b/a), E max(z, 0)^2 = (a^2 + b^2) Phi(b/a) + a b phi(b/a); signs of a fall out.
    normal = NormalDist()
    for weight, bias in ((1.0, 0.0), (-0.7, 0.4), (0.3, -0.5)):
        a, at = abs(weight), bias / abs(weight)
        mean = bias * normal.cdf(at) + a * normal.pdf(at)
        square = (a * a + bias * bias) * normal.cdf(at) + a * bias * normal.pdf(at)
        found = moments(np.array([weight]), np.array([bias]), "relu")
        assert found[0][0] == pytest.approx(mean, abs=0.01)
        assert found[1][0] == pytest.approx(square - mean**2, abs=0.02)


@pytest.mark.parametrize(
    "name", ["relu6", "leaky_relu", "silu", "hardswish", "hardsigmoid", "gelu", "elu", "softplus", "mish"]
)
def test_activations_are_torchs(name):
    z = torch.linspace(-5, 8, 53, dtype=torch.float64)
    ours = ACTIVATIONS[name](z.numpy(), 0.01)
    assert ours == pytest.approx(getattr(nn.functional, name)(z).numpy(), abs=1e-3)


def test_sums_predict_what_torch_computes_from_flat_pictures():
    """One value per channel: the inside of the output is the sum over taps, in groups and turned kernels too."""
    given = torch.rand(8, dtype=torch.float64)
    for layer in (nn.Conv2d(8, 12, 3, groups=4, bias=False), nn.ConvTranspose2d(8, 12, 3, groups=4, bias=False)):
        layer.double()
        turned = isinstance(layer, nn.ConvTranspose2d)
        sums = sums_of(layer.weight.detach().numpy(), transposed=turned, groups=4)[0]
        ours = through(sums.plain, given.numpy()[:, None], 4)[:, 0]
        out = layer(given[None, :, None, None].expand(1, 8, 9, 9))
        assert ours == pytest.approx(out[0, :, out.shape[2] // 2, out.shape[3] // 2].detach().numpy())


def test_of_a_picture_of_one_pixel_only_the_middle_tap_counts():
    kernel = np.random.default_rng(0).normal(size=(5, 4, 3, 3))
    assert sums_of(kernel)[-1].plain == pytest.approx(kernel[:, :, 1, 1])


def test_the_chance_of_ranks_is_no_understatement():
    """Against all 5,040 orders of seven channels."""
    own = np.arange(7.0)
    orders = np.array(list(permutations(own)))
    agreements = ranked(own)[:, 0] @ ranked(orders.T)
    for least in (0.5, 0.7, 0.9, 0.999):
        exact = float((agreements >= least - 1e-12).mean())
        assert math.exp(log_chance(least, 7)) >= exact * (1 - 1e-9)
    assert log_chance(0.95, 64) < -60 and log_chance(-0.9, 64) == 0.0


def test_a_constant_column_agrees_with_nothing():
    assert not ranked(np.full((9, 1), 3.0)).any()
    assert carriers(np.array([1.0, 0, 0, 0])) == pytest.approx(1) and carriers(np.ones(20)) == pytest.approx(20)
