"""Exports of every visitor, under way and written: found again from another page, and after the page is loaded anew."""

from __future__ import annotations

import shutil
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from inspector.exports.report import ExportReport
from inspector.jobs.client import Running
from inspector.progress import Stopped
from inspector.web.store import the_store

# Of all visitors. What is pushed out was asked for long ago; its file goes with the store's sweep.
_MOST = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An export on the server, to be downloaded. folder: never a visitor's name. stem: what the visitor calls it."""

    folder: Path
    stem: str
    report: ExportReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Underway:
    """An export that a job writes into a folder which nobody can download from yet."""

    running: Running
    folder: Path
    stem: str


class Kept:
    """By visitor and by everything that was chosen."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[str, str], Underway | Written] = OrderedDict()

    def begin(self, owner: str, slot: str, underway: Underway) -> None:
        """In place of what was written before under the same choices."""
        with self._lock:
            self._held.pop((owner, slot), None)
            self._held[owner, slot] = underway
            for _ in range(len(self._held) - self._most):
                _, over = self._held.popitem(last=False)
                if isinstance(over, Underway):
                    over.running.stop()
                    shutil.rmtree(over.folder, ignore_errors=True)

    def is_underway(self, owner: str, slot: str) -> bool:
        """Whether a job still writes it."""
        with self._lock:
            held = self._held.get((owner, slot))
        return isinstance(held, Underway) and not held.running.wait(0)

    def find(self, owner: str, slot: str) -> Underway | Written | None:
        """What there is. What the work raised is raised once, Stopped where it was stopped: then there is nothing."""
        with self._lock:
            held = self._settle((owner, slot))
            if isinstance(held, Underway) and held.running.wait(0):
                del self._held[owner, slot]
                raise held.running.error or Stopped
            return held

    def others(self, owner: str, group: str, slot: str) -> list[str]:
        """Slots of the same visitor that begin with `group`, the newest first, without `slot`: other choices."""
        with self._lock:
            mine = [name for who, name in reversed(self._held) if who == owner]
        return [name for name in mine if name.startswith(group) and name != slot]

    def settle(self) -> None:
        """Files of those who did not come back for them go to the others that wait for a download, and with them."""
        with self._lock:
            for at in list(self._held):
                held = self._settle(at)
                if isinstance(held, Written) and not held.folder.is_dir():
                    del self._held[at]

    def _settle(self, at: tuple[str, str]) -> Underway | Written | None:
        held = self._held.get(at)
        if isinstance(held, Underway) and held.running.wait(0):
            if held.running.error is not None or held.running.stopped:
                shutil.rmtree(held.folder, ignore_errors=True)
            else:
                folder = the_store().publish(held.folder)
                held = self._held[at] = Written(folder=folder, stem=held.stem, report=held.running.result)
        return held


the_kept = Kept()
