"""Which Chromium do the browser tests drive? Prints its path; fetches one if there is none.

In this order: $INSPECTOR_BROWSER, an installed Chromium or Chrome, Playwright's own download, and, under CI only, the
distribution's package. Under CI a missing browser is a failure; elsewhere the browser tests skip and say so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)


def find() -> str | None:
    """Path of a browser that is already here, None without one."""
    asked = os.environ.get("INSPECTOR_BROWSER")
    if asked:
        return asked
    for name in NAMES:
        found = shutil.which(name)
        if found:
            return found
    for path in MAC:
        if Path(path).exists():
            return path
    return _of_playwright()


def _of_playwright() -> str | None:
    from playwright.sync_api import Error, sync_playwright

    try:
        with sync_playwright() as playwright:
            path = playwright.chromium.executable_path
    except Error:
        return None
    return path if Path(path).exists() else None


def fetch() -> str | None:
    """Playwright's own download, else under CI the distribution's package; None when neither worked."""
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False, timeout=600)
    found = find()
    if found or not on_ci() or not shutil.which("apt-get"):
        return found
    sudo = ["sudo"] if hasattr(os, "geteuid") and os.geteuid() != 0 and shutil.which("sudo") else []
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "-qq", "update"],
        ["apt-get", "-qq", "install", "-y", "--no-install-recommends", "chromium"],
    ):
        subprocess.run([*sudo, *command], check=False, timeout=900, env=environment)
    return find()


def on_ci() -> bool:
    """Whether this is a continuous-integration run, where nothing may be skipped."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def main() -> int:
    """Say which browser it is; 1 when there is none under CI."""
    found = find() or fetch()
    if found:
        print(f"Browser tests use {found}")
        return 0
    print("No Chromium or Chrome was found and none could be installed: the browser tests cannot run.")
    return 1 if on_ci() else 0


if __name__ == "__main__":
    sys.exit(main())
