// Compiles ahead what the page's Python would compile at each visit: node compile.mjs PYODIDE WORK
//
// WORK holds stdlib.zip and package.zip, which are written anew. Compiled is what a first file needs, and the rooms that
// any next one may: all of it would be more than a first visit is meant to fetch. Only Pyodide's own Python can do it.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [pyodide, work] = process.argv.slice(2).map((one) => path.resolve(one));
const { loadPyodide } = await import(pathToFileURL(path.join(pyodide, "pyodide.mjs")).href);
const python = await loadPyodide({ indexURL: `${pyodide}/`, stdLibURL: path.join(work, "stdlib.zip") });
python.FS.writeFile("/lib/package.zip", fs.readFileSync(path.join(work, "package.zip")));
python.FS.writeFile("/stdlib.zip", fs.readFileSync(path.join(work, "stdlib.zip")));
python.runPython(`
import json, sys, zipfile
from importlib._bootstrap_external import _code_to_hash_pyc

sys.path.insert(0, "/lib/package.zip")
from inspector.browser.session import Session

ROOMS = ("readers", "keys", "exports", "compare", "graph", "browser")
WHEN = (1980, 1, 1, 0, 0, 0)

def question(session, **asked):
    answer = json.loads(session.answer(json.dumps(asked)))
    assert answer["ok"], answer

def first_file():
    names = {"module.fc.weight": ([2, 2], [0, 16]), "module.fc.bias": ([2], [16, 24])}
    header = {name: {"dtype": "F32", "shape": shape, "data_offsets": place} for name, (shape, place) in names.items()}
    text = json.dumps(header).encode()
    with open("/first.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + bytes(24))
    session = Session()
    for ask in ("open", "contents", "tensors", "architecture", "repair"):
        question(session, ask=ask, path="/first.safetensors")

def bare(code):
    # Lines are told of nothing on the page, and are a quarter of it.
    inner = tuple(bare(one) if hasattr(one, "co_code") else one for one in code.co_consts)
    return code.replace(co_linetable=b"", co_filename="", co_consts=inner)

def compiled(path, loaded):
    with zipfile.ZipFile(path) as source:
        held = [(name, source.read(name)) for name in source.namelist()]
    with zipfile.ZipFile(path, "w") as target:
        for name, data in held:
            if name.endswith(".py") and loaded(name):
                code = bare(compile(data, name, "exec", dont_inherit=True, optimize=0))
                name, data = name + "c", bytes(_code_to_hash_pyc(code, bytes(8), False))
            target.writestr(zipfile.ZipInfo(name, WHEN), data)

first_file()
origins = {getattr(module.__spec__, "origin", None) or "" for module in list(sys.modules.values()) if hasattr(module, "__spec__")}
standard = {origin.partition("314.zip/")[2] for origin in origins}
ours = {origin.removeprefix("/lib/package.zip/") for origin in origins}
rooms = tuple(f"inspector/{room}/" for room in ROOMS)
assert "json/__init__.py" in standard and "inspector/overview.py" in ours
compiled("/stdlib.zip", lambda name: name in standard)
compiled("/lib/package.zip", lambda name: name in ours or name.startswith(rooms))
`);
for (const [place, name] of [["/stdlib.zip", "stdlib.zip"], ["/lib/package.zip", "package.zip"]]) {
  fs.writeFileSync(path.join(work, name), python.FS.readFile(place));
}
