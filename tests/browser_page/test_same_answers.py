"""Every file that a test of the readers makes, and every sample: the page's answers are the native ones, byte for byte,
in Node, Chromium and Firefox."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inspector.browser.session import Session
from tests.browser_page.asking import Tab, ask_in_page, files_in, first_apart, without_seconds
from tests.browser_page.nodes import ask_in_node

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("site-page"), pytest.mark.timeout(1800)]
# A browser's stack ends before Python's own limit: there the page says so (site/page/worker.js).
MOST_DEEP = 3
WHAT = ("open", "identify", "diagnose")


def _natively(questions: list[dict[str, Any]], made: Path) -> list[Any]:
    """Of questions about files below /work, which lie in `made`."""
    session = Session()
    asked = (
        json.dumps({**question, "path": str(made / question["path"].removeprefix("/work/"))}) for question in questions
    )
    return [json.loads(session.answer(text).replace(str(made), "/work")) for text in asked]


def _about(path: str) -> list[dict[str, Any]]:
    asks = ["open", "contents", "tensors", "architecture", "drawing", "repair", "report"]
    return [
        *({"ask": name, "path": path} for name in asks),
        *({"ask": "json", "what": what, "path": path} for what in WHAT),
    ]


def test_samples_and_readers_fixtures_give_the_native_answers(dist: Path, made: Path) -> None:
    files = [path for folder in sorted(made.iterdir()) if folder.is_dir() for path in files_in(folder)]
    assert len(files) > 200
    questions = [question for path in files for question in _about(f"/work/{path.relative_to(made).as_posix()}")]
    theirs = ask_in_node(dist, made, questions)
    ours = _natively(questions, made)
    deep = {asked["path"] for asked, answer in zip(questions, theirs, strict=True) if answer.get("deep")}
    assert len(deep) <= MOST_DEEP, deep
    other = [a for a, one, two in zip(questions, ours, theirs, strict=True) if one != two and a["path"] not in deep]
    print(f"Node: {len(files)} files, {len(questions)} answers, {len(other)} differ, too deep {sorted(deep)}")
    assert other == []


def _asked_of(folder: Path) -> list[dict[str, Any]]:
    """Of every file that lies in the folder itself, and of the folder as a whole."""
    questions: list[dict[str, Any]] = []
    for path in files_in(folder):
        at = f"MOUNT/{path.name}"
        questions += [{"ask": "open", "path": at}, *({"ask": "json", "what": what, "path": at} for what in WHAT)]
    return [*questions, {"ask": "scan", "folder": "MOUNT"}, {"ask": "json", "what": "scan", "folder": "MOUNT"}]


def test_browsers_give_the_native_answers(asking: Tab, made: Path) -> None:
    """Files as the browser hands them over, asked about in the page by its own client and worker."""
    counts = dict.fromkeys((*WHAT, "scan"), 0)
    files, refused, deep, other = 0, 0, set(), []
    for folder in sorted(path for path in made.iterdir() if path.is_dir()):
        questions = _asked_of(folder)
        theirs = ask_in_page(asking, folder, questions)
        session = Session()
        fell = ""
        for question, answer in zip(questions, theirs, strict=True):
            # What ends a browser's stack costs the folder that file alone, with the finding that it has here, too.
            left = answer.pop("left", [])
            deep.update({folder.name} if left else ())
            asked = {**question, "deep": left} if "folder" in question else question
            text = session.answer(json.dumps(asked).replace("MOUNT", str(folder)))
            natively = json.loads(text.replace(str(folder), "MOUNT"))
            what, path = question.get("what", question["ask"]), question.get("path", "")
            if answer.get("deep"):
                fell = path
                deep.add(folder.name)
            elif not path or path != fell:  # Of what ended Python nothing is open any more.
                counts[what] += 1
                refused += not natively["ok"]
                one, two = (without_seconds(json.dumps(each, sort_keys=True)) for each in (natively, answer))
                if one != two:
                    other.append((folder.name, question, *first_apart(one, two)))
            files += question["ask"] == "open"
    print(
        f"{type(asking).__name__}: {files} files, {counts}, {refused} refused alike, {len(other)} differ, "
        f"too deep {sorted(deep)}"
    )
    assert len(deep) <= MOST_DEEP, deep
    assert other == []
