"""TorchScript archives (torch.jit.save), scripted, traced, frozen or mobile: weights, module tree, code as text.

data.pkl holds the objects, constants.pkl the constants of the code, code/ the program, extra/ the user's own files.
Nothing is compiled or run. Source: torch/csrc/jit/serialization/export_module.cpp, import.cpp, python_print.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.checkpoint.nested import NamedTensors, find_state_dicts
from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import (
    Checkpoint,
    GlobalUse,
    GlobalVerdict,
    ModuleNode,
    StateRole,
    TensorInfo,
)
from inspector.errors import ReadError
from inspector.findings import Finding, ranked
from inspector.limits import Limits
from inspector.readers.archives.zip_directory import Directory, find_member
from inspector.readers.archives.zip_doubts import refuse_encrypted
from inspector.readers.archives.zip_members import Member
from inspector.readers.assemble import Unpickled, checkpoint_from_pickle
from inspector.readers.checks.observations import observe_globals, observe_storages
from inspector.readers.entry import Peek, Reader
from inspector.readers.finish import FileContent
from inspector.readers.formats.script.code import ScriptClass, module_name, plain_class
from inspector.readers.formats.script.findings import (
    OWN_CLASSES,
    observe_code,
    script_finding,
    unreadable_finding,
    unused_finding,
)
from inspector.readers.formats.script.members import CODE_NBYTES, Pickles, Program, read_program
from inspector.readers.formats.script.model_json import read_model_json
from inspector.readers.formats.torch_archive import (
    archive_findings,
    archive_storages,
    byte_order,
    member_bytes,
    other_pickles,
    search_archive,
    unpickle_member,
)
from inspector.readers.not_checkpoints.naming import name_zip
from inspector.readers.unpickle.nested.hidden_pickles import Head, observe_hidden
from inspector.readers.unpickle.outline.outline import outline
from inspector.readers.unpickle.stand_ins import Mapping, TensorStub
from inspector.units import counted, human_shape

_EXTRA_NBYTES = 4_000
_MOST_EXTRAS = 64
# torch.load refuses the whole kind of file; what its pickle names is not the reason.
_NOT_SAID = frozenset({"weights-only-refuses", "unnamed-tensors", "dangerous-global", "unknown-global"})


_CLASSES = "__torch__.torch.classes."


def _claims(peek: Peek) -> str:
    directory = peek.directory
    if directory is None or not directory.members:
        return ""
    prefix = directory.members[0].name.partition("/")[0]
    if find_member(directory, f"{prefix}/model.json") and find_member(directory, f"{prefix}/version"):
        return "model.json, as TorchScript of torch 1.0 and 1.1 has it"
    both = find_member(directory, f"{prefix}/constants.pkl") and find_member(directory, f"{prefix}/data.pkl")
    return "data.pkl and constants.pkl, which is what torch.load tells TorchScript by" if both else ""


def _read(peek: Peek) -> Checkpoint:
    source, limits, directory = peek.source, peek.limits, peek.directory
    assert directory is not None
    prefix = directory.members[0].name.partition("/")[0]
    main = find_member(directory, f"{prefix}/data.pkl") or find_member(directory, f"{prefix}/model.json")
    if main is None:
        raise name_zip(source, directory)
    if main.encrypted:
        raise refuse_encrypted(source.name, directory.members)
    program = read_program(source, directory, prefix, limits)
    others = Pickles(source, directory, prefix, limits, main)
    findings = [*archive_findings(source, directory, main), script_finding(len(program.texts) + len(program.problems))]
    if main.name.lower().endswith("model.json"):
        made = read_model_json(source, directory, prefix, main, others.find("attributes.pkl"), limits)
        made = replace(made, globals=_globals_of(others, source, limits))
    else:
        made = _from_pickle(source, directory, prefix, main, others, limits)
    made = _with_classes(made, program)
    made = replace(made, globals=_judged(made.globals, program))
    findings += [f for f in made.findings if f.id not in _NOT_SAID]
    findings += observe_globals(made.globals)
    findings += observe_code(list(program.facts.values()))
    findings += _code_findings(program, made)
    extras, unread = _extras(source, directory, prefix, limits)
    return replace(
        made,
        format=READER.id,
        format_says=READER.says,
        metadata=(*_metadata(source, directory, prefix, program, made, others, limits), *made.metadata, *extras),
        findings=ranked(findings),
        skipped=(*made.skipped, *unread, *_left_out(program, others)),
        code=tuple(program.texts),
    )


def _globals_of(others: Pickles, source: ByteSource, limits: Limits) -> tuple[GlobalUse, ...]:
    outcomes = others.outcomes()
    if not outcomes:
        return ()
    first = next(iter(others.found.values()))
    content = FileContent(format="", format_says="")
    return checkpoint_from_pickle(first, content, source=source, limits=limits, also=outcomes[1:]).globals


def _judged(uses: Sequence[GlobalUse], program: Program) -> tuple[GlobalUse, ...]:
    """A class under `__torch__` is known when the code in the file defines it; torch.jit.load takes it from nowhere
    else, but for the classes that libraries register."""
    judged = []
    for use in uses:
        if use.name.startswith("__torch__."):
            own = use.name in program.classes
            torchs = use.name.startswith(_CLASSES) and use.name.removeprefix(_CLASSES).partition(".")[0] in OWN_CLASSES
            verdict = GlobalVerdict.KNOWN if own or torchs else GlobalVerdict.UNKNOWN
            why = "a class of the code in this file" if own else "a class that the code in this file does not define"
            why = "a class that torch itself registers, for packed weights" if torchs and not own else why
            use = replace(use, verdict=verdict, why=why)
        judged.append(use)
    return tuple(sorted(judged, key=lambda u: u.verdict.order))


def _from_pickle(
    source: ByteSource, directory: Directory, prefix: str, main: Member, others: Pickles, limits: Limits
) -> Checkpoint:
    pickle = unpickle_member(source, main, limits)
    big_endian = byte_order(source, directory, prefix, limits) == b"big"
    heads: list[Head] = []
    storages, findings = archive_storages(source, directory, prefix, pickle, big_endian, heads=heads)
    rivals = [(where, o) for where, o in other_pickles(source, directory, main, limits) if ", found " in where]
    # Members that are pickles by name are followed anyway.
    unnamed = tuple(m for m in directory.members if not m.name.lower().endswith((".pkl", ".debug_pkl")))
    hidden = search_archive(source, replace(directory, members=unnamed), main, pickle, heads, limits)
    content = FileContent(
        format=READER.id,
        format_says=READER.says,
        storages=storages,
        findings=[*findings, *observe_hidden(hidden)],
        skipped=hidden.left_out,
    )
    also = [*others.outcomes(), *(outcome for _, outcome in rivals)]
    made = checkpoint_from_pickle(pickle, content, source=source, limits=limits, also=also, hidden=hidden.outcomes)
    constants = others.find("constants.pkl")
    if constants is None:
        return made
    return _with_constants(made, constants, source, directory, prefix, big_endian, limits)


def _with_constants(
    made: Checkpoint,
    constants: Unpickled,
    source: ByteSource,
    directory: Directory,
    prefix: str,
    big_endian: bool,
    limits: Limits,
) -> Checkpoint:
    """Add the tensors that the code calls CONSTANTS.c0, CONSTANTS.c1 ...; freezing a model puts its weights there."""
    shown = outline(constants.outcome.value, constants.outcome.uses, limits)
    if not shown.tensors:
        return made
    found, findings = archive_storages(source, directory, prefix, constants, big_endian, folder="constants")
    storages = {f"constants/{key}": replace(s, id=f"constants/{key}") for key, s in found.items()}
    tensors = tuple(_constant(t) for t in shown.tensors)
    group = NamedTensors(path=("CONSTANTS",), kind="constants of the code", tensors=tensors)
    (state,) = find_state_dicts([group])
    why = "the code uses them as constants; freezing a model puts its weights there"
    state = replace(state, role=StateRole.OTHER, why=why)
    known = {f.id for f in made.findings}
    findings += [f for f in observe_storages(tensors, storages, source.name) if f.id not in known]
    return replace(
        made,
        tensors=(*made.tensors, *tensors),
        storages={**made.storages, **storages},
        state_dicts=(*made.state_dicts, state),
        findings=(*made.findings, *findings),
    )


def _constant(tensor: TensorInfo) -> TensorInfo:
    path = ("CONSTANTS", f"c{tensor.path[0]}" if tensor.path else "c0", *tensor.path[1:])
    return replace(_in_constants(tensor), path=path, name=".".join(path[1:]))


def _in_constants(tensor: TensorInfo) -> TensorInfo:
    storage = None if tensor.storage_id is None else f"constants/{tensor.storage_id}"
    encoding = tensor.encoding
    if encoding is not None:
        encoding = replace(encoding, parts=tuple(_in_constants(part) for part in encoding.parts))
    return replace(tensor, storage_id=storage, encoding=encoding)


def _with_classes(made: Checkpoint, program: Program) -> Checkpoint:
    """Tell parameters, buffers and other attributes apart by the classes of the code; give modules their settings."""
    settled: dict[tuple[str, ...], TensorInfo] = {}
    states = []
    for state in made.state_dicts:
        if not state.is_module:
            states.append(state)
            continue
        aside: set[tuple[str, ...]] = set()
        modules = _settle(state.modules, program.classes, settled, aside)
        tensors = tuple(settled.get(t.path, t) for t in state.tensors if t.path not in aside)
        kind = plain_class(state.kind)
        why = f"it is the module of a TorchScript program ({kind})"
        states.append(replace(state, tensors=tensors, modules=modules, kind=kind, why=why))
    tensors = tuple(settled.get(t.path, t) for t in made.tensors)
    return replace(made, tensors=tensors, state_dicts=tuple(states))


def _settle(
    node: ModuleNode,
    classes: dict[str, ScriptClass],
    settled: dict[tuple[str, ...], TensorInfo],
    aside: set[tuple[str, ...]],
) -> ModuleNode:
    # Recursion is bounded: modules are gathered to a depth of 150.
    known = classes.get(node.kind or "")
    own: list[TensorInfo] = []
    for tensor in node.tensors:
        name = tensor.path[-1]
        if known is not None and known.parameters is not None:
            if name in known.parameters:
                tensor = replace(tensor, is_parameter=True)
            elif known.buffers is None or name in known.buffers:
                tensor = replace(tensor, is_parameter=False)
            else:
                tensor = replace(tensor, note=tensor.note or "attribute, neither parameter nor buffer")
                aside.add(tensor.path)
        settled[tensor.path] = tensor
        if tensor.path not in aside:
            own.append(tensor)
    settings = dict(node.hyperparameters)
    if known is not None:
        settings = {**dict(known.constants), **settings}
    return replace(
        node,
        kind=plain_class(node.kind) if node.kind else None,
        hyperparameters=tuple(settings.items())[:64],
        tensors=tuple(own),
        children=tuple(_settle(child, classes, settled, aside) for child in node.children),
    )


def _code_findings(program: Program, made: Checkpoint) -> list[Finding]:
    found = [unreadable_finding(program.problems)] if program.problems else []
    wanted = {use.name for use in made.globals if use.name.startswith("__torch__.")}
    members = {module_name(name): name for name in program.facts}
    needed: set[str] = set()
    queue = [*wanted]
    while queue:
        parts = queue.pop().split(".")
        # A name is a class or function in a member; a nested name is looked up by its longest member.
        owner = next((m for n in range(len(parts), 0, -1) if (m := ".".join(parts[:n])) in members), None)
        if owner is not None and owner not in needed:
            needed.add(owner)
            queue += program.facts[members[owner]].references
    unused = [name for module, name in members.items() if module not in needed]
    if unused and wanted and not program.problems and not program.left_out:
        found.append(unused_finding(unused))
    return found


def _left_out(program: Program, others: Pickles) -> list[str]:
    said = []
    if program.left_out:
        said.append(
            f"{counted(program.left_out, 'code member')} were not read whole: the limit is {CODE_NBYTES:,} bytes."
        )
    if others.unread:
        said.append(f"{counted(len(others.unread), 'pickle')} could not be followed, first {others.unread[0][:120]}.")
    return said


def _extras(
    source: ByteSource, directory: Directory, prefix: str, limits: Limits
) -> tuple[list[tuple[str, str]], list[str]]:
    """The user's own files (`_extra_files`): short texts as metadata, the others named."""
    shown: list[tuple[str, str]] = []
    unread: list[str] = []
    start = f"{prefix}/extra/"
    for member in [m for m in directory.members if m.name.startswith(start)][: 4 * _MOST_EXTRAS]:
        name = member.name[len(prefix) + 1 :]
        try:
            raw = member_bytes(source, member, limits, most=_EXTRA_NBYTES) if member.nbytes <= _EXTRA_NBYTES else None
            text = raw.decode("utf-8") if raw is not None else ""
        except (ReadError, UnicodeDecodeError):
            raw = None
        if raw is None or "\0" in text or len(shown) >= _MOST_EXTRAS:
            unread.append(f"{name[:120]} ({member.nbytes:,} bytes) was not read: it is no short text.")
        else:
            shown.append((name, text))
    return shown, unread[:20]


def _metadata(
    source: ByteSource,
    directory: Directory,
    prefix: str,
    program: Program,
    made: Checkpoint,
    others: Pickles,
    limits: Limits,
) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    version = find_member(directory, f"{prefix}/version") or find_member(directory, f"{prefix}/.data/version")
    if version is not None:
        raw = member_bytes(source, version, limits, most=16).strip()
        if raw.isdigit():
            found.append(("archive version", raw.decode()))
    bytecode = others.find("bytecode.pkl")
    if bytecode is not None:
        value = bytecode.outcome.value
        number = value[0] if isinstance(value, tuple | list) and value and type(value[0]) is int else None
        found.append(("mobile bytecode version", "unknown" if number is None else str(number)[:20]))
    traced = others.find("traced_inputs.pkl")
    if traced is not None:
        found.append(("made by", "torch.jit.trace"))
        found += _traced_inputs(traced.outcome.value)
    elif program.scripted:
        found.append(("made by", "torch.jit.script (the code has control flow or constants that tracing leaves out)"))
    main = _main_class(made, program)
    if main is not None:
        found += [(name, signature[:500]) for name, signature in main.methods[:20]]
    return found


def _main_class(made: Checkpoint, program: Program) -> ScriptClass | None:
    named = made.root.type_name
    if named in program.classes:
        return program.classes[named]
    return None


def _traced_inputs(value: object) -> list[tuple[str, str]]:
    """("forward was traced with", "1x3x8x8 float32") of each method."""
    if not isinstance(value, Mapping):
        return []
    found = []
    for name, inputs in value.pairs[:8]:
        items = inputs if isinstance(inputs, tuple | list) else (inputs,)
        says = [f"{human_shape(i.shape)} {i.dtype}" for i in items[:16] if isinstance(i, TensorStub)]
        if says:
            found.append((f"{str(name)[:40]} was traced with", ", ".join(says)[:500]))
    return found


READER = Reader(
    id="torchscript",
    says="TorchScript archive",
    suffixes=(".pt", ".pth", ".ptl", ".jit", ".torchscript"),
    claims=_claims,
    read=_read,
    no_index="",
)
