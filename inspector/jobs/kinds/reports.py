"""What is read or run for the other pages: numbers of tensors, costs of a forward, proofs, a person's own code."""

from __future__ import annotations

from pathlib import Path

from inspector.architectures.types import ArchitectureSpec, Target
from inspector.architectures.user_code import target_of_code
from inspector.checkpoint.types import TensorInfo
from inspector.exports.optimizer import plan_optimizers
from inspector.flops.count import count_costs
from inspector.flops.report import CostReport
from inspector.jobs.bench import Bench
from inspector.jobs.kinds.files import checkpoint_of, state_of
from inspector.jobs.subjects import FileRef, Held
from inspector.keys.report import RepairPlan, Verification
from inspector.keys.verify import Compared, verify_plan
from inspector.weights.measure import measure_tensor, measure_weights
from inspector.weights.report import TensorStatistics, WeightsReport


def tensor(bench: Bench, file: FileRef, path: tuple[str, ...]) -> TensorStatistics:
    """One read over one tensor. Raises ReadError when its bytes are not in the file."""
    checkpoint = checkpoint_of(bench, file)
    found: TensorInfo = next(one for one in checkpoint.tensors if one.path == path)
    return measure_tensor(checkpoint, found)


def weights(bench: Bench, file: FileRef) -> WeightsReport:
    """Every tensor of a state dict, read once."""
    checkpoint = checkpoint_of(bench, file)
    return measure_weights(checkpoint, state_of(checkpoint, file), progress=bench.progress)


def costs(bench: Bench, spec: ArchitectureSpec, input_shape: tuple[int, ...] | None) -> CostReport:
    """One forward without numbers."""
    return count_costs(spec, input_shape)


def compared(bench: Bench, held: Held) -> Compared:
    """As the core takes it. Raises ReadError for a file that is gone or no checkpoint."""
    return Compared(
        reference=checkpoint_of(bench, held.reference) if held.reference else None,
        pair=checkpoint_of(bench, held.pair) if held.pair else None,
        folder=held.folder,
    )


def verify(bench: Bench, file: FileRef, plan: RepairPlan, target: Target, held: Held) -> Verification:
    """Every proof there is of a plan."""
    checkpoint = checkpoint_of(bench, file)
    _need_weights(bench, checkpoint.origin.nbytes)
    return verify_plan(checkpoint, plan, target, compared=compared(bench, held))


def _need_weights(bench: Bench, nbytes: int) -> None:
    """The state dict, the model, and the model once more before it is loaded."""
    if 4 * nbytes > bench.settings.memory_nbytes // 20:
        bench.need(4 * nbytes)


def optimizer_groups(bench: Bench, file: FileRef, plan: RepairPlan, target: Target) -> tuple[str, ...]:
    """What is to be confirmed about the groups of the file's optimizers. Raises ExportError where none can go along."""
    goings = plan_optimizers(checkpoint_of(bench, file), plan, target)
    return tuple(going.map.asks for going in goings if going.map.asks)


def code_target(bench: Bench, text: str, folder: Path, seconds: float, nbytes: int) -> Target:
    """Names and shapes of what a person's own code builds, in a process of its own behind its own wall."""
    return target_of_code(text, folder=folder, seconds=seconds, memory_nbytes=nbytes)
