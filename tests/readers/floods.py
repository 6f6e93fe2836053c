"""Files that try to take memory or time out of proportion: one builder per idea, each for a wanted size.

    python tests/readers/floods.py [--megabytes 30] [--only NAME]

prints what each takes, in a process of its own, beyond the bare package: the figures of docs/measurements.md.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from hostile import text, torch_zip

_P2 = b"\x80\x02"


def _u32(n: int) -> bytes:
    return n.to_bytes(4, "little")


def _repeated(piece: bytes, nbytes: int, *, before: bytes = b"", after: bytes = b"l.") -> bytes:
    return _P2 + before + b"(" + piece * max(1, nbytes // len(piece)) + after


def _numbered(piece: Callable[[int], bytes], nbytes: int, *, before: bytes = b"", after: bytes = b"l.") -> bytes:
    n = max(1, nbytes // len(piece(1_000_000)))
    return _P2 + before + b"(" + b"".join(map(piece, range(n))) + after


_STORAGE = b"ctorch\nFloatStorage\nq\x02" + text("storage") + b"q\x03" + text("cpu") + b"q\x04000"
_REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\nq\x000" + _STORAGE


def _persistent(key: str) -> bytes:
    return b"(h\x03h\x02" + text(key) + b"h\x04K\x01tQ"


def _tensor(key: str) -> bytes:
    return b"h\x00(" + _persistent(key) + b"K\x00))\x89NtR"


def _module(state: bytes) -> bytes:
    return b"cnet\nBlock\n)\x81" + state + b"b"


def _shared_state(nbytes: int) -> bytes:
    """One long state, given to as many objects as fit."""
    attributes = b"".join(text(f"a{i}") + b"K\x01" for i in range(nbytes // 24))
    state = b"}(" + attributes + b"u"
    return _repeated(b"cnet\nBlock\n)\x81h\x09b", nbytes // 2, before=state + b"q\x090")


def _shared_module_state(nbytes: int) -> bytes:
    attributes = b"".join(text(f"a{i}") + b"K\x01" for i in range(nbytes // 24))
    state = b"}(" + text("_parameters") + b"}" + text("_modules") + b"}" + attributes + b"u"
    children = b"".join(text(f"m{i}") + b"cnet\nBlock\n)\x81h\x09b" for i in range(nbytes // 2 // 32))
    root = b"}(" + text("_parameters") + b"}" + text("_modules") + b"}(" + children + b"uu"
    return _P2 + state + b"q\x090" + _module(root) + b"."


def _shared_attributes(nbytes: int) -> bytes:
    """One long _metadata for any number of mappings."""
    entries = b"".join(text(f"m{i}") + b"}" + text("version") + b"K\x01s" for i in range(nbytes // 60))
    return _repeated(b"}h\x09b", nbytes // 2, before=b"}" + text("_metadata") + b"}(" + entries + b"usq\x090")


def _under_a_long_key(nbytes: int) -> bytes:
    """Tensors below a key of a third of the file: every dotted name would be as long."""
    n = max(1, nbytes * 2 // 3 // 60)
    inner = b"".join(text(f"w{i}") + _tensor("0") for i in range(n))
    return _P2 + _REBUILD + b"}" + text("k" * (nbytes // 3)) + b"}(" + inner + b"us."


def _groups_under_a_long_key(nbytes: int) -> bytes:
    n = max(1, nbytes // 2 // 70)
    inner = b"".join(text(f"g{i}") + b"}" + text("w") + _tensor("0") + b"s" for i in range(n))
    return _P2 + _REBUILD + b"}" + text("k" * (nbytes // 3)) + b"}(" + inner + b"us."


def _optimizers(nbytes: int) -> bytes:
    n = max(1, nbytes // 100)
    one = b"}" + text("state") + b"}s" + text("param_groups") + b"]s"
    inner = b"".join(text(f"o{i}") + one + text("w") + _tensor("0") + b"s" for i in range(n))
    return _P2 + _REBUILD + b"}(" + inner + b"u."


def _doubling(nbytes: int) -> bytes:
    """Lists that hold the one before twice: 2**n paths."""
    n = nbytes // 16
    parts = [b"]r" + _u32(0)]
    parts += [b"](j" + _u32(i - 1) + b"j" + _u32(i - 1) + b"er" + _u32(i) for i in range(1, n)]
    return _P2 + b"".join(parts) + b"."


def _shared_submodules(nbytes: int) -> bytes:
    """Modules that hold the one before under two names."""
    data = [b"\x80\x02N0"]
    for i in range(max(2, nbytes // 70)):
        inner = b"}" if i == 0 else b"}" + b"".join(text(k) + b"j" + _u32(i - 1) + b"s" for k in "ab")
        state = b"}" + text("_parameters") + b"}s" + text("_modules") + inner + b"s"
        data.append(_module(state) + b"r" + _u32(i))
    return b"".join(data) + b"."


def _tensors(nbytes: int) -> bytes:
    n = nbytes // 60
    return _P2 + _REBUILD + b"}(" + b"".join(text(f"l{i}.w") + _tensor(str(i)) for i in range(n)) + b"u."


def _deep_names(nbytes: int) -> bytes:
    """Names of sixty segments, so that every tensor would need sixty modules."""
    n = nbytes // 250
    names = (f"{i}." + ".".join("abcdefgh"[j % 8] + "xyz"[:1] for j in range(60)) for i in range(n))
    return _P2 + _REBUILD + b"}(" + b"".join(text(name) + _tensor("0") for name in names) + b"u."


def _long_segments(nbytes: int) -> bytes:
    """Few names of long segments: the paths of the modules above would be thirty times as long as the name."""
    names = (f"{i}" + ".".join("s" * 1000 for _ in range(60)) for i in range(max(1, nbytes // 60_000)))
    return _P2 + _REBUILD + b"}(" + b"".join(text(name) + _tensor("0") for name in names) + b"u."


def _members(nbytes: int) -> bytes:
    """A directory of as many empty members as fit."""
    n = nbytes // 54
    entry = b"PK\x01\x02" + bytes(24) + struct.pack("<HHHHHII", 8, 0, 0, 0, 0, 0, 0)
    directory = b"".join(entry + b"%08x" % i for i in range(n))
    end64 = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, n, n, len(directory), 30)
    locator = b"PK\x06\x07" + struct.pack("<IQI", 0, 30 + len(directory), 1)
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return b"PK\x03\x04" + bytes(26) + directory + end64 + locator + end


def _same_members(nbytes: int) -> bytes:
    buffer = io.BytesIO()
    name = "a/" + "data.pkl"
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, _P2 + b"(" + b"]" * 200_000 + b"l.")
        for _ in range(20):
            archive.filelist.append(archive.filelist[0])
    return buffer.getvalue()


def _safetensors(header: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header


def _json(piece: str, nbytes: int, before: str = '{"a":[', after: str = "1]}") -> bytes:
    return _safetensors((before + piece * (nbytes // len(piece)) + after).encode())


def _json_tensors(nbytes: int) -> bytes:
    n = nbytes // 60
    entries = ",".join(f'"w{i}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}' for i in range(n))
    return _safetensors(("{" + entries + "}").encode())


def _json_bad(nbytes: int) -> bytes:
    return _safetensors(("{" + ",".join(f'"w{i}":0' for i in range(nbytes // 12)) + "}").encode())


def _json_metadata(nbytes: int) -> bytes:
    entries = ",".join(f'"{i}":""' for i in range(nbytes // 11))
    return _safetensors(('{"__metadata__":{' + entries + "}}").encode())


FLOODS: dict[str, Callable[[int], bytes]] = {
    "empty lists": lambda n: _repeated(b"]", n),
    "empty dicts": lambda n: _repeated(b"}", n),
    "empty sets": lambda n: _P2[:1] + b"\x04(" + b"\x8f" * n + b"l.",
    "empty tuples": lambda n: _repeated(b")", n),
    "marks": lambda n: _P2 + b"(" * n + b"l.",
    "None": lambda n: _repeated(b"N", n),
    "one-tuples": lambda n: _repeated(b"N\x85", n),
    "nested tuples": lambda n: _P2 + b"N" + b"\x85" * n + b".",
    "nested lists": lambda n: _P2 + b"(" * (n // 2) + b"l" * (n // 2) + b".",
    "two-byte integers": lambda n: _repeated(b"M\xff\xff", n),
    "long integers": lambda n: _P2 + b"(" + (b"\x8b" + _u32(n // 4) + b"\x7f" * (n // 4)) * 3 + b"l.",
    "short integers": lambda n: _repeated(b"\x8a\x01\x80", n),
    "floats": lambda n: _repeated(b"F1\n", n),
    "short texts": lambda n: _repeated(b"U\x02ab", n),
    "one long text": lambda n: _P2 + b"X" + _u32(n) + b"a" * n + b".",
    "wide text": lambda n: _P2 + b"X" + _u32(n) + b"\xf0\x9f\x98\x80" + b"a" * (n - 4) + b".",
    "text that is no UTF-8": lambda n: _P2 + b"X" + _u32(n) + b"\xff" * n + b".",
    "several wide texts": lambda n: (
        _P2 + b"(" + (b"X" + _u32(n // 4) + b"\xf0\x9f\x98\x80" + b"a" * (n // 4 - 4)) * 4 + b"l."
    ),
    "copies of a list": lambda n: _repeated(b"N2", n),
    "memo, dense": lambda n: _P2 + b"N" + b"".join(b"r" + _u32(i) for i in range(n // 5)) + b".",
    "memo, sparse": lambda n: _P2 + b"N" + b"".join(b"r" + _u32(7 * i + 9) for i in range(n // 5)) + b".",
    "memoize": lambda n: b"\x80\x04N" + b"\x94" * n + b".",
    "doubling lists": _doubling,
    "recalled lists": lambda n: _repeated(b"h\x00", n, before=b"]q\x00(" + b"N" * 1000 + b"e0]"),
    "appended lists": lambda n: _P2 + b"]q\x00(" + b"N" * (n // 2) + b"e" + b"(h\x00h\x00l0" * (n // 14) + b".",
    "copies by calls": lambda n: (
        _P2 + b"cbuiltins\nset\nq\x000](" + b"N" * (n // 2) + b"e\x85q\x010(" + b"h\x00h\x01R" * (n // 10) + b"l."
    ),
    "global names": lambda n: _numbered(lambda i: b"cm%07d\nf\n" % i, n),
    "long global names": lambda n: _numbered(lambda i: b"cm%07d%s\nf\n" % (i, b"x" * 900), n),
    "global of many steps": lambda n: _P2 + b"cos.path\n" + b".".join([b"a"] * 400) + b"\n.",
    "globals of many steps": lambda n: _numbered(lambda i: b"cm%d\n" % i + b".".join([b"a"] * 200) + b"\n", n),
    "calls": lambda n: _repeated(b"h\x00)R", n, before=b"cm\nf\nq\x000"),
    "calls with long arguments": lambda n: _repeated(
        b"h\x00h\x01R", n, before=b"cm\nf\nq\x000((((KKKtKKtKKtKKtq\x010".replace(b"K", b"U\x05aaaaa")
    ),
    "objects with a shared state": _shared_state,
    "modules with a shared state": _shared_module_state,
    "shared attributes": _shared_attributes,
    "shared submodules": _shared_submodules,
    "storages": lambda n: _numbered(lambda i: _persistent(f"{i:07d}"), n, before=_STORAGE),
    "foreign persistent ids": lambda n: _repeated(b"P\n", n),
    "tensors": _tensors,
    "tensors under a long key": _under_a_long_key,
    "groups under a long key": _groups_under_a_long_key,
    "optimizers": _optimizers,
    "names of sixty segments": _deep_names,
    "long segments": _long_segments,
    "dict of small keys": lambda n: (
        _P2 + b"}(" + b"".join(b"J" + _u32(i + 70_000) + b"N" for i in range(n // 6)) + b"u."
    ),
    "dict of None": lambda n: _P2 + b"}(" + b"N" * (n // 2 * 2) + b"u.",
    "one tuple": lambda n: _P2 + b"(" + b"N" * n + b"t.",
    "one list, appended": lambda n: _P2 + b"](" + b"N" * n + b"e.",
    "dict of texts": lambda n: _P2 + b"}(" + b"".join(b"U\x07%07dN" % i for i in range(n // 10)) + b"u.",
    "dict of tuples": lambda n: _P2 + b"}(" + b"N\x85N" * (n // 3) + b"u.",
    "deflate bomb": lambda n: torch_zip(_P2 + b"(" + b"N" * (n * 20) + b"l.", deflate=True),
    "deflate bomb of text": lambda n: torch_zip(_P2 + b"X" + _u32(n * 20) + b"a" * (n * 20) + b".", deflate=True),
    "zip members": _members,
    "one member many times": _same_members,
    "JSON lists": lambda n: _json("[],", n),
    "JSON nesting": lambda n: _json("[", n, after=""),
    "JSON objects": lambda n: _json("{},", n),
    "JSON numbers": lambda n: _json("1.5,", n),
    "JSON names": _json_bad,
    "JSON tensors": _json_tensors,
    "JSON metadata": _json_metadata,
    "JSON text": lambda n: _safetensors(b'{"__metadata__":{"a":"' + "é😀".encode() + b"a" * n + b'"}}'),
    "JSON spaces": lambda n: _safetensors(b'{"a"' + b" " * n + b":0}"),
}

_CHILD = """
import sys, time, json
from pathlib import Path
def peak():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1000
from inspector.errors import InspectorError
from inspector.readers import open_checkpoint
bare, start = peak(), time.process_time()
try:
    answer = str(len(open_checkpoint(sys.argv[1]).tensors)) + " tensors"
except InspectorError as error:
    answer = type(error).__name__
print(json.dumps({"seconds": time.process_time() - start, "megabytes": peak() - bare, "answer": answer}))
"""


def measure(data: bytes, folder: Path) -> dict[str, float | str]:
    """CPU seconds, peak megabytes beyond the bare package, and what came of it, in a process of its own."""
    path = folder / "flood"
    path.write_bytes(data)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", _CHILD, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=280)
    if done.returncode:
        raise AssertionError(done.stderr[-2000:])
    found: dict[str, float | str] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=30)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    print(f"{'flood':30} {'MB':>6} {'s':>7} {'peak MB':>8}  answer")
    with tempfile.TemporaryDirectory() as folder:
        for name, build in FLOODS.items():
            if arguments.only in name:
                data = build(int(arguments.megabytes * 1e6))
                found = measure(data, Path(folder))
                print(
                    f"{name:30} {len(data) / 1e6:6.1f} {found['seconds']:7.2f} {found['megabytes']:8.1f}  "
                    f"{found['answer']}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
