"""New files that are whole or not there: written under a name of our own beside their place, named once they are whole.

Whoever stops half way, by an error or a signal, leaves nothing; and of several that want the same new name one gets it.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: How the name of a file begins that is still being written.
WRITING = ".writing-"
# What a file system says that knows no hard links.
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV, errno.EINVAL}


@contextmanager
def new_file(destination: Path, suffix: str = "", *, folder: bool = False, overwrite: bool = True) -> Iterator[Path]:
    """An empty file, or folder, to write into, which becomes destination when the block ends well.

    suffix: of its name meanwhile. Raises as `publish`, and OSError where nothing can be made.
    """
    temporary = destination.parent / f"{WRITING}{secrets.token_hex(8)}{suffix}"
    # Named before it is made: a signal in between leaves nothing either.
    try:
        if folder:
            temporary.mkdir(mode=0o700)
        else:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        yield temporary
        publish(temporary, destination, overwrite=overwrite)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


def publish(temporary: Path, destination: Path, *, overwrite: bool = True) -> None:
    """Give a finished file, or folder of files, its name in one step, once the disk has all of it.

    A disk may take bytes and find only later that it has no room (network drives, quotas): asked here, it says so in
    time. overwrite: replace what has the name; a link is replaced, and what it points to stays as it is. A folder
    takes the place of an empty one alone. Raises FileExistsError where the name is taken, OSError for the rest.
    """
    paths = list(temporary.iterdir()) if temporary.is_dir() else [temporary]
    for path in paths:
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    # A file of ours is for the owner alone; a written model gets what any new file gets.
    mask = os.umask(0)
    os.umask(mask)
    for path in paths:
        path.chmod(0o666 & ~mask)
    if temporary.is_dir():
        temporary.chmod(0o777 & ~mask)
        _name_folder(temporary, destination)
    elif overwrite:
        temporary.replace(destination)
    else:
        _name_alone(temporary, destination)


def _name_folder(temporary: Path, destination: Path) -> None:
    try:
        temporary.replace(destination)
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(destination)) from error
        raise


def _name_alone(temporary: Path, destination: Path) -> None:
    """Naming by a link fails where the name is taken, however late it was; renaming would replace."""
    try:
        os.link(temporary, destination, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Claimed by an empty file instead, whose place is taken in the next step.
        os.close(os.open(destination, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        temporary.replace(destination)
    else:
        temporary.unlink()
