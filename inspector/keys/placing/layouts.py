"""Which way round a file stores its matrices and kernels: what its names vouch for, and what only the user knows.

A square matrix, and a kernel as wide as it has channels, has one shape in every layout, and each of them loads. torch,
MLX and Chainer store (out, in); Keras, Flax, Haiku, TensorFlow, Paddle and transformers' Conv1D (in, out). Such a
tensor is trusted to lie as torch has it only in a file that shows nothing but torch. Elsewhere its own name must vouch
for it, as far as the tensors of that name whose shapes do tell agree; else the user is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Flag, StrEnum, auto
from functools import lru_cache

from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.keys.placing.roles import NORM_NAME, own_role, split_name
from inspector.keys.placing.stated_layouts import is_from_elsewhere
from inspector.keys.placing.tree import Leaf


class Voucher(StrEnum):
    """What a tensor's own name says about its layout, told by others of that name.

    NOTHING: "weight", which every library writes. IN_OUT: a name that only libraries with (in, out) matrices give.
    CONV1D: a module of GPT-2's names, which transformers stores (in, out) and OpenAI's CLIP does not. OTHER: some name
    that is not torch's. EMBEDDING: a table of rows, which no library turns round; no table is called kernel, whatever
    its module is.
    """

    NOTHING = "nothing"
    IN_OUT = "in-out"
    CONV1D = "conv1d"
    OTHER = "other"
    EMBEDDING = "embedding"


class Elsewhere(Flag):
    """What in a file speaks of another layout than torch's; nothing in a file that shows nothing but torch.

    IN_OUT: a name or a shape of a library that stores (in, out) and (h, w, in, out). KERNELS: the shape of a kernel
    shows that its axes are in another order. CONTAINER: another library's format, and so one writer for all of it.
    NORM_WORDS: gamma and beta in modules called norms, as Keras and torch's first BERTs have them. PATHS: slashes for
    dots, or variables that end in :0. STATED: the file says beside its tensors that they were another library's, or
    lie (in, out). These three are doubts that other matrices of the file settle (`SETTLED`).
    """

    NOTHING = 0
    IN_OUT = auto()
    KERNELS = auto()
    CONTAINER = auto()
    NORM_WORDS = auto()
    PATHS = auto()
    STATED = auto()


# Doubts that there are no more once every matrix whose shape tells lies as torch has it.
SETTLED = Elsewhere.NORM_WORDS | Elsewhere.PATHS | Elsewhere.STATED


_VARIABLE = re.compile(r":[0-9]+$")
# Keras, Flax and TensorFlow 1 say kernel, Haiku and early TensorFlow w, TF-slim weights.
_IN_OUT = frozenset({"kernel", "w", "W", "weights"})
# Where transformers' GPT-2 and its kin have a Conv1D; an adapter beside them may borrow its names.
_CONV1D = re.compile(r"(.*\.)?h\.[0-9]+\.((attn|crossattention)\.(c_attn|c_proj|q_attn)|mlp\.(c_fc|c_proj))")
# Its last words, which rule out nearly every name at once.
_CONV1D_PARTS = frozenset({"c_attn", "c_proj", "q_attn", "c_fc"})
_EMBEDDING = re.compile(
    r"(wte|wpe|embedding|embeddings|embed_tokens|embed_positions|embed_in|tok_embeddings|shared"
    r"|(word|token|token_type|position|positional|segment)_embed(ding)?s?)"
)
_EMBEDDING_LEAVES = frozenset({"embedding", "embeddings", "embedding_table"})
# What a module of rows to be looked up may be called in a target.
_ROWS = re.compile(r"emb|wte|wpe|tok|vocab|word|pos|shared|table|lookup|code", re.IGNORECASE)
# Tables and buffers: nobody multiplies by them, so no library turns them round.
_TABLE = re.compile(r"pos|embed|mask|index|table|token|queue|bias|mean|var|buffer|grid|coords|anchor", re.IGNORECASE)
_WEIGHT = re.compile(r"(^|_)weight(_|$)")
# Names that no torch module writes: Keras and TensorFlow, Flax and Haiku, Paddle. gamma and beta are not among them:
# torch's first BERTs and every layer scale have them.
_MARKS = _IN_OUT | {
    "moving_mean",
    "moving_variance",
    "moving_var",
    "_mean",
    "_variance",
    "recurrent_kernel",
    "depthwise_kernel",
    "pointwise_kernel",
    "embeddings",
}
# Formats in which torch's own files do not come, and frameworks that safetensors files name as their writer.
_OTHER_FORMATS = frozenset({"npz", "npy"})
_OTHER_WRITERS = frozenset({"mlx", "flax", "jax", "tf", "np", "numpy", "paddle", "pd", "keras", "tensorflow"})
_WRITER_KEYS = frozenset({"format", "framework"})


def is_weight(place: Leaf) -> bool:
    """Whether a tensor of several dimensions may be something to multiply by: a weight by its role, or a bare one."""
    role = own_role(place)
    return role == "weight" or (role is None and _TABLE.search(split_name(place.name)[1]) is None)


@lru_cache(maxsize=4096)
def _is_embedding(word: str) -> bool:
    """Of thousands of layers these words are a few."""
    return _EMBEDDING.fullmatch(word) is not None


def own_name(leaf: Leaf) -> tuple[str, str]:
    """(module, last name), also of what TensorFlow calls dense/kernel:0."""
    return split_name(_VARIABLE.sub("", leaf.name).replace("/", ".") if "/" in leaf.name else leaf.name)


def voucher_of(leaf: Leaf, place: Leaf) -> Voucher:
    """What the name of this tensor, which goes to this place, says about its layout."""
    module, last = own_name(leaf)
    parent = split_name(module)[1]
    if last in _EMBEDDING_LEAVES or _is_embedding(last):
        return Voucher.EMBEDDING
    if last != "kernel" and _is_embedding(parent):
        return Voucher.OTHER if last in _IN_OUT else Voucher.EMBEDDING
    if parent in _CONV1D_PARTS and _CONV1D.fullmatch(module):
        return Voucher.CONV1D
    if last in _IN_OUT and last != split_name(place.name)[1]:
        return Voucher.IN_OUT
    own = split_name(place.name)[1]
    # A layer's weight that becomes a parameter of its own: what that is multiplied from, nobody's name says.
    known = last == own or (_WEIGHT.search(last) and (_WEIGHT.search(own) or _TABLE.search(own)))
    return Voucher.NOTHING if known else Voucher.OTHER


def is_table(place: Leaf) -> bool:
    """Whether the name of this place says that rows are looked up there."""
    return voucher_of(place, place) is Voucher.EMBEDDING


def may_be_table(place: Leaf) -> bool:
    """Whether the name of this place allows that rows are looked up there."""
    return _ROWS.search(place.name) is not None


def where_from(leaves: Iterable[Leaf], places: Iterable[Leaf], stated: Elsewhere) -> Elsewhere:
    """What the container and the names say. A name that the target has as well says nothing of either.

    stated: as `stated_elsewhere` has it.
    """
    theirs = {split_name(place.name)[1] for place in places}
    names = [own_name(leaf) for leaf in leaves]
    marks = {last for _, last in names} & _MARKS - theirs
    found = stated
    if marks:
        found |= Elsewhere.IN_OUT
    # The weakest mark, where there is no other. A layer scale is called gamma rightly, and has no beta beside it.
    if found or theirs & {"gamma", "beta"}:
        return found
    shifted = {module for module, last in names if last == "beta"}
    norms = (
        last == "gamma" and module in shifted and NORM_NAME.search(split_name(module)[1]) for module, last in names
    )
    return Elsewhere.NORM_WORDS if any(norms) else found


def written_as_paths(names: Sequence[str], places: Iterable[Leaf]) -> Elsewhere:
    """Slashes in most names, or variables' numbers, where the target has none: no torch module names itself so.

    names: as the file has them.
    """
    paths = 2 * sum("/" in name or _VARIABLE.search(name) is not None for name in names) > len(names)
    return Elsewhere.PATHS if paths and not any("/" in place.name for place in places) else Elsewhere.NOTHING


def lies_as_torch(links: Iterable[tuple[Leaf, Leaf]]) -> bool:
    """Whether a matrix or kernel under a name of (in, out) has torch's shape, and in no such layout could have it.

    Then the file's names do not tell how its tensors lie, whichever library they are of.
    """
    for leaf, place in links:
        shape = leaf.shape or ()
        if len(shape) < 2 or shape != place.shape or voucher_of(leaf, place) is not Voucher.IN_OUT:
            continue
        plain, upward = (*shape[2:], shape[1], shape[0]), (*shape[2:], shape[0], shape[1])
        if shape not in (plain, upward) or (len(shape) == 2 and shape != plain):
            return True
    return False


def is_oblong(place: Leaf) -> bool:
    """Whether it is a matrix whose shape shows which way round it lies."""
    shape = place.shape or ()
    return len(shape) == 2 and 1 not in shape and shape[0] != shape[1] and is_weight(place)


def shown_by(ours: Leaf, theirs: Leaf, *, told: bool) -> Elsewhere:
    """What it shows that the shapes of a matrix or kernel differ by the order of their axes alone.

    told: whether others show how the file's matrices lie; what is one wide says nothing then.
    """
    one, other = ours.shape or (), theirs.shape or ()
    if one == other or len(one) != len(other) or sorted(one) != sorted(other):
        return Elsewhere.NOTHING
    if sum(n > 1 for n in one) < 2 and (told or len(one) != 2 or not is_weight(theirs)):
        return Elsewhere.NOTHING
    return Elsewhere.IN_OUT if len(one) == 2 else Elsewhere.IN_OUT | Elsewhere.KERNELS


def stated_elsewhere(checkpoint: Checkpoint, state: StateDict) -> Elsewhere:
    """What the container says: that another library than torch wrote it (NumPy's arrays, or its own word), or that the
    tensors came from one, or lie otherwise."""
    in_pickle = checkpoint.format == "pickle" and any("numpy array" in tensor.note for tensor in state.tensors[:1])
    if checkpoint.format in _OTHER_FORMATS or in_pickle:
        return Elsewhere.CONTAINER
    if any(writer.strip().lower() in _OTHER_WRITERS for writer in writers_of(checkpoint)):
        return Elsewhere.CONTAINER
    return Elsewhere.STATED if any(is_from_elsewhere(*said) for said in checkpoint.own_metadata) else Elsewhere.NOTHING


def writers_of(checkpoint: Checkpoint) -> list[str]:
    """What a file's own metadata call the library that wrote it."""
    return [value for key, value in checkpoint.own_metadata if key in _WRITER_KEYS]
