"""Files that people take for checkpoints, each as it happens in practice."""

from __future__ import annotations

import hashlib
from pathlib import Path

DOWNLOAD_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Shapes classifier - Download</title></head>
<body>
<h1>This file is too large to be scanned for viruses</h1>
<p>shapes.pth (1.4 MB) exceeds the maximum file size that can be scanned. Would you still like to download it?</p>
<form action="/download" method="get"><button type="submit">Download anyway</button></form>
</body>
</html>
"""


def write_download_page(path: Path) -> None:
    """What a link to a web page, instead of the file behind it, leaves on the disk."""
    path.write_text(DOWNLOAD_PAGE, encoding="utf-8", newline="\n")


def write_lfs_pointer(path: Path, whole: Path) -> None:
    """What `git clone` without Git LFS leaves in place of the file."""
    content = whole.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    path.write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n",
        encoding="utf-8",
        newline="\n",
    )


def write_truncated(path: Path, whole: Path, fraction: float = 0.6) -> None:
    """An interrupted download: the beginning of a good file."""
    content = whole.read_bytes()
    path.write_bytes(content[: int(len(content) * fraction)])


def write_renamed(path: Path, picture: Path) -> None:
    """A picture with a checkpoint's ending."""
    path.write_bytes(picture.read_bytes())
