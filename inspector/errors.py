"""What can go wrong, in words for the person who brought the file.

    InspectorError            .says (one sentence)  .hint (what to do next)
    ├── ReadError             nothing of the file can be shown
    │   ├── UnknownFormat     not a checkpoint; the sentence names what it is
    │   │   ├── PointerFile   the few lines that Git LFS keeps in its place
    │   │   └── NotExamined   it may hold a checkpoint or code, and nothing here can look into it
    │   ├── CorruptFile       a checkpoint, but broken beyond showing anything
    │   ├── RefusedContent    readable, but refused on purpose
    │   ├── LimitExceeded     a length or count in the file is over `Limits`
    │   │   └── NoRoom        a server has no room for it now
    │   ├── AddressError      the server behind an address did not give it
    │   │   ├── AddressRefused  it is not asked: no web address, say
    │   │   │   └── NotPublic  or one of a machine's own, or of its network
    │   │   ├── FileChanged   another file than the one that was opened
    │   │   └── NeedsWholeFile  its headers, or its numbers, cannot be had by parts
    │   └── MissingExtra      an optional package is needed
    ├── ModelError            no model can be made of this
    │   ├── UnknownArchitecture
    │   ├── KeysDoNotFit      the state dict does not fit the target
    │   ├── MissingLibrary    the library that builds this model is not installed
    │   └── BrokenInstall     torch and torchvision do not fit each other, or one is absent
    ├── ExplainError          no heat map can be made
    │   ├── NoSuchLayer
    │   ├── LayerNotSpatial
    │   └── TargetOutOfRange
    ├── ExportError           nothing was written
    ├── WorkEnded             a job was ended before it had a result: memory, time, a crash
    └── UsageError            an argument or option that means nothing

If the question is "what is wrong with this file?", then wrong is an answer (a `Finding`), not an exception.
"""

from __future__ import annotations


class InspectorError(Exception):
    """Base of every error this package raises on purpose.

    says: one sentence, with the reader's own file, key or layer in it.
    hint: what to do next, or "" when there is nothing to suggest.
    """

    def __init__(self, says: str, *, hint: str = "") -> None:
        super().__init__(says)
        self.says = says
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.says} {self.hint}".strip()

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments are lost by the default reduce; caches and worker processes pickle errors.
        return (_rebuild, (type(self), self.says, self.hint))


def _rebuild(kind: type[InspectorError], says: str, hint: str) -> InspectorError:
    return kind(says, hint=hint)


class ReadError(InspectorError):
    """Nothing of the file can be shown."""


class UnknownFormat(ReadError):
    """The file is no checkpoint; the sentence names what it is."""


class PointerFile(UnknownFormat):
    """Nothing but the lines that Git LFS puts in the place of a file that was not fetched."""


class NotExamined(UnknownFormat):
    """Not a checkpoint by itself, but something that may hold one, or code, and that nothing here can look into."""


class CorruptFile(ReadError):
    """A checkpoint, but broken beyond showing anything."""


class RefusedContent(ReadError):
    """Readable, but refused on purpose."""


class LimitExceeded(ReadError):
    """A length or count in the file is over `Limits`."""


class NoRoom(LimitExceeded):
    """A server's disk or store has no room for it now; the file itself may be well."""


class AddressError(ReadError):
    """The server behind an address did not give it, or cannot be reached."""


class AddressRefused(AddressError):
    """An address that is not asked: none of the web, or one that no public host has."""


class NotPublic(AddressRefused):
    """An address, or a name, that no public host has: of the asking machine, of its networks, of no host at all."""


class FileChanged(AddressError):
    """What is behind an address is not the file any more that was opened."""


class NeedsWholeFile(AddressError):
    """What is asked for cannot be had by parts of the file; the whole file would do."""


class MissingExtra(ReadError):
    """An optional package is needed for this format."""


class ModelError(InspectorError):
    """No model can be made of this."""


class NeedsValues(ModelError):
    """Shapes alone do not tell what a forward pass does; a run with real numbers would."""


class UnknownArchitecture(ModelError):
    """No known architecture has these names and shapes, or no such architecture exists."""


class KeysDoNotFit(ModelError):
    """The state dict does not fit the target."""


class MissingLibrary(ModelError):
    """The model can be named, but the optional library that builds it is not installed."""


class BrokenInstall(ModelError):
    """torch and torchvision do not fit each other, or one of them is absent."""


class ExplainError(InspectorError):
    """No heat map can be made."""


class NoSuchLayer(ExplainError):
    """The model has no module of that name."""


class LayerNotSpatial(ExplainError):
    """The layer's output has no height and width."""


class TargetOutOfRange(ExplainError):
    """The model has no such class."""


class ExportError(InspectorError):
    """Nothing was written."""


class WorkEnded(InspectorError):
    """A job was ended before it had a result: it took too much memory or time, or its process crashed."""


class UsageError(InspectorError):
    """An argument or option that means nothing here."""
