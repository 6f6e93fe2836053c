"""What is said of a file that could not be looked at, as findings: a gate counts them like any other."""

from __future__ import annotations

from inspector.errors import (
    CorruptFile,
    InspectorError,
    LimitExceeded,
    MissingExtra,
    NotExamined,
    PointerFile,
    RefusedContent,
    UnknownFormat,
)
from inspector.findings import FindingKind, Severity

NOT_EXAMINED = FindingKind(
    "not-examined", Severity.ERROR, "Something was not looked at", also=(Severity.WARNING, Severity.INFO)
)
NO_CHECKPOINT = FindingKind("no-checkpoint", Severity.ERROR, "Named as a checkpoint, and is none")
POINTER_FILE = FindingKind(
    "pointer-file", Severity.ERROR, "A Git LFS pointer stands in the file's place", also=(Severity.NOTICE,)
)
CORRUPT_FILE = FindingKind("corrupt-file", Severity.ERROR, "A checkpoint is broken beyond showing anything")
REFUSED_CONTENT = FindingKind("refused-content", Severity.ERROR, "Something is refused on purpose")
OVER_LIMIT = FindingKind("over-limit", Severity.ERROR, "A length or count is over a limit")
MISSING_EXTRA = FindingKind("missing-extra", Severity.ERROR, "An optional package is needed to read it")
UNREADABLE_FILE = FindingKind("unreadable-file", Severity.ERROR, "A file cannot be read")
FOLDER_UNLISTED = FindingKind("folder-unlisted", Severity.ERROR, "A folder cannot be listed")
FILE_CHANGED = FindingKind("file-changed", Severity.WARNING, "A file changed while it was read")
INTERNAL_ERROR = FindingKind("internal-error", Severity.ERROR, "Reading failed in a way that it should not")

#: Nothing was looked at, or not all of it: that none of the other findings was made says nothing then.
UNREAD = (
    *(NOT_EXAMINED, NO_CHECKPOINT, CORRUPT_FILE, REFUSED_CONTENT, OVER_LIMIT, MISSING_EXTRA, UNREADABLE_FILE),
    *(FOLDER_UNLISTED, INTERNAL_ERROR),
)
# The narrower kinds of error first.
_OF_ERRORS: tuple[tuple[type[InspectorError], FindingKind], ...] = (
    (PointerFile, POINTER_FILE),
    (NotExamined, NOT_EXAMINED),
    (UnknownFormat, NO_CHECKPOINT),
    (CorruptFile, CORRUPT_FILE),
    (RefusedContent, REFUSED_CONTENT),
    (LimitExceeded, OVER_LIMIT),
    (MissingExtra, MISSING_EXTRA),
)


def kind_of_error(error: InspectorError) -> FindingKind:
    """The kind of finding that an error of a reader is."""
    return next((kind for of, kind in _OF_ERRORS if isinstance(error, of)), UNREADABLE_FILE)
