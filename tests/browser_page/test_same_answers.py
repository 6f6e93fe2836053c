"""Every file that a test of the readers makes, and every sample: the page's answers are the native ones, byte for byte,
in Node and in Chromium. $COLLECTED may name a folder in which the files lie already (collecting.py)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inspector.browser.session import Session

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_models" / "files"
pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("site-page"), pytest.mark.timeout(1800)]
# A browser's stack ends before Python's own limit: there the page says so (site/page/worker.js).
MOST_DEEP = 3
WHAT = ("open", "identify", "diagnose")
# By the messages that the page sends: a folder is mounted, questions about it are asked one after another.
_START = """async (address) => {
  const { Client } = await import(address)
  window.asking = new Client()
  const chosen = document.createElement('input')
  Object.assign(chosen, { type: 'file', multiple: true, id: 'given' })
  document.body.append(chosen)
}"""
_ASK = """async ([folder, paths, questions]) => {
  const files = [...document.getElementById('given').files]
  const mount = async () => {
    const { value } = await window.asking.mount(paths.map((path, n) => [`${folder}/${path}`, files[n]]))
    return `${value}/${folder}`
  }
  const answers = []
  let place = await mount()
  for (const question of questions) {
    const { id, ...answer } = await window.asking.ask(JSON.parse(JSON.stringify(question).replaceAll('MOUNT', place)))
    answers.push(JSON.stringify(answer).replaceAll(place, 'MOUNT'))
    if (answer.fault) place = await mount()
  }
  for (const { ask, path } of questions)
    if (ask === 'open') await window.asking.ask({ ask: 'close', path: path.replace('MOUNT', place) })
  return answers
}"""


def _natively(questions: list[dict[str, Any]]) -> list[Any]:
    session = Session()
    return [json.loads(session.answer(json.dumps(question))) for question in questions]


def _about(path: str) -> list[dict[str, Any]]:
    asks = ["open", "contents", "tensors", "architecture", "drawing", "repair", "report"]
    return [
        *({"ask": name, "path": path} for name in asks),
        *({"ask": "json", "what": what, "path": path} for what in WHAT),
    ]


@pytest.fixture(scope="module")
def made(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder per test of the readers, and the samples."""
    there = Path(os.environ.get("COLLECTED") or tmp_path_factory.mktemp("made"))
    if not any(there.iterdir()):
        environment = {**os.environ, "COLLECT_INTO": str(there), "PYTHONPATH": str(ROOT)}
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "tests/readers", "-p", "tests.browser_page.collecting"],
            cwd=ROOT, env=environment, check=False, capture_output=True,
        )  # fmt: skip
    # No link: the page's Python would follow it on its own disk.
    shutil.copytree(SAMPLES, there / "samples", dirs_exist_ok=True)
    return there


def _files(made: Path) -> list[Path]:
    files = [path for path in sorted(made.glob("*/*")) if path.is_file() and not path.name.startswith(".")]
    assert len(files) > 200
    return files


def test_samples_and_readers_fixtures_give_the_native_answers(dist: Path, made: Path) -> None:
    files = _files(made)
    questions = [question for path in files for question in _about(f"/work/{path.relative_to(made).as_posix()}")]
    done = subprocess.run(
        ["node", str(ROOT / "tests" / "browser_page" / "page.mjs"), str(dist), str(made)],
        input="\n".join(map(json.dumps, questions)), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    theirs = [json.loads(line) for line in done.stdout.splitlines()[-len(questions) :]]
    ours = _natively([{**asked, "path": str(made / asked["path"].removeprefix("/work/"))} for asked in questions])
    deep = {asked["path"] for asked, answer in zip(questions, theirs, strict=True) if answer.get("deep")}
    assert len(deep) <= MOST_DEEP, deep
    other = [a for a, one, two in zip(questions, ours, theirs, strict=True) if one != two and a["path"] not in deep]
    print(f"Node: {len(files)} files, {len(questions)} answers, {len(other)} differ, too deep {sorted(deep)}")
    assert other == []


@pytest.fixture(scope="module")
def asking(chromium: Browser, address: str, dist: Path) -> Iterator[Page]:
    page = chromium.new_page()
    elsewhere: list[str] = []
    page.on("request", lambda request: elsewhere.append(request.url))
    page.goto(address)
    [folder] = dist.glob("page-*")
    page.evaluate(_START, f"{address}{folder.name}/client.js")
    yield page
    assert [url for url in elsewhere if not url.startswith((address, f"blob:{address}"))] == []
    page.close()


def _asked_of(folder: Path) -> list[dict[str, Any]]:
    """Of every file that lies in the folder itself, and of the folder as a whole."""
    questions: list[dict[str, Any]] = []
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.name.startswith("."):
            at = f"MOUNT/{path.name}"
            questions += [{"ask": "open", "path": at}, *({"ask": "json", "what": what, "path": at} for what in WHAT)]
    return [*questions, {"ask": "scan", "folder": "MOUNT"}, {"ask": "json", "what": "scan", "folder": "MOUNT"}]


def _without_seconds(text: str) -> str:
    return re.sub(r'(seconds\\*": |\brows? in )[0-9.e-]+', r"\g<1>0", text)


def _first_apart(one: str, two: str) -> tuple[str, str]:
    """A little of both, from shortly before they part."""
    same = next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    at = max(0, same - 100)
    return one[at : at + 400], two[at : at + 400]


def test_chromium_gives_the_native_answers(asking: Page, made: Path) -> None:
    """Files as the browser hands them over, asked about in the page by its own client and worker."""
    counts = dict.fromkeys((*WHAT, "scan"), 0)
    files, refused, deep, other = 0, 0, set(), []
    for folder in sorted(path for path in made.iterdir() if path.is_dir()):
        held = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        questions = _asked_of(folder)
        asking.set_input_files("#given", [str(path) for path in held])
        paths = [path.relative_to(folder).as_posix() for path in held]
        theirs = [json.loads(text) for text in asking.evaluate(_ASK, [folder.name, paths, questions])]
        session = Session()
        fell = ""
        for question, answer in zip(questions, theirs, strict=True):
            text = session.answer(json.dumps(question).replace("MOUNT", str(folder)))
            natively = json.loads(text.replace(str(folder), "MOUNT"))
            what, path = question.get("what", question["ask"]), question.get("path", "")
            if answer.get("deep"):
                fell = path
                deep.add(folder.name)
            elif not path or path != fell:  # Of what ended Python nothing is open any more.
                counts[what] += 1
                refused += not natively["ok"]
                one, two = (_without_seconds(json.dumps(each, sort_keys=True)) for each in (natively, answer))
                if one != two:
                    other.append((folder.name, question, *_first_apart(one, two)))
            files += question["ask"] == "open"
    print(f"Chromium: {files} files, {counts}, {refused} refused alike, {len(other)} differ, too deep {sorted(deep)}")
    assert len(deep) <= MOST_DEEP, deep
    assert other == []
