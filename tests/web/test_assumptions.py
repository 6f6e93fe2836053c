"""What a family assumes is one clause; it unfolds, and what is confirmed on a page is confirmed for the spec."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from streamlit.testing.v1 import AppTest

from inspector.architectures.recognise import recognise
from inspector.architectures.targets import parse_spec, target_of
from inspector.cli.main import run
from inspector.readers import open_checkpoint
from inspector.web import uploads
from inspector.web.session import Hand

LLAMA = "transformers/llama?hidden=64&layers=2&mlp=96&vocab=120&query_width=64&key_width=32&lm_head=True"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    target = target_of(parse_spec(LLAMA))
    path = tmp_path / "model.safetensors"
    save_file({t.name: np.zeros(t.shape or (), np.float32) for t in target.tensors}, path)
    return path


def test_nine_assumptions_are_one_clause_and_a_command_lists_all(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    best = recognise(open_checkpoint(file)).best
    assert best is not None and len(best.spec.assumed) > 3
    first, *rest = best.spec.assumed
    clause = f"Assumed, because no shape tells: {first.name} = {first.value} and {len(rest)} more. Confirm"
    assert clause in best.says and not any(one.why in best.says for one in rest)
    assert run(["identify", str(file)]) == 0
    says = " ".join(capsys.readouterr().out.split())
    assert f"{len(rest) + 1} settings are assumed; identify --assumed lists them." in says
    assert run(["identify", str(file), "--assumed"]) == 0
    listed = capsys.readouterr().out
    assert all(one.name in listed for one in best.spec.assumed)
    # The target that it prints confirms all of them.
    label = "".join(listed.partition("confirms them:")[2].split())
    confirmed = parse_spec(label)
    assert confirmed.assumed == ()
    assert {one.name: one.value for one in best.spec.assumed}.items() <= dict(confirmed.options).items()
    assert run(["identify", str(file), "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in plain["candidates"][0]["spec"]["assumed"]] == [one.name for one in best.spec.assumed]


def test_what_is_confirmed_on_one_page_is_confirmed_on_the_others(app: AppTest, file: Path) -> None:
    spec = recognise(open_checkpoint(file)).best.spec  # type: ignore[union-attr]
    stored = uploads.the_store().put_bytes(file.read_bytes(), name="model.safetensors", owner="me")
    app.session_state["hand"] = Hand(sha256=stored.sha256, name="model.safetensors")
    app.run().switch_page("pages/architecture.py").run()
    assert not app.exception
    waiting = "What a pass costs is counted once that is confirmed"
    assert not app.error and any(waiting in c.value for c in app.caption)
    (fold,) = [e for e in app.expander if e.label == "Show and change all of them"]
    assert not fold.proto.expanded and len(fold.text_input) == len(spec.assumed)
    heads = next(one for one in fold.text_input if one.label.startswith("heads"))
    heads.set_value("2").run()
    (box,) = [c for c in app.checkbox if c.label == "These are right for this file"]
    box.check().run()
    assert not app.exception
    assert not any(waiting in c.value for c in app.caption)
    # Counting goes on to what builds such a model, where that is installed.
    assert not any("no shape tells" in one.value.replace("\\", "") for one in app.error)
    app.switch_page("pages/repair.py").run()
    assert not app.exception
    (box,) = [c for c in app.checkbox if c.label == "These are right for this file"]
    assert box.value is True
    target = next(str(html.proto.body) for html in app.get("html") if "Target " in str(html.proto.body))
    assert "heads=2" in target or any("heads=2" in str(h.proto.body) for h in app.get("html"))
    box.uncheck().run()
    app.switch_page("pages/architecture.py").run()
    assert any(waiting in c.value for c in app.caption)
