"""Names read by what they mean: what is placed unasked, what is asked about, and what is never guessed."""

from __future__ import annotations

import random
import re

import pytest

from benchmarks.keybench.templates import bert_tiny, llama_tiny
from inspector.keys.diagnose import diagnose
from inspector.keys.placing.words import CONTRADICTION, read, relation
from inspector.keys.report import Evidence

LUCIDRAINS = (
    ("encoder.layer", "blocks"),
    ("attention.self.query", "attn.to_q"),
    ("attention.self.key", "attn.to_k"),
    ("attention.self.value", "attn.to_v"),
    ("attention.output.dense", "attn.to_out.0"),
    ("attention.output.LayerNorm", "norm1"),
    ("intermediate.dense", "mlp.fc1"),
    ("output.dense", "mlp.fc2"),
    ("output.LayerNorm", "norm2"),
)


def renamed(name, table):
    for old, new in table:
        name = re.sub(rf"(^|\.){re.escape(old)}(?=\.)", rf"\1{new}", name)
    return name


def moved(plan):
    return {s.source: s.target for s in plan.steps if s.source is not None and s.target is not None}


def arranged(net, order):
    names = list(net)
    if order == "sorted":
        names.sort()
    elif order == "shuffled":
        random.Random(5).shuffle(names)
    return {name: net[name] for name in names}


@pytest.mark.parametrize("order", ["listed", "sorted", "shuffled"])
def test_another_authors_words_are_placed_unasked_in_any_order(order, file_of, target_of):
    net = bert_tiny(2)
    truth = {renamed(name, LUCIDRAINS): name for name in net}
    plan = diagnose(file_of(arranged({new: net[old] for new, old in truth.items()}, order)), target_of(net)).plan
    assert plan.complete and moved(plan) == truth
    assert [use.id for use in plan.rules] == ["other-words"] and not plan.needs_accept
    assert dict(plan.certificate)[Evidence.WORDS] == sum(a != b for a, b in truth.items())
    said = dict(plan.rules[0].parameters)
    assert said["attn.to_q is"] == "attention.self.query" and said["mlp.fc2 is"] == "output.dense"


def test_numbers_from_one_and_stages_in_one_list_are_counted(shapes, file_of, target_of):
    net = shapes("resnet18")
    truth = {}
    for name in net:
        new = re.sub(r"^layer(\d)\.(\d)\.", lambda f: f"stages.{int(f[1]) - 1}.blocks.{int(f[2]) + 1}.", name)
        truth[re.sub(r"\b(conv|bn)(\d)\.", lambda f: f"{f[1]}s.{int(f[2]) - 1}.", new)] = name
    plan = diagnose(file_of(arranged({new: net[old] for new, old in truth.items()}, "sorted")), target_of(net)).plan
    assert plan.complete and moved(plan) == truth


def test_equal_names_need_no_words(file_of, target_of):
    net = bert_tiny(2)
    plan = diagnose(file_of(net), target_of(net)).plan
    assert plan.complete and not plan.rules


def test_names_that_do_not_tell_two_parts_apart_are_asked_about_once_for_all_layers(file_of, target_of):
    net = bert_tiny(3)
    table = (("attention.self.key", "attn.zarbo"), ("attention.self.value", "attn.adomi"), *LUCIDRAINS)
    truth = {renamed(name, table): name for name in net}
    ours = file_of(arranged({new: net[old] for new, old in truth.items()}, "sorted"))
    plan = diagnose(ours, target_of(net)).plan
    (question,) = plan.ambiguities
    assert question.id == "other-words" and not plan.complete
    assert [option for option, _ in question.options] == ["key,value", "value,key", "leave-out"]
    assert not {name for name in moved(plan) if "zarbo" in name or "adomi" in name}
    # Listed by the file's names: adomi first.
    right = diagnose(ours, target_of(net), choose={"other-words": "value,key"}).plan
    assert right.complete and moved(right) == truth
    assert dict(right.certificate)[Evidence.CHOSEN] == 12


@pytest.mark.parametrize("names", [("left", "right"), ("one", "two")])
def test_two_equal_towers_under_new_names_are_never_placed_unasked(names, file_of, target_of):
    net = llama_tiny(1)
    goal = {f"{tower}_net.{name}": shape for tower in names for name, shape in net.items()}
    ours = {f"{tower}.{name}": shape for tower in ("zeta", "alpha") for name, shape in net.items()}
    report = diagnose(file_of(arranged(ours, "sorted")), target_of(goal))
    assert report.plan is None or not report.plan.complete


def test_two_towers_with_words_are_told_apart_against_the_order(file_of, target_of):
    net = llama_tiny(1)
    goal = {f"{tower}.{name}": shape for tower in ("encoder", "decoder") for name, shape in net.items()}
    truth = {
        f"{short}.{name}": f"{long}.{name}" for short, long in (("dec", "decoder"), ("enc", "encoder")) for name in net
    }
    plan = diagnose(file_of({new: goal[old] for new, old in truth.items()}), target_of(goal)).plan
    assert plan.complete and moved(plan) == truth


def test_the_order_is_not_offered_against_the_words(file_of, target_of):
    part = {"weight": (8,), "bias": (8,)}
    goal = {f"b.{i}.{n}.{leaf}": s for i in range(2) for n in ("pre_norm", "post_norm") for leaf, s in part.items()}
    goal |= {f"b.{i}.fc{n}.weight": (8, 8) for i in range(2) for n in (1, 2)}
    table = {"pre_norm": "norm_pre", "post_norm": "norm_post"}
    truth = {renamed(name, table.items()): name for name in goal}
    # The file lists the norm behind before the one in front.
    names = sorted(truth, key=lambda name: (name.split(".")[1], "fc" in name, "pre" in name))
    plan = diagnose(file_of({name: goal[truth[name]] for name in names}), target_of(goal)).plan
    assert plan.complete and moved(plan) == truth and not plan.needs_accept


def test_numbers_with_a_sign_are_not_read(file_of, target_of):
    """layers.-1 is the last of all, or stands before layers.0: it was taken for layers.1."""
    net = {
        f"layers.{i}.fc{n}.{leaf}": (4, 4)[: 2 - (leaf == "bias")]
        for i in range(3)
        for n in (1, 2)
        for leaf in ("weight", "bias")
    }
    for by in (3, 1):
        file = {re.sub(r"\.(\d)\.fc", lambda f, by=by: f".{int(f[1]) - by}.lin", name): s for name, s in net.items()}
        plan = diagnose(file_of(file, ordered=False), target_of(net)).plan
        assert plan is None or not plan.complete


def test_a_norm_called_net_0_is_not_read_as_the_first_of_an_mlp(file_of, target_of):
    """Then it could not be final_layer_norm, and the two norms of a block changed places, unasked."""
    table = {
        "attention.q_proj": "0.to_q",
        "attention.k_proj": "0.to_k",
        "attention.out_proj": "0.to_out.0",
        "layer_norm": "0.norm",
        "feed_forward.intermediate_dense": "1.net.1",
        "feed_forward.output_dense": "1.net.4",
        "final_layer_norm": "1.net.0",
    }
    shapes = {"feed_forward.intermediate_dense": (8, 4), "feed_forward.output_dense": (4, 8)}
    goal, ours = {}, {}
    for i in range(3):
        for theirs, own in table.items():
            shape = (4,) if "norm" in theirs else shapes.get(theirs, (4, 4))
            goal |= {f"encoder.layers.{i}.{theirs}.weight": shape, f"encoder.layers.{i}.{theirs}.bias": shape[:1]}
            ours |= {f"layers.{i}.{own}.weight": shape, f"layers.{i}.{own}.bias": shape[:1]}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    by_words = {s.source: s.target for s in plan.steps if s.evidence is Evidence.WORDS} if plan else {}
    assert by_words.get("layers.0.0.norm.weight") in (None, "encoder.layers.0.layer_norm.weight")


def test_gate_and_up_are_read_from_what_stands_beside_them(file_of, target_of):
    net = llama_tiny(2)
    meta = (("gate_proj", "w1"), ("up_proj", "w3"), ("down_proj", "w2"), ("mlp", "feed_forward"))
    truth = {renamed(name, meta): name for name in net}
    plan = diagnose(file_of(arranged({new: net[old] for new, old in truth.items()}, "sorted")), target_of(net)).plan
    assert {s: t for s, t in moved(plan).items() if "feed" in s} == {s: t for s, t in truth.items() if "feed" in s}
    # w1 and w2 of one shape are gate and up in EVA, up and gate in Qwen's first model.
    eva = (("gate_proj", "w1"), ("up_proj", "w2"), ("down_proj", "w3"))
    report = diagnose(file_of(arranged({renamed(n, eva): s for n, s in net.items()}, "sorted")), target_of(net))
    assert report.plan is None or not report.plan.complete


def test_another_quantity_under_a_name_of_its_own_is_no_other_word(file_of, target_of):
    net = {"enc.weight": (8, 4), "enc.bias": (8,), "head.weight": (2, 8), "head.bias": (2,)}
    goal = {"encoder" + n[3:] if n.startswith("enc") else n: s for n, s in net.items()} | {"temperature": ()}
    report = diagnose(file_of(net | {"logit_scale": ()}), target_of(goal))
    assert report.plan is None or not report.plan.complete


@pytest.mark.parametrize(
    ("ours", "theirs", "related"),
    [
        ("h.0.attn.to_q", "layers.0.self_attn.q_proj", True),
        ("h.0.attn.to_q", "layers.0.self_attn.k_proj", False),
        ("b.0.attn.c_proj", "b.0.attn.proj", True),
        ("b.0.mlp.c_proj", "b.0.mlp.fc1", False),
        ("b.0.input_layernorm", "b.0.norm1", True),
        ("b.0.input_layernorm", "b.0.output.LayerNorm", False),
        ("enc.0", "decoder.0", False),
    ],
)
def test_readings_agree_or_exclude_each_other(ours, theirs, related):
    points = relation(read(tuple(ours.split(".")), 0), read(tuple(theirs.split(".")), 0))
    assert points > 1 if related else points == CONTRADICTION


def test_levels_counted_in_another_order_keep_their_meaning(file_of, target_of, placed_as):
    """blocks.0.norm2 is norm2s.0, not the second of norm1s."""
    parts = ("attn.proj", "mlp.fc1", "norm1", "norm2")
    shapes = {"attn.proj": (6, 6), "mlp.fc1": (12, 6), "norm1": (6,), "norm2": (6,)}
    for count in (2, 3):
        truth = {}
        for i in range(count):
            for part in parts:
                there = {"norm1": f"norm1s.{i}", "norm2": f"norm2s.{i}"}.get(part)
                there = there or part.replace(".", f"_layers.{i}.")
                truth[f"{there}.weight"] = f"blocks.{i}.{part}.weight"
        ours = {theirs: shapes[theirs.split(".", 2)[2].removesuffix(".weight")] for theirs in truth.values()}
        goal = {name: ours[source] for name, source in truth.items()}
        report = diagnose(file_of(ours, ordered=False), target_of(goal))
        placed = placed_as(report)
        assert all(truth[name] == source for name, source in placed.items())
        assert report.plan.complete


def test_a_square_of_two_counts_that_no_word_tells_apart_is_not_placed_in_silence(file_of, target_of):
    ours = {f"towers.{i}.units.{j}.weight": (6, 6) for i in (0, 1) for j in (0, 1)} | {"stem.weight": (6, 3)}
    goal = {f"units.{j}.towers.{i}.weight": (6, 6) for i in (0, 1) for j in (0, 1)} | {"first.weight": (6, 3)}
    plan = diagnose(file_of(ours, ordered=False), target_of(goal)).plan
    placed = {s.target: s.source for s in plan.steps if s.source and s.target}
    wrong = [t for t, s in placed.items() if "units" in t and t.split(".")[1] != s.split(".")[3]]
    assert not wrong or not plan.complete


def test_a_token_is_no_key_and_a_policy_is_the_actor(file_of, target_of, placed_as):
    assert "key" in read(("attn", "to_k"), 0).roles and "key" not in read(("tok",), 0).roles
    nets = {"0.weight": (8, 8), "2.weight": (2, 8)}
    goal = {f"{part}.{n}": s for part in ("actor", "critic") for n, s in nets.items()}
    for pi, vf in (("pi", "vf"), ("policy_net", "value_net")):
        # The value first, so that the order says the other thing.
        ours = {f"{part}.{n}": s for part in (vf, pi) for n, s in nets.items()}
        report = diagnose(file_of(ours, ordered=False), target_of(goal))
        assert report.plan.complete
        assert placed_as(report) == {t: t.replace("actor", pi).replace("critic", vf) for t in goal}


def test_a_word_is_not_read_as_another_in_the_next_block(file_of, target_of):
    """A wrapper around one block's norm must not turn the two norms of that block round."""
    shapes = llama_tiny(2)
    words = (("input_layernorm", "norm1"), ("post_attention_layernorm", "ffn_norm"), ("self_attn", "sa"))
    truth = {renamed(name, words): name for name in shapes}
    truth["model.layers.1.ffn_norm.model.weight"] = truth.pop("model.layers.1.ffn_norm.weight")
    plan = diagnose(file_of({new: shapes[old] for new, old in truth.items()}), target_of(shapes)).plan
    assert plan.complete and moved(plan) == truth


@pytest.mark.parametrize(("ours", "theirs"), [("norm1", "post_attention_layernorm"), ("ffn_norm", "input_layernorm")])
def test_what_only_holds_a_layer_takes_no_role_from_it(ours, theirs):
    plain = read(("layers", "1", ours), 2)
    for holder in ("model", "module"):
        held = read(("layers", "1", ours, holder), 2)
        assert held.roles == plain.roles and relation(held, read(("layers", "1", theirs), 2)) == relation(
            plain, read(("layers", "1", theirs), 2)
        )


def test_numbered_parts_that_the_target_names_are_no_row_of_blocks(file_of, target_of):
    part = {"conv1.weight": (8, 8, 3, 3), "conv2.weight": (4, 8, 3, 3), "bn1.weight": (8,), "bn1.bias": (8,)}
    more = {"conv1.weight": (6, 4, 1, 1), "conv1.bias": (6,)}
    goal = {f"encoder.{n}": s for n, s in part.items()} | {f"decoder.{n}": s for n, s in more.items()}
    ours = {f"module.0.{n}": s for n, s in part.items()} | {f"module.1.{n}": s for n, s in more.items()}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert plan.complete and list(moved(plan).items()) == list(zip(ours, goal, strict=True))


def test_a_count_that_moved_into_the_word_stays_the_count(file_of, target_of):
    goal = {"stem.conv1.weight": (8, 3, 3, 3), "stem.bn1.weight": (8,), "stem.bn1.bias": (8,)}
    goal |= {"stem.conv2.weight": (8, 8, 3, 3), "stem.bn2.weight": (8,), "stem.bn2.bias": (8,)}
    truth = {re.sub(r"stem\.(conv|bn)(\d)", r"block\2.\1", name): name for name in goal}
    plan = diagnose(file_of({new: goal[old] for new, old in truth.items()}), target_of(goal)).plan
    assert plan.complete and moved(plan) == truth


def own_words_of_a_transformer(depth=3):
    """(torchvision's names, another author's): words in common for half of it, and one of its own for three layers."""
    theirs = {"ln_1": "norm_a", "ln_2": "norm_b", "self_attention.out_proj": "mixer.merge"}
    theirs |= {"self_attention.in_proj_": "mixer.qkv.", "mlp.0": "ff.up", "mlp.3": "ff.down"}
    theirs |= {"encoder.layers.encoder_layer_": "blocks.", "encoder.ln": "final", "heads.head": "cls"}
    theirs |= {"conv_proj": "stem", "class_token": "token", "encoder.pos_embedding": "position"}
    net = {"class_token": (1, 1, 16), "conv_proj.weight": (16, 3, 4, 4), "conv_proj.bias": (16,)}
    net |= {"encoder.pos_embedding": (1, 5, 16)}
    for n in range(depth):
        at = f"encoder.layers.encoder_layer_{n}."
        sizes = {
            "ln_1": (16,),
            "self_attention.out_proj": (16, 16),
            "ln_2": (16,),
            "mlp.0": (64, 16),
            "mlp.3": (16, 64),
        }
        net |= {f"{at}self_attention.in_proj_weight": (48, 16), f"{at}self_attention.in_proj_bias": (48,)}
        for name, size in sizes.items():
            net |= {f"{at}{name}.weight": size, f"{at}{name}.bias": size[:1]}
    net |= {"encoder.ln.weight": (16,), "encoder.ln.bias": (16,), "heads.head.weight": (7, 16), "heads.head.bias": (7,)}
    made = {}
    for name in net:
        made[name] = name
        for ours, other in theirs.items():
            made[name] = made[name].replace(ours, other)
    return net, made


def test_what_is_left_over_is_one_question_whatever_the_layers_are_called(file_of, target_of):
    net, truth = own_words_of_a_transformer()
    ours = file_of({name: net[name] for name in sorted(net)})
    goal = target_of({truth[name]: shape for name, shape in net.items()})
    asked = {question.id: question for question in diagnose(ours, goal).plan.ambiguities}
    assert list(asked) == ["other-words", "other-words:left-over", "fused-order"]
    rest = asked["other-words:left-over"]
    pairs = (
        '"encoder.ln" and "final"',
        '"conv_proj" and "stem"',
        '_N.self_attention.out_proj" and "blocks.N.mixer.merge"',
    )
    assert all(pair in rest.question for pair in pairs) and len(rest.places) == 3
    answers = {
        "other-words": "norm_a,norm_b",
        "other-words:left-over": "same",
        "fused-order": asked["fused-order"].options[0][0],
    }
    plan = diagnose(ours, goal, choose=answers).plan
    assert plan.complete and {s.source: s.target for s in plan.steps} == truth
    one = diagnose(ours, goal, choose=answers | {rest.at(rest.places[0]): "leave-out"})
    assert one.plan is None or not one.plan.complete


def test_options_say_enough_of_either_name_to_be_told_apart():
    """bn is _bn1, bn is _bn2: which of them is meant stands a level above."""
    from inspector.keys.placing.matching import Doubt
    from inspector.keys.placing.parts import Part
    from inspector.keys.placing.worded import _question

    ours = [Part(("blocks", "0", name, "bn"), 0) for name in ("depthwise", "project")]
    theirs = [Part(("stages", "0", name, "0"), 0) for name in ("value", "advantage")]
    choice = tuple(zip(ours, theirs, strict=True))
    options = dict(_question(Doubt(choices=(choice,)), ["value.0,advantage.0"]).options)
    assert options["value.0,advantage.0"] == "depthwise.bn is value.0, project.bn is advantage.0"
