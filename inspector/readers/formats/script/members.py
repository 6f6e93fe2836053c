"""The members of a TorchScript archive beside its objects: the code as text, and every further pickle."""

from __future__ import annotations

from dataclasses import dataclass, field

from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import SourceText
from inspector.errors import ReadError
from inspector.limits import Limits
from inspector.readers.archives.zip_directory import Directory
from inspector.readers.archives.zip_members import Member
from inspector.readers.assemble import Unpickled
from inspector.readers.formats.script.code import CodeFacts, ScriptClass, is_scripted, read_classes, read_facts
from inspector.readers.formats.torch_archive import member_bytes, unpickle_member
from inspector.readers.unpickle.machine.machine import Outcome

CODE_NBYTES = 4_000_000
_MOST_CODE = 5_000
_MOST_PICKLES = 2_000
_PICKLE_NBYTES = 64_000_000


@dataclass(slots=True, kw_only=True)
class Program:
    """The code of an archive as text. problems: members that could not be read. left_out: over the limit."""

    texts: list[SourceText] = field(default_factory=list)
    facts: dict[str, CodeFacts] = field(default_factory=dict)
    classes: dict[str, ScriptClass] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    left_out: int = 0
    scripted: bool = False


def read_program(source: ByteSource, directory: Directory, prefix: str, limits: Limits) -> Program:
    """The code members, at most 4 MB of text together; what cannot be read is said."""
    program = Program()
    left = CODE_NBYTES
    start = f"{prefix}/code/"
    for member in directory.members:
        if not member.name.startswith(start) or not member.name.endswith(".py"):
            continue
        name = member.name[len(prefix) + 1 :]
        if left <= 0 or len(program.texts) >= _MOST_CODE:
            program.left_out += 1
            continue
        try:
            if member.packed_nbytes > CODE_NBYTES:
                program.problems.append(f"{name[:120]} has {member.packed_nbytes:,} bytes")
                continue
            raw = member_bytes(source, member, limits, most=left)
            text = raw.decode("utf-8")
        except ReadError as error:
            program.problems.append(f"{name[:120]}: {error.says}")
            continue
        except UnicodeDecodeError as error:
            # A text that was cut at the limit may end inside a character; that is no fault of the file.
            if error.start < len(raw) - 4 or len(raw) < left:
                program.problems.append(f"{name[:120]} is no UTF-8 text (byte {error.start:,})")
                continue
            text = raw[: error.start].decode("utf-8")
        if member.nbytes > len(raw):
            program.left_out += 1
        left -= len(raw)
        program.texts.append(SourceText(name=name, text=text, nbytes=member.nbytes))
        program.facts[name] = read_facts(name, text)
        program.classes.update((c.name, c) for c in read_classes(name, text))
        program.scripted = program.scripted or is_scripted(text)
    return program


class Pickles:
    """Every pickle of the archive beside the main one, followed for its globals."""

    def __init__(self, source: ByteSource, directory: Directory, prefix: str, limits: Limits, main: Member) -> None:
        self.found: dict[str, Unpickled] = {}
        self.unread: list[str] = []
        left = _PICKLE_NBYTES
        for member in directory.members:
            name = member.name.lower()
            if member is main or not name.endswith((".pkl", ".debug_pkl")):
                continue
            if len(self.found) >= _MOST_PICKLES or member.packed_nbytes > left:
                self.unread.append(member.name)
                continue
            left -= member.packed_nbytes
            try:
                # A second member of the same name is followed too, under a name of its own.
                key = name.removeprefix(f"{prefix.lower()}/")
                self.found[f"{key} ({len(self.found)})" if key in self.found else key] = unpickle_member(
                    source, member, limits
                )
            except ReadError:
                self.unread.append(member.name)

    def find(self, name: str) -> Unpickled | None:
        """The pickle of one member, None when it is not there."""
        return self.found.get(name)

    def outcomes(self) -> list[Outcome]:
        """Of all of them."""
        return [p.outcome for p in self.found.values()]
