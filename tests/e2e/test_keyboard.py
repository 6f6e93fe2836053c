"""Without a mouse: from a sample to its repaired file, from a picture to its map. Focus is never lost on the way."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytestmark = pytest.mark.browser

# What has the focus, into what is drawn apart from the page: its name as a screen reader has it, about.
_FOCUSED = """() => {
  let at = document.activeElement
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement
  if (!at || at === document.body) return ''
  const text = at.matches('a, button, summary, h1') ? at.innerText : at.value
  return (at.getAttribute('aria-label') || text || at.tagName).trim()
}"""
# Whether it can be seen that it has: an outline, a shadow or a frame that is not there without.
_SHOWN = """() => {
  let at = document.activeElement
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement
  const look = () => {
    const s = getComputedStyle(at)
    return [s.outlineStyle === 'none' ? '' : s.outline, s.boxShadow, s.borderColor, s.backgroundColor].join()
  }
  const before = look()
  at.blur()
  const without = look()
  at.focus()
  return before !== without
}"""
_STEPS = 90


class Keyboard:
    """Tab, and what is pressed. Says where it stands."""

    def __init__(self, visitor: Any) -> None:
        self.visitor, self.page = visitor, visitor.page

    def at(self) -> str:
        return str(self.page.evaluate(_FOCUSED))

    def walk_to(self, name: str) -> None:
        """By Tab, until what is focused is called so."""
        passed = []
        for _ in range(_STEPS):
            self.page.keyboard.press("Tab")
            passed.append(self.at())
            if re.search(name, passed[-1]):
                return
        raise AssertionError(f"No Tab leads to {name}: {passed}")

    def press(self, key: str = "Enter") -> None:
        self.page.keyboard.press(key)
        self.visitor.settle()

    def is_at_heading(self) -> bool:
        return bool(self.page.evaluate("() => document.activeElement.matches('.mi-title h1')"))

    def wait_for_heading(self, name: str) -> None:
        self.page.locator(".mi-title h1").filter(has_text=re.compile(name)).wait_for()
        self.page.wait_for_function("() => document.activeElement.matches('.mi-title h1')")
        self.visitor.settle()
        assert self.is_at_heading()
        assert self.page.evaluate(_SHOWN), "the focus is not to be seen"


@pytest.fixture
def keyboard(visitor: Any) -> Keyboard:
    return Keyboard(visitor)


def test_a_sample_is_opened_repaired_and_taken_home(keyboard: Keyboard, thorough: bool) -> None:
    if not thorough:
        pytest.skip("with --thorough")
    page = keyboard.page
    keyboard.visitor.open("/")
    # Not through the sidebar.
    keyboard.walk_to("^Skip to main content$")
    keyboard.press()
    keyboard.walk_to("^DataParallel checkpoint$")
    assert page.evaluate(_SHOWN)
    keyboard.press()
    page.wait_for_url(re.compile("overview"))
    keyboard.wait_for_heading("shapes_dp")
    keyboard.walk_to("^(arrow_forward)?\\s*Repair")
    keyboard.press()
    keyboard.wait_for_heading("^Repair$")
    keyboard.walk_to("Write and verify$")
    keyboard.press()
    page.locator(".mi-download").first.wait_for()
    assert keyboard.at(), "the focus went away with the button"
    keyboard.walk_to(r"\.safetensors")
    with page.expect_download() as waiting:
        page.keyboard.press("Enter")
    assert waiting.value.suggested_filename.endswith(".safetensors")
    keyboard.visitor.check_calm()


def test_a_picture_is_explained_and_the_focus_stays_beside_it(keyboard: Keyboard, samples: Any) -> None:
    page = keyboard.page
    keyboard.visitor.upload(samples / "shapes.safetensors")
    keyboard.visitor.visit("Explain")
    page.get_by_role("button", name="square 2").focus()
    keyboard.press()
    page.get_by_alt_text("Heat map overlay").wait_for()
    keyboard.visitor.settle()
    # The choice folded up, and the button with it.
    keyboard.wait_for_heading("^Explain$")


# The outline of what has the focus, and what it stands on: the nearest ground that is not see-through.
_OUTLINE = """() => {
  const at = document.activeElement, s = getComputedStyle(at)
  let under = at.parentElement
  while (under && /, 0\\)$|transparent/.test(getComputedStyle(under).backgroundColor)) under = under.parentElement
  return { style: s.outlineStyle, width: parseFloat(s.outlineWidth), colour: s.outlineColor,
    ground: getComputedStyle(under).backgroundColor, sidebar: !!at.closest('[data-testid=stSidebar]') }
}"""


def _luminance(colour: str) -> float:
    """Of "rgb(1, 2, 3)", by WCAG 2."""
    channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_focus_is_seen_on_every_link_of_the_sidebar(keyboard: Keyboard, scheme: str) -> None:
    page = keyboard.page
    page.emulate_media(color_scheme=scheme)
    keyboard.visitor.open("/")
    keyboard.walk_to("Skip to main content")
    links = page.get_by_test_id("stSidebarNavLink").count()
    for _ in range(links):
        page.keyboard.press("Tab")
        shown = page.evaluate(_OUTLINE)
        assert shown["sidebar"] and shown["style"] == "solid" and shown["width"] >= 2, (keyboard.at(), shown)
        light, dark = sorted((_luminance(shown["colour"]), _luminance(shown["ground"])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3, shown
