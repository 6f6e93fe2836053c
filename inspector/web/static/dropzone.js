// One file goes to `data.url` by PUT; the page then hears its digest through the trigger "stored".
const megabytes = (n) => (n < 1e6 ? `${(n / 1e3).toFixed(0)} kB` : `${(n / 1e6).toFixed(n < 1e8 ? 1 : 0)} MB`)

export default function (component) {
  const { parentElement, data, setTriggerValue } = component
  const find = (name) => parentElement.querySelector(name)
  const zone = find('.zone'), input = find('.file'), idle = find('.idle'), busy = find('.busy'), failed = find('.failed')
  find('.endings').textContent = `${data.endings} … any name`

  const show = (sending) => {
    idle.hidden = sending
    busy.hidden = !sending
  }
  const fail = (says) => {
    failed.textContent = says
    failed.hidden = false
    show(false)
    input.value = ''
  }
  const send = (file) => {
    if (!file || zone.request) return
    failed.hidden = true
    find('.name').textContent = file.name
    find('.bar').style.width = '0'
    find('.told').textContent = `0 of ${megabytes(file.size)}`
    show(true)
    const request = new XMLHttpRequest()
    zone.request = request
    const finish = (then) => { zone.request = null; then() }
    request.upload.onprogress = (event) => {
      const done = event.loaded / Math.max(1, event.total)
      find('.bar').style.width = `${(100 * done).toFixed(1)}%`
      find('.told').textContent = done < 1 ? `${megabytes(event.loaded)} of ${megabytes(event.total)}` : 'Reading …'
    }
    request.onload = () => finish(() => {
      let answer = {}
      try { answer = JSON.parse(request.responseText) } catch { answer = {} }
      if (request.status === 200 && answer.sha256) {
        find('.told').textContent = 'Reading …'
        input.value = ''
        setTriggerValue('stored', { sha256: answer.sha256 })
      } else fail(answer.says || `The server refused the file (${request.status}).`)
    })
    request.onerror = () => finish(() => fail('The connection to the server was lost. Drop the file again.'))
    request.onabort = () => finish(() => fail('Stopped: nothing was kept.'))
    request.open('PUT', data.url)
    request.setRequestHeader('X-Inspector-Token', data.token)
    request.setRequestHeader('X-File-Name', encodeURIComponent(file.name))
    request.send(file)
  }

  const enough = (event) => { event.preventDefault(); event.stopPropagation() }
  input.onchange = () => send(input.files[0])
  find('.stop').onclick = (event) => { enough(event); if (zone.request) zone.request.abort() }
  zone.ondragover = (event) => { enough(event); zone.classList.add('over') }
  zone.ondragleave = () => zone.classList.remove('over')
  zone.ondrop = (event) => {
    enough(event)
    zone.classList.remove('over')
    const item = event.dataTransfer.items && event.dataTransfer.items[0]
    const entry = item && item.webkitGetAsEntry ? item.webkitGetAsEntry() : null
    if (entry && entry.isDirectory) fail('That is a folder. Drop the checkpoint file inside it.')
    else send(event.dataTransfer.files[0])
  }
  return () => { if (zone.request) zone.request.abort() }
}
