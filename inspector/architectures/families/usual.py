"""What families of transformers have in common: rows with optional biases, and what is usual where no shape tells."""

from __future__ import annotations

from inspector.architectures.families.entry import Assume, Optional, Part, Row, Settings, Size
from inspector.architectures.types import OptionValue


def linear_if(name: str, out: Size, inner: Size, flag: str) -> tuple[Part, ...]:
    """nn.Linear whose bias is there under a flag."""
    return Row(f"{name}.weight", (out, inner)), Optional(flag, (Row(f"{name}.bias", (out,)),))


def norm_if(name: str, width: Size, flag: str) -> tuple[Part, ...]:
    """nn.LayerNorm whose bias is there under a flag."""
    return Row(f"{name}.weight", (width,)), Optional(flag, (Row(f"{name}.bias", (width,)),))


def whole(settings: Settings, name: str, default: int = 0) -> int:
    """A setting as a whole number, the default where it is absent or something else."""
    value = settings.get(name, default)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def heads(
    why: str,
    *stated: str,
    name: str = "heads",
    of: str = "hidden",
    width: int = 64,
    flag: str = "",
) -> Assume:
    """Attention heads by their usual width. of: the symbol that they divide. flag: only where that part is there."""

    def divides(settings: Settings, value: OptionValue) -> bool:
        return isinstance(value, int) and value > 0 and whole(settings, of, value) % value == 0

    return Assume(
        name,
        lambda settings: max(1, whole(settings, of) // width),
        why,
        stated=stated,
        when=(lambda settings: bool(settings.get(flag))) if flag else None,
        fits=divides,
    )


def head_width(settings: Settings) -> int:
    """The usual width of one head in Llama's kin: twice the rotary frequencies where a file has those."""
    if whole(settings, "rotary"):
        return 2 * whole(settings, "rotary")
    query, key = whole(settings, "query_width"), whole(settings, "key_width")
    for width in (128, 64) if query >= 2560 else (64, 128):
        if query and key and query % width == 0 and key % width == 0:
            return width
    return max(1, key)


def grouped_heads(title: str) -> tuple[Assume, Assume]:
    """Query heads and key heads of Llama's kin, whose shapes show their ratio alone."""
    why = f"heads of {title} are 128 wide, in models below 2,560 channels 64, unless something states them"
    return (
        Assume(
            "heads",
            lambda s: max(1, whole(s, "query_width") // head_width(s)),
            why,
            stated=("num_attention_heads", "n_heads"),
            fits=lambda s, value: isinstance(value, int) and whole(s, "query_width") % value == 0,
        ),
        Assume(
            "key_heads",
            lambda s: max(1, whole(s, "key_width") // head_width(s)),
            why,
            stated=("num_key_value_heads", "n_kv_heads"),
            fits=lambda s, value: isinstance(value, int) and whole(s, "key_width") % value == 0,
        ),
    )


def rope_theta(value: float, why: str) -> Assume:
    """The base of rotary positions."""
    return Assume("rope_theta", value, why, stated=("rope_theta", "rope_parameters.rope_theta"))


# Scaled rotary positions (Llama 3.1, long-context models) have the same tensors and other angles.
ROPE = Assume(
    "rope",
    "default",
    "rotary positions are not scaled",
    stated=("rope_parameters.rope_type", "rope_scaling.rope_type", "rope_scaling.type"),
)


def epsilon(value: float, title: str, *stated: str) -> Assume:
    """What the norms add to the variance."""
    return Assume("epsilon", value, f"the norms of {title} add {value:g}", stated=stated)


def activation(value: str, title: str, *stated: str) -> Assume:
    """The non-linearity of the feed-forward part."""
    return Assume("activation", value, f"{title} uses {value}", stated=stated)
