"""Every file that a test of the readers makes, and every sample: what the page writes of it is what the command line
writes, byte for byte, and refused where it refuses; in Node, and of some of them in the browsers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector.browser.session import Session
from inspector.exports.writers import WRITERS
from tests.browser_page.asking import Tab, ask_in_page, files_in
from tests.browser_page.nodes import ask_in_node
from tests.browser_page.written import Count, Wanted, by_command_line, sha256_in

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("site-page"), pytest.mark.timeout(3600)]
# Of the folders, in the browsers: every so many-th, and the samples.
EACH = 8


def _wanted(path: Path, session: Session, number: int) -> Iterator[Wanted]:
    """Of a file that opens: repaired, unwrapped and converted, the writers by turns (all, of a sample); what is whole
    of a cut one, and a beginning that all names have left off."""
    writers = WRITERS if path.parent.name == "samples" else (WRITERS[number % len(WRITERS)],)
    answer = json.loads(session.answer(json.dumps({"ask": "choices", "path": str(path)})))
    choices = answer["value"] if answer["ok"] else {}
    for writer in writers:
        for kind in ("repair", "unwrap", "convert"):
            yield Wanted(path, kind, writer.id)
            given = choices.get(kind)
            if given and given["cut"]:
                yield Wanted(path, kind, writer.id, {"salvage": True}, ("--salvage",))
            if given and given["prefixes"]:
                prefix = given["prefixes"][-1][0]
                yield Wanted(path, kind, writer.id, {"prefix": prefix}, ("--drop-prefix", prefix))


def _opened(session: Session, path: Path) -> bool:
    return bool(json.loads(session.answer(json.dumps({"ask": "open", "path": str(path)})))["ok"])


def test_written_files_are_the_command_lines(
    dist: Path, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[dict[str, Any]] = []
    wanted: list[tuple[int, Wanted, str]] = []
    session = Session()
    for number, path in enumerate(p for folder in sorted(made.iterdir()) if folder.is_dir() for p in files_in(folder)):
        at = f"/work/{path.relative_to(made).as_posix()}"
        if not _opened(session, path):
            continue
        asked += [{"ask": "open", "path": at}, {"ask": "repair", "path": at}]
        for one in _wanted(path, session, number):
            folder = f"{len(wanted)}"
            (tmp_path / folder).mkdir()
            wanted.append((len(asked), one, folder))
            asked.append(one.asked(at, f"/written/{folder}"))
        asked.append({"ask": "close", "path": at})
        session.answer(json.dumps({"ask": "close", "path": str(path)}))
    answers = ask_in_node(dist, made, asked, tmp_path)
    count, work = Count(), tmp_path / "line"
    work.mkdir()
    for place, one, folder in wanted:
        if answers[place].get("deep"):
            count.counts["too deep"] += 1
            continue
        count.add(one, by_command_line(one, work), answers[place], sha256_in(tmp_path / folder))
        capsys.readouterr()
    with capsys.disabled():
        print(f"Node: {count}")
    assert count.other == []


def test_browsers_write_what_the_command_line_does(
    asking: Tab, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Onto the browser's private disk, and read back from there."""
    folders = [folder for folder in sorted(made.iterdir()) if folder.is_dir()]
    count = Count()
    for number, folder in enumerate(folders):
        if number % EACH and folder.name != "samples":
            continue
        session = Session()
        questions: list[dict[str, Any]] = []
        wanted: dict[int, Wanted] = {}
        for path in files_in(folder):
            at = f"MOUNT/{path.name}"
            if not _opened(session, path):
                continue
            questions += [{"ask": "open", "path": at}, {"ask": "repair", "path": at}]
            for one in _wanted(path, session, number):
                wanted[len(questions)] = one
                questions.append(one.asked(at))
        answers = ask_in_page(asking, folder, questions) if questions else []
        if any(answer.get("deep") for answer in answers):  # Of what ended Python nothing is open any more.
            count.counts["too deep"] += len(wanted)
            continue
        for place, one in wanted.items():
            answer = answers[place]
            count.add(one, by_command_line(one, tmp_path), answer, answer["value"]["file"] if answer["ok"] else "")
            capsys.readouterr()
    with capsys.disabled():
        print(f"{type(asking).__name__}: {count}")
    assert count.other == []
