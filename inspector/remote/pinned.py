"""A range of one content of an object in S3: the store is asked to refuse it where another object has its name now.

fsspec's `cat_file` cannot say it, and asking afterwards whether the object is still the one costs each file a request.
"""

from __future__ import annotations

import time
from typing import Any

# s3fs asks again where a request fails; where an answer breaks off in the middle, it does not.
_TRIES = 3
_PAUSE_SECONDS = 0.5
_SECONDS = 120.0


def pinned_range(system: Any, path: str, etag: str, offset: int, n: int) -> bytes:
    """Bytes of the object with that ETag. system: an `s3fs.S3FileSystem`. Raises what s3fs does, OSError with the cause
    PreconditionFailed for another object."""
    from fsspec.asyn import sync

    bucket, key, _ = system.split_path(path)
    for left in range(_TRIES - 1, -1, -1):
        told = system.call_s3(
            "get_object", Bucket=bucket, Key=key, Range=f"bytes={offset}-{offset + n - 1}", IfMatch=etag
        )
        body = told["Body"]
        try:
            return bytes(sync(system.loop, body.read, timeout=_SECONDS))
        except Exception:
            if not left:
                raise
        finally:
            body.close()
        time.sleep(_PAUSE_SECONDS)
    raise AssertionError("unreachable")
