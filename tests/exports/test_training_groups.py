"""Groups of an optimizer that no shape tells apart: read by kind of parameter only where somebody says yes."""

from __future__ import annotations

import torch

from inspector.cli.main import run
from tests.exports.test_training import renamed, same, step, trained


def test_groups_by_kind_need_a_yes(tmp_path, capsys):
    def make(model):
        biases = [p for n, p in model.named_parameters() if n.endswith("bias")]
        others = [p for n, p in model.named_parameters() if not n.endswith("bias")]
        return torch.optim.AdamW([{"params": biases, "weight_decay": 0.0}, {"params": others}], lr=0.01)

    model, optimizer = trained(make)
    state = renamed(model.state_dict(), lambda k: f"module.{k}")
    torch.save({"state_dict": state, "optimizer": optimizer.state_dict()}, tmp_path / "run.pth")
    torch.save(model.state_dict(), tmp_path / "goal.pth")
    out = tmp_path / "new.pth"
    command = ["repair", str(tmp_path / "run.pth"), "--target", f"file:{tmp_path / 'goal.pth'}", "--output", str(out)]
    assert run([*command, "--with-optimizer"]) == 1 and not out.exists()
    said = capsys.readouterr().err
    assert "5 bias in group 1; 5 weight in group 2" in said and "--accept optimizer-groups" in said
    assert run([*command, "--accept", "optimizer-groups"]) == 2  # Nothing to say yes to without the optimizer.
    assert run([*command, "--with-optimizer", "--accept", "optimizer-groups"]) == 0
    made = torch.load(out, weights_only=True)
    fresh = type(model)()
    fresh.load_state_dict(made["state_dict"])
    again = make(fresh)
    again.load_state_dict(made["optimizer"])
    step(model, optimizer, 9)
    step(fresh, again, 9)
    assert same(model, fresh)
