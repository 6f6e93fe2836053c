"""Text from files on its way to the page: nothing in it may become markup.

A tensor name, a metadata value or a global may hold Markdown or HTML. As Markdown an image alone would make the
visitor's browser call a stranger's server, so all of it is escaped here, once.
"""

from __future__ import annotations

import re

from inspector.render.html_text import escaped
from inspector.render.visible import visible
from inspector.units import shorten_middle

__all__ = ["escaped", "mono", "plain", "visible"]

# What Streamlit's Markdown gives a meaning to: Markdown itself, $math$, :icons: and :colour[text].
_MEANING = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~$:&@/])")


def plain(text: str) -> str:
    """As Markdown that shows exactly this text; line breaks become spaces."""
    return _MEANING.sub(r"\\\1", " ".join(visible(text).split()))


def mono(text: str, width: int = 0) -> str:
    """As HTML in the code font; the whole text in the tooltip where it was shortened."""
    short = shorten_middle(text, width) if width else text
    title = f' title="{escaped(text)}"' if short != text else ""
    return f'<code class="mi-code"{title}>{escaped(short)}</code>'
