// Saves the chart beside it as SVG or PNG: Plotly's own button does it, which stands hidden in the chart and knows one
// format, the one that it is told here. Nothing leaves the browser.
export default function (component) {
  const { parentElement, data } = component
  for (const button of parentElement.querySelectorAll('button')) {
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
