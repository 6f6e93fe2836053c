// Where boxes in rows lie across, so that lines run straight: Brandes and Koepf, "Fast and simple horizontal coordinate
// assignment" (GD 2001), with the mended compaction of their erratum (2020) by blocks, as dagre has it.

// widths: of each element, boxes and bends; isBend: 1 for those of a line, that keeps closer. rows: elements from left to
// right, downwards; above, below: neighbours of each element in the rows next to it. Gives the middle of each.
export const across = ({ widths, isBend, rows, above, below }, apart, beside) => {
  const count = widths.length, order = new Int32Array(count), gap = (one) => (isBend[one] ? beside : apart) / 2
  for (const row of rows) row.forEach((one, at) => { order[one] = at })
  const conflicts = crossings(rows, above, order, isBend, count), found = []
  for (const isUp of [true, false]) {
    const downwards = isUp ? rows : [...rows].reverse()
    for (const isLeft of [true, false]) {
      const layers = isLeft ? downwards : downwards.map((row) => [...row].reverse())
      const root = blocks(layers, isUp ? above : below, conflicts, count)
      const x = compacted(layers, root, (one, other) => (widths[one] + widths[other]) / 2 + gap(one) + gap(other), count)
      if (!isLeft) for (let one = 0; one < count; one++) x[one] = -x[one]
      found.push({ x, isLeft, ...ends(x, widths) })
    }
  }
  const narrowest = found.reduce((best, one) => (one.right - one.left < best.right - best.left ? one : best))
  const first = Math.min(...narrowest.x), last = Math.max(...narrowest.x)
  for (const { x, isLeft } of found) {
    if (x === narrowest.x) continue
    const by = isLeft ? first - Math.min(...x) : last - Math.max(...x)
    for (let one = 0; one < count; one++) x[one] += by
  }
  return Float64Array.from(widths, (_, one) => {
    const four = found.map(({ x }) => x[one]).sort((a, b) => a - b)
    return (four[1] + four[2]) / 2
  })
}

const ends = (x, widths) => {
  let left = Infinity, right = -Infinity
  for (let one = 0; one < x.length; one++) {
    left = Math.min(left, x[one] - widths[one] / 2)
    right = Math.max(right, x[one] + widths[one] / 2)
  }
  return { left, right }
}

// Steps that cross a line's upright part: the line stays straight.
const crossings = (rows, above, order, isBend, count) => {
  const found = new Set()
  for (let at = 1; at < rows.length; at++) {
    const row = rows[at], length = rows[at - 1].length
    let from = 0, scanned = 0
    row.forEach((one, nth) => {
      const over = isBend[one] ? above[one].find((other) => isBend[other]) : undefined, to = over === undefined ? length : order[over]
      if (over === undefined && nth < row.length - 1) return
      for (; scanned <= nth; scanned++) {
        for (const other of above[row[scanned]]) {
          const place = order[other]
          if ((place < from || to < place) && !(isBend[other] && isBend[row[scanned]])) found.add(other * count + row[scanned]).add(row[scanned] * count + other)
        }
      }
      from = to
    })
  }
  return found
}

// Which elements stand one below the other: the first of its block for each.
const blocks = (layers, neighbours, conflicts, count) => {
  const root = Int32Array.from({ length: count }, (_, one) => one), next = Int32Array.from(root), place = new Int32Array(count)
  for (const layer of layers) layer.forEach((one, at) => { place[one] = at })
  for (const layer of layers) {
    let before = -1
    for (const one of layer) {
      const others = neighbours[one]
      if (!others.length) continue
      const sorted = others.length > 1 ? [...others].sort((a, b) => place[a] - place[b]) : others, middle = (sorted.length - 1) / 2
      for (let at = Math.floor(middle); at <= Math.ceil(middle); at++) {
        const other = sorted[at]
        if (next[one] !== one || before >= place[other] || conflicts.has(other * count + one)) continue
        next[other] = one
        next[one] = root[one] = root[other]
        before = place[other]
      }
    }
  }
  return root
}

// Blocks as far left as they go, then back to the right as far as nothing else moves.
const compacted = (layers, root, room, count) => {
  const after = new Map(), before = new Map(), waits = new Int32Array(count), x = new Float64Array(count)
  const join = (map, from, to, least) => {
    if (!map.has(from)) map.set(from, new Map())
    map.get(from).set(to, Math.max(least, map.get(from).get(to) ?? 0))
  }
  for (const layer of layers) {
    for (let at = 1; at < layer.length; at++) {
      const from = root[layer[at - 1]], to = root[layer[at]], least = room(layer[at - 1], layer[at])
      if (!after.get(from)?.has(to)) waits[to]++
      join(after, from, to, least)
      join(before, to, from, least)
    }
  }
  const order = []
  for (let one = 0; one < count; one++) if (root[one] === one && !waits[one]) order.push(one)
  for (const one of order) for (const to of after.get(one)?.keys() ?? []) if (!--waits[to]) order.push(to)
  for (const one of order) for (const [from, least] of before.get(one) ?? []) x[one] = Math.max(x[one], x[from] + least)
  for (const one of order.reverse()) {
    let most = Infinity
    for (const [to, least] of after.get(one) ?? []) most = Math.min(most, x[to] - least)
    if (most < Infinity) x[one] = Math.max(x[one], most)
  }
  return x.map((_, one) => x[root[one]])
}
