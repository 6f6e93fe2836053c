"""What is read or run for the other pages: numbers of tensors, costs of a forward, proofs, a person's own code."""

from __future__ import annotations

from pathlib import Path

from inspector.architectures.targets import parse_target
from inspector.architectures.types import ArchitectureSpec, Target
from inspector.architectures.user_code import parse_factory, target_of_code
from inspector.cam.inputs.preprocess import prepare
from inspector.cam.report import Preprocessing
from inspector.cam.runs import ReadyModel
from inspector.checkpoint.types import Shape, TensorInfo
from inspector.doctor.maps_asked import MapsAsked
from inspector.doctor.maps_report import FeatureMaps
from inspector.doctor.own_code import trace_code, with_source
from inspector.doctor.report import Trace
from inspector.doctor.run import Wish, input_numel, trace_known
from inspector.errors import ExportError, NeedsValues
from inspector.exports.optimizer import find_staying, plan_optimizers
from inspector.feature_maps import feature_maps_of
from inspector.flops.count import count_costs
from inspector.flops.forwards import memory_of, time_of
from inspector.flops.memory_report import MemoryReport
from inspector.flops.own_code import count_code_costs
from inspector.flops.report import CostReport
from inspector.flops.timing_report import TimingReport
from inspector.graph.boxes import drawn
from inspector.graph.sources import graph_of
from inspector.graph.types import Drawn
from inspector.health.examine import examine
from inspector.health.report import HealthReport
from inspector.health.spectra import MOST_NUMEL, measure_spectra, working_nbytes
from inspector.health.spectrum_report import SpectrumReport
from inspector.jobs.asked import OptimizerFacts
from inspector.jobs.bench import Bench
from inspector.jobs.kinds.files import checkpoint_of, ready_of, recognition_of, state_of
from inspector.jobs.kinds.memory import weights_nbytes
from inspector.jobs.kinds.pictures import decoded
from inspector.jobs.subjects import FileRef, Held, PictureRef
from inspector.keys.report import RepairPlan, Verification
from inspector.keys.verify import Compared, verify_plan
from inspector.keys.witnesses.hearing import hear
from inspector.keys.witnesses.types import Statement
from inspector.surgery.plan import plan_surgery
from inspector.surgery.report import Operation, SurgeryReport
from inspector.traced import graph_of_code, graph_of_spec
from inspector.weights.look import TensorLook, look_at
from inspector.weights.measure import measure_tensor
from inspector.weights.report import TensorStatistics

# What the kinds that run a model may take anyway, half of it.
_FORESEEN_NBYTES = 1_000_000_000
# What the largest of torchvision's networks keep for each number of their input, and twice that.
_PASS_NBYTES = 3000
# Of what the kind may take anyway, the most for a matrix.
_SPECTRUM_NBYTES = 400_000_000


def tensor(bench: Bench, file: FileRef, path: tuple[str, ...]) -> TensorStatistics:
    """One read over one tensor. Raises ReadError when its bytes are not in the file."""
    checkpoint = checkpoint_of(bench, file)
    found: TensorInfo = next(one for one in checkpoint.tensors if one.path == path)
    return measure_tensor(checkpoint, found)


def tensor_look(bench: Bench, file: FileRef, path: tuple[str, ...]) -> TensorLook:
    """The first numbers of a tensor, a corner of it, its filters."""
    checkpoint = checkpoint_of(bench, file)
    return look_at(checkpoint, next(one for one in checkpoint.tensors if one.path == path))


def health(bench: Bench, file: FileRef) -> HealthReport:
    """Every tensor read once, and what the checks say of the numbers."""
    checkpoint = checkpoint_of(bench, file)
    return examine(checkpoint, state_of(checkpoint, file), progress=bench.progress)


def spectrum(bench: Bench, file: FileRef, path: tuple[str, ...]) -> SpectrumReport:
    """The singular values of one tensor, or why it has none."""
    checkpoint = checkpoint_of(bench, file)
    found = next(one for one in checkpoint.tensors if one.path == path)
    if found.numel <= MOST_NUMEL and working_nbytes(found) > _SPECTRUM_NBYTES:
        bench.need(working_nbytes(found))
    state = state_of(checkpoint, file)
    return measure_spectra(checkpoint, state, names=(found.name,), progress=bench.progress)


def costs(bench: Bench, spec: ArchitectureSpec, input_shape: tuple[int, ...] | None, batch: int = 1) -> CostReport:
    """One forward without numbers."""
    return count_costs(spec, input_shape, batch=batch)


def real_costs(bench: Bench, spec: ArchitectureSpec, input_shape: tuple[int, ...] | None, batch: int) -> CostReport:
    """One forward with random numbers, for what depends on them."""
    _need_for(bench, spec, input_shape, batch)
    return count_costs(spec, input_shape, batch=batch, values="random", second_opinion=False)


def drawing(bench: Bench, spec: ArchitectureSpec, input_shape: tuple[int, ...] | None) -> Drawn:
    """Boxes from one forward without numbers."""
    return drawn(graph_of_spec(spec, input_shape))


def carried_graph(bench: Bench, file: FileRef) -> Drawn | None:
    """Boxes of the graph in the file, None where it carries none."""
    found = graph_of(checkpoint_of(bench, file))
    return None if found is None else drawn(found)


def memory(
    bench: Bench, spec: ArchitectureSpec, input_shape: tuple[int, ...] | None, batch: int, how: tuple[str, str]
) -> MemoryReport:
    """The peak of one pass, or of one step. how: optimizer, precision."""
    optimizer, precision = how
    return memory_of(spec, input_shape, batch=batch, optimizer=optimizer, precision=precision)


def timing(bench: Bench, spec: ArchitectureSpec, input_shape: tuple[int, ...] | None, batch: int) -> TimingReport:
    """Seconds of each module on this machine."""
    _need_for(bench, spec, input_shape, batch)
    return time_of(spec, input_shape, batch=batch, progress=bench.progress)


def _need_for(bench: Bench, spec: ArchitectureSpec, input_shape: tuple[int, ...] | None, batch: int) -> None:
    """As much memory as the pass will hold, where that can be foreseen."""
    try:
        nbytes = memory_of(spec, input_shape, batch=batch).peak_nbytes
    except NeedsValues:
        return
    if nbytes > _FORESEEN_NBYTES:
        bench.need(nbytes, instead="A smaller input or batch takes less.")


def trace(
    bench: Bench,
    file: FileRef,
    given: tuple[PictureRef, Preprocessing] | tuple[int, ...] | None,
    batch: int,
    training: bool,
) -> Trace:
    """One forward, watched. given: a picture and how it is prepared, a shape without its batch, None for the usual."""
    ready, spec, wish = _pass_of(bench, file, given, batch, training)
    found = trace_known(ready.model, ready.architecture, spec, wish)
    if file.code is None:
        return found
    return with_source(found, parse_factory(file.code.text), file.code.folder)


def feature_maps(
    bench: Bench,
    file: FileRef,
    given: tuple[PictureRef, Preprocessing] | tuple[int, ...] | None,
    batch: int,
    training: bool,
    asked: MapsAsked,
) -> FeatureMaps:
    """The channels of one tensor of the same pass; nothing else of it is kept. Raises as `feature_maps_of`."""
    ready, spec, wish = _pass_of(bench, file, given, batch, training)
    return feature_maps_of(ready.model, ready.architecture, spec, wish, asked)


def _pass_of(
    bench: Bench,
    file: FileRef,
    given: tuple[PictureRef, Preprocessing] | tuple[int, ...] | None,
    batch: int,
    training: bool,
) -> tuple[ReadyModel, ArchitectureSpec | None, Wish]:
    """What runs, on what, with the memory that it takes."""
    ready = ready_of(bench, file)
    best = recognition_of(bench, file).best if file.code is None else None
    spec = parse_target(file.confirmed).spec if file.confirmed else best.spec if best is not None else None
    if given and isinstance(given[0], PictureRef):
        picture, steps = given
        made, _ = prepare(decoded(bench, picture), steps)
        wish = Wish(
            tensors={"picture": made},
            input_from=f"a picture, prepared by: {steps.source}",
            batch=batch,
            training=training,
        )
    else:
        wish = Wish(shape=given, batch=batch, training=training)
    _need_pass(bench, weights_nbytes(ready.model), _PASS_NBYTES * input_numel(spec, wish))
    return ready, spec, wish


def _need_pass(bench: Bench, weights: int, forward: int) -> None:
    if weights + forward > bench.settings.memory_nbytes // 20:
        bench.need(weights + forward)


def trace_own(
    bench: Bench,
    text: str,
    folder: Path,
    seconds: float,
    nbytes: int,
    shape: tuple[int, ...] | None,
    batch: int,
    training: bool,
) -> Trace:
    """The same of a network that a person's own code builds, in a process of its own behind its own wall."""
    wish = Wish(shape=shape, batch=batch, training=training)
    return trace_code(text, wish, folder=folder, seconds=seconds, memory_nbytes=nbytes)


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


def statements(bench: Bench, file: FileRef, plan: RepairPlan, target: Target) -> tuple[Statement, ...]:
    """What the numbers say of the questions of a plan. A layer's tensors are held at once, not the file's."""
    return hear(checkpoint_of(bench, file), plan, target)


def _need_weights(bench: Bench, nbytes: int) -> None:
    """The state dict, the model, and the model once more before it is loaded."""
    if 4 * nbytes > bench.settings.memory_nbytes // 20:
        bench.need(4 * nbytes)


def optimizer_groups(bench: Bench, file: FileRef, plan: RepairPlan, target: Target) -> OptimizerFacts:
    """Whether the file's optimizers can go along, and what is to be confirmed about their groups."""
    try:
        goings = plan_optimizers(checkpoint_of(bench, file), plan, target)
    except ExportError as error:
        return OptimizerFacts(refusal=error.says)
    staying = find_staying(goings)
    asks = tuple(going.map.asks for going in goings if going.map.asks)
    return OptimizerFacts(asks=asks, refusal=staying.says if staying is not None and not staying.map.asks else "")


def surgery(bench: Bench, file: FileRef, steps: tuple[Operation, ...]) -> SurgeryReport:
    """What the steps would make. Raises UsageError, ExportError as `plan_surgery`."""
    checkpoint = checkpoint_of(bench, file)
    return plan_surgery(checkpoint, steps, state=state_of(checkpoint, file))


def code_target(
    bench: Bench, text: str, folder: Path, seconds: float, nbytes: int, shapes: tuple[Shape, ...] = ()
) -> Target:
    """Names and shapes of what a person's own code builds, in a process of its own behind its own wall."""
    return target_of_code(text, folder=folder, seconds=seconds, memory_nbytes=nbytes, shapes=shapes)


def code_costs(
    bench: Bench,
    text: str,
    folder: Path,
    seconds: float,
    nbytes: int,
    input_shape: tuple[int, ...] | None,
    batch: int,
    values: str,
    memory: tuple[str, str] | None,
    timed: bool,
) -> CostReport:
    """What one forward of it costs, as `count_code_costs`. memory: optimizer and precision."""
    return count_code_costs(
        text,
        input_shape,
        batch=batch,
        values=values,
        memory=None if memory is None else {"optimizer": memory[0], "precision": memory[1]},
        timed=timed,
        folder=folder,
        seconds=seconds,
        memory_nbytes=nbytes,
    )


def code_drawing(
    bench: Bench, text: str, folder: Path, seconds: float, nbytes: int, input_shape: tuple[int, ...] | None
) -> Drawn:
    """Boxes from one forward of it without numbers."""
    return drawn(graph_of_code(text, input_shape, folder=folder, seconds=seconds, memory_nbytes=nbytes))
