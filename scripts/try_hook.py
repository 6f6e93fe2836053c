"""Runs the hooks of this checkout by real pre-commit, on a repository made for it, and measures their installation.

python scripts/try_hook.py [PRE_COMMIT]     needs git, pre-commit and a package registry

The repository holds a healthy file, one with a NaN, a Git LFS pointer and a file called -x.safetensors. Both hooks must
pass without the sick file, and only the one that reads numbers must stop it. What is not committed here is not tried.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 46830571\n"
HEADER = b'{"fc.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}'


def _file(path: Path, second: float) -> None:
    path.write_bytes(struct.pack("<Q", len(HEADER)) + HEADER + struct.pack("<4f", 0.1, second, 0.3, 0.4))


def _git(folder: Path, *words: str) -> str:
    made = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
    return made.stdout.strip()


def main(arguments: list[str]) -> int:
    """Print what was measured; 1 where a hook did otherwise than it should."""
    program = arguments[0] if arguments else "pre-commit"
    with tempfile.TemporaryDirectory() as scratch:
        folder, home = Path(scratch) / "repository", Path(scratch) / "home"
        folder.mkdir()
        environment = {**os.environ, "PRE_COMMIT_HOME": str(home)}
        environment.pop("PYTHONPATH", None)
        _git(folder, "init", "--quiet")
        (folder / "pointer.pth").write_text(POINTER)
        _file(folder / "healthy.safetensors", 0.2)
        _file(folder / "-x.safetensors", 0.2)
        (folder / ".pre-commit-config.yaml").write_text(
            f"repos:\n  - repo: {ROOT}\n    rev: {_git(ROOT, 'rev-parse', 'HEAD')}\n"
            "    hooks: [{id: model-inspector}, {id: model-inspector-weights}]\n"
        )
        _git(folder, "add", "--all")
        began = time.monotonic()
        subprocess.run([program, "install-hooks"], cwd=folder, env=environment, check=True)
        nbytes = sum(path.lstat().st_size for path in home.rglob("py_env*/**/*") if not path.is_dir())
        print(f"Installed in {time.monotonic() - began:.0f} s: {nbytes / 1e6:.0f} MB.")

        def passes(hook: str) -> bool:
            command = [program, "run", hook, "--all-files"]
            return subprocess.run(command, cwd=folder, env=environment).returncode == 0

        healthy = [passes("model-inspector"), passes("model-inspector-weights")]
        _file(folder / "sick.safetensors", float("nan"))
        _git(folder, "add", "--all")
        sick = [passes("model-inspector"), passes("model-inspector-weights")]
    right = (healthy, sick) == ([True, True], [True, False])
    print("As it should be." if right else f"Not as it should be: {healthy}, {sick}.")
    return int(not right)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
