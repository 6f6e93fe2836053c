// How large a closed box is, and its texts as far as they fit in it.
const WIDEST = 216, SIDE = 11, SIGN = 20, STEP = 8
export const ONE_LINE = 28, TWO_LINES = 42

export class Sizes {
  constructor(model, fonts) {
    this.model = model
    const context = document.createElement('canvas').getContext('2d'), known = new Map()
    this.width = (text, font) => {
      const name = font + text
      if (!known.has(name)) { context.font = font; known.set(name, context.measureText(text).width) }
      return known.get(name)
    }
    this.fonts = { label: `600 12.5px ${fonts['--mono']}`, kind: `11px ${fonts['--sans']}`, times: `700 11px ${fonts['--sans']}`, shape: `10.5px ${fonts['--mono']}` }
    const { count } = model
    this.w = new Array(count)
    this.h = new Array(count)
    this.leasts = new Array(count)
    this.labels = new Array(count)
    this.kinds = new Array(count)
    for (let place = 0; place < count; place++) this.measure(place)
    this.shapeWidths = model.shapes.map((shape) => Math.ceil(this.width(shape, this.fonts.shape)) + 4)
  }

  measure(place) {
    const { model, fonts } = this, isGroup = model.isGroup(place)
    const times = this.timesWidth(place), side = SIDE * 2 + (isGroup ? SIGN : 0)
    const own = model.kind[place] === model.label[place] ? '' : model.kind[place], kind = [own, model.weightSays(place)].filter(Boolean).join(' ')
    this.labels[place] = this.shortened(model.label[place], fonts.label, WIDEST - side - times)
    this.kinds[place] = this.shortened(kind, fonts.kind, WIDEST - side)
    const label = this.width(this.labels[place], fonts.label) + times, under = this.width(this.kinds[place], fonts.kind)
    this.w[place] = Math.max(56, Math.ceil((Math.max(label, under) + side) / STEP) * STEP)
    this.h[place] = kind ? TWO_LINES : ONE_LINE
    this.leasts[place] = Math.ceil((label + under + side + 12) / STEP) * STEP
  }

  timesWidth(place) {
    const repeat = this.model.repeat[place]
    return repeat > 1 ? this.width(`×${repeat}`, this.fonts.times) + 8 : 0
  }

  // In the middle, where names differ least from each other.
  shortened(text, font, room) {
    if (this.width(text, font) <= room) return text
    let keep = text.length - 1
    const cut = () => `${text.slice(0, Math.floor(keep * 0.4))}…${text.slice(text.length - Math.ceil(keep * 0.6))}`
    keep = Math.min(keep, Math.ceil((room / this.width(text.slice(0, 60), font)) * Math.min(60, text.length)) + 2)
    while (keep > 2 && this.width(cut(), font) > room) keep--
    return cut()
  }
}
