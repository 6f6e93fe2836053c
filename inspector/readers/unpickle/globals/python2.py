"""Python 2's names in a pickle, and what a load under Python 3 imports by them.

torch.save writes protocol 2, and Python writes Python 2's names into protocols 0 to 2: `collections.UserDict` stands
there as `UserDict.IterableUserDict`. Sources: Python's `_compat_pickle` (which pickle.load follows, up to protocol 2),
torch/_utils.py (IMPORT_MAPPING and NAME_MAPPING, a part of the same, which weights_only follows in every protocol).
"""

from __future__ import annotations

from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING

_LAST_PROTOCOL = 2
# What nobody means otherwise, and what hostile files use to hide a name: read so in every protocol.
_ALWAYS = {"__builtin__": "builtins", "copy_reg": "copyreg", "cPickle": "_pickle", "exceptions": "builtins"}
# Of the modules that torch knows by their old names.
_OF_TORCH = frozenset(
    {"__builtin__", "copy_reg", "Queue", "repr", "_abcoll", "UserDict", "UserList", "UserString", "whichdb"}
    | {"StringIO", "cStringIO"}
)
_TORCHS_OTHERS = frozenset({"itertools", *_OF_TORCH})
_TORCHS_EXCEPTION = ("exceptions", "StandardError")


def imported_name(module: str, name: str, protocol: int) -> tuple[str, str]:
    """The module and name that pickle.load imports under Python 3."""
    if protocol <= _LAST_PROTOCOL:
        if (module, name) in NAME_MAPPING:
            return NAME_MAPPING[(module, name)]
        module = IMPORT_MAPPING.get(module, module)
    return _ALWAYS.get(module, module), name


def weights_only_name(module: str, name: str) -> tuple[str, str]:
    """The module and name that torch.load(weights_only=True) looks for, and names where it refuses it."""
    pair = (module, name)
    if pair in NAME_MAPPING and (module in _TORCHS_OTHERS - {"whichdb"} or pair == _TORCHS_EXCEPTION):
        return NAME_MAPPING[pair]
    return (IMPORT_MAPPING[module] if module in _OF_TORCH else module), name
