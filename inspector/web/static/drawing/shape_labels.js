// Where the shapes of tensors stand: beside their line, over no box, no other shape and no line.
import { between } from './curves.js'

const TALL = 12, BESIDE = 5, CELL = 64
// Above so many boxes and lines nobody reads them at once, and what does not end at a box costs more than it tells.
const MOST = 4000

// group: {w, h, arrows: [from, to, width of the text, which shape] flat}; {x, y, lines}: as laid out. Gives [{arrow, x, y:
// of the text's baseline, right}], one for each tensor: all its arrows say the same.
export const placeLabels = ({ w, h, arrows }, { x, y, lines }) => {
  const labels = [], told = new Set()
  if (!lines.some(({ arrow }) => arrow >= 0 && arrows[4 * arrow + 2])) return labels
  const taken = new Taken()
  if (x.length + lines.length <= MOST) {
    for (let child = 0; child < x.length; child++) taken.add(x[child] - 2, y[child] - 1, x[child] + w[child] + 2, y[child] + h[child] + 1)
    for (const { points } of lines) ways(points, (left, top, right, bottom) => taken.add(left, top, right, bottom))
  }
  for (const { arrow, points } of lines) {
    const width = arrow < 0 ? 0 : arrows[4 * arrow + 2], name = `${arrows[4 * arrow]} ${arrows[4 * arrow + 3]}`
    if (!width || told.has(name)) continue
    const spot = spots(points, width).find(([left, top]) => left >= 0 && taken.isFree(left, top, left + width, top + TALL))
    if (!spot) continue
    const [left, top] = spot
    told.add(name)
    taken.add(left, top, left + width, top + TALL)
    labels.push({ arrow, x: left, y: top + TALL - 3, right: left + width })
  }
  return labels
}

// Right and left of a line's beginning, of its middle and of its end; further out where it bends.
const spots = (points, width) => {
  const last = points.length - 2, found = []
  const beside = (x, top) => found.push([x + BESIDE, top], [x - BESIDE - width, top])
  beside(points[0], points[1] + 4)
  const bend = points[2] - points[0]
  if (Math.abs(bend) < 60) found.push([Math.max(points[0], points[2]) + BESIDE, points[1] + 4], [Math.min(points[0], points[2]) - BESIDE - width, points[1] + 4])
  for (let at = 2; at < last; at += 2) beside(points[at], points[at + 1] - TALL / 2)
  beside(points[last], points[last + 1] - 9 - TALL)
  return found
}

// Rectangles that follow a line as it is drawn.
const ways = (points, add) => {
  for (let at = 2; at < points.length; at += 2) {
    const [x, y, toX, toY] = points.slice(at - 2, at + 2)
    if (Math.abs(x - toX) < 0.5) { add(x - 1, Math.min(y, toY), x + 1, Math.max(y, toY)); continue }
    let [fromX, fromY] = [x, y]
    const steps = Math.min(24, 4 + Math.ceil(Math.abs(toX - x) / 24))
    for (let step = 1; step <= steps; step++) {
      const [nextX, nextY] = between(x, y, toX, toY, step / steps)
      add(Math.min(fromX, nextX) - 1, Math.min(fromY, nextY), Math.max(fromX, nextX) + 1, Math.max(fromY, nextY))
      fromX = nextX
      fromY = nextY
    }
  }
}

// What is covered already, by the cells of a grid that it touches.
class Taken {
  constructor() { this.cells = new Map() }

  // The cells of a rectangle, one after the other, until one of them says true.
  some(left, top, right, bottom, says) {
    const last = Math.floor(right / CELL), lowest = Math.floor(bottom / CELL)
    for (let across = Math.floor(left / CELL); across <= last; across++) {
      for (let down = Math.floor(top / CELL); down <= lowest; down++) if (says(across * 1e6 + down)) return true
    }
    return false
  }

  add(...rectangle) {
    this.some(...rectangle, (cell) => {
      const own = this.cells.get(cell)
      if (own) own.push(rectangle)
      else this.cells.set(cell, [rectangle])
      return false
    })
  }

  isFree(left, top, right, bottom) {
    return !this.some(left, top, right, bottom, (cell) => (
      this.cells.get(cell)?.some(([l, t, r, b]) => left < r && right > l && top < b && bottom > t)))
  }
}
