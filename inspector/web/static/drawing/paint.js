// Draws what is in sight as SVG, and keeps what was drawn already.
import { bow, curve } from './curves.js'
import { familyOf } from './families.js'
import { HEAD } from './layout.js'

const SVG = 'http://www.w3.org/2000/svg'
export const make = (name, attributes = {}, text) => {
  const made = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  if (text !== undefined) made.textContent = text
  return made
}

// Smaller than this on the screen (px): a box has no text, an open one no inside, an arrow no shape.
const LEAST_TEXT = 5.2, LEAST_INSIDE = 20, LEAST_SHAPE = 7.5
const SIGN_ROOM = 20

// Groups do several things, unless they are known as one.
const classOf = (model, place) => {
  const family = familyOf(model.kind[place])
  if (model.isGroup(place) && (family !== 'weights' || !model.isModule[place])) return ''
  return family === 'shape' ? 'shape-change' : family
}

// look: {sizes, column, scale, chosen, active, hits, told(place)}: what boxes say and how they are coloured.
export class Painter {
  constructor(scene, look, prefix) {
    this.scene = scene
    this.look = look
    this.prefix = prefix
    this.root = make('g')
    this.layers = []
    this.near = make('g', { class: 'near', 'aria-hidden': 'true' })
    this.boxes = new Map()
    this.insides = new Map()
    this.root.append(this.near)
  }

  layer(depth) {
    while (this.layers.length <= depth) {
      const lines = make('g', { 'aria-hidden': 'true' }), boxes = make('g', { role: 'none' })
      this.layers.push({ lines, boxes })
      this.root.insertBefore(lines, this.near)
      this.root.insertBefore(boxes, this.near)
    }
    return this.layers[depth]
  }

  // Everything in the area; k: pixels per unit.
  paint(area, k) {
    const boxes = new Set(), insides = new Set(), { model } = this.scene
    this.scene.visit(area, LEAST_INSIDE / k, {
      box: (place) => { boxes.add(place); this.paintBox(place, 12.5 * k >= LEAST_TEXT, k) },
      group: (place) => { insides.add(place); this.paintInside(place, 10.5 * k >= LEAST_SHAPE) },
    })
    for (const [place, drawn] of this.boxes) if (!boxes.has(place)) { drawn.element.remove(); this.boxes.delete(place) }
    for (const [place, drawn] of this.insides) if (!insides.has(place)) { drawn.element.remove(); this.insides.delete(place) }
    return { boxes: boxes.size, groups: insides.size, of: model.count }
  }

  paintBox(place, hasText, k) {
    const { scene, look } = this, { x, y, w, h } = scene, isOpen = scene.open.has(place)
    const tint = look.scale?.of(place), isChosen = look.chosen === place, isActive = look.active === place, isHit = look.hits.has(place)
    // An open box so small that nothing in it is drawn is a plain one.
    const isBlock = isOpen && Math.min(h[place], w[place]) * k <= LEAST_INSIDE
    const says = [w[place], h[place], isOpen, hasText, look.column, tint?.fill, isChosen, isActive, isHit, isBlock].join()
    let drawn = this.boxes.get(place)
    if (!drawn || drawn.says !== says) {
      const element = this.box(place, { isOpen, hasText, tint, isChosen, isActive, isHit, isBlock })
      if (drawn) drawn.element.replaceWith(element)
      else this.layer(scene.model.depth[place]).boxes.append(element)
      drawn = { element, says, at: '' }
      this.boxes.set(place, drawn)
    }
    const at = `translate(${x[place]} ${y[place]})`
    if (drawn.at !== at) { drawn.element.setAttribute('transform', at); drawn.at = at }
  }

  box(place, { isOpen, hasText, tint, isChosen, isActive, isHit, isBlock }) {
    const { scene, look } = this, { model } = scene, { sizes } = look, w = scene.w[place], h = scene.h[place]
    const classes = ['box', isOpen ? 'open' : '', model.isModule[place] ? '' : 'node', isChosen ? 'chosen' : '', isActive ? 'active' : '', isHit ? 'hit' : '', look.scale || isOpen ? '' : classOf(model, place), isBlock ? 'block' : '', tint ? 'tinted' : '']
    const element = make('g', { class: classes.filter(Boolean).join(' '), 'data-place': place })
    this.describe(element, place, isOpen)
    const radius = model.isModule[place] || isOpen ? 6 : Math.min(14, h / 2)
    if (model.repeat[place] > 1) for (const by of [6, 3]) element.append(make('rect', { class: 'behind', x: by, y: by, width: w, height: h, rx: radius }))
    const face = make('rect', { class: 'face', width: w, height: h, rx: radius })
    element.append(face)
    if (isChosen || isActive) element.append(make('rect', { class: 'ring', x: -3.5, y: -3.5, width: w + 7, height: h + 7, rx: radius + 3.5 }))
    if (tint && (!isOpen || isBlock)) face.style.fill = tint.fill
    if (isOpen && !isBlock) {
      const head = make('path', { class: 'head', d: `M1 ${HEAD - 2}V6a5 5 0 0 1 5-5h${w - 12}a5 5 0 0 1 5 5v${HEAD - 8}z` })
      if (tint) head.style.fill = tint.fill
      element.append(head)
    }
    if (!hasText || isBlock) return element
    const words = make('g', { 'aria-hidden': 'true' })
    if (tint) words.style.setProperty('--on-tint', tint.text)
    this.write(words, place, isOpen, w, h)
    element.append(words)
    return element
  }

  write(words, place, isOpen, w, h) {
    const { scene: { model }, look: { sizes } } = this, isGroup = model.isGroup(place)
    const label = sizes.labels[place], kind = sizes.kinds[place], repeat = model.repeat[place]
    const labelWidth = sizes.width(label, sizes.fonts.label)
    const times = repeat > 1 ? `×${repeat}` : '', timesWidth = sizes.timesWidth(place)
    const left = isGroup ? SIGN_ROOM : 0
    const line = isOpen ? HEAD / 2 + 4 : kind ? h / 2 - 4 : h / 2 + 4.5
    const centre = left + (w - left) / 2, from = isOpen ? left + 8 : centre - (labelWidth + timesWidth) / 2
    // Anchored in the middle where it stands there: an export is shown in fonts of other widths.
    words.append(make('text', isOpen || times ? { class: 'label', x: from, y: line } : { class: 'label', x: centre, y: line, 'text-anchor': 'middle' }, label))
    // Between them for who reads the words without their places.
    words.append(' ')
    if (times) words.append(make('text', { class: 'times', x: from + labelWidth + 8, y: line }, times))
    words.append(' ')
    if (kind) words.append(make('text', isOpen ? { class: 'kind', x: from + labelWidth + timesWidth + 9, y: line } : { class: 'kind', x: centre, y: h / 2 + 12.5, 'text-anchor': 'middle' }, kind))
    if (!isGroup) return
    const middle = isOpen ? HEAD / 2 - 1 : h / 2, sign = make('g', { class: 'toggle' })
    sign.append(make('rect', { class: 'sign-face', x: 0, y: 0, width: SIGN_ROOM + 5, height: isOpen ? HEAD : h }))
    sign.append(make('rect', { class: 'sign', x: 8, y: middle - 6, width: 12, height: 12, rx: 2.5 }))
    sign.append(make('path', { class: 'sign', d: `M10.8 ${middle}h6.4${isOpen ? '' : `M14 ${middle - 3.2}v6.4`}` }))
    words.append(sign)
  }

  // For readers of the screen; keys go through the same boxes.
  describe(element, place, isOpen) {
    const { model } = this.scene
    element.id = `${this.prefix}${place}`
    element.setAttribute('role', 'treeitem')
    element.setAttribute('aria-level', model.depth[place])
    element.setAttribute('aria-posinset', model.nth[place] + 1)
    element.setAttribute('aria-setsize', model.children[model.parent[place]].length)
    element.setAttribute('aria-selected', String(this.look.chosen === place))
    if (model.isGroup(place)) element.setAttribute('aria-expanded', String(isOpen))
    element.setAttribute('aria-label', this.look.told(place))
  }

  paintInside(place, hasShapes) {
    const { scene } = this, { model } = scene, layout = scene.layout(place)
    const says = `${layout.serial} ${hasShapes} ${place ? scene.x[place] : 0} ${place ? scene.y[place] : 0}`
    let drawn = this.insides.get(place)
    if (drawn?.says === says) return
    const element = make('g', { transform: place ? `translate(${scene.x[place]} ${scene.y[place]})` : '' })
    if (!layout.paths) {
      const curves = layout.lines.map(({ points }) => curve(points))
      layout.paths = { line: curves.map(({ line }) => line).join(''), tip: curves.map(({ tip }) => tip).join('') }
    }
    if (layout.paths.line) element.append(make('path', { class: 'line', d: layout.paths.line }), make('path', { class: 'tip', d: layout.paths.tip }))
    const arrows = model.arrows[place] ?? []
    if (hasShapes) {
      for (const { arrow, x, y } of layout.labels) {
        const count = arrows[4 * arrow + 3]
        element.append(make('text', { class: 'shape', x, y }, model.shapes[arrows[4 * arrow + 2]] + (count > 1 ? ` ×${count}` : '')))
      }
    }
    if (drawn) drawn.element.replaceWith(element)
    else this.layer(model.depth[place] + 1).lines.append(element)
    this.insides.set(place, { element, says })
  }

  // The arrows of one box above all others, with those that are drawn for it alone. -1: of none.
  paintNear(place) {
    this.near.replaceChildren()
    const found = place > 0 ? this.scene.arrowsAt(place) : null
    if (!found) return
    const { scene } = this, { x, y, w, h } = scene, children = scene.model.children[found.group]
    const [fromX, fromY] = found.group ? [x[found.group], y[found.group]] : [0, 0]
    const side = (child) => ({ left: x[child] - fromX, right: x[child] + w[child] - fromX, y: y[child] + h[child] / 2 - fromY })
    const group = make('g', { transform: `translate(${fromX} ${fromY})` })
    for (const { line, tip } of found.lines.map(curve)) group.append(make('path', { class: 'line', d: line }), make('path', { class: 'tip', d: tip }))
    for (const [from, to] of found.unseen) {
      const { line, tip } = bow(side(children[from]), side(children[to]))
      group.append(make('path', { class: 'line unseen', d: line }), make('path', { class: 'tip', d: tip }))
    }
    this.near.append(group)
  }
}
