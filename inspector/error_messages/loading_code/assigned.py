"""Methods that are assigned, not called, or named without being called."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from inspector.error_messages.loading_code.entry import Code, Fault, Found, is_assigned_to, written
from inspector.error_messages.loading_code.events import Is, Load, Scope, dotted, sounds_like_state

_METHODS = ("state_dict", "load_state_dict")
_MODEL_WORDS = ("model", "net", "network", "encoder", "decoder", "backbone", "generator", "discriminator", "classifier")
_MODES = ("eval", "train", "cuda", "cpu", "zero_grad")
# What people call the answer of load_state_dict, which lists missing and unexpected keys.
_CHAIN = ("eval", "to", "cuda", "cpu", "train", "half", "float", "parameters", "state_dict", "forward")
_STRICT = (
    "strict=False is left out: with it no name that misses is told, and where none fits nothing is loaded. Where a "
    "part is meant to be missing, keep it and print what load_state_dict gives back.",
)


def _overwritten(code: Code) -> Iterator[Found]:
    for scope in code.scopes:
        models = code.models(scope)
        for statement, target, value, known in scope.assigned:
            if not isinstance(target, ast.Attribute) or target.attr not in _METHODS or known.is_ is Is.FUNCTION:
                continue
            owner = dotted(target.value)
            last = owner.rpartition(".")[2].lower()
            if owner in ("", "self", "cls") or not (
                owner in models or last.rstrip("0123456789").endswith(_MODEL_WORDS)
            ):
                continue
            is_state = known.is_ in (Is.READ, Is.ENTRY, Is.STATE)
            if not (is_state or known.is_ is Is.PATH or sounds_like_state(dotted(value))):
                continue
            given = written(value)
            if known.is_ is Is.PATH:
                given = f'torch.load({given}, map_location="cpu", weights_only=True)'
            yield Found(
                node=statement,
                says=f"{written(target)} = ... overwrites the method and loads nothing: {owner} keeps the weights that "
                "it had.",
                why="An attribute of the same name hides the method; Python raises nothing, and neither does torch.",
                steps=("Call load_state_dict with the state dict.",),
                patch=f"{owner}.load_state_dict({given})",
            )


def _result_kept(code: Code) -> Iterator[Found]:
    for scope, load in code.loads:
        names = is_assigned_to(load.statement)
        root = load.receiver.partition("(")[0]
        if isinstance(load.statement, ast.Assign) and load.statement.value is load.node:
            used = {one.method for one in scope.did if one.receiver in names and one.node is not load.node}
            attributes = {one for name in names for one in code.attributes.get(name, ())}
            reassigned = sum(dotted(target) in names for _, target, _, _ in scope.assigned) > 1
            answer = attributes & {"missing_keys", "unexpected_keys"}
            if root not in names and (answer or reassigned or not used & {*_CHAIN, ""}):
                continue
        elif not _is_chained(load.node, load.statement):
            continue
        receiver = written(load.node.func).removesuffix(".load_state_dict")
        name = root if root in names or not names else names[0]
        made = f"{name} = {receiver}\n" if receiver != name and names else ""
        name = name if made else receiver
        yield Found(
            node=load.statement,
            says="load_state_dict gives back the lists of missing and unexpected keys, not the model.",
            why="It changes the model in place; what is assigned here is no model any more.",
            steps=("Call it on a line of its own and go on with the model.", *(_STRICT if load.is_lax else ())),
            patch=f"{made}{name}.load_state_dict({', '.join(_arguments(load))})",
        )


def _arguments(load: Load) -> list[str]:
    """As they are, but for strict=False: on a line of its own nobody reads what was passed over."""
    node = load.node
    given = node.args[:1] if load.is_lax else node.args
    named = [one for one in node.keywords if not (load.is_lax and one.arg == "strict")]
    return [
        *map(written, given),
        *(f"{one.arg}={written(one.value)}" if one.arg else f"**{written(one.value)}" for one in named),
    ]


def _is_chained(load: ast.Call, statement: ast.stmt) -> bool:
    """Whether a method of models is called on its answer."""
    return any(
        isinstance(node, ast.Attribute) and node.value is load and node.attr in _CHAIN for node in ast.walk(statement)
    )


def _alike(code: Code, scope: Scope) -> frozenset[str]:
    """Models, and names that the same call made as one of them."""
    made = {dotted(target): dotted(value.func) for _, target, value, _ in scope.assigned if isinstance(value, ast.Call)}
    models = code.models(scope)
    makers = {made[name] for name in models if made.get(name)}
    return models | {name for name, by in made.items() if by in makers}


def _not_called(code: Code) -> Iterator[Found]:
    for scope in code.scopes:
        for statement in scope.statements:
            value = statement.value if isinstance(statement, ast.Expr) else None
            if not isinstance(value, ast.Attribute) or value.attr not in _MODES:
                continue
            owner = dotted(value.value)
            if owner in code.models(scope) or (owner in scope.names and owner.lower().endswith(_MODEL_WORDS)):
                yield Found(
                    node=statement,
                    says=f"{written(value)} without parentheses does nothing.",
                    why="It names the method and does not call it.",
                    steps=("Call it.",),
                    patch=f"{written(value)}()",
                )
        passed = [(load.argument, load.node) for load in scope.loads] + [(save.what, save.node) for save in scope.saves]
        for given, call in passed:
            values = given.values if isinstance(given, ast.Dict) else [given]
            for value in values:
                if isinstance(value, ast.Attribute) and value.attr == "state_dict" and dotted(value) not in scope.names:
                    owner = dotted(value.value).rpartition(".")[2]
                    if owner not in _alike(code, scope) and not owner.lower().endswith((*_MODEL_WORDS, "optimizer")):
                        continue
                    yield Found(
                        node=call,
                        says=f"{written(value)} without parentheses is the method, not the weights.",
                        why="A method is no dict of tensors; saved, it takes the whole model's code with it.",
                        steps=("Call it.",),
                        patch=written(call).replace(written(value), f"{written(value)}()", 1),
                    )


FAULTS = (
    Fault(kind="method-overwritten", find=_overwritten),
    Fault(kind="result-taken-for-model", find=_result_kept),
    Fault(kind="method-not-called", find=_not_called),
)
