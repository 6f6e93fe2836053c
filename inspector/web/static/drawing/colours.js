// A colour for each number of a column: dark is little, bright is much, as in viridis; the text on it is black or white.
const FALLBACK = ['#440154', '#482878', '#3e4a89', '#31688e', '#26828e', '#1f9e89', '#35b779', '#6dcd59', '#b4de2c', '#fde725']
// From this ratio on the smaller ones would all look alike.
const WIDE = 100

export const stopsOf = (host) => {
  const told = getComputedStyle(host).getPropertyValue('--st-chart-sequential-colors').match(/#[0-9a-f]{6}/gi)
  return told && told.length > 2 ? told : FALLBACK
}
const channelsOf = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16))

// values: a number or null per box. The whole network (place 0) is no part of the scale.
export class Scale {
  constructor(values, stops) {
    this.values = values
    this.stops = stops.map(channelsOf)
    const known = values.filter((value, place) => place > 0 && value !== null)
    this.least = known.reduce((a, b) => Math.min(a, b), Infinity)
    this.most = known.reduce((a, b) => Math.max(a, b), -Infinity)
    this.isEmpty = known.length === 0
    const positive = known.filter((value) => value > 0).reduce((a, b) => Math.min(a, b), Infinity)
    this.isLog = this.least >= 0 && this.most / positive > WIDE
    this.first = positive
  }

  fraction(value) {
    if (this.most === this.least) return 1
    if (!this.isLog) return (value - this.least) / (this.most - this.least)
    return value <= 0 ? 0 : Math.log(value / this.first) / Math.log(this.most / this.first)
  }

  // {fill, text}, null where the number is not known.
  of(place) {
    const value = this.values[place]
    if (value === null || value === undefined) return null
    const at = Math.min(Math.max(this.fraction(value), 0), 1) * (this.stops.length - 1), low = Math.min(Math.floor(at), this.stops.length - 2)
    const channels = this.stops[low].map((channel, nth) => Math.round(channel + (this.stops[low + 1][nth] - channel) * (at - low)))
    const [r, g, b] = channels.map((channel) => ((channel / 255 + 0.055) / 1.055) ** 2.4)
    // Where black and white stand out equally (WCAG's contrast).
    return { fill: `rgb(${channels.join(', ')})`, text: 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? '#000' : '#fff' }
  }

  get gradient() { return `linear-gradient(to right, ${this.stops.map((channels) => `rgb(${channels.join(', ')})`).join(', ')})` }
}

// steps: what stands behind the number for each thousand, as the page's figures have it; none where there are none.
export const compact = (value, steps = ['']) => {
  if (!Number.isFinite(value)) return String(value)
  let number = value, step = 0
  while (Math.abs(number) >= 999.5 && step < steps.length - 1) { number /= 1000; step++ }
  return `${Number.isInteger(number) ? number.toLocaleString('en') : Number(number.toPrecision(3)).toLocaleString('en', { maximumSignificantDigits: 3 })}${steps[step] ?? ''}`
}
