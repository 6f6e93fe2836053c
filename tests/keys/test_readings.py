"""What hides the words: torchvision's numbers, named by timm's table, and matrices that lie (in, out)."""

from __future__ import annotations

import re

import pytest
import torch

from inspector.architectures.targets import parse_target
from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.keys.placing.tree import Leaf
from inspector.keys.rules.other_library import spelled_out
from inspector.readers import open_checkpoint

# transformers modeling_convnext.py, by timm's names.
CONVNEXT = (
    (r"^stem\.0\.", "convnext.embeddings.patch_embeddings."),
    (r"^stem\.1\.", "convnext.embeddings.layernorm."),
    (r"^stages\.(\d+)\.downsample\.", r"convnext.encoder.stages.\1.downsampling_layer."),
    (r"^stages\.(\d+)\.blocks\.(\d+)\.", r"convnext.encoder.stages.\1.layers.\2."),
    (r"\.gamma$", ".layer_scale_parameter"),
    (r"\.conv_dw\.", ".dwconv."),
    (r"\.norm\.", ".layernorm."),
    (r"\.mlp\.fc(\d)\.", r".pwconv\1."),
    (r"^head\.layernorm\.", "convnext.layernorm."),
    (r"^head\.fc\.", "classifier."),
)


def as_transformers(name):
    for pattern, put in CONVNEXT:
        name = re.sub(pattern, put, name)
    return name


def moved(plan):
    return {s.source: s.target for s in plan.steps if s.source is not None and s.target is not None}


def test_a_third_authors_words_are_read_against_torchvisions_numbers(file_of, target_of):
    """ConvNeXt's blocks are named three ways: the truth comes from timm's names, which stand between."""
    timm = parse_target("timm/convnext_tiny")
    there = parse_target("torchvision/convnext_tiny")
    torchvisions = diagnose(file_of({t.name: t.shape for t in timm.tensors}), there).plan
    truth = {as_transformers(ours): theirs for ours, theirs in moved(torchvisions).items()}
    net = {as_transformers(t.name): t.shape for t in timm.tensors}
    plan = diagnose(file_of(net), there).plan
    assert plan.complete and not plan.needs_accept and moved(plan) == truth
    assert "name the numbers of the target as timm does" in plan.rules[0].says
    back = diagnose(file_of({t.name: t.shape for t in there.tensors}), target_of(net)).plan
    assert back.complete and moved(back) == {theirs: ours for ours, theirs in truth.items()}


@pytest.mark.parametrize("name", ["features.1.0.block.1.weight", "neck.0.weight"])
def test_numbers_are_named_only_where_all_names_are_torchvisions(name):
    side = [Leaf(t.name, t.shape) for t in parse_target("torchvision/convnext_tiny").tensors]
    named = spelled_out(side)
    assert named is not None and "stages.0.blocks.0.mlp.fc1.weight" in named
    odd = spelled_out([*side, Leaf(name, (96,))])
    assert odd is None or name.startswith("features.")


def stages(numbers, block, width=4):
    """Stages of which no two hold the same: each twice as wide as the one before."""
    made = {}
    for n, number in enumerate(numbers):
        for name, (out, wide) in zip(block, ((width << n, width << n), (width << n + 1, width << n)), strict=True):
            made |= {f"{number}.{name}.weight": (out, wide, 3, 3), f"{number}.{name}.bias": (out,)}
    return made


def test_stages_that_differ_are_known_by_what_they_hold_whatever_their_numbers(file_of, target_of):
    ours = stages(("res2", "res3", "res4"), ("conv1", "conv2"))
    theirs = stages(("layer1", "layer2", "layer3"), ("conv_1", "conv_2"))
    plan = diagnose(file_of(ours), target_of(theirs)).plan
    assert plan.complete and moved(plan)["res4.conv2.bias"] == "layer3.conv_2.bias"
    # Of one size they may be some of a longer row.
    alike = diagnose(
        file_of({f"res{n}.{x}.weight": (4, 4, 3, 3) for n in (2, 3, 4) for x in ("conv1", "conv2")}),
        target_of({f"layer{n}.{x}.weight": (4, 4, 3, 3) for n in (1, 2, 3) for x in ("conv_1", "conv_2")}),
    )
    assert alike.plan is None or not alike.plan.complete


REGNET = (
    (r"^stem\.conv\.", "stem.0."),
    (r"^stem\.bn\.", "stem.1."),
    (r"^head\.fc\.", "fc."),
    (r"\.downsample\.", ".proj."),
    (r"\.conv1\.", ".f.a."),
    (r"\.conv2\.", ".f.b."),
    (r"\.conv3\.", ".f.c."),
    (r"\.se\.", ".f.se."),
    (r"(proj|f\.[abc])\.conv\.", r"\1.0."),
    (r"(proj|f\.[abc])\.bn\.", r"\1.1."),
)


def as_torchvision(name):
    """timm's RegNetY by torchvision's names (models/regnet.py of both)."""
    name = re.sub(r"^s(\d)\.b(\d+)\.", lambda m: f"trunk_output.block{m[1]}.block{m[1]}-{int(m[2]) - 1}.", name)
    for pattern, put in REGNET:
        name = re.sub(pattern, put, name)
    return name


def test_a_name_that_is_none_for_one_place_says_nothing_for_the_other(file_of, target_of):
    """A block whose shortcut and first convolution hold the same: they were exchanged in silence."""
    ours, there = parse_target("timm/regnety_004"), parse_target("torchvision/regnet_y_400mf")
    file = file_of({t.name: t.shape for t in ours.tensors})
    # A third code's words: of torchvision's own the table of both libraries speaks.
    goal = target_of({t.name.replace("trunk_output", "trunk"): t.shape for t in there.tensors})
    asked = diagnose(file, goal).plan
    assert [q.id for q in asked.ambiguities] == ["other-words"] and not asked.complete
    plan = diagnose(file, goal, choose={"other-words": "a,c"}).plan
    truth = {t.name: as_torchvision(t.name) for t in ours.tensors}
    assert plan.complete and moved(plan) == {n: at.replace("trunk_output", "trunk") for n, at in truth.items()}
    known = diagnose(file, there).plan
    assert known.complete and moved(known) == truth


def test_the_table_of_two_libraries_helps_a_third_ones_words(file_of):
    ours, there = parse_target("timm/regnety_004"), parse_target("torchvision/regnet_y_400mf")
    own = {t.name: t.name.replace("downsample.", "shortcut.") for t in ours.tensors}
    plan = diagnose(file_of({own[t.name]: t.shape for t in ours.tensors}), there).plan
    assert plan.complete and moved(plan) == {name: as_torchvision(n) for n, name in own.items()}


class Conv1D(torch.nn.Module):
    """transformers' layer: y = x W + b, W of (in, out)."""

    def __init__(self, out, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width, out))
        self.bias = torch.nn.Parameter(torch.randn(out))

    def forward(self, x):
        return x @ self.weight + self.bias


def gpt(linear, names, width=8, layers=2):
    """Two blocks without attention's arithmetic: each matrix is heard in the answer, in order."""
    outer, block = names
    net = torch.nn.Module()
    made = torch.nn.ModuleList()
    for _ in range(layers):
        one = torch.nn.Module()
        for path, (out, wide) in zip(block, ((width, width), (4 * width, width), (width, 4 * width)), strict=True):
            node = one
            *parents, last = path.split(".")
            for parent in parents:
                if not hasattr(node, parent):
                    setattr(node, parent, torch.nn.Module())
                node = getattr(node, parent)
            setattr(node, last, linear(out, wide))
        made.append(one)
    node = net
    *parents, last = outer.split(".")
    for parent in parents:
        setattr(node, parent, torch.nn.Module())
        node = getattr(node, parent)
    setattr(node, last, made)
    return net


def run(net, names, x):
    outer, block = names
    for one in net.get_submodule(outer):
        for path in block:
            x = torch.tanh(one.get_submodule(path)(x))
    return x


GPT2 = ("transformer.h", ("attn.c_proj", "mlp.c_fc", "mlp.c_proj"))
OWN = ("blocks", ("attn.out_proj", "mlp.fc1", "mlp.fc2"))


def linear(out, width):
    return torch.nn.Linear(width, out)


@pytest.mark.parametrize("back", [False, True])
def test_in_out_matrices_are_read_by_words_and_answer_alike(back, tmp_path, target_of):
    torch.manual_seed(3)
    ours, theirs = (OWN, GPT2) if back else (GPT2, OWN)
    source = gpt(linear if back else Conv1D, ours)
    goal = gpt(Conv1D if back else linear, theirs)
    torch.save(source.state_dict(), tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    plan = diagnose(checkpoint, target_of({n: tuple(t.shape) for n, t in goal.state_dict().items()})).plan
    assert plan.complete and not plan.ambiguities and not plan.needs_accept
    goal.load_state_dict(apply_plan(checkpoint, plan))
    x = torch.randn(5, 8)
    assert torch.allclose(run(goal, theirs, x), run(source, ours, x), atol=1e-6)


def test_matrices_of_other_sizes_are_another_network(file_of, target_of):
    ours = {f"h.{n}.mlp.c_fc.{leaf}": shape for n in range(3) for leaf, shape in (("weight", (8, 32)), ("bias", (32,)))}
    theirs = {f"blocks.{n}.mlp.fc1.{x}": s for n in range(3) for x, s in (("weight", (32, 16)), ("bias", (32,)))}
    assert diagnose(file_of(ours), target_of(theirs)).plan is None


def clip(transformers, width=8, text=6, out=6):
    """A CLIP of one layer in each tower, by transformers' names (modeling_clip.py) or open_clip's."""
    made = {"logit_scale": ()}
    for image, size in ((True, width), (False, text)):
        tower = ("vision_model." if image else "text_model.") if transformers else ("visual." if image else "")
        block = f"{tower}encoder.layers.0." if transformers else f"{tower}transformer.resblocks.0."
        layers = (
            ("self_attn.out_proj", "attn.out_proj", (size, size)),
            ("mlp.fc1", "mlp.c_fc", (4 * size, size)),
            ("mlp.fc2", "mlp.c_proj", (size, 4 * size)),
            ("layer_norm1", "ln_1", (size,)),
            ("layer_norm2", "ln_2", (size,)),
        )
        for theirs, ours, shape in layers:
            name = block + (theirs if transformers else ours)
            made |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
        if transformers:
            for part in "qkv":
                made |= {
                    f"{block}self_attn.{part}_proj.weight": (size, size),
                    f"{block}self_attn.{part}_proj.bias": (size,),
                }
        else:
            made |= {f"{block}attn.in_proj_weight": (3 * size, size), f"{block}attn.in_proj_bias": (3 * size,)}
        last = {True: ("post_layernorm", "ln_post"), False: ("final_layer_norm", "ln_final")}[image]
        norms = [last] + ([("pre_layrnorm", "ln_pre")] if image else [])
        for theirs, ours in norms:
            name = tower + (theirs if transformers else ours)
            made |= {f"{name}.weight": (size,), f"{name}.bias": (size,)}
        places = f"{tower}embeddings.position_embedding.weight" if transformers else f"{tower}positional_embedding"
        made[places] = (17 if image else 16, size)
        if transformers:
            made["visual_projection.weight" if image else "text_projection.weight"] = (out, size)
        else:
            made["visual.proj" if image else "text_projection"] = (size, out)
    made["text_model.embeddings.token_embedding.weight" if transformers else "token_embedding.weight"] = (61, text)
    made |= (
        {"vision_model.embeddings.patch_embedding.weight": (width, 3, 8, 8)}
        if transformers
        else {"visual.conv1.weight": (width, 3, 8, 8)}
    )
    made["vision_model.embeddings.class_embedding" if transformers else "visual.class_embedding"] = (width,)
    return made


@pytest.mark.parametrize("out", [5, 6])
def test_clips_projections_are_turned_also_where_they_are_square(out, file_of, target_of):
    """`x @ text_projection` is (in, out); of 6 x 6 no shape shows it, and the names of both sides do."""
    ours, theirs = clip(True, out=out), clip(False, out=out)
    plan = diagnose(file_of(ours), target_of(theirs)).plan
    assert plan.complete and not plan.ambiguities
    turned = {s.target: s.source for s in plan.steps if s.axes == (1, 0)}
    assert turned == {"visual.proj": "visual_projection.weight", "text_projection": "text_projection.weight"}
    back = diagnose(file_of(theirs), target_of(ours), choose={"qkv-order": "q-k-v"}).plan
    assert {s.source: s.target for s in back.steps if s.axes == (1, 0)} == turned
    assert not diagnose(file_of(theirs), target_of(theirs)).plan.rules


def test_a_square_projection_of_no_known_code_is_not_placed_in_silence(file_of, target_of):
    theirs = {n.replace("ln_final", "last_norm").replace("resblocks", "layers"): s for n, s in clip(False).items()}
    report = diagnose(file_of(clip(True)), target_of(theirs))
    placed = moved(report.plan) if report.plan is not None and report.plan.complete else {}
    assert "text_projection.weight" not in placed
