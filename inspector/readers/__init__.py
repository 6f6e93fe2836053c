"""One file per format; never executes, reads headers only.

`open_checkpoint` is the one way in. Content decides the format, never the name.
"""

from __future__ import annotations

from inspector.readers.opening import (
    FOLDER_READERS,
    READERS,
    claims_folder,
    detect_format,
    open_at,
    open_checkpoint,
    open_source,
)

__all__ = ["FOLDER_READERS", "READERS", "claims_folder", "detect_format", "open_at", "open_checkpoint", "open_source"]
