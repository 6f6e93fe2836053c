// The drawing as it is open now, as a picture by itself: SVG, and PNG made of it by the browser.
import { FONTS, filledIn } from './look.js'
import { Painter, make } from './paint.js'

const ROUND = 20, LINE = 24
// Above these, browsers give an empty canvas (px of a side, and in all).
const MOST_SIDE = 16000, MOST_AREA = 2e8

// look: as of the painter. Gives {text, w, h}.
export const asSvg = (scene, look, palette, title, legend) => {
  const colours = { ...palette, ...FONTS }
  const painter = new Painter(scene, { ...look, chosen: -1, active: -1, hits: new Set() }, 'box-')
  painter.paint({ left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity }, 1)
  const w = Math.ceil(scene.w[0] + 2 * ROUND), h = Math.ceil(scene.h[0] + 2 * ROUND + (legend ? LINE : 0))
  const svg = make('svg', { xmlns: 'http://www.w3.org/2000/svg', width: w, height: h, viewBox: `0 0 ${w} ${h}`, role: 'img' })
  svg.append(make('title', {}, title), make('style', {}, filledIn(colours)), make('rect', { width: w, height: h, fill: colours['--ground'] }))
  painter.near.remove()
  painter.root.setAttribute('transform', `translate(${ROUND} ${ROUND})`)
  for (const element of painter.root.querySelectorAll('*')) {
    // A picture is no tree of a page.
    for (const { name } of [...element.attributes]) if (name.startsWith('aria-') || ['role', 'id', 'data-place'].includes(name)) element.removeAttribute(name)
  }
  for (const words of painter.root.querySelectorAll('g[style]')) {
    const on = words.style.getPropertyValue('--on-tint')
    words.removeAttribute('style')
    for (const text of words.querySelectorAll('text')) text.style.fill = on
    for (const sign of words.querySelectorAll('.sign')) sign.style.stroke = on
  }
  for (const sign of painter.root.querySelectorAll('.sign-face')) sign.remove()
  svg.append(painter.root)
  if (legend) svg.append(make('text', { class: 'kind', x: ROUND, y: h - ROUND + 4 }, legend))
  return { text: new XMLSerializer().serializeToString(svg), w, h }
}

// Gives {blob, scale}: twice the size, or less where that is more than a browser can hold.
export const asPng = async ({ text, w, h }) => {
  const scale = Math.min(2, MOST_SIDE / w, MOST_SIDE / h, Math.sqrt(MOST_AREA / (w * h)))
  const picture = new Image()
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`
  await picture.decode()
  const canvas = document.createElement('canvas')
  canvas.width = Math.round(w * scale)
  canvas.height = Math.round(h * scale)
  canvas.getContext('2d').drawImage(picture, 0, 0, canvas.width, canvas.height)
  const blob = await new Promise((done) => canvas.toBlob(done, 'image/png'))
  if (!blob) throw new Error('The picture is too large for this browser.')
  return { blob, scale }
}

export const save = (blob, name) => {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10000)
}
