// A table of small pictures, all from one sprite; the page hears which one was clicked through the trigger "chosen".
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

export default function (component) {
  const { parentElement, data, setTriggerValue } = component
  const head = parentElement.querySelector('thead'), body = parentElement.querySelector('tbody')
  const top = element('tr')
  top.append(element('td'))
  for (const column of data.columns) {
    const label = element('th', column.title)
    label.scope = 'col'
    label.title = column.says
    top.append(label)
  }
  head.replaceChildren(top)
  body.replaceChildren(...data.rows.map((row, y) => {
    const line = element('tr'), name = element('th')
    name.scope = 'row'
    name.title = row.says
    name.append(breakable('code', row.title), element('small', row.note))
    line.append(name)
    data.columns.forEach((column, x) => {
      const place = element('td')
      if (data.empty.includes(`${y},${x}`)) {
        place.className = 'none'
        place.textContent = 'none'
      } else {
        const button = element('button')
        button.type = 'button'
        button.className = 'cell'
        button.style.width = `${data.width}px`
        button.style.height = `${data.height}px`
        button.style.backgroundImage = `url(${data.sprite})`
        button.style.backgroundPosition = `-${x * data.width}px -${y * data.height}px`
        const note = data.notes[`${y},${x}`], suffix = note ? `: ${note}` : ''
        if (note) button.classList.add('noted')
        button.setAttribute('aria-label', (data.columns.length > 1 ? `${column.title} at ${row.title}` : column.title) + suffix)
        button.title = `${column.title}, ${row.title}${suffix}`
        button.setAttribute('aria-pressed', String(data.row === y && data.column === x))
        button.onclick = () => setTriggerValue('chosen', { row: row.id, column: column.id })
        place.append(button)
      }
      line.append(place)
    })
    return line
  }))
}
