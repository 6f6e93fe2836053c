"""One matrix in two places: filled where the target ties it or the user says so, left out only as a true copy."""

from __future__ import annotations

import pytest
import torch

from inspector.architectures.targets import target_of_checkpoint
from inspector.errors import KeysDoNotFit
from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.report import Cost, StepKind
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint

ACCEPT = ("tied-weights",)
BODY = {"model.embed_tokens.weight": (11, 4), "model.layers.0.fc.weight": (4, 4), "model.norm.weight": (4,)}
WHOLE = BODY | {"lm_head.weight": (11, 4)}


def filled(shapes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


class Loaded:
    def load_state_dict(self, state, strict):
        self.held = state


def run(plan, folder, monkeypatch):
    model = Loaded()
    monkeypatch.chdir(folder)
    exec(python_code(plan, file_name="a.pth"), {"model": model})
    return model.held


@pytest.mark.parametrize("prefix", ["", "module."])
def test_a_missing_head_is_filled_from_its_embedding_with_consent(prefix, tmp_path, target_of, monkeypatch):
    state = filled(BODY)
    torch.save({prefix + n: t for n, t in state.items()}, tmp_path / "a.pth")
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), target_of(WHOLE)
    waiting = diagnose(checkpoint, goal).plan
    assert not waiting.complete and waiting.needs_accept == ACCEPT
    plan = diagnose(checkpoint, goal, accept=ACCEPT).plan
    assert plan.complete and verify_plan(checkpoint, plan, goal).holds
    made = apply_plan(checkpoint, plan)
    assert made["lm_head.weight"] is made["model.embed_tokens.weight"]
    held = run(plan, tmp_path, monkeypatch)
    assert set(held) == set(WHOLE) and all(torch.equal(held[n], made[n]) for n in WHOLE)
    assert torch.equal(held["lm_head.weight"], state["model.embed_tokens.weight"])


def test_a_target_that_ties_them_itself_needs_no_consent(tmp_path, saved, file_of):
    both = filled(BODY)
    both["lm_head.weight"] = both["model.embed_tokens.weight"]
    goal = target_of_checkpoint(saved(both), "the target")
    assert goal.ties == (("model.embed_tokens.weight", "lm_head.weight"),)
    plan = diagnose(file_of(BODY), goal).plan
    assert plan.complete and [s.kind for s in plan.steps if s.target == "lm_head.weight"] == [StepKind.TIE]
    untied = target_of_checkpoint(saved(filled(WHOLE)), "the target")
    assert untied.ties == () and diagnose(file_of(BODY), untied).plan.needs_accept == ACCEPT


@pytest.mark.parametrize(
    ("ours", "goal"),
    [
        (BODY, BODY | {"lm_head.weight": (12, 4)}),  # another vocabulary
        (BODY, BODY | {"fc.weight": (11, 4)}),  # no output layer
        (BODY | {"x.embed_tokens.weight": (11, 4)}, WHOLE | {"x.embed_tokens.weight": (11, 4)}),  # which one?
        ({"a.weight": (11, 4)}, {"a.weight": (11, 4), "lm_head.weight": (11, 4)}),  # no embedding
        (
            {"wte.weight": (4, 4), "b.weight": (3, 4)},
            {"wte.weight": (4, 4), "b.weight": (3, 4), "lm_head.weight": (4, 4)},
        ),  # square: could be turned
    ],
)
def test_what_is_no_tie_is_not_filled(ours, goal, file_of, target_of):
    plan = diagnose(file_of(ours), target_of(goal), accept=ACCEPT).plan
    assert plan is None or not plan.complete


def test_a_copy_is_left_out_without_loss(tmp_path, target_of, monkeypatch):
    state = filled(BODY)
    torch.save(state | {"lm_head.weight": state["model.embed_tokens.weight"].clone()}, tmp_path / "a.pth")
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), target_of(BODY)
    plan = diagnose(checkpoint, goal).plan
    assert plan.complete and verify_plan(checkpoint, plan, goal).holds
    held = run(plan, tmp_path, monkeypatch)
    assert set(held) == set(BODY) and all(torch.equal(held[n], t) for n, t in state.items())


def test_a_head_of_its_own_is_never_lost_in_silence(tmp_path, target_of, monkeypatch):
    state = filled(WHOLE)
    torch.save(state, tmp_path / "a.pth")
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), target_of(BODY)
    plan = diagnose(checkpoint, goal).plan
    with pytest.raises(KeysDoNotFit, match="is no copy of") as error:
        apply_plan(checkpoint, plan)
    assert "tied-weights=leave-out" in error.value.hint
    assert not verify_plan(checkpoint, plan, goal).holds
    with pytest.raises(ValueError, match="is no copy of"):
        run(plan, tmp_path, monkeypatch)
    chosen = diagnose(checkpoint, goal, choose={"tied-weights": "leave-out"}).plan
    assert chosen.complete and chosen.rules[0].cost is Cost.LOSSY and set(apply_plan(checkpoint, chosen)) == set(BODY)


def test_tied_files_and_targets_alike_are_untouched(file_of, target_of):
    for net in (BODY, WHOLE):
        assert diagnose(file_of(net), target_of(net)).plan.rules == ()


def test_what_the_target_ties_may_stand_in_the_file_once_under_a_third_name(tmp_path):
    """The shared layer itself, where the target lists it in both blocks."""
    shared = torch.randn(12, 12)
    own = {f"block{n}.out.weight": torch.randn(8, 12) for n in (1, 2)}
    torch.save({"shared.weight": shared, **own}, tmp_path / "a.pth")
    torch.save({"block1.shared.weight": shared, "block2.shared.weight": shared, **own}, tmp_path / "b.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    plan = diagnose(checkpoint, target_of_checkpoint(open_checkpoint(tmp_path / "b.pth"), "b")).plan
    assert plan.complete and not plan.needs_accept
    made = apply_plan(checkpoint, plan)
    assert made["block1.shared.weight"] is made["block2.shared.weight"] and torch.equal(
        made["block1.shared.weight"], shared
    )


def test_a_copy_is_compared_with_what_the_file_calls_it(tmp_path):
    """Flax's spelling of the embedding, and a head beside it that the target has not: the file's own name is asked."""
    table = torch.rand(7, 4)
    state = {"params/model/embed_tokens/embedding": table, "params/model/norm/scale": torch.rand(4)}
    state |= {"params/model/fc/kernel": torch.rand(4, 6), "params/lm_head/weight": table.clone()}
    torch.save(state, tmp_path / "a.pth")
    goal = {"model.embed_tokens.weight": table, "model.norm.weight": torch.rand(4), "model.fc.weight": torch.rand(6, 4)}
    torch.save(goal, tmp_path / "b.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    target = target_of_checkpoint(open_checkpoint(tmp_path / "b.pth"), "b")
    # That Flax wrote it proves how fc lies, so that nothing is asked.
    plan = diagnose(checkpoint, target).plan
    beside = [name for step in plan.steps for name in step.beside]
    assert beside == ["params/model/embed_tokens/embedding"]
    assert torch.equal(apply_plan(checkpoint, plan)["model.embed_tokens.weight"], table)
