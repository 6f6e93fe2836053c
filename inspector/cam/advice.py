"""Which method suits the layer that is looked at, where measurements speak clearly (docs/measurements.md, Explain)."""

from __future__ import annotations

from typing import Protocol

from inspector.cam.report import LayerProposal


class Method(Protocol):
    """Of a method as `cam.method.Method`, or as a page knows it."""

    @property
    def title(self) -> str: ...

    @property
    def per_channel(self) -> bool: ...

    @property
    def differs(self) -> str: ...


ON_TOKENS = (
    "{} gives each channel one weight for all patches, but where a class token answers, patches have gradients of "
    "their own. On the sample transformer, Gradient rollout and HiResCAM found the shape more often."
)


def advice(method: Method, layer: LayerProposal) -> str:
    """A sentence on a method that does poorly at such a layer; "" where nothing speaks against it."""
    if method.per_channel and layer.layout == "NLC" and layer.prefix_tokens and not layer.patches_answer:
        return ON_TOKENS.format(method.title)
    return ""


def note(method: Method, layer: LayerProposal) -> str:
    """The same, and why its maps are not another tool's; "" for neither."""
    return " ".join(filter(None, (advice(method, layer), method.differs)))
