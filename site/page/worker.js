// Python, in a worker of its own: it may be ended at any time, and the page stays.
//
//   {ask, id, ...}            -> {id, ok, value} or {id, ok: false, says, hint}
//   {mount, id, files}        -> {id, ok, value: path}: files as [path, File], readable from then on
//   progress, between those:     {id, progress: {done, total, note}}
import { openDisk } from "./disk.js";
import { countOf } from "./numbers.mjs";
import { PACKAGE_NBYTES, PYTHON } from "./places.js";

// Without packages of its own: what Pyodide would fetch from elsewhere is nothing that this page asks for.
const NO_PACKAGES = JSON.stringify({
  info: { abi_version: "2026_0", arch: "wasm32", platform: "emscripten_5_0_3", python: "3.14.2" },
  packages: {},
});

const fetched = self.fetch.bind(self);

async function found(address) {
  const answer = await fetched(address);
  if (!answer.ok) throw new Error(`${address.split("/").pop()} could not be fetched (${answer.status}).`);
  return answer;
}

// Settled when all of it has come, and perhaps before all of it was used.
async function unpacked(address, type, ended) {
  const answer = await found(address);
  const told = new TransformStream({ flush: ended });
  const stream = answer.body.pipeThrough(told).pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream, { headers: { "content-type": type } });
}

// Asked for before Pyodide does, which has to be fetched itself. What Python needs to start comes first, so that it
// starts while ours is still on its way.
const part = (name) => `${PYTHON}${name}.packed`;
let ended;
const all = new Promise((done) => (ended = done));
const early = {
  wasm: unpacked(part("pyodide.asm.wasm"), "application/wasm", ended),
  stdlib: unpacked(part("stdlib.zip"), "application/zip"),
};
import(`${PYTHON}pyodide.asm.mjs`).catch(() => {});
let ours = all
  .then(() => found(new URL("package.xz.packed", import.meta.url).href))
  .then((answer) => answer.arrayBuffer());
for (const one of [early.wasm, early.stdlib, ours]) one.catch(() => {});

// Pyodide asks for its parts by their own names; the large ones lie packed.
self.fetch = (address, options) => {
  const text = String(address?.url ?? address);
  if (text.endsWith(".wasm")) return early.wasm;
  if (text.endsWith("stdlib.zip")) return early.stdlib;
  return fetched(address, options);
};

let disk;
let session;
let current = 0;
let reported = 0;
let told = ""; // what was read last

async function start() {
  const begun = performance.now();
  const { loadPyodide } = await import(`${PYTHON}pyodide.mjs`);
  const python = await loadPyodide({
    indexURL: PYTHON,
    stdLibURL: `${PYTHON}stdlib.zip`,
    lockFileContents: NO_PACKAGES,
    env: { PYTHONDONTWRITEBYTECODE: "1", HOME: "/home/pyodide" },
  });
  python.FS.writeFile("/lib/package.xz", new Uint8Array(await ours), { canOwn: true });
  ours = null;
  disk = openDisk(python.FS);
  python.globals.set("report", (done, total, note) => {
    told = note;
    const now = performance.now();
    if (now - reported < 100) return;
    reported = now;
    self.postMessage({ id: current, progress: { done, total: total ?? null, note } });
  });
  python.globals.set("count", countOf);
  session = python.runPython(`
import lzma, os, sys
# In pieces, and into a file of its size: what Python's memory has once grown to, it keeps.
with lzma.open("/lib/package.xz") as packed, open("/lib/package.zip", "wb", buffering=0) as whole:
    whole.truncate(${PACKAGE_NBYTES})
    while part := packed.read(1 << 18):
        whole.write(part)
os.unlink("/lib/package.xz")
sys.path.insert(0, "/lib/package.zip")
from inspector.browser.session import Session
Session(report, count)
`);
  self.postMessage({ started: (performance.now() - begun) / 1000 });
}

const ready = start().catch((error) => {
  self.postMessage({ failed: String(error.message ?? error).slice(-2000) });
  throw error;
});

async function ask(question) {
  if (question.ask === "write") return write(question);
  return JSON.parse(session.answer(JSON.stringify(question)));
}

async function write(question) {
  const output = await disk.output();
  try {
    const answer = JSON.parse(session.answer(JSON.stringify({ ...question, folder: output.folder })));
    if (answer.ok) answer.value.file = await output.take(answer.value.name);
    return answer;
  } finally {
    output.close();
  }
}

let queue = Promise.resolve();

self.onmessage = ({ data }) => {
  queue = queue.then(async () => {
    try {
      await ready;
      current = data.id;
      told = "";
      const answer = data.mount ? { ok: true, value: disk.mount(data.files) } : await ask(data);
      self.postMessage({ ...answer, id: data.id });
    } catch (error) {
      const says = String(error.message ?? error);
      // What Python's own limit does not catch: the browser's stack ends first, and Python with it.
      const deep = /call stack|too much recursion/i.test(says);
      self.postMessage({ id: data.id, ok: false, fault: true, deep, at: told, says: says.slice(-3000), hint: "" });
    }
  });
};
