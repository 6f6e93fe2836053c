"""torch.save's zip archive, the default since torch 1.6.

`<stem>/data.pkl` holds the objects, `<stem>/data/<key>` one member per storage. Source: torch/serialization.py,
caffe2/serialize/inline_container.cc.
"""

from __future__ import annotations

from inspector.checkpoint.source import ByteSource, is_distant
from inspector.checkpoint.types import Checkpoint
from inspector.errors import CorruptFile, InspectorError
from inspector.readers.archives.archive_folder import is_junk
from inspector.readers.archives.zip_directory import Directory, NoDirectory, find_member, read_directory
from inspector.readers.archives.zip_doubts import refuse_encrypted
from inspector.readers.archives.zip_members import Member
from inspector.readers.assemble import Unpickled, checkpoint_from_pickle
from inspector.readers.entry import Peek, Reader
from inspector.readers.finish import FileContent
from inspector.readers.formats.torch_archive import (
    archive_findings,
    archive_storages,
    byte_order,
    other_pickles,
    search_archive,
    unpickle_member,
    unsearched_heads,
)
from inspector.readers.formats.torch_records import loader_findings, repacked_main, with_slashes
from inspector.readers.unpickle.nested.hidden_pickles import Head, observe_hidden


def _claims(peek: Peek) -> str:
    if not peek.is_zip:
        return ""
    if peek.directory is None:
        return "it begins as a zip archive, and has no directory"
    return "a zip archive with data.pkl" if _main(peek.directory) is not None else ""


def _named(source: ByteSource, directory: Directory) -> InspectorError:
    from inspector.readers.not_checkpoints.naming import name_zip

    return name_zip(source, directory)


def _main(directory: Directory) -> Member | None:
    """The main pickle: where torch looks for it, else the one there is where another program packed the archive."""
    if not directory.members:
        return None
    plain = with_slashes(directory)
    if plain is not directory:
        return repacked_main(plain)
    top = directory.members[0].name.partition("/")[0]
    found = find_member(directory, f"{top}/data.pkl") if not is_junk(f"{top}/") else None
    return found or repacked_main(directory)


def _read(peek: Peek) -> Checkpoint:
    source, limits = peek.source, peek.limits
    pickle: Unpickled | None = None
    try:
        directory = peek.directory or read_directory(source, limits)
    except CorruptFile as error:
        from inspector.readers.formats.cut_zip import directory_of, read_cut_zip, walk_front

        walked = walk_front(source, limits, error)
        found = directory_of(walked, source, limits) if isinstance(error, NoDirectory) else None
        if found is None:
            return read_cut_zip(walked, source, limits, error)
        directory, pickle = found, walked.pickle
    as_written, directory = directory, with_slashes(directory)
    main = _main(as_written)
    if main is None:
        raise _named(source, as_written)
    if main.encrypted:
        raise refuse_encrypted(source.name, directory.members)
    if pickle is None or main.header_offset:
        pickle = unpickle_member(source, main, limits)
    prefix = main.name.rpartition("/")[0] if "/" in main.name else None
    big_endian = byte_order(source, directory, prefix, limits) == b"big"
    heads: list[Head] = []
    storages, problems = archive_storages(source, directory, prefix, pickle, big_endian, heads=heads)
    others = other_pickles(source, directory, main, limits)
    hidden = search_archive(source, directory, main, pickle, heads, limits)
    findings = [
        *loader_findings(source, as_written, prefix, limits),
        *archive_findings(source, as_written, as_written.members[directory.members.index(main)], others),
        *problems,
        *observe_hidden(hidden),
    ]
    content = FileContent(
        format=READER.id,
        format_says=READER.says,
        storages=storages,
        findings=findings,
        skipped=[*hidden.left_out, *(unsearched_heads(heads) if is_distant(source) else ())],
    )
    also = [outcome for _, outcome in others]
    return checkpoint_from_pickle(pickle, content, source=source, limits=limits, also=also, hidden=hidden.outcomes)


READER = Reader(
    id="torch-zip",
    says="torch.save zip archive",
    suffixes=(".pt", ".pth", ".bin", ".ckpt", ".pth.tar", ".th", ".model"),
    claims=_claims,
    read=_read,
    no_index="",
)
