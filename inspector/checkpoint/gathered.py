"""Sets of named tensors that lie apart in a file and are the parts of one model: {"encoder": ..., "decoder": ...}.

A set that is made of several looks like any other: its tensors have the names that they have in the model. Which sets
belong together only a target tells (`keys/gathering.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.checkpoint.tree import TreeRoom, module_tree
from inspector.checkpoint.types import Gathered, StateDict, StateRole


def gather(states: Sequence[StateDict], parts: Sequence[Gathered], parent: tuple[str, ...]) -> StateDict:
    """The sets as one, each under its prefix, in this order. parent: the path that all of theirs begin with.

    Raises KeyError for a part whose set is none of the states.
    """
    by_path = {state.path: state for state in states}
    held = [(part, by_path[part.path]) for part in parts]
    tensors = tuple(replace(t, name=part.prefix + t.name) for part, state in held for t in state.tensors)
    named = " and ".join(state.label for _, state in held[:3]) + (f" and {len(held) - 3} more" if held[3:] else "")
    return StateDict(
        path=parent,
        role=StateRole.WEIGHTS,
        why="the target has each of these sets as a part",
        kind="several sets",
        tensors=tensors,
        modules=module_tree(tensors, TreeRoom(len(tensors))),
        # What lies beside loose tensors at the top are the parts themselves.
        others=tuple(
            part.prefix + n for part, state in held if part.prefix and not part.is_module for n in state.others
        ),
        is_module=any(part.is_module for part in parts),
        ordered=all(state.ordered for _, state in held),
        versions=tuple(
            ((part.prefix + path).rstrip("."), version)
            for part, state in held
            for path, version in state.versions
            if part.prefix or path
        ),
        odd_versions=any(state.odd_versions for _, state in held),
        odd_keys=tuple(pair for part, state in held if part.prefix for pair in state.odd_keys),
        gathered=tuple(parts),
        title=named,
    )
