"""The whole diagnosis on torchvision models: what is repaired, what is asked, what is refused."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.checkpoint.types import StateRole
from inspector.errors import UsageError
from inspector.keys.diagnose import diagnose
from inspector.keys.report import Cost, KeyReport, StepKind
from tests.steps import steps

MODELS = ("resnet18", "vgg11_bn", "mobilenet_v3_small", "densenet121", "vit_b_16")


def placed(report: KeyReport) -> dict[str, str]:
    """{target: source} of every tensor that the plan moves."""
    return {s.target: s.source for s in report.plan.steps if s.source is not None and s.target is not None}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_fits_itself_without_any_rule(name, shapes, file_of, target_of):
    own = shapes(name)
    report = diagnose(file_of(own), target_of(own))
    assert report.loads and report.plan.complete
    assert report.plan.rules == () and report.findings == ()
    assert {s.kind for s in report.plan.steps} == {StepKind.KEEP}
    assert report.says == f"All {len(own)} tensors fit the target as they are; no name or shape needs repair."


def test_the_sentence_names_count_wrapper_and_cost(shapes, file_of, target_of):
    own = shapes("resnet18")
    report = diagnose(file_of({f"module.{k}": v for k, v in own.items()}), target_of(own))
    assert report.says == 'All 122 tensors fit once "module." is dropped. Lossless.'
    assert not report.loads and len(report.missing) == len(report.unexpected) == 122
    assert report.matched == ()
    assert [f.id for f in report.findings] == ["wrapper-segment"]


def wrap(names: list[str], place: str, segment: str) -> dict[str, str]:
    """{name: name with a level put in below place}; place "" is the root."""
    start = f"{place}." if place else ""
    return {n: f"{start}{segment}.{n[len(start) :]}" if n.startswith(start) else n for n in names}


WRAPPERS = ("module", "_orig_mod", "model", "net_G", "backbone", "_fsdp_wrapped_module", "my_module")


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(MODELS),
    wraps=st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(WRAPPERS)), max_size=4),
    reverse=st.booleans(),
)
def test_any_combination_of_wrappers_comes_off_again(name, wraps, reverse, shapes, file_of, target_of):
    own = shapes(name)
    now = {n: n for n in own}
    for seed, segment in wraps:
        places = sorted(
            {n.rpartition(".")[0] for n in now.values()} | {n.partition(".")[0] for n in now.values()} | {""}
        )
        places = [
            p for p in places if p == "" or all(n.startswith(p + ".") or not n.startswith(p) for n in now.values())
        ]
        place = places[seed % len(places)]
        moved = wrap(list(now.values()), place, segment)
        now = {n: moved[where] for n, where in now.items()}
    wrapped = {now[n]: own[n] for n in own}
    if reverse:
        report = diagnose(file_of(own), target_of(wrapped))
        truth = {now[n]: n for n in own}
    else:
        report = diagnose(file_of(wrapped), target_of(own))
        truth = {n: now[n] for n in own}
    assert report.plan is not None and report.plan.complete, report.says
    assert placed(report) == truth
    assert all(step.cost is Cost.LOSSLESS for step in report.plan.steps)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(MODELS),
    share=st.floats(0, 1),
    seed=st.integers(0, 10**6),
    prefix=st.sampled_from(("", "module.", "net.")),
)
def test_an_incomplete_file_places_what_it_has_and_is_not_complete(
    name, share, seed, prefix, shapes, file_of, target_of
):
    own = shapes(name)
    kept = [n for n in own if random.Random(f"{seed}{n}").random() < share]
    report = diagnose(file_of({prefix + n: own[n] for n in kept}), target_of(own))
    if report.plan is None:
        assert not report.matched
        return
    # Never a tensor on another's place, and complete only when all but counters are there.
    assert all(source == prefix + target for target, source in placed(report).items())
    gone = [n for n in own if n not in kept and not n.endswith("num_batches_tracked")]
    assert report.plan.complete == (not gone)


def test_a_smaller_sibling_is_refused_and_nothing_is_planned(shapes, file_of, target_of):
    report = diagnose(file_of(shapes("resnet34")), target_of(shapes("resnet50"), label="torchvision/resnet50"))
    assert report.plan is None and not report.loads
    assert re.match(
        r"32 of 320 tensors have another shape than torchvision/resnet50 needs, layer1.0.conv1", report.refusal
    )
    assert "64x64x3x3 in the file, 64x64x1x1 in the target" in report.refusal
    assert report.says == report.refusal


def test_a_deeper_sibling_is_refused_whatever_is_accepted(shapes, file_of, target_of):
    report = diagnose(file_of(shapes("resnet34")), target_of(shapes("resnet18")), accept=["extra-tensors"])
    assert report.plan is None
    assert "deeper network" in report.refusal


def test_shuffled_opaque_names_are_refused(shapes, file_of, target_of):
    own = shapes("resnet18")
    order = list(own.values())
    random.Random(0).shuffle(order)
    report = diagnose(file_of({f"p{i:04d}": s for i, s in enumerate(order)}), target_of(own))
    assert report.plan is None
    assert "have nothing in common" in report.refusal


def test_names_without_shapes_are_compared_and_that_is_said(shapes, file_of, target_of):
    own = shapes("resnet18")
    report = diagnose(file_of({f"module.{k}": v for k, v in own.items()}), target_of(dict.fromkeys(own)))
    assert report.plan.complete and placed(report) == {n: f"module.{n}" for n in own}
    assert "Shapes were not checked" in report.says
    assert "shapes-not-checked" in [f.id for f in report.findings]


def test_the_weights_are_taken_and_the_other_set_is_named(shapes, file_of, target_of):
    own = shapes("resnet18")
    checkpoint = file_of({f"module.{k}": v for k, v in own.items()}, path=("state_dict",))
    ema = file_of(own, path=("ema",), role=StateRole.EMA)
    both = type(checkpoint)(
        **{f: getattr(checkpoint, f) for f in checkpoint.__dataclass_fields__ if f not in ("state_dicts",)},
        state_dicts=(ema.state_dicts[0], checkpoint.state_dicts[0]),
    )
    waiting = diagnose(both, target_of(own))
    assert waiting.state_dict == ("state_dict",) and not waiting.plan.complete
    (question,) = waiting.plan.ambiguities
    assert question.id == "state" and [option for option, _ in question.options] == ["state_dict", "ema"]
    assert waiting.says == question.question and "Lossless" not in waiting.says
    report = diagnose(both, target_of(own), choose={"state": "state_dict"})
    assert report.state_dict == ("state_dict",) and report.plan.complete
    other = diagnose(both, target_of(own), choose={"state": "ema"})
    assert other.state_dict == ("ema",) and other.loads and other.plan.complete
    found = {f.id: f for f in report.findings}
    assert found["several-state-dicts"].subjects == ("ema",)
    assert found["wrapper-dict"].subjects == ("state_dict",)
    chosen = diagnose(both, target_of(own), state=both.state_dicts[0])
    assert chosen.state_dict == ("ema",) and chosen.loads
    assert "several-state-dicts" not in [f.id for f in chosen.findings]


def test_half_precision_is_said(file_of, target_of, shapes):
    own = {"a.weight": (2, 3)}
    checkpoint = file_of(own)

    state = checkpoint.state_dicts[0]
    half = replace(state, tensors=tuple(replace(t, dtype="float16") for t in state.tensors))
    report = diagnose(checkpoint, target_of(own), state=half)
    assert "1 tensor as float16; the target computes in float32" in report.findings[0].says


def test_a_file_without_state_dict_is_an_answer(file_of, target_of):
    checkpoint = file_of({})
    report = diagnose(checkpoint, target_of({"a.weight": (2, 3)}))
    assert report.plan is None and "holds no state dict" in report.refusal


def test_a_typing_error_in_accept_or_choose_names_the_choices(shapes, file_of, target_of):
    own = {"a.weight": (2, 3)}
    with pytest.raises(UsageError, match=r"nothing to accept.*head-mismatch"):
        diagnose(file_of(own), target_of(own), accept=["head"])
    with pytest.raises(UsageError, match='no question "twin"'):
        diagnose(file_of(own), target_of(own), choose={"twin": "a"})
    twins = {f"{p}.{n}": s for p in ("a", "b") for n, s in shapes("resnet18").items()}
    with pytest.raises(UsageError, match=r'"c" is no option of "twins".*a, b'):
        diagnose(file_of(twins), target_of(shapes("resnet18")), choose={"twins": "c"})


def test_the_work_grows_with_the_number_of_keys_and_no_faster(file_of, target_of):
    def work(layers):
        own = {f"layers.{i}.block{j}.{leaf}": (64, j + 1) for i in range(layers) for j in range(10) for leaf in "abc"}
        file, target = file_of({f"x.module.{k}": v for k, v in own.items()}), target_of(own)
        return steps(lambda: complete(file, target))

    few, many = work(25), work(100)
    assert many < 5 * few


def test_the_work_grows_with_the_number_of_siblings_and_no_faster(file_of, target_of):
    # 20,000 of them took minutes.
    def work(siblings):
        flat = {f"m{i}.w": (4,) for i in range(siblings)}
        file, target = file_of(flat), target_of({f"net.{n}": s for n, s in flat.items()})
        return steps(lambda: complete(file, target))

    few, many = work(1_000), work(4_000)
    assert many < 5 * few


def complete(file, target):
    assert diagnose(file, target).plan.complete


def test_diagnosing_imports_no_torch():
    code = "import sys, inspector.keys.diagnose, inspector.keys.code; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a..b", "a." * 5000 + "w", "layer" + "9" * 5000 + ".w", "١.é"])
def test_odd_names_are_names(file_of, target_of, name):
    net = {name: (2,), "b.weight": (3,)}
    assert diagnose(file_of(net), target_of(net)).loads
    plan = diagnose(file_of({f"module.{n}": s for n, s in net.items()}), target_of(net)).plan
    # Below the depth that is looked at, a wrapper more makes another name: then the tensor has no place.
    if len(name) < 1000 or name.startswith("layer"):
        assert plan.complete and {s.source.removeprefix("module.") for s in plan.steps} == set(net)
    else:
        assert not plan.complete and name in plan.missing
    assert diagnose(file_of(net), target_of({"b.weight": (3,)})).plan.needs_accept == ("extra-tensors",)


def test_digits_of_another_script_are_no_numbers(file_of, target_of):
    # int() reads both as 1: one of the two layers would be lost.
    ours = {"x.layer1.w": (2,), "x.layer١.w": (2,), "y.w": (3,)}
    goal = {"x.layer2.w": (2,), "x.layer3.w": (2,), "y.w": (3,)}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert plan is None or not plan.complete
