"""The network that a file was recognised as, as lines that build it: plain torchvision or timm, nothing is downloaded.

Families that no library builds by a name, and settings that take more than a line or two, have no such lines.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from inspector.architectures.families import find_family
from inspector.architectures.families.specs import arguments_for
from inspector.architectures.index import Entry, load_index
from inspector.architectures.types import ArchitectureSpec, OptionValue
from inspector.errors import UsageError

# Tasks whose builders fetch weights for their backbone unless they are told not to.
_WITH_BACKBONE = frozenset({"detection", "segmentation"})
# Builders that fill themselves slowly, and say so, unless they are told not to.
_FILLING = ("googlenet", "inception_v3")
_PASSED = frozenset({"aux_logits", "aux_loss", "image_size", "transform_input"})


@dataclass(frozen=True, slots=True)
class BuildingLines:
    """module: what the lines import. lines: they leave the network in `model`."""

    module: str
    lines: tuple[str, ...]


def building_lines(spec: ArchitectureSpec) -> BuildingLines | None:
    """None where there are no such lines. Loads the index, imports no torch."""
    entry = load_index().of(spec)
    if entry is None:
        return None
    return _timm(spec) if spec.library == "timm" else _torchvision(spec, entry)


def can_build(spec: ArchitectureSpec) -> bool:
    """Whether `build_model` makes it by its label alone: every size is stated, and nothing is assumed."""
    family = find_family(spec.library, spec.name)
    if family is None:
        return load_index().of(spec) is not None
    with suppress(UsageError):
        arguments_for(family, spec)
        return bool(family.builder) and not spec.assumed
    return False


def _timm(spec: ArchitectureSpec) -> BuildingLines | None:
    arguments: list[tuple[str, OptionValue]] = []
    if spec.num_classes is not None:
        arguments.append(("num_classes", spec.num_classes))
    if spec.in_channels is not None:
        arguments.append(("in_chans", spec.in_channels))
    for name, value in spec.options:
        if name != "image_size":
            return None
        arguments.append(("img_size", value))
    return BuildingLines("timm", (_call(f"timm.create_model({spec.name!r}, pretrained=False", arguments),))


def _torchvision(spec: ArchitectureSpec, entry: Entry) -> BuildingLines | None:
    bare = spec.name.removeprefix("quantized_")
    if not _PASSED.issuperset(name for name, _ in spec.options) or (spec.in_channels and entry.task in _WITH_BACKBONE):
        return None
    arguments: list[tuple[str, OptionValue]] = []
    if spec.num_classes is not None:
        arguments.append(("num_classes", spec.num_classes))
    arguments += spec.options
    if bare in _FILLING:
        arguments.append(("init_weights", False))
    start = f"torchvision.models.get_model({spec.name!r}, weights=None"
    if entry.task in _WITH_BACKBONE:
        start += ", weights_backbone=None"
    lines = [_call(start, arguments)]
    if spec.in_channels is not None:
        for place, *_ in entry.channels:
            lines += _other_input(entry.layout.names[place].rpartition(".")[0], spec.in_channels)
        if bare in _FILLING and dict(spec.options).get("transform_input") is not False:
            lines.append("model.transform_input = False  # it rescales three colour channels one by one")
    return BuildingLines("torchvision", tuple(lines))


def _call(start: str, arguments: list[tuple[str, OptionValue]]) -> str:
    return f"model = {start}{''.join(f', {name}={value!r}' for name, value in arguments)})"


def _other_input(path: str, channels: int) -> list[str]:
    return [
        f"first = model.get_submodule({path!r})",
        f"first.in_channels = {channels}",
        f"first.weight = torch.nn.Parameter(torch.empty(first.out_channels, {channels}, *first.kernel_size))",
    ]
