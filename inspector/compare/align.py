"""Which tensor of one file is which of the other's?

By equal names; else by a table of llama.cpp's or Meta's names, by the repair plan between the two or one prefix, and by
equal bytes; last by shapes and order. What could be two things is nobody's counterpart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from inspector.architectures.targets import target_of_checkpoint
from inspector.checkpoint.types import Checkpoint, StateDict, StateRole, TensorInfo
from inspector.compare import ggml_names, meta_names
from inspector.compare.report import Alignment, Unpaired, Way
from inspector.errors import InspectorError
from inspector.keys.diagnose import diagnose
from inspector.keys.report import Evidence, RepairPlan, StepKind
from inspector.units import counted

# Of a step of the plan that is one tensor of each side.
_ONE_TO_ONE = (StepKind.KEEP, StepKind.RENAME, StepKind.RESHAPE, StepKind.PERMUTE, StepKind.ADAPT)
_BY_ORDER = (Evidence.ORDER_ONLY, Evidence.SYMMETRIC)
#: With more tensors than this the plan between two files is not looked for: it takes its time.
MOST_PLANNED = 50_000
_MOST_RULES = 12

Pair = tuple[TensorInfo, TensorInfo]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """One file with the tensors that are compared. state: None where it has no state dict."""

    checkpoint: Checkpoint
    state: StateDict | None
    tensors: tuple[TensorInfo, ...]

    @property
    def by_name(self) -> dict[str, TensorInfo]:
        """The tensors by their names."""
        return {tensor.name: tensor for tensor in self.tensors}


@dataclass(slots=True)
class Pairs:
    """Who belongs to whom so far, by name. left_a, left_b: in the order of their files."""

    a: Operand
    b: Operand
    way: Way = Way.NONE
    of: dict[str, str] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    ambiguous: tuple[Unpaired, ...] = ()

    @property
    def left_a(self) -> list[TensorInfo]:
        """Tensors of the first without a counterpart."""
        return [tensor for tensor in self.a.tensors if tensor.name not in self.of]

    @property
    def left_b(self) -> list[TensorInfo]:
        """Tensors of the second without a counterpart."""
        taken = set(self.of.values())
        return [tensor for tensor in self.b.tensors if tensor.name not in taken]

    def add(self, found: Iterable[tuple[str, str]], way: Way) -> None:
        """Further pairs. The weakest way is the one that is said."""
        before = len(self.of)
        self.of.update(found)
        if len(self.of) > before:
            self.way = way

    def pairs(self) -> list[Pair]:
        """In the order of the first file."""
        others = {tensor.name: tensor for tensor in self.b.tensors}
        return [(one, others[self.of[one.name]]) for one in self.a.tensors if one.name in self.of]


def align(a: Operand, b: Operand) -> Pairs:
    """Pairs by names and shapes alone; nothing is read."""
    pairs = Pairs(a, b)
    here = {tensor.name: tensor for tensor in a.tensors}
    there = {tensor.name: tensor for tensor in b.tensors}
    if len(here) < len(a.tensors) or len(there) < len(b.tensors):
        # No reader makes them; without names that tell tensors apart there is nothing to pair by.
        return pairs
    equal = {name: name for name in here if name in there}
    fits = sum(here[name].shape == there[name].shape for name in equal)
    if not equal or 2 * fits < min(len(here), len(there)):
        other = _by_table(a, b) or _by_plan(a, b)
        # A repair passes over what has another shape in the other file: a head of other classes is still the head.
        wrapped = _by_prefix(a, b)
        if wrapped is not None and (other is None or len(wrapped.of) > len(other.of)):
            other = wrapped
        if other is not None and len(other.of) > fits:
            return other
    pairs.add(equal.items(), Way.NAMES)
    return pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A library's names beside another's. claims: whether names are its own. pairs: its names -> the others' names.
    says: what a converter does beside renaming."""

    claims: Callable[[Iterable[str]], bool]
    pairs: Callable[[Iterable[str], Collection[str]], dict[str, str]]
    says: str


_TABLES = (
    _Table(
        claims=ggml_names.is_ggml,
        pairs=ggml_names.counterparts,
        says="llama.cpp's names; its converter also reorders rows of q and k of some models, and moves norms by one",
    ),
    _Table(
        claims=meta_names.is_meta,
        pairs=meta_names.counterparts,
        says="Meta's own names; the converter to Hugging Face's also reorders the rows of q and k in each head",
    ),
)


def _by_table(a: Operand, b: Operand) -> Pairs | None:
    """A file with the names of llama.cpp, or of Meta's own code, beside another library's."""
    ones, twos = ([tensor.name for tensor in side.tensors] for side in (a, b))
    for table in _TABLES:
        pairs = Pairs(a, b)
        if table.claims(ones) and not table.claims(twos):
            pairs.add(table.pairs(ones, twos).items(), Way.TABLE)
        elif table.claims(twos) and not table.claims(ones):
            pairs.add(((other, own) for own, other in table.pairs(twos, ones).items()), Way.TABLE)
        if pairs.of:
            pairs.rules = (table.says,)
            return pairs
    return None


def _by_prefix(a: Operand, b: Operand) -> Pairs | None:
    """One file's names with one and the same prefix before them are the other's, for half of its names or more."""
    here, there = ({tensor.name for tensor in side.tensors} for side in (a, b))
    for longer, shorter, which in ((there, here, "second"), (here, there, "first")):
        found: Counter[str] = Counter()
        for name in longer:
            at = name.find(".")
            # Each place where a prefix may end; names are not deep.
            while at >= 0:
                if name[at + 1 :] in shorter:
                    found[name[: at + 1]] += 1
                at = name.find(".", at + 1)
        best = found.most_common(2)
        if not best or 2 * best[0][1] < min(len(here), len(there)) or (len(best) > 1 and best[0][1] == best[1][1]):
            continue
        prefix = best[0][0]
        same = [(name, prefix + name) for name in shorter if prefix + name in longer]
        pairs = Pairs(a, b, rules=(f"“{prefix}” before the names of the {which} file",))
        pairs.add(same if longer is there else [(one, two) for two, one in same], Way.PLAN)
        return pairs
    return None


def _by_plan(a: Operand, b: Operand) -> Pairs | None:
    """What the repair of one file for the other does, from whichever side it can be planned."""
    if max(len(a.tensors), len(b.tensors)) > MOST_PLANNED:
        return None
    plan = _plan(a, b)
    if plan is not None:
        return _planned(a, b, plan, swapped=False)
    plan = _plan(b, a)
    return _planned(a, b, plan, swapped=True) if plan is not None else None


def _plan(source: Operand, target: Operand) -> RepairPlan | None:
    if source.state is None or target.state is None:
        return None
    # A target is what a file's weights are; here that is whatever state dict was chosen.
    chosen = replace(target.state, role=StateRole.WEIGHTS)
    alone = replace(target.checkpoint, state_dicts=(chosen,))
    try:
        goal = target_of_checkpoint(alone, "the other file")
        return diagnose(source.checkpoint, goal, state=source.state, partial=True, names_alone=True).plan
    except InspectorError:
        return None


def _planned(a: Operand, b: Operand, plan: RepairPlan, *, swapped: bool) -> Pairs:
    pairs = Pairs(a, b)
    uses = Counter(source for step in plan.steps for source in step.sources)
    unsure: list[Unpaired] = []
    sure: list[tuple[str, str]] = []
    placed: list[tuple[str, str]] = []
    for step in plan.steps:
        if step.target is None or step.source is None or step.kind is StepKind.TIE:
            continue
        ones, twos = step.sources, (step.target,)
        if swapped:
            ones, twos = twos, ones
        if step.kind not in _ONE_TO_ONE or len(step.sources) > 1 or uses[step.source] > 1:
            unsure.append(Unpaired(a=ones, b=twos, why="one tensor is made of others, or of a part of one"))
        elif step.evidence is Evidence.SYMMETRIC:
            unsure.append(Unpaired(a=ones, b=twos, why="a neighbour of the same shape could be meant as well"))
        else:
            (placed if step.evidence in _BY_ORDER else sure).append((ones[0], twos[0]))
    pairs.add(sure, Way.PLAN)
    pairs.add(placed, Way.ORDER)
    says = [use.says if not swapped else f"from the second to the first: {use.says}" for use in plan.rules]
    pairs.rules, pairs.ambiguous = tuple(says[:_MOST_RULES]), tuple(unsure)
    return pairs


def candidates(pairs: Pairs) -> list[tuple[list[TensorInfo], list[TensorInfo]]]:
    """What is left over on both sides in the same shape and type, and so may be the same bytes under other names."""
    groups: dict[tuple[object, ...], tuple[list[TensorInfo], list[TensorInfo]]] = defaultdict(lambda: ([], []))
    for tensor in pairs.left_a:
        groups[(tensor.shape, tensor.dtype)][0].append(tensor)
    for tensor in pairs.left_b:
        groups[(tensor.shape, tensor.dtype)][1].append(tensor)
    return [group for group in groups.values() if group[0] and group[1]]


def by_order(pairs: Pairs) -> None:
    """Where nothing is paired and both files have the same shapes in the same order, first to first and so on."""
    ones, twos = pairs.left_a, pairs.left_b
    if pairs.of or len(ones) < 2 or not _own_order(pairs.a, pairs.b):
        return
    shapes = [tensor.shape for tensor in ones]
    if shapes == [tensor.shape for tensor in twos] and len(set(shapes)) > 1:
        pairs.add(((one.name, two.name) for one, two in zip(ones, twos, strict=True)), Way.ORDER)
        pairs.ambiguous = ()


def _own_order(*sides: Operand) -> bool:
    """Whether the order is the models' own."""
    return all(side.state is not None and side.state.ordered for side in sides)


def describe(pairs: Pairs) -> Alignment:
    """The pairing in words."""
    by_name = sum(one == two for one, two in pairs.of.items())
    only_a = tuple(tensor.name for tensor in pairs.left_a)
    only_b = tuple(tensor.name for tensor in pairs.left_b)
    unsure = tuple(u for u in pairs.ambiguous if set(u.a) & set(only_a) or set(u.b) & set(only_b))
    return Alignment(
        way=pairs.way,
        says=_says(pairs, by_name, only_a, only_b, unsure),
        by_name=by_name,
        by_other=len(pairs.of) - by_name,
        rules=pairs.rules if pairs.way is not Way.NAMES else (),
        only_a=only_a,
        only_b=only_b,
        ambiguous=unsure,
    )


_BY = {
    Way.NAMES: "by equal names",
    Way.PREFIX: "by names, which are the other's with a prefix",
    Way.TABLE: "by a table of two libraries' names",
    Way.PLAN: "by the repair plan that leads from the one's names to the other's",
    Way.BYTES: "by names, and where those differ by equal bytes",
    Way.ORDER: "by shapes and order, which no name confirms",
}


def _says(pairs: Pairs, by_name: int, only_a: Sequence[str], only_b: Sequence[str], unsure: Sequence[Unpaired]) -> str:
    if not pairs.of:
        return f"Nothing is paired: {_why_nothing(pairs.a, pairs.b)}."
    by = _BY[pairs.way]
    if pairs.way is Way.BYTES and not by_name:
        by = "by equal bytes, under other names"
    rest = []
    if only_a:
        rest.append(f"{len(only_a):,} only in the first")
    if only_b:
        rest.append(f"{len(only_b):,} only in the second")
    if unsure:
        rest.append(f"{counted(len(unsure), 'place')} where more than one would fit, which are left unpaired")
    return f"{counted(len(pairs.of), 'tensor')} paired {by}{'; ' if rest else ''}{', '.join(rest)}."


def _why_nothing(a: Operand, b: Operand) -> str:
    for side, word in ((a, "first"), (b, "second")):
        if not side.tensors:
            return f"the {word} file has no tensors"
    shared = sum((Counter(t.shape for t in a.tensors) & Counter(t.shape for t in b.tensors)).values())
    of = min(len(a.tensors), len(b.tensors))
    if not shared:
        return "no name and no shape is in both files"
    return f"no name is in both files; {shared:,} of {of:,} shapes are, which tell too little"
