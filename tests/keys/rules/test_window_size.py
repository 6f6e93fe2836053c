"""Windows of another size: tables resized with consent, the index recomputed, files of two minds left alone."""

from __future__ import annotations

import pytest
import torch
from torchvision.models.swin_transformer import ShiftedWindowAttention

from inspector.errors import KeysDoNotFit
from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.operations.resize_table import resize_table
from inspector.readers import open_checkpoint

ACCEPT = ("window-size",)


def net(window, seed=0):
    torch.manual_seed(seed)
    state = {}
    for i in range(2):
        block = ShiftedWindowAttention(4, [window, window], [0, 0], 2)
        torch.nn.init.normal_(block.relative_position_bias_table)
        state |= {f"layers.{i}.attn.{n}": t for n, t in block.state_dict().items()}
    return state


def shapes(state):
    return {n: tuple(t.shape) for n, t in state.items()}


@pytest.mark.parametrize(("old", "new"), [(3, 5), (5, 3)])
def test_tables_are_resized_and_the_index_is_the_targets(old, new, tmp_path, target_of, monkeypatch):
    ours, goal = net(old), net(new, 1)
    torch.save(ours, tmp_path / "a.pth")
    checkpoint, target = open_checkpoint(tmp_path / "a.pth"), target_of(shapes(goal))
    waiting = diagnose(checkpoint, target).plan
    assert not waiting.complete and waiting.needs_accept == ACCEPT
    plan = diagnose(checkpoint, target, accept=ACCEPT).plan
    made = apply_plan(checkpoint, plan)
    assert plan.complete and set(made) == set(goal)
    for name, tensor in goal.items():
        if name.endswith("index"):
            assert torch.equal(made[name], tensor)
        elif not name.endswith("table"):
            assert torch.equal(made[name], ours[name])
        else:
            # The middle of an odd grid is its middle again: no place is moved.
            assert torch.allclose(made[name][len(tensor) // 2], ours[name][len(ours[name]) // 2], atol=1e-5)

    class Loaded:
        def load_state_dict(self, state, strict):
            self.held = state

    model = Loaded()
    monkeypatch.chdir(tmp_path)
    exec(python_code(plan, file_name="a.pth"), {"model": model})
    assert set(model.held) == set(made) and all(torch.equal(model.held[n], t) for n, t in made.items())


def test_a_constant_table_stays_one_and_the_class_tokens_rows_stay():
    held = torch.cat([torch.full((25, 2), 1.5), torch.tensor([[7.0, 8.0], [9.0, 10.0], [11.0, 12.0]])])
    made = resize_table(held, 81 + 3, 3)
    assert (
        made.shape == (84, 2)
        and torch.allclose(made[:81], torch.full((81, 2), 1.5))
        and torch.equal(made[81:], held[25:])
    )


def test_an_index_that_is_not_its_windows_own_is_refused(tmp_path, target_of):
    ours = net(3)
    ours["layers.1.attn.relative_position_index"] = ours["layers.1.attn.relative_position_index"].flip(0)
    torch.save(ours, tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    plan = diagnose(checkpoint, target_of(shapes(net(5))), accept=ACCEPT).plan
    with pytest.raises(KeysDoNotFit, match="is not the index"):
        apply_plan(checkpoint, plan)


def test_windows_of_two_minds_and_other_tables_are_left_alone(file_of, target_of):
    table = "layers.{}.attn.relative_position_bias_table"
    for ours, goal in (
        ({table.format(0): (25, 2), table.format(1): (81, 2)}, {table.format(0): (81, 2), table.format(1): (25, 2)}),
        ({table.format(0): (25, 2), table.format(1): (25, 2)}, {table.format(0): (81, 2), table.format(1): (25, 2)}),
        ({table.format(0): (25, 2)}, {table.format(0): (81, 3)}),  # other heads
        ({table.format(0): (24, 2)}, {table.format(0): (81, 2)}),
        ({table.format(0): (16, 2)}, {table.format(0): (36, 2)}),  # no side is even
        ({"a.table": (25, 2)}, {"a.table": (81, 2)}),
    ):
        more = {"n.weight": (3,)}
        plan = diagnose(file_of(ours | more), target_of(goal | more), accept=ACCEPT).plan
        assert plan is None or not plan.complete


def test_equal_windows_are_untouched(file_of, target_of):
    assert diagnose(file_of(shapes(net(3))), target_of(shapes(net(3)))).plan.rules == ()
