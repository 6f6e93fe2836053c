"""The hub's API over `tests.serving`: the listing with blobs, the revisions, files behind resolve/."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from tests.serving import Server

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def publish(
    server: Server,
    repository: str,
    files: Mapping[str, bytes],
    *,
    revisions: tuple[str, ...] = ("main",),
    commit: str = COMMIT,
    store: Server | None = None,
) -> None:
    """Put a repository on the server. store: another one that large files are redirected to."""
    siblings = [
        {
            "rfilename": path,
            "size": len(data),
            **({"lfs": {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}} if len(data) > 1000 else {}),
        }
        for path, data in files.items()
    ]
    listing = json.dumps({"id": repository, "sha": commit, "siblings": siblings}).encode()
    for revision in (*revisions, commit):
        server.files[f"/api/models/{repository}/revision/{revision}"] = listing
    refs = {"branches": [{"name": name, "ref": f"refs/heads/{name}"} for name in revisions], "tags": []}
    server.files[f"/api/models/{repository}/refs"] = json.dumps(refs).encode()
    for path, data in files.items():
        where = f"/{repository}/resolve/{commit}/{path}"
        if store is None:
            server.files[where] = data
        else:
            store.files[f"/blobs{where}"] = data
            target = f"{store.base}/blobs{where}?X-Signature=secret"
            server.odd[where] = lambda handler, target=target: handler.redirect(target)  # type: ignore[misc]
