"""What load_state_dict is given: a path, the outer dictionary, an entry that is not there, a whole model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from inspector.checkpoint.types import StateDict
from inspector.error_messages.loading_code.entry import Code, Fault, Found, in_place, with_argument, written
from inspector.error_messages.loading_code.events import Is, Load, Read, Scope, dotted
from inspector.units import counted

_OPENED = 'torch.load({}, map_location="cpu", weights_only=True)'
# Entries of training checkpoints that no network has as a key, and those that hold its weights, the usual first.
_BESIDE = ("epoch", "optimizer", "optimizer_state_dict", "scheduler", "loss", "best_acc1", "best_acc", "args", "step")
_WEIGHTS = ("state_dict", "model_state_dict", "model", "net", "model_state", "weights")


def _path(code: Code) -> Iterator[Found]:
    for _, load in code.loads:
        if load.given.is_ is Is.PATH and load.argument is not None:
            opened = _OPENED.format(written(load.argument))
            yield Found(
                node=load.node,
                says=f"load_state_dict takes a dict of tensors, and {written(load.argument)} is a path.",
                why="torch raises a TypeError or an AttributeError: a text has no keys to copy.",
                steps=("Open the file first.",),
                patch=in_place(load.statement, load.node, with_argument(load, opened)),
            )


def _outer(code: Code) -> Iterator[Found]:
    for scope, load in code.loads:
        read = load.given.read
        if load.given.is_ is not Is.READ or read is None or not read.is_torch or _of_optimizer(load, scope):
            continue
        held = _weights(code)
        save = code.save_of(read)
        asked = scope.keys.get(read.name, []) if read.name else []
        if held is not None:
            if not held.path or held.is_module:
                continue
            keys, sure = held.path, f"its weights lie under {_access(held.path)}"
        elif save is not None and save.keys:
            key = next((key for key, is_state in save.keys if is_state), "")
            if not key:
                continue
            keys, sure = (key,), f"it was saved here with its weights under {key!r}"
        else:
            beside = [key for key in asked if key in _BESIDE]
            inner = [key for key in asked if key in _WEIGHTS]
            if not beside and not inner:
                continue
            keys = (inner[0],) if inner else ("state_dict",)
            sure = f"this code takes {(inner or beside)[0]!r} from it, which is no tensor's name"
        argument = f"{written(load.argument or load.node)}{_access(keys)}"
        yield Found(
            node=load.node,
            says=f"load_state_dict is given the whole checkpoint: {sure}.",
            why="Its entries (epoch, optimizer, ...) are unexpected, and every tensor of the model is missing.",
            steps=("Give it the entry that holds the weights.",),
            patch=in_place(load.statement, load.node, with_argument(load, argument)),
        )


def _no_such_entry(code: Code) -> Iterator[Found]:
    """With the file, or the line that saved it: an entry that is not there."""
    for _, load in code.loads:
        read, key = load.given.read, load.given.key
        if load.given.is_ is not Is.ENTRY or read is None or not key or not read.is_torch:
            continue
        held, save = _weights(code), code.save_of(read)
        if held is not None and code.checkpoint is not None and not held.is_module:
            there = [label for label, _ in code.checkpoint.root.children]
            if key in there or (held.path and held.path[0] == key):
                continue
            says = f"{code.checkpoint.origin.name} has no entry {key!r}: "
            says += f"its weights lie under {_access(held.path)}." if held.path else "it is the state dict itself."
            keys: tuple[str, ...] = held.path
        elif save is not None and save.given.is_ is Is.STATE:
            says, keys = f"The file was saved here as the state dict itself and has no entry {key!r}.", ()
        elif save is not None and save.keys and key not in dict(save.keys):
            inner = next((name for name, is_state in save.keys if is_state), "")
            if not inner:
                continue
            says, keys = f"The file was saved here without an entry {key!r}; its weights are {inner!r}.", (inner,)
        else:
            continue
        base = written(load.argument.value) if isinstance(load.argument, ast.Subscript) else read.name
        yield Found(
            node=load.node,
            says=says,
            why="The lookup raises a KeyError before anything is loaded.",
            steps=("Take what is there.",),
            patch=in_place(load.statement, load.node, with_argument(load, f"{base}{_access(keys)}")),
        )


def _whole_model(code: Code) -> Iterator[Found]:
    """A saved module given to load_state_dict, and a state dict used as a model."""
    held = _weights(code)
    for scope in code.scopes:
        for load in scope.loads:
            read = load.given.read
            save = code.save_of(read)
            saved = save is not None and not save.keys and save.given.is_ in (Is.UNKNOWN, Is.PARALLEL, Is.COMPILED)
            saved = saved and save is not None and dotted(save.what) in _all_models(code)
            in_file = held is not None and held.is_module and not held.path
            if load.given.is_ is Is.READ and read is not None and read.is_torch and (saved or in_file):
                argument = f"{written(load.argument or load.node)}.state_dict()"
                where = "this code saves" if saved else "the file holds"
                yield Found(
                    node=load.node,
                    says=f"load_state_dict is given a whole model: {where} the module itself, not its state_dict().",
                    why="A module is no dict of tensors. Opening it runs the code that it names: trust the file first.",
                    steps=("Save model.state_dict(), or take it from what was opened.",),
                    patch=in_place(load.statement, load.node, with_argument(load, argument)),
                )
        for read in scope.reads:
            yield from _used_as_model(code, scope, read, held)


def _used_as_model(code: Code, scope: Scope, read: Read, held: StateDict | None) -> Iterator[Found]:
    if not read.name or not read.is_torch:
        return
    used = [d for d in scope.did if d.receiver == read.name and d.method in ("", "eval", "cuda", "parameters", "train")]
    if not used or sum(dotted(target) == read.name for _, target, _, _ in scope.assigned) > 1:
        return
    save = code.save_of(read)
    only = read.option("weights_only")
    never = isinstance(only, ast.Constant) and only.value is True
    if save is not None and (save.given.is_ is Is.STATE or save.keys):
        sure = "it was saved here as a state dict"
    elif held is not None and not held.is_module:
        sure = f"the file holds a state dict of {counted(len(held.tensors), 'tensor')}"
    elif never and held is None:
        sure = "weights_only=True gives tensors and containers only"
    else:
        return
    yield Found(
        node=read.statement,
        says=f"{read.name} is used as a model, and torch.load gives back a dict: {sure}.",
        why="A dict has no eval() and cannot be called: numbers were saved, not the network's code.",
        steps=("Build the model of the class that was trained, and load the weights into it.",),
        patch=f"state_dict = {written(read.node)}\n{read.name} = ...  # the model's class, as it was trained\n"
        f"{read.name}.load_state_dict(state_dict{_access(held.path) if held is not None else ''})",
    )


def _weights(code: Code) -> StateDict | None:
    return code.checkpoint.weights if code.checkpoint is not None else None


def _all_models(code: Code) -> set[str]:
    return {name for scope in code.scopes for name in code.models(scope)}


def _of_optimizer(load: Load, scope: Scope) -> bool:
    """Of an optimizer, a schedule, a scaler: another state dict than the model's."""
    words = ("optim", "sched", "scaler", "ema", "criterion")
    return load.on.is_ is Is.OPTIMIZER or any(word in load.receiver.lower() for word in words)


def _access(keys: tuple[str, ...]) -> str:
    return "".join(f"[{key!r}]" for key in keys)


FAULTS = (
    Fault(kind="path-as-state-dict", find=_path),
    Fault(kind="outer-dictionary", find=_outer),
    Fault(kind="entry-not-in-file", find=_no_such_entry),
    Fault(kind="whole-model-or-state-dict", find=_whole_model),
)
