// The tree of boxes as lists side by side: a box is its place in them, parents stand before their children, 0 is the whole.
const FIRST_BOXES = 40

export class Model {
  constructor(drawn) {
    Object.assign(this, drawn)
    const { parent } = drawn, count = parent.length
    this.count = count
    this.children = Array.from({ length: count }, () => [])
    this.depth = new Int32Array(count)
    this.within = new Int32Array(count)
    this.nth = new Int32Array(count)
    for (let place = 1; place < count; place++) {
      const siblings = this.children[parent[place]]
      this.nth[place] = siblings.length
      siblings.push(place)
      this.depth[place] = this.depth[parent[place]] + 1
    }
    for (let place = count - 1; place > 0; place--) this.within[parent[place]] += this.within[place] + 1
    // Every path, also of the modules that stand folded in another's box.
    this.places = new Map(drawn.path.map((path, place) => [path, place]))
    this.deepest = this.depth.reduce((most, depth, place) => Math.max(most, this.isGroup(place) ? depth : 0), 0)
  }

  isGroup(place) { return this.children[place].length > 0 }

  shapeSays(place) { return this.shape[place] < 0 ? '' : this.shapes[this.shape[place]] }

  // Of what a layer reads; "" where there is nothing of two sizes or more.
  weightSays(place) { return place in this.weight ? this.shapes[this.weight[place]] : '' }

  // From the whole's child down to the box itself.
  lineage(place) {
    const line = []
    for (let at = place; at > 0; at = this.parent[at]) line.push(at)
    return line.reverse()
  }

  // A path of a module that was folded into another's box means that box, inside of it, too. -1 where there is none.
  find(path) {
    const direct = this.places.get(path)
    if (direct !== undefined) return direct
    for (const [place, paths] of Object.entries(this.repeated)) {
      // Several neighbours in turn may be folded: the first of each kind are the ones that are drawn.
      const drawn = paths.length / this.repeat[place]
      const other = paths.findIndex((one, at) => at >= drawn && (path === one || path.startsWith(`${one}.`)))
      const inside = other < 0 ? -1 : this.find(paths[other % drawn] + path.slice(paths[other].length))
      if (inside >= 0) return inside
    }
    return -1
  }

  // Whole levels, as long as few boxes are to be seen.
  openAtFirst() {
    const open = new Set([0])
    let level = [0], shown = this.children[0].length
    for (;;) {
      level = level.flatMap((place) => this.children[place]).filter((place) => this.isGroup(place))
      const more = level.reduce((sum, place) => sum + this.children[place].length, 0)
      if (!more || shown + more > FIRST_BOXES) return open
      shown += more
      for (const place of level) open.add(place)
    }
  }

  openTo(depth) {
    const open = new Set([0])
    for (let place = 1; place < this.count; place++) if (this.depth[place] < depth && this.isGroup(place)) open.add(place)
    return open
  }

  // What is to be seen, in the order in which the keys go through it.
  inOrder(open) {
    const order = [], waiting = [...this.children[0]].reverse()
    while (waiting.length) {
      const place = waiting.pop()
      order.push(place)
      if (open.has(place)) for (let at = this.children[place].length - 1; at >= 0; at--) waiting.push(this.children[place][at])
    }
    return order
  }

  // Whose name it is stands first, then whose name, kind or path holds it; a path only where one is meant.
  search(query) {
    const wanted = query.trim().toLowerCase(), hits = [[], [], []]
    if (!wanted) return []
    const has = (text) => text.toLowerCase().includes(wanted), isPath = /[./]/.test(wanted)
    for (let place = 1; place < this.count; place++) {
      const label = this.label[place].toLowerCase()
      const rank = label === wanted || this.path[place].toLowerCase() === wanted ? 0 : label.includes(wanted) ? 1
        : has(this.kind[place]) || (isPath && (has(this.path[place]) || this.repeated[place]?.some(has))) ? 2 : -1
      if (rank >= 0) hits[rank].push(place)
    }
    return hits.flat()
  }
}
