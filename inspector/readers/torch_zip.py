"""torch.save's zip archive, the default since torch 1.6.

`<stem>/data.pkl` holds the objects, `<stem>/data/<key>` one member per storage. Source: torch/serialization.py,
caffe2/serialize/inline_container.cc.
"""

from __future__ import annotations

from inspector.checkpoint.types import Checkpoint
from inspector.errors import CorruptFile, RefusedContent
from inspector.findings import Finding, Severity
from inspector.readers.assemble import checkpoint_from_pickle
from inspector.readers.cut_zip import read_cut_zip
from inspector.readers.entry import Peek, Reader
from inspector.readers.foreign import name_zip
from inspector.readers.hidden_pickles import Head, observe_hidden
from inspector.readers.torch_archive import (
    archive_findings,
    archive_storages,
    byte_order,
    other_pickles,
    search_archive,
    unpickle_member,
)
from inspector.readers.zip_directory import Directory, find_member, read_directory
from inspector.units import counted


def _claims(peek: Peek) -> str:
    if not peek.is_zip:
        return ""
    if peek.directory is None:
        return "it begins as a zip archive, and has no directory"
    prefix = peek.directory.members[0].name.partition("/")[0] if peek.directory.members else ""
    return "a zip archive with data.pkl" if find_member(peek.directory, f"{prefix}/data.pkl") is not None else ""


def _read(peek: Peek) -> Checkpoint:
    source, limits = peek.source, peek.limits
    try:
        directory = peek.directory or read_directory(source, limits)
    except CorruptFile as error:
        return read_cut_zip(source, limits, error)
    if not directory.members:
        raise name_zip(source, directory)
    prefix = directory.members[0].name.partition("/")[0]
    main = find_member(directory, f"{prefix}/data.pkl")
    if main is None:
        raise name_zip(source, directory)
    if main.encrypted:
        raise RefusedContent(
            f"{source.name} is an encrypted archive.",
            hint="Unpack it with its password first, then open the checkpoint.",
        )
    script = find_member(directory, f"{prefix}/constants.pkl") is not None
    pickle = unpickle_member(source, main, limits)
    big_endian = byte_order(source, directory, prefix, limits) == b"big"
    heads: list[Head] = []
    storages, problems = archive_storages(source, directory, prefix, pickle, big_endian, heads=heads)
    others = other_pickles(source, directory, main, limits)
    hidden = search_archive(source, directory, main, pickle, heads, limits)
    findings = [*archive_findings(source, directory, main, others), *problems, *observe_hidden(hidden)]
    skipped = list(hidden.left_out)
    if script:
        findings.append(_script_finding(directory))
        skipped.append("The TorchScript program under code/ was not read.")
    return checkpoint_from_pickle(
        pickle,
        source=source,
        limits=limits,
        format_id="torchscript" if script else READER.id,
        format_says="TorchScript archive" if script else READER.says,
        storages=storages,
        findings=findings,
        skipped=skipped,
        also=[*(outcome for _, outcome in others), *hidden.outcomes],
    )


def _script_finding(directory: Directory) -> Finding:
    code = sum(1 for m in directory.members if "/code/" in m.name and m.name.endswith(".py"))
    return Finding(
        id="torchscript",
        severity=Severity.NOTICE,
        says=f"This is a TorchScript program ({counted(code, 'code file')}), not a plain checkpoint; "
        "its tensors are shown.",
        evidence=(("code_files", code),),
        remedy="torch.jit.load runs the program inside; there is no safe mode. The tensors can be exported here.",
    )


READER = Reader(
    id="torch-zip",
    says="torch.save zip archive",
    suffixes=(".pt", ".pth", ".bin", ".ckpt", ".pth.tar", ".th", ".model"),
    claims=_claims,
    read=_read,
)
