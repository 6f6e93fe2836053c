// How a line goes from point to point, as it is drawn and as room is kept for it.
const round = (value) => Math.round(value * 10) / 10

// From point to point with upright ends: {line, tip}, as of SVG's paths.
export const curve = (points) => {
  const last = points.length - 2
  let line = `M${round(points[0])} ${round(points[1])}`
  for (let at = 2; at <= last; at += 2) {
    const [x, y, toX, toY] = [points[at - 2], points[at - 1], points[at], points[at + 1]].map(round), middle = round((y + toY) / 2)
    line += Math.abs(x - toX) < 0.5 ? `L${toX} ${toY}` : `C${x} ${middle} ${toX} ${middle} ${toX} ${toY}`
  }
  const x = round(points[last]), y = round(points[last + 1]), down = points[last + 1] >= points[last - 1] ? 1 : -1
  return { line, tip: `M${x - 3.5} ${y - 6.5 * down}h7L${x} ${y}z` }
}

// Around whatever lies between: of an arrow that has no way of its own.
export const bow = (from, to) => {
  if (to.left > from.right + 20) {
    const middle = round((from.right + to.left) / 2), tip = `M${round(to.left - 6.5)} ${round(to.y - 3.5)}v7L${round(to.left)} ${round(to.y)}z`
    return { line: `M${round(from.right)} ${round(from.y)}C${middle} ${round(from.y)} ${middle} ${round(to.y)} ${round(to.left)} ${round(to.y)}`, tip }
  }
  const out = Math.max(from.right, to.right) + 26 + Math.min(60, Math.abs(to.y - from.y) / 8)
  const tip = `M${round(to.right + 6.5)} ${round(to.y - 3.5)}v7L${round(to.right)} ${round(to.y)}z`
  return { line: `M${round(from.right)} ${round(from.y)}C${round(out)} ${round(from.y)} ${round(out)} ${round(to.y)} ${round(to.right)} ${round(to.y)}`, tip }
}

// A part of the way from point to point of such a line: the curve's own place there.
export const between = (x, y, toX, toY, part) => {
  const rest = 1 - part, middle = (y + toY) / 2
  return [
    (rest ** 3 + 3 * rest ** 2 * part) * x + (3 * rest * part ** 2 + part ** 3) * toX,
    rest ** 3 * y + (3 * rest ** 2 * part + 3 * rest * part ** 2) * middle + part ** 3 * toY,
  ]
}
