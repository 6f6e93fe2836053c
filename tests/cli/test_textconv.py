"""textconv alone, and in real git: diff, log -p and show over versions of a file, plain and through a filter."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.cli.main import run
from inspector.textconv import text_lines
from tests.compare.files import write

ROOT = Path(__file__).resolve().parents[2]
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
VERSIONS = 5


def lines(path: Path) -> list[str]:
    return list(text_lines(str(path)))


def test_a_line_per_tensor_sorted(tmp_path: Path) -> None:
    w = np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)
    path = write(
        tmp_path / "a.safetensors",
        {"z": w, "a": np.float64(-2), "n": np.array([1, np.nan], np.float32)},
        {"epoch": "3"},
    )
    digest = hashlib.sha256(w.tobytes()).hexdigest()[:8]
    head, epoch, *tensors = lines(path)
    assert (head, epoch) == ("# safetensors file", "# epoch: 3")
    assert tensors[2] == f"z float32 2x2 {digest} 2.5"
    assert tensors[0].startswith("a float64 scalar ")
    assert tensors[0].endswith(" 2")
    assert tensors[1].endswith(" 1 1 not finite")


def test_containers_do_not_show_and_state_dicts_stay_apart(tmp_path: Path) -> None:
    weight = torch.arange(6.0)
    torch.save({"model": {"w": weight}, "ema": {"w": weight}}, tmp_path / "a.pth")
    write(tmp_path / "b.safetensors", {"model.w": weight.numpy(), "ema.w": weight.numpy()})
    one, two = ([x for x in lines(tmp_path / n) if not x.startswith("#")] for n in ("a.pth", "b.safetensors"))
    assert one == two
    assert [line.split()[0] for line in one] == ["ema.w", "model.w"]


def test_names_stay_one_word_of_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.safetensors", {"a b\nc\x1b": np.ones(1), "ü": np.ones(1)}, {"k\n": "v\x1b"})
    _, metadata, *tensors = lines(path)
    assert metadata == "# k\\n: v\\x1b"
    assert tensors[0].startswith("a\\x20b\\nc\\x1b float64 1 ")
    assert tensors[1].startswith("ü float64 1 ")


def test_a_pointer_names_content_and_size(tmp_path: Path) -> None:
    oid = "ab" * 32
    path = tmp_path / "a.safetensors"
    path.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 12345\n")
    assert lines(path) == ["# Git LFS pointer: the file itself is not here", f"oid sha256:{oid}", "size 12345"]


@pytest.mark.parametrize("content", [b"", b"words", b"\x80\x02.", b"PK\x03\x04", b"\x00" * 100, b"GGUF"])
def test_it_never_fails(tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "random_name_8123"
    path.write_bytes(content)
    assert run(["textconv", str(path)]) == 0
    out = capsys.readouterr().out
    assert out
    assert "random_name" not in out
    assert run(["textconv", str(tmp_path / "nowhere")]) == 0


def test_a_cut_file_keeps_what_is_whole(tmp_path: Path) -> None:
    path = write(tmp_path / "a.safetensors", {"a": np.ones(3), "b": np.ones(300)})
    path.write_bytes(path.read_bytes()[:-8])
    _, a, b = lines(path)
    assert a.startswith("a float64 3 ")
    assert b == "b float64 300 unreadable -"


def test_neither_torch_nor_the_command_line_is_loaded(tmp_path: Path) -> None:
    path = write(tmp_path / "a.safetensors", {"a": np.ones(3)})
    code = (
        f"import sys\nsys.argv = ['inspector', 'textconv', {str(path)!r}]\nimport inspector.__main__ as m\n"
        "try:\n    m.main()\nexcept SystemExit as end:\n"
        "    print(end.code, {'torch', 'typer', 'rich'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.splitlines()[-1] == "0 set()"


def git(folder: Path, *words: str, home: Path | None = None) -> str:
    environment = {
        **os.environ,
        "HOME": str(home or folder), "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b.c",
        "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b.c", "PYTHONPATH": str(ROOT),
        "GIT_CONFIG_GLOBAL": str((home or folder) / ".gitconfig"), "GIT_PAGER": "cat",
    }  # fmt: skip
    done = subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def documented() -> tuple[str, str]:
    """What docs/git.md tells to write: the lines for .gitattributes and for the configuration."""
    page = (ROOT / "docs" / "git.md").read_text(encoding="utf-8")
    blocks = page.split("```")
    attributes = next(b for b in blocks if "diff=inspector" in b)
    configuration = next(b for b in blocks if '[diff "inspector"]' in b)
    return attributes.partition("\n")[2], configuration.partition("\n")[2]


def repository(folder: Path, home: Path, *, filtered: bool) -> Path:
    """Five versions of one file; the last one is named after nothing that changed but metadata."""
    home.mkdir()
    attributes, configuration = documented()
    if not filtered:
        attributes = attributes.replace(" filter=lfs", "")
    configuration = configuration.replace("inspector textconv", f"'{sys.executable}' -m inspector textconv")
    store = home / "store"
    store.mkdir()
    (home / "clean.sh").write_text(
        f'd=$(mktemp "{store}/XXXXXX"); cat > "$d"; s=$(sha256sum < "$d" | cut -d" " -f1); n=$(wc -c < "$d"); '
        f'mv "$d" "{store}/$s"; printf "version https://git-lfs.github.com/spec/v1\\n"; '
        f'printf "oid sha256:%s\\nsize %s\\n" $s $n\n'
    )
    (home / "smudge.sh").write_text(
        f'p=$(cat); if [ -n "$GIT_LFS_SKIP_SMUDGE" ]; then printf "%s\\n" "$p"; else '
        f'cat "{store}/$(printf "%s" "$p" | sed -n "s/^oid sha256://p")"; fi\n'
    )
    (home / ".gitconfig").write_text(
        f"{configuration}\n[filter \"lfs\"]\n\tclean = sh '{home}/clean.sh'\n\tsmudge = sh '{home}/smudge.sh'\n"
        "\trequired = true\n"
    )
    folder.mkdir()
    git(folder, "init", "-q", home=home)
    (folder / ".gitattributes").write_text(attributes)
    rng = np.random.default_rng(0)
    arrays: dict[str, object] = {"conv.weight": rng.standard_normal((4, 3)), "fc.weight": rng.standard_normal(5)}
    for number in range(VERSIONS):
        if number in (1, 2):
            arrays["fc.weight"] = np.asarray(arrays["fc.weight"]) + 1
        if number == 3:
            arrays["head.bias"] = np.zeros(2)
        write(folder / "model.safetensors", arrays, {"epoch": str(number)})
        git(folder, "add", "-A", home=home)
        git(folder, "commit", "-qm", f"version {number}", home=home)
    return folder


@needs_git
@pytest.mark.parametrize("filtered", [False, True], ids=["plain", "filter"])
def test_in_git(tmp_path: Path, filtered: bool) -> None:
    home = tmp_path / "home"
    folder = repository(tmp_path / "repository", home, filtered=filtered)

    def changed(text: str) -> list[str]:
        return [x.split()[0] for x in text.splitlines() if x[:1] in ("+", "-") and x[:3] not in ("+++", "---")]

    between = git(folder, "diff", "HEAD~4", "HEAD~3", home=home)
    assert changed(between) == ["-#", "+#", "-fc.weight", "+fc.weight"]
    assert "-# epoch: 0" in between
    assert changed(git(folder, "show", "HEAD~1", home=home)) == ["-#", "+#", "+head.bias"]
    assert changed(git(folder, "show", "HEAD", home=home)) == ["-#", "+#"]
    log = git(folder, "log", "-p", "--", "model.safetensors", home=home)
    assert log.count("\n+fc.weight float64") == 3  # Two changes, and the first version as a whole.
    (folder / "model.safetensors").write_bytes(b"broken")
    assert "+# not read:" in git(folder, "diff", home=home)
    notes = git(folder, "for-each-ref", "refs/notes/textconv", home=home)
    assert "refs/notes/textconv/inspector" in notes
    again = git(folder, "diff", "HEAD~4", "HEAD~3", home=home)
    assert again == between


@needs_git
def test_in_git_with_pointers_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    folder = repository(tmp_path / "repository", home, filtered=True)
    monkeypatch.setenv("GIT_LFS_SKIP_SMUDGE", "1")
    git(folder, "update-ref", "-d", "refs/notes/textconv/inspector", home=home)
    text = git(folder, "diff", "HEAD~2", "HEAD~1", home=home)
    assert "\n-oid sha256:" in text
    assert "\n+oid sha256:" in text
    assert "\n+size " in text
