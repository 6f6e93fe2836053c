"""Named questions over a catalogue of 10^5 files: seconds to make it from a store, and to answer, with the right
answers asserted.

    python benchmarks/bench_catalogue.py [--files 100000] [--tensors 50] [--keep DIR]

The store is synthetic: lines as an audit with --digest leaves them. A tenth of the files are fine-tunes (48 of 50
tensors their base's), a twentieth copies; the others share nothing but a constant. A question is timed as the command
line asks it, opening included, and as a page asks it, of an open catalogue; median of five. On a machine that others
use, the seconds of processors say more.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from inspector.catalogue import questions
from inspector.catalogue.open import Catalogue, open_catalogue
from inspector.catalogue.parts import catalogue_of
from inspector.catalogue.update import update
from inspector.survey.described import DESCRIBED
from inspector.sweep.store import ResultStore, open_store

_BATCH = 100
_FAMILY = 100  # A base and its fine-tunes.
_REPEATS = 5


def digest(*facts: object) -> str:
    return hashlib.blake2b(repr(facts).encode(), digest_size=16).hexdigest()


def names_of(count: int) -> list[str]:
    kinds = ("self_attn.q_proj.weight", "self_attn.k_proj.weight", "mlp.up_proj.weight", "input_layernorm.weight")
    return [f"model.layers.{number // 4}.{kinds[number % 4]}" for number in range(count)]


def base_of(number: int, files: int) -> tuple[int, str]:
    """(the file whose tensors it has, how): itself for a file of its own."""
    if number < files // 10:
        first = number - number % _FAMILY
        return first, "tuned" if number != first else "own"
    if number < files // 10 + files // 20:
        return files - 1 - number, "copy"
    return number, "own"


def line_of(number: int, files: int, names: list[str]) -> dict[str, object]:
    base, how = base_of(number, files)
    digests: list[str] = [digest(base, place) for place in range(len(names))]
    if how == "tuned":
        digests[-2:] = [digest("tuned", number, place) for place in (0, 1)]
    digests[0] = digest("ones")
    count = len(names)
    bad = number % 1000 == 7
    finding = {"id": "non-finite", "severity": "error", "says": f"w holds {number} NaN.", "subjects": [names[3]]}
    row = {
        "path": f"zoo/{number // 1000:04}/model-{number:06}.safetensors",
        "nbytes": count * 32768 + 4096,
        "kind": "checkpoint",
        "format": "safetensors" if number % 3 else "torch.save (zip)",
        "producer": "",
        "tensors": count,
        "parameters": count * 16384,
        "buffers": 0,
        "dangerous": 0,
        "unknown": 0,
        "severity": "error" if bad else None,
        "finding": "non-finite" if bad else "",
        "says": finding["says"] if bad else "",
        "sha256": hashlib.sha256(str(base if how == "copy" else number).encode()).hexdigest(),
        "findings": [finding] if bad else [],
        "architecture": f"transformers/family{number % 40}",
        "confidence": 1.0,
        "exact": True,
        "dtypes": {"bfloat16": count},
        "weights_digest": digest("all", base if how == "copy" else number),
        "numbers": True,
        "held": {
            "name": names,
            "role": ["weights"] * count,
            "dtype": ["bfloat16"] * count,
            "shape": [[128, 128]] * count,
            "nbytes": [32768] * count,
            "digest": digests,
            "constant": [place == 0 for place in range(count)],
        },
    }
    return {"identity": digest("identity", number), "tag": "", "covers": [], "rows": [row]}


def make_store(where: Path, files: int, tensors: int) -> ResultStore:
    store, names = open_store(str(where)), names_of(tensors)
    keys = [hashlib.sha256(f"key {number}".encode()).hexdigest()[:40] for number in range(files)]
    for first in range(0, files, _BATCH):
        lines = (
            (keys[number], json.dumps(line_of(number, files, names), separators=(",", ":")).encode())
            for number in range(first, min(first + _BATCH, files))
        )
        store.put(DESCRIBED, lines)
    plan = [{"name": "zoo", "skipped": [], "incomplete": False}]
    plan += [
        {"path": f"zoo/{n // 1000:04}/model-{n:06}.safetensors", "is_folder": False, "key": key, "row": None}
        for n, key in enumerate(keys)
    ]
    place = store.put_named("plans", "bench", (b"\n".join(json.dumps(one).encode() for one in plan),))
    note = {"run": "bench", "base": "/", "at": 1.0, "sources": ["zoo"], "part": 1, "of": 1, "plan": place}
    store.blobs.write("runs/bench-1of1.json", json.dumps(note).encode())
    return store


QUESTIONS: dict[str, Callable[[Catalogue], object]] = {
    "how many files by architecture": lambda c: c.ask("select architecture, count(*) from files group by all"),
    "one file's tensors": lambda c: c.ask(
        "select name from tensors join files using (file) where path = 'zoo/0042/model-042042.safetensors'"
    ),
    "files that call dangerous names": lambda c: c.ask("select count(*) from files where dangerous > 0"),
    "tensors by format": lambda c: c.ask("select format, count(*) from files join tensors using (file) group by all"),
    "tensors by name and shape": lambda c: c.ask(
        "select name, shape, count(*) as held from tensors group by all order by held desc limit 20"
    ),
    "paths of a listing that are new": lambda c: c.ask(
        "select count(*) from (select 'zoo/new/' || range as path from range(100000)) as listed anti join files "
        "using (path)"
    ),
    "--search model-04242": lambda c: questions.search(c, "model-04242", most=100),
    "--search q_proj": lambda c: questions.search(c, "q_proj", most=100),
    "--findings non-finite": lambda c: questions.with_finding(c, "non-finite", most=100),
    "--duplicates files": lambda c: questions.duplicates(c, questions.Duplicates.FILES, most=100),
    "--duplicates tensors": lambda c: questions.duplicates(c, questions.Duplicates.TENSORS, most=100),
    "--trunks": lambda c: questions.trunks(c, most=100),
}


def check(catalogue: Catalogue, files: int, tensors: int) -> None:
    """The right answers, worked out from how the store was made."""
    assert catalogue.ask("select count(*) from files").rows == ((files,),)
    assert catalogue.ask("select count(*) from tensors").rows == ((files * tensors,),)
    copies = questions.duplicates(catalogue, questions.Duplicates.FILES).rows
    assert len(copies) == files // 20 and all(row[1] == 2 for row in copies)
    assert len(questions.with_finding(catalogue, "non-finite").rows) == files // 1000
    kin = questions.trunks(catalogue).rows
    families = files // 10 // _FAMILY
    assert len({row[0] for row in kin}) == families + files // 20
    assert len(kin) == families * (_FAMILY - 1) + files // 20
    assert {row[3] for row in kin} == {tensors - 3, tensors - 1}


def seconds(work: Callable[[], object]) -> Iterator[float]:
    for _ in range(_REPEATS):
        began = time.perf_counter()
        work()
        yield time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--tensors", type=int, default=50)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    with contextlib.ExitStack() as stack:
        where = asked.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        began = time.perf_counter()
        if (where / "runs").is_dir():
            store = open_store(str(where))
        else:
            store = make_store(where, asked.files, asked.tensors)
            print(f"store of {asked.files:,} files, {asked.files * asked.tensors:,} tensors: made in "
                  f"{time.perf_counter() - began:.1f} s")  # fmt: skip
        folder = catalogue_of(where)
        began = time.perf_counter()
        cpu = time.process_time()
        updated = update([store], folder)
        print(f"update: {updated}, {time.perf_counter() - began:.1f} s, CPU {time.process_time() - cpu:.1f} s")
        began = time.perf_counter()
        print(f"again:  {update([store], folder)}, {time.perf_counter() - began:.1f} s")
        nbytes = sum(path.stat().st_size for path in folder.root.iterdir() if path.is_file())
        print(f"{nbytes / 1e6:.1f} MB in {len(folder.parts().rows)} part(s)")
        with open_catalogue(folder) as catalogue:
            check(catalogue, asked.files, asked.tensors)
            for name, ask in QUESTIONS.items():

                def alone(ask: Callable[[Catalogue], object] = ask) -> None:
                    with open_catalogue(folder) as fresh:
                        ask(fresh)

                held = statistics.median(seconds(lambda ask=ask: ask(catalogue)))
                anew = statistics.median(seconds(alone))
                used = time.process_time()
                alone()
                used = time.process_time() - used
                print(f"{name:32} {anew:7.3f} s opened anew {held:7.3f} s held open {used:7.3f} s of processors")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"peak memory {peak:,.0f} MB")


if __name__ == "__main__":
    main()
