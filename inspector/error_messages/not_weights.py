"""What was loaded instead of the weights: a training checkpoint, an optimizer's state, names that the code cut."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.error_messages.patches import look_inside, take_out, uncut
from inspector.error_messages.report import KeyEvidence, KeyLists, PastedError
from inspector.units import shorten_middle

# What training scripts put beside the weights; the first that is there holds them.
CONTAINERS = ("state_dict", "model_state_dict", "model_state", "model", "net", "network", "weights", "params", "module")
_BESIDE = frozenset(
    {
        *("epoch", "optimizer", "optimizer_state_dict", "optimizer_states", "lr_scheduler", "scheduler", "args"),
        *("global_step", "pytorch-lightning_version", "hyper_parameters", "loss", "best_acc1", "arch", "config"),
        *("callbacks", "loops", "lr_schedulers", "ema", "amp", "scaler", "step", "iteration", "best_fitness", "meta"),
        *("best_acc", "best_loss", "previous_best", "epochs", "iter", "opt", "hparams", "cfg", "wandb_id", "date"),
        *("train_loss", "val_loss", "best", "best_score", "best_metric", "training_results", "rng_state", "version"),
        # DeepSpeed's, beside "module".
        *("ds_config", "ds_version", "buffer_names", "param_shapes", "frozen_param_shapes", "frozen_param_fragments"),
        *("shared_params", "skipped_steps", "global_steps", "global_samples", "dp_world_size", "mp_world_size"),
        *("sparse_tensor_module_names", "csr_tensor_module_names", "data_sampler", "random_ltd"),
    }
)
_OPTIMIZER = frozenset({"state", "param_groups"})
_ENDINGS = ("state_dict", "_state")
_NO_WEIGHTS = ("optim", "sched", "scaler", "rng", "random")
# Last segments that the model computes when it is built; whether they are stored depends on a library's version.
_CONSTANTS = frozenset(
    {
        *("position_ids", "token_type_ids", "masked_bias", "inv_freq", "relative_position_index"),
        *("relative_coords_table", "attn_mask", "anchor_grid"),
    }
)
_LASTS = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
_COUNTER = "batches_tracked"
_MOST_CUT = 24


def is_constant(name: str) -> bool:
    """Whether a tensor of this name is computed when a model is built: "embeddings.position_ids"."""
    return name.rpartition(".")[2] in _CONSTANTS


def other_content(lists: KeyLists, quote: str) -> PastedError | None:
    """The error when the unexpected names are no names of a network's tensors at all; None when they may be."""
    if set(lists.unexpected) >= _OPTIMIZER:
        return _optimizer(lists, quote)
    if _is_training(lists):
        return _whole_checkpoint(lists, quote, _container(lists.unexpected))
    cut = _cut_off(lists)
    return _names_cut(lists, quote, cut) if cut is not None else None


def _is_training(lists: KeyLists) -> bool:
    """Whether the unexpected names are those of a training checkpoint."""
    names = set(lists.unexpected)
    if not names or lists.reshaped or any("." in name or not name for name in names):
        return False
    if names & _BESIDE:
        return 2 * len([name for name in names if name in _BESIDE or _holds(name)]) >= len(names)
    inside = _container(lists.unexpected)
    return bool(inside) and (inside in CONTAINERS[:3] or inside not in CONTAINERS or len(names) == 1)


def _container(names: Sequence[str]) -> str:
    """The key under which the weights lie, "" when that is not known."""
    known = next((name for name in CONTAINERS if name in names), "")
    return known or next((name for name in names if _holds(name)), "")


def _holds(name: str) -> bool:
    if name in CONTAINERS:
        return True
    return name.endswith(_ENDINGS) and not any(part in name for part in _NO_WEIGHTS)


def _whole_checkpoint(lists: KeyLists, quote: str, container: str) -> PastedError:
    others = [name for name in lists.unexpected if name != container]
    if container:
        beside = f" beside {_some(others)}" if others else ""
        says = (
            f'The file is a training checkpoint: the weights lie under "{container}"{beside}, and the whole was loaded.'
        )
        step = f'Load checkpoint["{container}"] instead of the whole.'
    else:
        says = f"The file is a training checkpoint ({_some(others)}): the weights lie under one of its keys, and the "
        says += "whole was loaded."
        step = "Load what lies under that key instead of the whole; opened here, the file says under which."
    return PastedError(
        kind="whole-checkpoint",
        quote=quote,
        says=says,
        why="torch.load returns the dictionary that was saved; load_state_dict wants the weights alone.",
        steps=(step, "Should names still differ, paste that error too."),
        patch=take_out(container) if container else look_inside(),
        keys=_as_they_are(lists),
    )


def _optimizer(lists: KeyLists, quote: str) -> PastedError:
    return PastedError(
        kind="optimizer-file",
        quote=quote,
        says='The file is an optimizer\'s state ("state" and "param_groups"), not the weights.',
        why="Training scripts save both, often side by side and under like names.",
        steps=(
            "Load the file of the model, or the entry beside this one.",
            "Open the file here: it says what it holds.",
        ),
        patch=look_inside(),
        keys=_as_they_are(lists),
    )


def _cut_off(lists: KeyLists) -> int | None:
    """How many letters are missing from the front of every unexpected name; 0 when that many is not known."""
    # Batch counters are missing from no list of missing keys where the file is of an old torch.
    names = [name for name in lists.unexpected if not name.endswith(_COUNTER)]
    if len(names) < 2 or lists.reshaped:
        return None
    for count in range(1, _MOST_CUT):
        ends = {name[count:]: name for name in lists.missing if len(name) >= count}
        if all(name in ends for name in names):
            # What ends with a level or a word is a prefix and not a number of letters, unless it differs.
            torn = sum(ends[name][count - 1] != "." for name in names)
            within = all(ends[name][count - 1].isalpha() and name[:1].isalpha() for name in names)
            different = len({ends[name][:count] for name in names}) > 1
            return count if (different or within) and 2 * torn > len(names) else None
    pieces = sum(len(name) > 2 and name not in _LASTS and any(last.endswith(name) for last in _LASTS) for name in names)
    return 0 if "" in names or pieces >= 2 else None


def _names_cut(lists: KeyLists, quote: str, count: int) -> PastedError:
    shown = ", ".join(f'"{shorten_middle(name, 40)}"' for name in lists.unexpected[:3])
    how_many = f"{count} letters" if count > 1 else "the first letters"
    return PastedError(
        kind="names-cut",
        quote=quote,
        says=f"The loading code cuts {how_many} off every name ({shown}), and no name begins with what it cuts.",
        why="Code such as key[7:] takes module. off the names of a DataParallel; this file has no module. before them, "
        "or is a training checkpoint whose own keys were cut.",
        steps=(
            "Take the prefix off only where it is.",
            "Should the names still differ, paste that error too; open the file here to see its names.",
        ),
        patch=uncut(),
        keys=_as_they_are(lists),
    )


def _as_they_are(lists: KeyLists) -> KeyEvidence:
    return KeyEvidence(
        lists=lists, renamings=(), explained=0, left_missing=lists.missing, left_unexpected=lists.unexpected
    )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(shorten_middle(name, 60) for name in names[:3])
    return shown + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
