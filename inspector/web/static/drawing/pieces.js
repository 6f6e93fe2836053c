// A graph falls apart where the tensor of a single box is all that goes on: each piece between two such boxes is laid out
// by dagre alone and equal pieces once, whose time grows with the square of a graph's length, and whose stack ends at some
// 2,000 boxes in a row.
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
    const key = JSON.stringify([sizes, arrows, isEntered, isLeft])
    let laid = known.get(key)
    if (!laid) {
      if (cost(sizes.length, arrows) > end - performance.now()) return null
      laid = sizes.length === 2 && arrows.length === 1 ? below(sizes) : layOut(dagre, sizes, arrows, isEntered, isLeft)
      known.set(key, laid)
    }
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

const layOut = (dagre, sizes, arrows, isEntered, isLeft) => {
  const graph = new dagre.Graph({ multigraph: false, compound: false }), count = sizes.length
  graph.setGraph({ rankdir: 'TB', nodesep: APART, ranksep: RANKS, edgesep: BESIDE, marginx: 0, marginy: 0 })
  graph.setDefaultEdgeLabel(() => ({}))
  const comes = new Uint8Array(count), goes = new Uint8Array(count)
  sizes.forEach(({ width, height }, at) => graph.setNode(String(at), { width, height }))
  for (const [from, to] of arrows) {
    goes[from] = comes[to] = 1
    graph.setEdge(String(from), String(to), { weight: to === from + 1 ? 2 : 1 })
  }
  // What nothing leads to begins below the entrance all the same, and what leads nowhere ends above the exit.
  for (let at = 1; at < count; at++) {
    if (isEntered && !comes[at]) graph.setEdge('0', String(at), { weight: 0 })
    if (isLeft && !goes[at - 1]) graph.setEdge(String(at - 1), String(count - 1), { weight: 0 })
  }
  dagre.layout(graph)
  return {
    x: sizes.map((_, at) => graph.node(String(at)).x), y: sizes.map((_, at) => graph.node(String(at)).y),
    ways: arrows.map(([from, to]) => graph.edge(String(from), String(to)).points.flatMap((point) => [point.x, point.y])),
  }
}
