"""Whether a tensor is an initialiser's still: all of it is looked at, also where only what lies behind has moved."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from inspector.loaded import fresh
from inspector.loaded.fresh import Fresh, fresh_values
from inspector.loaded.places import places_of

# More than one piece of 2^16, and no multiple of the 16 numbers that normal_ makes at a time.
ROWS, WIDTH = 5_003, 17
FIRST = 1 << 16


def _told(module: nn.Module, name: str = "weight") -> Fresh | None:
    (place,) = [one for one in places_of(module) if one.name == name]
    return fresh_values(place, place.tensor.detach())


def _moved(weight: Tensor, rows: slice) -> None:
    with torch.no_grad():
        weight[rows] += 1e-3 * torch.randn(weight[rows].shape, generator=torch.Generator().manual_seed(5))


@pytest.fixture
def embedding() -> nn.Embedding:
    torch.manual_seed(0)
    return nn.Embedding(ROWS, WIDTH)


@pytest.fixture
def linear() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(WIDTH, ROWS, bias=False)


def test_a_fresh_embedding_is_proved(embedding: nn.Embedding) -> None:
    told = _told(embedding)
    assert told is not None and told.proved and "normal_(0, 0.99" in told.says and "elements" not in told.says


@pytest.mark.parametrize("rows", [slice(4_000, 4_100), slice(ROWS - 6, ROWS), slice(0, 6)])
def test_an_embedding_of_which_a_few_rows_moved_is_not_fresh(embedding: nn.Embedding, rows: slice) -> None:
    """It was called bit for bit fresh where these lay behind the first 65,536 numbers."""
    assert rows.start * WIDTH > FIRST or rows.start == 0
    _moved(embedding.weight, rows)
    assert _told(embedding) is None


def test_a_fresh_layer_is_proved_and_one_whose_last_rows_moved_is_not_fresh(linear: nn.Linear) -> None:
    told = _told(linear)
    assert told is not None and told.proved and "uniform_" in told.says
    _moved(linear.weight, slice(ROWS - 40, ROWS))
    assert _told(linear) is None


def test_numbers_beyond_the_bound_behind_are_no_initialisers(linear: nn.Linear) -> None:
    """No number of them is near zero, which alone tells the lattice."""
    with torch.no_grad():
        linear.weight[-3:] = 0.9
    assert _told(linear) is None


def test_a_cast_layer_is_even_in_each_piece(linear: nn.Linear) -> None:
    half = linear.half()
    told = _told(half)
    assert told is not None and not told.proved and "evenly spread" in told.says
    with torch.no_grad():
        half.weight[-1_000:] *= 0.5
    assert _told(half) is None


def test_of_what_is_too_large_it_is_said_how_much_was_looked_at(
    embedding: nn.Embedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fresh, "_WHOLE", 1 << 14)
    monkeypatch.setattr(fresh, "_PIECE", 1 << 10)
    monkeypatch.setattr(fresh, "_FIRST", 1 << 8)
    told = _told(embedding)
    assert told is not None and not told.proved
    assert told.says.endswith(f"by 16,384 of {ROWS * WIDTH:,} elements")
    # Evenly over all of it: a quarter that moved is met wherever it lies.
    _moved(embedding.weight, slice(3_000, 4_250))
    assert _told(embedding) is None
