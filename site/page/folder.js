// A row per file of what was dropped, worst first.
import { element } from "./render.js";
import { offer } from "./save.js";

const HEADS = ["Worst", "File", "What it is", "Size", "Tensors", "Parameters", "Worst finding"];
const isNumber = (column) => (column > 2 && column < 6 ? "number" : "");

// scan: asks about the folder, and gives the answer's value or null. open: opens a file, by its path in the folder.
export function folderView(place, found, { scan, open }) {
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
  const json = element("button", { type: "button", className: "quiet", textContent: "As JSON" });
  json.onclick = async () => {
    const text = await scan({ ask: "json", what: "scan" });
    if (text) offer("scan.json", text, "application/json");
  };
  place.replaceChildren(
    element("h1", { textContent: "Files", tabIndex: -1 }),
    element("p", { textContent: found.says }),
    element("p", {}, json),
    element("div", { className: "wide", tabIndex: 0, role: "group", "aria-label": "Files, scrolls sideways" }, table),
    ...found.skipped.map((text) => element("p", { className: "soft", textContent: text })),
  );
  place.querySelector("h1").focus();
}
