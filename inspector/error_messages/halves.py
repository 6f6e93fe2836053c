"""One list without the other: what a half of a `load_state_dict` error shows, and what it cannot show.

torch prints the missing keys first, then the unexpected ones, and each list only when it is not empty. People paste
one of them. So a list that is not there says nothing: names that are missing may be in the file under other names, and
names that are unexpected may be wanted under others. Both causes are named, with what would tell them apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.wrappers import WRAPPERS
from inspector.error_messages.patches import into_part, only_known, renamed
from inspector.error_messages.report import Cause, KeyLists
from inspector.units import counted, shorten_middle

# Segments that tools put before every name, and what they are, in words that stand alone.
WRAPPED_BY = {
    **WRAPPERS,
    "module": "a DataParallel or DistributedDataParallel wrapper",
    "_orig_mod": "a model under torch.compile",
}
# Segments under which people keep a network as a part of another object.
HOLDERS = {
    "model": "an object that keeps the network as .model, such as a LightningModule",
    "net": "an object that keeps the network as .net",
    "network": "an object that keeps the network as .network",
    "backbone": "a network that keeps another as its .backbone",
    "encoder": "a network that keeps another as its .encoder",
}
# Classes whose own names all begin with the segment.
_CLASSES = {
    "DataParallel": "module",
    "DistributedDataParallel": "module",
    "DeepSpeedEngine": "module",
    "OptimizedModule": "_orig_mod",
    "_FabricModule": "_forward_module",
    "AveragedModel": "module",
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
}
_FEW = 4
_OTHER_LIST = {
    "unexpected": "torch prints missing keys before unexpected ones, and none are in this text: paste them too, or "
    "compare names of both sides.",
    "missing": "torch prints unexpected keys after missing ones, and none are in this text: paste them too, or compare "
    "names of both sides.",
}
_COMPARE = "print(list(state)[:5])  # the file's names\nprint(list(model.state_dict())[:5])  # the model's\n"


# Kinds of errors by the likelier cause.
KINDS = {
    "keys-renamed": "keys-renamed",
    "other-names": "keys-renamed",
    "not-in-model": "extra-tensors",
    "not-in-file": "partial-file",
}


def lone_list(lists: KeyLists) -> str:
    """The one list that the text has ("missing", "unexpected"); "" when it has both, or none."""
    there = [what for what in ("missing", "unexpected") if what in lists.pasted]
    return there[0] if len(there) == 1 else ""


def common_wrapper(names: Sequence[str]) -> str:
    """The segments of wrappers that all names begin with: "module", "_orig_mod.module"; "" without any."""
    found: list[str] = []
    rest = [name.split(".") for name in names]
    while rest and all(len(name) > 1 for name in rest):
        first = {name[0] for name in rest}
        if len(first) > 1 or not first <= {*WRAPPED_BY, *(HOLDERS if not found else ())}:
            break
        found.append(first.pop())
        rest = [name[1:] for name in rest]
    return ".".join(found)


def own_prefix(model: str, wrapper: str) -> bool:
    """Whether a model of this class has that segment before all its names by itself."""
    return bool(wrapper) and _CLASSES.get(model) == wrapper.partition(".")[0]


def saved_by(segment: str, lists: KeyLists) -> str:
    """Who puts this segment before every name; AveragedModel counts its steps beside it."""
    averaged = segment == "module" and any(
        name.rpartition(".")[2] == "n_averaged" for name in (*lists.missing, *lists.unexpected)
    )
    return "torch's AveragedModel (weight averaging)" if averaged else (WRAPPED_BY | HOLDERS)[segment]


def counters_left(lists: KeyLists) -> tuple[str, ...]:
    """Last segments of unexpected names that are no weights and that no missing name ends with: "n_averaged"."""
    wanted = {name.rpartition(".")[2] for name in lists.missing}
    lasts = dict.fromkeys(name.rpartition(".")[2] for name in lists.unexpected if is_bookkeeping(name))
    return tuple(last for last in lasts if last not in wanted)


def unexpected_alone(lists: KeyLists) -> tuple[str, str, tuple[Cause, ...], str]:
    """(says, why, causes, lines) for unexpected keys without any missing ones in the text."""
    names = [name for name in lists.unexpected if not is_bookkeeping(name)]
    wrapper = common_wrapper(names)
    extra = Cause(
        "not-in-model",
        "The model has no such layers: the file is of a larger model or of another one.",
        "no keys are missing, or others than these",
    )
    if wrapper and not own_prefix(lists.model, wrapper):
        who = saved_by(wrapper.split(".")[0], lists)
        says = f'{_all(names)} "{wrapper}.", as {who} names them.'
        first = names[0].removeprefix(f"{wrapper}.")
        causes = (
            Cause(
                "keys-renamed",
                f"The file was saved from {who}, and the model is without it.",
                f'"{_short(first)}" is missing, or the model\'s own names do not begin with "{wrapper}."',
            ),
            Cause(
                "not-in-model",
                "The model is wrapped as well, and has no such layers.",
                f'the model\'s own names begin with "{wrapper}.", too',
            ),
        )
        lines = renamed((f"key = key.removeprefix({wrapper + '.'!r})",), counters=counters_left(lists))
        return says, "The other list would tell; the lines below refuse where it is not so.", causes, lines
    says = f"The file holds {counted(len(names), 'tensor')} under names that the model does not know ({_some(names)})."
    other = Cause(
        "other-names",
        "The model has them under other names: a prefix, or a module that is called otherwise.",
        "as many keys are missing, with endings like these",
    )
    causes = (extra, other) if lists.headed or len(names) <= _FEW else (other, extra)
    return says, _OTHER_LIST["unexpected"], causes, _COMPARE


def missing_alone(lists: KeyLists) -> tuple[str, str, tuple[Cause, ...], str]:
    """(says, why, causes, lines) for missing keys without any unexpected ones in the text."""
    names = [name for name in lists.missing if not is_bookkeeping(name)]
    wrapper = common_wrapper(names)
    tensors = counted(len(names), "tensor")
    absent = Cause(
        "not-in-file",
        "The file does not hold them: it is of a part, of an older version or of another network.",
        "no keys are unexpected, or others than these",
    )
    if wrapper and (own_prefix(lists.model, wrapper) or wrapper.split(".")[0] in WRAPPED_BY):
        who = saved_by(wrapper.split(".")[0], lists)
        first = names[0].removeprefix(f"{wrapper}.")
        says = f'{_all(names)} "{wrapper}.": the model is inside {who}.'
        other = Cause(
            "other-names",
            "The file was saved without that, so its names are shorter; or they are longer, or lie under a key.",
            f'"{_short(first)}" or something that ends so is unexpected',
        )
        lines = into_part(wrapper) if not lists.cut else _COMPARE
        return says, _OTHER_LIST["missing"], (other, absent), lines
    says = f"{tensors} of the model are not in the file under the model's names ({_some(names)})."
    other = Cause(
        "other-names",
        'The file has them under other names: with a prefix such as "module.", or under a key such as "state_dict".',
        "as many keys are unexpected, with endings like these, or the keys of a training checkpoint",
    )
    causes = (absent, other) if lists.headed and len(names) <= _FEW else (other, absent)
    lines = only_known(lists.missing) if not lists.cut else _COMPARE
    return says, _OTHER_LIST["missing"], causes, lines or _COMPARE


def _all(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"{_short(names[0])} begins with"
    return f"{'Both' if len(names) == 2 else f'All {len(names):,}'} keys begin with"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(_short(name) for name in names[:3])
    return shown + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def _short(name: str) -> str:
    return shorten_middle(name, 60)
