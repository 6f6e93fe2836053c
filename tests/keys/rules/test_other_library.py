"""Another library's names: by the index's own names of both, both ways; nothing where it does not speak for all."""

from __future__ import annotations

import pytest
import torch
import torchvision

from inspector.architectures.targets import parse_target
from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.report import Evidence
from inspector.readers import open_checkpoint
from tests.keys.conftest import saved_checkpoint
from tests.raw import prove_bytes

# (torchvision's, timm's, torchvision's names by timm's as the two libraries' sources have them)
PAIRS = [
    (
        "vit_b_16",
        "vit_base_patch16_224",
        {
            "blocks.7.attn.qkv.bias": "encoder.layers.encoder_layer_7.self_attention.in_proj_bias",
            "blocks.11.norm2.weight": "encoder.layers.encoder_layer_11.ln_2.weight",
            "norm.bias": "encoder.ln.bias",
        },
    ),
    (
        "swin_t",
        "swin_tiny_patch4_window7_224",
        {
            "layers.1.downsample.reduction.weight": "features.2.reduction.weight",
            "layers.2.blocks.5.mlp.fc2.bias": "features.5.5.mlp.3.bias",
            "head.fc.weight": "head.weight",
        },
    ),
    (
        "convnext_tiny",
        "convnext_tiny",
        {
            "stages.3.downsample.1.weight": "features.6.1.weight",
            "stages.0.blocks.2.gamma": "features.1.2.layer_scale",
            "head.norm.weight": "classifier.0.weight",
        },
    ),
    ("vgg11_bn", "vgg11_bn", {"pre_logits.fc2.weight": "classifier.3.weight", "features.0.bias": "features.0.bias"}),
    (
        "regnet_x_400mf",
        "regnetx_004_tv",
        {
            "stem.bn.running_var": "stem.1.running_var",
            "s1.b1.conv1.conv.weight": "trunk_output.block1.block1-0.f.a.0.weight",
            "s4.b12.conv3.bn.bias": "trunk_output.block4.block4-11.f.c.1.bias",
            "s2.b1.downsample.conv.weight": "trunk_output.block2.block2-0.proj.0.weight",
            "head.fc.bias": "fc.bias",
        },
    ),
    ("regnet_y_400mf", "regnety_004", {"s3.b2.se.fc2.bias": "trunk_output.block3.block3-1.f.se.fc2.bias"}),
]


def names(text):
    return {t.name: t.shape for t in parse_target(text).tensors}


@pytest.mark.parametrize("prefix", ["", "module."])
@pytest.mark.parametrize(("ours", "theirs", "known"), PAIRS)
def test_both_ways_place_everything_and_undo_each_other(ours, theirs, known, prefix, file_of):
    one, other = f"torchvision/{ours}", f"timm/{theirs}"
    there = diagnose(file_of({prefix + n: s for n, s in names(one).items()}), parse_target(other)).plan
    back = diagnose(file_of({prefix + n: s for n, s in names(other).items()}), parse_target(one)).plan
    assert there.complete and back.complete and not there.ambiguities
    went = {s.target: s.source.removeprefix(prefix) for s in there.steps if s.target and s.source}
    came = {s.source.removeprefix(prefix): s.target for s in back.steps if s.target and s.source}
    assert went == came and known.items() <= went.items()
    assert {kind for kind, _ in there.certificate} <= {Evidence.EXACT_NAME, Evidence.RULE}


def test_file_code_and_proof_agree_bit_for_bit(tmp_path, monkeypatch):
    torch.manual_seed(0)
    own = torchvision.models.vit_b_32(num_classes=3).state_dict()
    torch.save(own, tmp_path / "a.pth")
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), parse_target("timm/vit_base_patch32_224?num_classes=3")
    plan = diagnose(checkpoint, goal).plan
    made = apply_plan(checkpoint, plan)
    assert prove_bytes(checkpoint, plan, made).passed
    assert torch.equal(
        made["blocks.3.attn.qkv.weight"], own["encoder.layers.encoder_layer_3.self_attention.in_proj_weight"]
    )

    class Loaded:
        def load_state_dict(self, state, strict):
            self.held = state

    model = Loaded()
    monkeypatch.chdir(tmp_path)
    code = python_code(plan, file_name="a.pth")
    exec(code, {"model": model})
    assert set(model.held) == set(made) and all(torch.equal(model.held[n], t) for n, t in made.items())
    assert "renamed = {" not in code and len(code.splitlines()) < 40


@pytest.mark.parametrize(
    "change",
    [
        lambda n: None if n.endswith("ln_2.weight") else n,  # parts are missing
        lambda n: n.replace("encoder_layer_3.", "encoder_layer_33."),  # a hole in the numbers
        lambda n: n.replace("mlp.0", "mlp.1"),  # another network inside
    ],
)
def test_it_speaks_for_the_whole_file_or_not_at_all(change, file_of):
    own = {changed: s for n, s in names("torchvision/vit_b_16").items() if (changed := change(n)) is not None}
    plan = diagnose(file_of(own), parse_target("timm/vit_base_patch16_224")).plan
    assert plan is None or not plan.complete or "other-library" not in [use.id for use in plan.rules]


def test_another_depth_or_width_is_not_forced(file_of):
    for ours, theirs in (
        ("vit_b_16", "vit_small_patch16_224"),
        ("vit_b_16", "vit_large_patch16_224"),
        ("swin_t", "swin_small_patch4_window7_224"),
    ):
        plan = diagnose(file_of(names(f"torchvision/{ours}")), parse_target(f"timm/{theirs}")).plan
        assert plan is None or not plan.complete


def test_a_target_of_its_own_library_needs_nothing(file_of):
    for name in ("torchvision/vit_b_16", "timm/swin_tiny_patch4_window7_224", "torchvision/vgg11_bn"):
        assert diagnose(file_of(names(name)), parse_target(name)).plan.rules == ()


KERAS_LEAVES = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}


def small_resnet(biases=True):
    """torchvision's names of a ResNet with bottlenecks, two stages, with random numbers."""
    torch.manual_seed(0)
    state = {}

    def conv(name, *shape):
        state[f"{name}.weight"] = torch.randn(shape)
        if biases:
            state[f"{name}.bias"] = torch.randn(shape[0])

    def norm(name, width):
        state.update({f"{name}.{leaf}": torch.randn(width) for leaf in KERAS_LEAVES})

    conv("conv1", 4, 3, 7, 7)
    norm("bn1", 4)
    for stage, (width, middle, out) in {1: (4, 4, 16), 2: (16, 8, 32), 3: (32, 8, 32), 4: (32, 8, 32)}.items():
        for block in range(2):
            here = f"layer{stage}.{block}"
            for n, shape in enumerate(
                ((middle, width if not block else out, 1, 1), (middle, middle, 3, 3), (out, middle, 1, 1)), 1
            ):
                conv(f"{here}.conv{n}", *shape)
                norm(f"{here}.bn{n}", shape[0])
            if not block:
                conv(f"{here}.downsample.0", out, width, 1, 1)
                norm(f"{here}.downsample.1", out)
    state |= {"fc.weight": torch.randn(5, 32), "fc.bias": torch.randn(5)}
    return state


def keras_of(state, end=""):
    """The same as keras.applications.ResNet50 names and lays it out: conv2_block1_0_conv/kernel."""
    made = {}
    for name, tensor in state.items():
        module, _, leaf = name.rpartition(".")
        is_norm = "bn" in module or module.endswith("downsample.1")
        if module == "fc":
            own = "predictions"
        elif module in ("conv1", "bn1"):
            own = f"conv1_{'bn' if is_norm else 'conv'}"
        else:
            stage, block, part = module[5], int(module.split(".")[1]) + 1, module[-1]
            part = "0" if "downsample" in module else part
            own = f"conv{int(stage) + 1}_block{block}_{part}_{'bn' if is_norm else 'conv'}"
        if is_norm:
            leaf = KERAS_LEAVES[leaf]
        elif leaf == "weight":
            leaf = "kernel"
            tensor = tensor.T if tensor.ndim == 2 else tensor.permute(2, 3, 1, 0)
        made[f"{own}/{leaf}{end}"] = tensor.contiguous()
    return made


@pytest.mark.parametrize("end", ["", ":0"])
def test_keras_applications_resnet_is_read_as_torchvisions_with_biases(end, target_of):
    truth = small_resnet()
    checkpoint = saved_checkpoint(keras_of(truth, end))
    goal = target_of({name: tuple(tensor.shape) for name, tensor in truth.items()})
    plan = diagnose(checkpoint, goal).plan
    assert plan is not None and plan.complete and plan.rules[0].id == "other-library"
    made = apply_plan(checkpoint, plan)
    assert made.keys() == truth.keys() and all(torch.equal(made[name], tensor) for name, tensor in truth.items())


def test_keras_applications_resnet_is_not_torchvisions_own(target_of):
    # Its convolutions have no biases, and its strides stand elsewhere.
    own = {name: tuple(tensor.shape) for name, tensor in small_resnet(biases=False).items()}
    plan = diagnose(saved_checkpoint(keras_of(small_resnet())), target_of(own)).plan
    assert plan is None or not plan.complete


def test_torchvisions_resnet_is_not_written_as_keras(target_of):
    theirs = {name: tuple(tensor.shape) for name, tensor in keras_of(small_resnet()).items()}
    plan = diagnose(saved_checkpoint(small_resnet()), target_of(theirs)).plan
    assert plan is None or "other-library" not in [use.id for use in plan.rules]


# (transformers' name below a layer, T5X's), for the halves' layers.
T5_LAYERS = {
    "encoder": (
        ("0.SelfAttention", "attention", "qkvo"),
        ("0.layer_norm", "pre_attention_layer_norm", ""),
        ("1.DenseReluDense", "mlp", ("wi", "wo")),
        ("1.layer_norm", "pre_mlp_layer_norm", ""),
    ),
    "decoder": (
        ("0.SelfAttention", "self_attention", "qkvo"),
        ("0.layer_norm", "pre_self_attention_layer_norm", ""),
        ("1.EncDecAttention", "encoder_decoder_attention", "qkvo"),
        ("1.layer_norm", "pre_cross_attention_layer_norm", ""),
        ("2.DenseReluDense", "mlp", ("wi", "wo")),
        ("2.layer_norm", "pre_mlp_layer_norm", ""),
    ),
}
T5_WORDS = {"q": "query", "k": "key", "v": "value", "o": "out"}


def t5(width=6, heads=3, buckets=8):
    """(transformers' state dict, T5X's) of one network whose matrices are square but for the MLP's."""
    torch.manual_seed(0)
    ours, theirs = {"shared.weight": torch.randn(11, width)}, {}
    theirs["target/token_embedder/embedding"] = ours["shared.weight"]
    for half, parts in T5_LAYERS.items():
        ours[f"{half}.embed_tokens.weight"] = ours["shared.weight"]
        bias = ours[f"{half}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"] = torch.randn(
            buckets, heads
        )
        theirs[f"target/{half}/relpos_bias/rel_embedding"] = bias.T.contiguous()
        for n in range(2):
            for one, other, inner in parts:
                for name in inner:
                    shape = {"wi": (10, width), "wo": (width, 10)}.get(name, (width, width))
                    tensor = ours[f"{half}.block.{n}.layer.{one}.{name}.weight"] = torch.randn(shape)
                    own = f"target/{half}/layers_{n}/{other}/{T5_WORDS.get(name, name)}/kernel"
                    theirs[own] = tensor.T.contiguous()
                if not inner:
                    norm = ours[f"{half}.block.{n}.layer.{one}.weight"] = torch.randn(width)
                    theirs[f"target/{half}/layers_{n}/{other}/scale"] = norm
        norm = ours[f"{half}.final_layer_norm.weight"] = torch.randn(width)
        theirs[f"target/{half}/{half}_norm/scale"] = norm
    return ours, theirs


T5_TIES = {"ties": (("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"),)}


def test_t5x_is_read_as_transformers(target_of):
    ours, theirs = t5()
    checkpoint = saved_checkpoint(theirs)
    plan = diagnose(checkpoint, target_of({n: tuple(t.shape) for n, t in ours.items()}, **T5_TIES)).plan
    assert plan is not None and plan.complete and not plan.ambiguities and plan.rules[0].id == "other-library"
    made = apply_plan(checkpoint, plan)
    assert made.keys() == ours.keys() and all(torch.equal(made[name], tensor) for name, tensor in ours.items())


def test_a_square_table_of_t5x_is_asked_about(target_of):
    # As many heads as buckets: nothing tells whether (heads, buckets) was turned by whoever made the file.
    ours, theirs = t5(heads=8)
    plan = diagnose(saved_checkpoint(theirs), target_of({n: tuple(t.shape) for n, t in ours.items()}, **T5_TIES)).plan
    assert plan is not None and [q.id.partition(":")[0] for q in plan.ambiguities] == ["transposed"]


def test_t5x_with_a_layer_more_is_not_forced(target_of):
    ours, theirs = t5()
    fewer = {name: tuple(t.shape) for name, t in ours.items() if not name.startswith("decoder.block.1.")}
    plan = diagnose(saved_checkpoint(theirs), target_of(fewer, **T5_TIES)).plan
    assert plan is None or "other-library" not in [use.id for use in plan.rules]


@pytest.mark.parametrize("scope", ["", "twice"], ids=["a variable's name", "a group and its scope"])
def test_keras_variables_say_how_they_lie(scope, target_of):
    """A variable's number is TensorFlow's: equal channels are no question, nor is a layer's name said twice (h5)."""
    layers = {"conv1": ("conv2d", (6, 3, 3, 3)), "conv2": ("conv2d_1", (6, 6, 3, 3)), "fc": ("dense", (6, 6))}
    truth, file = {}, {}
    for name, (theirs, shape) in layers.items():
        truth[f"{name}.weight"], truth[f"{name}.bias"] = torch.randn(shape), torch.randn(shape[0])
        at = f"{theirs}/{theirs}" if scope else theirs
        axes = (1, 0) if len(shape) == 2 else (2, 3, 1, 0)
        file[f"{at}/kernel:0"] = truth[f"{name}.weight"].permute(axes).contiguous()
        file[f"{at}/bias:0"] = truth[f"{name}.bias"]
    checkpoint = saved_checkpoint(file)
    report = diagnose(checkpoint, target_of({name: tuple(tensor.shape) for name, tensor in truth.items()}))
    assert report.plan is not None and report.plan.complete, report.says
    made = apply_plan(checkpoint, report.plan)
    assert all(torch.equal(made[name], tensor) for name, tensor in truth.items())
