"""Questions put to the page's own client and worker, in a browser, by the messages that the page itself sends."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol


class Tab(Protocol):
    """What the tests ask of a browser: of Playwright's page, or `firefox.Firefox`."""

    def goto(self, address: str) -> Any: ...

    def evaluate(self, function: str, argument: Any = None) -> Any: ...

    def set_input_files(self, selector: str, paths: Sequence[str]) -> None: ...


_START = """async (address) => {
  const { Client } = await import(address)
  window.asking = new Client()
  const chosen = document.createElement('input')
  Object.assign(chosen, { type: 'file', multiple: true, id: 'given' })
  document.body.append(chosen)
}"""
_EMPTY = "() => { document.getElementById('given').value = '' }"
# A folder is mounted, questions about it are asked one after another. Of a written file its digest is answered.
_ASK = """async ([folder, paths, questions]) => {
  const given = document.getElementById('given')
  // Firefox answers its driver before the page has them.
  while (given.files.length !== paths.length) await new Promise((done) => setTimeout(done, 10))
  const files = [...given.files]
  const mount = async () => {
    const { value } = await window.asking.mount(paths.map((path, n) => [`${folder}/${path}`, files[n]]))
    return `${value}/${folder}`
  }
  const digest = async (file) => {
    const bytes = new Uint8Array(await crypto.subtle.digest('SHA-256', await file.arrayBuffer()))
    return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  }
  const answers = []
  let place = await mount()
  for (const question of questions) {
    const asked = JSON.parse(JSON.stringify(question).replaceAll('MOUNT', place))
    const asks = question.folder === 'MOUNT' ? window.asking.askOfFolder(asked, place, mount) : window.asking.ask(asked)
    const { id, folder, ...answer } = await asks
    place = folder ?? place
    if (answer.value?.file instanceof Blob) answer.value.file = await digest(answer.value.file)
    answers.push(JSON.stringify(answer).replaceAll(place, 'MOUNT'))
    if (answer.fault) place = await mount()
  }
  for (const { ask, path } of questions)
    if (ask === 'open') await window.asking.ask({ ask: 'close', path: path.replace('MOUNT', place) })
  return answers
}"""


def start(tab: Tab, address: str, dist: Path) -> None:
    """Open the page and, beside its own, a client that answers."""
    tab.goto(address)
    [folder] = dist.glob("page-*")
    tab.evaluate(_START, f"{address}{folder.name}/client.js")


def ask_in_page(tab: Tab, folder: Path, questions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answers about the folder and what is in it, whose path is MOUNT in the questions and in the answers. left: of a
    folder, what was not opened because it ended Python."""
    tab.evaluate(_EMPTY)
    held = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    tab.set_input_files("#given", [str(path) for path in held])
    paths = [path.relative_to(folder).as_posix() for path in held]
    return [json.loads(text) for text in tab.evaluate(_ASK, [folder.name, paths, questions])]


def files_in(folder: Path) -> list[Path]:
    """Those that lie in it itself."""
    return [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]


def without_seconds(text: str) -> str:
    """What took how long is nobody's answer."""
    return re.sub(r'(seconds\\*": |\brows? in )[0-9.e-]+', r"\g<1>0", text)


def first_apart(one: str, two: str) -> tuple[str, str]:
    """A little of both, from shortly before they part."""
    same = next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    at = max(0, same - 100)
    return one[at : at + 400], two[at : at + 400]
