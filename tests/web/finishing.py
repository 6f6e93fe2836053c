"""Waiting for what a page watches: no browser runs its fragments again here."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from inspector.web import jobs


def finish(app: AppTest) -> None:
    """Until the page shows no progress any more."""
    while any(str(button.key).startswith("stop-") for button in app.button):
        for running in jobs.the_client().running():
            assert running.wait(60)
        app.run()
