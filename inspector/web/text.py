"""Text from files on its way to the page: nothing in it may become markup.

A tensor name, a metadata value or a global may hold Markdown or HTML. As Markdown an image alone would make the
visitor's browser call a stranger's server, so all of it is escaped here, once.
"""

from __future__ import annotations

import html
import re
import unicodedata

from inspector.units import shorten_middle

# What Streamlit's Markdown gives a meaning to: Markdown itself, $math$, :icons: and :colour[text].
_MEANING = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~$:&@/])")


# Control characters, directions of writing, halves of surrogate pairs, and what a private font would draw.
_UNSEEN = {"Cc", "Cf", "Cs", "Co"}


def visible(text: str) -> str:
    """The same text with what cannot be seen written out: a turned direction as \\u202e, a bell as \\x07.

    A name must not read otherwise than it is, and half a surrogate pair could not even be sent. Line breaks and tabs
    stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_written(char) for char in text)


def _written(char: str) -> str:
    if char in "\n\r\t" or unicodedata.category(char) not in _UNSEEN:
        return char
    return ascii(char)[1:-1]


def plain(text: str) -> str:
    """As Markdown that shows exactly this text; line breaks become spaces."""
    return _MEANING.sub(r"\\\1", " ".join(visible(text).split()))


def escaped(text: object) -> str:
    """As HTML text or attribute value."""
    return html.escape(visible(str(text)), quote=True)


def mono(text: str, width: int = 0) -> str:
    """As HTML in the code font; the whole text in the tooltip where it was shortened."""
    short = shorten_middle(text, width) if width else text
    title = f' title="{escaped(text)}"' if short != text else ""
    return f'<code class="mi-code"{title}>{escaped(short)}</code>'
