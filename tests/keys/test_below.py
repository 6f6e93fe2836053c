"""Tensors and findings of one module: placed by the plan, so that a wrapper or other names do not hide them."""

from __future__ import annotations

from pathlib import Path

import torch
from torchvision import models

from inspector.architectures.recognise import recognise
from inspector.architectures.targets import target_of_candidate
from inspector.checkpoint.types import StateDict
from inspector.findings import Finding, Severity
from inspector.keys.below import LISTED, findings_about, is_below, tensors_below
from inspector.keys.diagnose import diagnose
from inspector.keys.report import KeyReport
from inspector.readers import open_checkpoint


def opened(path: Path) -> tuple[StateDict, KeyReport]:
    checkpoint = open_checkpoint(path)
    state = checkpoint.weights
    assert state is not None
    best = recognise(checkpoint, state).best
    assert best is not None
    return state, diagnose(checkpoint, target_of_candidate(best), state=state)


def finding(severity: Severity, *subjects: str) -> Finding:
    return Finding(id=f"{severity}-{subjects}", severity=severity, says="It is so.", subjects=subjects)


def test_below_is_by_whole_segments() -> None:
    assert is_below("layer1.0.weight", ["layer1"]) and is_below("a.b", ["c", "a"])
    assert not is_below("layer10.0.weight", ["layer1"]) and not is_below("layer1", ["layer1"])


def test_a_wrapped_file_gives_the_tensors_of_the_modules_of_its_network(tmp_path: Path) -> None:
    torch.manual_seed(0)
    weights = models.squeezenet1_1(weights=None, num_classes=3).state_dict()
    torch.save({f"module.{name}": value for name, value in weights.items()}, tmp_path / "dp.pth")
    state, keys = opened(tmp_path / "dp.pth")
    below = tensors_below(state, ["features.3"], keys)
    assert [one.name for one in below] == [f"module.{name}" for name in weights if name.startswith("features.3.")]
    assert tensors_below(state, ["features.2"], keys) == ()
    both = tensors_below(state, ["features.3", "features.4"], keys)
    assert len(both) == 2 * len(below)
    # In the file's own names nothing lies there.
    assert tensors_below(state, ["features.3"], None) == ()
    assert len(tensors_below(state, ["module.features.3"], None)) == len(below)


def test_findings_that_name_a_tensor_of_the_module_worst_first(tmp_path: Path) -> None:
    weights = models.squeezenet1_1(weights=None, num_classes=3).state_dict()
    torch.save({f"module.{name}": value for name, value in weights.items()}, tmp_path / "dp.pth")
    state, keys = opened(tmp_path / "dp.pth")
    tensors = tensors_below(state, ["features.3"], keys)
    note = finding(Severity.NOTICE, "module.features.3.squeeze.weight")
    error = finding(Severity.ERROR, "other", "module.features.3.squeeze.bias")
    elsewhere = finding(Severity.ERROR, "module.features.4.squeeze.bias")
    whole = finding(Severity.ERROR)
    wanted = finding(Severity.WARNING, "features.3.missing")
    found = findings_about(
        tensors, ["features.3"], of_file=[note, elsewhere, whole, error], of_keys=[wanted, elsewhere]
    )
    assert found == ((error, wanted, note), ())


def test_a_name_that_the_file_has_means_the_files_own() -> None:
    wanted = finding(Severity.WARNING, "stem.weight")
    assert findings_about([], ["stem"], of_file=[], of_keys=[wanted], known=["stem.weight", "a"]) == ((), ())
    assert findings_about([], ["stem"], of_file=[], of_keys=[wanted]) == ((wanted,), ())
    # What the file alone says never means the network's names.
    assert findings_about([], ["stem"], of_file=[wanted]) == ((), ())


def test_a_list_that_may_go_on_is_of_many_and_no_news_of_one_module() -> None:
    known = [f"layer{n}.weight" for n in range(60)]
    cut, few = finding(Severity.WARNING, *known[:LISTED]), finding(Severity.WARNING, *known[:3])
    assert findings_about([], ["layer50"], of_file=[cut, few], known=known) == ((), (cut,))
    everything = finding(Severity.NOTICE, *known[:2])
    # What the health checks list is all of it: twenty names of which none is the module's own are no news of it.
    assert findings_about([], ["layer50"], of_file=[few], of_numbers=[cut], known=known) == ((), ())
    assert findings_about([], ["layer0"], of_file=[everything], known=known[:2]) == ((), (everything,))


def test_a_whole_list_of_numbers_is_news_where_it_names_the_module_and_not_most_of_the_file(tmp_path: Path) -> None:
    torch.save({f"layer{n}.weight": torch.ones(2) for n in range(81)}, tmp_path / "many.pth")
    state = open_checkpoint(tmp_path / "many.pth").weights
    assert state is not None
    known = [one.name for one in state.tensors]
    own = tensors_below(state, ["layer0"], None)
    some, most = finding(Severity.WARNING, *known[:20]), finding(Severity.NOTICE, *known[:21])
    assert findings_about(own, ["layer0"], of_file=[], of_numbers=[most, some], known=known) == ((some,), (most,))
    # A list that the reader may have cut is not known to be whole.
    assert findings_about(own, ["layer0"], of_file=[some], known=known) == ((), (some,))
