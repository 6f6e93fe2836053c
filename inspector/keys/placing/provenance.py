"""Which library wrote these names: what a file's, or a target's, names prove of who called them so.

One name that only one library writes is enough; of names that several write, two kinds are needed. Two libraries proved
at once (a file glued together) prove nothing, nor do one library's names beside those of torch's own norms. Sources:
the libraries' own code, as `docs/libraries.md` lists them; measured with keras 3.15, flax 0.12, haiku 0.0.17.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from inspector.checkpoint.name_forms import forms_of
from inspector.keys.placing.tree import Leaf


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """What tells a library, and how it stores what torch stores otherwise.

    alone: names of which one is enough. tokens: names of which two kinds are needed. Patterns are searched in a name
    with every number read as 0 and every separator as a dot. never: names that it does not write, one of which takes
    all proof away. in_out: its linear layers are (in, out) throughout. kernels: the order of its convolutions' axes, ""
    for torch's. one_order: its transposed convolutions lie so as well, each channel in the place of torch's. as_torch:
    its linear layers lie as torch's, whatever its norms are called. projections: parameters of their own by which it
    multiplies from the right, and which are (in, out) so.
    """

    id: str
    title: str
    alone: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    in_out: bool = False
    kernels: str = ""
    one_order: bool = False
    as_torch: bool = False
    projections: str = ""


# torch's norms: whoever writes these stores (out, in), whatever else its tensors are called.
_TORCH_NORMS = (r"(^|\.)(running_mean|running_var|num_batches_tracked)$",)

LIBRARIES: tuple[Library, ...] = (
    Library(
        id="flax",
        title="Flax",
        alone=(
            r"^(params\.)+([A-Za-z0-9_]+\.)*(kernel|embedding)$",
            r"^batch_stats\.([A-Za-z0-9_]+\.)*(mean|var)$",
            r"^target\.(encoder|decoder)\.([A-Za-z0-9_]+\.)*kernel$",
            r"(^|\.)(Dense|Conv|ConvTranspose|DenseGeneral)_0\.kernel$",
        ),
        never=_TORCH_NORMS,
        in_out=True,
        kernels="hwio",
    ),
    Library(
        id="haiku",
        title="Haiku",
        alone=(r"(^|\.)~\.", r"(^|\.)(linear|conv0_d)(_0)?\.w$"),
        tokens=(r"\.w$", r"\.offset$", r"\.mean_ema\.average$", r"\.embeddings$"),
        never=_TORCH_NORMS,
        in_out=True,
        kernels="hwio",
    ),
    Library(
        id="keras",
        title="Keras or TensorFlow",
        alone=(
            r"^(layers|_layer_checkpoint_dependencies)\.[a-z_0-9]+\.vars\.0$",
            r"\.VARIABLE_VALUE$",
            r"\.(recurrent_kernel|depthwise_kernel|pointwise_kernel)(:0)?$",
            # A variable's number: TensorFlow alone writes it.
            r"\.(kernel|weights|gamma|moving_mean):0$",
        ),
        # No gamma: a Flax module's layer scale may be called so as well.
        tokens=(r"\.kernel(:0)?$", r"\.beta(:0)?$", r"\.moving_mean(:0)?$", r"\.moving_variance(:0)?$"),
        never=(*_TORCH_NORMS, r"(^|\.)embedding_table$"),
        in_out=True,
        kernels="hwio",
        one_order=True,
    ),
    Library(
        id="mindspore",
        title="MindSpore",
        tokens=(r"(^|\.)embedding_table$", r"(^|\.)moving_variance$"),
        never=(*_TORCH_NORMS, r"(^|\.)(kernel|w|weights)(:0)?$"),
        as_torch=True,
    ),
    Library(
        id="meta",
        title="Meta's Llama code",
        alone=(r"^(model\.)?tok_embeddings\.weight$",),
        tokens=(r"\.attention\.w[qkvo]\.weight$", r"\.feed_forward\.w0\.weight$", r"\.(attention|ffn)_norm\.weight$"),
    ),
    Library(
        id="fairseq",
        title="fairseq",
        alone=(r"(^|\.)sentence_encoder\.layers\.0\.self_attn_layer_norm\.weight$",),
    ),
    Library(
        id="clip",
        title="OpenAI's CLIP or open_clip",
        tokens=(
            r"(^|\.)visual\.proj$",
            r"(^|\.)visual\.transformer\.resblocks\.0\.ln_0\.weight$",
            r"(^|\.)ln_final\.weight$",
        ),
        projections=r"(^|\.)(visual\.proj|text_projection)$",
    ),
    Library(
        id="transformers-llama",
        title="Hugging Face transformers",
        tokens=(
            r"^(model\.)?layers\.0\.self_attn\.q_proj\.weight$",
            r"^(model\.)?layers\.0\.input_layernorm\.weight$",
            r"^(model\.)?layers\.0\.mlp\.gate_proj\.weight$",
        ),
    ),
)
_BY_ID = {library.id: library for library in LIBRARIES}
_NUMBER = re.compile(r"[0-9]+")


def shapes_of_names(names: Iterable[str]) -> tuple[str, ...]:
    """The names with every number as 0, each once: what patterns are searched in, however many layers there are."""
    forms = tuple(forms_of(names))
    # As in `forms_of`, one text is read faster than each name.
    shapes = _NUMBER.sub("0", "\n".join(forms)).replace("/", ".").split("\n")
    if len(shapes) != len(forms):
        shapes = [_NUMBER.sub("0", form).replace("/", ".") for form in forms]
    return tuple(dict.fromkeys(shapes))


@lru_cache(maxsize=32)
def _written_by(shapes: tuple[str, ...]) -> frozenset[str]:
    found = set()
    for library in LIBRARIES:
        if shown_in(shapes, library.never):
            continue
        if shown_in(shapes, library.alone) or sum(shown_in(shapes, (token,)) for token in library.tokens) >= 2:
            found.add(library.id)
    return frozenset(found)


def shown_in(shapes: Iterable[str], patterns: Iterable[str]) -> bool:
    """Whether one of the patterns is found in one of the names, which are as `shapes_of_names` gives them."""
    return any(re.search(pattern, shape) for pattern in patterns for shape in shapes)


def is_projection(name: str, library: Library | None) -> bool:
    """Whether this is a matrix (in, out) that is no layer of its own in this library."""
    return library is not None and bool(library.projections) and re.search(library.projections, name) is not None


def is_from_the_right(ours: Leaf, theirs: Leaf, writer: Library | None, reader: Library | None) -> bool:
    """Whether one side has a layer (out, in) where the other's code multiplies by a parameter: `x @ visual.proj`."""
    shape = ours.shape or ()
    if len(shape) != 2 or shape[::-1] != theirs.shape:
        return False
    return (is_projection(ours.name, writer) and theirs.name.endswith(".weight")) or (
        is_projection(theirs.name, reader) and ours.name.endswith(".weight")
    )


def said_by(writers: Iterable[str], names: Iterable[str]) -> Library | None:
    """The library that a file's own metadata name as its writer, where no name in it is one that it never writes.

    writers: what the metadata say under "format" and "framework". transformers' Flax classes and safetensors.flax write
    "flax"; what other libraries store otherwise is said by their names.
    """
    library = _BY_ID["flax"]
    known = "flax" in {writer.strip().lower() for writer in writers}
    return library if known and not shown_in(shapes_of_names(names), library.never) else None


def written_by(names: Iterable[str]) -> Library | None:
    """The one library that these names prove, None for none or several."""
    found = _written_by(shapes_of_names(names))
    return _BY_ID[next(iter(found))] if len(found) == 1 else None
