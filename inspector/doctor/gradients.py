"""Gradients that are not finite though the forward is, or fade on their way: which operator, which line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from inspector.doctor.cuts import leaves_of
from inspector.doctor.frames import own_line
from inspector.doctor.report import SourceLine
from inspector.findings import Finding, FindingKind, Severity
from inspector.forward.watch import tensors_in

BAD_GRADIENT = FindingKind("gradient-not-finite", Severity.ERROR, "Gradients are NaN or infinite, the forward is not")
VANISHED = FindingKind("gradient-vanished", Severity.NOTICE, "Hardly any gradient reaches a stack's first layers")
_MOST_NODES = 20_000
_NODE = re.compile(r"Backward\d*$")
# A stack of so many weights, between whose ends the gradient's norm falls so far.
_LEAST_WEIGHTS = 6
_VANISHED = 1e-10
_CLAMP = "clamp away from it before"
_WHERE = "torch.where behind it hides the value, not the gradient"
# Operator -> what its slope is infinite at, in words, and the remedy.
_SLOPES = {
    "sqrt": ("is taken at 0", "Its slope is infinite there: torch.sqrt(x + 1e-12), or x.clamp_min(1e-12) before."),
    "rsqrt": ("is taken at 0", f"Its slope is infinite there: x.clamp_min(1e-12) before; {_WHERE}."),
    "pow": ("is taken at 0", f"A power below 1 has an infinite slope there: x.clamp_min(1e-12) before; {_WHERE}."),
    "log": ("is taken at 0", f"Its slope is infinite there: x.clamp_min(1e-12) before; {_WHERE}."),
    "log2": ("is taken at 0", f"Its slope is infinite there: x.clamp_min(1e-12) before; {_WHERE}."),
    "log10": ("is taken at 0", f"Its slope is infinite there: x.clamp_min(1e-12) before; {_WHERE}."),
    "reciprocal": ("divides by 0", f"Add a small number below, or clamp it; {_WHERE}."),
    "div": ("divides by 0", f"Add a small number below, or clamp it; {_WHERE}."),
    **dict.fromkeys(
        ("acos", "asin", "atanh"),
        ("is taken at 1 or -1", f"Its slope is infinite there: {_CLAMP}, as x.clamp(-1 + 1e-6, 1 - 1e-6)."),
    ),
    "acosh": ("is taken at 1", f"Its slope is infinite there: {_CLAMP}, as x.clamp_min(1 + 1e-6)."),
}


@dataclass(frozen=True, slots=True)
class _Made:
    """A node that got finite gradients and gave others. at: how many values lie where its slope is infinite, of all."""

    node: Any
    at: int
    count: int


class GraphLines:
    """Hears of each function while gradients are recorded, and keeps which line made which nodes of the graph."""

    def __init__(self) -> None:
        self._lines: dict[Any, SourceLine | None] = {}

    def returned(self, function: Any, args: Sequence[Any], output: Any) -> None:
        """As a Listener's."""
        if len(self._lines) >= _MOST_NODES:
            return
        made = args[:1] if getattr(function, "__name__", "") == "__setitem__" else output
        waiting = [t.grad_fn for t in tensors_in(made) if t.grad_fn is not None and t.grad_fn not in self._lines]
        line = own_line() if waiting else None
        while waiting and len(self._lines) < _MOST_NODES:
            node = waiting.pop()
            if node in self._lines or hasattr(node, "variable"):
                continue
            self._lines[node] = line
            waiting += [one for one, _ in node.next_functions if one is not None]

    def line_of(self, node: Any) -> SourceLine | None:
        """Of the model's code that made it."""
        return self._lines.get(node)


class Origins:
    """What makes a gradient that is not finite out of finite ones, in the order of the backward pass."""

    def __init__(self) -> None:
        self.made: list[_Made] = []

    @contextmanager
    def heard(self, answers: Sequence[Tensor]) -> Iterator[None]:
        """For the backward pass inside."""
        handles = [node.register_hook(self._hook(node)) for node in nodes_behind(answers)]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _hook(self, node: Any) -> Any:
        def hook(gives: Sequence[Tensor | None], gets: Sequence[Tensor | None]) -> None:
            if _finite(gets) and not _finite(gives):
                self.made.append(_Made(node, *_at(node)))

        return hook


def nodes_behind(answers: Sequence[Tensor]) -> list[Any]:
    """The nodes of the graph that end in these, without those that add up parameters' gradients."""
    waiting: list[Any] = [t.grad_fn for t in answers if t.grad_fn is not None]
    found: dict[Any, None] = {}
    while waiting and len(found) < _MOST_NODES:
        node = waiting.pop()
        if node in found or hasattr(node, "variable"):
            continue
        found[node] = None
        waiting += [one for one, _ in node.next_functions if one is not None]
    return list(found)


def operator_of(node: Any) -> str:
    """The plain name of what a node is the backward of: "sqrt"; of one's own Function its class."""
    own = getattr(type(node), "_forward_cls", None)
    if own is not None:
        return str(own.__name__)
    name = _NODE.sub("", node.name())
    return re.sub(r"(?<=[a-z\d])(?=[A-Z])", "_", name).lower().removeprefix("linalg_")


def _finite(tensors: Sequence[Tensor | None]) -> bool:
    plain = [t for t in tensors if isinstance(t, Tensor) and t.layout is torch.strided and not t.is_meta]
    return all(bool(t.isfinite().all()) for t in plain)


def _at(node: Any) -> tuple[int, int]:
    """(values at which its slope is infinite, all); 0 where it does not tell."""
    operator = operator_of(node)
    saved = {"sqrt": "result", "rsqrt": "result", "reciprocal": "result", "div": "other"}.get(operator, "self")
    try:
        values = getattr(node, f"_saved_{saved}", None) if operator in _SLOPES else None
    except RuntimeError:  # changed in place, or freed
        return 0, 0
    if not isinstance(values, Tensor) or values.is_meta:
        return 0, 0
    values = values.detach()
    if operator in ("rsqrt", "reciprocal"):
        hits = values.isinf()
    elif operator in ("acos", "asin", "atanh", "acosh"):
        hits = values.abs() == 1
    else:
        hits = values == 0
    return int(hits.sum()), values.numel()


def find_bad_gradients(wanted: Mapping[str, nn.Parameter], origins: Origins, lines: GraphLines) -> Iterator[Finding]:
    """Parameters whose gradient is NaN or infinite; the first operator of the backward pass that reaches them."""
    bad = {
        name: p
        for name, p in wanted.items()
        # Sums of half precision overflow, and a scaler is made for that.
        if p.grad is not None and p.dtype is not torch.float16 and not _finite([p.grad])
    }
    if not bad:
        return
    first = next(iter(bad))
    grad = bad[first].grad
    assert grad is not None
    what = "NaN" if bool(grad.isnan().any()) else "infinite"
    others = f" (and that of {len(bad) - 1:,} more)" if len(bad) > 1 else ""
    leaves = {id(p) for p in bad.values()}
    reaching = [one for one in origins.made if not leaves_of(one.node).isdisjoint(leaves)]
    made = next((one for one in reaching if one.at), reaching[0] if reaching else None)
    says, remedy = f"The gradient of {first}{others} is {what}, though what comes out is finite", ""
    if made is not None:
        operator, line = operator_of(made.node), lines.line_of(made.node)
        where = f" ({line.file}, line {line.line}: {line.text})" if line is not None else ""
        does, remedy = _SLOPES.get(operator, ("makes it", "Clamp what goes into it, or add a small number below."))
        if not made.at:
            does = "makes it"
        count = f", for {made.at:,} of {made.count:,} values" if made.at else ""
        says += f": {operator}{where} {does}{count}"
    yield BAD_GRADIENT.found(
        f"{says}.",
        subjects=tuple(dict.fromkeys(name.rpartition(".")[0] for name in bad))[:20],
        evidence=(("parameters", len(bad)),),
        remedy=remedy or "torch.autograd.set_detect_anomaly(True) names the operator.",
    )


def find_vanished(wanted: Mapping[str, nn.Parameter], ran: Sequence[str]) -> Iterator[Finding]:
    """A stack whose first weight gets a gradient smaller by 1e10 than its last. ran: paths of modules, as called.

    A gradient of exactly 0 says nothing: a layer that starts at zero is often meant so.
    """
    stacks: dict[str, list[tuple[str, float]]] = {}
    for path in dict.fromkeys(ran):
        weight = wanted.get(f"{path}.weight")
        if weight is None or weight.grad is None or weight.dim() < 2 or weight.is_meta:
            continue
        norm = float(weight.grad.double().norm())
        if norm > 0:
            stacks.setdefault(path.partition(".")[0], []).append((f"{path}.weight", norm))
    for stack, weights in stacks.items():
        (first, least), (last, most) = weights[0], weights[-1]
        if len(weights) < _LEAST_WEIGHTS or not least < _VANISHED * most:
            continue
        yield VANISHED.found(
            f"The gradient vanishes in {stack}: its norm is {most:.2g} at {last} and {least:.2g} at {first}, a factor "
            f"of {most / least:.1g} over {len(weights)} weights.",
            subjects=(stack,),
            evidence=(("first", least), ("last", most)),
            remedy="Skip connections, norms between the layers, or ReLU for sigmoid and tanh keep it alive.",
        )
