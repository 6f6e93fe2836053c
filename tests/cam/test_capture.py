"""What capture lends it gives back, and what it keeps is the layer's output and nothing else."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from inspector.cam.engine.capture import Place, capture, unwrap
from inspector.cam.targets.readings import logits_of
from inspector.errors import ExplainError, NoSuchLayer


class Small(nn.Module):
    """conv -> batch norm -> ReLU (shared, called twice) -> conv -> ReLU -> mean -> linear."""

    def __init__(self, *, inplace: bool = False) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=inplace)
        self.conv2 = nn.Conv2d(4, 5, 3, padding=1)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(5, 3)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.seen += 1  # a buffer written in place
        x = self.relu(self.norm(self.conv1(x)))
        x = self.relu(self.conv2(x))
        return self.head(self.drop(x).mean(dim=(2, 3)))


@pytest.fixture
def small() -> Small:
    torch.manual_seed(0)
    return Small().double()


@pytest.fixture
def batch() -> Tensor:
    return torch.randn(2, 3, 6, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def one_pass(model: nn.Module, batch: Tensor, place: Place, target: int = 1) -> tuple[Tensor, Tensor]:
    with capture(model, [place]) as lent:
        score = lent.forward(batch)[:, target].sum()
        gradient = lent.gradients(score)[place]
        return lent.outputs[place].detach().clone(), gradient


def by_hand(model: Small, batch: Tensor, target: int = 1) -> tuple[Tensor, Tensor]:
    """Output of conv2 and the gradient of the score there, written out without hooks."""
    activation = functional.conv2d(
        torch.relu(functional.batch_norm(
            functional.conv2d(batch, model.conv1.weight, model.conv1.bias, padding=1),
            model.norm.running_mean, model.norm.running_var, model.norm.weight, model.norm.bias, False, 0.0, 1e-5,
        )),
        model.conv2.weight, model.conv2.bias, padding=1,
    ).detach()  # fmt: skip
    # d score / d conv2 = head weight / cells where ReLU lets it through.
    cells = activation.shape[2] * activation.shape[3]
    gradient = (activation > 0) * model.head.weight[target][None, :, None, None].detach() / cells
    return activation, gradient


def test_output_and_gradient_are_those_written_out_by_hand(small: Small, batch: Tensor) -> None:
    small.eval()
    activation, gradient = one_pass(small, batch, Place("conv2"))
    expected_activation, expected_gradient = by_hand(small, batch)
    torch.testing.assert_close(activation, expected_activation, rtol=0, atol=1e-12)
    torch.testing.assert_close(gradient, expected_gradient, rtol=0, atol=1e-12)
    assert gradient.abs().max() > 0


def test_in_place_relu_behind_the_layer_changes_nothing(small: Small, batch: Tensor) -> None:
    naive = Small(inplace=True).double()
    naive.load_state_dict(small.state_dict())
    kept, gradient = one_pass(naive, batch, Place("conv2"))
    expected, expected_gradient = one_pass(small, batch, Place("conv2"))
    assert (expected < 0).any(), "without negative values the test could not fail"
    torch.testing.assert_close(kept, expected, rtol=0, atol=0)
    torch.testing.assert_close(gradient, expected_gradient, rtol=0, atol=0)


def test_calls_of_a_shared_module_are_told_apart(small: Small, batch: Tensor) -> None:
    first, first_gradient = one_pass(small, batch, Place("relu", 0))
    second, second_gradient = one_pass(small, batch, Place("relu", 1))
    assert first.shape[1] == 4
    assert second.shape[1] == 5
    # Behind the second call: the mean and the head, nothing cut off.
    weight = small.head.weight[1].detach()[None, :, None, None].expand_as(second) / (6 * 7)
    torch.testing.assert_close(second_gradient, weight, rtol=0, atol=1e-12)
    assert first_gradient.shape == first.shape
    with capture(small, [Place("relu", 0), Place("relu", 1)]) as lent:
        both = lent.gradients(lent.forward(batch)[:, 1].sum())
    torch.testing.assert_close(both[Place("relu", 0)], first_gradient, rtol=0, atol=1e-12)
    torch.testing.assert_close(both[Place("relu", 1)], second_gradient, rtol=0, atol=1e-12)


def test_a_layer_that_returns_its_input_has_only_its_own_gradient(batch: Tensor) -> None:
    class Branch(nn.Module):
        """Half of the answer goes through the identity, double past it."""

        def __init__(self) -> None:
            super().__init__()
            self.same = nn.Identity()

        def forward(self, x: Tensor) -> Tensor:
            return (self.same(x) + 2 * x).mean(dim=(2, 3))

    _, gradient = one_pass(Branch(), batch, Place("same"))
    assert gradient[:, 1].unique().tolist() == [1 / 42]


def test_frozen_model_inside_no_grad_and_inference_mode(small: Small, batch: Tensor) -> None:
    expected = one_pass(small, batch, Place("conv2"))[1]
    small.requires_grad_(False)
    with torch.no_grad():
        assert torch.equal(one_pass(small, batch, Place("conv2"))[1], expected)
        assert not torch.is_grad_enabled()
    with torch.inference_mode():
        assert torch.equal(one_pass(small, batch + 0, Place("conv2"))[1], expected)


def state_of(model: Small) -> dict[str, object]:
    return {
        "training": [module.training for module in model.modules()],
        "requires_grad": [parameter.requires_grad for parameter in model.parameters()],
        "grad": [None if p.grad is None else p.grad.clone() for p in model.parameters()],
        "hooks": [(len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks)) for m in model.modules()],
        "buffers": {name: buffer.clone() for name, buffer in model.named_buffers()},
        "identity": [id(tensor) for tensor in (*model.parameters(), *model.buffers())],
        "random": torch.get_rng_state(),
        "grad_mode": torch.is_grad_enabled(),
    }


def assert_same(before: dict[str, object], after: dict[str, object]) -> None:
    torch.testing.assert_close(after, before, rtol=0, atol=0)


def awkward(small: Small) -> Small:
    """Training mode but for one frozen norm, one frozen parameter, gradients present, a hook of the user's."""
    small.train()
    small.norm.eval()
    small.conv1.weight.requires_grad_(False)
    for parameter in small.parameters():
        parameter.grad = torch.full_like(parameter, 7.0)
    small.conv1.register_forward_hook(lambda *_: None)
    return small


def test_everything_borrowed_is_given_back(small: Small, batch: Tensor) -> None:
    before = state_of(awkward(small))
    with capture(small, [Place("conv2"), Place("relu", 1)]) as lent:
        assert not any(module.training for module in small.modules())
        assert not any(parameter.requires_grad for parameter in small.parameters())
        lent.gradients(lent.forward(batch)[:, 0].sum())
        torch.rand(3)  # a model that draws numbers
        assert small.seen.item() == 1
    assert_same(before, state_of(small))


def test_everything_is_given_back_after_an_exception(small: Small, batch: Tensor) -> None:
    before = state_of(awkward(small))
    handle = small.head.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError), capture(small, [Place("conv2")]) as lent:
        lent.forward(batch)
    handle.remove()
    assert_same(before, state_of(small))
    with pytest.raises(NoSuchLayer, match="no layer 'conv9'"), capture(small, [Place("conv2"), Place("conv9")]):
        pass
    assert_same(before, state_of(small))


def test_replaced_buffers_come_back(batch: Tensor) -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("steps", torch.zeros(2))
            self.register_buffer("eights", torch.ones(3, dtype=torch.float8_e4m3fn))

        def forward(self, x: Tensor) -> Tensor:
            self.steps = self.steps + 1  # a new tensor under the old name
            return x.mean(dim=(2, 3))

    model = Counting()
    original = model.steps
    with capture(model) as lent:
        lent.forward(batch)
        assert model.steps.tolist() == [1, 1]
    assert model.steps is original
    assert model.steps.tolist() == [0, 0]


def test_a_call_that_never_happens_is_named(small: Small, batch: Tensor) -> None:
    with pytest.raises(NoSuchLayer, match=r"'relu' was called 2 times.*no call number 2"):
        one_pass(small, batch, Place("relu", 2))


def test_wrappers_are_taken_off(small: Small, batch: Tensor) -> None:
    wrapped = nn.DataParallel(small)
    assert unwrap(wrapped) is small
    assert torch.equal(one_pass(wrapped, batch, Place("conv2"))[1], one_pass(small, batch, Place("conv2"))[1])
    compiled = nn.Module()
    compiled._orig_mod = wrapped
    assert unwrap(compiled) is small


def test_visitors_who_share_a_model_do_not_meet(small: Small, batch: Tensor) -> None:
    """A page's model is one object for all its visitors: without a lock, one's hooks count the other's calls."""
    small.train()
    expected = one_pass(small, batch, Place("relu", 1))[1]
    large = batch.repeat(1, 1, 20, 20)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: one_pass(small, (batch, large)[n % 2], Place("relu", 1))[1], range(40)))
    assert all(torch.equal(gradient, expected) for gradient in found[::2])
    assert small.training
    assert all(parameter.requires_grad for parameter in small.parameters())


Pair = namedtuple("Pair", ["main", "other"])


@pytest.mark.parametrize("shape", ["tuple", "dict", "named tuple", "ordered"])
def test_outputs_in_containers(shape: str, batch: Tensor) -> None:
    class Inner(nn.Module):
        def forward(self, x: Tensor) -> object:
            pair = (x * 3, x.sum())
            return {
                "tuple": pair,
                "dict": {"main": pair[0], "other": pair[1]},
                "named tuple": Pair(*pair),
                "ordered": OrderedDict(main=pair[0], other=pair[1]),
            }[shape]

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            found = self.inner(x)
            main = found["main"] if isinstance(found, dict) else found[0]
            assert type(found) is {"tuple": tuple, "dict": dict, "named tuple": Pair, "ordered": OrderedDict}[shape]
            return {"hidden": main, "logits": (main**2).sum(dim=(2, 3))}

    kept, gradient = one_pass(Outer(), batch, Place("inner"))
    torch.testing.assert_close(kept, batch * 3)
    torch.testing.assert_close(gradient[:, 1], 2 * 3 * batch[:, 1])
    assert gradient[:, 0].abs().max() == 0


def test_logits_are_found_or_refused() -> None:
    scores = torch.randn(2, 5)
    image = torch.randn(2, 5, 8, 8)
    assert logits_of(scores) is scores
    assert logits_of((scores, torch.randn(2, 9))) is scores
    assert logits_of({"aux": torch.randn(2, 9), "logits": scores}) is scores
    assert logits_of([image, {"a": scores}]) is scores
    assert logits_of(scores[:, 0]).shape == (2, 1)
    assert torch.equal(logits_of(scores[:, :, None, None]), scores)
    with pytest.raises(ExplainError, match="answers with 2x5x8x8; class scores"):
        logits_of({"out": image})
    with pytest.raises(ExplainError, match="answers with no tensor"):
        logits_of(None)


def test_attention_is_computed_alike_whatever_is_kept() -> None:
    """torch's second way for inference rounds otherwise; which is taken would depend on the layers that are kept."""
    torch.manual_seed(0)
    layers = [nn.TransformerEncoderLayer(64, 4, 128, batch_first=True) for _ in range(3)]
    model = nn.Sequential(nn.Conv2d(3, 64, 4, stride=4), nn.Flatten(2), Turned(), *layers, Mean()).eval()
    batch = torch.randn(1, 3, 32, 32)
    found = []
    for paths in (["0", "3", "4"], ["4"], []):
        with capture(model, [Place(path) for path in paths]) as lent:
            assert not torch.backends.mha.get_fastpath_enabled()
            found.append(lent.forward(batch).detach())
    assert all(torch.equal(one, found[0]) for one in found)
    assert torch.backends.mha.get_fastpath_enabled()
    with pytest.raises(RuntimeError), capture(model):
        raise RuntimeError
    assert torch.backends.mha.get_fastpath_enabled()


class Turned(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2)


class Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean(dim=1)
