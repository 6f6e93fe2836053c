"""What comes behind loading: the answer that nobody reads, the mode, the optimizer's device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from inspector.error_messages.loading_code.entry import Code, Fault, Found, is_assigned_to, written
from inspector.error_messages.loading_code.events import Is, Load, Scope, dotted

_TRAINS = frozenset({"backward", "zero_grad", "Trainer", "GradScaler", "CrossEntropyLoss", "fit"})
_INFERS = frozenset({"no_grad", "inference_mode", "argmax", "softmax", "topk", "sigmoid"})
_MOVES = ("to", "cuda")


def _lax(code: Code) -> Iterator[Found]:
    for _, load in code.loads:
        thrown = isinstance(load.statement, ast.Expr) and load.statement.value is load.node
        thrown = thrown or (
            is_assigned_to(load.statement) == ["_"] and getattr(load.statement, "value", None) is load.node
        )
        if load.is_lax and thrown:
            yield Found(
                node=load.statement,
                says="strict=False loads what fits by name and is silent about the rest, and its answer is thrown "
                "away.",
                why="Where no name fits, nothing is loaded and nothing is raised: the model keeps the weights that "
                "it was built with.",
                steps=(
                    *_nested(code, load),
                    "Read which keys are missing and unexpected.",
                    "Behind loading, inspector.check_loaded(model, path) says which tensors are the file's.",
                ),
                patch=f"result = {written(load.node)}\nprint(result.missing_keys, result.unexpected_keys)",
            )  # fmt: skip


def _nested(code: Code, load: Load) -> tuple[str, ...]:
    """How to see whether what torch.load gives is a training checkpoint, where no file and no saving tells it."""
    read = load.given.read
    if load.given.is_ is not Is.READ or read is None or not read.is_torch or load.argument is None:
        return ()
    if code.checkpoint is not None or code.save_of(read) is not None:
        return ()
    given = written(load.argument)
    return (
        'A training checkpoint often holds its weights one level down, under "model" or "state_dict" say: '
        f'print(list({given})[:5]) shows it. If one stands there, load {given}["model"], or what it is called. The '
        "Repair page's box for code, and inspector explain-error CODE FILE, name the place in the file.",
    )


def _no_eval(code: Code) -> Iterator[Found]:
    everything = {did.method for scope in code.scopes for did in scope.did} | code.names
    if everything & _TRAINS or "eval" in everything or not everything & _INFERS:
        return
    for scope, load in code.loads:
        calls = [
            did for did in scope.did
            if did.receiver == load.receiver and did.method == "" and did.order > load.order
        ]  # fmt: skip
        modes = [did for did in scope.did if did.receiver == load.receiver and did.method == "train"]
        if not calls or modes or _is_other(load.receiver):
            continue
        yield Found(
            node=load.statement,
            says=f"{load.receiver} is run without {load.receiver}.eval(): batch norms take the batch's statistics "
            "and dropouts drop.",
            why="A new module is in train mode; neither loading nor torch.no_grad() changes that.",
            steps=("Put it into evaluation mode behind loading.",),
            patch=f"{written(load.statement)}\n{load.receiver}.eval()",
        )
        return


def _moved_late(code: Code) -> Iterator[Found]:
    for scope, load in code.loads:
        if load.on.is_ is not Is.OPTIMIZER:
            continue
        models = _models_of(load.receiver, scope)
        late = next(
            (d for d in scope.did if d.order > load.order and d.method in _MOVES and d.receiver in models), None
        )
        if late is not None:
            move = written(late.node)
            yield Found(
                node=load.statement,
                says=f"The optimizer is loaded before {move}: its moments stay on the old device.",
                why="load_state_dict puts each of them where its parameter lies by then; the parameter moves on, "
                "they do not, and the first step fails.",
                steps=("Move the model first, then load the optimizer.",),
                patch=f"{move}\n{written(load.statement)}",
            )


def _models_of(optimizer: str, scope: Scope) -> set[str]:
    """Names whose parameters it was made with."""
    found: set[str] = set()
    for _, target, value, known in scope.assigned:
        if known.is_ is Is.OPTIMIZER and dotted(target) == optimizer:
            for node in ast.walk(value):
                if isinstance(node, ast.Attribute) and node.attr in ("parameters", "named_parameters"):
                    found.add(dotted(node.value))
    return found


def _is_other(receiver: str) -> bool:
    return any(word in receiver.lower() for word in ("optim", "sched", "scaler", "loss", "criterion"))


FAULTS = (
    Fault(kind="lax-loading-unread", find=_lax),
    Fault(kind="no-eval", find=_no_eval),
    Fault(kind="optimizer-before-move", find=_moved_late),
)
