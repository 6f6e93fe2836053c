"""A LoRA adapter merged into its base: W + scale * B @ A, in float32, rounded to the type that W is stored in.

Written one tensor at a time like any export. Every tensor of the adapter must find its one place in the base, by name
and shape; a place that is not certain is a refusal, since an adapter on the wrong layer still loads and runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from inspector.checkpoint.raw_tensor import RawTensor, read_raw
from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
from inspector.errors import ExportError
from inspector.exports.adapter import Adapter, Pair, understand
from inspector.exports.adapter_targets import layers_of, places_of
from inspector.exports.cast import Cast
from inspector.exports.left_behind import left_behind, provenance
from inspector.exports.report import ExportReport
from inspector.exports.sources import stream_of_tensors
from inspector.exports.stream import Block, Stream, own_block
from inspector.exports.write import check_destination, find_writer, write_proved
from inspector.exports.writers import WRITERS
from inspector.exports.writers.entry import Writer
from inspector.installed import require
from inspector.keys.report import Proof
from inspector.progress import Progress, silent
from inspector.units import counted, human_distance

_COMPUTED = ("float64", "float32", "float16", "bfloat16")


def merge_adapter(
    base: Checkpoint,
    adapter: Checkpoint,
    config: Mapping[str, object],
    destination: Path,
    *,
    state: StateDict | None = None,
    writer: str = "safetensors",
    dtype: str | None = None,
    shard_nbytes: int | None = None,
    overwrite: bool = True,
    progress: Progress = silent,
    writers: Sequence[Writer] = WRITERS,
) -> ExportReport:
    """Write the base with the adapter in its weights, verified.

    config: the adapter's, as `read_adapter_config` gives it. state: which of the base, the likeliest weights if None.
    dtype, shard_nbytes, progress: as `export_repaired`. Raises ExportError, and leaves no file behind, when the adapter
    is more than plain LoRA, a tensor of it has no certain place, or as `export_repaired` does; MissingLibrary without
    torch, since the last digits of a product of matrices are those of the library that works it out.
    """
    require("torch", f"Nothing was written: merging {adapter.origin.name}")
    entry = find_writer(writer, writers)
    destination = Path(destination)
    check_destination(base, destination, folder=shard_nbytes is not None, overwrite=overwrite)
    check_destination(adapter, destination, folder=shard_nbytes is not None, overwrite=overwrite)
    state = state or base.weights
    if state is None or adapter.weights is None:
        empty = base if state is None else adapter
        raise ExportError(f"{empty.origin.name} holds no named tensors.")
    given = adapter.weights.tensors
    alphas = {
        t.name: float(read_raw(adapter, t).numbers.reshape(()))
        for t in given
        if t.name.endswith(".alpha") and t.numel == 1
    }
    plan = understand(given, config, alphas)
    merged = _Merged(base, state, adapter, plan)
    cast = Cast(merged.stream, dtype) if dtype is not None else None
    report = write_proved(
        cast.stream if cast is not None else merged.stream,
        destination,
        entry,
        provenance(base, entry, merged_from=base.origin.name, merged_with=adapter.origin.name),
        checks=merged,
        shard_nbytes=shard_nbytes,
        overwrite=overwrite,
        progress=progress,
    )
    lost = left_behind(base, state, entry)
    return replace(report, lost=lost + report.lost, notes=merged.says, cast=cast.report if cast is not None else None)


class _Merged:
    """The stream of a base with an adapter in it, and afterwards what that changed."""

    def __init__(self, base: Checkpoint, state: StateDict, adapter: Checkpoint, plan: Adapter) -> None:
        self._base, self._adapter = base, adapter
        infos = {t.name: t for t in state.tensors}
        self._changes: dict[str, float] = {}
        self._infinite: dict[str, int] = {}
        self._dtypes: set[str] = set()
        self._notes: list[str] = []
        layers = layers_of(plan, infos)
        makers: dict[str, Callable[[], RawTensor]] = {}
        for pair in plan.pairs:
            info, turned = layers[pair.layer]
            self._dtypes.add(info.dtype)
            makers[info.name] = partial(self._merge, info, pair, turned)
        taken: dict[str, TensorInfo] = {}
        for name, theirs in places_of(plan, infos):
            if name in makers:
                raise ExportError(f"{name} is adapted and replaced by the same file.")
            taken[name] = theirs
            ours = infos.get(name)
            if ours is None or ours.shape != theirs.shape:
                what = "new" if ours is None else "of another shape"
                self._notes.append(f"{name}: {what}, as the adapter's modules_to_save has it")
        if plan.base:
            self._notes.append(f"the adapter says that it is for {plan.base}: whether this is that base, no file tells")
        stream = stream_of_tensors(base, state.tensors, state.versions)
        blocks = [self._block(block, makers, taken) for block in stream.blocks]
        added = [name for name in taken if name not in infos]
        blocks += [self._whole(name, taken[name]) for name in added]
        self._counts = (len(makers), len(taken), len(stream.names) - len(makers) - (len(taken) - len(added)))
        self.stream = Stream(names=(*stream.names, *added), blocks=tuple(blocks), versions=stream.versions)

    def _block(
        self, block: Block, makers: Mapping[str, Callable[[], RawTensor]], taken: Mapping[str, TensorInfo]
    ) -> Block:
        touched = [e for e in block.entries if e.name in makers or e.name in taken]
        if not touched:
            return block
        entry = touched[0]
        if len(block.entries) > 1:
            other = next(e.name for e in block.entries if e is not entry)
            raise ExportError(
                f"{entry.name} and {other} are one memory in {self._base.origin.name}: adapting one would part them.",
                hint="Merge it with PEFT itself, and look whether the model ties them.",
            )
        if entry.name in taken:
            return self._whole(entry.name, taken[entry.name])
        if block.dtype not in _COMPUTED:
            raise ExportError(
                f"{entry.name} is {block.dtype}, to which nothing can be added.",
                hint="Merge into the base as it was before it was quantised.",
            )
        return own_block(entry.name, entry.shape, block.dtype, makers[entry.name])

    def _whole(self, name: str, info: TensorInfo) -> Block:
        # In the type in which the adapter holds it: it was trained so.
        return own_block(name, info.shape, info.dtype, partial(read_raw, self._adapter, info))

    def _merge(self, info: TensorInfo, pair: Pair, turned: bool) -> RawTensor:
        import torch

        from inspector.checkpoint.torch_bridge import raw_of, to_torch

        weight = to_torch(self._base, info)
        wide = torch.float64 if weight.dtype is torch.float64 else torch.float32
        down, up = (to_torch(self._adapter, t).to(wide) for t in (pair.down, pair.up))
        rank = down.shape[0]
        delta = (up.reshape(-1, rank) @ down.reshape(rank, -1)).mul_(pair.scale)
        if turned:
            delta = delta.t()
        held = weight.to(wide)
        size = float(held.norm())
        self._changes[info.name] = float(delta.norm()) / size if size else float("inf")
        made = (held + delta.reshape(held.shape)).to(weight.dtype)
        self._infinite[info.name] = int((~torch.isfinite(made)).sum()) - int((~torch.isfinite(weight)).sum())
        return raw_of(made)

    def look(self, name: str, tensor: RawTensor) -> None:
        return None

    def done(self) -> tuple[Proof, ...]:
        pairs, taken, kept = self._counts
        broken = next((name for name, count in self._infinite.items() if count > 0), "")
        if broken:
            count = self._infinite[broken]
            says = f"{counted(count, 'value')} of {broken} would no longer be finite."
            return (Proof(id="merge", says=says, passed=False),)
        changes = sorted(self._changes.values())
        middle, most = changes[len(changes) // 2], changes[-1]
        says = (
            f"{counted(pairs, 'tensor')} changed by their own pair, by {human_distance(middle)} of their norm in the "
            f"median and {human_distance(most)} at most (relative L2); {taken:,} taken from the adapter whole, "
            f"{kept:,} kept."
        )
        return (Proof(id="merge", says=says, passed=True),)

    @property
    def says(self) -> tuple[str, ...]:
        """What the merge costs and what else is to be known."""
        kinds = ", ".join(sorted(self._dtypes))
        rounded = f"{counted(len(self._changes), 'tensor')} rounded to {kinds}: no longer to be taken apart bit for bit"
        idle = [] if any(self._changes.values()) else ["the adapter changes no number: all its products are zero"]
        return (rounded, *idle, *self._notes)
