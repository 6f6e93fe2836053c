// Where everything lies once it is laid out, and what of it is in sight.
export class Scene {
  constructor(model, sizes) {
    this.model = model
    this.layouts = []
    this.taken = 0
    this.layoutOf = new Map()
    this.open = new Set([0])
    this.x = new Float64Array(model.count)
    this.y = new Float64Array(model.count)
    this.w = Float64Array.from(sizes.w)
    this.h = Float64Array.from(sizes.h)
  }

  // answer: of the worker.
  take(answer, open, sizes) {
    // A worker that was started again counts from 0 again.
    for (const [id, layout] of answer.fresh) this.layouts[id] = { ...layout, paths: null, serial: ++this.taken }
    this.layoutOf = new Map(answer.places.map((place, at) => [place, answer.of[at]]))
    this.open = open
    this.w.set(sizes.w)
    this.h.set(sizes.h)
    const waiting = [0]
    while (waiting.length) {
      const place = waiting.pop(), layout = this.layout(place)
      this.w[place] = layout.w
      this.h[place] = layout.h
      this.model.children[place].forEach((child, nth) => {
        this.x[child] = this.x[place] + layout.x[nth]
        this.y[child] = this.y[place] + layout.y[nth]
        if (open.has(child)) waiting.push(child)
      })
    }
  }

  layout(place) { return this.layouts[this.layoutOf.get(place)] }

  // Calls box(place) for each in sight, parents first, and group(place) for the open ones whose inside is to be drawn.
  // area: {left, top, right, bottom}. least: in the drawing's own units; of what is smaller no inside is drawn.
  visit(area, least, { box, group }) {
    const waiting = [0]
    for (const place of waiting) {
      group(place)
      for (const child of this.model.children[place]) {
        if (!this.meets(child, area)) continue
        box(child)
        if (this.open.has(child) && this.h[child] > least && this.w[child] > least) waiting.push(child)
      }
    }
  }

  meets(place, { left, top, right, bottom }) {
    return this.x[place] <= right && this.x[place] + this.w[place] >= left && this.y[place] <= bottom && this.y[place] + this.h[place] >= top
  }

  // Which box lies under a point, the innermost; -1 for none.
  at(x, y) {
    let found = -1, place = 0
    for (;;) {
      const child = this.model.children[place].find((one) => x >= this.x[one] && x <= this.x[one] + this.w[one] && y >= this.y[one] && y <= this.y[one] + this.h[one])
      if (child === undefined) return found
      found = child
      if (!this.open.has(child)) return found
      place = child
    }
  }

  // Arrows of one box: {group, lines: points of those that are drawn, unseen: [from, to] of the others}, by the places
  // that the boxes have in their group. null where they are not laid out.
  arrowsAt(place) {
    const group = this.model.parent[place], nth = this.model.nth[place]
    const layout = this.layout(group), arrows = this.model.arrows[group] ?? []
    if (!layout) return null
    const touches = (arrow) => arrow >= 0 && (arrows[4 * arrow] === nth || arrows[4 * arrow + 1] === nth)
    return {
      group,
      lines: layout.lines.filter(({ arrow }) => touches(arrow)).map(({ points }) => points),
      unseen: (layout.hidden ?? []).filter(touches).map((arrow) => [arrows[4 * arrow], arrows[4 * arrow + 1]]),
    }
  }
}
