"""Text from files as HTML: nothing in it may become markup, and what cannot be seen is written out."""

from __future__ import annotations

import html

from inspector.render.visible import visible


def escaped(text: object) -> str:
    """As HTML text or attribute value."""
    return html.escape(visible(str(text)), quote=True)
