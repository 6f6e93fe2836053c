"""What a side was made into is told by its names: quantised, adapted, pruned, flattened; and not by a head's name."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

from inspector.error_messages.explain import explain_error
from inspector.error_messages.report import PastedError


def _error(missing: str, unexpected: str = "") -> PastedError:
    lists = (("Missing", missing), ("Unexpected", unexpected))
    text = "Error(s) in loading state_dict for Net:\n"
    for which, names in lists:
        if names:
            text += f"\t{which} key(s) in state_dict: " + ", ".join(f'"{name}"' for name in names.split()) + ". \n"
    (error,) = explain_error(text).errors
    return error


@pytest.mark.parametrize(
    ("missing", "unexpected", "kind", "side"),
    [
        ("fc.weight fc.bias", "fc.scale fc.zero_point fc._packed_params.dtype", "quantised", "file"),
        ("fc.scale fc.zero_point fc._packed_params._packed_params", "fc.weight fc.bias", "quantised", "model"),
        ("l.0.q_proj.weight", "l.0.q_proj.qweight l.0.q_proj.qzeros l.0.q_proj.scales", "quantised", "file"),
        ("l.q.weight", "l.q.base_layer.weight l.q.lora_A.default.weight l.q.lora_B.default.weight", "lora", "file"),
        ("l.q.lora_A.default.weight l.q.base_layer.weight", "l.q.weight", "lora", "model"),
        ("wte.weight h.0.weight", "_fsdp_wrapped_module._flat_param", "flat-parameters", "file"),
        ("conv.weight", "conv.weight_orig conv.weight_mask", "pruned", "file"),
        ("conv.weight", "conv.weight_orig conv.weight_u conv.weight_v", "spectral-norm", "file"),
        ("conv.weight_g conv.weight_v", "conv.weight", "weight-norm", "model"),
        ("conv1.weight fc.weight", "conv1.kernel fc.kernel", "other-framework", "file"),
    ],
)
def test_one_side_is_told_by_its_names(missing: str, unexpected: str, kind: str, side: str) -> None:
    error = _error(missing, unexpected)
    assert error.kind == kind
    assert error.says.startswith(f"The {side}")
    assert not error.causes
    assert "fc" not in error.patch


@pytest.mark.parametrize(
    ("missing", "unexpected"),
    [
        ("l.q.lora_A.weight l.q.lora_B.weight", "m.l.q.lora_A.weight m.l.q.lora_B.weight"),
        ("fc.weight fc.bias", "head.weight head.bias"),
        ("conv.weight", "conv.blur.kernel"),
        ("a.weight b.weight", "a.scale b.scale"),
    ],
)
def test_names_that_are_on_both_sides_or_anybodys_tell_nothing(missing: str, unexpected: str) -> None:
    kinds = {"quantised", "lora", "other-framework", "flat-parameters", "pruned"}
    assert _error(missing, unexpected).kind not in kinds


def test_one_list_alone_leaves_two_causes() -> None:
    error = _error("", "l.q.lora_A.default.weight l.q.lora_B.default.weight")
    assert [cause.kind for cause in error.causes] == ["lora", "other-names"]


def test_the_lines_for_a_pruned_file_load_it() -> None:
    torch.manual_seed(0)
    pruned, model = nn.Linear(3, 2), nn.Linear(3, 2)
    prune.random_unstructured(pruned, "weight", 0.5)
    with pytest.raises(RuntimeError) as refusal:
        model.load_state_dict(pruned.state_dict())
    (error,) = explain_error(str(refusal.value)).errors
    assert error.kind == "pruned"
    exec(error.patch, {"state": dict(pruned.state_dict()), "model": model})
    assert torch.equal(model.weight, pruned.weight)


def test_gamma_and_beta_of_norms_are_renamed() -> None:
    model = nn.Sequential(nn.LayerNorm(2))
    state = {"0.gamma": torch.full((2,), 3.0), "0.beta": torch.full((2,), 4.0)}
    error = _error("0.weight 0.bias", "0.gamma 0.beta")
    assert error.kind == "keys-renamed"
    exec(error.patch, {"state": state, "model": model})
    assert model[0].weight.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("left_behind", ["n_averaged", "total_ops"])
def test_the_lines_that_rename_leave_counters_out(left_behind: str) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    names = f"{left_behind} module.0.weight module.0.bias"
    error = _error("0.weight 0.bias", names)
    assert error.kind == "keys-renamed"
    state = {left_behind: torch.tensor(1)} | {f"module.{key}": value for key, value in model.state_dict().items()}
    exec(error.patch, {"state": state, "model": model})
    assert ("AveragedModel" in error.why) is (left_behind == "n_averaged")
    exec(_error("", names).patch, {"state": state, "model": model})


def test_an_averaged_model_is_loaded_into_its_module() -> None:
    plain = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model = torch.optim.swa_utils.AveragedModel(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)))
    with pytest.raises(RuntimeError) as refusal:
        model.load_state_dict(plain.state_dict())
    (error,) = explain_error(str(refusal.value)).errors
    assert "AveragedModel" in error.why
    exec(error.patch, {"state": plain.state_dict(), "model": model})
    assert torch.equal(model.module[0].weight, plain[0].weight)


def test_what_follows_an_authors_dots_is_read() -> None:
    text = (
        'Missing key(s) in state_dict: "a.weight", "a.bias". Unexpected key(s) in state_dict: "n_averaged", ... '
        '"module.a.bias". '
    )
    (error,) = explain_error(text).errors
    assert error.keys is not None
    assert error.keys.lists.unexpected == ("n_averaged", "module.a.bias")
    assert "unexpected" in error.keys.lists.cut


@pytest.mark.parametrize("text", ['"n_averaged", ...', '"total_ops", ...'])
def test_a_list_that_breaks_off_does_not_say_that_everything_has_its_place(text: str) -> None:
    report = explain_error(f'Missing key(s) in state_dict: "a.weight". Unexpected key(s) in state_dict: {text}')
    assert [error.asks for error in report.errors] == [True]
    assert "has a place" not in report.says


def test_a_cut_list_may_hide_a_second_network() -> None:
    text = (
        'Missing key(s) in state_dict: "conv1.weight", "bn1.weight", ...\n\tUnexpected key(s) in state_dict: '
        '"module.encoder_q.conv1.weight", "module.encoder_q.bn1.weight", ...'
    )
    (error,) = explain_error(text).errors
    assert error.patch == ""
    assert "several-networks" in {cause.kind for cause in error.causes}


def test_a_quote_that_was_not_closed_swallows_no_words() -> None:
    text = (
        'Error(s) in loading state_dict for GPT:\n\tMissing key(s) in state_dict: "transformer. ...\n\t'
        'Unexpected key(s) in state_dict: "_fsdp_wrapped_module. ...\n'
    )
    assert explain_error(text).errors == ()
