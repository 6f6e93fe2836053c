"""Heat maps: the one forward that is kept, and the maps of it."""

from __future__ import annotations

from inspector.cam.describe import Setting, explanation_of
from inspector.cam.inputs.preprocess import prepare
from inspector.cam.layers.proposals import find_layer, propose_layers
from inspector.cam.live import Look, look
from inspector.cam.methods import METHODS
from inspector.cam.report import Crop, Explanation, LayerProposal
from inspector.cam.spec import MapRequest, MapSpec
from inspector.cam.targets.answers import AnswerKind
from inspector.cam.targets.readings import shares_of
from inspector.jobs.bench import Bench
from inspector.jobs.kind import MB
from inspector.jobs.kinds.files import ready_of
from inspector.jobs.kinds.memory import forward_nbytes, weights_nbytes
from inspector.jobs.kinds.pictures import decoded
from inspector.jobs.subjects import FileRef, MapCost, MethodFacts, Naming, Seen, Subject, Wanted
from inspector.units import human_bytes

Shape = tuple[int, int, int]

# Up to here a forward fits into every job's own allowance: the largest of torchvision's keep 1,500 bytes a number.
_SMALL_INPUT, _SMALL_WEIGHTS = 3 * 256 * 256, 150 * MB
# What the estimate leaves out: gradients, copies for kernels, pieces that the allocator keeps.
_MORE = 1.5


def methods(bench: Bench) -> tuple[MethodFacts, ...]:
    """Every method, the suggested one first."""
    return tuple(
        MethodFacts(
            id=method.id,
            title=method.title,
            says=method.says,
            differs=method.differs,
            arithmetic=method.arithmetic is not None,
            by_layer=method.by_layer,
            per_channel=method.per_channel,
        )
        for method in METHODS
    )


def proposals(bench: Bench, file: FileRef, shape: Shape) -> tuple[LayerProposal, ...]:
    """Layers worth explaining, the suggested one first."""
    return propose_layers(ready_of(bench, file).model, shape)


def layer_named(bench: Bench, file: FileRef, shape: Shape, path: str) -> LayerProposal:
    """A layer beyond the proposals. Raises NoSuchLayer, LayerNotSpatial."""
    return find_layer(ready_of(bench, file).model, path, shape)


def looked(bench: Bench, subject: Subject) -> tuple[Look, Crop]:
    """The one forward pass, and the rectangle of the picture that it saw. Raises ExplainError and its kinds."""
    model = ready_of(bench, subject.file).model
    nbytes = 0

    def run() -> tuple[Look, Crop]:
        nonlocal nbytes
        batch, crop = prepare(decoded(bench, subject.picture), subject.preprocessing)
        nbytes = need_of(bench, subject, tuple(batch.shape))
        return look(model, batch, subject.layers), crop

    return bench.keep(("look", subject), run, nbytes=lambda _: nbytes, tag=subject.file.sha256)


def need_of(bench: Bench, subject: Subject, shape: tuple[int, ...], *, times: float = 1.0) -> int:
    """Ask for the memory of a forward with its backward where it may be much. Returns the bytes of one, about."""
    model = ready_of(bench, subject.file).model
    numel = shape[0] * shape[1] * shape[2] * shape[3]
    weights = weights_nbytes(model)
    if numel <= _SMALL_INPUT and weights <= _SMALL_WEIGHTS:
        return 1500 * numel
    nbytes: int = bench.keep(
        ("forward", subject.file, shape), lambda: forward_nbytes(model, shape), nbytes=lambda _: 100
    )
    wanted = int(_MORE * times * nbytes)
    bench.need(wanted + weights, instead=_instead(bench, shape, wanted + weights))
    return nbytes


def _instead(bench: Bench, shape: tuple[int, ...], wanted: int) -> str:
    """The size that would fit: what a forward keeps grows with its pixels."""
    share = 0.8 * bench.settings.memory_nbytes / max(1, wanted)
    if share >= 1:
        return ""
    height, width = (max(32, int(side * share**0.5) // 32 * 32) for side in shape[2:])
    return f"At {height} x {width} pixels it would fit into {human_bytes(bench.settings.memory_nbytes)}."


def seen(bench: Bench, subject: Subject) -> Seen:
    """What the model answers."""
    found, crop = looked(bench, subject)
    logits = found.logits.double()
    shares = [(kind, shares_of(logits, kind)) for kind in AnswerKind]
    return Seen(
        kind=found.kind,
        logits=logits.numpy(),
        shares=tuple((kind, None if share is None else share.double().numpy()) for kind, share in shares),
        pixels=found.shares,
        boxes=found.boxes,
        best=found.best,
        size=(found.batch.shape[2], found.batch.shape[3]),
        crop=crop,
    )


def spec_of(found: Look, wanted: Wanted) -> MapSpec:
    """How a map is made of it. Raises UsageError for what means nothing together."""
    request = MapRequest(method=wanted.method, layers=wanted.layers, options=wanted.options)
    _, channels, height, width = found.batch.shape
    return request.at(found.model, (channels, height, width))


def cost(bench: Bench, subject: Subject, wanted: Wanted) -> MapCost:
    """What a map takes, by a pass that is tried out now."""
    found, _ = looked(bench, subject)
    spec = spec_of(found, wanted)
    passes, seconds = found.cost(spec)
    return MapCost(passes=passes, seconds=seconds, whole=found.seconds_of_one(spec))


def explained(bench: Bench, subject: Subject, wanted: Wanted, target: int, naming: Naming) -> Explanation:
    """A map. target: a column of the answer. Raises ExplainError and its kinds."""
    found, crop = looked(bench, subject)
    spec = spec_of(found, wanted)
    if spec.is_arithmetic:
        eigen = spec.options.eigen_smooth
        made = spec.join([found.map(spec.method, layer, target, eigen=eigen) for layer in spec.layers])
    else:
        # Several changed pictures at a time, through a copy of the model.
        need_of(bench, subject, tuple(found.batch.shape), times=2.0)
        made = found.make(spec, target, progress=bench.progress)
    return explanation_of(
        found.model,
        found.batch,
        made,
        crop=crop,
        setting=setting_of(subject, naming),
        asked=found.asked(target, crop),
    )


def setting_of(subject: Subject, naming: Naming) -> Setting:
    """What its maps share with those of other pictures and checkpoints."""
    return Setting(preprocessing=subject.preprocessing, categories=naming.names, answer=naming.answer)
