"""thop's number beside ours, from a copy of the model that is thrown away.

A copy, because thop registers buffers (`total_ops`, `total_params`) in every module and leaves some of them behind,
where they end up in checkpoints. Imported only when asked for: it needs distutils, which Python 3.12 removed and
setuptools brings back.
"""

from __future__ import annotations

import copy
import warnings
from importlib import metadata
from typing import Any

from torch import Tensor, nn

from inspector.flops.report import SecondOpinion

# Distributions that install a package of the same import name, the one that overwrites the other first.
_DISTRIBUTIONS = ("ultralytics-thop", "thop")
_COUNTS_OTHERWISE = (
    "counts by layer class: norms, pooling and some activations come on top, and products outside known layer classes "
    "(functional calls, bare matrix products, attention, parameters used directly) are not seen; a transposed "
    "convolution counts by its output size."
)


def ask_thop(model: nn.Module, inputs: Tensor) -> SecondOpinion:
    """model: on meta; it is copied, not touched. Never raises: a failure is the note of an opinion without a number."""
    tool = _tool_name()
    try:
        profile = _import_profile()
    except ImportError as error:
        why = str(error)
        if "distutils" in why:
            why = "it needs distutils, which Python 3.12 removed; installing setuptools brings it back"
        return SecondOpinion(tool=tool, macs=None, note=f"{tool} could not be imported: {why}.")
    try:
        macs, _ = profile(copy.deepcopy(model), inputs=(inputs,), verbose=False)
    # Whatever its per-layer rules raise on shapes they were not written for.
    except (RuntimeError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
        first = next(iter(str(error).splitlines()), "") or type(error).__name__
        return SecondOpinion(tool=tool, macs=None, note=f"{tool} failed on this model: {first}")
    return SecondOpinion(tool=tool, macs=round(macs), note=f"{tool} {_COUNTS_OTHERWISE}")


def _import_profile() -> Any:
    with warnings.catch_warnings():
        # Its use of distutils' version classes is deprecated; nothing the reader could do about that.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            import distutils  # noqa: F401
        except ImportError:
            # setuptools carries distutils, and puts it in place when it is imported itself.
            import setuptools  # type: ignore[import-untyped]  # noqa: F401
        from thop import profile
    return profile


def _tool_name() -> str:
    for name in _DISTRIBUTIONS:
        try:
            return f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    return "thop"
