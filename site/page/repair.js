// Repair: why it does not load into a target, what is open, and the file that does.
import { element, fill } from "./render.js";

let writers = []; // the same for every file

// given: what is to be decided before tensors are written as they are (`choices` of inspector/browser/writing.py).
export async function writeControls(place, { path, kind, given = null, ask, write, label }) {
  if (!writers.length) writers = (await ask({ ask: "writers" }, "Working")) ?? [];
  const choice = element("select", { "aria-label": "Format" });
  for (const one of writers) choice.append(element("option", { value: one.id, textContent: one.id }));
  // A sentence in a list is cut off on a narrow screen.
  const about = element("p", { className: "soft", "aria-live": "polite" });
  choice.onchange = () => (about.textContent = writers.find(({ id }) => id === choice.value)?.says ?? "");
  choice.value = "safetensors";
  choice.onchange();
  // What the file does not hold whole is left out, and a name's first part comes off, only where somebody says so.
  const salvage = element("input", { type: "checkbox" });
  const prefix = given?.prefixes.length ? prefixChoice(given) : null;
  const salvages = given?.cut ? element("label", {}, salvage, ` ${given.says}`) : null;
  const button = element("button", { type: "button", textContent: label });
  const result = element("div", { className: "result", "aria-live": "polite" });
  button.onclick = async () => {
    button.disabled = true;
    const dropped = prefix?.querySelector(":checked").value ?? "";
    await write(result, { path, kind, writer: choice.value, salvage: salvage.checked, prefix: dropped });
    button.disabled = false;
  };
  const controls = element("div", { className: "controls" }, choice, button);
  place.replaceChildren(...[prefix, salvages, controls, about, result].filter(Boolean));
}

function prefixChoice({ asks, help, prefixes }) {
  const box = element("fieldset", {}, element("legend", { textContent: asks }));
  for (const [value, textContent] of prefixes) {
    const radio = element("input", { type: "radio", name: "own-prefix", value, checked: !value });
    box.append(element("label", {}, radio, ` ${textContent}`));
  }
  box.append(element("p", { className: "soft", textContent: help }));
  return box;
}

export function repairView(view, answer, { path, ask, client, write }) {
  const chosen = { target: "", keys: "", other: "", accept: [], choose: {}, partial: false };

  async function again() {
    const next = await ask({ ask: "repair", path, ...chosen }, "Comparing");
    if (next) draw(next);
  }

  const name = element("input", {
    type: "text", placeholder: "torchvision/resnet18?num_classes=10", "aria-label": "Target", spellcheck: false,
  }); // prettier-ignore
  const list = element("textarea", { rows: 6, placeholder: "conv1.weight\nbn1.weight\n…", "aria-label": "List of keys" });
  const second = element("input", { type: "file", "aria-label": "A second file" });
  // One of them counts: the one that was changed last.
  const emptied = element("p", { className: "soft", role: "status" });
  const ways = [[name, "The name"], [second, "The second file"], [list, "The list of keys"]]; // prettier-ignore
  for (const [input] of ways) {
    const changed = () => {
      if (!input.value) return;
      const others = ways.filter(([other]) => other !== input && other.value);
      for (const [other] of others) other.value = "";
      const were = others.map(([, called]) => `${called} was taken out`).join(". ");
      if (were) emptied.textContent = `${were}: one target counts, the one that was changed last.`;
    };
    input.addEventListener(input === second ? "change" : "input", changed);
  }
  const use = element("button", { type: "button", className: "quiet", textContent: "Compare with it" });
  use.onclick = async () => {
    emptied.textContent = "";
    Object.assign(chosen, { target: name.value.trim(), keys: list.value.trim(), other: "", accept: [], choose: {} });
    const [file] = second.files;
    if (file) {
      const place = await client.mount([[file.name, file]]);
      chosen.other = place.ok ? `${place.value}/${file.name}` : "";
    }
    await again();
  };
  const other = element(
    "details",
    {},
    element("summary", { textContent: "Another target: a name, a second file, or a list of keys" }),
    element("label", {}, "A network of torchvision or timm ", name),
    element("label", {}, "Or a file that loads ", second),
    element("label", {}, "Or its keys, a line each ", list),
    emptied,
    element("p", {}, use),
  );
  const body = element("div");
  view.replaceChildren(body, other);

  function draw(now) {
    const report = element("div");
    fill(report, now.html);
    const questions = now.questions.map((one) => {
      const box = element("fieldset", {}, element("legend", { textContent: one.says }));
      for (const [id, means] of one.options) {
        const radio = element("input", { type: "radio", name: one.id, value: id, checked: one.chosen === id });
        radio.onchange = () => {
          chosen.choose[one.id] = id;
          again();
        };
        box.append(element("label", {}, radio, ` ${means}`));
      }
      return box;
    });
    const accepts = now.accepts.map((rule) => {
      const box = element("input", { type: "checkbox" });
      box.onchange = () => {
        chosen.accept.push(rule);
        again();
      };
      return element("label", {}, box, ` Do it all the same: ${rule}`);
    });
    const part = element("input", { type: "checkbox", checked: chosen.partial });
    part.onchange = () => {
      chosen.partial = part.checked;
      again();
    };
    const enough = element("label", {}, part, " A part is enough: places that nothing fills keep the model's initial values");
    const out = element("div");
    const head = element("h2", { textContent: "A file that loads", tabIndex: -1 });
    // The rules and the lines of code stand between, a screen or two.
    const way = element("button", { type: "button", className: "link way", textContent: "The file that loads" });
    way.onclick = () => head.focus();
    if (now.ready) (report.querySelector("section > p") ?? report).append(" ", way);
    body.replaceChildren(...[report, ...questions, ...accepts, now.target ? enough : null, head, out].filter(Boolean));
    if (now.ready) writeControls(out, { path, kind: "repair", ask, write, label: now.loads ? "Write it" : "Repair" });
    else out.append(element("p", { className: "soft", textContent: "Nothing is written before the repair is complete." }));
  }

  draw(answer);
}
