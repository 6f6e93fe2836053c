"""The few pages that the front answers with itself: whole, without a script."""

from __future__ import annotations

from html import escape
from urllib.parse import urlencode

_STYLE = """
:root { color-scheme: light dark; --ink: #1b2426; --ground: #ffffff; --line: #dbe3e2; --lead: #0f766e; --link: #0f766e }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4ebea; --ground: #101617; --line: #2c383a; --lead: #0d8379; --link: #5eead4; }
}
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 34rem; margin: 18vh auto 0; padding: 0 1.5rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .75rem; }
a { color: var(--link); }
form { display: flex; gap: .5rem; margin-top: 1.25rem; flex-wrap: wrap; }
input { flex: 1 1 14rem; font: inherit; padding: .5rem .7rem; color: inherit; background: transparent;
        border: 1px solid var(--line); border-radius: .45rem; }
button { font: inherit; padding: .5rem 1rem; border: 0; border-radius: .45rem; background: var(--lead); color: #fff; }
"""


def not_found(home: str) -> str:
    """home: the address of the first page."""
    return _page("There is no such page", f"<p>The address is wrong, or older than this version.</p>{_home(home)}")


def refused(says: str) -> str:
    """A sentence and nothing else."""
    return _page("Not here", f"<p>{escape(says)}</p>")


def sign_in(enter: str, follow: str, *, is_password: bool, says: str = "") -> str:
    """enter: where the form goes. follow: the path that was asked for. says: what was wrong with the last try."""
    what = "password" if is_password else "token"
    how = (
        "Ask whoever runs this server for its password."
        if is_password
        else "The server printed an address with a token when it was started: open that, or paste the token here."
    )
    trouble = f"<p><b>{escape(says)}</b></p>" if says else ""
    if follow.rstrip("/").partition("?")[2]:
        # The address that the server printed leads to its first page.
        how = f"{how} Entered here, it opens the link that you followed."
    way = urlencode({"follow": follow})
    target = escape(f"{enter}?{way}")
    return _page(
        "This server asks who you are",
        f'<p>{how}</p>{trouble}<form method="post" action="{target}">'
        f'<input type="password" name="secret" aria-label="The {what}" placeholder="{what.capitalize()}" '
        'autocomplete="current-password" required autofocus>'
        f'<input type="hidden" name="follow" value="{escape(follow)}"><button>Open</button></form>',
    )


def _home(home: str) -> str:
    return f'<p><a href="{escape(home)}">Open a checkpoint</a></p>'


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · Model Inspector</title><style>{_STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )
