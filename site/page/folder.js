// A row per file of what was dropped, worst first.
import { element, fill } from "./render.js";
import { offer } from "./save.js";

const HEADS = ["Worst", "File", "What it is", "Size", "Tensors", "Parameters", "Worst finding"];
const isNumber = (column) => (column > 2 && column < 6 ? "number" : "");

// found: of a folder, or of an archive. title: what it is called. scan: asks about the folder, and gives the answer's value or
// null. open: opens a file, by its path in the folder or archive.
export function folderView(place, found, { title, scan, open }) {
  const rows = found.rows.map((row) => {
    const name = row.opens
      ? element("button", { type: "button", className: "link", textContent: row.shown })
      : element("span", { textContent: row.shown });
    if (row.opens) name.onclick = () => open(row.path);
    const word = element("span", { className: `tone ${row.tone}`, textContent: row.word });
    const cells = [word, name, row.what, row.size, row.tensors, row.parameters, row.says];
    return element("tr", {}, ...cells.map((cell, n) => element("td", { className: isNumber(n) }, cell)));
  });
  const heads = HEADS.map((textContent, n) => element("th", { textContent, className: isNumber(n) }));
  const head = element("thead", {}, element("tr", {}, ...heads));
  const table = element("table", {}, head, element("tbody", {}, ...rows));
  const take = element("button", { type: "button", className: "quiet", textContent: found.archive ? "Table as CSV" : "As JSON" });
  take.onclick = async () => {
    if (found.archive) {
      offer("files.csv", found.csv, "text/csv");
      return;
    }
    const text = await scan({ ask: "json", what: "scan" });
    if (text) offer("scan.json", text, "application/json");
  };
  const wrong = element("div");
  fill(wrong, found.findings ?? "");
  place.replaceChildren(
    element("h1", { textContent: title, tabIndex: -1 }),
    element("p", { textContent: found.says }),
    wrong,
    element("p", {}, take),
    element("div", { className: "wide", tabIndex: 0, role: "group", "aria-label": "Files, scrolls sideways" }, table),
    ...found.skipped.map((text) => element("p", { className: "soft", textContent: text })),
  );
  place.querySelector("h1").focus();
}
