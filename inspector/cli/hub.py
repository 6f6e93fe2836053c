"""hub: what a repository of the Hugging Face hub holds, before anything of it is opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.options import Json, show

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.readers.hub.choice import Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class HubReport:
    """repository: with the commit that a branch or tag stands for. opened: path of what `open` takes, "" where it asks.
    others: (path, bytes) of what is no checkpoint by its name. revisions: branches, then tags. gated: given only to
    those who agreed to its terms."""

    repository: str
    commit: str
    opened: str
    candidates: tuple[Candidate, ...]
    others: tuple[tuple[str, int], ...]
    revisions: tuple[str, ...]
    gated: bool = False


def hub(
    place: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="org/name or hf://org/name[@revision][/folder] on the Hugging Face hub, or the address of its page.",
        ),
    ],
    json: Json = False,
) -> int:
    """List a repository of the hub: its checkpoints, shards as one, its other files, its revisions; nothing is opened.

    HF_ENDPOINT names another hub, HF_TOKEN opens what is private; the token is sent to that hub alone.
    """
    from inspector.limits import DEFAULT_LIMITS
    from inspector.readers.hub.choice import choose
    from inspector.readers.hub.listing import list_repository, list_revisions
    from inspector.readers.hub.place import parse_place
    from inspector.readers.remote import own_client

    asked, client = parse_place(place), own_client(for_a_look=True)
    found = list_repository(asked, client, DEFAULT_LIMITS.metered())
    choice = choose(found.files, asked.path)
    own = {path for candidate in choice.candidates for path in candidate.files}
    report = HubReport(
        repository=found.place.repository,
        gated=found.gated,
        commit=found.place.revision,
        opened=choice.best.path if choice.best is not None else "",
        candidates=choice.candidates,
        others=tuple((path, nbytes) for path, nbytes in found.files.items() if path not in own),
        revisions=list_revisions(found.place, client, DEFAULT_LIMITS.metered()),
    )

    gated = (("Gated", "Accept its terms on its page, and set HF_TOKEN, to open it."),) if found.gated else ()
    rows = (
        ("Repository", report.repository),
        ("Commit", report.commit),
        ("Revisions", ", ".join(report.revisions)),
        *gated,
    )
    candidates = [(c.path, c.stands_for, len(c.files), c.nbytes) for c in report.candidates]

    def text() -> RenderableType:
        from inspector.render.hub import hub_text

        return hub_text(rows, candidates, report.opened, report.others)

    show(report, text, as_json=json)
    return 0
