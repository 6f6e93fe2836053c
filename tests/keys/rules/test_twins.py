"""Two sets of the same weights: never taken silently, left out only by name."""

from __future__ import annotations

import pytest

from inspector.keys.diagnose import diagnose
from inspector.keys.report import StepKind

NET = {f"layer{i}.{leaf}": shape for i in range(1, 4) for leaf, shape in (("weight", (4, 3)), ("bias", (4,)))}
BOTH = {f"{p}.{n}": s for p in ("model", "ema_model") for n, s in NET.items()}


def test_twins_are_asked_about_and_nothing_is_placed_before(file_of, target_of):
    plan = diagnose(file_of(BOTH), target_of(NET)).plan
    assert not plan.complete and [a.id for a in plan.ambiguities] == ["twins"]
    assert [option for option, _ in plan.ambiguities[0].options] == ["model", "ema_model"]
    assert not [s for s in plan.steps if s.source is not None and s.target is not None]


def test_the_chosen_one_is_taken_whole_and_the_other_left_out(file_of, target_of):
    for chosen, other in (("model", "ema_model"), ("ema_model", "model")):
        plan = diagnose(file_of(BOTH), target_of(NET), choose={"twins": chosen}).plan
        assert plan.complete
        assert {s.target: s.source for s in plan.steps if s.target} == {n: f"{chosen}.{n}" for n in NET}
        assert {s.source for s in plan.steps if s.kind is StepKind.DROP} == {f"{other}.{n}" for n in NET}


def test_a_twin_by_the_targets_own_name_is_asked_about_too(file_of, target_of):
    wrapped = {f"model.{n}": s for n, s in NET.items()}
    assert diagnose(file_of(BOTH), target_of(wrapped)).plan.ambiguities[0].id == "twins"
    plan = diagnose(file_of(BOTH), target_of(wrapped), choose={"twins": "ema_model"}).plan
    assert (
        plan.complete
        and {s.target: s.source for s in plan.steps if s.target}["model.layer1.bias"] == "ema_model.layer1.bias"
    )


def test_a_network_of_two_equal_branches_has_no_twins(file_of, target_of):
    plan = diagnose(file_of(BOTH), target_of(BOTH)).plan
    assert plan.complete and plan.rules == ()
    wrapped = {f"module.{n}": s for n, s in BOTH.items()}
    assert diagnose(file_of(wrapped), target_of(BOTH)).plan.complete


def test_two_tensors_for_one_place_are_asked_about(file_of, target_of):
    both = {"module.a.weight": (2, 3), "a.weight": (2, 3)}
    plan = diagnose(file_of(both), target_of({"a.weight": (2, 3)})).plan
    assert not plan.complete and [a.id for a in plan.ambiguities] in (["collision"], ["twins"])
    question = plan.ambiguities[0]
    option = next(o for o, _ in question.options if "module" in o)
    chosen = diagnose(file_of(both), target_of({"a.weight": (2, 3)}), choose={question.id: option}).plan
    assert chosen.complete
    assert [s.source for s in chosen.steps if s.target == "a.weight"] == ["module.a.weight"]


def test_a_chosen_twin_of_a_target_that_has_a_part_of_the_others_name_is_the_whole_network(file_of, target_of):
    """Llama's own "model." beside "lm_head.": ema_model.model is the target's model, and ema_model.lm_head its head."""
    own = {f"model.{n}": s for n, s in NET.items()} | {"lm_head.weight": (7, 4)}
    both = {f"{p}.{n}": s for p in ("model", "ema_model") for n, s in own.items()}
    for chosen in ("model", "ema_model"):
        plan = diagnose(file_of(both), target_of(own), choose={"twins": chosen}).plan
        assert plan.complete
        assert {s.target: s.source for s in plan.steps if s.target} == {n: f"{chosen}.{n}" for n in own}


def test_pefts_trained_copy_is_taken_unasked(file_of, target_of, placed_as):
    goal = {"body.weight": (4, 4), "classifier.weight": (2, 4), "classifier.bias": (2,)}
    ours = {"body.weight": (4, 4)}
    for part in ("original_module", "modules_to_save"):
        ours |= {f"classifier.{part}.weight": (2, 4), f"classifier.{part}.bias": (2,)}
    report = diagnose(file_of(ours), target_of(goal))
    assert report.plan.complete and placed_as(report)["classifier.weight"] == "classifier.modules_to_save.weight"


ENCODER = {"0.weight": (8, 3, 3, 3), "0.bias": (8,), "2.weight": (16, 8, 3, 3), "2.bias": (16,)}
DECODER = {"0.weight": (16, 8, 3, 3), "0.bias": (8,), "2.weight": (8, 3, 3, 3), "2.bias": (3,)}


def both(prefix, encoder, decoder):
    return {f"{prefix}encoder.{n}": s for n, s in encoder.items()} | {
        f"{prefix}decoder.{n}": s for n, s in decoder.items()
    }


def test_a_decoder_of_the_same_shapes_in_another_order_is_no_twin_of_the_encoder(file_of, target_of):
    goal = {f"encoder.{n}": s for n, s in ENCODER.items()}
    plan = diagnose(file_of(both("net.", ENCODER, DECODER)), target_of(goal)).plan
    assert plan.complete and {s.target: s.source for s in plan.steps if s.target} == {n: f"net.{n}" for n in goal}
    # One that holds the same by name, or all the same shapes, is asked about.
    for other in (ENCODER, {n.replace("0", "a").replace("2", "b"): s for n, s in ENCODER.items()}):
        plan = diagnose(file_of(both("net.", ENCODER, other)), target_of(goal)).plan
        assert [q.id for q in plan.ambiguities] == ["twins"] and not plan.complete


def test_a_set_under_a_name_beside_one_without_is_asked_about(file_of, target_of):
    """The older set fits the target's prefix by its own, and lacks two tensors; it was taken for the newer."""
    sizes = {"weight": (4, 4), "bias": (4,)}
    names = [f"{m}.{leaf}" for m in ("embedding", "encoder", "decoder", "fc") for leaf in sizes]
    net = {name: sizes[name.rpartition(".")[2]] for name in names}
    old = {f"old.{name}": size for name, size in list(net.items())[:-1]}
    report = diagnose(file_of(old | net), target_of({f"encoder.{name}": size for name, size in net.items()}))
    assert [q.id for q in report.plan.ambiguities] == ["twins"] and not report.plan.complete


SHAPES = {"a.weight": (6, 5), "a.bias": (6,), "b.weight": (9, 6), "b.bias": (9,), "c.weight": (3, 9)}


@pytest.mark.parametrize("prefix", ["model.", "model.net."])
def test_the_set_beside_a_named_one_is_placed_once_it_is_chosen(prefix, file_of, target_of):
    """It was judged against both sets still, and so refused: "the names of both have nothing in common"."""
    old = {f"old.{name}": size for name, size in SHAPES.items()}
    goal = {f"{prefix}{name}": size for name, size in SHAPES.items()}
    for choice, at in (("*", ""), ("old", "old.")):
        plan = diagnose(file_of(old | SHAPES), target_of(goal), choose={"twins": choice}).plan
        assert plan.complete and not plan.needs_accept
        assert {s.target: s.source for s in plan.steps if s.target} == {prefix + n: at + n for n in SHAPES}
        assert {s.source for s in plan.steps if s.target is None} == {*old, *SHAPES} - {at + n for n in SHAPES}


def test_words_and_order_place_what_is_chosen_of_two_sets(file_of, target_of):
    """Under names that have nothing in common the order of the chosen set counts, and has to be accepted as ever."""
    old = {f"old.{name}": size for name, size in SHAPES.items()}
    goal = {n.replace("a.", "u.").replace("b.", "v.").replace("c.", "w."): size for n, size in SHAPES.items()}
    for choice, at in (("*", ""), ("old", "old.")):
        waiting = diagnose(file_of(old | SHAPES), target_of(goal), choose={"twins": choice}).plan
        assert not waiting.complete and waiting.needs_accept == ("same-order",)
        plan = diagnose(file_of(old | SHAPES), target_of(goal), choose={"twins": choice}, accept=("same-order",)).plan
        assert plan.complete
        assert {s.target: s.source for s in plan.steps if s.target} == dict(
            zip(goal, (at + n for n in SHAPES), strict=True)
        )
