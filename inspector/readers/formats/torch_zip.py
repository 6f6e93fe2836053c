"""torch.save's zip archive, the default since torch 1.6.

`<stem>/data.pkl` holds the objects, `<stem>/data/<key>` one member per storage. Source: torch/serialization.py,
caffe2/serialize/inline_container.cc.
"""

from __future__ import annotations

from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint
from inspector.errors import CorruptFile, InspectorError
from inspector.readers.archives.zip_directory import Directory, find_member, read_directory
from inspector.readers.archives.zip_doubts import refuse_encrypted
from inspector.readers.assemble import checkpoint_from_pickle
from inspector.readers.entry import Peek, Reader
from inspector.readers.finish import FileContent
from inspector.readers.formats.torch_archive import (
    archive_findings,
    archive_storages,
    byte_order,
    other_pickles,
    search_archive,
    unpickle_member,
)
from inspector.readers.formats.torch_records import loader_findings
from inspector.readers.unpickle.nested.hidden_pickles import Head, observe_hidden


def _claims(peek: Peek) -> str:
    if not peek.is_zip:
        return ""
    if peek.directory is None:
        return "it begins as a zip archive, and has no directory"
    prefix = peek.directory.members[0].name.partition("/")[0] if peek.directory.members else ""
    return "a zip archive with data.pkl" if find_member(peek.directory, f"{prefix}/data.pkl") is not None else ""


def _named(source: ByteSource, directory: Directory) -> InspectorError:
    from inspector.readers.not_checkpoints.naming import name_zip

    return name_zip(source, directory)


def _read(peek: Peek) -> Checkpoint:
    source, limits = peek.source, peek.limits
    try:
        directory = peek.directory or read_directory(source, limits)
    except CorruptFile as error:
        from inspector.readers.formats.cut_zip import read_cut_zip

        return read_cut_zip(source, limits, error)
    if not directory.members:
        raise _named(source, directory)
    prefix = directory.members[0].name.partition("/")[0]
    main = find_member(directory, f"{prefix}/data.pkl")
    if main is None:
        raise _named(source, directory)
    if main.encrypted:
        raise refuse_encrypted(source.name, directory.members)
    pickle = unpickle_member(source, main, limits)
    big_endian = byte_order(source, directory, prefix, limits) == b"big"
    heads: list[Head] = []
    storages, problems = archive_storages(source, directory, prefix, pickle, big_endian, heads=heads)
    others = other_pickles(source, directory, main, limits)
    hidden = search_archive(source, directory, main, pickle, heads, limits)
    findings = [
        *loader_findings(source, directory, prefix, limits),
        *archive_findings(source, directory, main, others),
        *problems,
        *observe_hidden(hidden),
    ]
    content = FileContent(
        format=READER.id, format_says=READER.says, storages=storages, findings=findings, skipped=hidden.left_out
    )
    also = [*(outcome for _, outcome in others), *hidden.outcomes]
    return checkpoint_from_pickle(pickle, content, source=source, limits=limits, also=also)


READER = Reader(
    id="torch-zip",
    says="torch.save zip archive",
    suffixes=(".pt", ".pth", ".bin", ".ckpt", ".pth.tar", ".th", ".model"),
    claims=_claims,
    read=_read,
)
