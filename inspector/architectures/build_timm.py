"""Building timm's models, where timm is installed; naming and repairing them needs it not."""

from __future__ import annotations

from typing import Any

from inspector.architectures.suggest import suggest
from inspector.architectures.types import ArchitectureSpec
from inspector.errors import MissingLibrary, UnknownArchitecture, UsageError


def find_builder(spec: ArchitectureSpec) -> Any:
    """timm's `create_model`.

    Raises MissingLibrary without timm, UnknownArchitecture when the installed one has no such builder.
    """
    try:
        import timm
    except ImportError as error:
        raise MissingLibrary(
            f"{spec.label} can be named, compared and repaired without timm, but building it needs timm, which is "
            "not installed.",
            hint="pip install timm",
        ) from error
    # A name with a place in front of it would be looked up in a network; only timm's own list counts.
    names = timm.list_models()
    if spec.name not in names:
        raise UnknownArchitecture(
            f'The installed timm {timm.__version__} has no architecture "{spec.name}".', hint=suggest(spec.name, names)
        )
    return timm.create_model


def arguments_of(spec: ArchitectureSpec) -> dict[str, Any]:
    """The arguments of `create_model`. Raises UsageError for a setting that timm's builders have not."""
    arguments: dict[str, Any] = {"model_name": spec.name, "pretrained": False}
    if spec.num_classes is not None:
        arguments["num_classes"] = spec.num_classes
    if spec.in_channels is not None:
        arguments["in_chans"] = spec.in_channels
    for name, value in spec.options:
        if name != "image_size":
            raise UsageError(f'{spec.library}/{spec.name} has no setting "{name}".')
        arguments["img_size"] = value
    return arguments
