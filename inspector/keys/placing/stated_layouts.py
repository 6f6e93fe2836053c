"""What a file says beside its tensors of how they lie: (in, out), transposed, or as the library has them that they
came from.

Names and shapes do not show it where matrices are square. Where others are not, their shapes settle what was said: a
conversion from Keras may have turned all of them and kept the word.
"""

from __future__ import annotations

import re

# Of logical values, as readers show them.
TRUE, FALSE = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0", "none", "null", ""})
_LONGEST = 100
# framework, backend, source_library, exported_from.
_SOURCE_KEY = re.compile(
    r"(?:(?:source|original|origin|from|src|ml|dl|model|weights?|training|train|saved|native)_)?"
    r"(?:framework|backend|library|format|source|origin|writer|producer|toolkit)"
    r"|(?:exported|converted|ported|imported|translated|saved|written|produced|trained|dumped|taken)"
    r"_(?:from|by|with|in|using)"
)
_LIBRARIES = frozenset(
    {"tf", "tensorflow", "keras", "flax", "linen", "jax", "haiku", "trax", "paddle", "paddlepaddle", "mlx"}
)
# tf.keras, TensorFlow v2.15, dm-haiku, keras applications; of a sentence or an address something is left.
_BESIDE_LIBRARIES = frozenset(
    {"v", "dm", "js", "hub", "model", "models", "weights", "checkpoint", "checkpoints", "applications", "savedmodel"}
)
_LETTERS = re.compile(r"[a-z]+")

_LAYOUT_KEY = re.compile(
    r"(?:(?:weights?|kernels?|matri(?:x|ces)|linear|dense|fc|conv|tensors?|params?|parameters?|storage|data)_)?"
    r"(?:format|layout|order|ordering|axes|axis_order|dims|convention|orientation|are|stored|stored_as)"
)
_SIZES = r"(?:puts?|_?features|_?channels|_?dims?|_?size)?"
# (in, out), in_out, in_features x out_features, IO; HWIO of kernels.
_IN_OUT = re.compile(rf"[(\[]?in{_SIZES}(?:[ ,_x*/-]|->|to|by)+out{_SIZES}[)\]]?|io|d?h?wio", re.IGNORECASE)
_TURNED = re.compile(r"(?:stored |saved |all |are )*transposed(?: (?:weights?|kernels?|matrices))?", re.IGNORECASE)
_TURNED_KEY = re.compile(
    r"(?:(?:is|are)_)?(?:(?:weights?|kernels?|matri(?:x|ces)|params?|tensors?|linear)_)?(?:(?:are|were|is)_)?transposed?"
)


def as_key(key: str) -> str:
    """weight_layout of "Weight layout" and "weight-layout"."""
    return key.lower().replace("-", "_").replace(" ", "_")


def is_from_elsewhere(key: str, text: str) -> bool:
    """Whether this says that the tensors came from a library with (in, out) matrices, or lie so."""
    if max(len(key), len(text)) > _LONGEST:
        return False
    name, said = as_key(key), text.strip()
    if _SOURCE_KEY.fullmatch(name):
        words = set(_LETTERS.findall(said.lower()))
        if words & _LIBRARIES and words <= _LIBRARIES | _BESIDE_LIBRARIES:
            return True
    return says_turned(key, text)


def says_turned(key: str, text: str) -> bool:
    """Whether this says of the tensors that they are stored the other way round than torch's."""
    name, said = as_key(key), text.strip()
    if said.lower() in TRUE:
        return _TURNED_KEY.fullmatch(name) is not None
    is_layout = len(said) <= _LONGEST and _LAYOUT_KEY.fullmatch(name) is not None
    return is_layout and (_TURNED.fullmatch(said) or _IN_OUT.fullmatch(said)) is not None
