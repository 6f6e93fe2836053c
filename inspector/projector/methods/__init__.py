"""How vectors become a map. A new method is a file and a name here."""

from __future__ import annotations

from inspector.errors import UsageError
from inspector.projector.methods import pca, tsne, umap
from inspector.projector.methods.method import Method

METHODS: tuple[Method, ...] = (pca.METHOD, tsne.METHOD, umap.METHOD)


def method_named(name: str) -> Method:
    """Raises UsageError for one that there is not."""
    found = next((method for method in METHODS if method.id == name), None)
    if found is None:
        raise UsageError(
            f'There is no method "{name}".', hint=f"Methods: {', '.join(method.id for method in METHODS)}."
        )
    return found
