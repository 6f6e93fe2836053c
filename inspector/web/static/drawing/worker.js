// Lays out all open boxes, children first, beside the page: each distinct inside once.
import * as dagre from '../vendor/dagre.esm.js'
import { HEAD, layOut } from './layout.js'

// This part of the time is kept for the first two levels.
const DEEP = 0.3
let tree = null
const ids = new Map(), layouts = []

// Of the count behind a shape.
const timesWidth = (count) => (count > 1 ? 7 * (2 + String(count).length) : 0)

// place: of an open box. Sizes of its children are known by now.
const groupOf = (place, { w, h, leasts, wide }, places) => {
  const own = tree.children[place], arrows = tree.arrows[place] ?? [], flat = [], shapes = new Map()
  for (let at = 0; at < arrows.length; at += 4) {
    const shape = arrows[at + 2]
    // By the order in which they come: other shapes of the same widths are the same layout.
    if (!shapes.has(shape)) shapes.set(shape, shapes.size)
    flat.push(arrows[at], arrows[at + 1], shape < 0 ? 0 : tree.shapeWidths[shape] + timesWidth(arrows[at + 3]), shapes.get(shape))
  }
  return {
    w: own.map((child) => w[child]), h: own.map((child) => h[child]), arrows: flat,
    entries: place ? tree.entries[place] ?? [] : [], exits: place ? tree.exits[place] ?? [] : [],
    // Where lines go on inside of an open child, from its own left side.
    ports: own.map((child) => places.get(child) ?? null), head: place ? HEAD : 0, least: place ? leasts[place] : 0, wide,
  }
}

const answer = (asked) => {
  const { turn, open, w, h, milliseconds } = asked, ports = new Map()
  const end = performance.now() + milliseconds, began = performance.now()
  const places = [], of = [], fresh = []
  let simple = 0
  // Parents stand before their children: backwards, children come first.
  for (const place of open.sort((a, b) => b - a)) {
    const group = groupOf(place, asked, ports), name = JSON.stringify(group)
    let id = ids.get(name)
    if (id === undefined) {
      id = layouts.length
      // The first levels are laid out last, and seen first.
      layouts.push(layOut(dagre, group, end - performance.now() - (tree.depth[place] > 1 ? DEEP * milliseconds : 0)))
      fresh.push([id, layouts[id]])
      // One that was laid out in a hurry may be laid out again.
      if (!layouts[id].simple) ids.set(name, id)
    }
    simple += layouts[id].simple ? 1 : 0
    places.push(place)
    of.push(id)
    ports.set(place, layouts[id].ports)
    w[place] = layouts[id].w
    h[place] = layouts[id].h
  }
  postMessage({ turn, places, of, fresh, simple, took: performance.now() - began })
}

onmessage = ({ data }) => {
  if (data.tree) tree = data.tree
  else answer(data)
}
