"""How the user's own script gets at the file: which library loads it, and which files that is given.

A folder or an archive is not given to torch.load under its name. Where no plain loader reads what was opened, the lines
say to export it first: the exported file has the target's names already.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from inspector.architectures.building_lines import BuildingLines
from inspector.checkpoint.joined_source import JoinedSource, SliceSource, paths_of
from inspector.checkpoint.sent_folder import is_sent_folder
from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Access, Checkpoint, GlobalVerdict, StateDict
from inspector.checkpoint.values import ValueKind
from inspector.findings import Finding, Severity
from inspector.keys.report import RepairPlan
from inspector.keys.versions import needed_version
from inspector.shell_lines import join_words, operand, option_words

WRITTEN = "written.pth"
# Of findings: code that a real load needs, which is asked for after names are allowed.
NEEDS_CODE = "needs-code"
# Of findings: names that torch.load does not take by itself.
REFUSED = "weights-only-refuses"
_WRITABLE = re.compile(r"(file|code|keys):|[\w.-]+/[\w.-]+(\?|$)")
_TORCH = ("torch-zip", "torch-legacy")
_PLAIN = (*_TORCH, "safetensors", "sharded", "peft", "npz", "dcp", "torchscript")


def loader_of(checkpoint: Checkpoint, state: StateDict) -> tuple[str, tuple[str, ...]]:
    """(format as the loading lines need it, files to load, relative to where the opened thing lies).

    No files: the opened thing is the one file. The format is "" where it has to be exported first.
    """
    kind = checkpoint.format
    if kind in (*_TORCH, "safetensors") and not state.is_module and any(map(error_of, checkpoint.findings)):
        return "", ()
    if state.is_module and _asks_for_code(checkpoint):
        return "", ()  # Only weights_only=False makes a module: it would run what the file names, or not find it.
    nested = bool(state.path or state.gathered) and kind not in (*_TORCH, "dcp")
    if kind not in _PLAIN or nested or not is_bare(checkpoint.source):
        return "", ()
    if kind == "dcp":
        return kind, ()
    paths = [PurePath(path).as_posix() for path in paths_of(checkpoint.source)]
    names = [part.name for part in checkpoint.parts]
    # An index lies beside its shards; a folder has them in it.
    folder = "" if checkpoint.origin.name in names else f"{checkpoint.origin.name}/"
    files = tuple(folder + name for name in names if any(path.endswith(f"/{name}") for path in paths))
    if not files and kind in ("sharded", "peft"):
        return "", ()
    return kind, files


def only_unpickles(checkpoint: Checkpoint) -> bool:
    """Whether torch.load takes the file with weights_only=False, and only so: it is whole, and names what the safe
    unpickler refuses."""
    broken = any(error_of(finding) for finding in checkpoint.findings if finding.severity is Severity.ERROR)
    refused = any(finding.id == REFUSED for finding in checkpoint.findings)
    return checkpoint.format in _TORCH and is_bare(checkpoint.source) and refused and not broken


def access_of(checkpoint: Checkpoint, state: StateDict) -> Access:
    """The path to the state dict as Python indexes it: list positions are numbers."""
    if state.access:
        return state.access
    found: list[str | int | float | bytes | None] = []
    value = checkpoint.root
    for key in state.path:
        is_list = value.kind is ValueKind.SEQUENCE
        found.append(int(key) if is_list and key.isdigit() else key)
        value = next((child for label, child in value.children if label == key), value)
    return tuple(found)


def _asks_for_code(checkpoint: Checkpoint) -> bool:
    dangerous = any(use.verdict is GlobalVerdict.DANGEROUS for use in checkpoint.globals)
    return dangerous or any(finding.id == NEEDS_CODE for finding in checkpoint.findings)


def refusal_of(checkpoint: Checkpoint) -> str:
    """What torch.load says, as it is called since 2.6, to a file that is whole; "" where it reads it."""
    whole = (f for f in checkpoint.findings if f.severity is not Severity.ERROR)
    return next((said for finding in whole if (said := error_of(finding))), "")


def error_of(finding: Finding) -> str:
    """What the loader says to it, "" for nothing that ends it."""
    return str(dict(finding.evidence).get("error", "")) if finding.id != NEEDS_CODE else ""


def is_bare(source: ByteSource) -> bool:
    """Whether the bytes are those of files as they lie on a disk, not of members of an archive that somebody has."""
    if isinstance(source, JoinedSource):
        return any(is_bare(part) for part in source.parts)
    inner = getattr(source, "inner", None)
    return inner is None or (isinstance(source, SliceSource) and is_sent_folder(inner))


def loading_lines(plan: RepairPlan, file_name: str) -> tuple[list[str], list[str]]:
    """(imports, lines that put the state dict into `state`) for a plan that need not be written first."""
    files = plan.files or (file_name,)
    ending = files[0].rpartition(".")[2].lower()
    if plan.format == "safetensors" or (plan.format in ("sharded", "peft") and ending == "safetensors"):
        return ["from safetensors.torch import load_file"], _each(files, "load_file({})")
    if plan.format == "npz":
        reading = f"{{key: torch.from_numpy(array) for key, array in numpy.load({files[0]!r}).items()}}"
        return ["import numpy"], [f"state = {reading}"]
    if plan.format == "torchscript":
        return [], [
            "# A TorchScript program: loading it brings its code along. The repaired file has none.",
            f'state = torch.jit.load({files[0]!r}, map_location="cpu").state_dict()',
        ]
    if plan.format == "dcp":
        return ["from torch.distributed.checkpoint.format_utils import dcp_to_torch_save"], [
            "# This unpickles the folder's .metadata, which runs the code it names. The repaired file needs none.",
            f'dcp_to_torch_save({file_name!r}, "{WRITTEN}")',
            f'state = torch.load("{WRITTEN}", map_location="cpu", weights_only=True)',
            *(_together(plan) if plan.gathered else _inside(plan)),
        ]
    trust = "False" if plan.is_module else "True"
    lines = _each(files, f'torch.load({{}}, map_location="cpu", weights_only={trust})')
    if plan.gathered:
        return [], [*lines, *_together(plan)]
    lines += _inside(plan)
    if plan.is_module:
        lines.append("state = state.state_dict()")
    return [], lines


def _together(plan: RepairPlan) -> list[str]:
    """The sets of the file as one, each under its prefix."""
    lines = ["parts = {"]
    for part in plan.gathered:
        keys = "".join(f"[{key!r}]" for key in part.access)
        lines.append(f"    {part.prefix!r}: state{keys}{'.state_dict()' if part.is_module else ''},")
    plain = not plan.odd_keys and not plan.others and all(part.prefix for part in plan.gathered)
    condition = "" if plain else " if isinstance(key, str) and isinstance(tensor, torch.Tensor)"
    return [
        *lines,
        "}",
        "state = {",
        f"    prefix + key: tensor for prefix, part in parts.items() for key, tensor in part.items(){condition}",
        "}",
    ]


def _inside(plan: RepairPlan) -> list[str]:
    return [f"state = state[{key!r}]" for key in plan.access]


def _each(files: tuple[str, ...], call: str) -> list[str]:
    if len(files) == 1:
        return [f"state = {call.format(repr(files[0]))}"]
    names = [f"    {name!r}," for name in files]
    return ["state = {}", "for name in (", *names, "):", f"    state.update({call.format('name')})"]


def exported_lines(file_name: str, plan: RepairPlan, accepted: Sequence[str]) -> list[str]:
    """What to do about a file that no line of plain torch loads, up to the loading itself. accepted: ids of rules."""
    partial = ["--partial"] if plan.partial else []
    # A pasted list of names is nothing that a command could be given.
    options = [*option_words("--target", plan.target)] if _WRITABLE.match(plan.target) else []
    options += option_words("--state", plan.state_option) if plan.state_option else ()
    options += [word for key, option in plan.chosen for word in option_words("--choose", f"{key}={option}")]
    options += [word for rule in accepted for word in option_words("--accept", rule)]
    repair = ["python", "-m", "inspector", "repair", operand(file_name), *partial, "--output", WRITTEN, *options]
    why = [f"# No plain loader reads {file_name[:200]!r} as it lies there. Repair it first:"]
    if plan.unpickles:
        why = [
            f"# torch.load({file_name[:200]!r}, weights_only=False) reads this file where all that it names can be",
            "# imported, and runs that code. Repair it first, which runs nothing:",
        ]
    return [
        *why,
        f"#   {join_words(repair)}",
        "# The repaired file has the names of the target already.",
        f'state = torch.load("{WRITTEN}", map_location="cpu", weights_only=True)',
    ]


def model_lines(built: BuildingLines | None, own: str = "") -> list[str]:
    """Where `model` comes from. own: the label of a network that this package builds and no library does by a name."""
    if built is None and own:
        return [
            "",
            "# `model` is yours: build it before this line. Model Inspector has one of the same names, too:",
            "#   from inspector import build_model, parse_target",
            f"#   model = build_model(parse_target({own!r}).spec)",
        ]
    if built is None:
        return ["", "# `model` is yours: build it before this line."]
    return ["", "# Leave this out where you have built the model already.", *built.lines]


def loading_ending(plan: RepairPlan) -> list[str]:
    """The load itself: strict, or for a part without strict and with a check of exactly what it says."""
    lines = []
    version = needed_version(plan)
    if version is not None:
        lines = [
            "# This class refuses a state dict without a version, and a plain dict cannot carry one.",
            "state = collections.OrderedDict(state)",
            f'state._metadata = {{"": {{"version": {version}}}}}',
        ]
    if not plan.partial:
        return [*lines, "model.load_state_dict(state, strict=True)"]
    return [
        *lines,
        "# The file does not have these: they stay at the model's initial value. Anything else is an error.",
        "missing = {",
        *(f"    {name!r}," for name in sorted(plan.missing)),
        "}",
        "report = model.load_state_dict(state, strict=False)",
        "if set(report.missing_keys) != missing or report.unexpected_keys:",
        "    differs = sorted(set(report.missing_keys) ^ missing) + report.unexpected_keys",
        '    raise RuntimeError(f"The model is not the one that this was made for: {differs[:5]} differ.")',
    ]
