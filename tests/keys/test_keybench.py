"""The repair benchmark on tiny networks: nothing silent, nothing wrong; and that its judge sees what is wrong."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch

from benchmarks.keybench.architectures import architecture_of, split
from benchmarks.keybench.corruptions import ADDED, CORRUPTIONS, held_kinds
from benchmarks.keybench.damage import Answer, Damaged
from benchmarks.keybench.files import checkpoint_of, plain_target
from benchmarks.keybench.numbers import checkpoint_with, fingerprints
from benchmarks.keybench.pairs import SIBLINGS, sized
from benchmarks.keybench.report import Case, case_of, every_case
from benchmarks.keybench.run import OURS, Settings, run
from benchmarks.keybench.score import Outcome, judge, loads_strictly, total
from inspector.architectures.targets import target_of
from inspector.checkpoint.torch_bridge import to_state_dict
from inspector.keys.diagnose import diagnose

NETS = ("bert_tiny", "gpt2_tiny", "llama_tiny", "unet_tiny", "wav2vec2_tiny")


@pytest.mark.parametrize("name", NETS)
def test_no_corruption_of_a_tiny_network_is_repaired_wrongly(name: str) -> None:
    settings = Settings(logits=False, held_out=False, every=2)
    scores = [score for score in run([architecture_of(name)], settings) if score.tool == OURS]
    assert len({score.corruption for score in scores}) > 15
    assert [f"{s.corruption}: {s.wrong_keys}" for s in scores if s.silent] == []
    solvable = [s for s in scores if s.expects in (Answer.REPAIR, Answer.PART)]
    assert [f"{s.corruption}: {s.wrong_keys}" for s in solvable if s.wrong] == []
    assert total(scores).right_share >= 93


def test_every_tensor_has_numbers_of_its_own_and_the_checkpoint_holds_them() -> None:
    net = architecture_of("unet_tiny")
    state = fingerprints(net, 0)
    assert len({tuple(tensor.flatten()[:3].tolist()) for tensor in state.values()}) == len(state)
    again = fingerprints(net, 1)
    assert all(not torch.equal(state[name], again[name]) for name in state)
    checkpoint = checkpoint_with(state)
    read = to_state_dict(checkpoint, checkpoint.state_dicts[0])
    assert all(torch.equal(read[name], state[name]) for name in state)


def _case() -> Damaged:
    truth = {"a.weight": torch.rand(4, 4), "b.weight": torch.rand(4, 4)}
    return Damaged(dict(truth), truth, frozenset(truth))


def test_two_tensors_changed_for_each_other_are_silent_corruption() -> None:
    case = _case()
    swapped = {"a.weight": case.truth["b.weight"], "b.weight": case.truth["a.weight"]}
    right, wrong, silent = judge(case, Outcome(placed=swapped, strict=True), Answer.REPAIR)
    assert (right, wrong, silent) == (0, ("a.weight", "b.weight"), True)
    assert judge(case, Outcome(placed=dict(case.truth), strict=True), Answer.REPAIR) == (2, (), False)


def test_a_transposed_square_and_a_repair_of_what_nobody_can_repair_are_silent_too() -> None:
    case = _case()
    turned = {**case.truth, "a.weight": case.truth["a.weight"].t()}
    assert judge(case, Outcome(placed=turned, strict=True), Answer.REPAIR)[1:] == (("a.weight",), True)
    half = {"a.weight": case.truth["a.weight"]}
    assert judge(case, Outcome(placed=half, strict=True), Answer.REFUSE) == (1, (), True)
    assert judge(case, Outcome(placed=half, strict=False), Answer.REFUSE)[2] is False


def test_strict_loads_are_judged_as_torch_judges_them() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    goal = {name: tuple(tensor.shape) for name, tensor in state.items()}
    without = {name: tensor for name, tensor in state.items() if "tracked" not in name}
    longer = {name: tensor.reshape(1) if tensor.dim() == 0 else tensor for name, tensor in state.items()}
    cases = (
        state,
        without,
        longer,
        {**state, "more": torch.zeros(1)},
        {name: tensor for name, tensor in state.items() if name != "0.bias"},
        {**state, "0.weight": state["0.weight"].t()},
    )
    for made in cases:
        try:
            model.load_state_dict(dict(made), strict=True)
            loads = True
        except RuntimeError:
            loads = False
        assert loads_strictly(made, goal) is loads


def test_the_split_is_fixed_and_holds_out_half() -> None:
    open_, held = split()
    assert not open_ & held
    assert len(held) >= len(open_)
    assert {"bert_tiny", "gpt2_tiny", "llama_tiny"} <= open_


def test_every_case_has_one_outcome_and_half_of_the_kinds_added_later_is_held_out() -> None:
    assert len(CORRUPTIONS) >= 90 and len({corruption.name for corruption in CORRUPTIONS}) == len(CORRUPTIONS)
    assert len(held_kinds()) == len(ADDED) // 2
    scores = list(run([architecture_of("unet_tiny")], Settings(logits=False, every=9)))
    kinds = [case_of(score) for score in scores]
    assert Case.UNASKED in kinds and Case.SILENT not in kinds
    assert case_of(replace(scores[0], silent=True)) is Case.SILENT
    assert case_of(replace(scores[0], expects=Answer.REPAIR, wrong=1)) is Case.WRONG
    head, _, row, *_ = every_case(scores)
    assert sum(int(cell.split(" (")[0]) for cell in row.strip("| ").split(" | ")[3:]) == len(scores)
    assert all(kind in head for kind in Case)


@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=lambda corruption: corruption.name)
def test_the_generator_places_every_tensor_that_it_says_it_places(corruption) -> None:
    """What cannot be placed, or only computed, is not counted as placeable."""
    own = fingerprints(architecture_of("bert_tiny"), 0)
    case = corruption.make(own, random.Random(0))
    assert case.placeable <= case.truth.keys()
    assert not case.placeable & case.computed


@pytest.mark.parametrize(("ours", "theirs"), SIBLINGS)
def test_a_sibling_is_never_whole_whatever_is_accepted(ours: str, theirs: str) -> None:
    """swin_s for swin_t was: its spare blocks went out as spare tensors, their tables by a rule of their own."""
    file = checkpoint_of({tensor.name: tensor.shape or () for tensor in sized(ours).tensors})
    other = sized(theirs)
    named = other.spec is not None and " of " not in theirs
    target = target_of(other.spec) if named else plain_target({t.name: t.shape or () for t in other.tensors})
    accepted: tuple[str, ...] = ()
    for _ in range(4):
        plan = diagnose(file, target, accept=accepted).plan
        assert plan is None or not plan.complete
        accepted = () if plan is None else tuple({*accepted, *plan.needs_accept})
