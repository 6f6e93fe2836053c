// A graph falls apart where the tensor of a single box is all that goes on. Of each piece between two such boxes dagre says
// which row every box and bend is in and in which order, once for the same arrows however large the boxes are: its time
// grows with the square of a graph's length, and its stack ends at some 2,000 boxes in a row. Where they lie is our own.
import { across } from './positions.js'

export const APART = 22, RANKS = 36, BESIDE = 14
// Measured: milliseconds per square of the boxes, and per row that an arrow passes.
const PER_BOXES = 0.002, PER_ROW = 0.3

const known = new Map()

// nodes: {name: {width, height}} by number, from the first to the last; edges: [{from, to}]. 0 and `exit` are no boxes but
// where the group itself is entered and left. Gives {places: Map of name -> {x, y}, ways: points of each edge}, null where
// it would take longer than milliseconds.
export const byPieces = (dagre, nodes, edges, exit, milliseconds) => {
  const end = performance.now() + milliseconds, places = new Map(), ways = new Array(edges.length)
  for (const piece of cut([...nodes.keys()], edges)) {
    const own = piece.edges.map((at) => edges[at])
    const names = new Map(piece.names.map((name, at) => [name, at]))
    const sizes = piece.names.map((name) => nodes.get(name)), arrows = own.map(({ from, to }) => [names.get(from), names.get(to)])
    const isEntered = piece.isCut || piece.names[0] === 0, isLeft = piece.names.at(-1) === exit
    const isPair = sizes.length === 2 && arrows.length === 1, extra = isPair ? [] : looseEnds(sizes.length, arrows, isEntered, isLeft)
    const key = `${sizes.length} ${arrows} ${extra}`
    if (!isPair && !known.has(key)) {
      if (cost(sizes.length, arrows) > end - performance.now()) return null
      known.set(key, rowsOf(dagre, sizes.length, arrows, extra))
    }
    const laid = isPair ? below(sizes) : placed(known.get(key), sizes)
    // The first one was the last of the piece before.
    const first = places.get(piece.names[0]), dx = first ? first.x - laid.x[0] : 0, dy = first ? first.y - laid.y[0] : 0
    piece.names.forEach((name, at) => places.set(name, { x: laid.x[at] + dx, y: laid.y[at] + dy }))
    piece.edges.forEach((edge, at) => { ways[edge] = laid.ways[at].map((value, nth) => value + (nth % 2 ? dy : dx)) })
  }
  return { places, ways }
}

// Where no arrow leads past a box, and nothing before it ends: [{names, edges, isCut: the first one is such a box}].
const cut = (names, edges) => {
  const at = new Map(names.map((name, place) => [name, place])), count = names.length
  if (edges.some(({ from, to }) => from > to)) return [{ names, edges: [...edges.keys()], isCut: false }]
  const over = new Int32Array(count + 2), goes = new Uint8Array(count)
  for (const { from, to } of edges) {
    over[at.get(from) + 1]++
    over[at.get(to)]--
    goes[at.get(from)] = 1
  }
  const pieces = []
  let start = 0, passing = 0, ends = 0
  for (let place = 0; place < count; place++) {
    passing += over[place]
    const isLast = place === count - 1
    if (isLast || (place > start && !passing && !ends && goes[place])) {
      pieces.push({ names: names.slice(start, place + 1), edges: [], isCut: start > 0, last: place })
      start = place
    }
    ends = place === start ? 0 : ends + (goes[place] ? 0 : 1)
  }
  const pieceOf = new Int32Array(count)
  pieces.forEach(({ names: own, last }, nth) => pieceOf.fill(nth, last - own.length + 1 + (nth ? 1 : 0), last + 1))
  edges.forEach(({ to }, edge) => pieces[pieceOf[at.get(to)]].edges.push(edge))
  return pieces
}

const cost = (count, arrows) => {
  const rank = new Int32Array(count), onwards = arrows.filter(([from, to]) => from < to).sort((a, b) => a[0] - b[0])
  for (const [from, to] of onwards) rank[to] = Math.max(rank[to], rank[from] + 1)
  return PER_BOXES * count ** 2 + PER_ROW * onwards.reduce((sum, [from, to]) => sum + rank[to] - rank[from], 0)
}

const below = ([upper, lower]) => {
  const far = (upper.height + lower.height) / 2 + RANKS
  return { x: [0, 0], y: [0, far], ways: [[0, upper.height / 2, 0, far - lower.height / 2]] }
}

// What nothing leads to begins below the entrance all the same, and what leads nowhere ends above the exit.
const looseEnds = (count, arrows, isEntered, isLeft) => {
  const comes = new Uint8Array(count), goes = new Uint8Array(count), found = []
  for (const [from, to] of arrows) goes[from] = comes[to] = 1
  for (let at = 1; at < count; at++) {
    if (isEntered && !comes[at]) found.push([0, at])
    if (isLeft && !goes[at - 1] && !(isEntered && at === 1 && !comes[count - 1])) found.push([at - 1, count - 1])
  }
  return found
}

// Boxes are of one size here: rows and their order do not depend on it. Bends come after the `count` boxes, by edge; ways:
// of each edge, from its box over its bends to its box. Gives what `across` takes, without widths.
const rowsOf = (dagre, count, arrows, extra) => {
  const graph = new dagre.Graph({ multigraph: false, compound: false }), pairs = [...arrows, ...extra]
  graph.setGraph({ rankdir: 'TB', nodesep: APART, ranksep: RANKS, edgesep: BESIDE, marginx: 0, marginy: 0 })
  graph.setDefaultEdgeLabel(() => ({}))
  for (let at = 0; at < count; at++) graph.setNode(String(at), { width: 40, height: 40 })
  for (const [from, to] of arrows) graph.setEdge(String(from), String(to), { weight: to === from + 1 ? 2 : 1 })
  for (const [from, to] of extra) graph.setEdge(String(from), String(to), { weight: 0 })
  dagre.layout(graph)
  const places = Array.from({ length: count }, (_, at) => graph.node(String(at)))
  const ways = pairs.map(([from, to]) => {
    const bends = graph.edge(String(from), String(to)).points.slice(1, -1).map((point) => places.push(point) - 1)
    return [from, ...bends, to]
  })
  return { count, ways: ways.slice(0, arrows.length), ...neighboursOf(places, ways), isBend: Uint8Array.from(places, (_, at) => (at < count ? 0 : 1)) }
}

const neighboursOf = (places, ways) => {
  const levels = [...new Set(places.map(({ y }) => Math.round(y)))].sort((a, b) => a - b), rowOf = new Map(levels.map((y, at) => [y, at]))
  const rows = levels.map(() => []), above = places.map(() => []), below = places.map(() => [])
  const row = places.map(({ y }) => rowOf.get(Math.round(y)))
  places.forEach((_, at) => rows[row[at]].push(at))
  for (const own of rows) own.sort((a, b) => places[a].x - places[b].x)
  for (const way of ways) {
    for (let at = 1; at < way.length; at++) {
      const [upper, lower] = row[way[at - 1]] < row[way[at]] ? [way[at - 1], way[at]] : [way[at], way[at - 1]]
      below[upper].push(lower)
      above[lower].push(upper)
    }
  }
  return { rows, above, below }
}

const placed = (piece, sizes) => {
  const { count, rows, ways, isBend } = piece, y = new Float64Array(isBend.length)
  const x = across({ ...piece, widths: Float64Array.from(isBend, (bends, at) => (bends ? 0 : sizes[at].width)) }, APART, BESIDE)
  let down = 0
  for (const row of rows) {
    const tall = row.reduce((most, at) => (at < count ? Math.max(most, sizes[at].height) : most), 0)
    for (const at of row) y[at] = down + tall / 2
    // Bends have rows of their own between those of boxes.
    down += tall + RANKS / 2
  }
  return { x, y, ways: ways.map((way) => way.flatMap((at) => [x[at], y[at]])) }
}
