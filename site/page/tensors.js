// The table of tensors: as many rows as are in sight, of however many there are.
import { element, fill } from "./render.js";

const ROW = 30;
const AROUND = 12;
const counts = new Intl.NumberFormat("en");

// look: asks for the first numbers of row `row` of set `set`. check: for what is wrong with any of the weights'.
export function tensorTable(place, answer, find, look, check) {
  let shown = [];
  let looked = -1; // the row whose first numbers stand there
  let set = answer.sets[answer.chosen];
  const choice = element("select", { "aria-label": "Which tensors" });
  answer.sets.forEach((one, number) => {
    const label = `${one.label}${one.role ? ` (${one.role})` : ""}: ${counts.format(one.names.length)}`;
    choice.append(element("option", { value: number, selected: number === answer.chosen, textContent: label }));
  });
  const words = element("input", {
    type: "search", placeholder: "Filter by name, shape (64x3) or type", value: find, "aria-label": "Filter",
  }); // prettier-ignore
  const says = element("p", { className: "soft", role: "status" });
  const numbers = element("section", { className: "values", hidden: true, tabIndex: -1 });

  async function show(row) {
    const told = await look(answer.sets.indexOf(set), row);
    numbers.hidden = !told;
    if (!told) return;
    looked = row;
    const list = told.values.map((text) => element("li", {}, element("code", { textContent: text })));
    const rest = told.values.length ? told.rest : "It has no elements.";
    numbers.replaceChildren(
      element("h2", { textContent: told.name }),
      element("p", { className: "soft", textContent: told.line }),
      element("ol", {}, ...list),
      ...[rest, told.note].filter(Boolean).map((text) => element("p", { className: "soft", textContent: text })),
    );
    numbers.focus();
  }

  const checked = element("section", { hidden: true, tabIndex: -1 });
  const button = element("button", { type: "button", className: "quiet", textContent: "Check the numbers" });
  button.onclick = async () => {
    button.disabled = true;
    const told = await check();
    button.disabled = false;
    checked.hidden = !told;
    if (!told) return;
    const cards = told.findings.map(({ html }) => {
      const card = element("div");
      fill(card, html);
      return card;
    });
    const table = element("div");
    fill(table, told.html);
    const title = element("h2", { textContent: "The numbers" });
    const rest = element("p", { className: "soft", textContent: "What else numbers tell (statistics, health, fingerprint) is in the app." });
    checked.replaceChildren(title, element("p", { textContent: told.says }), ...cards, table, rest);
    checked.focus();
  };

  const heads = ["Tensor", "Shape", "Type", "Elements", "Bytes"];
  const head = element("div", { className: "row heads", role: "row" });
  heads.forEach((text, n) => {
    head.append(element("span", { textContent: text, role: "columnheader", className: n > 2 ? "number" : "" }));
  });
  const body = element("div", { className: "rows", role: "rowgroup" });
  const view = element(
    "div",
    { className: "tensor-table", role: "table", tabIndex: 0, "aria-label": "Tensors" },
    element("div", { role: "rowgroup", className: "headgroup" }, head),
    body,
  );

  function filter() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = [];
    for (let n = 0; n < set.names.length; n++) {
      const text = `${set.names[n]} ${set.shapes[n]} ${set.types[n]}`.toLowerCase();
      if (wanted.every((word) => text.includes(word))) shown.push(n);
    }
    // What is filtered away has no card.
    if (!numbers.hidden && !shown.includes(looked)) numbers.hidden = true;
    let elements = 0;
    for (const n of shown) elements += set.elements[n];
    const of = shown.length === set.names.length ? "" : ` of ${counts.format(set.names.length)}`;
    says.textContent = `${counts.format(shown.length)}${of} ${shown.length === 1 && !of ? "tensor" : "tensors"}, ${counts.format(elements)} elements`;
    view.setAttribute("aria-rowcount", shown.length + 1);
    view.scrollTop = 0;
    draw();
  }

  function draw() {
    body.style.setProperty("height", `${shown.length * ROW}px`);
    const first = Math.max(0, Math.floor(view.scrollTop / ROW) - AROUND);
    const last = Math.min(shown.length, first + Math.ceil(view.clientHeight / ROW) + 2 * AROUND);
    const rows = [];
    for (let at = first; at < last; at++) {
      const n = shown[at];
      const cells = [set.names[n], set.shapes[n], set.types[n], counts.format(set.elements[n]), counts.format(set.nbytes[n])];
      const row = element("div", { className: "row", role: "row", "aria-rowindex": at + 2 });
      cells.forEach((text, column) => {
        const kind = column === 0 ? "name" : column > 2 ? "number" : "";
        const cell = element("span", { title: column ? "" : text, role: "cell", className: kind });
        const name = { type: "button", className: "link", textContent: text, title: `${text}: its first numbers` };
        cell.append(column ? text : element("button", { ...name, onclick: () => show(n) }));
        row.append(cell);
      });
      row.style.setProperty("top", `${at * ROW}px`);
      rows.push(row);
    }
    body.replaceChildren(...rows);
  }

  choice.onchange = () => {
    set = answer.sets[Number(choice.value)];
    numbers.hidden = true;
    filter();
  };
  words.oninput = filter;
  view.onscroll = () => requestAnimationFrame(draw);
  place.replaceChildren(
    element("div", { className: "controls" }, answer.sets.length > 1 ? choice : null, words, button),
    checked,
    says,
    numbers,
    view,
  );
  filter();
}
