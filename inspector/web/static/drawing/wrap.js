// A long way down becomes several columns side by side, read like a newspaper's: cut where a single tensor passes.
// Where is cut depends on what lies in the box and never on what is open, so that boxes stay in their columns.
const LONGEST = 10, SQUARE = 0.62, GUTTER = 64, TURN = 24, FOOT = 20, TOP = 12
// A tensor that is read in more places would lead as many lines around the columns.
const MOST_READ = 4

// laid: {x, y, lines: [{from, arrow, points}]}, w and h: sizes of the boxes. Changes places and points; gives {w, h},
// null where it is short or nothing can be cut.
export const wrap = (laid, w, h) => {
  const { x, y, lines } = laid, count = x.length
  const bottoms = boundaries(y, h), rows = bottoms.length + 1
  if (rows <= LONGEST) return null
  const columns = Math.round(SQUARE * Math.sqrt(rows)), cuts = []
  for (let column = 1; column < columns; column++) {
    const ideal = Math.round((column * rows) / columns) - 1, reach = Math.floor(rows / columns / 2)
    const near = [...bottoms.keys()].filter((at) => Math.abs(at - ideal) <= reach && bottoms[at].last > (cuts[cuts.length - 1]?.last ?? -1))
    near.sort((a, b) => Math.abs(a - ideal) - Math.abs(b - ideal))
    const found = near.find((at) => isNarrow(lines, middle(bottoms[at])))
    if (found !== undefined) cuts.push({ ...bottoms[found], at: middle(bottoms[found]) })
  }
  if (!cuts.length) return null
  const columnOf = (down) => cuts.filter(({ at }) => down > at).length
  const spans = Array.from({ length: cuts.length + 1 }, () => ({ left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity }))
  const widen = (column, left, top, right, bottom) => {
    const span = spans[column]
    span.left = Math.min(span.left, left); span.right = Math.max(span.right, right)
    span.top = Math.min(span.top, top); span.bottom = Math.max(span.bottom, bottom)
  }
  for (let box = 0; box < count; box++) widen(columnOf(y[box]), x[box], y[box], x[box] + w[box], y[box] + h[box])
  for (const { points, wide = 0 } of lines) for (let at = 0; at < points.length; at += 2) widen(columnOf(points[at + 1]), points[at], Infinity, points[at] + wide, -Infinity)
  // What goes out of the last column was at its foot, what comes in at the head of the first.
  for (const { points } of lines) { widen(columnOf(points[1]), Infinity, points[1], -Infinity, points[1]); widen(columnOf(points.at(-1)), Infinity, points.at(-1), -Infinity, points.at(-1)) }
  let across = 0
  for (const span of spans) { span.dx = across - span.left; span.dy = TURN - span.top; across += span.right - span.left + GUTTER; span.end = across - GUTTER }
  const deepest = Math.max(...spans.map(({ top, bottom }) => bottom - top)) + TURN
  for (const line of lines) line.points = moved(line.points, spans, columnOf)
  for (let box = 0; box < count; box++) {
    const span = spans[columnOf(y[box])]
    x[box] += span.dx
    y[box] += span.dy
  }
  return { w: across - GUTTER, h: deepest + TURN }
}

const middle = ({ last, next }) => (last + next) / 2

// Between rows, where no box lies: {last: where the upper ones end, next: where the lower ones begin}.
const boundaries = (y, h) => {
  const order = [...y.keys()].sort((a, b) => y[a] - y[b]), found = []
  let last = -Infinity
  for (const box of order) {
    if (y[box] > last && last > -Infinity) found.push({ last, next: y[box] })
    last = Math.max(last, y[box] + h[box])
  }
  return found
}

const crosses = ({ points }, at) => points[1] < at !== points.at(-1) < at
const isNarrow = (lines, at) => {
  const over = lines.filter((line) => crosses(line, at))
  return over.length <= MOST_READ && over.every(({ from, points }) => from === over[0].from && points[1] < points.at(-1))
}

// From its column's foot through the gutter to the head of the next.
const moved = (all, spans, columnOf) => {
  // What lay in a gap that is now between two columns is no place any more.
  const points = all.filter((_, at) => {
    const first = at - (at % 2), down = all[first + 1], { top, bottom } = spans[columnOf(down)]
    return first === 0 || first === all.length - 2 || (down >= top && down <= bottom)
  })
  const made = []
  let column = columnOf(points[1])
  for (let at = 0; at < points.length; at += 2) {
    const own = columnOf(points[at + 1])
    // Only one row further: what is narrow has no line over two cuts, but for lines that were there before.
    for (; column < own; column++) {
      const span = spans[column], next = spans[column + 1]
      const from = made.at(-2), foot = span.bottom + span.dy + FOOT, gutter = span.end + GUTTER / 2, head = next.top + next.dy - TOP
      made.push(from, foot, gutter, foot, gutter, head, points[at] + next.dx, head)
    }
    made.push(points[at] + spans[own].dx, points[at + 1] + spans[own].dy)
  }
  return made
}

// The size of what stays as it is, moved to the corner; lines bend further out than boxes lie.
export const extent = ({ x, y, lines, boxes }, w, h) => {
  const span = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity }
  const widen = (left, top, right, bottom) => {
    span.left = Math.min(span.left, left); span.right = Math.max(span.right, right)
    span.top = Math.min(span.top, top); span.bottom = Math.max(span.bottom, bottom)
  }
  for (const box of boxes) widen(x[box], y[box], x[box] + w[box], y[box] + h[box])
  for (const { points } of lines) for (let at = 0; at < points.length; at += 2) widen(points[at], points[at + 1], points[at], points[at + 1])
  for (const box of boxes) { x[box] -= span.left; y[box] -= span.top }
  for (const { points } of lines) for (let at = 0; at < points.length; at += 2) { points[at] -= span.left; points[at + 1] -= span.top }
  return { w: span.right - span.left, h: span.bottom - span.top }
}
