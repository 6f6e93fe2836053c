"""What is behind a layer, run alone, gives what the whole model gives when a hook changes the layer's output."""

from __future__ import annotations

import pytest
import torch
import torchvision
from torch import Tensor, nn

from inspector.cam.engine.capture import Place, borrowed
from inspector.cam.engine.replay import Replay
from inspector.cam.layers.proposals import propose_layers


def whole(model: nn.Module, path: str, picture: Tensor, outputs: Tensor) -> Tensor:
    """Everything run, the layer's output replaced by a hook."""
    handle = model.get_submodule(path).register_forward_hook(lambda _module, _args, _output: outputs.clone())
    try:
        with torch.no_grad():
            return model(picture.expand(len(outputs), -1, -1, -1))
    finally:
        handle.remove()


@pytest.mark.parametrize(
    ("name", "path", "side"),
    [
        ("resnet18", "layer3", 64),
        ("resnet18", "layer3.1.conv1", 64),
        ("mobilenet_v3_small", "features.5", 64),
        ("densenet121", "features.denseblock2", 64),
        ("shufflenet_v2_x0_5", "stage3", 64),
        ("squeezenet1_1", "features.9", 96),
        ("convnext_tiny", "features.3", 64),
        ("swin_t", "features.3", 64),
    ],
)
def test_shortened_runs_are_the_whole_models(name: str, path: str, side: int) -> None:
    torch.manual_seed(1)
    model = torchvision.models.get_model(name, weights=None, num_classes=7).double().eval()
    picture = torch.randn(1, 3, side, side, dtype=torch.float64)
    with borrowed(model):
        replay = Replay(model, Place(path), picture)
        assert replay.shortened
        changed = replay.output.repeat(3, *[1] * (replay.output.dim() - 1))
        changed[1] *= 0.5
        changed[2] = 0
        got = replay.answer(changed)
        again = replay.answer(changed)
    torch.testing.assert_close(got, whole(model, path, picture, changed), rtol=1e-8, atol=1e-14)
    assert torch.equal(got, again)
    assert not torch.equal(got[0], got[2])
    assert not any("forward" in module.__dict__ for module in model.modules())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_only_what_is_behind_the_layer_runs() -> None:
    torch.manual_seed(1)
    model = torchvision.models.resnet18(num_classes=4).eval()
    ran: list[str] = []
    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d):
            forward = type(module)._conv_forward
            module._conv_forward = lambda *args, name=name, m=module, f=forward: (ran.append(name), f(m, *args))[1]
    replay = Replay(model, Place("layer3"), torch.randn(1, 3, 64, 64))
    ran.clear()
    replay.answer(replay.output)
    assert ran and all(name.startswith("layer4") for name in ran)


class Counting(nn.Module):
    """Computes from the number of pictures before the layer, outside of any module."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.layer = nn.Conv2d(4, 4, 3)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.stem(x)
        y += x.mean()  # in place, into what the stem put out
        z = torch.relu_(self.layer(y)) + y[:, :, 1:-1, 1:-1]
        return self.head(z.mean(dim=(2, 3)))


def test_in_place_writes_before_the_layer_are_not_done_twice() -> None:
    torch.manual_seed(3)
    model = Counting().double().eval()
    picture = torch.randn(1, 3, 8, 8, dtype=torch.float64)
    replay = Replay(model, Place("layer"), picture)
    assert replay.shortened
    changed = torch.cat([replay.output, replay.output * 2])
    kept = changed.clone()
    for _ in range(2):
        torch.testing.assert_close(
            replay.answer(changed), whole(model, "layer", picture, changed), rtol=1e-12, atol=1e-12
        )
    assert torch.equal(changed, kept)


class Partial(Counting):
    """Writes into the first picture alone, which torch also allows where all pictures are one piece of memory."""

    def forward(self, x: Tensor) -> Tensor:
        y = self.stem(x)
        y[0] += x[0].mean()
        return self.head((torch.relu_(self.layer(y)) + y[:, :, 1:-1, 1:-1]).mean(dim=(2, 3)))


def test_writes_into_one_picture_do_not_reach_the_others() -> None:
    torch.manual_seed(3)
    model = Partial().double().eval()
    picture = torch.randn(1, 3, 8, 8, dtype=torch.float64)
    replay = Replay(model, Place("layer"), picture)
    changed = torch.cat([replay.output, replay.output * 2, replay.output * 3])
    for _ in range(2):
        torch.testing.assert_close(
            replay.answer(changed), whole(model, "layer", picture, changed), rtol=1e-12, atol=1e-12
        )


def test_what_is_before_the_layer_is_not_copied_for_each_picture() -> None:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.Flatten(), nn.Linear(64, 2)).eval()
    replay = Replay(model, Place("2"), torch.randn(1, 3, 8, 8))
    held: list[int] = []
    with_hook = model[1].register_forward_hook(lambda _m, _a, output: held.append(output.untyped_storage().nbytes()))
    replay.answer(replay.output.repeat(16, 1, 1, 1))
    with_hook.remove()
    assert held == [8 * 6 * 6 * 4]


class Nosy(nn.Module):
    """What happens behind the layer depends on what lies before it in a way that stubs do not carry."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 1)
        self.layer = nn.Conv2d(4, 4, 1)
        self.head = nn.Linear(4, 2)
        self.seen: Tensor | None = None
        self.stem.register_forward_hook(self._look)

    def _look(self, _module: nn.Module, _args: object, output: Tensor) -> None:
        self.seen = output.mean() * len(output)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(self.stem(x)).mean(dim=(2, 3))) * self.seen


def test_a_model_that_cannot_be_shortened_is_run_whole() -> None:
    torch.manual_seed(3)
    model = Nosy().double().eval()
    picture = torch.randn(1, 3, 5, 5, dtype=torch.float64)
    replay = Replay(model, Place("layer"), picture)
    # The factor follows the number of pictures, so three of them do not give the answer of one.
    assert not replay.shortened
    torch.testing.assert_close(replay.answer(replay.output), replay.logits)


def test_tokens_of_a_vision_transformer() -> None:
    torch.manual_seed(1)
    model = torchvision.models.VisionTransformer(32, 8, 3, 4, 16, 32, num_classes=5).eval()
    nn.init.normal_(model.heads.head.weight)
    picture = torch.randn(1, 3, 32, 32)
    layer = propose_layers(model, (3, 32, 32))[0]
    with borrowed(model):
        replay = Replay(model, Place(layer.path, layer.call), picture)
        changed = torch.cat([replay.output, replay.output * 0.3])
        got = replay.answer(changed)
    assert replay.shortened
    torch.testing.assert_close(got, whole(model, layer.path, picture, changed), rtol=1e-5, atol=1e-6)
