// Which part of the drawing is on the screen: dragged, pinched, zoomed by the wheel and by buttons.
const LEAST = 0.002, MOST = 3, MARGIN = 260, STILL = 4, TWICE = 350
const NOTCH = 1.0016
// Below this a box's kind is no longer read, and shapes are left out.
const READABLE = 0.8

// handlers: paint(area, k) when another part is to be drawn; pick(x, y, isSecond) of a click in the drawing's own units;
// over(x, y) of the pointer; size() -> {w, h} of the drawing; first() -> the middle of its first box; hint() when the wheel was turned without the focus.
export class View {
  constructor(stage, svg, root, handlers) {
    Object.assign(this, { stage, svg, root, handlers, k: 1, x: 0, y: 0, drawn: null, held: new Map(), last: null, frame: 0 })
    stage.addEventListener('pointerdown', (event) => this.hold(event))
    stage.addEventListener('pointermove', (event) => this.move(event))
    for (const name of ['pointerup', 'pointercancel']) stage.addEventListener(name, (event) => this.letGo(event))
    stage.addEventListener('wheel', (event) => this.wheel(event), { passive: false })
    this.watch = new ResizeObserver(() => this.resized())
    this.watch.observe(stage)
  }

  end() {
    this.watch.disconnect()
    cancelAnimationFrame(this.frame)
    clearTimeout(this.later)
  }

  get width() { return this.stage.clientWidth }
  get height() { return this.stage.clientHeight }

  // What stood in the middle stays there.
  resized() {
    if (!this.width) return
    const before = this.room
    this.room = this.width
    if (this.waitsForRoom) { this.begin(); return }
    if (!this.drawn) return
    if (before) this.x += (this.width - before) / 2
    this.repaint()
  }

  // Shows all of it where that can be read, else its beginning.
  begin() {
    this.waitsForRoom = !this.width
    if (this.waitsForRoom) return
    const { w, h } = this.handlers.size(), whole = Math.min(1, (this.width - 40) / w, (this.height - 40) / h)
    if (whole >= READABLE) { this.fit(); return }
    this.k = Math.max(READABLE, Math.min(1, (this.width - 40) / w))
    const room = this.width - w * this.k
    this.x = room > 0 ? room / 2 : Math.max(room - 20, Math.min(20, this.width / 2 - this.handlers.first() * this.k))
    this.y = 20
    this.repaint()
  }

  fit() {
    const { w, h } = this.handlers.size()
    this.k = Math.max(LEAST, Math.min(1, (this.width - 40) / w, (this.height - 40) / h))
    this.x = (this.width - w * this.k) / 2
    this.y = (this.height - h * this.k) / 2
    this.repaint()
  }

  zoom(factor, atX = this.width / 2, atY = this.height / 2) {
    const k = Math.min(MOST, Math.max(LEAST, this.k * factor))
    this.x = atX - ((atX - this.x) * k) / this.k
    this.y = atY - ((atY - this.y) * k) / this.k
    this.k = k
    this.refresh()
  }

  pan(dx, dy) {
    this.x += dx
    this.y += dy
    this.refresh()
  }

  // As little as brings a rectangle into sight, its upper left corner if it is too large.
  reveal(left, top, w, h, room = 24) {
    const put = (at, size, from, whole) => {
      const first = at * this.k + from, last = first + size * this.k
      if (last - first > whole - 2 * room || first < room) return first < room || first > whole * 0.6 ? room - first : 0
      return last > whole - room ? whole - room - last : 0
    }
    this.x += put(left, w, this.x, this.width)
    this.y += put(top, h, this.y, this.height)
    this.refresh()
  }

  // At most once per frame; what was drawn is only moved as long as it reaches.
  refresh() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0
      const { drawn } = this, dx = this.x - (drawn?.x ?? 0), dy = this.y - (drawn?.y ?? 0)
      if (drawn?.k !== this.k || Math.abs(dx) > MARGIN || Math.abs(dy) > MARGIN) { this.repaint(); return }
      this.svg.style.transform = `translate(${dx}px, ${dy}px)`
    })
  }

  repaint() {
    const { k, x, y, width, height } = this
    if (!width) return
    this.drawn = { k, x, y }
    const wide = width + 2 * MARGIN, high = height + 2 * MARGIN
    this.svg.setAttribute('width', wide)
    this.svg.setAttribute('height', high)
    this.svg.style.left = this.svg.style.top = `${-MARGIN}px`
    this.svg.style.transform = ''
    this.root().setAttribute('transform', `translate(${x + MARGIN} ${y + MARGIN}) scale(${k})`)
    this.handlers.paint({ left: (-MARGIN - x) / k, top: (-MARGIN - y) / k, right: (width + MARGIN - x) / k, bottom: (height + MARGIN - y) / k }, k)
  }

  place(event) {
    const { left, top } = this.stage.getBoundingClientRect(), atX = event.clientX - left, atY = event.clientY - top
    return { atX, atY, x: (atX - this.x) / this.k, y: (atY - this.y) / this.k }
  }

  hold(event) {
    if (event.button) return
    this.stage.setPointerCapture(event.pointerId)
    this.held.set(event.pointerId, { x: event.clientX, y: event.clientY, from: [event.clientX, event.clientY], moved: this.held.size > 0 })
  }

  move(event) {
    const own = this.held.get(event.pointerId)
    if (!own) { const { x, y } = this.place(event); this.handlers.over(x, y); return }
    const dx = event.clientX - own.x, dy = event.clientY - own.y
    if (!own.moved && Math.hypot(event.clientX - own.from[0], event.clientY - own.from[1]) < STILL) return
    own.moved = true
    const other = [...this.held.entries()].find(([id]) => id !== event.pointerId)?.[1]
    if (other) {
      const { left, top } = this.stage.getBoundingClientRect()
      const before = Math.hypot(own.x - other.x, own.y - other.y), after = Math.hypot(event.clientX - other.x, event.clientY - other.y)
      this.pan(dx / 2, dy / 2)
      if (before > 1) this.zoom(after / before, (event.clientX + other.x) / 2 - left, (event.clientY + other.y) / 2 - top)
    } else this.pan(dx, dy)
    own.x = event.clientX
    own.y = event.clientY
    this.stage.classList.add('held')
  }

  letGo(event) {
    const own = this.held.get(event.pointerId)
    this.held.delete(event.pointerId)
    if (!this.held.size) this.stage.classList.remove('held')
    if (!own || own.moved || event.type === 'pointercancel') return
    const { atX, atY, x, y } = this.place(event), now = performance.now()
    const isSecond = Boolean(this.last) && now - this.last.when < TWICE && Math.hypot(atX - this.last.atX, atY - this.last.atY) < 8
    this.last = isSecond ? null : { atX, atY, when: now }
    this.handlers.pick(x, y, isSecond)
  }

  // A page is scrolled past the drawing by the wheel; who has clicked into it means the drawing.
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey && !this.stage.matches(':focus')) { this.handlers.hint(); return }
    event.preventDefault()
    const { atX, atY } = this.place(event), lines = event.deltaMode === 1 ? 30 : 1
    this.zoom(NOTCH ** (-event.deltaY * lines * (event.ctrlKey ? 2 : 1)), atX, atY)
  }
}
