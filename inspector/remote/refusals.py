"""What a server's refusal means, and what to do about it: a sentence for each status that has advice of its own."""

from __future__ import annotations

import re
from urllib.parse import unquote

from inspector.errors import AddressError, NeedsWholeFile
from inspector.remote.client import Answer
from inspector.units import human_bytes

_UNSATISFIED = re.compile(r"bytes \*/(\d{1,18})")
# A file of a repository, as the hub's servers are asked for it.
_IN_REPOSITORY = re.compile(r"/(?:(?:datasets|spaces)/)?([^/]+/[^/]+)/resolve/")
_LATER = "The fault is the server's; try again later."
_ADVICE = {
    401: "It is given to those who sign in only: an address with a signature or a name and password may open it.",
    403: "Its server does not give it to everybody: sign in there and download it, or ask for an address that is open.",
    404: "Check the address.",
    410: "It was taken away there; look for another address.",
    429: "The server is asked too often; try again in some minutes.",
    500: _LATER,
    502: _LATER,
    503: "The server is overloaded or being mended; try again later.",
    504: _LATER,
}
# Of the hub's own servers, where a token is what is missing.
_HUB_ADVICE = "Check the name; for a private repository set HF_TOKEN for the command line."
GATED_HINT = "Accept the terms on its page there, then set HF_TOKEN for the command line."


def advice(status: int, *, passwords: bool = True) -> str:
    """What to do about a status. passwords: whether an address may bring a name and password."""
    if status == 401 and not passwords:
        return (
            "It is given to those who sign in only: sign in there and download it, or give an address with a signature."
        )
    return _ADVICE.get(status, "Check the address.")


def refusal(answer: Answer, name: str, *, passwords: bool = True) -> AddressError:
    """What to say of an answer that brings no bytes of the file. passwords: as for `advice`."""
    code = answer.headers.get("X-Error-Code", "").strip()
    inside = _IN_REPOSITORY.match(answer.address.target)
    if code == "GatedRepo":
        what = unquote(inside[1])[:200] if inside else name
        return AddressError(
            f"{what} is gated on {answer.address.host}: {name} is given to those who agreed to its terms "
            f"({answer.status} {answer.reason[:60]}).",
            hint=GATED_HINT,
        )
    hint = _HUB_ADVICE if code == "RepoNotFound" else advice(answer.status, passwords=passwords)
    return AddressError(
        f"{name} cannot be fetched: the server answers {f'{answer.status} {answer.reason[:60]}'.strip()}.", hint=hint
    )


def stated_length(answer: Answer) -> int | None:
    """How long a server that refuses a range says the file is; None where it does not say."""
    told = _UNSATISFIED.fullmatch(answer.headers.get("Content-Range", "").strip())
    return int(told[1]) if told else None


def range_refusal(answer: Answer, name: str, opened_nbytes: int | None = None) -> AddressError:
    """What to say of a 416 about bytes that should be there. opened_nbytes: of the file, where that was said before."""
    nbytes = stated_length(answer)
    if nbytes is not None and opened_nbytes is not None and nbytes != opened_nbytes:
        return AddressError(
            f"The server of {name} said that it has {opened_nbytes:,} bytes, and now says {nbytes:,}.",
            hint="It may have changed while it was read; open it again.",
        )
    what = f"a file of {human_bytes(nbytes)}" if nbytes is not None else "a file"
    return NeedsWholeFile(
        f"The server of {name} refuses ranges of {what} (416 {answer.reason[:60]}).",
        hint="Download the file and open it from disk.",
    )
