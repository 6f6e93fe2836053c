"""What a person names beside a checkpoint: read whole up to a limit, from regular files, by one reader."""

from __future__ import annotations

import ast
import io
import os
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector import open_checkpoint
from inspector.architectures.targets import parse_target
from inspector.architectures.user_code import check_source, parse_factory
from inspector.cam.inputs.picture import open_picture
from inspector.checkpoint.source import PathSource
from inspector.cli.explaining import names_of
from inspector.cli.main import run
from inspector.errors import InspectorError, LimitExceeded, ReadError, UsageError
from inspector.exports.adapter import read_adapter_config
from inspector.limits import DEFAULT_LIMITS
from inspector.side_files import PathKind, kind_of_path, read_bytes, read_text
from tests.house_parsed import in_one_worker, tree_of

ROOT = Path(__file__).resolve().parents[1]

READERS: dict[str, Callable[[Path], object]] = {
    "bytes": read_bytes,
    "keys": lambda path: read_keys(str(path)),
    "class names": lambda path: names_of(str(path)),
    "picture": open_picture,
    "source": lambda path: PathSource(path),
    "checkpoint": open_checkpoint,
    "model code": lambda path: check_source(parse_factory(f"code:{path.name}:build"), path.parent),
    "adapter config": lambda path: read_adapter_config(path.parent / "adapter_model.safetensors"),
}


def read_keys(path: str) -> tuple[str, ...]:
    return tuple(tensor.name for tensor in parse_target(f"keys:{path}").tensors)


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    # A path of a socket has some 100 characters at most.
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "x.bin").write_bytes(b"x")


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _unending(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices as files")
@pytest.mark.parametrize("make", [_fifo, _socket, _device, _folder, _loop, _unending])
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_small_regular_file_is_refused_at_once(
    tmp_path: Path, make: Callable[[Path], None], reader: str
) -> None:
    path = tmp_path / ("adapter_config.json" if reader == "adapter config" else "model.py")
    make(path)
    if make is _unending and reader == "source":
        assert PathSource(path).size == 1 << 40
        return
    with pytest.raises(InspectorError) as error:
        READERS[reader](path)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("name", ["x" * 5000, "/".join(["y" * 200] * 25), "a\x00b", "", "none.txt", "there/none.txt"])
@pytest.mark.parametrize("reader", [name for name in READERS if name not in ("adapter config", "model code")])
def test_a_name_that_no_file_has_is_a_sentence(tmp_path: Path, name: str, reader: str) -> None:
    (tmp_path / "there").write_bytes(b"")
    path = os.path.join(tmp_path, name) if name else ""  # noqa: PTH118 Path("") would be a folder
    with pytest.raises(ReadError) as error:
        READERS[reader](path)  # type: ignore[arg-type]
    assert len(str(error.value)) < 300


def test_the_limit_is_one_and_counts_what_comes_not_what_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 100)
    assert read_bytes(path, most_nbytes=100) == b"x" * 100
    with pytest.raises(LimitExceeded, match=r"a\.txt is too long: 100 bytes; such files are read up to 99"):
        read_bytes(path, most_nbytes=99)
    assert DEFAULT_LIMITS.side_nbytes == 64 * 1024 * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_file_that_says_no_length_is_read_and_bounded() -> None:
    assert kind_of_path("/proc/self/status") is PathKind.FILE
    assert b"Name:" in read_bytes("/proc/self/status")
    with pytest.raises(LimitExceeded, match="more than 10 bytes"):
        read_bytes("/proc/self/status", most_nbytes=10)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="/dev/fd")
def test_what_a_shell_hands_over_is_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    threading.Thread(target=lambda: (os.write(writing, b"a\nb\n"), os.close(writing))).start()
    try:
        assert read_keys(f"/dev/fd/{reading}") == ("a", "b")
    finally:
        os.close(reading)
    with pytest.raises(ReadError, match="987654 cannot be read: Bad file descriptor"):
        read_bytes("/dev/fd/987654")


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input_is_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\n")))
    assert read_keys(name) == ("a", "b")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x" * 20)))
    with pytest.raises(LimitExceeded, match="Standard input is too long"):
        read_bytes(name, most_nbytes=10)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ReadError, match="Standard input is closed"):
        read_bytes(name)


def test_texts_of_windows_are_texts_and_binary_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        path.write_bytes("fc.weight\r\nfc.bias\r\n".encode(encoding))
        assert read_keys(str(path)) == ("fc.weight", "fc.bias")
    for content in (b"a\x00b", b"\xff\xfea", "schön".encode("latin-1")):
        path.write_bytes(content)
        with pytest.raises(ReadError, match="is no text file, so it is no poem"):
            read_text(path, "poem")


def test_a_list_of_keys_is_bounded_and_its_doubles_are_found_in_time(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    path.write_text("".join(f"layer{n}\n" for n in range(DEFAULT_LIMITS.tensors + 1)))
    with pytest.raises(LimitExceeded, match="lists more than 300,000 keys"):
        read_keys(str(path))
    path.write_text("".join(f"layer{n}\n" for n in range(200_000)) + "layer199999\n")
    with pytest.raises(UsageError, match='lists "layer199999" more than once'):
        read_keys(str(path))


def test_a_file_that_was_exchanged_is_not_read_on(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"one and two")
    source = PathSource(path)
    source.close()
    assert source.read(0, 3) == b"one"
    source.close()
    path.write_bytes(b"other")
    with pytest.raises(ReadError, match=r"a\.bin has changed since it was opened"):
        source.read(0, 3)


@pytest.mark.parametrize("address", ["https://[", "http://", "https://[::1/x.pth", "http:///x"])
def test_an_address_that_is_none_is_a_sentence(address: str) -> None:
    with pytest.raises(ReadError, match="is no web address"):
        open_checkpoint(address)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes")
@pytest.mark.parametrize(
    "arguments",
    [
        ["open", "HERE"],
        ["identify", "HERE"],
        ["stats", "HERE"],
        ["scan", "HERE"],
        ["flops", "HERE"],
        ["flops", "file:HERE"],
        ["diagnose", "HERE"],
        ["diagnose", "a.pth", "--target", "keys:HERE"],
        ["diagnose", "a.pth", "--target", "file:HERE"],
        ["convert", "HERE", "-o", "out.pth"],
        ["repair", "HERE", "-o", "out.pth"],
        ["merge", "HERE", "HERE", "-o", "out.pth"],
        ["explain-error", "HERE"],
        ["explain", "HERE", "HERE"],
    ],
)
@pytest.mark.parametrize("name", ["fifo", "/dev/zero", "x" * 5000, ""])
def test_commands_say_so_in_a_line_and_leave_with_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    name: str,
) -> None:
    import torch

    monkeypatch.chdir(tmp_path)
    torch.save({"a": torch.ones(2)}, "a.pth")
    os.mkfifo("fifo")
    assert run([word.replace("HERE", name) for word in arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.strip().splitlines()) == 1 and len(told.err) < 400
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.pth", "fifo"]


# Calls that read or open, by where they may stand: what is ours, what a library of ours wants, what is no path.
_READING = {
    "read_text", "read_bytes", "open", "fdopen", "load", "load_file", "safe_open", "fromfile", "memmap", "urlopen",
}  # fmt: skip
_OURS = {
    "side_files.py": "the reader",
    "new_files.py": "files that we write",
    "survey/swept.py": "a bucket's or the hub's files, by their addresses",
    "sweep/blobs.py": "a store that we wrote, in a folder of its own",
    "sweep/piece.py": "the code of this package",
    "sweep/run.py": "results of a store",
    "lint/audit.py": "results of a store",
    "catalogue/parts.py": "parts that we wrote, in a folder of their own",
    "catalogue/update.py": "lines that we write on their way into a part",
    "cli/query.py": "a file that we write",
    "readers/hub/opening.py": "a repository's files, by their addresses",
    "readers/bucket.py": "objects of a bucket, by ranges",
    "remote/download.py": "what is fetched, into the store's own place",
    "architectures/store.py": "the index of the package",
    "architectures/code_runner.py": "runs in the person's own process",
    "architectures/code_trial.py": "what that process left in a folder of ours",
    "exports/training.py": "the file just written",
    "exports/reading_back.py": "the file just written",
    "exports/writers/pth.py": "the file just written",
    "exports/writers/pth_legacy.py": "the file just written",
    "exports/writers/safetensors_file.py": "the file just written",
    "exports/writers/torch_zip.py": "the file just written",
    "cli/ending.py": "standard streams",
    "cli/check_output.py": "what the runner of a workflow collects",
    "jobs/broker.py": "its own pipes",
    "jobs/results.py": "results of our own workers",
    "jobs/settings.py": "what the system tells of its memory",
    "jobs/walls.py": "what the system tells of our processes",
    "textconv.py": "the null device, where nobody reads the output",
    "web/samples.py": "the samples of the checkout",
    "web/store.py": "the store's own records",
    "web/store_lock.py": "the store's own lock",
    "web/store_shared.py": "the store's own locks",
    "web/records.py": "the store's own records",
    "web/front/probes.py": "what the system tells of this process",
    "web/front/index_page.py": "a script of ours",
    "web/front/visitors.py": "a secret of ours in the store",
    "web/front/headers.py": "the page that Streamlit comes with",
    "cam/inputs/sample_classes.py": "the samples and their manifest",
    "web/components.py": "style sheets of the package",
    "web/address_line.py": "a script of ours",
    "web/dropzone.py": "scripts of the package",
    "web/explain/sprites.py": "scripts of the package",
    "web/drawing.py": "scripts of the package",
    "web/charts.py": "scripts of the package",
    "web/copy_link.py": "scripts of the package",
    "web/explain/address.py": "scripts of the package",
    "web/static_files.py": "scripts of the package",
    "web/explain/several.py": "sample pictures",
    "web/explain/pictures.py": "sample pictures",
    "web/projector_pictures.py": "sample pictures",
    "cli/project.py": "a file that we write",
}
_NO_PATHS = {
    ("architectures/user_code.py", "(files('inspector.architectures') / 'code_runner.py').read_text"),
    ("cam/inputs/picture.py", "Image.open"),  # on bytes
    ("cam/inputs/picture.py", "picture.load"),
    ("cam/inputs/large.py", "Image.open"),  # on what open_file gave
    ("cam/inputs/large.py", "picture.load"),
    ("cam/inputs/orientation.py", "picture.load"),
    ("cam/inputs/png_rows.py", "exif.load"),  # of bytes
    ("keys/apply.py", "load"),  # a tensor
    ("survey/copies.py", "files.open"),  # an archive that is open already, by its source
    ("survey/copies.py", "held.open"),  # a member of it
    ("cli/explain.py", "load"),  # a checkpoint, by open_file
    ("cli/events.py", "temporary.open"),  # written
    ("events/write.py", "temporary.open"),  # written
    ("cli/series.py", "load"),
    ("evaluate/labels.py", "place.open"),  # the reader's folders and archives
    ("cam/sweeping/held.py", "self.files.open"),  # the same
    ("evaluate/parts.py", "store.load"),  # results of a store
    ("readers/hub/folder.py", "self._ahead.open"),  # a file of the hub
    ("readers/listed_folder.py", "listed[path].open"),  # a file at an address or in a bucket
    ("readers/listed_folder.py", "self._ahead.open"),  # the same
    ("readers/indexed.py", "self.index.open"),  # the same
    ("readers/indexed.py", "index.open"),  # the same
}


@in_one_worker
def test_no_other_place_reads_a_file_by_its_path() -> None:
    found = set()
    package = ROOT / "inspector"
    for path in [*ROOT.glob("*.py"), *(ROOT / "pages").glob("*.py"), *package.rglob("*.py")]:
        place = path.relative_to(package if path.is_relative_to(package) else ROOT).as_posix()
        tree = tree_of(path)
        reader = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("inspector.")
            for alias in node.names
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            call = node.func
            name = call.id if isinstance(call, ast.Name) else call.attr if isinstance(call, ast.Attribute) else ""
            if name not in _READING or (isinstance(call, ast.Name) and name in reader - {"load"}):
                continue
            said = ast.unparse(call)
            # Folders of checkpoints, tables and machines of ours have such methods too.
            if said.endswith(("folder.open", "inside.open", "self.open", "rows.load", "self.load")) or place in _OURS:
                continue
            if (place, said) not in _NO_PATHS:
                found.add(f"{place}:{node.lineno} {said}")
    assert not found
