"""Forwards that are really broken: the cause that is told, how sure, and that the line which is given mends it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torchvision import models

from inspector.doctor.causes import CAUSES
from inspector.doctor.causes.entry import KINDS
from inspector.doctor.report import Sureness, Trace
from inspector.doctor.trace import trace_model
from tests.doctor.made_modules import Net


def traced(model: nn.Module, *args: Any, **options: Any) -> Trace:
    torch.manual_seed(0)
    kwargs = options.pop("kwargs", {})
    return trace_model(model, args, kwargs, label="net", modes=False, **options)


def resnet() -> nn.Module:
    return models.resnet18(weights=None)


def vit() -> nn.Module:
    return models.VisionTransformer(96, 32, 1, 2, 16, 16, num_classes=3)


def small(channels: int = 3) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, 8, 3), nn.BatchNorm2d(8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2)
    )


INPUTS: list[tuple[Callable[[], nn.Module], Tensor, str]] = [
    (small, torch.rand(1, 64, 64, 3), "channels-last"),
    (resnet, torch.rand(64, 64, 3), "channels-last"),
    (resnet, torch.rand(2, 1, 64, 64), "grey-picture"),
    (small, torch.rand(2, 4, 64, 64), "picture-with-alpha"),
    (small, torch.randint(0, 256, (1, 3, 64, 64), dtype=torch.uint8), "type"),
    (resnet, torch.randint(0, 256, (1, 64, 64, 3), dtype=torch.uint8), "type"),
    (small, torch.rand(1, 3, 64, 64, dtype=torch.float64), "type"),
    (small, torch.rand(1, 4, 3, 32, 32), "too-many-dimensions"),
    (partial(small, 1), torch.rand(2, 3, 16, 16), "colour-picture"),
    (partial(small, 1), torch.rand(2, 16, 16), "channel-missing"),
    (small, torch.rand(3, 16, 16), "batch-missing"),
    (lambda: nn.Sequential(nn.Conv3d(3, 4, (1, 3, 3)), nn.BatchNorm3d(4)), torch.rand(1, 3, 32, 32), "frames-missing"),
    (lambda: nn.Sequential(nn.Linear(48, 4), nn.ReLU()), torch.rand(2, 3, 4, 4), "not-flattened"),
    (lambda: nn.Sequential(nn.Conv1d(6, 4, 3), nn.ReLU()), torch.rand(2, 9, 6), "sequence-transposed"),
    (
        lambda: nn.Sequential(nn.ConvTranspose2d(20, 4, 4), nn.BatchNorm2d(4)),
        torch.rand(2, 20),
        "map-dimensions-missing",
    ),
    (lambda: nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(20, 2)), torch.rand(2, 5), "index-type"),
    (vit, torch.rand(1, 3, 64, 64), "picture-size"),
    (lambda: models.vgg11(weights=None).features, torch.rand(1, 3, 16, 16), "input-too-small"),
    (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4 * 15 * 15, 2)),
        torch.rand(2, 3, 28, 28),
        "picture-size",
    ),
]


@pytest.mark.parametrize(("build", "x", "cause"), INPUTS, ids=lambda v: v if isinstance(v, str) else "")
def test_an_input_that_does_not_fit_and_the_line_that_mends_it(
    build: Callable[[], nn.Module], x: Tensor, cause: str
) -> None:
    model = build()
    trace = traced(model, x)
    found = trace.diagnosis
    assert found is not None and (found.cause, found.sureness) == (cause, Sureness.CERTAIN)
    assert found.code
    names: dict[str, Any] = {"torch": torch, "x": x}
    if "nn.Linear" not in found.code:
        exec(found.code, names)
        model.eval()(names["x"])


def test_the_sentence_of_a_head_that_wants_another_picture() -> None:
    """As the README's own example: VGG's first design had no pooling."""
    with torch.device("meta"):
        model = models.vgg11(weights=None)
    model.avgpool = nn.Identity()
    trace = traced(model, torch.empty(1, 3, 64, 64, device="meta"))
    found = trace.diagnosis
    assert found is not None and found.cause == "picture-size" and found.sureness is Sureness.CERTAIN
    assert found.says == (
        "classifier.0 (Linear) takes 25,088 features and received 2,048: the picture is 64x64, so avgpool gives "
        "512 x 2 x 2 = 2,048; this head needs 7x7."
    )
    assert "224x224" in found.fix and "AdaptiveAvgPool2d((7, 7))" in found.fix
    assert found.tried == ("a picture of 224x224: runs through",)
    assert trace.failure is not None and trace.failure.expects.startswith("Linear(in_features=25088, out_features=4096")
    stack = [call.path for call in trace.calls if call.number in trace.failure.stack]
    assert stack == ["", "classifier", "classifier.0"]


def attention(self: Any, x: Tensor) -> Tensor:
    b, n, d = x.shape
    q = self.q(x).view(b, n, 8, d // 8).transpose(1, 2)
    return q @ q.transpose(-2, -1)


def residual(self: Any, x: Tensor) -> Tensor:
    return self.body(x) + x


def unet(self: Any, x: Tensor) -> Tensor:
    skip = self.a(x)
    return torch.cat([self.up(functional.max_pool2d(skip, 2)), skip], 1)


def gpt(self: Any, x: Tensor) -> Tensor:
    return self.tok(x) + self.pos(torch.arange(x.shape[1]))


def patches(self: Any, x: Tensor) -> Tensor:
    return self.patch(x).flatten(2).transpose(1, 2) + self.pos_embed


def misspelt(self: Any, x: Tensor) -> Tensor:
    return self.liner(x)


def endless(self: Any, x: Tensor) -> Tensor:
    return self(x)


def silent(self: Any, x: Tensor) -> None:
    self.fc(x)


def in_place(self: Any, x: Tensor) -> Tensor:
    self.w += 1
    return x * self.w


def branch(self: Any, x: Tensor) -> Tensor:
    return x if x > 0 else -x


def halves(self: Any, x: Tensor) -> Tensor:
    return x.view(x.size(0), x.size(1) / 2, 2)


def hidden(self: Any, x: Tensor) -> Tensor:
    return self.rnn(x, x.new_zeros(1, x.shape[1], 6))[0]


def squeezed(self: Any, x: Tensor) -> Tensor:
    return self.bn(self.pool(x).squeeze())


def late_view(self: Any, x: Tensor) -> Tensor:
    return x.transpose(1, 2).view(x.size(0), -1)


def checked(self: Any, x: Tensor) -> Tensor:
    assert x.shape[1] == 5, "five are wanted"
    return x


def unknown_name(self: Any, x: Tensor) -> Tensor:
    return FF.relu(x)  # type: ignore[name-defined]  # noqa: F821


def own_failure(self: Any, x: Tensor) -> Tensor:
    return x * {}[0] if False else int("x")  # type: ignore[return-value,index]


CODE: list[tuple[str, Callable[[], nn.Module], tuple[Any, ...], str]] = [
    (
        "heads-do-not-divide",
        lambda: Net(attention, q=nn.Linear(100, 100)),
        (torch.rand(2, 5, 100),),
        "8 heads of 12 are 96",
    ),
    ("sum-of-shapes", lambda: Net(residual, body=nn.Conv2d(4, 8, 3, 2, 1)), (torch.rand(2, 4, 8, 8),), "(from body)"),
    (
        "size-not-divisible",
        lambda: Net(unet, a=nn.Conv2d(3, 4, 1), up=nn.Upsample(scale_factor=2)),
        (torch.rand(1, 3, 9, 9),),
        "9x9",
    ),
    (
        "position-table",
        lambda: Net(gpt, tok=nn.Embedding(9, 4), pos=nn.Embedding(6, 4)),
        (torch.zeros(1, 8).long(),),
        "has 6 rows",
    ),
    (
        "index-out-of-range",
        lambda: Net(gpt, tok=nn.Embedding(9, 4), pos=nn.Embedding(6, 4)),
        (torch.full((1, 3), 9),),
        "asked for 9",
    ),
    ("index-out-of-range", lambda: nn.Embedding(9, 4), (torch.tensor([[1, -100]]),), "asked for -100"),
    (
        "picture-size",
        lambda: Net(patches, patch=nn.Conv2d(3, 4, 8, 8), pos_embed=nn.Parameter(torch.zeros(1, 16, 4))),
        (torch.rand(1, 3, 64, 64),),
        "makes 64 tokens",
    ),
    ("no-such-attribute", lambda: Net(misspelt, linear=nn.Linear(4, 2)), (torch.rand(1, 4),), "Net has no liner"),
    ("endless-recursion", lambda: Net(endless), (torch.rand(1, 4),), "calls itself"),
    (
        "gives-none",
        lambda: nn.Sequential(Net(silent, fc=nn.Linear(4, 4)), nn.Linear(4, 2)),
        (torch.rand(1, 4),),
        "0 (Net) gives",
    ),
    (
        "tuple-handed-on",
        lambda: nn.Sequential(nn.LSTM(4, 6), nn.Linear(6, 2)),
        (torch.rand(3, 1, 4),),
        "0 (LSTM) gives a tuple",
    ),
    ("truth-of-many", lambda: Net(branch), (torch.rand(2, 4),), "truth of a tensor"),
    ("size-is-no-integer", lambda: Net(halves), (torch.rand(2, 4),), "no whole number"),
    (
        "recurrent-state",
        lambda: Net(hidden, rnn=nn.GRU(4, 6, batch_first=True)),
        (torch.rand(3, 5, 4),),
        "1x3x6 and is 1x5x6",
    ),
    ("recurrent-width", lambda: nn.LSTM(4, 6), (torch.rand(3, 1, 5),), "takes 4 features"),
    (
        "batch-squeezed",
        lambda: Net(squeezed, bn=nn.BatchNorm1d(4), pool=nn.AdaptiveAvgPool2d(1)),
        (torch.rand(1, 4, 8, 8),),
        "4 of 1x4x1x1",
    ),
    ("view-of-transposed", lambda: Net(late_view), (torch.rand(2, 4, 3),), "transposed before"),
    ("own-check", lambda: Net(checked), (torch.rand(2, 4),), "five are wanted"),
    ("name-not-set", lambda: Net(unknown_name), (torch.rand(2, 4),), "The name FF"),
    (
        "batch-written-out",
        lambda: Net(lambda s, x: x.view(32, 12)),
        (torch.rand(5, 3, 4),),
        "written into the code: 32",
    ),
    (
        "batch-flattened",
        lambda: Net(lambda s, x: s.fc(torch.flatten(x)), fc=nn.Linear(12, 2)),
        (torch.rand(5, 3, 4),),
        "batch of 5",
    ),
    ("view-of-shape", lambda: Net(lambda s, x: x.view(-1, 7)), (torch.rand(5, 3, 4),), "60 values"),
    ("unpacking", lambda: Net(lambda s, x: unpacked(x)), (torch.rand(2, 5),), "`x` of 2x5"),
    ("matrix-product", lambda: Net(lambda s, x: x @ x), (torch.rand(2, 5, 8),), "needs 8 = 5"),
    ("cat-of-shapes", lambda: Net(lambda s, x: torch.cat([x, x.t()])), (torch.rand(2, 5),), "2x5"),
    ("channels", lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(4, 8, 3)), (torch.rand(1, 3, 9, 9),), "from 0"),
    (
        "channels-last",
        lambda: nn.Sequential(nn.Embedding(9, 6), nn.Conv1d(6, 4, 3)),
        (torch.zeros(2, 9).long(),),
        "stand last",
    ),
    (
        "linear-features",
        lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(5, 2)),
        (torch.rand(1, 4),),
        "takes 5 features",
    ),
    (
        "channels-second",
        lambda: nn.Sequential(nn.Conv2d(3, 5, 3), nn.Linear(5, 2)),
        (torch.rand(1, 3, 9, 9),),
        "stand second",
    ),
    (
        "norm-width",
        lambda: nn.Sequential(nn.Conv2d(3, 5, 3), nn.LayerNorm(5)),
        (torch.rand(1, 3, 9, 9),),
        "takes 5 last",
    ),
    (
        "norm-width",
        lambda: nn.Sequential(nn.Conv2d(3, 6, 3), nn.GroupNorm(2, 8)),
        (torch.rand(1, 3, 9, 9),),
        "takes 8 channels",
    ),
    (
        "attention-mask",
        lambda: Net(lambda s, x: s.a(x, x, x, attn_mask=torch.zeros(9, 9))[0], a=nn.MultiheadAttention(4, 2)),
        (torch.rand(3, 2, 4),),
        "has to be 3x3",
    ),
    (
        "attention-width",
        lambda: Net(lambda s, x: s.a(x, x, x)[0], a=nn.MultiheadAttention(4, 2)),
        (torch.rand(3, 2, 6),),
        "width 4",
    ),
    ("no-forward", lambda: Net(lambda s, x: s.m(x), m=nn.ModuleList([nn.ReLU()])), (torch.rand(3),), "m (ModuleList)"),
    ("missing-argument", lambda: nn.Transformer(4, 2, 1, 1, 8), (torch.rand(3, 1, 4),), "without tgt"),
    ("too-many-arguments", lambda: nn.Sequential(nn.ReLU()), (torch.rand(3), torch.rand(3)), "2 arguments"),
    ("no-such-key", lambda: Net(lambda s, x: keyed(x)), ({"image": torch.rand(3)},), "it has 'image'"),
    ("not-a-tensor", lambda: nn.Linear(3, 2), ([torch.rand(3)],), "given a list"),
    (
        "type",
        lambda: Net(lambda s, x: s.f(torch.fft.rfft(x)), f=nn.Linear(9, 2)),
        (torch.rand(2, 16),),
        "received complex64",
    ),
    ("type", lambda: nn.Linear(3, 2).half(), (torch.rand(2, 3),), "weights of float16"),
    ("number-of-many", lambda: Net(lambda s, x: math.exp(x)), (torch.rand(3),), "one number"),
    ("shape-of-operand", lambda: Net(lambda s, x: torch.einsum("ab,bc->ac", x, x)), (torch.rand(2, 3),), "einsum"),
]


def three_parts(self: Any, x: Tensor) -> Tensor:
    out, h, c = self.rnn(x)
    return out + h + c


def three_pieces(self: Any, x: Tensor) -> Tensor:
    a, b, c = x.split(4, -1)
    return a + b + c


def positions(self: Any, x: Tensor) -> Tensor:
    return self.fc(x) + self.table[: x.size(0)]


def without_state(self: Any, x: Tensor, h: Tensor | None = None) -> Tensor:
    return torch.cat([x, h], 1)  # type: ignore[list-item]


def rate_called(self: Any, x: Tensor) -> Tensor:
    out: Tensor = self.rate(x)
    return out


def with_text(self: Any, x: Tensor) -> Tensor:
    return x + self.rate


def token(self: Any, x: Tensor) -> Tensor:
    return torch.cat([self.cls, x], 1)


def mixer(self: Any, x: Tensor) -> Tensor:
    out: Tensor = self.mix(self.patch(x).flatten(2))
    return out


#: Found by networks that were written without a look at the causes; before, these were unknown or taken for others.
LATER: list[tuple[str, Callable[[], nn.Module], tuple[Any, ...], str]] = [
    (
        "unpacking",
        lambda: Net(three_parts, rnn=nn.LSTM(4, 4)),
        (torch.rand(3, 1, 4),),
        "takes 3 parts and rnn (LSTM) gives 2",
    ),
    (
        "position-table",
        lambda: Net(positions, fc=nn.Linear(4, 8), table=nn.Parameter(torch.zeros(10, 1, 8))),
        (torch.rand(20, 2, 4),),
        "20 positions and the table table has 10",
    ),
    ("none-given", lambda: Net(without_state), (torch.rand(1, 3),), "h is None"),
    ("not-callable", lambda: Net(rate_called, rate=0.5), (torch.rand(1, 3),), "self.rate is a float"),
    ("not-a-tensor", lambda: Net(with_text, rate="x"), (torch.rand(1, 3),), "self.rate is a str"),
    (
        "cat-of-shapes",
        lambda: Net(token, cls=nn.Parameter(torch.zeros(1, 1, 4))),
        (torch.rand(3, 5, 4),),
        "(the parameter cls)",
    ),
    (
        "picture-size",
        lambda: Net(mixer, patch=nn.Conv2d(3, 16, 8, 8), mix=nn.Linear(16, 16)),
        (torch.rand(1, 3, 64, 64),),
        "makes 64 tokens",
    ),
    ("no-such-dimension", lambda: nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(2)), (torch.rand(2, 4),), "log_softmax"),
    ("unpacking", lambda: Net(three_pieces), (torch.rand(1, 8),), "takes 3 parts and gets 2"),
    ("division-by-zero", lambda: Net(lambda s, x: x * (1 / 0)), (torch.rand(1),), "divided by zero"),
    ("unknown-argument", lambda: Net(lambda s, x: torch.nn.functional.softmax(x, axis=0)), (torch.rand(1),), "'axis'"),
    ("index-type", lambda: Net(lambda s, x: s.w[x], w=nn.Parameter(torch.zeros(5))), (torch.rand(2),), "`x` of 2"),
]


def unpacked(x: Tensor) -> Tensor:
    b, c, h, w = x.shape
    return x.view(b, c * h * w)


def keyed(batch: dict[str, Tensor]) -> Tensor:
    return batch["images"]


@pytest.mark.parametrize(
    ("cause", "build", "args", "says"), [*CODE, *LATER], ids=lambda v: v if isinstance(v, str) else ""
)
def test_what_is_wrong_with_the_code(
    cause: str, build: Callable[[], nn.Module], args: tuple[Any, ...], says: str
) -> None:
    found = traced(build(), *args).diagnosis
    assert found is not None and found.cause == cause
    assert says in found.says
    assert found.fix or found.code
    assert found.cause in KINDS


def test_every_kind_is_declared_and_has_somebody_who_finds_it() -> None:
    assert {kind for cause in CAUSES for kind in cause.kinds} == set(KINDS) - {"unknown"}


def test_training_alone_fails_with_a_batch_of_one() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
    found = traced(model, torch.rand(1, 4), training=True).diagnosis
    assert found is not None and found.cause == "batch-norm-of-one"
    assert found.tried == ("the same input in evaluation: runs through",)
    assert traced(model, torch.rand(1, 4)).diagnosis is None
    assert traced(model, torch.rand(2, 4), training=True).diagnosis is None


def test_a_parameter_changed_in_place_shows_in_training() -> None:
    model = Net(in_place, w=nn.Parameter(torch.ones(4)))
    found = traced(model, torch.rand(2, 4), training=True).diagnosis
    assert found is not None and found.cause == "in-place-on-leaf"


def test_keywords_that_forward_does_not_take() -> None:
    model = nn.Linear(4, 2)
    found = traced(model, torch.rand(1, 4), kwargs={"mask": torch.ones(1)}).diagnosis
    assert found is not None and found.cause == "unknown-argument" and "mask=" in found.says


def test_weights_on_meta() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2, device="meta"))
    found = traced(model, torch.rand(1, 4)).diagnosis
    assert found is not None and found.cause == "weights-on-meta" and "1.weight" in found.says


def test_a_plain_attribute_stays_behind_on_another_device() -> None:
    model = Net(lambda s, x: s.fc(x) + s.offset, fc=nn.Linear(4, 4))
    model.__dict__["offset"] = torch.ones(4, device="meta")
    found = traced(model, torch.rand(1, 4)).diagnosis
    assert found is not None and found.cause == "device"
    assert found.code == 'self.register_buffer("offset", tensor)'


class NoInit(nn.Module):
    def __init__(self) -> None:
        self.width = 3

    def forward(self, x: Tensor) -> Tensor:
        return x


def test_a_module_without_its_own_init() -> None:
    found = traced(NoInit(), torch.rand(1)).diagnosis
    assert found is not None and (found.cause, found.code) == ("no-super-init", "super().__init__()")


class Foward(nn.Module):
    def foward(self, x: Tensor) -> Tensor:
        return x


def test_forward_misspelt() -> None:
    found = traced(Foward(), torch.rand(1)).diagnosis
    assert found is not None and found.cause == "no-forward" and "foward" in found.says


def test_what_nobody_knows_is_said_to_be_unknown() -> None:
    trace = traced(Net(own_failure), torch.rand(2))
    found, failure = trace.diagnosis, trace.failure
    assert found is not None and (found.cause, found.sureness) == ("unknown", Sureness.UNKNOWN)
    assert failure is not None and failure.line is not None
    assert failure.line.file == "test_causes.py" and 'int("x")' in failure.line.text


def test_rows_of_tokens_are_not_said_to_lack_a_batch() -> None:
    """Wrong with certainty once: whatever runs with one dimension more was taken for the cause."""
    model = Net(lambda s, x: s.e(x).permute(0, 3, 1, 2), e=nn.Embedding(9, 4))
    found = traced(model, torch.zeros(2, 5).long()).diagnosis
    assert found is not None and found.cause == "no-such-dimension"


def test_a_change_that_only_shapes_allow_is_not_told() -> None:
    """On meta a transposed convolution looks at no channels: unsqueeze twice was told as the mending."""
    model = nn.Sequential(nn.ConvTranspose2d(100, 8, 4), nn.BatchNorm2d(8))
    found = traced(model, torch.rand(2, 100)).diagnosis
    assert found is not None and found.cause == "map-dimensions-missing"


def test_no_folder_of_this_machine_is_told() -> None:
    def fails(self: Any, x: Tensor) -> Tensor:
        raise RuntimeError("cannot open /home/somebody/secret/weights.bin now")

    trace = traced(Net(fails), torch.rand(1))
    assert trace.failure is not None and trace.failure.says == "cannot open weights.bin now"
    assert "/home" not in str(trace)


def test_the_model_is_left_as_it_was() -> None:
    model = models.resnet18(weights=None).train()
    model.layer1.eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    flags = [module.training for module in model.modules()]
    state = torch.random.get_rng_state()
    trace_model(model, (torch.rand(2, 3, 32, 32),), label="net", training=True)
    trace_model(model, (torch.rand(2, 1, 32, 32),), label="net", training=True)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert [module.training for module in model.modules()] == flags
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert state.shape == torch.random.get_rng_state().shape
