"""DeepSpeed ZeRO: a folder of one file per rank, whose fp32 weights are put together when they are read.

Names, shapes and places come from the files' headers. The script zero_to_fp32.py that lies in such folders is shown and
never run. Source: deepspeed/runtime/engine.py, deepspeed/runtime/zero and deepspeed/utils/zero_to_fp32.py (0.19).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.layout import row_major
from inspector.checkpoint.reopening_source import MOST_HELD_OPEN, BriefSource
from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.tree import module_tree
from inspector.checkpoint.types import (
    Checkpoint,
    Part,
    SourceText,
    StateDict,
    StateRole,
    Storage,
    TensorInfo,
)
from inspector.errors import CorruptFile, LimitExceeded, ReadError
from inspector.findings import Finding
from inspector.readers.checks.observations import observe_storages
from inspector.readers.checks.wrapper_names import observe_wrappers
from inspector.readers.entry import FolderPeek, FolderReader
from inspector.readers.finish import FileContent, finished
from inspector.readers.folders.deepspeed import findings as say
from inspector.readers.folders.deepspeed.fp32 import Rank, Weights, put_together
from inspector.readers.folders.deepspeed.layout import Save, find_saves
from inspector.readers.folders.deepspeed.records import ModelFacts, OptimFacts, model_facts, optim_facts, records_of
from inspector.readers.folders.value_tree import ValueTree, below, tensor_value
from inspector.readers.join import join, rebase
from inspector.units import counted

_WEIGHTS = "fp32 weights"
_STATES = "optimizer states"
_MOST_RANKS = 65_536
_CODE_NBYTES = 65_536
_PROGRAMS = ("zero_to_fp32.py",)
_NOT_HERE = frozenset({"unnamed-tensors"})


def _claims(peek: FolderPeek) -> str:
    try:
        layout = find_saves(peek.folder)
    except ReadError:
        return ""
    if layout is None:
        return ""
    save = layout.chosen()
    return (
        f"{counted(len(save.optims), 'ZeRO optimizer file')}, {counted(len(save.models), 'model file')} and "
        f"{counted(len(save.universal), 'universal file')} in {save.tag or 'it'}"
    )


def _read(peek: FolderPeek) -> Checkpoint:
    layout = find_saves(peek.folder)
    if layout is None:
        raise CorruptFile(f"{peek.folder.name} holds no ZeRO files.")
    save = layout.chosen()
    reading = _Reading(peek, save)
    reading.findings += say.latest_missing(layout, save)
    others = [tag for tag in layout.saves if tag != save.tag]
    if others:
        reading.skipped.append(f"{counted(len(others), 'other save')} in the folder: {', '.join(others[:8])}.")
    if save.others:
        reading.skipped.append(
            f"{counted(len(save.others), 'file')} of pipeline layers or experts, first {save.others[0][:80]}; they are "
            "not merged here."
        )
    return reading.run()


class _Reading:
    """One reading of one save."""

    def __init__(self, peek: FolderPeek, save: Save) -> None:
        self.peek = peek
        self.save = save
        self.files: list[tuple[str, Checkpoint]] = []
        self.opened: dict[str, int] = {}
        self.findings: list[Finding] = []
        self.skipped: list[str] = []
        self.unreadable: list[str] = []
        self.weights: list[tuple[str, int | None, Weights]] = []
        self.version = ""

    def run(self) -> Checkpoint:
        self.open_all([*self.save.models.values(), *self.save.optims.values(), *self.save.universal.values()])
        if not self.files:
            raise CorruptFile(f"No file of {self.peek.folder.name} can be read: {self.unreadable[0]}")
        numbers = sorted({mp for _, mp in self.save.optims})
        for number in numbers:
            label = _WEIGHTS if len(numbers) == 1 else f"{_WEIGHTS} (mp_rank_{number:02d})"
            self.assemble(label, number)
        self.findings += say.parallel_ranks(sorted({mp for _, mp in (*self.save.optims, *self.save.models)}))
        self.findings += say.unreadable(self.unreadable)
        return self.checkpoint()

    def open_all(self, paths: Sequence[str]) -> None:
        many = len(paths) > MOST_HELD_OPEN
        for path in paths:
            try:
                made = self.peek.open_inner(path)
            except LimitExceeded:
                raise
            except ReadError as error:
                self.unreadable.append(f"{path}: {error.says}")
                continue
            if many:
                made = replace(made, source=BriefSource(made.source))
            self.opened[path] = len(self.files)
            self.files.append((path, made))

    def file(self, path: str | None) -> tuple[str, Checkpoint] | None:
        number = self.opened.get(path or "")
        return self.files[number] if number is not None else None

    def assemble(self, label: str, mp: int) -> None:
        """The fp32 weights of one tensor-parallel rank."""
        models = {rank: path for (rank, number), path in self.save.models.items() if number == mp}
        optims = {rank: path for (rank, number), path in self.save.optims.items() if number == mp}
        first = self.file(models.get(0))
        there = [found for path in optims.values() if (found := self.file(path)) is not None]
        if first is None or not there:
            why = f"{'the model file of rank 0' if first is None else 'every optimizer file'} is missing or unreadable"
            self.findings += say.not_assembled(label, why)
            return
        try:
            facts = self.facts(first[0])
            optim = self.first_facts([path for path, _ in there])
        except LimitExceeded:
            raise
        except ReadError as error:
            self.findings += say.not_assembled(label, error.says.rstrip("."))
            return
        self.version = facts.version or self.version
        count = optim.partitions or len(optims)
        if count > _MOST_RANKS:
            self.findings += say.not_assembled(label, f"{count:,} partitions are announced")
            return
        ranks = [
            Rank(
                number=rank,
                model=self.file(models.get(rank)),
                optim=self.file(optims.get(rank)),
                optim_name=optims.get(rank) or f"the optimizer file of rank {rank}",
            )
            for rank in range(count)
        ]
        made = put_together(ranks, facts, optim, self.peek.limits)
        readable = sum(rank.optim is not None for rank in ranks) + sum(rank >= count for rank in optims)
        self.findings += say.missing_ranks(made.missing, count, readable, made.lost)
        if readable == count:
            self.findings += say.cut_short(made.lost)
        self.findings += say.not_assembled(label, made.why_not)
        self.weights.append((label, self.opened.get(first[0]), made))

    def source(self, path: str) -> ByteSource:
        return self.files[self.opened[path]][1].source

    def first_facts(self, paths: Sequence[str]) -> OptimFacts:
        """Of the first optimizer file that is whole: all say the same."""
        for path in paths[:-1]:
            try:
                return optim_facts(records_of(self.source(path), self.peek.limits))
            except CorruptFile:
                continue  # Cut short; what is left of its numbers still counts.
        return optim_facts(records_of(self.source(paths[-1]), self.peek.limits))

    def facts(self, path: str) -> ModelFacts:
        return model_facts(records_of(self.source(path), self.peek.limits), self.peek.limits)

    def checkpoint(self) -> Checkpoint:
        made = [item for _, _, weights in self.weights for item in weights.made]
        joined = join(self.files, name=self.peek.folder.name, extra=[source for _, _, _, source, _, _ in made])
        storages = dict(joined.storages)
        starts = iter(joined.extra_starts)
        tree = ValueTree()
        tensors: list[TensorInfo] = []
        states: list[StateDict] = []
        for label, model, weights in self.weights:
            infos = self.weight_tensors(label, model, weights, storages, starts)
            states += _state(label, infos, StateRole.WEIGHTS, _why(weights, label))
            tensors += infos
        universal = self.universal()
        of_weights = [t for t in universal if t.path[0] == _WEIGHTS]
        of_states = [t for t in universal if t.path[0] == _STATES]
        states += _state(_WEIGHTS, of_weights, StateRole.WEIGHTS, "a universal checkpoint keeps one file per weight")
        states += _state(_STATES, of_states, StateRole.OPTIMIZER, "they lie beside the weights, one file per state")
        tensors += [*of_weights, *of_states]
        for info in tensors:
            tree.put(info.path, info.name, tensor_value(info.shape, info.dtype, ".".join(info.path), info.note))
        shown = set(self.save.universal.values())
        for number, (path, file) in enumerate(self.files):
            if path in shown:
                continue
            short = path.removeprefix(self.save.inside)
            tree.put((short,), short, below(file.root, short))
            infos = [replace(rebase(t, number), path=(short, *t.path)) for t in file.tensors]
            tensors += infos
            states += self.file_states(path, short, file, number, infos)
        findings = [*(f for f in joined.findings if f.id not in _NOT_HERE), *self.findings]
        code = self.programs(findings)
        ours = [t for t in tensors if t.path[0].startswith(_WEIGHTS)]
        findings += [f for f in observe_storages(ours, storages, self.peek.folder.name) if f.id == "shared-storage"]
        findings += [f for f in observe_wrappers(states[:1]) if f not in findings]
        parts = (*joined.parts, *(Part(name=c.name, nbytes=c.nbytes, says="program, shown and not run") for c in code))
        metadata = [("save", self.save.tag), ("ds_version", self.version)]
        content = FileContent(
            format=READER.id,
            format_says=READER.says,
            root=tree.value(),
            tensors=tensors,
            storages=storages,
            states=sorted(states, key=lambda s: s.role is StateRole.OPTIMIZER),
            metadata=[(key, text) for key, text in metadata if text],
            globals=joined.globals,
            findings=_once(findings),
            observed=True,
            skipped=(*self.skipped, *dict.fromkeys(text for _, c in self.files[:50] for text in c.skipped)),
            parts=parts,
            code=code,
        )
        nbytes = sum(part.nbytes for part in parts)
        return finished(joined.source, content, name=self.peek.folder.name, nbytes=nbytes)

    def weight_tensors(
        self, label: str, model: int | None, weights: Weights, storages: dict[str, Storage], starts: Iterator[int]
    ) -> list[TensorInfo]:
        """What `put_together` made, in the order of the model's own state dict where that is known."""
        found: dict[str, TensorInfo] = {}
        for name, shape, dtype, source, present, says in weights.made:
            key = f"{label}/{name}"
            start = next(starts)
            storages[key] = Storage(id=key, nbytes=source.size, present_nbytes=present, offset=start)
            found[name] = _info(label, name, shape, dtype, key, says)
        for name, tensor, says in weights.taken:
            if model is not None and name not in found:
                found[name] = replace(rebase(tensor, model), name=name, path=(label, name), note=says)
        for name, other in weights.equal:
            found[name] = replace(found[other], name=name, path=(label, name))
        order: dict[str, int] = {}
        if model is not None:
            module = (t.path[1] for t in self.files[model][1].tensors if len(t.path) == 2 and t.path[0] == "module")
            order = {name: n for n, name in enumerate(module)}
        return sorted(found.values(), key=lambda t: order.get(t.name, len(order)))

    def universal(self) -> list[TensorInfo]:
        """The tensors of zero/<parameter>/<state>.pt, each under its parameter's name."""
        found: list[TensorInfo] = []
        for (name, state), path in self.save.universal.items():
            number = self.opened.get(path)
            inner = self.files[number][1].tensors if number is not None else ()
            tensor = next((t for t in inner if t.path in ((), ("param",))), None)
            if tensor is None or number is None:
                continue
            shown = name if state == "fp32" else f"{name}.{state}"
            top = _WEIGHTS if state == "fp32" else _STATES
            found.append(replace(rebase(tensor, number), name=shown, path=(top, shown)))
        return found

    def file_states(
        self, path: str, short: str, file: Checkpoint, number: int, infos: Sequence[TensorInfo]
    ) -> list[StateDict]:
        """The state dicts of one file. An optimizer file is one, whatever it is made of."""
        if path in self.save.optims.values():
            named = [replace(t, name=".".join(t.path[1:])) for t in infos]
            return _state(short, named, StateRole.OPTIMIZER, "it is an optimizer file of ZeRO")
        states: list[StateDict] = []
        for state in file.state_dicts:
            inner = [replace(rebase(t, number), path=(short, *t.path)) for t in state.tensors]
            held = [t for t in inner if t.numel]
            role, why = state.role, state.why
            if role is StateRole.WEIGHTS and 2 * len(held) < len(inner):
                role, why = StateRole.OTHER, "stage 3 keeps only placeholders without elements here"
            elif "frozen_param_fragments" in state.path:
                role, why = StateRole.OTHER, "this rank's part of the weights that are not trained"
            states.append(
                replace(
                    state,
                    path=(short, *state.path),
                    role=role,
                    why=why,
                    tensors=tuple(inner),
                    modules=module_tree(inner),
                )
            )
        return states

    def programs(self, findings: list[Finding]) -> tuple[SourceText, ...]:
        found: list[SourceText] = []
        for name in _PROGRAMS:
            size = self.peek.folder.size_of(name)
            if size is None:
                continue
            source = self.peek.folder.open(name)
            text = source.read(0, min(size, _CODE_NBYTES)).decode("utf-8", "backslashreplace")
            source.close()
            found.append(SourceText(name=name, text=text, nbytes=size))
            findings += say.program(name, size)
        return tuple(found)


def _info(label: str, name: str, shape: tuple[int, ...], dtype: str, key: str, says: str) -> TensorInfo:
    return TensorInfo(
        name=name,
        path=(label, name),
        shape=shape,
        dtype=dtype,
        nbytes=math.prod(shape) * DTYPES[dtype].itemsize,
        storage_id=key,
        stride=row_major(shape),
        note=says,
    )


def _state(label: str, tensors: Sequence[TensorInfo], role: StateRole, why: str) -> list[StateDict]:
    if not tensors:
        return []
    return [
        StateDict(path=(label,), role=role, why=why, kind="dict", tensors=tuple(tensors), modules=module_tree(tensors))
    ]


def _why(weights: Weights, label: str) -> str:
    what = "slices of the weights, as this tensor-parallel rank has them, " if "mp_rank" in label else ""
    return f"{what}{counted(len(weights.made), 'weight')} put together from the flat fp32 groups by param_shapes"


def _once(findings: Sequence[Finding]) -> list[Finding]:
    return list({(f.id, f.severity, f.says): f for f in findings}.values())


READER = FolderReader(
    id="deepspeed-zero",
    says="DeepSpeed ZeRO folder",
    layout="latest, <tag>/mp_rank_00_model_states.pt, <tag>/zero_pp_rank_<r>_mp_rank_00_optim_states.pt; "
    "or universal: <tag>/zero/<parameter>/fp32.pt",
    claims=_claims,
    read=_read,
)
