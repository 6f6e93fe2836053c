"""Waiting for what a page watches, since no browser runs its fragments again here; and the end of what it asked."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from inspector.web import jobs


def finish(app: AppTest) -> None:
    """Until the page shows no progress any more."""
    while any(str(button.key).startswith("stop-") for button in app.button):
        for running in jobs.the_client().running():
            assert running.wait(60)
        app.run()


def forget_client() -> None:
    """The next page asks anew; the thread that looks after the last one's jobs ends."""
    if jobs.the_client.cache_info().currsize:
        jobs.the_client().close()
    jobs.the_client.cache_clear()
