"""A checkpoint as text for `git diff`: what git asks for with a file of its own making, and never to fail.

Without the command line's machinery, which takes longer to load than most files to read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from io import TextIOWrapper

from inspector.errors import InspectorError, PointerFile


def run(file: str) -> int:
    """Print the lines of a file; the exit code, which is always 0."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    try:
        for line in text_lines(file):
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads has read enough; Python would complain of it once more at its end.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def text_lines(file: str) -> Iterator[str]:
    """The lines of a checkpoint, of the Git LFS pointer to one, or one that says why there are none."""
    from inspector.compare.lines import checkpoint_lines, one_word
    from inspector.readers import open_checkpoint

    try:
        yield from checkpoint_lines(open_checkpoint(file))
    except PointerFile:
        yield from _pointer(file)
    except (InspectorError, OSError, MemoryError) as error:
        # git hands over a copy under a name that is another each time, which would look like a change.
        says = error.says if isinstance(error, InspectorError) else type(error).__name__
        yield f"# not read: {one_word(says.replace(os.path.basename(file) or file, 'it'), spaces=True)}"
    except Exception as error:  # noqa: BLE001 - one file that crashes its reader must not stop the diff of all others
        yield f"# not read: {type(error).__name__}"


def _pointer(file: str) -> Iterator[str]:
    from inspector.readers.not_checkpoints.text import read_pointer
    from inspector.side_files import read_bytes

    found = read_pointer(read_bytes(file, most_nbytes=1 << 12))
    if found is None:
        yield "# not read: a pointer to a file that is not here"
        return
    yield "# Git LFS pointer: the file itself is not here"
    yield f"oid sha256:{found[0]}"
    yield f"size {found[1]}"
