// How boxes and arrows look, on the page and in an exported picture: one style sheet, whose variables an export fills in.
export const RULES = `
.box .face { fill: var(--box); stroke: var(--edge); stroke-width: 1; vector-effect: non-scaling-stroke; }
.node .face { fill: var(--node); }
.open .face { fill: var(--inside); }
.block .face { fill: var(--block); }
.weights .face { fill: var(--weights); stroke: var(--weights-edge); }
.norm .face { fill: var(--norm); stroke: var(--norm-edge); }
.activation .face { fill: var(--activation); stroke: var(--activation-edge); }
.pooling .face { fill: var(--pooling); stroke: var(--pooling-edge); }
.shape-change .face { fill: var(--shape); stroke: var(--shape-edge); }
.open .head { fill: var(--head); }
.behind { fill: var(--box); stroke: var(--edge); stroke-width: 1; }
.label { font: 600 12.5px var(--mono); fill: var(--text); }
.kind { font: 11px var(--sans); fill: var(--quiet); }
.times { font: 700 11px var(--sans); fill: var(--accent); }
.sign { fill: none; stroke: var(--quiet); stroke-width: 1.4; }
.sign-face { fill: transparent; }
.tinted .label, .tinted .kind, .tinted .times { fill: var(--on-tint); }
.tinted .sign { stroke: var(--on-tint); }
.line { fill: none; stroke: var(--line); stroke-width: 1.3; }
.tip { fill: var(--line); }
.shape { font: 10.5px var(--mono); fill: var(--quiet); stroke: var(--ground); stroke-width: 3; paint-order: stroke; stroke-linejoin: round; }
.near .line { stroke: var(--accent); stroke-width: 2; }
.near .tip { fill: var(--accent); }
.near .unseen { stroke-dasharray: 4 4; stroke-width: 1.2; stroke-opacity: .75; }
.hit > .face { stroke: var(--hit); stroke-width: 2.5; }
.ring { fill: none; stroke: none; stroke-width: 2.5; }
.hit.active > .ring { stroke: var(--hit); }
.chosen > .ring { stroke: var(--accent); }
`
// What a picture by itself says in place of the page's fonts.
export const FONTS = { '--mono': 'monospace', '--sans': 'sans-serif' }

const MIXES = {
  '--box': ['--st-background-color', '--st-text-color', 3],
  '--node': ['--st-background-color', '--st-text-color', 8],
  '--inside': ['--st-background-color', '--st-text-color', 2],
  '--head': ['--st-background-color', '--st-text-color', 8],
  '--block': ['--st-background-color', '--st-text-color', 14],
  '--edge': ['--st-background-color', '--st-text-color', 38],
  '--line': ['--st-background-color', '--st-text-color', 52],
  '--quiet': ['--st-background-color', '--st-text-color', 74],
}

// Of Okabe and Ito's set, which people with any colour vision can tell apart; names say the same.
const HUES = { weights: [0, 114, 178], norm: [0, 158, 115], activation: [213, 94, 0], pooling: [204, 121, 167], shape: [230, 159, 0] }
const TINT = 17, DARK_TINT = 30, RIM = 65

// Of the theme, as numbers: {name: 'rgb(…)'}, for the page as for an export.
export const paletteOf = (host) => {
  const style = getComputedStyle(host), context = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
  const channels = (name, fallback) => {
    context.fillStyle = fallback
    context.fillStyle = style.getPropertyValue(name).trim() || fallback
    context.fillRect(0, 0, 1, 1)
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3)
  }
  const base = { '--st-background-color': channels('--st-background-color', '#ffffff'), '--st-text-color': channels('--st-text-color', '#1b2426') }
  const palette = {}
  for (const [name, [from, to, percent]] of Object.entries(MIXES)) {
    palette[name] = rgb(base[from].map((value, at) => value + ((base[to][at] - value) * percent) / 100))
  }
  for (const [name, hue] of Object.entries(HUES)) {
    const mixed = (percent) => rgb(base['--st-background-color'].map((value, at) => value + ((hue[at] - value) * percent) / 100))
    palette[`--${name}`] = mixed(base['--st-background-color'][1] < 128 ? DARK_TINT : TINT)
    palette[`--${name}-edge`] = mixed(RIM)
  }
  palette['--text'] = rgb(base['--st-text-color'])
  palette['--ground'] = rgb(base['--st-background-color'])
  palette['--accent'] = rgb(channels('--st-primary-color', '#0f766e'))
  palette['--hit'] = rgb(channels('--st-orange-color', '#d97706'))
  palette['--mono'] = style.getPropertyValue('--st-code-font').trim() || 'monospace'
  palette['--sans'] = style.getPropertyValue('--st-font').trim() || 'sans-serif'
  return palette
}
const rgb = (channels) => `rgb(${channels.map(Math.round).join(', ')})`

export const filledIn = (palette) => RULES.replace(/var\((--[\w-]+)\)/g, (whole, name) => palette[name] ?? (name === '--on-tint' ? 'currentColor' : whole))
