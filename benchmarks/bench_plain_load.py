"""Is what is said about a file what happens to it? Forty files and a stranger's, the four sentences, and torch itself.

    python benchmarks/bench_plain_load.py [--torch PYTHON ...] [--list]

Each file is opened with `open FILE --json`; beside it, `model.load_state_dict(torch.load(path))` is run with the torch
of this Python and of every other PYTHON. A sentence that says otherwise than what happened fails the run, and so do
words put into torch's mouth that it did not say. Nothing is fetched: other releases need environments of their own.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.plain_load.files import FILES, shapes_of, write
from benchmarks.plain_load.strangers import STRANGERS
from inspector.cli.main import run

Outcome = tuple[str, str | None]
RUNNER = Path(__file__).parent / "plain_load" / "run_torch.py"
STRICT = (2, 6)
REFUSED = "refused"
ALL = {**FILES, **STRANGERS}


def overview_of(path: Path) -> dict[str, str]:
    """Topic -> sentence, as `open --json` has them; of a file that is no checkpoint what is said to it, as REFUSED."""
    out, complaint = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(complaint):
        run(["open", str(path), "--json"])
    if not out.getvalue():
        return {REFUSED: " ".join(complaint.getvalue().split())}
    return {answer["topic"]: answer["says"] for answer in json.loads(out.getvalue())["overview"]["answers"]}


def ask_torch(
    python: str, jobs: dict[str, tuple[str, dict[str, tuple[list[int], str]]]]
) -> tuple[str, dict[str, Outcome]]:
    """(version, kind -> what came of reading and of loading)."""
    done = subprocess.run([python, str(RUNNER)], input=json.dumps(jobs), capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["torch"], {kind: tuple(pair) for kind, pair in answer["answers"].items()}


def disagreements(says: str, version: str, outcome: Outcome) -> list[str]:
    """What in the sentence about loading is not so, with this torch. says: "" where nothing was claimed."""
    read, loaded = outcome
    release = tuple(map(int, version.split("+")[0].split(".")[:2]))
    succeeded = not read and not loaded
    wrong = []
    claims_load = "as they are" in says or says.startswith("load_state_dict takes it without an error")
    needed = re.search(r"it needs torch ([\d.]+) or later", says)
    if claims_load and needed and release < tuple(map(int, needed[1].split("."))):
        claims_load = False
    if claims_load and "on a machine without" in says:
        claims_load = succeeded  # A place is said, and this machine has none or has one.
    before = re.search(r"a torch before ([\d.]+) loads it as it is", says)
    if before and release < tuple(map(int, before[1].split("."))):
        claims_load = True
    if says and not says.startswith("Not checked") and claims_load != succeeded:
        wrong.append(f"says it {'loads' if claims_load else 'fails'}, and it {'loads' if succeeded else 'fails'}")
    for words, since in re.findall(
        r'torch\.load (?:says|ends with) "(.+?)"( since torch 2\.6)?(?=[;:.,] |[;:.,]?$| and)', says
    ):
        if (not since or release >= STRICT) and _bare(words) not in _bare(read or ""):
            wrong.append(f'torch.load does not say "{words}"')
    return wrong


def misquoted(says: str, version: str, outcome: Outcome) -> list[str]:
    """What is not so of a file that is said to be no checkpoint."""
    read, _ = outcome
    release = tuple(map(int, version.split("+")[0].split(".")[:2]))
    quoted = re.findall('[“"](.+?)[”"]', says.partition("(torch.load says")[2])
    wrong = [] if read else ["says it is no checkpoint, and torch reads it"]
    if read and quoted and release >= STRICT and not any(_bare(words) in _bare(read) for words in quoted):
        wrong.append(f"torch.load does not say {' or '.join(quoted)}")
    return wrong


def _bare(text: str) -> str:
    return re.sub(r"[^a-z0-9_.]", "", text.lower()).rstrip(".")


def check(
    folder: Path, pythons: list[str], kinds: list[str]
) -> tuple[list[str], dict[str, list[str]], dict[str, dict[str, str]]]:
    """(versions, kind -> disagreements, kind -> the sentences)."""
    paths = {kind: write(ALL[kind], folder / str(number)) for number, kind in enumerate(kinds)}
    sentences = {kind: overview_of(path) for kind, path in paths.items()}
    jobs = {kind: (str(path), shapes_of(ALL[kind])) for kind, path in paths.items()}
    versions, wrong = [], {kind: list[str]() for kind in kinds}
    for python in pythons:
        version, outcomes = ask_torch(python, jobs)
        versions.append(version)
        for kind in kinds:
            said = disagreements(sentences[kind].get("loading", ""), version, outcomes[kind])
            if REFUSED in sentences[kind]:
                said += misquoted(sentences[kind][REFUSED], version, outcomes[kind])
            wrong[kind] += [f"torch {version}: {one}" for one in said]
    return versions, wrong, sentences


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--torch", action="append", default=[], metavar="PYTHON", help="another Python, with another torch"
    )
    parser.add_argument("--list", action="store_true", help="print the sentences of every file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        versions, wrong, sentences = check(Path(folder), [sys.executable, *options.torch], list(ALL))
    for kind, answers in sentences.items():
        if options.list or wrong[kind]:
            print(f"{kind}\n" + "".join(f"    {topic}: {says}\n" for topic, says in answers.items()))
        for one in wrong[kind]:
            print(f"    DISAGREES: {one}")
    verdicts = Counter(
        "loads as it is"
        if "as they are" in answers.get("loading", "")
        else "fails as it is"
        if answers.get("loading", "Not").startswith("Fails")
        else "needs a repair"
        if "loading" in answers and not answers["loading"].startswith("Not")
        else "said to be no checkpoint"
        if REFUSED in answers
        else "not claimed"
        for answers in sentences.values()
    )
    total = sum(map(len, wrong.values()))
    print(f"{len(sentences)} files, torch {' and '.join(versions)}: {total} disagreements; said of them: "
          + ", ".join(f"{n} {what}" for what, n in verdicts.most_common()))  # fmt: skip
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
