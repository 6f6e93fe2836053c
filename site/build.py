"""`make site`: the page as static files in site/dist, for any web server.

    npm ci --prefix site        once: CPython in WebAssembly, as site/package-lock.json pins it
    python site/build.py

Two folders carry a digest of their contents in their names: python-… (CPython and its library, which change seldom) and
page-… (ours). What is large lies there packed, and the page unpacks it: so it is small over any server's wire.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import io
import lzma
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "site"
DIST = SITE / "dist"
PYODIDE = SITE / "node_modules" / "pyodide"
sys.path.insert(0, str(ROOT))

from site_parts import closure  # noqa: E402

#: Of the standard library, what no part of ours imports: what talks to networks, terminals and debuggers, and tests.
LEFT_OUT = frozenset(
    """_pyrepl antigravity bdb cProfile colorsys ctypes doctest fileinput filecmp ftplib getopt getpass
    compileall idlelib imaplib mailbox modulefinder netrc nturl2path optparse pdb plistlib poplib
    profile pstats pty pyclbr pydoc pydoc_data sched shelve site-packages smtplib socketserver sqlite3
    _pydatetime _pyio tabnanny this timeit trace tty unittest wave webbrowser wsgiref xml xmlrpc zipapp zoneinfo
    """.split()
)
_FILES_LEFT_OUT = frozenset(
    """http/server.py http/cookiejar.py http/cookies.py logging/config.py logging/handlers.py asyncio/__main__.py
    asyncio/windows_events.py asyncio/windows_utils.py asyncio/tools.py pyodide/console.py""".split()
)
#: Text encodings that files of this trade are written in, and those that Python itself needs.
ENCODINGS = re.compile(
    r"(__init__|aliases|ascii|utf_.*|latin_1|iso8859_1|cp437|cp1252|charmap|idna|punycode|unicode_escape|"
    r"raw_unicode_escape|undefined|hex_codec|base64_codec|zlib_codec|mbcs|_win_cp_codecs)\.py"
)


def main() -> None:
    if not PYODIDE.is_dir():
        raise SystemExit("Pyodide is not here yet: npm ci --prefix site")
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        _stage_library(work / "stdlib")
        _stage_package(work / "package")
        for name in ("stdlib", "package"):
            (work / f"{name}.zip").write_bytes(_zip(work / name))
        subprocess.run(["node", str(SITE / "compile.mjs"), str(PYODIDE), folder], check=True)
        python = _folder("python", _python_files((work / "stdlib.zip").read_bytes()))
        page = _folder("page", _page_files(python, (work / "package.zip").read_bytes()))
    _top_files(python, page)
    _digests()
    print(_summary())


def _stage_library(into: Path) -> None:
    """The standard library less what is never imported."""
    with zipfile.ZipFile(PYODIDE / "python_stdlib.zip") as archive:
        for name in archive.namelist():
            first = name.split("/")[0].removesuffix(".py")
            encoding = name.startswith("encodings/") and not ENCODINGS.fullmatch(name.removeprefix("encodings/"))
            if first not in LEFT_OUT and name not in _FILES_LEFT_OUT and not encoding and name.endswith(".py"):
                archive.extract(name, into)


def _stage_package(into: Path) -> None:
    """Ours, as far as the page asks for it; the stand-in for NumPy; PyYAML, which is Python alone."""
    import yaml

    for path in closure(ROOT):
        _copy(path, into / path.relative_to(ROOT))
    for path in sorted((ROOT / "inspector" / "architectures" / "data").glob("*.gz")):
        _copy(path, into / path.relative_to(ROOT))
    for path in sorted((SITE / "python").rglob("*.py")):
        _copy(path, into / path.relative_to(SITE / "python"))
    source = Path(yaml.__file__).parent
    for path in sorted(source.glob("*.py")):
        _copy(path, into / "yaml" / path.name)
    # Its version is what the reports say they were written by.
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    metadata = into / "model_inspector-site.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"Metadata-Version: 2.1\nName: model-inspector\nVersion: {version[1] if version else '0'}\n")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _bare(text: str) -> str:
    """Source without comments and docstrings, which nobody reads there and which are half of it."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # Newer than the Python that builds.
        return text
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or not node.body:
            continue
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            node.body[:1] = [] if len(node.body) > 1 else [ast.Pass()]
    return ast.unparse(tree) + "\n"


def _zip(folder: Path) -> bytes:
    """A zip without compression, and the same always: it is packed as a whole, which is smaller."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                data = path.read_bytes()
                # Pyodide takes what it says of itself from its docstrings.
                whole = path.suffix != ".py" or path.relative_to(folder).parts[0] in ("pyodide", "_pyodide")
                data = data if whole else _bare(data.decode()).encode()
                archive.writestr(zipfile.ZipInfo(path.relative_to(folder).as_posix(), (1980, 1, 1, 0, 0, 0)), data)
    return held.getvalue()


def _packed(data: bytes) -> bytes:
    return gzip.compress(data, 9, mtime=0)


def _python_files(library: bytes) -> Iterator[tuple[str, bytes]]:
    for name in ("pyodide.mjs", "pyodide.asm.mjs"):
        text = (PYODIDE / name).read_bytes()
        # Maps of the sources are not served.
        yield name, re.sub(rb"//# sourceMappingURL=\S+\s*$", b"", text)
    # No server takes this ending for something to unpack on the way.
    yield "pyodide.asm.wasm.packed", _packed((PYODIDE / "pyodide.asm.wasm").read_bytes())
    yield "stdlib.zip.packed", _packed(library)
    yield "LICENCES.txt", (SITE / "LICENCES.txt").read_bytes()


def _page_files(python: str, package: bytes) -> Iterator[tuple[str, bytes]]:
    for path in sorted((SITE / "page").iterdir()):
        if path.name not in _TOP:
            yield path.name, path.read_bytes()
    # The app's drawing, by its own scripts.
    static = ROOT / "inspector" / "web" / "static"
    for path in sorted([*static.glob("drawing/*"), *static.glob("drawing.*"), *static.glob("vendor/dagre*")]):
        if path.name != "drawing.js":
            yield path.relative_to(static).as_posix(), path.read_bytes()
    from inspector.render.page_report.style import STYLE

    yield "report.css", STYLE.strip().encode() + b"\n"
    places = f'export const PYTHON = new URL("../{python}/", import.meta.url).href;\n'
    yield "places.js", f"{places}export const PACKAGE_NBYTES = {len(package)};\n".encode()
    # Python unpacks it itself, and so it may be packed better than what browsers unpack.
    yield (
        "package.xz.packed",
        lzma.compress(package, filters=[{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 4 << 20}]),
    )


_TOP = ("index.html", "sw.js", "manifest.webmanifest", "icon.svg", "icon-192.png", "icon-512.png")


def _folder(kind: str, files: Iterator[tuple[str, bytes]]) -> str:
    """A folder named by what is in it."""
    held = dict(files)
    digest = hashlib.sha256()
    for name, data in sorted(held.items()):
        digest.update(name.encode() + b"\0" + hashlib.sha256(data).digest())
    folder = f"{kind}-{digest.hexdigest()[:12]}"
    (DIST / folder).mkdir()
    for name, data in held.items():
        target = DIST / folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder


def _top_files(python: str, page: str) -> None:
    paths = [path for folder in (python, page) for path in sorted((DIST / folder).rglob("*")) if path.is_file()]
    kept = [path.relative_to(DIST).as_posix() for path in paths]
    listed = ",\n".join(f'  "{name}"' for name in ("./", "manifest.webmanifest", "icon.svg", *kept))
    for name in _TOP:
        data = (SITE / "page" / name).read_bytes()
        if name.endswith((".html", ".js", ".webmanifest")):
            data = data.replace(b"{{page}}", page.encode()).replace(b"/* {{files}} */", listed.encode())
            data = data.replace(b"{{version}}", f"{python} {page}".encode())
        (DIST / name).write_bytes(data)


def _digests() -> None:
    """What this site is, for whoever holds it against another copy."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(DIST).as_posix()}\n"
        for path in sorted(DIST.rglob("*"))
        if path.is_file()
    ]
    target = DIST / ".well-known" / "model-inspector.sha256"
    target.parent.mkdir()
    target.write_text("".join(lines))


def squeezed_nbytes(files: Iterable[Path]) -> int:
    """What goes over the wire where a server gzips text."""
    return sum(path.stat().st_size if path.suffix == ".packed" else len(_packed(path.read_bytes())) for path in files)


def _summary() -> str:
    files = [path for path in DIST.rglob("*") if path.is_file()]
    plain = sum(path.stat().st_size for path in files)
    sizes = f"{plain / 1e6:.2f} MB as they lie, {squeezed_nbytes(files) / 1e6:.2f} MB where a server gzips text"
    return f"site/dist: {len(files)} files, {sizes}"


if __name__ == "__main__":
    main()
