"""Which sets of named tensors a file holds, what each is for, and why we think so.

A reader hands over every mapping that has tensors directly under text keys (`NamedTensors`) and where optimizers lie;
here they become `StateDict`s with a role, the likeliest weights first. Decided from position and keys alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.level_words import DERIVED, is_earlier
from inspector.checkpoint.tree import TreeRoom, module_tree
from inspector.checkpoint.types import Access, Checkpoint, ModuleNode, StateDict, StateRole, TensorInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTensors:
    """One mapping with tensors under text keys, or one pickled module, as a reader finds it.

    path: keys from the root. kind: type of the container. others: keys whose values are no tensors.
    modules: the module tree of a pickled module, None when only names are known. odd_keys, odd_versions,
    access: as of a `StateDict`.
    """

    path: tuple[str, ...]
    kind: str
    tensors: tuple[TensorInfo, ...]
    others: tuple[str, ...] = ()
    versions: tuple[tuple[str, int], ...] = ()
    ordered: bool = True
    is_module: bool = False
    modules: ModuleNode | None = None
    odd_keys: tuple[tuple[str, str], ...] = ()
    odd_versions: bool = False
    access: Access = ()


_LONGEST_KEY = 200  # What is behind it tells nothing, and a file can put many groups under one key of a megabyte.
_OPTIMIZER = re.compile(r"optim(?!al|um|is(ed|tic)|ized)|momentum_buffer|adam|sgd", re.IGNORECASE)
# State of a training run that is neither weights nor an optimizer's, with what it is. Sources: torch.amp.GradScaler,
# apex.amp (amp.state_dict), torch.optim.lr_scheduler, Lightning's and Accelerate's checkpoint keys.
_TRAINING = (
    (re.compile(r"scaler|scaling_state|^amp(_state(_dict)?)?$|^MixedPrecision|loss_scal", re.I), "a gradient scaler"),
    (re.compile(r"sched", re.IGNORECASE), "a learning-rate schedule"),
    (re.compile(r"(^|_)(rng|random)(_|$)|rng_states?$|random_states?", re.IGNORECASE), "random number generators"),
    (re.compile(r"^callbacks?(_states?)?$", re.IGNORECASE), "training callbacks"),
    (re.compile(r"^(fit_|training_)?loops?$", re.IGNORECASE), "the training loop"),
)
_LEARNED = re.compile(r"(^|[._])(weight|bias|running_mean|running_var)$")
_GENERATOR = re.compile(r"(^|_)(rng|random|cpu|cuda|xpu|npu|mlu|torch|generator)(_|$|\d|:)", re.IGNORECASE)
EMA_NAME = re.compile(
    r"(^|[_.\-/])(ema|averaged?|avg|swa|shadow|teacher|polyak)([_.\-/]|$)|model_?ema|ema_?model", re.IGNORECASE
)
# A teacher may be an average of its student, or a network that was there before it.
_TEACHER = "teacher"
_SAME_NETWORK = 0.9  # of tensors; a student has some more: a predictor, another head
_ASIDE = re.compile(r"(^|_)(rng|random|loss|criterion|history|stats|metrics?|buffer|queue)(_|$)", re.IGNORECASE)
_WEIGHTS = re.compile(
    r"^(state_?dict|(.*_)?model(_state)?(_?dict)?|(.*_)?state_dict|net(work)?s?|weights?|params?|module|backbone|encoder|decoder"
    r"|classifier|generator|discriminator|netg|netd|g|d|best_model|student)$",
    re.IGNORECASE,
)
# Nothing else is called so, however little is in it.
_STATE_DICT = re.compile(r"^(.*_)?(model_)?state_?dict$", re.IGNORECASE)
_OWN_NAME = re.compile(r"(weight|bias|kernel|gamma|beta)s?", re.IGNORECASE)
_PARAMETER_NAME = re.compile(
    r"(^|[._])(weight|bias|running_mean|running_var|num_batches_tracked|gamma|beta|kernel|scale)$"
)


def find_state_dicts(
    groups: Sequence[NamedTensors],
    *,
    optimizers: Sequence[tuple[str, ...]] = (),
    tensors: Sequence[TensorInfo] = (),
) -> tuple[StateDict, ...]:
    """Every state dict among the groups, the likeliest weights first.

    optimizers: paths of mappings with "state" and "param_groups"; all tensors below one become one state dict of that
    role, named by their path inside it. tensors: every tensor of the file, in order, for those.
    """
    room = TreeRoom(len(tensors) or sum(len(group.tensors) for group in groups))
    below = _optimizer_states(optimizers, tensors, room)
    claimed = {state.path for state in below}
    lengths = sorted({len(path) for path in claimed})
    states = [
        _state_dict(group, room)
        for group in groups
        if group.tensors and not any(group.path[:n] in claimed for n in lengths)
    ]
    indexed = list(enumerate([*_with_trained(_with_teachers(states)), *below]))
    indexed.sort(key=lambda item: (*_rank(item[1]), item[0]))
    return tuple(state for _, state in indexed)


def _with_teachers(states: Sequence[StateDict]) -> list[StateDict]:
    """The same, a teacher that is another network than every set of weights beside it as weights of its own."""
    held = [state for state in states if state.role in (StateRole.WEIGHTS, StateRole.OTHER)]
    students = [state for state in held if state.role is StateRole.WEIGHTS]
    made = []
    for state in states:
        named = " ".join(key[:_LONGEST_KEY] for key in state.path).lower()
        if (
            state.role is StateRole.EMA
            and _TEACHER in named
            and not EMA_NAME.search(named.replace(_TEACHER, ""))
            and students
            and not any(_is_same_network(state, other) for other in held)
        ):
            why = f'a network of its own: its tensors are not those of "{students[0].label}"'
            state = replace(state, role=StateRole.WEIGHTS, why=why)
        made.append(state)
    return made


def _is_same_network(one: StateDict, other: StateDict) -> bool:
    """By leaf names and shapes, so that a wrapper around one of them does not count."""
    parts = [
        Counter((t.name.rpartition(".")[2], t.shape) for t in state.tensors if not is_bookkeeping(t.name))
        for state in (one, other)
    ]
    return (parts[0] & parts[1]).total() >= _SAME_NETWORK * max(part.total() for part in parts)


def _with_trained(states: Sequence[StateDict]) -> list[StateDict]:
    """The same, what is a twin of averaged weights as the weights that were averaged, whatever it is called."""
    averaged = [(state.label, _outline(state)) for state in states if state.role is StateRole.EMA]
    if not averaged:
        return list(states)
    made = []
    for state in states:
        own = _outline(state) if state.role is StateRole.OTHER else None
        label = next((label for label, outline in averaged if outline == own), "")
        why = f'its tensors have the names and shapes of the averaged weights under "{label}"'
        made.append(replace(state, role=StateRole.WEIGHTS, why=why) if label else state)
    return made


def _outline(state: StateDict) -> dict[str, tuple[int, ...]]:
    """Names without what wraps the whole, and shapes; without counters."""
    return {t.name.removeprefix("module."): t.shape for t in state.tensors if not is_bookkeeping(t.name)}


def _optimizer_states(
    optimizers: Sequence[tuple[str, ...]], tensors: Sequence[TensorInfo], room: TreeRoom
) -> list[StateDict]:
    every = set(optimizers)
    # A dict keeps the file's order and each path once.
    members: dict[tuple[str, ...], list[TensorInfo]] = {
        path: [] for path in optimizers if not any(path[:n] in every for n in range(len(path)))
    }
    lengths = sorted({len(path) for path in members})
    for tensor in tensors:
        for n in lengths:
            if tensor.path[:n] in members:
                members[tensor.path[:n]].append(tensor.moved(".".join(tensor.path[n:]), tensor.path, tensor.storage_id))
                break
    return [
        StateDict(
            path=path,
            role=StateRole.OPTIMIZER,
            why='it has "state" and "param_groups", as optimizers save them',
            kind="optimizer state",
            tensors=tuple(found),
            modules=module_tree(found, room),
        )
        for path, found in members.items()
        if found
    ]


def _state_dict(group: NamedTensors, room: TreeRoom) -> StateDict:
    role, why = _role(group)
    return StateDict(
        path=group.path,
        role=role,
        why=why,
        kind=group.kind,
        tensors=group.tensors,
        modules=group.modules if group.modules is not None else module_tree(group.tensors, room),
        others=group.others,
        ordered=group.ordered,
        is_module=group.is_module,
        versions=group.versions,
        odd_keys=group.odd_keys,
        odd_versions=group.odd_versions,
        access=group.access if group.access != group.path else (),
    )


def _word_of_each(group: NamedTensors) -> str:
    """What is written onto the own name of every tensor: exp_avg of fc.weight_exp_avg and bias_exp_avg, or ""."""
    found = ""
    for tensor in group.tensors:
        above, _, last = tensor.name[-_LONGEST_KEY:].rpartition(".")
        word = _written_onto(last) or (last if _OWN_NAME.search(above.rpartition(".")[2]) else "")
        if not word or word != (found or word) or not DERIVED.match(word):
            return ""
        found = word
    return found


def _written_onto(last: str) -> str:
    pieces = last.split("_")
    for count in range(1, len(pieces)):
        for word, rest in ((pieces[-count:], pieces[:-count]), (pieces[:count], pieces[count:])):
            if DERIVED.match("_".join(word)) and any(_OWN_NAME.fullmatch(piece) for piece in rest):
                return "_".join(word)
    return ""


def _role(group: NamedTensors) -> tuple[StateRole, str]:
    path = [key[:_LONGEST_KEY] for key in group.path]
    for key in path:
        if _OPTIMIZER.search(key):
            return StateRole.OPTIMIZER, f'it lies under "{key}"'
    derived = next((key for key in (*path, _first_word(group), _word_of_each(group)) if DERIVED.match(key)), None)
    if derived is not None:
        return StateRole.TRAINING, f'"{derived}" names numbers about the weights, not the weights'
    for key in path:
        if EMA_NAME.search(key):
            return StateRole.EMA, f'"{key}" names averaged weights'
    named = sum(1 for t in group.tensors if _PARAMETER_NAME.search(t.name))
    total = len(group.tensors)
    if group.is_module:
        return StateRole.WEIGHTS, f"it is a pickled module ({group.kind})"
    last = path[-1] if path else ""
    training = next(((key, what) for key in path for pattern, what in _TRAINING if pattern.search(key)), None)
    if training is not None and not any(_LEARNED.search(t.name) for t in group.tensors):
        return StateRole.TRAINING, f'"{training[0]}" names the state of {training[1]}'
    if all(
        t.dtype == "uint8" and len(t.shape) == 1 and _GENERATOR.search(t.name[:_LONGEST_KEY]) for t in group.tensors
    ):
        return StateRole.TRAINING, "its bytes are states of random number generators"
    aside = next((key for key in path if _ASIDE.search(key)), None)
    if aside is not None and not named:
        return StateRole.OTHER, f'"{aside}" names something beside the model'
    if named * 2 >= total:
        return StateRole.WEIGHTS, f"{named} of {total} names end like parameters (.weight, .bias, .running_mean)"
    if _WEIGHTS.match(last) and (total > 1 or _STATE_DICT.match(last)):
        return StateRole.WEIGHTS, f'"{last}" names weights'
    if not path and total > len(group.others):
        return StateRole.WEIGHTS, f"the file itself maps {total} names to tensors"
    return StateRole.OTHER, f"{total} named tensors whose names do not tell what they are for"


def _first_word(group: NamedTensors) -> str:
    """What every name begins with: fisher of fisher.fc1.weight. "" where a single level says no such thing."""
    firsts = {t.name[:_LONGEST_KEY].partition(".")[0] for t in group.tensors}
    return firsts.pop() if len(firsts) == 1 and len(group.tensors) > 1 else ""


_ROLE_ORDER = {
    StateRole.WEIGHTS: 0,
    StateRole.EMA: 1,
    StateRole.OTHER: 2,
    StateRole.OPTIMIZER: 3,
    StateRole.TRAINING: 4,
}


def _rank(state: StateDict) -> tuple[int, int, int, int]:
    """Role first; then what is named as weights; then the larger one; of two alike what a plain load comes upon."""
    last = state.path[-1][:_LONGEST_KEY] if state.path else "state_dict"
    return (
        _ROLE_ORDER[state.role],
        0 if _WEIGHTS.match(last) or state.is_module else 1,
        -sum(t.nbytes for t in state.tensors),
        1 if state.path else 0,
    )


def same_numbers(one: StateDict, other: StateDict) -> bool:
    """Whether both show the same bytes, as two names for one state dict do."""

    def places(state: StateDict) -> set[tuple[object, ...]]:
        return {(t.name, t.storage_id, t.offset, t.shape, t.stride) for t in state.tensors}

    return all(t.storage_id is not None for t in one.tensors) and places(one) == places(other)


def is_earlier_of_two(state: StateDict, others: Sequence[StateDict]) -> bool:
    """Whether its key only tells it from another set of the same network: "before" beside "after"."""
    if not state.path or not is_earlier(state.path[-1]):
        return False
    own = _outline(state)
    return any(other is not state and _outline(other) == own for other in others)


def averaged_prefixes(state: StateDict) -> list[str]:
    """First segments that name averages and have just the tensors, by name and shape, that another one has."""
    groups: dict[str, dict[str, tuple[int, ...]]] = {}
    for tensor in state.tensors:
        first, _, rest = tensor.name.partition(".")
        groups.setdefault(first, {})[rest] = tensor.shape
    return [
        name
        for name, held in groups.items()
        if EMA_NAME.search(name) and len(held) > 1 and any(held == other for n, other in groups.items() if n != name)
    ]


def averaged_copies(checkpoint: Checkpoint, chosen: StateDict) -> tuple[tuple[str, int], ...]:
    """(where, how many tensors) of each averaged copy of the chosen weights: a state dict of its own, or a prefix in
    it, whose tensors have the names and shapes of the others."""
    found = [
        (f'"{state.label}"', len(state.tensors))
        for state in checkpoint.state_dicts
        if state is not chosen and state.role is StateRole.EMA and state.tensors
    ]
    shapes = {tensor.name: tensor.shape for tensor in chosen.tensors}
    prefixes = dict.fromkeys(averaged_prefixes(chosen))
    for first in dict.fromkeys(name.partition(".")[0] for name in shapes):
        held = {name.removeprefix(f"{first}."): shape for name, shape in shapes.items() if name.startswith(f"{first}.")}
        if EMA_NAME.search(first) and len(held) > 1 and all(shapes.get(name) == shape for name, shape in held.items()):
            prefixes[first] = None
    return (*found, *((f'"{p}."', sum(name.startswith(f"{p}.") for name in shapes)) for p in prefixes))
