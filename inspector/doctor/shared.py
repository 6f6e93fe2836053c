"""One object under several names, and units that are all alike: layers that were to be different and are not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.nn.parameter import is_lazy

from inspector.doctor.constructors import called_name, class_of, parsed_source, value_given
from inspector.doctor.frames import source_line
from inspector.doctor.own_layers import file_of, is_own_class
from inspector.doctor.report import SourceLine
from inspector.findings import Finding, FindingKind, Severity

SAME_OBJECT = FindingKind(
    "same-object", Severity.NOTICE, "Entries of a list are one and the same layer", (Severity.WARNING,)
)
ALIKE = FindingKind("units-alike", Severity.WARNING, "All units of a layer have the same weights", (Severity.NOTICE,))
_RANDOM = "Start weights at random: nn.init.kaiming_normal_, xavier_uniform_ or orthogonal_; biases may be zero."
_NUMBER = re.compile(r"(?:^|(?<=\.))\d+(?=\.|$)")
# Words with which a source says that it means it.
_MEANT = re.compile(r"shar|tied|tie\b|recurr|univers|albert|weight.?tying|same layer|reus", re.IGNORECASE)


def find_same_objects(model: nn.Module) -> Iterator[Finding]:
    """One module with weights at several numbers of a list: [layer] * 6 makes no copies.

    Sharing may be meant: it is a warning only where a list is multiplied and nothing near the line says so.
    """
    by_object: dict[int, list[str]] = {}
    modules: dict[int, nn.Module] = {}
    for path, module in model.named_modules(remove_duplicate=False):
        if path and any(True for _ in module.parameters()):
            by_object.setdefault(id(module), []).append(path)
            modules[id(module)] = module
    told: list[str] = []
    for ident, paths in by_object.items():
        groups: dict[str, list[str]] = {}
        for path in paths:
            groups.setdefault(_NUMBER.sub("#", path), []).append(path)
        for group in groups.values():
            if len(group) < 2 or any(group[0].startswith(f"{before}.") for before in told):
                continue
            told += group
            yield _same(model, modules[ident], group)


def _same(model: nn.Module, module: nn.Module, paths: Sequence[str]) -> Finding:
    weights = sum(p.numel() for p in module.parameters())
    line, multiplied, meant = _where(model, paths[0])
    at = f" ({line.file}, line {line.line}: {line.text})" if line is not None else ""
    how = "So the list holds one object n times. " if multiplied else ""
    return SAME_OBJECT.found(
        f"{paths[0]} to {paths[-1]} are one and the same object ({type(module).__name__}, {weights:,} weights in all, "
        f"not {len(paths) * weights:,}){at}.",
        severity=Severity.WARNING if multiplied and not meant else None,
        subjects=tuple(paths),
        evidence=(("objects", 1), ("places", len(paths)), ("weights", weights)),
        remedy=f"{how}Where each is to learn for itself: make it anew in a comprehension, "
        f"nn.ModuleList({type(module).__name__}(...) for _ in range({len(paths)})), or copy.deepcopy.",
    )


def _where(model: nn.Module, path: str) -> tuple[SourceLine | None, bool, bool]:
    """(line that fills the list, whether it multiplies one, whether words nearby say that this is meant)."""
    parts = path.split(".")
    for end in range(len(parts) - 1, -1, -1):
        holder = model.get_submodule(".".join(parts[:end]))
        found = class_of(holder) if is_own_class(holder) else None
        if found is None:
            continue
        file, written, _ = found
        parsed = parsed_source(file)
        for statement in (n for n in ast.walk(written) if isinstance(n, ast.Assign)):
            value = value_given(statement, parts[end])
            if value is None or parsed is None:
                continue
            near = " ".join(parsed[1][max(0, statement.lineno - 3) : (statement.end_lineno or statement.lineno) + 1])
            words = f"{near} {ast.get_docstring(written) or ''} {written.name}"
            return source_line(file, statement.lineno), _multiplies(written, value), bool(_MEANT.search(words))
    return None, False, False


def _multiplies(written: ast.ClassDef, value: ast.expr) -> bool:
    """[layer] * n, where that stands or in the variable that is named there."""
    names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
    assigned = [n.value for n in ast.walk(written) if isinstance(n, ast.Assign) and _targets(n) & names]
    for node in (one for part in (value, *assigned) for one in ast.walk(part)):
        if isinstance(node, ast.ListComp | ast.GeneratorExp) and isinstance(node.elt, ast.Name):
            own = {n.id for one in node.generators for n in ast.walk(one.target) if isinstance(n, ast.Name)}
            # A name of its own for what is made once; self.head is shared by whoever writes so.
            if node.elt.id not in own:
                return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            lists = [one for one in (node.left, node.right) if isinstance(one, ast.List | ast.Tuple)]
            if lists and len(lists[0].elts) == 1 and isinstance(lists[0].elts[0], ast.Name | ast.Call):
                return True
    return False


def _targets(statement: ast.Assign) -> set[str]:
    return {one.id for one in statement.targets if isinstance(one, ast.Name)}


def find_alike(model: nn.Module, used: set[int]) -> Iterator[Finding]:
    """Linear, convolutional and recurrent layers of which every unit has the weights of every other, and not zeros.

    They get the same gradient and stay alike. used: ids of the tensors that ran.
    """
    alike: list[tuple[str, nn.Module, float | None]] = []
    zeros: list[str] = []
    layers = 0
    kinds: dict[str, int] = {}
    for path, module in model.named_modules():
        weights = _of_units(module)
        ran = [w for w in weights if id(w) in used and w.requires_grad and not (w.is_meta or is_lazy(w))]
        if not ran:
            continue
        kinds[type(module).__name__] = kinds.get(type(module).__name__, 0) + 1
        layers += 1
        zeros += [] if any(bool(w.detach().any()) for w in ran) else [path]
        if all(map(_is_alike, ran)):
            flat = ran[0].detach().reshape(-1)
            alike.append((path, module, float(flat[0]) if bool((flat == flat[0]).all()) else None))
    # One that ends a branch is often meant so (ReZero, adapters, zero convolutions); most of them are not.
    if len(zeros) > 1 and 2 * len(zeros) > layers:
        named = ", ".join(zeros[:4]) + (f" and {len(zeros) - 4:,} more" if len(zeros) > 4 else "")
        line = _set_by(model)
        at = f" ({line.file}, line {line.line}: {line.text})" if line is not None else ""
        yield ALIKE.found(
            f"{len(zeros)} of {layers} layers have nothing but zeros for weights: {named}{at}. Through such a layer "
            "no gradient reaches the one before it.",
            subjects=tuple(zeros),
            evidence=(("layers", len(zeros)),),
            remedy=_RANDOM,
        )
    if not alike:
        return
    kind = type(alike[0][1]).__name__
    same_kind = all(type(module).__name__ == kind for _, module, _ in alike)
    what = f"{kind} layers" if same_kind else "layers"
    what = what.removesuffix("s") if len(alike) == 1 else what
    of = f" of {kinds[kind]}" if same_kind and kinds[kind] > len(alike) else ""
    values = {value for _, _, value in alike}
    has = "have" if len(alike) > 1 else "has"
    single = next(iter(values)) if len(values) == 1 else None
    told = (
        f"{has} one single weight value, {single:g}" if single is not None else f"{has} the same weights in each unit"
    )
    named = ", ".join(path or "the model itself" for path, *_ in alike[:4])
    named += f" and {len(alike) - 4:,} more" if len(alike) > 4 else ""
    line = _set_by(model)
    at = f" ({line.file}, line {line.line}: {line.text})" if line is not None else ""
    yield ALIKE.found(
        f"{len(alike)}{of} {what} {told}: {named}{at}. All units of such a layer compute the same and get the same "
        "gradient: they never become different.",
        severity=Severity.NOTICE if len(alike) == 1 else None,
        subjects=tuple(path for path, *_ in alike),
        evidence=(("layers", len(alike)),),
        remedy=_RANDOM,
    )


def _of_units(module: nn.Module) -> list[Tensor]:
    """The weights of which each row is a unit's."""
    if isinstance(module, nn.Linear):
        return [module.weight]
    if isinstance(module, _ConvNd):
        # Each channel of a depthwise one has an input of its own.
        return [module.weight] if module.groups == 1 and not module.transposed else []
    if isinstance(module, nn.RNNBase | nn.RNNCellBase):
        return [p for name, p in module.named_parameters(recurse=False) if name.startswith("weight_")]
    return []


def _is_alike(weight: Tensor) -> bool:
    with torch.no_grad():
        rows = weight.detach().reshape(weight.shape[0], -1)
        return rows.shape[0] > 1 and rows.numel() >= 8 and bool(rows.any()) and bool((rows == rows[0]).all())


def _set_by(model: nn.Module) -> SourceLine | None:
    """The one line of the model's file that sets weights to a constant; None where there are several or none."""
    file = file_of(model) if is_own_class(model) else ""
    parsed = parsed_source(file) if file else None
    found = []
    for node in ast.walk(parsed[0]) if parsed is not None else ():
        if isinstance(node, ast.Call) and called_name(node) in (
            "constant_",
            "fill_",
            "ones_",
            "full_",
            "zeros_",
            "zero_",
        ):
            about = ast.unparse(node.func) + (ast.unparse(node.args[0]) if node.args else "")
            if "weight" in about or re.search(r"\(?p(?:aram)?\b", about):
                found.append(node.lineno)
    return source_line(file, found[0]) if len(found) == 1 else None


def called_instead(
    holder: nn.Module, name: str, path: str, lines: Mapping[str, Sequence[SourceLine | None]]
) -> tuple[str, SourceLine | None] | None:
    """(path, line of its last call) of a layer like `name` of the same holder that ran more often than the holder;
    `lines`: of each call, by path. The nearest name where there are several."""
    child = holder._modules[name]
    times = max(1, len(lines.get(path, ())))
    near = []
    for other, module in holder._modules.items():
        place = f"{path}.{other}" if path else other
        if module is None or other == name or type(module) is not type(child) or repr(module) != repr(child):
            continue
        if len(lines.get(place, ())) > times:
            near.append((_apart(other, name), place))
    if not near:
        return None
    place = min(near)[1]
    return place, lines[place][-1]


def _apart(a: str, b: str) -> int:
    """conv3 and conv4 are nearer than conv1 and conv4."""
    numbers = [re.findall(r"\d+", one) for one in (a, b)]
    if re.sub(r"\d+", "", a) == re.sub(r"\d+", "", b) and all(numbers):
        return abs(int(numbers[0][-1]) - int(numbers[1][-1]))
    return 1000 + abs(len(a) - len(b))
