// Shows the chart's numbers as a table, which the page draws below, and saves the chart as SVG or PNG: Plotly's own button
// does that, which stands hidden in the chart and knows one format, the one that it is told here.
export default function (component) {
  const { parentElement, data, setTriggerValue } = component
  const table = parentElement.querySelector('.table')
  table.title = data.shown ? 'Hide the numbers' : 'Show the numbers as a table, with a CSV to take along'
  table.setAttribute('aria-label', `Table: ${data.says}`)
  table.setAttribute('aria-expanded', String(data.shown))
  table.onclick = () => setTriggerValue('table', true)
  for (const button of parentElement.querySelectorAll('.save')) {
    const kind = button.value.toUpperCase()
    button.title = `Save this figure as ${kind}`
    button.setAttribute('aria-label', `Save as ${kind}: ${data.says}`)
    button.onclick = () => {
      const plot = document.querySelector(`.st-key-${data.chart} .js-plotly-plot`)
      const own = plot?.querySelector('.modebar-btn[data-title^="Download"]')
      if (!own) return
      const options = plot._context?.toImageButtonOptions
      if (options) options.format = button.value
      own.click()
    }
  }
}
