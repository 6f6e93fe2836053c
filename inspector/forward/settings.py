"""What a layer is set to: in a few words ("7x7, stride 2, padding 3"), and as torch writes it."""

from __future__ import annotations

from torch import nn

_PLAIN = {"stride": 1, "padding": 0, "output_padding": 0, "dilation": 1, "groups": 1, "ceil_mode": False}
# Characters.
_MOST_WORDS, _MOST_WRITTEN = 120, 200


def settings_in_words(module: nn.Module) -> str:
    """Kernel, stride, features, heads ... of the layers whose attributes say so by torch's names; "" for others."""
    parts: list[str] = []
    values = vars(module)
    kernel = values.get("kernel_size")
    if kernel is not None:
        parts.append(_sizes(kernel))
    for name, plain in _PLAIN.items():
        value = values.get(name)
        if value is None or all(one == plain for one in (value if isinstance(value, tuple | list) else (value,))):
            continue
        # torch's poolings keep the kernel's size as their stride where none was given.
        if not (name == "stride" and value == kernel):
            parts.append(f"{name} {_sizes(value)}")
    parts += [
        f"{says} {_sizes(values[name])}"
        for name, says in (
            ("in_features", "in"),
            ("out_features", "out"),
            ("num_features", "features"),
            ("normalized_shape", "over"),
            ("num_groups", "groups"),
            ("num_embeddings", "rows"),
            ("embedding_dim", "width"),
            ("num_heads", "heads"),
            ("embed_dim", "width"),
            ("input_size", "in"),
            ("hidden_size", "hidden"),
            ("num_layers", "layers"),
            ("output_size", "to"),
            ("scale_factor", "times"),
            ("p", "p"),
        )
        if isinstance(values.get(name), int | float | tuple | list) and not isinstance(values.get(name), bool)
    ]
    parts += [
        says
        for name, says in (("bidirectional", "both directions"), ("ceil_mode", ""))
        if values.get(name) is True and says
    ]
    if "in_channels" in values and "out_channels" in values:
        parts.insert(0, f"{values['in_channels']} to {values['out_channels']}")
    return ", ".join(parts)[:_MOST_WORDS]


def settings_as_written(module: nn.Module) -> str:
    """What torch writes of its own layers; nothing of other classes, whose text may be anything."""
    if not type(module).__module__.startswith("torch.nn.modules."):
        return ""
    try:
        return module.extra_repr()[:_MOST_WRITTEN]
    except (AttributeError, TypeError, ValueError, RuntimeError):  # settings that were taken away or are none
        return ""


def _sizes(value: object) -> str:
    if isinstance(value, tuple | list):
        if len(set(map(str, value))) == 1 and len(value) > 1:
            value = (value[0], value[0]) if len(value) == 2 else value
        return "x".join(map(str, value))
    return str(value)
