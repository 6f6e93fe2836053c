"""What a repair should arrive at: a target from a spec, a candidate, another file, or a list of keys.

torchvision/resnet18                     classes and input channels follow the file, by names or by shapes alone
torchvision/resnet18?num_classes=1000    fixed
timm/resnetaa50                          likewise; needs no timm, but for building it
cifar/resnet?blocks=3&width=16,16,32,64  a family with its sizes; what is left open follows the file
file:other.safetensors                   the names and shapes of another file
keys:list.txt                            names, one per line or as Python prints them; shapes where they stand
code:model.py:build?num_classes=4        what your own factory builds; running it is the caller's to allow
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from inspector.architectures.families import find_family
from inspector.architectures.families.specs import follow_family, read_spec, target_of_family
from inspector.architectures.following import Setting, followed, shapes_of
from inspector.architectures.index import LIBRARIES, Entry, load_index
from inspector.architectures.key_lists import target_of_list
from inspector.architectures.match import shapes_for
from inspector.architectures.suggest import suggest
from inspector.architectures.types import ArchitectureSpec, Candidate, OptionValue, Target, TargetKind, TargetTensor
from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
from inspector.errors import UnknownArchitecture, UsageError
from inspector.side_files import read_text, shown_name
from inspector.units import whole_number

FORMS = "Write torchvision/NAME, timm/NAME, file:PATH, keys:PATH or code:FILE.py:FACTORY."
# As in `build.OPTIONS`, which cannot be imported here because it needs torch; a test holds them equal.
FLAGS = ("aux_logits", "aux_loss", "frozen_norm", "quantize", "transform_input")
NUMBERS = ("image_size",)
FRACTIONS = ("frozen_epsilon",)


def target_of(spec: ArchitectureSpec) -> Target:
    """The state dict that a spec's model has, from the index or a family's template.

    Raises UnknownArchitecture for a builder that the index does not have, UsageError for a family without its sizes.
    """
    family = find_family(spec.library, spec.name)
    if family is not None:
        return target_of_family(family, spec)
    entry = find_entry(spec)
    tensors = tuple(
        replace(tensor, shape=shape) for tensor, shape in zip(entry.tensors, shapes_for(entry, spec), strict=True)
    )
    return Target(
        label=spec.label,
        kind=TargetKind.ARCHITECTURE,
        tensors=tensors,
        spec=spec,
        heads=tuple(dict.fromkeys(entry.tensors[i].name for i, *_ in entry.heads)),
        first_convolutions=tuple(entry.tensors[i].name for i in entry.first),
    )


def target_of_candidate(candidate: Candidate) -> Target:
    """The target that a file was recognised as, with its class count and input channels."""
    return target_of(candidate.spec)


def target_of_checkpoint(checkpoint: Checkpoint, label: str) -> Target:
    """The names and shapes of a file's weights.

    Raises UsageError when the file holds no state dict.
    """
    state = checkpoint.weights
    if state is None:
        raise UsageError(f"{checkpoint.origin.name} holds no state dict that could be a target.")
    return Target(
        label=label,
        kind=TargetKind.FILE,
        tensors=tuple(
            TargetTensor(
                name=tensor.name,
                shape=tensor.shape,
                dtype=tensor.dtype,
                is_buffer=None if tensor.is_parameter is None else not tensor.is_parameter,
            )
            for tensor in state.tensors
        ),
        ties=_ties(state.tensors),
        ordered=state.ordered,
    )


def _ties(tensors: Iterable[TensorInfo]) -> tuple[tuple[str, ...], ...]:
    """Names of one view of one storage: one parameter under several names. Scalars are no parameters."""
    views: dict[tuple[object, ...], list[str]] = {}
    for tensor in tensors:
        if tensor.storage_id is not None and len(tensor.shape) > 1:
            view = (tensor.storage_id, tensor.offset, tensor.shape, tensor.stride)
            views.setdefault(view, []).append(tensor.name)
    return tuple(tuple(names) for names in views.values() if len(names) > 1)


def is_architecture(text: str) -> bool:
    """Whether this is meant as an architecture and not as a file: "timm/..." or a bare builder's name."""
    path = text.strip().partition("?")[0]
    library, _, name = path.partition("/")
    if find_family(library, name) is not None:
        return True
    return path.startswith(tuple(f"{library}/" for library in LIBRARIES)) or bool(load_index().library_of(path))


def parse_target(
    text: str,
    *,
    candidate: Candidate | None = None,
    state: StateDict | None = None,
    open_file: Callable[[str], Checkpoint] | None = None,
    run_code: Callable[[str], Target] | None = None,
) -> Target:
    """A target as a person writes it.

    candidate: what the file was recognised as; its class count, input channels and variant are taken over when it is
    the same builder (or a twin) and the text does not fix them. state: what is to be loaded; the class count and the
    input channels that are still open are those that its shapes show, whatever its names are.
    open_file: how `file:` targets are opened.
    run_code: how `code:` targets are run; None where nobody agreed to that.
    Raises UsageError for text that means nothing, UnknownArchitecture for an unknown builder.
    """
    text = text.strip()
    if text.startswith("file:"):
        if open_file is None:
            raise UsageError("A file cannot be used as the target here.")
        return target_of_checkpoint(open_file(text.removeprefix("file:")), text)
    if text.startswith("code:"):
        if run_code is None:
            raise UsageError("Code is not run here.", hint="Name it on the command line: --target code:model.py:build.")
        return run_code(text)
    if text.startswith("keys:"):
        path = text.removeprefix("keys:")
        listed = read_text(path, "list of keys", hint="Write one key per line.")
        return target_of_list(listed, text, called=shown_name(path))
    return follow_shapes(target_of(follow(parse_spec(text), candidate)), state)


def follow_shapes(target: Target, state: StateDict | None) -> Target:
    """The target with the class count and input channels that its spec leaves open and a state dict's shapes show."""
    spec = target.spec
    if state is None or spec is None or find_family(spec.library, spec.name) is not None:
        return target
    entry = find_entry(spec)
    settings = []
    if spec.num_classes is None and entry.heads and entry.num_classes is not None:
        settings.append(Setting(name="num_classes", value=entry.num_classes, laws=entry.heads))
    if spec.in_channels is None and entry.channels:
        settings.append(Setting(name="in_channels", value=3, laws=entry.channels))
    values = followed(shapes_for(entry, spec), settings, shapes_of(state)) if settings else {}
    if not values:
        return target
    return target_of(
        replace(
            spec,
            num_classes=values.get("num_classes", spec.num_classes),
            in_channels=values.get("in_channels", spec.in_channels),
        )
    )


def parse_spec(text: str) -> ArchitectureSpec:
    """'torchvision/resnet18?num_classes=10' as a spec; without a library, torchvision's where it has that name."""
    path, _, query = text.partition("?")
    library, slash, name = path.rpartition("/")
    if not name:
        raise UsageError(f'"{text}" names no target.', hint=FORMS)
    if not slash:
        library = load_index().library_of(name)
        if not library:
            raise UnknownArchitecture(
                f'Neither {" nor ".join(LIBRARIES)} has an architecture "{name}".',
                hint=suggest(name, load_index().names) or _as_file(name),
            )
    family = find_family(library, name)
    if family is not None:
        return read_spec(family, query)
    if library not in LIBRARIES:
        known = " and ".join(f"{known}'s" for known in LIBRARIES)
        raise UnknownArchitecture(f'No architectures of "{library}" are known, only {known}.', hint=FORMS)
    spec = ArchitectureSpec(library=library, name=name)
    find_entry(spec)
    options: dict[str, OptionValue] = {}
    for pair in filter(None, query.split("&")):
        key, _, value = pair.partition("=")
        if key == "num_classes":
            spec = replace(spec, num_classes=_positive(key, value))
        elif key == "in_channels":
            spec = replace(spec, in_channels=_positive(key, value))
        elif key in NUMBERS:
            options[key] = _positive(key, value)
        elif key in FLAGS:
            options[key] = _flag(key, value)
        elif key in FRACTIONS:
            options[key] = _fraction(key, value)
        else:
            settings = ("num_classes", "in_channels", *NUMBERS, *FLAGS, *FRACTIONS)
            raise UsageError(
                f'A target has no setting "{key}".', hint=suggest(key, settings) or f"Known: {', '.join(settings)}."
            )
    return replace(spec, options=tuple(sorted(options.items())))


def follow(spec: ArchitectureSpec, candidate: Candidate | None) -> ArchitectureSpec:
    """The spec with what it leaves open taken from the file's own candidate, when that is the same architecture."""
    if candidate is None:
        return spec
    seen = candidate.spec
    family = find_family(spec.library, spec.name)
    if family is not None:
        return follow_family(family, spec, seen) if (seen.library, seen.name) == (spec.library, spec.name) else spec
    own, label = f"{seen.library}/{seen.name}", f"{spec.library}/{spec.name}"
    if label not in (own, *candidate.twins):
        return spec
    shared = {key: value for key, value in seen.options if label == own or key == "image_size"}
    options = {**shared, **dict(spec.options)}
    return replace(
        spec,
        num_classes=seen.num_classes if spec.num_classes is None else spec.num_classes,
        in_channels=seen.in_channels if spec.in_channels is None else spec.in_channels,
        options=tuple(sorted(options.items())),
    )


def find_entry(spec: ArchitectureSpec) -> Entry:
    """The index entry of a spec. Raises UnknownArchitecture with the nearest names."""
    index = load_index()
    entry = index.of(spec)
    if entry is None:
        elsewhere = index.library_of(spec.name)
        own = [label.partition("/")[2] for label in index.builders if label.startswith(f"{spec.library}/")]
        hint = f"{elsewhere} has one: {elsewhere}/{spec.name}." if elsewhere else suggest(spec.name, own)
        hint = hint or _as_file(spec.name)
        raise UnknownArchitecture(f'{spec.library} has no architecture "{spec.name}".', hint=hint)
    return entry


def _as_file(name: str) -> str:
    return f"A file as the target is written file:{name}." if "." in name else ""


def _positive(key: str, text: str) -> int:
    number = whole_number(text, 9_999_999)
    if not number:
        raise UsageError(f'{key} must be a positive whole number, not "{text[:40]}".')
    return number


def _flag(key: str, text: str) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in known:
        raise UsageError(f'{key} is true or false, not "{text}".')
    return known[text.lower()]


def _fraction(key: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise UsageError(f'{key} must be a number from 0 to 1, not "{text}".')
    return value
