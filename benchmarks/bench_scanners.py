"""What do scanners of checkpoints say to what their own test suites call dangerous, and to ordinary files?

    python benchmarks/bench_scanners.py [--bin FOLDER]

The files are made here (benchmarks/scanners/cases.py, with their sources) and never loaded. Each scanner that is
installed is asked once per file, in a process of its own: ours, and the commands `picklescan`, `modelscan` and
`modelaudit` where they are found, in FOLDER or on the path. Ours must call every one of them an error, and no ordinary
file more than a notice.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.scanners import cases

_SECONDS = 120


def _ours(place: Path) -> bool:
    command = [sys.executable, "-m", "inspector", "scan", str(place.parent), "--json", "--jobs", "1"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    return any(row["worst"] == "error" for row in json.loads(run.stdout)["rows"])


def _by_exit_code(*command: str, bad: int = 1) -> Callable[[Path], bool]:
    def ask(place: Path) -> bool:
        run = subprocess.run([*command, str(place)], capture_output=True, timeout=_SECONDS)
        return run.returncode == bad

    return ask


def scanners(folder: str) -> dict[str, Callable[[Path], bool]]:
    """Name -> whether it calls a file dangerous. Exit code 1 is theirs for that; failures are none."""
    found: dict[str, Callable[[Path], bool]] = {"inspector": _ours}
    arguments = {"picklescan": ("-p",), "modelscan": ("-p",), "modelaudit": ("scan",)}
    for name, options in arguments.items():
        program = shutil.which(name, path=folder or None)
        if program:
            found[name] = _by_exit_code(program, *options)
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="", help="the folder with the other scanners' commands")
    asked = scanners(parser.parse_args().bin)
    names = {f"{number}.pkl": cases.calling(*pair) for number, pair in enumerate(cases.names().values())}
    groups = {"names": names, "files": cases.dangerous(), "ordinary": cases.quiet()}
    inert = {name: content for name, (content, _) in cases.inert().items()}
    print(f"{'':12}{''.join(name.rjust(12) for name in asked)}")
    failed = False
    for group, files in {**groups, "inert": inert}.items():
        told = dict.fromkeys(asked, 0)
        for file, content in files.items():
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder) / Path(file).name
                place.write_bytes(content)
                for name, ask in asked.items():
                    told[name] += ask(place)
        print(f"{group:12}{''.join(f'{n}/{len(files)}'.rjust(12) for n in told.values())}")
        failed |= told["inspector"] != (len(files) if group in ("names", "files") else 0)
    if failed:
        print("Ours calls something else than it must.", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
