// A table of small pictures, all from one sprite; the page hears which one was clicked through the trigger "chosen".
// One of them is in the tab order, arrows lead to the others; drawn anew, the focus stays where it was.
const element = (name, text) => {
  const made = document.createElement(name)
  if (text !== undefined) made.textContent = text
  return made
}

// Names of modules break after their dots and underscores.
const breakable = (name, text) => {
  const made = element(name)
  made.append(...text.split(/(?<=[._])/).flatMap((part) => [part, element('wbr')]))
  return made
}

const head = (data, scope) => {
  // A column without a word heads nothing.
  if (!data.title) return element('td')
  const made = element('th')
  made.scope = scope
  made.title = data.says
  made.append(breakable('span', data.title))
  if (data.note) made.append(element('small', data.note))
  return made
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }

export default function (component) {
  const { parentElement, data, setTriggerValue } = component
  const table = parentElement.querySelector('table')
  const held = parentElement.getRootNode().activeElement?.closest?.('.cell')?.dataset.place
  const places = new Map()
  const share = (at, count) => (count > 1 ? (100 * at) / (count - 1) : 0)

  const cell = (row, y, column, x) => {
    const place = element('td')
    if (data.empty.includes(`${y},${x}`)) {
      place.className = 'none'
      place.textContent = 'none'
      return place
    }
    const button = element('button')
    button.type = 'button'
    button.className = 'cell'
    button.dataset.place = `${y},${x}`
    button.style.aspectRatio = `${data.width} / ${data.height}`
    button.style.backgroundImage = `url(${data.sprite})`
    button.style.backgroundSize = `${100 * data.columns.length}% ${100 * data.rows.length}%`
    button.style.backgroundPosition = `${share(x, data.columns.length)}% ${share(y, data.rows.length)}%`
    const note = data.notes[`${y},${x}`], says = data.called[y][x] + (note ? `: ${note}` : '')
    if (note) button.classList.add('noted')
    button.setAttribute('aria-label', says)
    button.title = says
    button.setAttribute('aria-pressed', String(data.row === y && data.column === x))
    button.onclick = () => setTriggerValue('chosen', { row: row.id, column: column.id })
    places.set(button.dataset.place, button)
    place.append(button)
    return place
  }

  table.style.setProperty('--columns', data.columns.length)
  table.style.setProperty('--longest', Math.max(...data.rows.map((row) => row.title.length)))
  const top = element('tr')
  top.append(element('td'), ...data.columns.map((column) => head(column, 'col')))
  table.querySelector('thead').replaceChildren(top)
  table.querySelector('tbody').replaceChildren(...data.rows.map((row, y) => {
    const line = element('tr')
    line.append(head(row, 'row'), ...data.columns.map((column, x) => cell(row, y, column, x)))
    return line
  }))

  const enter = (button) => {
    for (const one of places.values()) one.tabIndex = one === button ? 0 : -1
  }
  enter(places.get(held) ?? places.get(`${data.row},${data.column}`) ?? places.values().next().value)
  if (held) places.get(held)?.focus({ preventScroll: true })
  table.onkeydown = (event) => {
    const step = STEPS[event.key], from = event.target.dataset?.place
    if (!step || !from) return
    event.preventDefault()
    let [y, x] = from.split(',').map(Number)
    do { y += step[0]; x += step[1] } while (data.empty.includes(`${y},${x}`))
    const next = places.get(`${y},${x}`)
    if (!next) return
    enter(next)
    next.focus()
  }
}
