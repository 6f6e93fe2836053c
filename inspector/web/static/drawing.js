// Loads the drawing's own scripts by their address; they are kept by the browser, and may start a worker.
export default function (component) {
  const { parentElement, data } = component
  const section = parentElement.querySelector('.drawing')
  section.latest = component
  section.shown ??= import(new URL(data.script, document.baseURI).href).then(({ Drawing }) => new Drawing(section))
  section.shown = section.shown.then(async (drawing) => {
    await drawing.update(section.latest.data, section.latest.setTriggerValue)
    return drawing
  })
  section.shown.catch((error) => {
    section.hidden = false
    section.querySelector('.status').textContent = 'The drawing did not load. Reload the page.'
    console.error(error)
  })
  // Streamlit may call this between two runs as well: only what has left the page ends.
  return () => setTimeout(() => { if (!section.isConnected) section.shown.then((drawing) => drawing.end(), () => {}) }, 1000)
}
