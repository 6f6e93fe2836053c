// The page: what was dropped goes to the worker, what it answers goes to its place.
import { Client } from "./client.js";
import { chosen, dropped, notesOf } from "./drop.js";
import { folderView } from "./folder.js";
import { element, fill } from "./render.js";
import { offer, save } from "./save.js";
import { tensorTable } from "./tensors.js";
import { compareView } from "./compare.js";
import { drawingView, leaveDrawing } from "./network.js";
import { repairView, writeControls } from "./repair.js";

const at = (id) => document.getElementById(id);
const TABS = [
  ["overview", "Overview"],
  ["contents", "Contents"],
  ["tensors", "Tensors"],
  ["architecture", "Architecture"],
  ["repair", "Repair"],
  ["compare", "Compare"],
  ["convert", "Convert"],
  ["take", "Take away"],
];
const WAYS = { model: "architecture", loading: "repair", code: "contents", noticed: "tensors" };
const LACKS = [
  ["WebAssembly", () => typeof WebAssembly === "object"],
  ["module workers", () => typeof Worker === "function"],
  ["DecompressionStream", () => typeof DecompressionStream === "function"],
].filter(([, has]) => !has());

let client;
let hand = null; // {path, answer} of the file in hand
// What was dropped last, for after a stop.
let last = null;
let working = 0; // questions that somebody waits for
let visit = 0; // a second file that is dropped while the first is read takes its place

function say(text, hint = "") {
  const place = at("said");
  place.hidden = !text;
  place.replaceChildren(element("p", { textContent: text }), ...(hint ? [element("p", { textContent: hint })] : []));
  if (hint) place.lastChild.className = "soft";
}

function state(text, busy = false) {
  at("state").textContent = text;
  at("stop").hidden = !busy;
  document.documentElement.dataset.busy = String(busy);
}

function progress(what) {
  const begun = performance.now();
  return ({ done, total, note }) => {
    const share = total ? `${Math.round((100 * done) / total)} %` : `${done}`;
    state(`${what} ${share} ${note ?? ""}, ${Math.round((performance.now() - begun) / 1000)} s`, true);
  };
}

async function ask(question, what) {
  const answer = await asked(what, (told) => client.ask(question, told));
  return answer.ok ? answer.value : null;
}

function rest() {
  if (client.started !== null) state("Ready. Nothing leaves this page.");
  else if (!client.failed) state("Starting Python…");
}

// asks: hands the question on, with who is told of its progress. Python may end and begin anew meanwhile.
async function during(what, asks) {
  working++;
  state(`${what}…`, true);
  try {
    return await asks(progress(what));
  } finally {
    working--;
    if (!working) rest();
  }
}

// The whole answer, said where it is none.
async function asked(what, asks) {
  const answer = await during(what, asks);
  if (answer.deep) {
    say("This file is nested more deeply than a page can follow.", "The app and the command line read it: make app, or pip install . and inspector open FILE.");
  } else if (answer.fault) {
    const last = answer.says.trim().split("\n").pop();
    say("This could not be worked out here, and it is a fault of this page, not of your file.", last);
  } else if (!answer.ok) {
    say(answer.says, answer.hint);
  }
  return answer;
}

async function take(given) {
  const { files, folder } = given;
  if (!files.length) return;
  last = given;
  const mine = ++visit;
  say("");
  at("files").hidden = true;
  at("hand").hidden = true;
  at("open").classList.remove("small");
  if (files.length === 1) {
    const place = (await client.mount(files)).value;
    if (place && mine === visit) await openFile(`${place}/${files[0][0]}`, { mine });
    return;
  }
  await openFolder(files, folder, mine);
  const [note, more] = notesOf(given);
  if (note && mine === visit && at("said").hidden) say(note, more);
}

// member: of an archive of many files, as its row calls it.
async function openFile(path, { mine = ++visit, member = "" } = {}) {
  if (hand) client.ask({ ask: "close", path: hand.path });
  hand = null;
  const answer = await ask({ ask: "open", path, member }, "Reading");
  if (!answer || mine !== visit) return false;
  if (answer.archive) return showFiles(answer, { open: (member) => openFile(path, { member }) });
  hand = { path: answer.path, answer };
  at("open").classList.add("small");
  at("hand").hidden = false;
  at("name").textContent = answer.name;
  document.title = `${answer.name}: Model Inspector`;
  at("line").replaceChildren(...answer.line.map((text) => element("span", { textContent: text })));
  await show("overview");
  at("name").focus();
  return true;
}

function showFiles(found, ways) {
  at("open").classList.add("small");
  at("files").hidden = false;
  at("hand").hidden = true;
  const title = found.archive ?? ways.title;
  document.title = `${title}: Model Inspector`;
  folderView(at("files"), found, { ...ways, title });
  return true;
}

async function openFolder(given, folder, mine) {
  // Without a folder of their own they are in one that is called what they are.
  const title = folder || `${given.length} files`;
  const files = folder ? given : given.map(([path, file]) => [`${title}/${path}`, file]);
  let here;
  const mount = async () => {
    const { value } = await client.mount(files);
    return (here = value && `${value}/${title}`);
  };
  if (!(await mount()) || mine !== visit) return;
  const begun = performance.now();
  // One checkpoint in several files (shards with their index, a saved folder) is opened as one, as the app does.
  const whole = await during("Looking at the files", async () => {
    const answer = await client.ask({ ask: "open", path: here });
    if (answer.fault) await mount();
    return answer;
  });
  if (mine !== visit) return;
  if (whole.ok) {
    await openFile(here, { mine });
    return;
  }
  // Files without a folder are what the command line calls the folder in which it is.
  const about = { name: folder ? "" : ".", deep: [] };
  const scan = async (question) => {
    const asks = (told) => client.askOfFolder({ ...question, ...about }, here, mount, told);
    const answer = await asked("Looking at the files", asks);
    about.deep = answer.left;
    return answer.ok ? answer.value : null;
  };
  const found = await scan({ ask: "scan", spent: (performance.now() - begun) / 1000 });
  if (!found || mine !== visit) return;
  showFiles(found, { title, scan, open: (path) => openFile(`${here}/${path}`) });
}

// Tabs.

function drawTabs(chosenTab) {
  const known = TABS.filter(([id]) => {
    if (id === "tensors" || id === "compare") return hand.answer.tensors > 0;
    if (id === "architecture" && hand.answer.graph) return true;
    return !["architecture", "repair", "convert"].includes(id) || hand.answer.weights;
  });
  at("tabs").replaceChildren(
    ...known.map(([id, label]) => {
      const button = element("button", {
        type: "button", id: `tab-${id}`, textContent: label, role: "tab", "aria-controls": "view",
        "aria-selected": String(id === chosenTab), tabIndex: id === chosenTab ? 0 : -1,
      }); // prettier-ignore
      button.onclick = () => show(id);
      return button;
    }),
  );
  // On a narrow screen the tabs are one line that scrolls.
  const tabs = at("tabs");
  const now = at(`tab-${chosenTab}`);
  if (now) tabs.scrollLeft = now.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - now.offsetWidth) / 2;
}

at("tabs").onkeydown = (event) => {
  const buttons = [...at("tabs").children];
  const now = buttons.indexOf(document.activeElement);
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const next = event.key === "Home" ? 0 : event.key === "End" ? buttons.length - 1 : now + step;
  if (now < 0 || Number.isNaN(next)) return;
  event.preventDefault();
  const target = buttons[(next + buttons.length) % buttons.length];
  target.click();
  document.getElementById(target.id).focus();
};

async function show(tab, find = "") {
  drawTabs(tab);
  say("");
  leaveDrawing();
  const view = at("view");
  const path = hand.path;
  view.setAttribute("aria-labelledby", `tab-${tab}`);
  view.className = tab;
  if (tab === "overview") overview(view);
  else if (tab === "take") takeAway(view);
  else if (tab === "compare") compareView(view, { path, ask, client });
  else if (tab === "convert") await convertView(view, path);
  else {
    view.replaceChildren(element("p", { className: "soft", textContent: "Working…" }));
    const answer = await ask({ ask: tab, path }, "Working");
    if (!hand || hand.path !== path || view.className !== tab) return;
    if (!answer) view.replaceChildren();
    else if (tab === "tensors") tensorTable(view, answer, find, (set, row) => look(path, set, row), () => numbers(path));
    else if (tab === "repair") repairView(view, answer, { path, ask, client, write });
    else if (tab === "architecture") await architecture(view, answer, path);
    else fill(view, answer.html);
  }
}

async function architecture(view, answer, path) {
  const report = element("div");
  fill(report, answer.html);
  view.replaceChildren(report);
  if (!hand.answer.graph) {
    const says = "Its drawing takes one pass of the network, which is made in the app: this file carries no graph.";
    report.prepend(element("p", { className: "soft", textContent: says }));
    return;
  }
  const place = element("div");
  view.prepend(place);
  const drawn = await ask({ ask: "drawing", path }, "Reading the graph");
  if (!drawn || !place.isConnected) return;
  await drawingView(place, drawn, (box) => ask({ ask: "box", path, box }, "Reading"));
}

function look(path, set, row) {
  say("");
  return ask({ ask: "values", path, set, row }, "Reading");
}

async function numbers(path) {
  say("");
  const told = await ask({ ask: "numbers", path }, "Counting");
  if (told && hand?.path === path) hand.answer = told.overview;
  return told;
}

function link(label, tab, find = "") {
  const made = element("button", { type: "button", className: "link way", textContent: label });
  made.onclick = async () => {
    await show(tab, find);
    at(`tab-${tab}`).focus();
  };
  return made;
}

function overview(view) {
  const { answer } = hand;
  const parts = ["answers", "numbers", "findings", "about"].map((name) => element("div", { id: `part-${name}` }));
  view.replaceChildren(...parts);
  fill(parts[0], answer.answers);
  fill(parts[1], answer.numbers);
  fill(parts[3], answer.about);
  parts[0].querySelectorAll(".answer").forEach((row, n) => {
    const tab = WAYS[answer.topics[n]];
    const label = TABS.find(([id]) => id === tab)?.[1];
    if (label && at(`tab-${tab}`)) row.lastElementChild.append(" ", link(label, tab));
  });
  parts[2].append(element("h2", { textContent: "Findings" }));
  if (!answer.findings.length) parts[2].append(element("p", { textContent: "None." }));
  for (const one of answer.findings) {
    const card = element("div");
    fill(card, one.html);
    const label = TABS.find(([id]) => id === one.tab)?.[1];
    if (label && at(`tab-${one.tab}`)) (card.querySelector(".finding") ?? card).append(link(label, one.tab, one.find));
    parts[2].append(card);
  }
}

async function convertView(view, path) {
  const controls = [element("div"), element("div")];
  view.replaceChildren(
    element("h2", { textContent: "The same tensors in another format" }),
    element("p", { textContent: "Under their own names, bit for bit. Types are kept: casting needs the app." }),
    controls[0],
    element("h2", { textContent: "The weights alone" }),
    element("p", { textContent: "Dicts opened, “module.” and its like dropped; for a network that no library knows, too." }),
    controls[1],
  );
  const given = await ask({ ask: "choices", path }, "Working");
  if (!given) return;
  await writeControls(controls[0], { path, kind: "convert", given: given.convert, ask, write, label: "Convert" });
  await writeControls(controls[1], { path, kind: "unwrap", given: given.unwrap, ask, write, label: "Unwrap" });
}

// A new file: written and proved in the worker, then saved.
async function write(place, question) {
  const answer = await ask({ ask: "write", ...question }, "Writing");
  if (!answer) {
    place.replaceChildren();
    return;
  }
  fill(place, answer.html);
  const button = element("button", { type: "button", textContent: `Save ${answer.name}` });
  const saved = element("span", { className: "saved", role: "status" });
  button.onclick = async () => {
    saved.textContent = "";
    try {
      if (await save(answer.name, answer.file)) saved.textContent = "Saved.";
    } catch (error) {
      say(`${answer.name} could not be saved: ${error.message}`);
    }
  };
  place.prepend(element("p", {}, button, saved));
  button.focus();
}

function takeAway(view) {
  const rows = [
    ["A report to hand on", "One page that needs no network and no script; it says the same as this one.", "report", {}, ".report.html", "text/html"],
    ["The report as JSON", "Under the published schema.", "report", { data: true }, ".report.json", "application/json"],
    ["inspector open --json", "What the command line prints, byte for byte.", "json", { what: "open" }, ".open.json", "application/json"],
    ["inspector identify --json", "With the sha256: reads the whole file.", "json", { what: "identify" }, ".identify.json", "application/json"],
    ["inspector diagnose --json", "Against what it was recognised as.", "json", { what: "diagnose" }, ".diagnose.json", "application/json"],
  ]; // prettier-ignore
  const made = rows.map(([title, says, question, more, suffix, type]) => {
    const button = element("button", { type: "button", className: "quiet", textContent: title });
    button.onclick = async () => {
      say("");
      const text = await ask({ ask: question, path: hand.path, ...more }, "Working");
      if (text) offer(hand.answer.name + suffix, text, type);
    };
    return element("p", {}, button, " ", element("span", { className: "soft", textContent: says }));
  });
  view.replaceChildren(element("h2", { textContent: "Take away" }), ...made);
}

// What a person does.

function listen() {
  for (const input of [at("file"), at("folder")]) {
    input.onchange = () => {
      take(chosen(input));
      input.value = "";
    };
  }
  const leave = () => at("drop").classList.remove("over");
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    at("drop").classList.add("over");
  });
  document.addEventListener("dragleave", leave);
  document.addEventListener("drop", async (event) => {
    event.preventDefault();
    leave();
    take(await dropped(event.dataTransfer));
  });
  at("stop").onclick = async () => {
    visit++;
    // What was open is opened again; what hung while it was opened is not.
    const again = hand && last;
    client.stop();
    if (!again) return;
    await take(again);
    say("Stopped.");
  };
  at("explain").onclick = async () => {
    const text = at("pasted").value.trim();
    say("");
    at("explained").replaceChildren();
    if (!text) return at("explained").append("Paste it into the box first.");
    const html = await ask({ ask: "explain", text, path: hand?.path ?? "" }, "Reading it");
    if (html) fill(at("explained"), html);
  };
}

function begin() {
  if (LACKS.length) {
    state("");
    say(`This browser has no ${LACKS.map(([name]) => name).join(", ")}: the page cannot read files in it.`, "A current Chrome, Edge, Firefox or Safari can.");
    return;
  }
  client = new Client();
  client.addEventListener("started", () => {
    if (!working) rest();
    document.documentElement.dataset.ready = String(client.started);
    // Not before: what it keeps lies in the browser's cache by now, and is not fetched a second time.
    if ("serviceWorker" in navigator) navigator.serviceWorker.register("./sw.js").catch(() => {});
  });
  client.addEventListener("failed", ({ detail }) => {
    state("");
    say("Python could not be started.", detail.trim().split("\n").pop());
  });
  client.addEventListener("ended", ({ detail }) => {
    state("Starting Python…", working > 0);
    if (detail) say(detail, hand ? "What was read stays below; drop the file again to go on." : "");
    for (const button of at("tabs").children) button.disabled = true;
    hand = null;
  });
  listen();
}

begin();
