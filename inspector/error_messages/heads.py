"""The last layer of a network: by its name, and where the file has another than the model."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.error_messages.patches import as_set, compare_shapes
from inspector.error_messages.report import Cause, KeyLists
from inspector.units import counted, shorten_middle

# Names that people give to the last layer of a network.
_HEADS = frozenset(
    {
        *(
            "fc",
            "head",
            "heads",
            "classifier",
            "classifiers",
            "linear",
            "last_linear",
            "logits",
            "logit",
            "cls",
            "output",
        ),
        *(
            "out",
            "out_proj",
            "score",
            "predictor",
            "prediction",
            "predictions",
            "final",
            "last_layer",
            "cls_score",
            "top",
        ),
        *(
            "box_predictor",
            "mask_predictor",
            "bbox_pred",
            "conv_seg",
            "cls_head",
            "fc_cls",
            "fc_out",
        ),
    }
)


_MOST = 16
_MOST_NAMED = 3


def is_head(name: str) -> bool:
    """Whether a tensor of this name likely belongs to the last layer: no number stands before it, as blocks have."""
    for segment in name.split(".")[:-1]:
        if segment in _HEADS or segment.endswith(("_head", "_cls", "_classifier", "_fc", "head")):
            return True
        if segment.isdigit():
            return False
    return False


def other_head(lists: KeyLists) -> tuple[str, str, tuple[Cause, ...], str] | None:
    """(says, why, causes, lines) when all that is missing and all that is unexpected belongs to a head."""
    names = (*lists.missing, *lists.unexpected)
    if not lists.missing or not lists.unexpected or len(names) > 2 * _MOST or not all(is_head(name) for name in names):
        return None
    ours, theirs = _modules(lists.unexpected), _modules(lists.missing)
    alike = sorted(_last(name) for name in lists.missing) == sorted(_last(name) for name in lists.unexpected)
    renamed = Cause("keys-renamed", "It is the same layer under another name.", "their shapes are the same")
    new = Cause("other-head", "It is another layer: the model's head is new.", "their shapes, or their numbers, differ")
    says = f"The heads differ: the file has {ours} ({counted(len(lists.unexpected), 'tensor')}), the model {theirs} "
    says += f"({len(lists.missing):,}); everything else has its place."
    why = "The file was trained for another task, or its code calls the last layer otherwise."
    if alike:
        return says, why, (renamed, new), compare_shapes(lists.missing, lists.unexpected)
    return says, why, (new, renamed), _without(lists)


def _without(lists: KeyLists) -> str:
    return (
        f"theirs = {as_set(lists.unexpected)}\n"
        f"new = {as_set(lists.missing)}\n"
        "state = {key: tensor for key, tensor in state.items() if key not in theirs}\n"
        "left = model.load_state_dict(state, strict=False)\n"
        "assert set(left.missing_keys) == new and not left.unexpected_keys, left\n"
        "# The new head is untrained: train it before you use the model.\n"
    )


def _modules(names: Sequence[str]) -> str:
    """The module that all of these lie in, or the outermost ones where there is none: "cls", "fc" and "head"."""
    common = [name.split(".")[:-1] or [name] for name in names]
    shared = []
    for level in zip(*common, strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    modules = [".".join(shared)] if shared else list(dict.fromkeys(path[0] for path in common))
    shown = [f'"{shorten_middle(module, 60)}"' for module in modules[:_MOST_NAMED]]
    more = [f"{len(modules) - _MOST_NAMED} more"] if len(modules) > _MOST_NAMED else []
    return " and ".join([*shown, *more])


def _last(name: str) -> str:
    return name.rpartition(".")[2]
