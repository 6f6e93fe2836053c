"""On which side of DataParallel, DDP or torch.compile the weights are loaded."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.error_messages.loading_code.entry import Code, Fault, Found, in_place, written
from inspector.error_messages.loading_code.events import Is, Load, Scope

_SEGMENT = {Is.PARALLEL: "module", Is.COMPILED: "_orig_mod"}
_WHO = {Is.PARALLEL: "DataParallel and DDP put", Is.COMPILED: "torch.compile puts"}
# What takes a wrapper's segment off, or unwraps.
_STRIPS = frozenset(
    {"replace", "removeprefix", "consume_prefix_in_state_dict_if_present", "lstrip", "sub", "partition"}
)


def _side(code: Code) -> Iterator[Found]:
    if code.names & _STRIPS or any(word.startswith(("module", "_orig_mod")) for word in code.words):
        return
    for scope, load in code.loads:
        if load.on.is_ in _SEGMENT and load.given.is_ not in (Is.PATH,) and not _is_optimizer(load):
            yield from _into_wrapped(code, scope, load)
        elif load.given.is_ in (Is.READ, Is.ENTRY) and load.on.is_ is Is.UNKNOWN and not _is_optimizer(load):
            yield from _into_bare(code, load)


def _into_wrapped(code: Code, scope: Scope, load: Load) -> Iterator[Found]:
    segment = _SEGMENT[load.on.is_]
    file = code.wrapper_of_file
    if file is not None:
        if file == segment:
            return
        sure, if_so = "the file's names have none", False
    else:
        save = code.save_of(load.given.read)
        ways = {one.on.is_ for one in code.taken if one.receiver != load.receiver or one.on.is_ in _SEGMENT}
        if load.on.is_ in ways or (load.given.is_ is Is.STATE and not ways):
            return
        bare = any(one.receiver.endswith(f".{segment}") for one in code.taken) or (save is not None)
        sure, if_so = ("the file was saved here from the model inside", False) if bare else (
            "if the file was saved from a bare model, its names have none", True
        )  # fmt: skip
    inner = f"{load.receiver}.{segment}"
    yield Found(
        node=load.node,
        says=f'{_WHO[load.on.is_]} "{segment}." before every name, and this loads into the wrapped model: {sure}.',
        why="Every key would be missing, and every key of the file unexpected; with strict=False nothing is loaded.",
        steps=("Load into the model inside, or before it is wrapped.",),
        patch=in_place(load.statement, load.node.func, f"{inner}.load_state_dict"),
        if_so=if_so,
    )


def _into_bare(code: Code, load: Load) -> Iterator[Found]:
    file = code.wrapper_of_file
    if load.receiver.endswith((".module", "._orig_mod")):
        return
    if file:
        sure, segment = "every name of the file begins with it", file
    elif file == "":
        return
    else:
        save = code.save_of(load.given.read)
        if save is None:
            return
        wrapped = [
            one.on.is_
            for one in code.taken
            if one.on.is_ in _SEGMENT and f"{one.receiver}.state_dict()" in written(save.what)
        ]
        if not wrapped:
            return
        sure, segment = "the file was saved here from the wrapped model", _SEGMENT[wrapped[0]]
    given = written(load.argument) if load.argument is not None else ""
    state = code.checkpoint.weights if code.checkpoint is not None else None
    if state is not None and load.given.is_ is Is.READ:
        # The whole checkpoint was given: its entry is named here too, so that this line is right by itself.
        given += "".join(f"[{key!r}]" for key in state.path)
    fixed = f'{{name.removeprefix("{segment}."): tensor for name, tensor in {given}.items()}}'
    yield Found(
        node=load.node,
        says=f'The model is not wrapped, and the names to load have "{segment}." before them: {sure}.',
        why="Every key would be missing, and every key of the file unexpected; with strict=False nothing is loaded.",
        steps=("Take the segment off, or save model.module.state_dict() next time.",),
        patch=in_place(load.statement, load.node, f"{written(load.node.func)}({fixed})"),
    )


def _is_optimizer(load: Load) -> bool:
    return load.on.is_ is Is.OPTIMIZER or any(word in load.receiver.lower() for word in ("optim", "sched", "scaler"))


FAULTS = (Fault(kind="wrong-side-of-wrapper", find=_side),)
