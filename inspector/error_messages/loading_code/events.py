"""What loading code does, in its order: reads a file, loads, saves, wraps, moves, evaluates.

A function's body is a scope of its own that knows the names of the module. Nothing is run, so a name that is set in two
branches is what the last of them made it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from inspector.error_messages.loading_code.snippet import Snippet

PARALLEL = ("DataParallel", "DistributedDataParallel", "DDP")
_OPTIMIZERS = ("Adam", "AdamW", "SGD", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "LBFGS", "Adamax")
_SAME = ("to", "cuda", "cpu", "half", "float", "double", "eval", "train", "requires_grad_", "deepcopy", "copy")
_PATH_WORDS = ("path", "file", "filename", "fname", "filepath")
_STATE_WORDS = ("state", "ckpt", "checkpoint", "weights", "state_dict", "sd", "loaded", "pretrained", "params")


class Is(StrEnum):
    """What a value is known to be."""

    READ = "what was read from a file"
    ENTRY = "an entry of it"
    STATE = "a state dict"
    PATH = "a path"
    PARALLEL = "a model in DataParallel or DDP"
    COMPILED = "a compiled model"
    OPTIMIZER = "an optimizer"
    FUNCTION = "a function"
    UNKNOWN = ""


@dataclass(frozen=True, slots=True)
class Value:
    """is_: what. read: the file it came from. key: of the entry."""

    is_: Is = Is.UNKNOWN
    read: Read | None = None
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """torch.load and its like. path: as written. name: what it is assigned to. by: the function, dotted."""

    node: ast.Call
    statement: ast.stmt
    by: str
    path: str
    name: str = ""

    @property
    def is_torch(self) -> bool:
        """Whether it is torch.load itself."""
        return self.by in ("torch.load", "load") or self.by.endswith("torch.load")

    def option(self, name: str) -> ast.expr | None:
        """A keyword's value."""
        return next((one.value for one in self.node.keywords if one.arg == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """RECEIVER.load_state_dict(ARGUMENT). on: what the receiver is; given: what the argument is."""

    node: ast.Call
    statement: ast.stmt
    receiver: str
    on: Value
    argument: ast.expr | None
    given: Value
    order: int

    @property
    def is_lax(self) -> bool:
        """Whether strict=False was given."""
        options = [one.value for one in self.node.keywords if one.arg == "strict"] or self.node.args[1:2]
        return bool(options) and isinstance(options[0], ast.Constant) and options[0].value is False


@dataclass(frozen=True, slots=True, kw_only=True)
class Save:
    """torch.save(WHAT, PATH). keys: of a dict, with whether each is a state dict."""

    node: ast.Call
    what: ast.expr
    given: Value
    path: str
    keys: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """RECEIVER.state_dict(): how a file's names come about. on: what the receiver is."""

    receiver: str
    on: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Did:
    """A method called on a name, or the name itself called (method ""). order: among all events of its scope."""

    receiver: str
    method: str
    node: ast.AST
    order: int


@dataclass(slots=True)
class Scope:
    """One function, or the module."""

    names: dict[str, Value] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)
    saves: list[Save] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    did: list[Did] = field(default_factory=list)
    statements: list[ast.stmt] = field(default_factory=list)
    assigned: list[tuple[ast.stmt, ast.expr, ast.expr, Value]] = field(default_factory=list)
    # Keys by which a name was subscripted or asked with .get().
    keys: dict[str, list[str]] = field(default_factory=dict)
    read_by_node: dict[int, Read] = field(default_factory=dict)
    count: int = 0


def scopes_of(snippet: Snippet) -> tuple[Scope, ...]:
    """The module's scope first."""
    module = Scope()
    _walk(snippet.tree.body, module)
    made = [module]
    for node in ast.walk(snippet.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            module.names.setdefault(node.name, Value(Is.FUNCTION))
            scope = Scope(names=dict(module.names))
            for argument in (*node.args.args, *node.args.kwonlyargs):
                scope.names.pop(argument.arg, None)
            _walk(node.body, scope)
            made.append(scope)
    return tuple(made)


def _walk(body: list[ast.stmt], scope: Scope) -> None:
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            scope.names[statement.name] = Value(Is.FUNCTION)
            continue
        scope.statements.append(statement)
        inner = [value for name, value in ast.iter_fields(statement) if name in ("body", "orelse", "finalbody")]
        nested = [one for part in inner if isinstance(part, list) for one in part if isinstance(one, ast.stmt)]
        handlers: list[ast.ExceptHandler] = getattr(statement, "handlers", [])
        cases: list[ast.match_case] = getattr(statement, "cases", [])
        nested += [one for handler in handlers for one in handler.body]
        nested += [one for case in cases for one in case.body]
        for node in _own(statement, set(map(id, nested))):
            _note(node, statement, scope)
        _assign(statement, scope)
        _walk(nested, scope)


def _own(statement: ast.stmt, others: set[int]) -> Iterator[ast.AST]:
    """Its expressions, inner calls before outer ones, without the statements inside it."""
    for child in ast.iter_child_nodes(statement):
        if id(child) in others or isinstance(child, ast.ExceptHandler | ast.match_case):
            continue
        # Breadth first and turned over: what is deeper is evaluated first.
        yield from reversed(list(ast.walk(child)))


def _note(node: ast.AST, statement: ast.stmt, scope: Scope) -> None:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        scope.keys.setdefault(dotted(node.value), []).append(str(node.slice.value))
    if not isinstance(node, ast.Call):
        return
    scope.count += 1
    by = dotted(node.func)
    last = last_of(node.func)
    receiver = dotted(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    if last == "load_state_dict" and isinstance(node.func, ast.Attribute):
        argument = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "state_dict"), None)
        scope.loads.append(
            Load(
                node=node,
                statement=statement,
                receiver=receiver or _text(node.func.value),
                on=value_of(node.func.value, scope),
                argument=argument,
                given=value_of(argument, scope) if argument is not None else Value(),
                order=scope.count,
            )
        )
    elif last == "state_dict" and isinstance(node.func, ast.Attribute) and receiver:
        scope.taken.append(Taken(receiver=receiver, on=value_of(node.func.value, scope)))
    elif by.endswith("torch.save") and len(node.args) > 1:
        what = node.args[0]
        pairs = zip(what.keys, what.values, strict=True) if isinstance(what, ast.Dict) else ()
        known = [(key, value_of(value, scope).is_ is Is.STATE) for key, value in pairs]
        keys = tuple((str(key.value), is_state) for key, is_state in known if isinstance(key, ast.Constant))
        scope.saves.append(Save(node=node, what=what, given=value_of(what, scope), path=_text(node.args[1]), keys=keys))
    elif reads(node):
        path = _text(node.args[0]) if node.args else ""
        name = ""
        if isinstance(statement, ast.Assign) and statement.value is node:
            name = dotted(statement.targets[0])
        read = Read(node=node, statement=statement, by=by, path=path, name=name)
        scope.reads.append(read)
        scope.read_by_node[id(node)] = read
    if last == "get" and node.args and isinstance(node.args[0], ast.Constant):
        scope.keys.setdefault(receiver, []).append(str(node.args[0].value))
    if isinstance(node.func, ast.Attribute):
        scope.did.append(Did(receiver=receiver, method=last, node=node, order=scope.count))
    if by:
        scope.did.append(Did(receiver=by, method="", node=node, order=scope.count))


def _assign(statement: ast.stmt, scope: Scope) -> None:
    if isinstance(statement, ast.Assign):
        targets, value = statement.targets, statement.value
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets, value = [statement.target], statement.value
    else:
        return
    known = value_of(value, scope)
    for target in targets:
        scope.assigned.append((statement, target, value, known))
        if isinstance(target, ast.Name | ast.Attribute):
            scope.names[dotted(target)] = known


def reads(node: ast.expr) -> bool:
    """Whether this call reads weights from a file or an address."""
    if not isinstance(node, ast.Call):
        return False
    by = dotted(node.func)
    return by in ("torch.load", "load_file", "load_state_dict_from_url", "load_url") or by.endswith(
        (".torch.load", "torch.load", ".load_file", ".load_state_dict_from_url", ".load_url")
    )


def value_of(node: ast.expr, scope: Scope) -> Value:
    """What an expression is known to be, from the names set before it."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return Value(Is.PATH)
    if isinstance(node, ast.Lambda):
        return Value(Is.FUNCTION)
    if isinstance(node, ast.Name | ast.Attribute):
        known = scope.names.get(dotted(node), Value())
        if known.is_ is Is.UNKNOWN and dotted(node).rpartition(".")[2].lower().rpartition("_")[2] in _PATH_WORDS:
            return Value(Is.PATH)
        return known
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add | ast.Mod):
        sides = (value_of(node.left, scope).is_, value_of(node.right, scope).is_)
        return Value(Is.PATH) if Is.PATH in sides else Value()
    if isinstance(node, ast.Subscript):
        base = value_of(node.value, scope)
        if base.is_ is Is.PATH:
            return base
        key = str(node.slice.value) if isinstance(node.slice, ast.Constant) else ""
        return Value(Is.ENTRY, base.read, key) if base.is_ is Is.READ else Value()
    return _of_call(node, scope) if isinstance(node, ast.Call) else Value()


def _of_call(node: ast.Call, scope: Scope) -> Value:
    by = dotted(node.func)
    last = last_of(node.func)
    if reads(node):
        found = scope.read_by_node.get(id(node))
        path = _text(node.args[0]) if node.args else ""
        return Value(Is.READ, found or Read(node=node, statement=ast.Pass(), by=by, path=path))
    if isinstance(node.func, ast.Attribute) and last == "state_dict":
        return Value(Is.STATE)
    if last == "get" and isinstance(node.func, ast.Attribute):
        base = value_of(node.func.value, scope)
        # With a default it may be the whole again, which is right for both kinds of files.
        return Value(Is.ENTRY, base.read) if base.is_ is Is.READ else Value()
    if last in PARALLEL:
        return Value(Is.PARALLEL)
    if by == "torch.compile":
        return Value(Is.COMPILED)
    if last in _OPTIMIZERS:
        return Value(Is.OPTIMIZER)
    if by.endswith("path.join") or last in ("Path", "PosixPath", "hf_hub_download"):
        return Value(Is.PATH)
    if last in ("glob", "iglob", "listdir"):
        return Value(Is.PATH)
    if by in ("sorted", "max", "min", "list", "str", "next") and node.args:
        return value_of(node.args[0], scope) if value_of(node.args[0], scope).is_ is Is.PATH else Value()
    if last in _SAME and isinstance(node.func, ast.Attribute):
        return value_of(node.args[0] if last in ("deepcopy", "copy") and node.args else node.func.value, scope)
    if last in ("__get__", "MethodType", "partial", "wraps"):
        return Value(Is.FUNCTION)
    return Value()


def sounds_like_state(name: str) -> bool:
    """Whether a name is one that people give to weights: "ckpt", "best_weights"."""
    last = name.rpartition(".")[2].lower()
    return last in _STATE_WORDS or any(last.endswith(f"_{word}") for word in _STATE_WORDS)


def dotted(node: ast.AST) -> str:
    """ "model.module" of names and attributes; "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def last_of(node: ast.expr) -> str:
    """What is called: "DataParallel" of nn.DataParallel, "cuda" of Net().cuda."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except RecursionError:
        return ""
