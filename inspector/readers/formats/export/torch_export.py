"""torch.export archives (.pt2), as torch.export.save writes them since 2.7 and as it wrote them from 2.1 to 2.6.

New: `<stem>/archive_format` says "pt2"; models/*.json are programs, data/weights raw members. Old: four files beside
each other, serialized_exported_program.json and torch.save files. Source: torch/export/pt2_archive/constants.py,
_package.py; torch/export/__init__.py.
"""

from __future__ import annotations

from dataclasses import replace

from inspector.checkpoint.nested import NamedTensors, find_state_dicts
from inspector.checkpoint.types import Checkpoint, GlobalUse, SourceText, StateRole, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.errors import ReadError, UnknownFormat
from inspector.findings import Finding
from inspector.readers.archives.json_member import read_json
from inspector.readers.archives.zip_directory import find_member
from inspector.readers.archives.zip_doubts import refuse_encrypted
from inspector.readers.checks.observations import observe_globals
from inspector.readers.entry import Peek, Reader
from inspector.readers.finish import FileContent, finished
from inspector.readers.formats.export.findings import config_finding, export_finding, native_finding, observe_program
from inspector.readers.formats.export.program import ProgramFacts, read_program
from inspector.readers.formats.export.weights import Archive, Weights, add_compiled, add_config, add_pickled, ordered
from inspector.readers.formats.torch_archive import byte_order, member_bytes
from inspector.units import counted, human_shape

_OLD = "serialized_exported_program.json"
_NATIVE = (".so", ".o", ".a", ".dll", ".dylib", ".pyd", ".cubin", ".hsaco", ".fatbin", ".spv", ".pte")
_BINARIES = (b"\x7fELF", b"MZ\x90\x00", b"\xcf\xfa\xed\xfe")
_OBJECTS = ("data/constants/custom_obj_", "data/constants/opaque_obj_")
_MOST_PROGRAMS = 64
_TEXT_NBYTES = 4_000


def _claims(peek: Peek) -> str:
    directory = peek.directory
    if directory is None or not directory.members:
        return ""
    if find_member(directory, _OLD):
        return f"{_OLD}, as torch.export.save of 2.1 to 2.6 writes it"
    prefix = directory.members[0].name.partition("/")[0]
    if find_member(directory, f"{prefix}/archive_format"):
        return "archive_format, as torch.export.save writes it"
    return ""


def _read(peek: Peek) -> Checkpoint:
    source, limits, directory = peek.source, peek.limits, peek.directory
    assert directory is not None
    if any(m.encrypted for m in directory.members):
        raise refuse_encrypted(source.name, directory.members)
    old = find_member(directory, _OLD) is not None
    folder = "" if old else f"{directory.members[0].name.partition('/')[0]}/"
    big_endian = not old and byte_order(source, directory, folder[:-1], limits) == b"big"
    archive = Archive(peek, directory, folder, big_endian=big_endian)
    found = Weights()
    programs = _programs(archive, found, [_OLD] if old else [])
    if old:
        _old_weights(archive, found)
    else:
        _new_weights(archive, found, len(programs))
    if not (programs or found.groups or found.problems or found.globals or _native(archive)):
        raise UnknownFormat(
            f"{source.name} is laid out as a torch.export program (.pt2), but holds no program and no weights.",
            hint="Save it again with torch.export.save.",
        )
    return _assemble(archive, found, programs)


def _programs(archive: Archive, found: Weights, names: list[str]) -> dict[str, ProgramFacts]:
    names = names or [n for n in archive.members if n.startswith("models/") and n.endswith(".json")]
    programs: dict[str, ProgramFacts] = {}
    for name in names[:_MOST_PROGRAMS]:
        try:
            program, _ = read_json(archive.source, archive.members[name], archive.peek.limits)
        except ReadError as error:
            found.problems.append(error.says)
            continue
        programs[name] = read_program(program)
    if len(names) > _MOST_PROGRAMS:
        found.skipped.append(f"{counted(len(names) - _MOST_PROGRAMS, 'program')} over the limit were not read.")
    return programs


def _new_weights(archive: Archive, found: Weights, programs: int) -> None:
    for folder, kind in (("data/weights/", "state_dict"), ("data/constants/", "constants")):
        for name in [n for n in archive.members if n.startswith(folder) and n.endswith("_config.json")]:
            model = name.removeprefix(folder).rpartition("_config.json")[0].rpartition("_")[0]
            group = (kind,) if programs < 2 else (model[:200], kind)
            try:
                add_config(found, archive, name, group, folder)
            except ReadError as error:
                found.problems.append(error.says)
    for name in list(archive.members):
        parts = name.split("/")
        if name.startswith("data/aotinductor/") and parts[-1] == "weights_config.json":
            try:
                add_compiled(found, archive, name, (parts[2][:200], "compiled weights"))
            except ReadError as error:
                found.problems.append(error.says)
        elif name.startswith("data/sample_inputs/") and name.endswith(".pt"):
            model = name.removeprefix("data/sample_inputs/").removesuffix(".pt")
            group = ("sample inputs",) if programs < 2 else (model[:200], "sample inputs")
            _pickled(found, archive, name, group)
        elif name.startswith("data/constants/") and name.endswith(".pt"):
            _pickled(found, archive, name, ("constants",))
        elif name.startswith(_OBJECTS) and name not in found.followed:
            _pickled(found, archive, name, ("objects",))


def _old_weights(archive: Archive, found: Weights) -> None:
    for stem, group in (("state_dict", "state_dict"), ("constants", "constants"), ("example_inputs", "sample inputs")):
        # 2.1 called them .json, though they are torch.save files as well.
        for name in (f"serialized_{stem}.pt", f"serialized_{stem}.json"):
            if name in archive.members and archive.members[name].nbytes:
                _pickled(found, archive, name, (group,))


def _pickled(found: Weights, archive: Archive, name: str, group: tuple[str, ...]) -> None:
    problem = add_pickled(found, archive, name, group)
    if problem:
        found.problems.append(problem)


def _assemble(archive: Archive, found: Weights, programs: dict[str, ProgramFacts]) -> Checkpoint:
    source = archive.source
    kinds = {name: kind for facts in programs.values() for name, kind in facts.kinds.items()}
    groups = {path: tuple(_with_kind(t, kinds) for t in found.groups[path]) for path in ordered(list(found.groups))}
    tensors = tuple(t for group in groups.values() for t in group)
    named = [NamedTensors(path=path, kind="torch.export", tensors=group) for path, group in groups.items()]
    states = tuple(
        s
        if s.path[-1] in ("state_dict", "compiled weights")
        else replace(s, role=StateRole.OTHER, why=f"it lies under {s.path[-1]}")
        for s in find_state_dicts(named)
    )
    # Constants are no weights, whatever their names look like.
    states = tuple(sorted(states, key=lambda s: list(groups).index(s.path)))
    uses = _merged(found.globals)
    findings: list[Finding] = [export_finding(len(programs))]
    for name, facts in programs.items():
        findings += observe_program(facts, name)
    native = _native(archive)
    if native:
        findings.append(native_finding(native))
    if found.problems:
        findings.append(config_finding(found.problems))
    findings += observe_globals(uses)
    content = FileContent(
        format=READER.id,
        format_says=READER.says,
        root=_root(groups),
        tensors=tensors,
        storages=found.storages,
        states=states,
        metadata=list(_metadata(archive, programs)),
        globals=uses,
        findings=findings,
        skipped=found.skipped,
        code=list(_code(programs)),
    )
    return finished(source, content)


def _merged(uses: list[GlobalUse]) -> tuple[GlobalUse, ...]:
    """One entry per name, at its first place, worst first."""
    found: dict[str, GlobalUse] = {}
    for use in uses:
        known = found.get(use.name)
        if known is not None:
            use = known.joined(use)
        found[use.name] = use
    return tuple(sorted(found.values(), key=lambda use: use.verdict.order))


def _with_kind(tensor: TensorInfo, kinds: dict[str, str]) -> TensorInfo:
    """Parameter or buffer by the program's signature, which knows better than the payload's table."""
    kind = kinds.get(tensor.name)
    if kind is None or tensor.path[-2] == "sample inputs":
        return tensor
    is_parameter = kind == "parameter" if kind in ("parameter", "buffer", "non-persistent buffer") else None
    note = tensor.note or (kind if kind in ("non-persistent buffer", "tensor constant") else "")
    return replace(tensor, is_parameter=is_parameter, note=note)


def _native(archive: Archive) -> list[str]:
    found = [name for name in archive.members if name.lower().endswith(_NATIVE)]
    starts = [n for n in archive.members if n.startswith("data/aotinductor/") and n not in found][:200]
    for name in starts:
        offset = archive.offsets[name]
        if offset is None or offset + 4 > archive.source.size or archive.members[name].method:
            continue
        if archive.source.read(offset, 4) in _BINARIES:
            found.append(name)
    return found


def _metadata(archive: Archive, programs: dict[str, ProgramFacts]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, facts in programs.items():
        label = f"{name.removeprefix('models/').removesuffix('.json')}: " if len(programs) > 1 else ""
        found += [(f"{label}{key}", text) for key, text in facts.metadata]
        found += [(f"{label}input {key}", text) for key, text in facts.inputs[:50]]
        found += [(f"{label}output {key}", text) for key, text in facts.outputs[:50]]
        most = facts.operators.most_common(30)
        says = ", ".join(f"{target.removeprefix('torch.ops.')[:100]} {n}" for target, n in most)
        if len(facts.operators) > len(most):
            says += f" and {len(facts.operators) - len(most)} more"
        found.append((f"{label}operators", says or "none"))
    for name in [n for n in archive.members if n.startswith("extra/")][:64]:
        member = archive.members[name]
        if member.nbytes <= _TEXT_NBYTES:
            try:
                text = member_bytes(archive.source, member, archive.peek.limits, most=_TEXT_NBYTES).decode("utf-8")
            except (ReadError, UnicodeDecodeError):
                continue
            found.append((name[:200], text))
    return found


def _code(programs: dict[str, ProgramFacts]) -> list[SourceText]:
    found = []
    for name, facts in programs.items():
        if facts.graph:
            found.append(SourceText(name=f"{name} (graph)", text=facts.graph, nbytes=facts.graph_nbytes))
        if facts.guards:
            text = "\n".join(facts.guards)
            found.append(SourceText(name=f"{name} (guards)", text=text[:200_000], nbytes=len(text)))
    return found


def _root(groups: dict[tuple[str, ...], tuple[TensorInfo, ...]]) -> Value:
    children = []
    for path, tensors in groups.items():
        leaves = tuple(
            (
                t.name,
                Value(
                    kind=ValueKind.TENSOR,
                    type_name="torch.Tensor",
                    says=f"{human_shape(t.shape)[:100]} {t.dtype}",
                    name=".".join(t.path),
                ),
            )
            for t in tensors
        )
        says = counted(len(leaves), "tensor")
        value = Value(kind=ValueKind.MAPPING, type_name="dict", says=says, children=leaves, size=len(leaves))
        children.append((" / ".join(path), value))
    return Value(
        kind=ValueKind.MAPPING,
        type_name="torch.export",
        says=counted(len(children), "group"),
        children=tuple(children),
        size=len(children),
    )


READER = Reader(
    id="torch-export",
    says="torch.export archive",
    suffixes=(".pt2",),
    claims=_claims,
    read=_read,
    no_index="",
)
