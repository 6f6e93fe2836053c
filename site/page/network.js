// The drawing of a file that carries its graph, by the app's own scripts (drawing/), in a shadow of its own.
import { element, fill } from "./render.js";

let current = null;
const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => current?.dress());

const here = (name) => new URL(name, import.meta.url);

async function text(name) {
  const answer = await fetch(here(name));
  if (!answer.ok) throw new Error(`${name} could not be fetched (${answer.status}).`);
  return answer.text();
}

export function leaveDrawing() {
  current?.end();
  current = null;
}

// choose: asks what the file holds of a box, by the box's path.
export async function drawingView(place, drawn, choose) {
  if (!drawn.drawn) {
    place.replaceChildren(element("p", { className: "soft", textContent: drawn.says }));
    return;
  }
  const [html, css, { Drawing }] = await Promise.all([
    text("drawing.html"),
    text("drawing.css"),
    import("./drawing/element.js"),
  ]);
  if (!place.isConnected) return;
  const host = element("div", { className: "network" });
  const root = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  root.adoptedStyleSheets.push(sheet);
  const section = new DOMParser().parseFromString(html, "text/html").querySelector("section");
  root.append(document.adoptNode(section));
  const chosen = element("div", { "aria-live": "polite" }, element("p", { className: "soft", textContent: "Choose a box to see what the file holds of it." }));
  place.replaceChildren(element("h2", { textContent: "Drawing" }), host, chosen);
  leaveDrawing();
  const mine = (current = new Drawing(section));
  await mine.update(
    { drawn: drawn.drawn, digest: "carried", chosen: "", says: drawn.says, coloured: "", steps: drawn.steps },
    async (_, box) => {
      const told = await choose(box);
      if (told && current === mine) fill(chosen, told.html);
    },
  );
}
