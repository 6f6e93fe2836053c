"""The columns of the bill: by hand, as sums, and receptive fields against gradients."""

from __future__ import annotations

import copy

import pytest
import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional

from inspector.architectures.types import ArchitectureSpec
from inspector.flops.count import count_costs, count_model_costs
from inspector.flops.report import CostReport, Coverage, ModuleCost, Operand


def bill(model: nn.Module, *shape: int, dtype: str = "float32") -> CostReport:
    return count_model_costs(model.eval(), shape, label="a model", dtype=dtype, second_opinion=False)


def row(report: CostReport, path: str) -> ModuleCost:
    return next(m for m in report.modules if m.path == path)


class Tied(nn.Module):
    """Two names of one matrix, one layer called twice, one that never runs, a frozen one."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight
        self.mix, self.idle = nn.Linear(4, 4), nn.Linear(4, 3)
        self.norm = nn.BatchNorm1d(4)
        for parameter in self.mix.parameters():
            parameter.requires_grad = False

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.mix(self.mix(self.norm(self.embed(ids)))))


def test_every_column_by_hand() -> None:
    report = bill(Tied(), 2, dtype="int64")
    assert [m.path for m in report.modules] == ["", "embed", "norm", "mix", "head", "idle"]
    assert report.macs == 2 * (2 * 4 * 4 + 4 * 10)
    # Shared once, at its first row; what never ran is there.
    assert [m.own_parameters for m in report.modules] == [0, 40, 8, 20, 0, 15]
    assert [m.shared_parameters for m in report.modules] == [0, 0, 0, 0, 40, 0]
    assert [m.frozen_parameters for m in report.modules] == [0, 0, 0, 20, 0, 0]
    assert [m.calls for m in report.modules] == [1, 1, 1, 2, 1, 0]
    assert (report.parameters, report.trainable, report.buffers) == (83, 63, 9)
    assert (report.parameter_nbytes, report.buffer_nbytes, report.input_nbytes) == (83 * 4, 8 * 4 + 8, 16)
    # One normalisation of 2 x 4 numbers; the products and the table are no element-wise work.
    assert report.elementwise == row(report, "norm").own_elementwise == 8
    head = row(report, "head")
    assert (head.read_nbytes, head.written_nbytes) == (4 * (2 * 4 + 40), 4 * 20)
    # A table gives two of its rows: that much is read, beside the two places.
    assert (row(report, "embed").read_nbytes, row(report, "embed").written_nbytes) == (2 * 8 + 32, 32)
    assert head.inputs == (Operand(shape=(2, 4), dtype="float32"),) and head.settings == "in 4, out 10"
    assert row(report, "embed").inputs == (Operand(shape=(2,), dtype="int64"),)
    assert report.activation_nbytes == 4 * (8 + 8 + 2 * 8 + 20)
    assert report.forward_backward_nbytes == 2 * report.activation_nbytes
    assert report.coverage("shapes").coverage is Coverage.PARTIAL
    assert report.coverage("macs").coverage is Coverage.COMPLETE


@pytest.mark.parametrize(
    ("layer", "says"),
    [
        (nn.Conv2d(3, 8, 3, stride=2, padding=1, groups=1), "3 to 8, 3x3, stride 2x2, padding 1x1"),
        (nn.Conv2d(8, 8, (1, 5), groups=8, dilation=2), "8 to 8, 1x5, dilation 2x2, groups 8"),
        (nn.MaxPool2d(2), "2"),
        (nn.MaxPool2d(3, 2), "3, stride 2"),
        (nn.MultiheadAttention(8, 2), "heads 2, width 8"),
        (nn.LayerNorm(6), "over 6"),
        (nn.GroupNorm(2, 6), "groups 2"),
        (nn.LSTM(4, 5, 2, bidirectional=True), "in 4, hidden 5, layers 2, both directions"),
        (nn.Dropout(0.2), "p 0.2"),
        (nn.ReLU(), ""),
    ],
)
def test_a_layer_says_what_it_is_set_to(layer: nn.Module, says: str) -> None:
    from inspector.forward.settings import settings_in_words

    assert settings_in_words(layer) == says


@pytest.mark.parametrize("name", ["resnet18", "shufflenet_v2_x0_5", "vit_b_32", "swin_t", "googlenet", "convnext_tiny"])
def test_own_columns_add_up_to_the_totals(name: str) -> None:
    report = count_costs(ArchitectureSpec(library="torchvision", name=name), second_opinion=False)
    modules = report.modules
    assert sum(m.own_macs for m in modules) == report.macs
    assert sum(m.own_elementwise for m in modules) == report.elementwise
    assert sum(m.own_parameters for m in modules) == report.parameters
    assert sum(m.own_buffers for m in modules) == report.buffers
    assert sum(m.own_read_nbytes for m in modules) == report.read_nbytes
    assert sum(m.own_written_nbytes for m in modules) == report.written_nbytes
    # A module's sum is its own and its children's, where none is shared.
    for m in modules:
        below = [c for c in modules if c.path.startswith(f"{m.path}." if m.path else "")]
        own = sum(c.own_macs for c in below) + (m.own_macs if m.path else 0)
        assert m.macs == own, m.path


def test_an_operator_without_a_formula_makes_the_columns_partial() -> None:
    class Spectrum(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.fft.rfft2(x).abs()

    report = bill(Spectrum(), 1, 3, 8, 8)
    assert report.coverage("macs").coverage is Coverage.PARTIAL
    assert "fft" in report.coverage("macs").why


def test_einsum_says_in_which_order_it_contracted() -> None:
    class Three(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.einsum("ab,bc,cd->ad", x, x.mT, x) + torch.einsum("ab,cb->ac", x, x).sum()

    (equations, order, calls), two = sorted(bill(Three(), 3, 5).einsums)
    assert (equations, calls) == ("ab,bc,cd->ad", 1) and ("left to right" in order or "opt_einsum" in order)
    assert two == ("ab,cb->ac", "one product", 1)


def test_tensors_made_on_the_cpu_inside_a_forward_are_no_trouble() -> None:
    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.tensor([2.0, 3.0, 4.0])
            self.fc = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            ramp = torch.arange(3, dtype=torch.float32)
            return self.fc(x * self.scale + ramp) + torch.tensor(1.0)

    model = Positions()
    assert bill(model, 2, 3).macs == 2 * 9
    assert model.scale.device.type == "cpu" and model.scale.tolist() == [2, 3, 4]


def _looks_at(model: nn.Module, path: str, side: int) -> tuple[int, ...]:
    """Pixels between the first and last, along each axis, that the middle of a module's output has a gradient of."""
    found: list[Tensor] = []
    hook = model.get_submodule(path).register_forward_hook(lambda m, a, output: found.append(output))
    x = torch.rand(1, 3, side, side, dtype=torch.float64, requires_grad=True)
    model(x)
    hook.remove()
    output = found[0]
    output[0, :, output.shape[2] // 2, output.shape[3] // 2].sum().backward()
    assert x.grad is not None
    seen = x.grad[0].abs().sum(0) > 0
    extents = (seen.any(1).nonzero().flatten(), seen.any(0).nonzero().flatten())
    return tuple(int(places[-1] - places[0]) + 1 for places in extents)


class Awkward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 4, (3, 5), stride=2)
        self.wide = nn.Conv2d(4, 4, 3, dilation=3, padding=3)
        self.pool = nn.AvgPool2d(3, 2, padding=1)
        self.up = nn.ConvTranspose2d(4, 4, 4, stride=2)
        self.last = nn.Conv2d(8, 4, 3)
        self.norm = nn.LayerNorm(4)
        self.mix = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.down(x)
        y = self.up(self.pool(self.wide(x)))
        height, width = min(x.shape[2], y.shape[2]), min(x.shape[3], y.shape[3])
        both = torch.cat([x[:, :, :height, :width], y[:, :, :height, :width]], 1)
        return self.last(both).permute(0, 2, 3, 1).flatten(1, 2).unflatten(1, (height - 2, width - 2))


@pytest.mark.parametrize(
    ("make", "side", "depth"),
    [
        (lambda: torchvision.models.resnet18(), 512, 1),
        (lambda: torchvision.models.mobilenet_v2().features[:8], 256, 1),
        (lambda: torchvision.models.densenet121().features[:5], 192, 1),
        (lambda: torchvision.models.convnext_tiny().features[:3], 160, 1),
        (Awkward, 96, 1),
    ],
)
def test_receptive_fields_are_where_gradients_come_from(make: object, side: int, depth: int) -> None:
    torch.manual_seed(0)
    model: nn.Module = make().double().eval()  # type: ignore[operator]
    report = bill(copy.deepcopy(model).float(), 1, 3, side, side)
    # Positive weights, and nothing that picks or cuts off: every pixel that can count does.
    for parameter in model.parameters():
        parameter.data.uniform_(0.5, 1)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.ReLU | nn.ReLU6 | nn.GELU):
                setattr(module, name, nn.Identity())
            elif isinstance(child, nn.MaxPool2d):
                setattr(module, name, nn.AvgPool2d(child.kernel_size, child.stride, child.padding))
    checked = 0
    for m in report.modules:
        if m.path and m.depth <= depth and m.output_shape and len(m.output_shape) == 4 and m.kind != "LayerNorm":
            if min(m.output_shape[2:]) == 1:
                continue
            assert m.receptive_field is not None, m.path
            assert m.receptive_field == _looks_at(model, m.path, side), m.path
            checked += 1
    assert checked >= 3


def test_where_places_are_lost_nothing_is_said() -> None:
    class Tokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patch, self.first = nn.Conv2d(3, 8, 4, 4), nn.Parameter(torch.zeros(1, 1, 8))
            self.mix = nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            tokens = self.patch(x).flatten(2).mT
            return self.mix(torch.cat([self.first.expand(len(x), -1, -1), tokens], 1))

    report = bill(Tokens(), 1, 3, 16, 16)
    assert row(report, "patch").receptive_field == (4, 4)
    assert row(report, "mix").receptive_field is None
    assert report.coverage("receptive_field").coverage is Coverage.PARTIAL


def test_a_part_that_is_not_followed_leaves_no_claim_behind_it() -> None:
    class Windows(nn.Module):
        """Rows put together by twos, and added to what they were."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.mix, self.last = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(16, 16), nn.Conv2d(4, 4, 3)

        def forward(self, x: Tensor) -> Tensor:
            x = self.first(x)
            parts = self.mix(x.unflatten(2, (4, 2)).transpose(3, 4).flatten(3)).unflatten(3, (8, 2)).transpose(3, 4)
            return self.last(x + parts.flatten(2, 3))

    report = bill(Windows(), 1, 3, 8, 8)
    assert row(report, "first").receptive_field == (3, 3)
    assert row(report, "last").receptive_field is None

    class Writes(nn.Module):
        """One channel is replaced by what lies far away."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.far, self.last = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 1, 5, padding=2), nn.Conv2d(4, 4, 1)

        def forward(self, x: Tensor) -> Tensor:
            x = self.first(x)
            x[:, :1] = self.far(x)
            return self.last(x)

    assert row(bill(Writes(), 1, 3, 12, 12), "last").receptive_field in (None, (7, 7))


def test_attention_over_all_tokens_looks_everywhere() -> None:
    class Attends(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patch, self.end = nn.Conv2d(3, 8, 4, 4), nn.Identity()

        def forward(self, x: Tensor) -> Tensor:
            t = self.patch(x).flatten(2).mT
            return self.end(functional.softmax(t @ t.mT, -1) @ t)

    assert row(bill(Attends(), 1, 3, 16, 16), "end").receptive_field == (16, 16)


def test_the_model_in_hand_keeps_its_mode_and_values() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout()).train()
    model[1].eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    count_model_costs(model, (1, 3, 8, 8), label="m", second_opinion=False)
    assert [m.training for m in model.modules()] == [True, True, False, True]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_a_hundred_failed_counts_change_no_later_one() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 6 * 6, 2))
    first = bill(model, 1, 3, 8, 8)
    for _ in range(100):
        with pytest.raises(Exception, match="does not take an input"):
            bill(model, 1, 3, 9, 9)
    assert bill(model, 1, 3, 8, 8) == first
