"""The gate as a browser meets it: the form, the policy, and what a page of another site can do."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser


def test_a_visitor_without_the_token_is_asked_and_let_in_by_the_form(browser, server) -> None:  # type: ignore[no-untyped-def]
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{server.url}/overview")
    page.get_by_label("The token").fill("not the token")
    page.get_by_role("button", name="Open").click()
    page.get_by_text("That is not the token.").wait_for()
    page.get_by_label("The token").fill(server.token)
    page.get_by_role("button", name="Open").click()
    page.locator(".mi-title h1").wait_for()
    assert page.url.startswith(f"{server.url}/overview") and server.token not in page.url
    context.close()


def test_an_unknown_page_leads_home(visitor) -> None:  # type: ignore[no-untyped-def]
    answer = visitor.page.goto(f"{visitor.url}/nothing")
    assert answer is not None and answer.status == 404
    visitor.page.get_by_role("link", name="Open a checkpoint").click()
    visitor.page.locator(".mi-title h1").filter(has_text="Open a checkpoint").wait_for()


def test_a_script_that_comes_into_the_page_does_not_run(visitor) -> None:  # type: ignore[no-untyped-def]
    visitor.open("/")
    visitor.page.evaluate(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)"
    )
    assert visitor.page.evaluate("window.ran === undefined")
    assert any("Content Security Policy" in trouble for trouble in visitor.troubles)


@pytest.mark.parametrize("page", ["overview", "repair?tensor=a"])
def test_a_deep_link_asks_for_nothing_that_is_missing(visitor, page: str) -> None:  # type: ignore[no-untyped-def]
    """Streamlit's page looks for its server beneath a deep link's own path first; that got a 404 once."""
    missing: list[str] = []
    visitor.page.on("response", lambda answer: missing.append(answer.url) if answer.status == 404 else None)
    visitor.open(f"/{page}")
    visitor.check_calm()
    assert missing == []
