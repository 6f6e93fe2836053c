"""torch.package archives: pickles, the Python sources they need, and storages under .data/. Nothing is imported.

Source: torch/package/package_exporter.py, package_importer.py: `<stem>/.data/extern_modules` names what is taken from
the installed Python, every other module is code in the archive; persistent ids are those of torch.save.
"""

from __future__ import annotations

from dataclasses import replace

from inspector.checkpoint.types import Checkpoint, GlobalUse, GlobalVerdict, StateDict, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.errors import ReadError
from inspector.findings import Finding, FindingKind, Severity
from inspector.readers.archives.zip_directory import Directory, find_member
from inspector.readers.archives.zip_doubts import refuse_encrypted
from inspector.readers.archives.zip_members import Member
from inspector.readers.assemble import checkpoint_from_pickle
from inspector.readers.checks.observations import observe_storages
from inspector.readers.entry import Peek, Reader
from inspector.readers.finish import FileContent, finished
from inspector.readers.formats.torch_archive import (
    archive_findings,
    archive_storages,
    byte_order,
    member_bytes,
    unpickle_member,
)
from inspector.readers.unpickle.meanings.class_sources import source_texts
from inspector.units import counted

TORCH_PACKAGE = FindingKind("torch-package", Severity.NOTICE, "A torch.package archive")

_MOST_PICKLES = 200
_SOURCE_NBYTES = 4_000_000
# Said once for the whole archive, or about torch.load, which does not open packages.
_NOT_PER_PICKLE = frozenset(
    {"weights-only-refuses", "not-for-torch-load", "unnamed-tensors", "shared-storage", "needs-code"}
)


def _claims(peek: Peek) -> str:
    directory = peek.directory
    if directory is None or not directory.members:
        return ""
    prefix = directory.members[0].name.partition("/")[0]
    return (
        ".data/extern_modules, as torch.package writes it" if _find(directory, prefix, ".data/extern_modules") else ""
    )


def _find(directory: Directory, prefix: str, name: str) -> Member | None:
    return find_member(directory, f"{prefix}/{name}")


def _read(peek: Peek) -> Checkpoint:
    source, limits, directory = peek.source, peek.limits, peek.directory
    assert directory is not None
    if any(m.encrypted for m in directory.members):
        raise refuse_encrypted(source.name, directory.members)
    prefix = directory.members[0].name.partition("/")[0]
    big_endian = byte_order(source, directory, prefix, limits) == b"big"
    skipped: list[str] = []
    made: list[tuple[str, Checkpoint]] = []
    pickles = [m for m in directory.members if m.name.lower().endswith(".pkl") and m.name.startswith(f"{prefix}/")]
    nodes = limits.nodes  # For the trees of all pickles together.
    for member in pickles[:_MOST_PICKLES]:
        name = member.name[len(prefix) + 1 :]
        if nodes <= 0:
            skipped.append(f"{name[:120]} was not followed: the pickles before it hold {limits.nodes:,} values.")
            continue
        try:
            pickle = unpickle_member(source, member, limits)
            storages, findings = archive_storages(
                source, directory, prefix, pickle, big_endian, folder=".data", suffix=".storage"
            )
            content = FileContent(format=READER.id, format_says=READER.says, storages=storages, findings=findings)
            opened = checkpoint_from_pickle(pickle, content, source=source, limits=replace(limits, nodes=nodes))
        except ReadError as error:
            skipped.append(f"{name[:120]} could not be followed: {error.says[:300]}")
            continue
        made.append((name, opened))
        nodes -= _count(opened.root)
    if len(pickles) > _MOST_PICKLES:
        skipped.append(f"{counted(len(pickles) - _MOST_PICKLES, 'pickle')} over the limit were not followed.")
    return _assemble(peek, directory, prefix, made, skipped)


def _count(value: Value) -> int:
    """How many values a tree has."""
    left, found = [value], 0
    while left:
        found += 1
        left.extend(child for _, child in left.pop().children)
    return found


def _assemble(
    peek: Peek, directory: Directory, prefix: str, made: list[tuple[str, Checkpoint]], skipped: list[str]
) -> Checkpoint:
    source = peek.source
    texts, modules = _sources(peek, directory, prefix, skipped)
    code, left_out = source_texts(texts)
    tensors = tuple(_placed(t, name) for name, c in made for t in c.tensors)
    storages = {key: storage for _, c in made for key, storage in c.storages.items()}
    findings = [*_package_findings(len(texts), len(made))]
    if directory.members:
        findings += archive_findings(source, directory, directory.members[0])
    for name, checkpoint in made:
        findings += [
            replace(f, says=f"{name[:120]}: {f.says}") for f in checkpoint.findings if f.id not in _NOT_PER_PICKLE
        ]
    findings += [f for f in observe_storages(tensors, storages, source.name) if f.id == "shared-storage"]
    content = FileContent(
        format=READER.id,
        format_says=READER.says,
        root=Value(
            kind=ValueKind.MAPPING,
            type_name="torch.package",
            says=counted(len(made), "pickle"),
            children=tuple((name[:200], _renamed(c.root, name)) for name, c in made),
            size=len(made),
        ),
        tensors=tensors,
        storages=storages,
        states=[_state(s, name) for name, c in made for s in c.state_dicts],
        metadata=(*_metadata(peek, directory, prefix), *((f"{n}: {k}", v) for n, c in made for k, v in c.metadata)),
        globals=_globals(made, modules),
        findings=findings,
        observed=True,
        skipped=(*skipped, *left_out, *(f"{n}: {said}" for n, c in made for said in c.skipped)),
        code=code,
    )
    return finished(source, content)


def _sources(
    peek: Peek, directory: Directory, prefix: str, skipped: list[str]
) -> tuple[list[tuple[str, str]], frozenset[str]]:
    """((member, text) of each Python file, the names of the modules they make)."""
    texts: list[tuple[str, str]] = []
    modules: set[str] = set()
    left = _SOURCE_NBYTES
    for member in directory.members:
        if not member.name.endswith(".py") or not member.name.startswith(f"{prefix}/"):
            continue
        name = member.name[len(prefix) + 1 :]
        modules.add(name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        if left <= 0:
            skipped.append(f"{name[:120]} was not read: the limit is {_SOURCE_NBYTES:,} bytes of code.")
            continue
        try:
            raw = member_bytes(peek.source, member, peek.limits, most=left)
        except ReadError as error:
            skipped.append(f"{name[:120]} was not read: {error.says[:300]}")
            continue
        left -= len(raw)
        texts.append((name, raw.decode("utf-8", "backslashreplace")))
    return texts, frozenset(modules)


def _placed(tensor: TensorInfo, name: str) -> TensorInfo:
    """A tensor below its pickle; one that is the whole pickle is named by it."""
    return replace(tensor, path=(name, *tensor.path), name=tensor.name or name)


def _state(state: StateDict, name: str) -> StateDict:
    return replace(state, path=(name, *state.path), tensors=tuple(_placed(t, name) for t in state.tensors))


def _renamed(value: Value, name: str) -> Value:
    # Recursion is bounded: the outline goes no deeper than Limits.depth.
    children = tuple((label, _renamed(child, name)) for label, child in value.children)
    own = f"{name}.{value.name}" if value.name or value.kind is ValueKind.TENSOR else ""
    return replace(value, children=children, name=own.removesuffix("."))


def _globals(made: list[tuple[str, Checkpoint]], modules: frozenset[str]) -> tuple[GlobalUse, ...]:
    found: dict[str, GlobalUse] = {}
    for name, checkpoint in made:
        for use in checkpoint.globals:
            known = found.get(use.name)
            if known is not None:
                found[use.name] = known.joined(use)
                continue
            inside = use.verdict is GlobalVerdict.UNKNOWN and use.name.rpartition(".")[0] in modules
            why = "of the Python code in this archive, which a load runs" if inside else use.why
            found[use.name] = replace(use, place=f"{name}: {use.place}" if use.place else name, why=why)
    return tuple(sorted(found.values(), key=lambda use: use.verdict.order))


def _package_findings(files: int, pickles: int) -> list[Finding]:
    return [
        TORCH_PACKAGE.found(
            f"This is a torch.package archive: {counted(pickles, 'pickle')} and {counted(files, 'Python file')}. "
            "Its tensors are shown, its code is shown as text and was not run.",
            evidence=(("pickles", pickles), ("python_files", files)),
            remedy="torch.package.PackageImporter runs the Python code inside. Convert it here instead.",
        )
    ]


def _metadata(peek: Peek, directory: Directory, prefix: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for label, member in (
        ("modules from outside", ".data/extern_modules"),
        ("python version", ".data/python_version"),
        ("archive version", ".data/version"),
    ):
        entry = _find(directory, prefix, member)
        if entry is None:
            continue
        try:
            raw = member_bytes(peek.source, entry, peek.limits, most=4000)
        except ReadError:
            continue
        found.append((label, ", ".join(raw.decode("utf-8", "backslashreplace").split())[:4000]))
    return found


READER = Reader(
    id="torch-package",
    says="torch.package archive",
    suffixes=(".pt", ".zip"),
    claims=_claims,
    read=_read,
    no_index="",
)
