"""Buffers whose values follow from their shape, against the libraries that make them."""

from __future__ import annotations

import pytest
import torch
import torchvision

from tests.raw import judge_constant, prove_values

FINE = ("", "")


def test_positions_count():
    assert judge_constant("a.position_ids", torch.arange(512)[None]) == FINE
    assert judge_constant("position_ids", torch.arange(2, 514)) == FINE
    wrong, _ = judge_constant("a.position_ids", torch.arange(8).flip(0))
    assert wrong == "a.position_ids does not count: it begins with 7, 6, 5, 4."
    assert judge_constant("a.position_ids", torch.zeros(4, dtype=torch.int64))[0]
    # Several rows, or another name: nothing is claimed.
    assert judge_constant("a.position_ids", torch.zeros(2, 4)) == FINE
    assert judge_constant("a.token_ids", torch.zeros(4)) == FINE


def test_positions_cast_to_half_are_told_and_pass():
    held = torch.arange(512).to(torch.bfloat16)[None]
    wrong, note = judge_constant("e.position_ids", held)
    assert not wrong and "cast to bfloat16: 257 is stored as 256" in note
    proof = prove_values({"e.position_ids": held})
    assert proof.passed and "257 is stored as 256" in proof.says
    assert prove_values({"e.position_ids": torch.arange(9, 0, -1)}).passed is False


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.float32])
def test_a_causal_mask_is_empty_above_its_diagonal(dtype):
    mask = torch.tril(torch.ones(16, 16)).to(dtype)[None, None]
    assert judge_constant("h.0.attn.bias", mask) == FINE
    # A local layer of GPT-Neo keeps a band.
    band = mask.float() - torch.tril(torch.ones(16, 16), -4)
    assert judge_constant("h.0.attn.bias", band) == FINE
    assert "no causal mask" in judge_constant("h.0.attn.bias", mask.transpose(2, 3))[0]
    assert "no causal mask" in judge_constant("h.0.attn.bias", torch.zeros(1, 1, 16, 16))[0]


def test_biases_of_layers_are_no_masks():
    assert judge_constant("fc.bias", torch.randn(16)) == FINE
    assert judge_constant("x.bias", torch.randn(1, 16, 1, 1)) == FINE


def test_rotary_frequencies_fall():
    held = 10000.0 ** -(torch.arange(0, 64, 2) / 64)
    assert judge_constant("rotary_emb.inv_freq", held) == FINE
    assert judge_constant("rotary_emb.inv_freq", held / 4) == FINE
    assert judge_constant("rotary_emb.inv_freq", held.flip(0))[0]
    assert judge_constant("rotary_emb.inv_freq", -held)[0]


@pytest.mark.parametrize("name", ["swin_t", "swin_v2_t"])
def test_torchvisions_own_window_offsets_are_right(name):
    state = getattr(torchvision.models, name)().state_dict()
    tables = {n: t for n, t in state.items() if n.endswith("relative_position_index")}
    assert len(tables) == 12
    for key, held in tables.items():
        assert judge_constant(key, held) == FINE
        assert "offsets inside a" in judge_constant(key, held.roll(1))[0]


def test_a_class_token_has_rows_of_its_own():
    # As BEiT's own code makes it, written out for a window of 2x2.
    table = torch.tensor([[12 - 1, 9, 9, 9, 9], *([10, *row] for row in _offsets_of_two())])
    assert judge_constant("b.relative_position_index", table) == FINE
    assert judge_constant("b.relative_position_index", table.T)[0]


def _offsets_of_two() -> list[list[int]]:
    places = [(0, 0), (0, 1), (1, 0), (1, 1)]
    return [[(a - c + 1) * 3 + (b - d + 1) for c, d in places] for a, b in places]
