// The keys of a tree (WAI-ARIA's pattern): where the active box goes, and what is to be done with it.
const TYPED = 700

export class Keys {
  constructor(model) {
    this.model = model
    this.typed = ''
    this.when = 0
  }

  // Gives {to: place} or {open|fold|choose: place} or {zoom: factor}; null for a key that is not meant for the tree.
  press(event, active, order, open) {
    if (event.ctrlKey || event.metaKey || event.altKey) return null
    const { model } = this, at = order.indexOf(active), { key } = event
    const isGroup = active > 0 && model.isGroup(active), isOpen = open.has(active)
    const to = (nth) => ({ to: order[Math.min(Math.max(nth, 0), order.length - 1)] })
    if (at < 0) return ['ArrowDown', 'ArrowUp', 'ArrowRight', 'Home', 'Enter', ' '].includes(key) ? to(0) : key === 'End' ? to(order.length - 1) : this.type(key, -1, order)
    switch (key) {
      case 'ArrowDown': return to(at + 1)
      case 'ArrowUp': return to(at - 1)
      case 'Home': return to(0)
      case 'End': return to(order.length - 1)
      case 'ArrowRight': return !isGroup ? {} : isOpen ? { to: model.children[active][0] } : { open: active }
      case 'ArrowLeft': return isOpen ? { fold: active } : model.parent[active] > 0 ? { to: model.parent[active] } : {}
      case 'Enter': return { choose: active }
      case ' ': return isOpen ? { fold: active } : isGroup ? { open: active } : { choose: active }
      case '+': return { zoom: 1.25 }
      case '-': return { zoom: 0.8 }
      default: return this.type(key, at, order)
    }
  }

  // The next box whose name begins with what was typed of late.
  type(key, at, order) {
    if (key.length !== 1 || key === ' ') return null
    const now = performance.now()
    this.typed = now - this.when < TYPED ? this.typed + key.toLowerCase() : key.toLowerCase()
    this.when = now
    // The same letter again means the next one that begins with it.
    const isSame = [...this.typed].every((one) => one === this.typed[0]), wanted = isSame ? this.typed[0] : this.typed
    const first = isSame ? at + 1 : Math.max(at, 0)
    for (let step = 0; step < order.length; step++) {
      const place = order[(first + step) % order.length]
      if (this.model.label[place].toLowerCase().startsWith(wanted)) return { to: place }
    }
    return {}
  }
}
