// The page's Python, as site/build.py packed it, in Node: node page.mjs DIST WORK [WRITTEN] < questions > answers
//
// WORK is mounted as /work, WRITTEN as /written. Questions and answers are lines of JSON, as inspector/browser/session.py has them.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import zlib from "node:zlib";

// Before Pyodide starts, which makes of standard input one that does not wait.
const asked = fs.readFileSync(0, "utf8").split("\n");
// What Pyodide itself prints when its stack ends is no answer, and may come in the middle of one: all are given at the end.
const answers = [];
const say = (line) => answers.push(line);
console.log = console.error;
const [dist, work, written] = process.argv.slice(2).map((one) => path.resolve(one));
const folder = (kind) => path.join(dist, fs.readdirSync(dist).find((name) => name.startsWith(`${kind}-`)));
const python = folder("python");
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "page-"));
try {
  for (const name of fs.readdirSync(python)) {
    const data = fs.readFileSync(path.join(python, name));
    const packed = name.endsWith(".packed");
    fs.writeFileSync(path.join(scratch, name.replace(/\.packed$/, "")), packed ? zlib.gunzipSync(data) : data);
  }
  const { countOf } = await import(pathToFileURL(path.join(folder("page"), "numbers.mjs")).href);
  const { loadPyodide } = await import(pathToFileURL(path.join(scratch, "pyodide.mjs")).href);
  const ours = fs.readFileSync(path.join(folder("page"), "package.xz.packed"));
  const start = async () => {
    const made = await loadPyodide({
      indexURL: scratch + "/",
      stdLibURL: path.join(scratch, "stdlib.zip"),
      lockFileContents: JSON.stringify({
        info: { abi_version: "2026_0", arch: "wasm32", platform: "emscripten_5_0_3", python: "3.14.2" },
        packages: {},
      }),
    });
    made.FS.writeFile("/lib/package.xz", ours);
    for (const [place, root] of [["/work", work], ["/written", written]]) {
      if (!root) continue;
      made.FS.mkdirTree(place);
      made.FS.mount(made.FS.filesystems.NODEFS, { root }, place);
    }
    made.globals.set("count", countOf);
    const session = made.runPython(`
import lzma, pathlib, sys
pathlib.Path("/lib/package.zip").write_bytes(lzma.decompress(pathlib.Path("/lib/package.xz").read_bytes()))
sys.path.insert(0, "/lib/package.zip")
from inspector.browser.session import Session
Session(count=count)
`);
    return { made, session };
  };
  let { made, session } = await start();
  // As site/page/client.js: what ends Python by its depth is said to, and a new one begins.
  let deep = null;
  for (const line of asked) {
    if (!line) continue;
    if (line.startsWith("!")) {
      say(JSON.stringify(made.runPython(line.slice(1))));
      continue;
    }
    const { path: file } = JSON.parse(line);
    if (file && file === deep) {
      say(JSON.stringify({ ok: false, deep: true }));
      continue;
    }
    try {
      say(session.answer(line));
    } catch (error) {
      if (!/call stack/i.test(String(error.message ?? error))) throw error;
      say(JSON.stringify({ ok: false, deep: true }));
      deep = file;
      ({ made, session } = await start());
    }
  }
} catch (error) {
  console.error(String(error.message ?? error).slice(-2000));
  process.exitCode = 1;
} finally {
  process.stdout.write("\n" + answers.join("\n") + "\n");
  fs.rmSync(scratch, { recursive: true, force: true });
}
