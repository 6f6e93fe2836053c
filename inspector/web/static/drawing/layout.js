// Where the children of one open box lie, and how the arrows among them go: by dagre, or in simple columns.
import { APART, RANKS, byPieces } from './pieces.js'
import { reduce } from './reduction.js'
import { placeLabels } from './shape_labels.js'
import { extent, wrap } from './wrap.js'

export const PAD = 14, HEAD = 30
const DENSE = 4
const INTO = -1, OUT_OF = -2

// group: {w, h: sizes of the children; ports: of the open ones, [x of the line in, x of the line out]; arrows: [from, to,
// width of the shape's text, which shape] flat; entries, exits; head: of the box itself, 0 for the whole; least: its
// least width; wide: whether there is room for columns side by side}. milliseconds: what may be spent.
// Gives {w, h, x, y, lines: [{arrow, points}], labels: [{arrow, x, y}], hidden: [arrow], ports, simple}.
// arrow: its number; INTO and OUT_OF are drawn from and to the box's own border.
export const layOut = (dagre, group, milliseconds) => {
  const { arrows, entries, exits } = group, count = group.w.length
  // 0 is where tensors come in, count + 1 where they go out.
  const pairs = [], numbers = [], seen = new Set()
  const add = (from, to, number) => {
    const name = from * (count + 2) + to
    if (from === to || seen.has(name)) return
    seen.add(name)
    pairs.push(from, to)
    numbers.push(number)
  }
  for (let at = 0; at < arrows.length; at += 4) add(arrows[at] + 1, arrows[at + 1] + 1, at / 4)
  // A list of modules that others call one by one: they would all stand in one row below the entrance.
  if (!numbers.length) return framed(group, inRows(group, [...group.w.keys()], 0))
  for (const entry of entries) add(0, entry + 1, INTO)
  for (const exit of exits) add(exit + 1, count + 1, OUT_OF)
  const isDense = numbers.length > DENSE * count
  const kept = isDense ? reduce(count + 2, pairs) : new Uint8Array(numbers.length).fill(1)
  const drawn = [...kept.keys()].filter((at) => kept[at]), hidden = numbers.filter((number, at) => !kept[at] && number >= 0)
  const edges = drawn.map((at) => ({ from: pairs[2 * at], to: pairs[2 * at + 1], arrow: numbers[at] }))
  let laid = null
  // dagre walks along arrows by recursion.
  try { laid = byDagre(dagre, group, edges, milliseconds) } catch (error) { if (!(error instanceof RangeError)) throw error }
  return laid ? framed(group, { ...laid, hidden }) : inColumns(group)
}

// null where it takes too long.
const byDagre = (dagre, group, edges, milliseconds) => {
  const { w, h } = group, count = w.length, met = new Set(edges.flatMap(({ from, to }) => [from, to])), nodes = new Map()
  const alone = [...w.keys()].filter((child) => !met.has(child + 1))
  for (let name = 0; name <= count + 1; name++) {
    if (met.has(name)) nodes.set(name, name && name <= count ? { width: w[name - 1], height: h[name - 1] } : { width: 1, height: 1 })
  }
  const laid = byPieces(dagre, nodes, edges, count + 1, milliseconds)
  if (!laid) return null
  const x = new Float32Array(count), y = new Float32Array(count)
  for (const [name, place] of laid.places) {
    if (!name || name > count) continue
    x[name - 1] = place.x - w[name - 1] / 2
    y[name - 1] = place.y - h[name - 1] / 2
  }
  // ports: where a line leaves and arrives that goes on inside.
  const end = (name) => ({ ...laid.places.get(name), ...nodes.get(name), ports: group.ports[name - 1] ?? [null, null] })
  const lines = edges.map(({ from, to, arrow }, at) => (
    { arrow, from, wide: arrow < 0 ? 0 : group.arrows[4 * arrow + 2], points: fasten(laid.ways[at], end(from), end(to)) }))
  const drawn = { x, y, lines, boxes: [...met].filter((name) => name && name <= count).map((name) => name - 1) }
  const size = (group.wide && !alone.length && wrap(drawn, w, h)) || extent(drawn, w, h)
  const rest = inRows(group, alone, alone.length ? size.h + RANKS : 0)
  for (const child of alone) { x[child] = rest.x[child]; y[child] = rest.y[child] }
  return { x, y, lines, w: Math.max(size.w, rest.w), h: Math.max(size.h, rest.h), simple: false }
}

// A line leaves below its box and arrives above the other, where dagre lets it touch the sides as well.
const fasten = (points, from, to) => {
  const last = points.length - 2, down = from.y < to.y ? 1 : -1
  const within = (x, node) => Math.min(Math.max(x, node.x - node.width / 2 + Math.min(14, node.width / 2)), node.x + node.width / 2 - Math.min(14, node.width / 2))
  const leaves = from.ports[1], arrives = to.ports[0]
  points[0] = leaves === null || down < 0 ? within(points[2], from) : from.x - from.width / 2 + leaves
  points[1] = from.y + (down * from.height) / 2
  points[last] = arrives === null || down < 0 ? within(points[last - 2], to) : to.x - to.width / 2 + arrives
  points[last + 1] = to.y - (down * to.height) / 2
  // From row to row no way round is needed.
  if (points.length === 6 && (leaves ?? arrives) !== null) points.splice(2, 2)
  return points
}

// Side by side in rows, in the order given: without arrows there is no other.
const inRows = (group, chosen, top) => {
  const { w, h } = group, x = new Float32Array(w.length), y = new Float32Array(w.length)
  const area = chosen.reduce((sum, child) => sum + (w[child] + APART) * (h[child] + APART), 0)
  const room = Math.max(420, Math.sqrt(area * 1.6), most(chosen.map((child) => w[child])))
  let across = 0, down = top, row = 0, widest = 0
  for (const child of chosen) {
    if (across && across + w[child] > room) { down += row + APART; across = 0; row = 0 }
    x[child] = across
    y[child] = down
    across += w[child] + APART
    row = Math.max(row, h[child])
    widest = Math.max(widest, across - APART)
  }
  return { x, y, w: widest, h: down + row, lines: [], hidden: [], simple: false }
}

// One below the other, in as many columns as make it about square. Arrows to the next one are drawn, the others hidden.
const inColumns = (group) => {
  const { w, h, arrows } = group, count = w.length, x = new Float32Array(count), y = new Float32Array(count)
  const step = RANKS * 0.7, wide = most(w), long = h.reduce((sum, height) => sum + height + step, 0)
  const room = Math.max(Math.sqrt(long * (wide + APART)), most(h))
  const column = new Int32Array(count)
  let down = 0, at = 0, deepest = 0
  for (let child = 0; child < count; child++) {
    if (down && down + h[child] > room) { at++; down = 0 }
    column[child] = at
    x[child] = at * (wide + APART) + (wide - w[child]) / 2
    y[child] = down
    deepest = Math.max(deepest, down + h[child])
    down += h[child] + step
  }
  const lines = [], hidden = []
  for (let arrow = 0; arrow < arrows.length / 4; arrow++) {
    const from = arrows[4 * arrow], to = arrows[4 * arrow + 1], middle = (child) => x[child] + w[child] / 2
    if (to === from + 1 && column[to] === column[from]) lines.push({ arrow, points: [middle(from), y[from] + h[from], middle(to), y[to]] })
    else if (from !== to) hidden.push(arrow)
  }
  return framed(group, { x, y, w: (at + 1) * (wide + APART) - APART, h: deepest, lines, hidden, simple: true })
}

// Of any length: a function takes only so many arguments.
const most = (values) => values.reduce((found, value) => Math.max(found, value), 0)

// With the box around it, and the shapes where there is room for them.
const framed = (group, inner) => {
  const pad = group.head ? PAD : 0, labels = placeLabels(group, inner), has = (port) => inner.lines.some(({ arrow }) => arrow === port)
  const inside = Math.max(inner.w, most(labels.map(({ right }) => right))), w = Math.max(inside + 2 * pad, group.least)
  // A line from the border itself needs less room than one between two boxes.
  const right = (w - inside) / 2, below = group.head ? group.head + 4 - (has(INTO) ? 14 : 0) : 0
  const h = lowest(group, inner) + below + pad + (has(OUT_OF) ? 8 : 0)
  const put = (place) => { place.x += right; place.y += below }
  for (let child = 0; child < inner.x.length; child++) { inner.x[child] += right; inner.y[child] += below }
  labels.forEach(put)
  for (const { arrow, points } of inner.lines) {
    const last = points.length - 1
    for (let at = 0; at < points.length; at += 2) { points[at] += right; points[at + 1] += below }
    if (arrow === INTO) points[1] = group.head - 2
    if (arrow === OUT_OF) points[last] = h
  }
  const portOf = (port, at) => inner.lines.find(({ arrow }) => arrow === port)?.points.at(at) ?? null
  const ports = [portOf(INTO, 0), portOf(OUT_OF, -2)]
  return { ...inner, ports, lines: inner.lines.map(({ arrow, points }) => ({ arrow, points })), w, h, labels }
}

// Where the inside ends; lines out go on to the border.
const lowest = ({ h }, { y, lines }) => {
  let found = 0
  for (let child = 0; child < y.length; child++) found = Math.max(found, y[child] + h[child])
  for (const { arrow, points } of lines) for (let at = 1; at < points.length - (arrow === OUT_OF ? 2 : 0); at += 2) found = Math.max(found, points[at])
  return found
}
