// The drawing on a page: what is open, chosen, searched and coloured, and who is told.
import { Bar } from './bar.js'
import { asPng, asSvg, save } from './exporting.js'
import { Keys } from './keys.js'
import { HEAD } from './layout.js'
import { Scale, compact, stopsOf } from './colours.js'
import { filledIn, paletteOf } from './look.js'
import { Model } from './model.js'
import { Painter, make } from './paint.js'
import { Scene } from './scene.js'
import { Sizes } from './sizes.js'
import { View } from './view.js'

// For all layouts of one opening; then simple columns. What the worker does not notice itself ends it a little later.
const BUDGET = 3000, PATIENCE = 4500
const HINT = 'Click the drawing first, or hold Ctrl, to zoom with the wheel.'
let drawings = 0

export class Drawing {
  constructor(section) {
    this.section = section
    this.find = (name) => section.querySelector(name)
    this.tree = this.find('.tree')
    this.prefix = `drawing-${++drawings}-`
    this.turn = 0
    this.bar = new Bar(this)
    // Handed over as an object: a policy that allows no style in a page's text allows this.
    this.sheet = new CSSStyleSheet()
    section.getRootNode().adoptedStyleSheets.push(this.sheet)
    this.tree.addEventListener('keydown', (event) => this.press(event))
    // Of readers of the screen; pointers are heard by the view.
    this.tree.addEventListener('click', (event) => {
      const place = event.detail === 0 && Number(event.target.closest?.('[data-place]')?.dataset.place)
      if (place) this.choose(place)
    })
    this.tree.addEventListener('pointerleave', () => this.hover(-1))
    section.hidden = false
  }

  // One after the other: each may lay out.
  async update(data, send) {
    this.send = send
    const says = this.find('.says')
    says.textContent = data.says
    says.hidden = !data.says
    if (data.digest !== this.digest) {
      this.digest = data.digest
      // At first sight; what a visitor chose since stays.
      this.unitSteps = data.steps ?? {}
      this.column ??= data.coloured
      await this.begin(JSON.parse(data.drawn))
    }
    this.dress()
    if (data.chosen !== this.told) {
      this.told = data.chosen
      const place = data.chosen ? this.model.find(data.chosen) : -1
      if (place !== this.chosen) await this.show(place, { chosen: true })
    }
  }

  async begin(drawn) {
    this.end()
    this.began = performance.now()
    Object.assign(this, { chosen: -1, active: -1, hovered: -1, told: '', hits: [], at: -1 })
    this.model = new Model(drawn)
    this.keys = new Keys(this.model)
    this.palette = paletteOf(this.section)
    this.measure()
    this.look = { sizes: this.sizes, scale: null, chosen: -1, active: -1, hits: new Set(), told: (place) => this.says(place) }
    this.svg = make('svg', { role: 'none' })
    this.tree.replaceChildren(this.svg)
    this.tree.setAttribute('aria-label', `Drawing of ${this.model.label[0] || 'the network'}`)
    this.canvas()
    this.view = new View(this.tree, this.svg, () => this.painter.root, {
      paint: (area, k) => this.paint(area, k), pick: (x, y, isSecond) => this.pick(x, y, isSecond), hint: () => this.hint(),
      over: (x, y) => this.hover(this.scene.at(x, y)), size: () => ({ w: this.scene.w[0], h: this.scene.h[0] }),
      first: () => this.scene.x[this.order[0]] + this.scene.w[this.order[0]] / 2,
    })
    this.bar.begin()
    await this.layOut(this.model.openAtFirst())
    this.view.begin()
    this.bar.refresh()
    // Measured: for tests, and for whoever wonders.
    this.tree.dataset.drawn = Math.round(performance.now() - this.began)
    // Texts were measured in another font if the page's own came later.
    if (document.fonts.status !== 'loaded') document.fonts.ready.then(() => this.model.count < 5000 && this.remeasure())
  }

  measure() {
    this.sizes = new Sizes(this.model, this.palette)
    this.startWorker()
  }

  canvas() {
    this.scene = new Scene(this.model, this.sizes)
    this.painter = new Painter(this.scene, this.look, this.prefix)
    this.svg.replaceChildren(this.painter.root)
  }

  async remeasure() {
    const { open } = this.scene
    this.measure()
    this.look.sizes = this.sizes
    this.canvas()
    await this.layOut(open)
    this.view.begin()
  }

  // The theme may have changed between two runs.
  dress() {
    const palette = paletteOf(this.section), rules = filledIn({ ...palette, '--on-tint': 'var(--on-tint)' })
    if (this.rules !== rules) this.sheet.replaceSync(rules)
    this.rules = rules
    this.palette = palette
    this.colour(this.column ?? '')
  }

  startWorker() {
    this.worker?.terminate()
    this.worker = new Worker(new URL('worker.js', import.meta.url), { type: 'module' })
    const { children, depth, arrows, entries, exits } = this.model
    this.worker.postMessage({ tree: { children, depth, arrows, entries, exits, shapeWidths: this.sizes.shapeWidths } })
  }

  ask(open, milliseconds) {
    this.wide = this.tree.clientWidth > 640
    const { w, h, leasts } = this.sizes, turn = ++this.turn
    return new Promise((done, failed) => {
      const late = setTimeout(() => done(null), PATIENCE)
      this.worker.onmessage = ({ data }) => { if (data.turn === turn) { clearTimeout(late); done(data) } }
      this.worker.onerror = (event) => { clearTimeout(late); failed(new Error(event.message || 'The layout did not start.')) }
      this.worker.postMessage({ turn, open: [...open], w: Float64Array.from(w), h: Float64Array.from(h), leasts, milliseconds, wide: this.wide })
    })
  }

  // Opens exactly these; true where it is done, false where another opening came in between.
  async layOut(open) {
    let answer = await this.ask(open, BUDGET)
    if (!answer) {
      this.startWorker()
      answer = await this.ask(open, 0)
    }
    if (!answer || answer.turn !== this.turn) return false
    this.scene.take(answer, open, this.sizes)
    this.order = this.model.inOrder(open)
    this.simple = answer.simple
    this.tree.dataset.layout = Math.round(answer.took)
    return true
  }

  // Opens and folds, while the box `still` stays where it is on the screen.
  async reopen(open, still) {
    const { scene, view } = this, known = still > 0
    const before = known ? [scene.x[still] * view.k + view.x, scene.y[still] * view.k + view.y] : null
    if (!(await this.layOut(open))) return
    for (const name of ['chosen', 'active']) this[name] = this.visible(this[name])
    if (before) {
      view.x = before[0] - scene.x[still] * view.k
      view.y = before[1] - scene.y[still] * view.k
      view.reveal(scene.x[still], scene.y[still], scene.w[still], scene.h[still])
    }
    this.refresh()
  }

  // The box itself, or the closed one that it is in.
  visible(place) { return place < 0 ? -1 : this.model.lineage(place).find((one) => !this.scene.open.has(one)) ?? place }

  toggle(place) {
    const open = new Set(this.scene.open)
    if (open.has(place)) for (const one of [...open]) { if (one >= place && one <= place + this.model.within[place]) open.delete(one) }
    else open.add(place)
    this.active = place
    return this.reopen(open, place)
  }

  // Brings a box into sight, opening the way to it.
  async show(place, { chosen = false } = {}) {
    if (place > 0) {
      const way = this.model.lineage(place).slice(0, -1).filter((one) => !this.scene.open.has(one))
      if (way.length && !(await this.layOut(new Set([...this.scene.open, ...way])))) return
      const { x, y, w, h } = this.scene
      if (this.view.k < 0.6) this.view.zoom(0.9 / this.view.k)
      this.view.reveal(x[place], y[place], w[place], h[place], Math.min(90, this.view.height / 5))
      this.active = place
    }
    if (chosen) this.chosen = place
    this.refresh()
  }

  choose(place) {
    this.chosen = place
    if (place > 0) this.active = place
    this.told = place > 0 ? this.model.path[place] : ''
    if (place > 0) this.send('chosen', this.told)
    this.refresh()
  }

  pick(x, y, isSecond) {
    const place = this.scene.at(x, y), { model, scene } = this
    if (place < 0) return
    const isOnSign = model.isGroup(place) && x - scene.x[place] < 25 && (!scene.open.has(place) || y - scene.y[place] < HEAD)
    if (isOnSign ? !isSecond : isSecond && model.isGroup(place)) this.toggle(place)
    else if (!isSecond) this.choose(place)
  }

  press(event) {
    const wish = this.keys.press(event, this.active, this.order, this.scene.open)
    if (!wish) return
    event.preventDefault()
    const [[what, value] = []] = Object.entries(wish)
    if (what === 'to') this.show(value)
    else if (what === 'open' || what === 'fold') this.toggle(value)
    else if (what === 'choose') this.choose(value)
    else if (what === 'zoom') this.view.zoom(value)
  }

  hover(place) {
    if (place === this.hovered) return
    this.hovered = place
    this.painter.paintNear(place > 0 ? place : this.chosen)
    this.bar.status()
  }

  hint() {
    const hint = this.find('.hint')
    hint.textContent = HINT
    hint.hidden = false
    clearTimeout(this.hiding)
    this.hiding = setTimeout(() => { hint.hidden = true }, 1600)
  }

  // What stands behind a number of the column that is drawn.
  get steps() { return this.unitSteps[this.column] }

  colour(column) {
    this.column = this.model.columns[column] ? column : ''
    this.look.column = this.column
    this.look.scale = this.column ? new Scale(this.model.columns[this.column], stopsOf(this.section)) : null
    this.refresh()
  }

  search(query) {
    this.hits = this.model.search(query)
    this.at = -1
    this.look.hits = new Set(this.hits)
    this.refresh()
  }

  async step(by) {
    if (!this.hits.length) return
    this.at = this.at < 0 && by < 0 ? this.hits.length - 1 : (this.at + by + this.hits.length) % this.hits.length
    await this.show(this.hits[this.at])
  }

  refresh() {
    Object.assign(this.look, { chosen: this.chosen, active: this.active })
    this.view.repaint()
    this.bar.refresh()
  }

  paint(area, k) {
    this.painter.paint(area, k)
    this.painter.paintNear(this.hovered > 0 ? this.hovered : this.chosen)
    if (this.painter.boxes.has(this.active)) this.tree.setAttribute('aria-activedescendant', `${this.prefix}${this.active}`)
    else this.tree.removeAttribute('aria-activedescendant')
  }

  // What a box says of itself, for the line below and for readers of the screen.
  facts(place) {
    const { model } = this, inside = model.children[place].length, repeat = model.repeat[place]
    const value = this.column ? model.columns[this.column][place] : undefined
    return [
      model.kind[place] === model.label[place] ? '' : model.kind[place],
      model.weightSays(place) ? `weights ${model.weightSays(place)}` : '',
      repeat > 1 ? `${repeat} times` : '',
      model.shape[place] < 0 ? '' : `gives ${model.shapeSays(place)}`,
      inside ? `${inside} ${inside === 1 ? 'box' : 'boxes'} inside` : '',
      value === undefined ? '' : value === null ? `${this.column} not known` : `${compact(value, this.steps)} ${this.column}${repeat > 1 ? ' each' : ''}`,
    ].filter(Boolean)
  }

  // Begins with the words of the box in their order, so that who speaks to the page may say them.
  says(place) {
    const { sizes, model } = this, times = model.repeat[place] > 1 ? `×${model.repeat[place]}` : '', kind = sizes.kinds[place]
    const whole = model.label[place] === sizes.labels[place] ? '' : model.label[place]
    const more = this.facts(place).filter((fact) => fact !== kind && fact !== `${model.repeat[place]} times`)
    return [sizes.labels[place], times, kind, whole, ...more].filter(Boolean).join(', ')
  }

  async save(kind) {
    const name = (this.model.label[0] || 'network').replace(/[^\w.-]+/g, '_').slice(0, 80)
    const svg = asSvg(this.scene, this.look, this.palette, this.model.label[0] || 'Network', this.look.scale ? this.bar.legendSays() : '')
    if (kind === 'svg') { save(new Blob([svg.text], { type: 'image/svg+xml' }), `${name}.svg`); return }
    try {
      const { blob, scale } = await asPng(svg)
      save(blob, `${name}.png`)
      if (scale < 2) this.bar.note(`The picture has ${scale.toFixed(2)} times the drawing's size: a browser holds no larger one.`)
    } catch (error) { this.bar.note(`${error.message || 'The picture could not be made.'} Fold some boxes, or take the SVG.`) }
  }

  end() {
    this.view?.end()
    this.worker?.terminate()
    this.worker = null
  }
}
