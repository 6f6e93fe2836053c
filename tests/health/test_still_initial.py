"""Every default of torch.nn is recognised and, after one step of an optimizer, is not; heads and backbones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torchvision
from torch import nn

from inspector.findings import Finding, Severity
from inspector.health.examine import examine
from inspector.readers import open_checkpoint
from tests.health.observed import observe
from tests.health.steps import steps

IDS = ("fresh-weights", "untrained-head", "unloaded-backbone", "unchanged-layers")


class _Head(nn.Module):
    """A module whose answer depends on all weights."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4, kdim=24, vdim=28, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x, x[..., :24], x[..., :28])[0]


def _pixels(*shape: int) -> Callable[[], tuple[torch.Tensor, ...]]:
    return lambda: (3 * torch.randn(*shape),)


Case = tuple[Callable[[], nn.Module], Callable[[], tuple[torch.Tensor, ...]]]
DEFAULTS: dict[str, Case] = {
    "Linear": (lambda: nn.Linear(64, 32), _pixels(8, 64)),
    "Linear without bias": (lambda: nn.Linear(64, 32, bias=False), _pixels(8, 64)),
    "Conv1d": (lambda: nn.Conv1d(16, 32, 3), _pixels(4, 16, 20)),
    "Conv2d": (lambda: nn.Conv2d(16, 32, 3), _pixels(4, 16, 9, 9)),
    "Conv2d in groups": (lambda: nn.Conv2d(32, 32, 3, groups=4), _pixels(4, 32, 9, 9)),
    "Conv2d, depthwise": (lambda: nn.Conv2d(64, 64, 3, groups=64), _pixels(4, 64, 9, 9)),
    "Conv3d": (lambda: nn.Conv3d(8, 16, 3), _pixels(2, 8, 5, 5, 5)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(16, 24, 3), _pixels(4, 16, 9)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(16, 24, 3), _pixels(4, 16, 5, 5)),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(8, 12, 3), _pixels(2, 8, 3, 3, 3)),
    "Bilinear": (lambda: nn.Bilinear(12, 14, 16), lambda: (3 * torch.randn(8, 12), 3 * torch.randn(8, 14))),
    "Embedding": (lambda: nn.Embedding(60, 16), lambda: (torch.arange(60),)),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(60, 16), lambda: (torch.arange(60).reshape(6, 10),)),
    "MultiheadAttention": (lambda: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), _pixels(4, 8, 32)),
    "MultiheadAttention, three sizes": (_Head, _pixels(4, 8, 32)),
    "RNN": (lambda: nn.RNN(24, 32, 2), _pixels(6, 4, 24)),
    "GRU": (lambda: nn.GRU(24, 32, bidirectional=True), _pixels(6, 4, 24)),
    "LSTM": (lambda: nn.LSTM(24, 32), _pixels(6, 4, 24)),
    "LSTM, projected": (lambda: nn.LSTM(24, 32, proj_size=20), _pixels(6, 4, 24)),
    "RNNCell": (lambda: nn.RNNCell(24, 32), _pixels(4, 24)),
    "GRUCell": (lambda: nn.GRUCell(24, 32), _pixels(4, 24)),
    "LSTMCell": (lambda: nn.LSTMCell(24, 32), _pixels(4, 24)),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(64, 1000, [100, 300]),
        lambda: (torch.randn(30, 64), torch.arange(30) * 33),
    ),
    "Transformer": (
        lambda: nn.Transformer(32, 4, 1, 1, 64, batch_first=True),
        lambda: (torch.randn(2, 5, 32), torch.randn(2, 4, 32)),
    ),
}


def _found(tmp_path: Path, state: dict[str, torch.Tensor]) -> tuple[Finding, ...]:
    return observe(tmp_path, state, *IDS)


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_default_is_recognised_until_the_first_step(name: str, tmp_path: Path) -> None:
    make, inputs = DEFAULTS[name]
    torch.manual_seed(0)
    layer = make()
    (found,) = _found(tmp_path, {f"layer.{k}": v for k, v in layer.state_dict().items()})
    assert (found.id, found.severity) == ("fresh-weights", Severity.NOTICE)
    assert dict(found.evidence)["proof"] == "lattice"
    large = {name for name, value in layer.named_parameters() if value.ndim >= 2 and value.numel() >= 256}
    assert dict(found.evidence)["elements"] == sum(layer.get_parameter(name).numel() for name in large)
    steps(layer, *inputs(), lr=0.1)
    assert _found(tmp_path, {f"layer.{k}": v for k, v in layer.state_dict().items()}) == ()


def test_adam_at_a_hundred_thousandth_is_seen_after_one_step(tmp_path: Path) -> None:
    """Where the edge and the distribution are as they were."""
    torch.manual_seed(0)
    for layer, inputs in ((nn.Linear(64, 32), torch.randn(8, 64)), (nn.Embedding(60, 16), torch.arange(60))):
        optimizer = torch.optim.Adam(layer.parameters(), lr=1e-5)
        layer(inputs).square().sum().backward()
        assert len(_found(tmp_path, layer.state_dict())) == 1
        optimizer.step()
        assert _found(tmp_path, layer.state_dict()) == ()


@pytest.mark.parametrize("name", ["resnet18", "squeezenet1_1", "mobilenet_v3_small", "mnasnet0_5", "swin_t"])
def test_a_new_network_of_torchvision_is_a_note(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torchvision.models.get_model(name, weights=None)
    (found,) = _found(tmp_path, model.state_dict())
    assert (found.id, found.severity) == ("fresh-weights", Severity.NOTICE)
    # What a network has not cannot have moved: SqueezeNet is without norms.
    still = {
        "resnet18": "no scale or shift of a norm has moved",
        "squeezenet1_1": "nothing else in the file tells of training",
    }
    assert found.says.endswith(f"{still.get(name, '')}.")


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_trained_for_a_few_steps_is_quiet(optimizer: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torchvision.models.get_model("shufflenet_v2_x0_5", weights=None, num_classes=10)
    made = getattr(torch.optim, optimizer)(model.parameters(), lr=1e-3)
    for _ in range(3):
        made.zero_grad()
        model(torch.randn(4, 3, 64, 64)).square().mean().backward()
        made.step()
    assert _found(tmp_path, model.state_dict()) == ()


def _network(layers: int = 6) -> nn.Sequential:
    torch.manual_seed(0)
    parts: list[nn.Module] = []
    for i in range(layers):
        parts += [nn.Conv2d(3 if i == 0 else 16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(nn.Sequential(*parts), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10))


def _trained(count: int = 3, **frozen: bool) -> dict[str, torch.Tensor]:
    """body: the convolutions and norms get no gradient. head: the linear layer does not."""
    model = _network()
    for part, place in (("body", 0), ("head", 3)):
        model[place].requires_grad_(not frozen.get(part, False))
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    for _ in range(count):
        optimizer.zero_grad()
        (model(torch.randn(4, 3, 12, 12)) - 1).square().mean().backward()
        optimizer.step()
    names = {"0": "features", "3": "classifier"}
    return {f"{names[k.partition('.')[0]]}.{k.partition('.')[2]}": v for k, v in model.state_dict().items()}


def test_all_of_it_trained_is_quiet(tmp_path: Path) -> None:
    assert _found(tmp_path, _trained()) == ()


def test_a_head_that_was_never_trained(tmp_path: Path) -> None:
    (found,) = _found(tmp_path, _trained(head=True))
    assert (found.id, found.severity, found.subjects) == (
        "untrained-head",
        Severity.WARNING,
        ("classifier.weight",),
    )
    # The first convolution has 432 elements: too few to tell by their shape that they moved.
    assert found.says == (
        "1 layer of 7 (14.3 %: classifier.weight) is unchanged since initialisation, while 5 others changed."
    )


def test_a_backbone_that_was_never_loaded(tmp_path: Path) -> None:
    (found,) = _found(tmp_path, _trained(body=True))
    assert (found.id, found.severity) == ("unloaded-backbone", Severity.WARNING)
    assert len(found.subjects) == 6 and found.subjects[0] == "features.0.weight"


def test_a_backbone_without_any_other_sign_of_training_is_a_note(tmp_path: Path) -> None:
    """Its norms are as they begin: the head could have been initialised in a way of its own."""
    state = _network().state_dict()
    state["3.weight"] = torch.nn.init.orthogonal_(torch.empty(10, 256))
    (found,) = _found(tmp_path, state)
    assert (found.id, found.severity) == ("unloaded-backbone", Severity.NOTICE)


def test_layers_in_between_are_a_warning_and_a_single_one_a_note(tmp_path: Path) -> None:
    state = _trained()
    fresh = _network().state_dict()
    state["features.6.weight"] = fresh["0.6.weight"]
    (found,) = _found(tmp_path, state)
    assert (found.id, found.severity, found.subjects) == (
        "unchanged-layers",
        Severity.NOTICE,
        ("features.6.weight",),
    )
    state["features.9.weight"] = fresh["0.9.weight"]
    (found,) = _found(tmp_path, state)
    assert (found.id, found.severity) == ("unchanged-layers", Severity.WARNING)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sixteen_bits_leave_the_edge_and_the_spread(dtype: torch.dtype, tmp_path: Path) -> None:
    torch.manual_seed(0)
    (found,) = _found(tmp_path, {k: v.to(dtype) for k, v in nn.Linear(64, 64).state_dict().items()})
    assert dict(found.evidence)["proof"] == "edge"
    (found,) = _found(tmp_path, {k: v.to(dtype) for k, v in nn.Embedding(2100, 32).state_dict().items()})
    assert dict(found.evidence)["proof"] == "spread" and "no proof" in found.remedy


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sixteen_bits_of_a_trained_network_are_quiet_and_of_an_untrained_head_are_not(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    state = _trained(head=True)
    for name, value in state.items():
        if value.ndim == 4:  # As if for long.
            state[name] = value + 0.3 * value.std() * torch.randn_like(value)
    half = {k: v.to(dtype) if v.is_floating_point() else v for k, v in state.items()}
    (found,) = _found(tmp_path, half)
    assert (found.id, found.severity) == ("untrained-head", Severity.NOTICE)
    half |= {f"classifier.{k}": v.to(dtype) for k, v in nn.Linear(1 << 11, 10).state_dict().items()}
    (found,) = _found(tmp_path, half)
    assert (found.id, found.severity) == ("untrained-head", Severity.WARNING)
    half["classifier.weight"] *= 1.05
    assert _found(tmp_path, half) == ()
    # Trained for three steps: rounding hides most of it, and nothing is claimed.
    half = {k: v.to(dtype) if v.is_floating_point() else v for k, v in _trained().items()}
    assert _found(tmp_path, half) == ()


def test_random_features_of_another_generator_are_not_claimed(tmp_path: Path) -> None:
    """Normal numbers of numpy: their shape is an initialiser's, their last bits are nobody's that is known."""
    import numpy as np

    state = _trained()
    numbers = np.random.default_rng(0).normal(0, 0.02, (64, 64)).astype(np.float32)
    assert _found(tmp_path, state | {"more.weight": torch.from_numpy(numbers)}) == ()


def test_few_elements_constants_and_damaged_weights_are_left_alone(tmp_path: Path) -> None:
    state = _trained()
    state |= {"a.weight": nn.Linear(15, 15).weight.detach(), "b.weight": torch.zeros(64, 64)}
    state["c.weight"] = nn.Linear(64, 64).weight.detach().clone()
    state["c.weight"][0, 0] = float("nan")
    assert _found(tmp_path, state) == ()


@pytest.mark.parametrize(("name", "severity"), [("aux1", Severity.NOTICE), ("branch", Severity.WARNING)])
def test_auxiliary_heads_that_were_not_run_are_a_note(name: str, severity: Severity, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential()
    for part in ("a", "b", "c", name):
        model.add_module(part, nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3)))
    ran = nn.Sequential(*list(model)[:3])
    chosen = torch.optim.SGD(ran.parameters(), 0.1)
    for _ in range(3):
        chosen.zero_grad()
        ran(torch.randn(4, 8, 12, 12)).square().mean().backward()
        chosen.step()
    torch.save(model.state_dict(), tmp_path / "net.pth")
    found = [f for f in examine(open_checkpoint(tmp_path / "net.pth")).findings if name in str(f.subjects)]
    assert [f.severity for f in found if "unchanged" in f.says] == [severity]


def _below(weight: torch.Tensor, share: float) -> torch.Tensor:
    """Without the smallest part of its numbers."""
    flat = weight.abs().flatten()
    return torch.where(weight.abs() >= flat.kthvalue(max(1, int(share * flat.numel()))).values, weight, 0.0)


def _two_of_four(weight: torch.Tensor) -> torch.Tensor:
    """Without the smaller two of every four."""
    fours = weight.reshape(-1, 4)
    order = fours.abs().argsort(dim=1)
    return fours.scatter(1, order[:, :2], 0.0).reshape(weight.shape)


@pytest.mark.parametrize("make", [nn.init.kaiming_uniform_, nn.init.kaiming_normal_, nn.init.trunc_normal_])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_pruned_layer_is_not_said_to_be_unchanged(
    make: Callable[[torch.Tensor], torch.Tensor], dtype: torch.dtype, tmp_path: Path
) -> None:
    """What gentle training left in an initialiser's shape, once its small numbers, two of every four, or rows went."""
    torch.manual_seed(0)
    for prune in (lambda w: _below(w, 0.02), lambda w: _below(w, 0.3), _two_of_four):
        state = _trained()
        for n in range(3):
            fresh = make(torch.empty(128, 256))
            moved = torch.where(
                fresh.abs() < 0.9 * fresh.abs().max(), fresh * (1 + 1e-4 * torch.randn(128, 256)), fresh
            )
            state[f"classifier.{n}.fc.weight"] = prune(moved).to(dtype)
        assert _found(tmp_path, state) == ()


def test_rows_that_structured_pruning_took_prove_nothing(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = _trained()
    fresh = nn.Linear(256, 64).weight.data
    moved = torch.where(fresh.abs() < 0.0624, fresh * (1 + 1e-4 * torch.randn(64, 256)), fresh)
    moved[torch.randperm(64)[:16]] = 0
    assert _found(tmp_path, {**state, "middle.fc.weight": moved}) == ()


def test_a_new_layer_with_a_row_for_padding_is_still_recognised(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = _trained()
    state["emb.weight"] = nn.Embedding(60, 16, padding_idx=0).weight.data
    (found,) = _found(tmp_path, state)
    assert found.subjects == ("emb.weight",)


def test_a_pruned_layer_that_torch_drew_is_still_recognised_by_its_last_bits(tmp_path: Path) -> None:
    """Where small numbers are left: a tenth of all went at random."""
    torch.manual_seed(0)
    state = _trained()
    state["classifier.weight"] = nn.Linear(256, 10).weight.data * (torch.rand(10, 256) > 0.1)
    (found,) = _found(tmp_path, state)
    assert found.subjects == ("classifier.weight",)
