// Compare: a second file held against the one in hand.
import { element, fill } from "./render.js";

export function compareView(view, { path, ask, client }) {
  const file = element("input", { type: "file", id: "second", className: "away" });
  const says = element("p", {
    textContent:
      "What differs in names, shapes, types, in what lies beside the weights, and which tensors have the same bytes. " +
      "How far numbers moved is counted in the app.",
  });
  const result = element("div", { className: "result", tabIndex: -1 });
  file.onchange = async () => {
    const [other] = file.files;
    file.value = "";
    if (!other) return;
    result.replaceChildren(element("p", { className: "soft", textContent: `Comparing with ${other.name}…` }));
    const place = await client.mount([[other.name, other]]);
    const told = place.ok ? await ask({ ask: "compare", path, other: `${place.value}/${other.name}` }, "Comparing") : null;
    if (!told) {
      result.replaceChildren();
      return;
    }
    const report = element("div");
    fill(report, told.html);
    result.replaceChildren(element("h2", { textContent: `Beside ${other.name}` }), report);
    result.focus();
  };
  view.replaceChildren(
    element("h2", { textContent: "A second file" }),
    says,
    element("p", { className: "buttons" }, element("label", { className: "button", for: "second", textContent: "Choose the second file" }), file),
    result,
  );
}
