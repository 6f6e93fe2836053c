"""What models of a family take: the inputs by name, at a small usual size, so that one pass over them costs little."""

from __future__ import annotations

from inspector.architectures.families.entry import Settings
from inspector.architectures.families.usual import whole
from inspector.architectures.types import Given

LENGTH = 16  # tokens


def tokens(
    settings: Settings, name: str = "input_ids", *, positions: str = "positions", vocab: str = "vocab", first: int = 0
) -> Given:
    """Whole numbers below the vocabulary. first: positions in front that no token takes (RoBERTa's padding)."""
    length = max(1, min(LENGTH, whole(settings, positions, LENGTH + first) - first))
    return Given(name=name, shape=(1, length), dtype="int64", below=whole(settings, vocab, 1))


def one_sequence(settings: Settings) -> tuple[Given, ...]:
    """Token ids alone, as BERT, GPT-2 and Llama take them."""
    return (tokens(settings),)


def two_sequences(settings: Settings) -> tuple[Given, ...]:
    """Token ids for the encoder and for the decoder, where there is one."""
    decoder = (tokens(settings, "decoder_input_ids"),) if settings.get("decoder") else ()
    return (tokens(settings), *decoder)


def picture(name: str, channels: int, height: int, width: int | None = None) -> Given:
    """One picture, or one latent of an autoencoder."""
    return Given(name=name, shape=(1, channels, height, width or height))
