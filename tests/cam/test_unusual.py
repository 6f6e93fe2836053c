"""Models that are wrapped, compiled, checkpointed, quantised or empty: the right map, or a sentence that helps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils import checkpoint

from inspector.cam.engine.maps import heat_maps
from inspector.cam.explain import explain
from inspector.cam.layers.proposals import propose_layers
from inspector.cam.report import Preprocessing
from inspector.errors import ExplainError, InspectorError, LayerNotSpatial

SHAPE = (3, 32, 48)
PLAIN = Preprocessing(
    resize=None,
    crop=None,
    mean=(0.0,) * 3,
    std=(1.0,) * 3,
    channels=3,
    interpolation="bilinear",
    source="test",
    assumed=False,
)


class Net(nn.Module):
    """stem -> norm -> block (two convolutions) -> last -> mean -> linear."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.stem = nn.Conv2d(3, 8, 4, stride=4)
        self.norm = nn.BatchNorm2d(8)
        self.block = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.Tanh(), nn.Conv2d(8, 8, 3, padding=1))
        self.last = nn.Conv2d(8, 6, 3, padding=1)
        self.head = nn.Linear(6, 3)

    def begin(self, x: Tensor) -> Tensor:
        return self.norm(self.stem(x))

    def middle(self, x: Tensor) -> Tensor:
        return self.block(x)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.middle(self.begin(x)))
        return self.head(torch.relu(self.last(x)).mean(dim=(2, 3)))


@pytest.fixture
def batch() -> Tensor:
    return torch.randn(2, *SHAPE, generator=torch.Generator().manual_seed(3))


def raw(model: nn.Module, batch: Tensor, layer: str) -> Tensor:
    return heat_maps(model, batch, layer=layer, targets=1).raw


@pytest.mark.parametrize("layer", ["stem", "block.0", "last"])
@pytest.mark.parametrize("how", ["wrapped", "in place"])
def test_compiled(batch: Tensor, layer: str, how: str) -> None:
    model = Net().eval()
    expected = raw(Net().eval(), batch, layer)
    if how == "wrapped":
        compiled = torch.compile(model, backend="eager")
        compiled(batch)
    else:
        model.compile(backend="eager")
        compiled = model
        compiled(batch)
    for _ in range(2):
        assert torch.equal(raw(compiled, batch, layer), expected)
    torch.testing.assert_close(compiled(batch), Net().eval()(batch))


def test_a_compiled_part(batch: Tensor) -> None:
    model = Net().eval()
    model.block = torch.compile(model.block, backend="eager")
    model(batch)
    for layer in ("stem", "last"):
        assert torch.equal(raw(model, batch, layer), raw(Net().eval(), batch, layer))
    assert torch.equal(raw(model, batch, "block._orig_mod.0"), raw(Net().eval(), batch, "block.0"))


class Checkpointed(Net):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.reentrant = reentrant

    def middle(self, x: Tensor) -> Tensor:
        return checkpoint.checkpoint(self.block, x, use_reentrant=self.reentrant)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing_is_right_behind_and_refused_inside(batch: Tensor, reentrant: bool) -> None:
    model = Checkpointed(reentrant)
    assert torch.equal(raw(model, batch, "last"), raw(Net().eval(), batch, "last"))
    inside, through = "block.0", "stem"
    if reentrant:
        # What runs inside has no graph at all: an empty map that says so.
        assert float(heat_maps(model, batch, layer=inside).gradient_peak.max()) == 0
        inside = through
    else:
        assert torch.equal(raw(model, batch, through), raw(Net().eval(), batch, through))
    with pytest.raises(ExplainError, match="parts of itself again") as caught:
        raw(model, batch, inside)
    assert "gradient_checkpointing_disable" in str(caught.value.hint)
    assert model.training
    assert not any(module._forward_hooks for module in model.modules())


class Detached(Net):
    def middle(self, x: Tensor) -> Tensor:
        return self.block(x.detach())


class WithoutGradients(Net):
    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


class ThroughNumPy(Net):
    def forward(self, x: Tensor) -> Tensor:
        return torch.from_numpy(super().forward(x).detach().numpy())


@pytest.mark.parametrize(
    ("make", "layer"),
    [
        (Detached, "stem"),
        (WithoutGradients, "last"),
        (ThroughNumPy, "last"),
        (lambda: torch.ao.quantization.quantize_dynamic(Net().eval(), {nn.Linear}), "last"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_gradients_that_the_model_stops_are_said(make: Callable[[], nn.Module], layer: str) -> None:
    picture = Image.new("RGB", (48, 32), (200, 60, 10))
    found = explain(make().eval(), picture, preprocessing=PLAIN, layer=layer, target=1)
    (finding,) = found.findings
    assert finding.id == "zero-gradient-map"
    assert f"reaches the output of {layer}" in finding.says
    assert "detach" in str(finding.remedy)


@pytest.mark.filterwarnings("ignore")
def test_programs_are_refused(batch: Tensor) -> None:
    traced = torch.jit.trace(Net().eval(), batch)
    for ask in (lambda: propose_layers(traced, SHAPE), lambda: heat_maps(traced, batch, layer="last")):
        with pytest.raises(ExplainError, match="TorchScript program"):
            ask()
    model = Net().eval()
    model.block = torch.jit.trace(model.block, torch.randn(1, 8, 8, 12))
    torch.testing.assert_close(raw(model, batch, "last"), raw(Net().eval(), batch, "last"))
    torch.testing.assert_close(raw(model, batch, "stem"), raw(Net().eval(), batch, "stem"))
    with pytest.raises(InspectorError, match=r"'block\.0' is not called"):
        raw(model, batch, "block.0")
    assert not any(module._forward_hooks for module in model.modules())


def test_weights_without_values(batch: Tensor) -> None:
    lazy = Net().eval()
    lazy.head = nn.LazyLinear(3)
    for model in (Net().to("meta"), lazy):
        with pytest.raises(ExplainError, match="no values yet"):
            heat_maps(model, batch, layer="last")
    assert isinstance(lazy.head, nn.LazyLinear)


def test_quantised_layers_have_no_numbers_to_explain(batch: Tensor) -> None:
    class Whole(Net):
        def begin(self, x: Tensor) -> Tensor:
            return self.norm(self.codes(self.stem(x)).float())

        class Codes(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                return (x * 10).round().to(torch.int8)

        def __init__(self) -> None:
            super().__init__()
            self.codes = self.Codes()

    with pytest.raises(LayerNotSpatial, match="no floating-point numbers"):
        heat_maps(Whole().eval(), batch, layer="codes")


@dataclass
class Answer:
    """As other libraries answer, without being a mapping."""

    logits: Tensor
    hidden: Tensor


def test_answers_and_outputs_in_dataclasses(batch: Tensor) -> None:
    class Body(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: Tensor) -> Answer:
            found = self.inner(x)
            return Answer(logits=found, hidden=found.mean())

    class Wrapped(Net):
        def __init__(self) -> None:
            super().__init__()
            self.block = Body(self.block)

        def middle(self, x: Tensor) -> Tensor:
            return self.block(x).logits

        def forward(self, x: Tensor) -> Answer:
            return Answer(logits=super().forward(x), hidden=x)

    model = Wrapped().eval()
    assert torch.equal(raw(model, batch, "last"), raw(Net().eval(), batch, "last"))
    assert torch.equal(raw(model, batch, "block"), raw(Net().eval(), batch, "block"))


class WritesBack(Net):
    """Writes over what the gradient of its own ReLU needs."""

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.last(self.middle(self.begin(x))))
        z = y * 2
        loss = z * y
        y.mul_(3)
        return self.head(loss.mean(dim=(2, 3)))


def test_what_torch_cannot_differentiate_is_said_in_its_words(batch: Tensor) -> None:
    model = WritesBack().eval()
    for method in ("grad-cam", "saliency"):
        with pytest.raises(ExplainError, match=r"cannot differentiate this model: .*inplace operation") as caught:
            heat_maps(model, batch, layer="last", method=method)
        assert "EigenCAM" in str(caught.value.hint)
    assert float(heat_maps(model, batch, layer="last", method="eigen-cam").raw.abs().max()) > 0


class Changing(Net):
    """Writes into the layer's output in every way there is, none of which the kept copy may feel."""

    def forward(self, x: Tensor) -> Tensor:
        y = self.last(torch.tanh(self.middle(self.begin(x))))
        view = y.flatten(2)
        view.clamp_(min=0)
        y[:, :, 0].mul_(1.0)
        y += 0
        return self.head(nn.functional.relu(y, inplace=True).mean(dim=(2, 3)))


@pytest.mark.parametrize("layer", ["stem", "block.0", "last"])
def test_writes_into_the_output_and_its_views(batch: Tensor, layer: str) -> None:
    torch.testing.assert_close(raw(Changing().eval(), batch, layer), raw(Net().eval(), batch, layer))
    kept = heat_maps(Changing().eval(), batch, layer="last", method="eigen-cam").raw
    torch.testing.assert_close(kept, heat_maps(Net().eval(), batch, layer="last", method="eigen-cam").raw)


@pytest.mark.parametrize("kind", ["keyword", "two"])
def test_other_arguments_are_asked_for_in_words(batch: Tensor, kind: str) -> None:
    class Keyword(Net):
        def forward(self, *, pixel_values: Tensor) -> Tensor:
            return super().forward(pixel_values)

    class Two(Net):
        def forward(self, x: Tensor, other: Tensor) -> Tensor:
            return super().forward(x + other)

    model = (Keyword() if kind == "keyword" else Two()).eval()
    with pytest.raises(ExplainError, match="does not accept an input of 3x32x48") as caught:
        heat_maps(model, batch)
    assert "a module around it" in str(caught.value.hint)
