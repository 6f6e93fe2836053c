"""The tensors of a state dict while steps are done to them: under which name each stands now, and what is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from inspector.architectures.recognise import recognise
from inspector.architectures.suggest import suggest
from inspector.architectures.types import Candidate
from inspector.checkpoint.layout import span_of
from inspector.checkpoint.tree import module_tree
from inspector.checkpoint.types import Checkpoint, Origin, StateDict, TensorInfo
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS
from inspector.errors import UsageError
from inspector.keys.report import Step


@dataclass(slots=True, kw_only=True)
class Item:
    """One tensor. name: as it stands now. info: the file's, or what a new one will be; source: its name in the file,
    None for a new one. gone: why it is left out, "" while it is kept. fill: the step that makes a new one, its target
    left to be said last, since names may still change."""

    name: str
    info: TensorInfo
    source: str | None
    gone: str = ""
    rule: str = ""
    fill: Step | None = None


@dataclass(slots=True)
class Table:
    """Every tensor of the state dict, in its order. notes: what is to be said about the steps done so far."""

    checkpoint: Checkpoint
    state: StateDict
    items: list[Item]
    notes: list[str]

    @property
    def kept(self) -> list[Item]:
        """What is there now."""
        return [item for item in self.items if not item.gone]

    def below(self, module: str) -> list[Item]:
        """What is there now below that path."""
        return [item for item in self.kept if item.name.startswith(f"{module}.")]

    def find(self, typed: str) -> str:
        """The path of a module as the names have it now: as typed, or below the wrappers that every name begins with.

        Raises UsageError, with the nearest paths, where there is no such module.
        """
        path = typed.strip().strip(".")
        if not path:
            raise UsageError("Which module? No path was given.", hint="Write it as the names do, such as layer4.")
        if self.below(path):
            return path
        names = [item.name for item in self.kept]
        around = leading_wrapper(names)
        if around and self.below(around + path):
            self.notes.append(f'{path} was found below "{around}": every name begins with it.')
            return around + path
        if any(name in (path, around + path) for name in names):
            raise UsageError(f'"{path}" is a tensor, and what is cut is a module.', hint=_above(path))
        paths = list(dict.fromkeys(module for name in names for module in _modules_of(name)))
        inner = [module for module in paths if module == path or module.endswith(f".{path}")][:3]
        hint = f"Did you mean {' or '.join(inner)}?" if inner else suggest(path, paths[:_MOST_COMPARED])
        tops = list(dict.fromkeys(name.partition(".")[0] for name in names))
        more = " …" if len(tops) > 12 else ""
        raise UsageError(
            f'There is no module "{path[:120]}".',
            hint=hint or f"At the top are {', '.join(tops[:12])}{more}",
        )

    def recognised(self) -> Candidate | None:
        """What the tensors that are there now are, by their names and shapes; asked anew, since steps change both."""
        tensors = self.tensors()
        state = replace(self.state, tensors=tensors, modules=module_tree(tensors), others=())
        # Not the file any more: neither its name nor its digest says anything about it.
        bare = replace(self.checkpoint, origin=Origin(name="model", nbytes=0))
        return recognise(bare, state).best if tensors else None

    def tensors(self) -> tuple[TensorInfo, ...]:
        """Those that are there now, under their names."""
        return tuple(replace(item.info, name=item.name) for item in self.kept)


_MOST_COMPARED = 20_000


def table_of(checkpoint: Checkpoint, state: StateDict) -> Table:
    """Before anything is done."""
    items = [Item(name=t.name, info=t, source=t.name) for t in state.tensors]
    return Table(checkpoint=checkpoint, state=state, items=items, notes=[])


def leading_wrapper(names: Sequence[str]) -> str:
    """ "module." where every name begins with it, "module._orig_mod." of two tools; "" for none."""
    found = ""
    while names:
        segment = names[0][len(found) :].partition(".")[0]
        longer = f"{found}{segment}."
        if segment not in WRAPPER_SEGMENTS or not all(name.startswith(longer) for name in names):
            break
        found = longer
    return found


def share_memory(one: TensorInfo, other: TensorInfo) -> bool:
    """Whether elements of both lie in one place of the file; tensors without elements share nothing."""
    if one.storage_id is None or one.storage_id != other.storage_id or not (one.numel and other.numel):
        return False
    if one.stride is None or other.stride is None:
        return True
    (first, end), (start, last) = span_of(one), span_of(other)
    return first < last and start < end


def _modules_of(name: str) -> Iterator[str]:
    at = name.find(".")
    while at >= 0:
        yield name[:at]
        at = name.find(".", at + 1)


def _above(path: str) -> str:
    module = path.rpartition(".")[0]
    return f"Name its module, {module}." if module else "It stands at the top, in no module."
