"""Each place of the model against the file: first its own tensor, then what the repair makes, then every other one.

Numbers are read one tensor at a time; of the file only digests are kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.torch_bridge import raw_of, tensor_of
from inspector.checkpoint.types import StateDict, TensorInfo
from inspector.errors import InspectorError, ReadError
from inspector.keys.apply import make_one
from inspector.keys.report import Evidence, RepairPlan, Step, StepKind
from inspector.loaded.choose import numbers_of
from inspector.loaded.equal import cast_between, difference_of, digest_of, is_constant, plain
from inspector.loaded.fresh import Fresh, fresh_values, within_bound
from inspector.loaded.places import Place
from inspector.loaded.report import Held, LoadedTensor
from inspector.loaded.weights import Weights
from inspector.progress import Progress

_SURE = (Evidence.EXACT_NAME, Evidence.RULE, Evidence.UNIQUE_TOKEN)
_NO_NUMBERS = (ReadError, NotImplementedError, RuntimeError)


@dataclass(slots=True)
class Comparison:
    """tensors: by place. used: names of the file's tensors whose values the model has."""

    tensors: dict[str, LoadedTensor] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)


class Comparer:
    """One model and one state dict."""

    def __init__(
        self, places: Sequence[Place], weights: Weights, state: StateDict, own: Mapping[str, TensorInfo]
    ) -> None:
        self.places, self.weights, self.state, self.own = places, weights, state, own
        self.by_name = {tensor.name: tensor for tensor in state.tensors}
        self.made = Comparison()
        self.differences: dict[str, float | None] = {}
        # Place -> the file's tensor that a rule of the repair leads there, beyond doubt.
        self.meant: dict[str, str] = {}

    def by_names(self, progress: Progress) -> list[Place]:
        """Places that equal their own tensor are settled; the others are given back."""
        left = []
        for number, place in enumerate(self.places):
            progress(number, len(self.places), place.name)
            tensor = self.own.get(place.name)
            if place.is_lazy:
                self.settle(place, Held.UNKNOWN, why="a lazy parameter before its first forward pass")
            elif place.tensor.is_meta:
                self.settle(place, Held.UNKNOWN, why="on the meta device, without numbers")
            elif type(place.tensor).__name__ not in ("Tensor", "Parameter", "Buffer"):
                self.settle(place, Held.UNKNOWN, why=f"a {type(place.tensor).__name__}, whose numbers lie elsewhere")
            elif tensor is None or not self._equals_own(place, tensor):
                left.append(place)
        return [place for place in left if place.name not in self.made.tensors]

    def by_plan(self, left: Sequence[Place], plan: RepairPlan | None) -> list[Place]:
        """Places that equal what the repair would put there."""
        steps = {step.target: step for step in plan.steps if step.target is not None} if plan is not None else {}
        self.meant = {
            place: step.source for place, step in steps.items() if step.source is not None and step.evidence in _SURE
        }
        still = []
        for place in left:
            step = steps.get(place.name)
            same = step is not None and step.kind is not StepKind.FILL and self._equals_step(place, step)
            if not same:
                still.append(place)
        return still

    def by_values(self, left: Sequence[Place]) -> list[Place]:
        """Places that hold another tensor's values, or their own transposed: by digest."""
        asked: dict[str, dict[bytes, str]] = {}
        shapes: defaultdict[tuple[int, ...], set[torch.dtype]] = defaultdict(set)
        numbers = [p for p in left if p.tensor.is_floating_point() and not is_bookkeeping(p.name)]
        for place in numbers:
            held = plain(place.tensor)
            if is_constant(held):
                continue
            asked[place.name] = {digest_of(held): ""}
            shapes[place.shape].add(held.dtype)
            if held.dim() == 2:
                asked[place.name].setdefault(digest_of(held.t()), "transposed")
                shapes[tuple(held.t().shape)].add(held.dtype)
        digests = self._digests(shapes) if asked else {}
        still = []
        for place in left:
            found = [(how, digests[d]) for d, how in asked.get(place.name, {}).items() if d in digests]
            if not found:
                still.append(place)
                continue
            how, names = found[0]
            own = self.own.get(place.name)
            meant = own.name if own is not None else self.meant.get(place.name, "")
            name = meant if meant in names else names[0]
            self.made.used.update(names)
            if not meant:
                # Nothing of its name is in the file, and no rule leads there: the script renamed, the values say what.
                self.settle(place, Held.EQUAL, source=name, why=f"{how} values of another name".strip(), proved=False)
            elif name == meant:
                self.settle(place, Held.TRANSPOSED, source=name, why="its own, rows and columns exchanged")
            else:
                self.settle(place, Held.OTHER, source=name, why=how)
        return still

    def rest(self, left: Sequence[Place]) -> None:
        """As initialised, or other values; a vector beside a fresh weight is as fresh where its bound allows it."""
        fresh: dict[str, Fresh | None] = {}
        for place in left:
            fresh[place.name] = fresh_values(place, plain(place.tensor))
        weights_fresh = {p.path for p in left if p.tensor.dim() > 1 and fresh[p.name] is not None}
        for place in left:
            known = fresh[place.name]
            beside = place.tensor.dim() == 1 and place.path in weights_fresh
            if known is None and beside and within_bound(place, plain(place.tensor)):
                known = Fresh("within its initialiser's bound, beside a weight at its initialisation", proved=False)
            tensor = self.own.get(place.name)
            source, difference = tensor.name if tensor is not None else "", self.differences.get(place.name)
            if known is not None:
                self.settle(
                    place, Held.INITIAL, source=source, why=known.says, proved=known.proved, difference=difference
                )
            elif tensor is None:
                self.settle(place, Held.ABSENT, why="the file has no tensor of this name or with these values")
            else:
                self.settle(place, Held.CHANGED, source=source, difference=difference)

    def _equals_own(self, place: Place, tensor: TensorInfo) -> bool:
        try:
            file = numbers_of(self.weights, tensor)
            model = plain(place.tensor)
        except _NO_NUMBERS as error:
            self.settle(place, Held.UNKNOWN, source=tensor.name, why=str(error).partition("\n")[0][:200])
            return False
        cast = cast_between(model, file)
        if cast is None:
            self.differences[place.name] = difference_of(model, file)
            return False
        self.settle(place, Held.CAST if cast else Held.EQUAL, source=tensor.name, why=cast)
        self.made.used.add(tensor.name)
        return True

    def _equals_step(self, place: Place, step: Step) -> bool:
        try:
            sources = {name: raw_of(numbers_of(self.weights, self.by_name[name])) for name in step.sources}
            file = tensor_of(make_one(step, sources.__getitem__))
            cast = cast_between(plain(place.tensor), file)
        except (InspectorError, KeyError, *_NO_NUMBERS):
            return False
        if cast is None:
            return False
        self.settle(place, Held.CAST if cast else Held.EQUAL, source=step.sources[0], why=cast)
        self.made.used.update(step.sources)
        return True

    def _digests(self, shapes: Mapping[tuple[int, ...], set[torch.dtype]]) -> dict[bytes, list[str]]:
        """Of the file's tensors of these shapes, in the model's element types."""
        found: defaultdict[bytes, list[str]] = defaultdict(list)
        for tensor in self.state.tensors:
            wanted = shapes.get(tensor.shape)
            if not wanted:
                continue
            try:
                file = numbers_of(self.weights, tensor)
            except _NO_NUMBERS:
                continue
            for dtype in wanted:
                found[digest_of(file if file.dtype == dtype else file.to(dtype))].append(tensor.name)
        return found

    def settle(
        self,
        place: Place,
        held: Held,
        *,
        source: str = "",
        why: str = "",
        proved: bool = True,
        difference: float | None = None,
    ) -> None:
        self.made.tensors[place.name] = LoadedTensor(
            name=place.name,
            shape=place.shape,
            dtype=place.dtype,
            device=str(place.tensor.device),
            is_buffer=place.is_buffer,
            requires_grad=place.tensor.requires_grad,
            held=held,
            source=source,
            why=why,
            proved=proved,
            difference=difference,
        )
