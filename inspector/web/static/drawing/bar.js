// The controls above the drawing, the way to the chosen box, the line and the legend below.
import { compact } from './colours.js'
import { NAMES, familyOf } from './families.js'

export class Bar {
  constructor(drawing) {
    this.drawing = drawing
    const { find } = drawing, query = find('.query'), column = find('.column')
    let later = 0
    query.addEventListener('input', () => { clearTimeout(later); later = setTimeout(() => drawing.search(query.value), 120) })
    query.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter') return
      event.preventDefault()
      clearTimeout(later)
      if (this.searched !== query.value) drawing.search(query.value)
      this.searched = query.value
      drawing.step(event.shiftKey ? -1 : 1)
    })
    column.addEventListener('change', () => drawing.colour(column.value))
    const deeds = {
      'hit-before': () => drawing.step(-1), 'hit-after': () => drawing.step(1), fit: () => drawing.view.fit(),
      smaller: () => drawing.view.zoom(0.8), larger: () => drawing.view.zoom(1.25),
      deeper: () => this.reopen(drawing.model.openTo(this.firstClosed() + 1)), shallower: () => this.reopen(drawing.model.openTo(this.deepest())),
      svg: () => drawing.save('svg'), png: () => drawing.save('png'),
    }
    for (const [name, deed] of Object.entries(deeds)) this.button(name).addEventListener('click', () => { this.noted = ''; deed() })
  }

  button(name) { return this.drawing.find(`[data-do="${name}"]`) }

  begin() {
    const { drawing } = this, names = Object.keys(drawing.model.columns), select = drawing.find('.column')
    select.replaceChildren(...['', ...names].map((name) => new Option(name || 'kind', name)))
    drawing.column = names.includes(drawing.column) ? drawing.column : ''
    select.value = drawing.column
    drawing.find('.colour').hidden = !names.length
    this.families = Object.keys(NAMES).filter((family) => drawing.model.kind.some((kind) => familyOf(kind) === family))
    drawing.find('.query').value = ''
    this.searched = ''
    this.noted = ''
  }

  async reopen(open) {
    const { drawing } = this
    await drawing.reopen(open, drawing.visible(drawing.chosen))
    if (drawing.chosen < 0) drawing.view.begin()
  }

  // How deep the deepest open box is, and how deep the first closed one that could be opened.
  deepest() { return [...this.drawing.scene.open].reduce((most, place) => Math.max(most, this.drawing.model.depth[place]), 0) }
  firstClosed() {
    const { model, scene, order } = this.drawing
    return order.reduce((least, place) => (model.isGroup(place) && !scene.open.has(place) ? Math.min(least, model.depth[place]) : least), Infinity)
  }

  refresh() {
    const { drawing } = this, { find, model, hits, at } = drawing
    const shown = this.deepest()
    find('.depth').textContent = `depth ${shown + 1} of ${model.deepest + 1}`
    this.button('deeper').disabled = this.firstClosed() === Infinity
    this.button('shallower').disabled = shown === 0
    const asked = find('.query').value.trim()
    find('.hits').textContent = !asked ? '' : at >= 0 ? `${at + 1} of ${hits.length}` : hits.length === 1 ? '1 hit' : `${hits.length} hits`
    for (const name of ['hit-before', 'hit-after']) this.button(name).disabled = !hits.length
    this.crumbs()
    this.legend()
    this.familyLegend()
    this.status()
  }

  crumbs() {
    const { drawing } = this, { model } = drawing, at = drawing.active > 0 ? drawing.active : drawing.chosen
    const line = at > 0 ? model.lineage(at) : [], all = [0, ...line], says = all.join()
    if (this.crumbsOf === says && drawing.find('.crumbs').childElementCount) return
    this.crumbsOf = says
    drawing.find('.crumbs').replaceChildren(...all.flatMap((place, nth) => {
      const crumb = document.createElement('button'), next = document.createElement('i')
      crumb.type = 'button'
      crumb.textContent = model.label[place] || 'network'
      if (nth === all.length - 1) crumb.setAttribute('aria-current', 'location')
      crumb.addEventListener('click', () => (place ? drawing.show(place) : drawing.view.fit()))
      next.textContent = '›'
      next.setAttribute('aria-hidden', 'true')
      return nth ? [next, crumb] : [crumb]
    }))
    drawing.find('.crumbs').scrollLeft = 1e6
  }

  legendSays() {
    const { column, steps, look: { scale } } = this.drawing
    return `Coloured by ${column}: ${compact(scale.least, steps)} to ${compact(scale.most, steps)}${scale.isLog ? ', logarithmic' : ''}`
  }

  legend() {
    const { drawing } = this, legend = drawing.find('.legend'), { scale } = drawing.look
    legend.hidden = !scale
    if (!scale) return
    const name = document.createElement('b'), ramp = document.createElement('i'), ends = document.createElement('span'), note = document.createElement('small')
    name.textContent = drawing.column
    ramp.style.background = scale.gradient
    for (const value of scale.isEmpty ? [] : [scale.least, scale.most]) {
      const end = document.createElement('span')
      end.textContent = compact(value, drawing.steps)
      ends.append(end)
    }
    note.textContent = scale.isEmpty ? 'known of no box' : scale.isLog ? 'logarithmic' : ''
    legend.replaceChildren(name, ramp, ends, ...(note.textContent ? [note] : []))
  }

  // Only what the network has.
  familyLegend() {
    const { find, palette, look: { scale } } = this.drawing
    find('.families').hidden = Boolean(scale) || !this.families.length
    find('.families').replaceChildren(...this.families.map((family) => {
      const item = document.createElement('li'), chip = document.createElement('i')
      chip.style.background = palette[`--${family}`]
      chip.style.borderColor = palette[`--${family}-edge`]
      item.append(chip, NAMES[family])
      return item
    }))
  }

  note(says) {
    this.noted = says
    this.status()
  }

  status() {
    const { drawing } = this, { model } = drawing, line = drawing.find('.status')
    const place = drawing.hovered > 0 ? drawing.hovered : drawing.active > 0 ? drawing.active : drawing.chosen
    const name = document.createElement('code'), rest = document.createElement('span')
    name.textContent = place > 0 && !this.noted ? model.path[place] : ''
    const simple = drawing.simple ? `In ${drawing.simple === 1 ? 'one box' : `${drawing.simple} boxes`} the layout would take too long: simple columns. ` : ''
    rest.textContent = this.noted || (place > 0 ? ` ${drawing.facts(place).join(' · ')}` : `${simple}${(model.count - 1).toLocaleString('en')} boxes, ${drawing.order?.length.toLocaleString('en') ?? 0} shown. Double click or + opens a box, arrow keys walk.`)
    line.replaceChildren(name, rest)
  }
}
