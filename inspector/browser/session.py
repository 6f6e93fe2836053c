"""One question after another, as JSON: what site/page/worker.js asks, and what it is answered.

{"ask": "open", "path": "/files/1/model.pth"}  ->  {"ok": true, "value": {...}}
                                                   {"ok": false, "says": "...", "hint": "..."}
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from inspector.browser import comparing, documents, network, others, views, writing
from inspector.browser.documents import APP_HINT, TOO_DEEP
from inspector.browser.first_values import first_values
from inspector.browser.numbers import Count, check_numbers, no_count
from inspector.browser.pieces import own_words
from inspector.errors import InspectorError, UsageError
from inspector.progress import Progress, silent


class Session:
    """Files that are open, by path, and the questions about them. count: the page's typed arrays."""

    def __init__(self, progress: Progress = silent, count: Count = no_count) -> None:
        self._open: dict[str, views.Opened] = {}
        self._progress, self._count = progress, count
        self._questions: dict[str, Callable[[dict[str, Any]], Any]] = {
            "open": self._open_file,
            "contents": lambda asked: views.contents(self._of(asked)),
            "tensors": lambda asked: views.tensors(self._of(asked)),
            "architecture": lambda asked: views.architecture(self._of(asked)),
            "drawing": lambda asked: network.drawing(self._of(asked)),
            "box": lambda asked: network.chosen(self._of(asked), asked["box"]),
            "repair": self._repair,
            "write": self._write,
            "choices": lambda asked: writing.choices(self._of(asked)),
            "compare": self._compare,
            "values": lambda asked: first_values(self._of(asked).checkpoint, asked["set"], asked["row"]),
            "numbers": self._numbers,
            "json": self._json,
            "report": self._report,
            "scan": lambda asked: others.scan(
                asked["folder"], self._progress, **_of_folder(asked), spent=asked.get("spent", 0)
            ),
            "explain": lambda asked: others.explain_error(asked["text"], self._open.get(asked.get("path", ""))),
            "writers": lambda _: _writers(),
            "close": lambda asked: self._close(asked["path"]),
        }

    def answer(self, text: str) -> str:
        """Of one question. Raises nothing but what progress raises."""
        try:
            asked = json.loads(text)
            return json.dumps({"ok": True, "value": self._questions[asked["ask"]](asked)})
        except InspectorError as error:
            return json.dumps({"ok": False, "says": own_words(error.says), "hint": own_words(error.hint)})
        except MemoryError:
            return json.dumps({"ok": False, "says": "The page ran out of memory for this.", "hint": APP_HINT})
        except RecursionError:
            return json.dumps({"ok": False, "says": TOO_DEEP, "hint": APP_HINT})

    def _of(self, asked: dict[str, Any]) -> views.Opened:
        opened = self._open.get(asked["path"])
        if opened is None:
            raise UsageError("This file is not open any more.", hint="Drop it again.")
        return opened

    def _open_file(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Of a file, or of one in an archive: member, as its row calls it. An archive of many files is answered with
        the table of them."""
        path, member = asked["path"], asked.get("member", "")
        try:
            opened = views.open_path(path, member)
        except InspectorError:
            many = None if member else others.archive(path, self._progress)
            if many is None:
                raise
            return many
        key = f"{path}#{member}" if member else path
        self._open[key] = opened
        return {**views.overview(opened), "path": key}

    def _close(self, path: str) -> None:
        opened = self._open.pop(path, None)
        if opened is not None:
            opened.close()

    def _repair(self, asked: dict[str, Any]) -> dict[str, Any]:
        """target: as a person writes it, "" for the file's own; other: path of a second file; keys: a pasted list."""
        from inspector.architectures.key_lists import target_of_list
        from inspector.architectures.targets import parse_target, target_of_checkpoint
        from inspector.readers import open_checkpoint

        opened = self._of(asked)
        text, other, keys = (asked.get(name, "") for name in ("target", "other", "keys"))
        state = opened.checkpoint.weights
        if other:
            second = open_checkpoint(other)
            opened.target = target_of_checkpoint(second, f"file:{second.origin.name}")
        elif keys:
            opened.target = target_of_list(keys, "keys:pasted", called="the pasted list")
        elif text:
            recognition = opened.inspection.recognition
            opened.target = parse_target(text, candidate=recognition.best if recognition else None, state=state)
        else:
            opened.target = None
        opened.accept = tuple(asked.get("accept", ()))
        opened.choose = dict(asked.get("choose", {}))
        opened.partial = bool(asked.get("partial"))
        return views.repair(opened)

    def _compare(self, asked: dict[str, Any]) -> dict[str, Any]:
        """other: path of a second file."""
        from inspector.readers import open_checkpoint

        second = open_checkpoint(asked["other"])
        try:
            return comparing.compare(self._of(asked).checkpoint, second, self._progress)
        finally:
            second.source.close()

    def _numbers(self, asked: dict[str, Any]) -> dict[str, Any]:
        """With the Overview that now knows of them."""
        opened = self._of(asked)
        told, shown = check_numbers(opened.checkpoint, self._count, self._progress)
        opened.learn(told)
        return {**shown, "overview": views.overview(opened)}

    def _write(self, asked: dict[str, Any]) -> dict[str, Any]:
        return writing.write_file(
            self._of(asked), asked["kind"], asked["folder"], writer=asked["writer"],
            salvage=bool(asked.get("salvage")), prefix=asked.get("prefix", ""), progress=self._progress,
        )  # fmt: skip

    def _json(self, asked: dict[str, Any]) -> str:
        """What the command line prints with --json. what: "open", "identify", "diagnose" or "scan"."""
        if asked["what"] == "scan":
            return documents.scan_json(asked["folder"], self._progress, **_of_folder(asked))
        checkpoint = self._of(asked).checkpoint
        if asked["what"] == "identify":
            return documents.identify_json(checkpoint, self._progress)
        return {"open": documents.open_json, "diagnose": documents.diagnose_json}[asked["what"]](checkpoint)

    def _report(self, asked: dict[str, Any]) -> str:
        from inspector.render.page_report.page import report_html, report_json

        report = self._of(asked).report
        return report_json(report) + "\n" if asked.get("data") else report_html(report)


def _of_folder(asked: dict[str, Any]) -> dict[str, Any]:
    return {"name": asked.get("name", ""), "deep": asked.get("deep", ())}


def _writers() -> list[dict[str, str]]:
    from inspector.exports.writers import WRITERS

    return [{"id": one.id, "suffix": one.suffix, "says": one.says} for one in WRITERS]
