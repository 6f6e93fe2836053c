// HTML of the reports, rebuilt from a short list of elements and attributes: whatever else stood in it becomes text or
// nothing. It is parsed apart from the page, where nothing runs and nothing is fetched.
const ELEMENTS = new Set(
  ("section h2 h3 p b i span code pre br ul ol li div table thead tbody tr th td details summary figure figcaption " +
    "svg g rect path circle text title").split(" "),
);
const ATTRIBUTES = new Set(
  ("class title open colspan viewBox width height x y cx cy r d fill stroke stroke-width stroke-linecap text-anchor " +
    "role aria-label font-family font-size font-weight transform").split(" "),
);
const SVG = "http://www.w3.org/2000/svg";

function rebuilt(node) {
  if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(node.data);
  if (node.nodeType !== Node.ELEMENT_NODE) return null;
  const name = node.localName;
  if (!ELEMENTS.has(name)) return document.createTextNode(node.textContent);
  const made = node.namespaceURI === SVG ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const { name: attribute, value } of node.attributes) {
    if (ATTRIBUTES.has(attribute)) made.setAttribute(attribute, value);
  }
  // A box that scrolls sideways is reached by keyboard, too.
  if (made.classList.contains("wide")) {
    made.tabIndex = 0;
    made.setAttribute("role", "group");
    made.setAttribute("aria-label", "Scrolls sideways");
  }
  for (const child of node.childNodes) {
    const inner = rebuilt(child);
    if (inner) made.append(inner);
  }
  return made;
}

export function fill(place, html) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  place.replaceChildren(...[...parsed.body.childNodes].map(rebuilt).filter(Boolean));
}

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role" || key === "for") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}
