"""Networks that nobody knows, described: what is claimed is held against the modules that made the names and shapes."""

from __future__ import annotations

import inspect
from itertools import pairwise

import pytest
import torch
import torchvision
from torch import nn

from inspector.architectures.structure.describe import describe_structure
from inspector.architectures.structure.example import example_input
from inspector.architectures.structure.types import Layer, Structure, Topic
from inspector.architectures.structure.types import LayerKind as K
from inspector.checkpoint.tree import module_tree
from inspector.checkpoint.types import StateDict, StateRole, TensorInfo


def described(model: nn.Module, *, ordered: bool = True) -> Structure:
    held = model.state_dict()
    names = held if ordered else sorted(held)
    tensors = tuple(
        TensorInfo(name=n, path=(n,), shape=tuple(held[n].shape), dtype="float32", nbytes=0, storage_id=None)
        for n in names
    )
    tree = module_tree(tensors)
    return describe_structure(
        StateDict(path=(), role=StateRole.WEIGHTS, why="", kind="", tensors=tensors, modules=tree, ordered=ordered)
    )


def claims(structure: Structure, topic: Topic) -> list[tuple[str, int | None]]:
    return [(claim.path, claim.value) for claim in structure.claims if claim.topic is topic]


FORWARDS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
BACKWARDS = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


def is_true(layer: Layer, module: nn.Module | None) -> bool:
    """Whether the module is what was claimed of it, with its widths."""
    widths = (layer.inputs, layer.outputs)
    match layer.kind:
        case K.CONVOLUTION if isinstance(module, FORWARDS):
            return widths == (module.in_channels // module.groups, module.out_channels)
        case K.CONVOLUTION if isinstance(module, BACKWARDS):
            return layer.inputs == layer.outputs  # said to be open for these
        case K.DEPTHWISE if isinstance(module, FORWARDS):
            return module.groups == module.in_channels and widths == (None, module.out_channels)
        case K.TRANSPOSED if isinstance(module, BACKWARDS):
            return widths == (module.in_channels, module.out_channels // module.groups)
        case K.EITHER_CONVOLUTION:
            return isinstance(module, FORWARDS + BACKWARDS)
        case K.LINEAR if isinstance(module, nn.Linear):
            return widths == (module.in_features, module.out_features)
        case K.MATRIX:
            return isinstance(module, nn.Linear | nn.Embedding)
        case K.EMBEDDING if isinstance(module, nn.Embedding):
            return widths == (module.num_embeddings, module.embedding_dim)
        case K.BATCH_NORM:
            return isinstance(module, nn.modules.batchnorm._BatchNorm) or "Norm" in type(module).__name__
        case K.NORM:
            return "Norm" in type(module).__name__
        case K.SCALE | K.SLOPE:
            return "Norm" in type(module).__name__ or isinstance(module, nn.PReLU)
        case K.PRELU:
            return isinstance(module, nn.PReLU)
        case K.ATTENTION:
            return isinstance(module, nn.MultiheadAttention)
        case K.BILINEAR:
            return isinstance(module, nn.Bilinear | nn.Conv1d)
        case K.LSTM | K.GRU | K.RNN:
            return type(module).__name__ == layer.kind.name
        case K.TENSOR:
            return True
    return False


def false_ones(structure: Structure, model: nn.Module) -> list[tuple[str, str]]:
    modules = dict(model.named_modules(remove_duplicate=False))
    return [(layer.path, layer.says) for layer in structure.layers if not is_true(layer, modules.get(layer.path))]


NAMES = [name for name in torchvision.models.list_models() if not name.startswith("quantized")]


def built(name: str) -> nn.Module:
    make = torchvision.models.get_model_builder(name)
    more = {"weights_backbone": None} if "weights_backbone" in inspect.signature(make).parameters else {}
    if name in ("googlenet", "inception_v3"):
        more["init_weights"] = False
    with torch.device("meta"):
        try:
            return make(weights=None, **more)
        except NotImplementedError:
            pytest.skip("is not built without numbers")


@pytest.mark.parametrize("name", NAMES)
def test_no_layer_of_torchvision_is_called_what_it_is_not(name: str) -> None:
    model = built(name)
    structure = described(model)
    assert false_ones(structure, model) == []
    assert 3 in [value for _, value in claims(structure, Topic.TAKES)]
    unordered = described(model, ordered=False)
    assert false_ones(unordered, model) == []
    for told in (structure, unordered):
        ends = dict(claims(told, Topic.ENDS_IN))
        assert not [one for one in told.layers if one.inputs in ends.values() and ends.get(one.path) != one.inputs]


class Separable(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.depth = nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs, bias=False)
        self.norm1 = nn.BatchNorm2d(inputs)
        self.point = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)


class Reader(nn.Module):
    """Grey lines of text to 62 letters."""

    def __init__(self) -> None:
        super().__init__()
        widths = [16, 32, 64, 64, 128]
        self.stem = nn.Conv2d(1, 16, 3)
        self.body = nn.Sequential(*[Separable(a, b) for a, b in pairwise(widths)])
        self.memory = nn.LSTM(128, 96, 2, bidirectional=True)
        self.head = nn.Linear(192, 62)


def test_a_reader_of_letters_is_told() -> None:
    structure = described(Reader())
    assert false_ones(structure, Reader()) == []
    assert claims(structure, Topic.TAKES) == [("stem", 1)]
    assert claims(structure, Topic.REPEATS) == [("body.", 4)]
    assert claims(structure, Topic.ENDS_IN) == [("head", 62)]
    assert structure.counts.startswith("5 convolutions, 4 depthwise convolutions, 1 LSTM, 1 linear layer")
    (memory,) = [layer for layer in structure.layers if layer.path == "memory"]
    assert memory.says == "LSTM 128 to 192, 2 layers, both directions"
    assert structure.stacks[0].widths == (32, 64, 64, 128)
    assert [part.path for part in structure.parts] == ["stem", "body", "memory", "head"]
    assert structure.parts[1].says == "4 blocks of one build; 4 convolutions, 4 depthwise convolutions"


class UNet(nn.Module):
    """Up by transposed convolutions, joined with what went down; answers with as many channels as it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16))
        self.down2 = nn.Sequential(nn.Conv2d(16, 32, 3, bias=False), nn.BatchNorm2d(32))
        self.up = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.joined = nn.Sequential(nn.Conv2d(32, 16, 3, bias=False), nn.BatchNorm2d(16))
        self.out = nn.Conv2d(16, 3, 1)


def test_what_runs_upwards_and_answers_in_pictures() -> None:
    structure = described(UNet())
    assert false_ones(structure, UNet()) == []
    (up,) = [layer for layer in structure.layers if layer.path == "up"]
    assert up.kind is K.TRANSPOSED and (up.inputs, up.outputs) == (32, 16)
    assert claims(structure, Topic.TAKES) == [("down1.0", 3)]
    # Three come out and three go in, so it is not said that nothing takes them.
    assert claims(structure, Topic.ENDS_IN) == []


class Gate(nn.Module):
    """As CBAM has it: two planes, a mean and a maximum, become one."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3)
        self.gate = nn.Conv2d(2, 1, 7)
        self.mask = nn.Conv2d(1, 8, 3)
        self.grouped = nn.Conv2d(16, 32, 3, groups=4)
        self.head = nn.Linear(32, 5)


def test_small_numbers_inside_a_network_are_not_its_input() -> None:
    structure = described(Gate())
    assert false_ones(structure, Gate()) == []
    assert claims(structure, Topic.TAKES) == [("stem", 3)]
    assert claims(structure, Topic.ENDS_IN) == [("head", 5)]


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tok_embed = nn.Embedding(5000, 64)
        self.pos_embed = nn.Parameter(torch.zeros(1, 65, 64))
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "q_proj": nn.Linear(64, 64, bias=False),
                    "k_proj": nn.Linear(64, 16, bias=False),
                    "v_proj": nn.Linear(64, 16, bias=False),
                    "norm": nn.LayerNorm(64),
                }
            )
            for _ in range(3)
        )
        self.gru = nn.GRU(64, 20)
        self.plain = nn.RNN(20, 12)
        self.head = nn.Linear(12, 7)


def test_tokens_places_and_shared_keys() -> None:
    structure = described(Words())
    assert false_ones(structure, Words()) == []
    assert claims(structure, Topic.TAKES) == [("tok_embed", 5000)]
    assert ("pos_embed", 65) in claims(structure, Topic.POSITIONS)
    assert any("as many as 8 x 8 and 1 more" in claim.says for claim in structure.claims)
    assert claims(structure, Topic.ATTENTION) == [("blocks.0", 4)]
    assert claims(structure, Topic.REPEATS) == [("blocks.", 3)]
    assert "how many heads the attention has" in structure.open


@pytest.mark.parametrize(
    "wrap", [nn.utils.weight_norm, nn.utils.spectral_norm, nn.utils.parametrizations.weight_norm,
             nn.utils.parametrizations.spectral_norm]
)  # fmt: skip
def test_a_weight_in_other_clothes_is_the_same_layer(wrap) -> None:  # type: ignore[no-untyped-def]
    model = nn.Sequential(wrap(nn.Conv2d(3, 8, 3)), wrap(nn.Linear(8, 4)))
    found = [(layer.path, layer.kind, layer.inputs, layer.outputs) for layer in described(model).layers]
    assert found == [("0", K.CONVOLUTION, 3, 8), ("1", K.LINEAR, 8, 4)]


class Cells(nn.Module):
    """As pytorch/examples time_sequence_prediction has it."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm1, self.lstm2 = nn.LSTMCell(1, 51), nn.GRUCell(51, 30)
        self.linear = nn.Linear(30, 1)


def test_recurrent_cells_are_told_with_their_sizes() -> None:
    structure = described(Cells())
    assert false_ones(structure, Cells()) == [("lstm1", "LSTM 1 to 51, one step at a time"),
                                              ("lstm2", "GRU 51 to 30, one step at a time")]  # fmt: skip
    assert claims(structure, Topic.RECURRENT) == [("lstm1", 51), ("lstm2", 30)]
    assert claims(structure, Topic.TAKES) == []
    # The first cell takes one value as well, so it is not said that nothing does.
    assert claims(structure, Topic.ENDS_IN) == []


def test_sorted_names_are_no_order() -> None:
    """Saved with sorted(state): a depthwise convolution comes first, and is not the input."""
    net = nn.ModuleDict({"stem": nn.Conv2d(3, 24, 3), "blocks": nn.Conv2d(24, 24, 3, groups=24), "z": nn.Linear(24, 5)})
    held = net.state_dict()
    tensors = tuple(
        TensorInfo(name=n, path=(n,), shape=tuple(held[n].shape), dtype="float32", nbytes=0, storage_id=None)
        for n in sorted(held)
    )
    state = StateDict(path=(), role=StateRole.WEIGHTS, why="", kind="", tensors=tensors, modules=module_tree(tensors))
    structure = describe_structure(state)
    assert not structure.ordered
    assert claims(structure, Topic.TAKES) == [("stem", 3)]


def test_a_generator_puts_pictures_out_and_takes_noise() -> None:
    net = nn.Sequential(
        nn.ConvTranspose2d(100, 32, 4, bias=False), nn.BatchNorm2d(32), nn.ConvTranspose2d(32, 3, 4, bias=False)
    )
    structure = described(net)
    assert false_ones(structure, net) == []
    assert claims(structure, Topic.TAKES) == [("0", 100)]


def test_channels_of_sound_and_points_are_no_colours() -> None:
    structure = described(nn.Sequential(nn.Conv1d(3, 64, 1), nn.Linear(64, 9)))
    (takes,) = [claim.says for claim in structure.claims if claim.topic is Topic.TAKES]
    assert takes == "0 takes three channels."


def test_a_module_listed_twice_is_one() -> None:
    """locuslab's TCN registers its convolutions by name and in a Sequential."""

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv1d(4, 8, 5)
            self.net = nn.Sequential(self.conv, nn.ReLU())
            self.embed = nn.Embedding(50, 8)
            self.head = nn.Linear(8, 50, bias=False)
            self.head.weight = self.embed.weight

    held = Twice().state_dict()
    tensors = tuple(
        TensorInfo(name=n, path=(n,), shape=tuple(t.shape), dtype="float32", nbytes=4, storage_id=str(t.data_ptr()))
        for n, t in held.items()
    )
    state = StateDict(path=(), role=StateRole.WEIGHTS, why="", kind="", tensors=tensors, modules=module_tree(tensors))
    assert [layer.path for layer in describe_structure(state).layers] == ["conv", "embed", "head"]


def test_several_heads_are_told() -> None:
    class Actor(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(17, 128)
            self.action = nn.Linear(128, 6)
            self.value = nn.Linear(128, 1)

    structure = described(Actor())
    assert claims(structure, Topic.TAKES) == [("body", 17)]
    assert claims(structure, Topic.ENDS_IN) == [("action", 6), ("value", 1)]


def test_a_square_linear_layer_flattens_nothing() -> None:
    net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.Linear(64, 64), nn.Bilinear(6, 6, 3))
    structure = described(net)
    assert claims(structure, Topic.POSITIONS) == []
    assert [layer.kind for layer in structure.layers][-1] is K.BILINEAR


def test_a_flattened_map_is_told_with_its_side() -> None:
    model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.Flatten(), nn.Linear(32 * 6 * 6, 100), nn.Linear(100, 9))
    structure = described(model)
    assert claims(structure, Topic.POSITIONS) == [("2", 6)]
    assert claims(structure, Topic.ENDS_IN) == [("3", 9)]


def test_keys_that_are_no_network_claim_nothing() -> None:
    class Loose(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.alpha = nn.Parameter(torch.zeros(3))
            self.cube = nn.Parameter(torch.zeros(2, 3, 4, 5, 6, 7))

    structure = described(Loose())
    assert structure.claims == () and structure.counts == "2 tensors."


def test_pools_of_hostile_names_cost_little() -> None:
    deep = ".".join("a" * 40) + ".weight"
    tensors = tuple(
        TensorInfo(name=f"{n}.{deep}", path=(str(n),), shape=(1, 1), dtype="float32", nbytes=4, storage_id=None)
        for n in range(2000)
    )
    state = StateDict(path=(), role=StateRole.WEIGHTS, why="", kind="", tensors=tensors, modules=module_tree(tensors))
    assert len(describe_structure(state).layers) == 2000


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.Sequential(nn.Conv2d(1, 8, 3), nn.Linear(8, 4)), (1, 224, 224)),
        (nn.Sequential(nn.Conv1d(12, 8, 7), nn.Linear(8, 3)), (12, 16_000)),
        (nn.Sequential(nn.Linear(784, 64), nn.Linear(64, 10)), (784,)),
        (nn.ModuleDict({"reads": nn.LSTM(37, 24), "says": nn.Linear(24, 5)}), (20, 37)),
        (nn.ModuleDict({"norm": nn.BatchNorm2d(4), "one": nn.BatchNorm2d(4)}), ()),
    ],
)
def test_an_example_of_an_input_has_the_file_s_own_width(model: nn.Module, shape: tuple[int, ...]) -> None:
    assert example_input(described(model)) == shape
