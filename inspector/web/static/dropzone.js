// One file goes to `data.url` by PUT; the page then hears its digest through the trigger "stored".
// A folder, or several files, go as one tar: its headers are made here, the files' own bytes are only referred to.
const BLOCK = 512
const MOST_FILES = 20000
const OCTAL_SIZE = 8 ** 11

const tarHeader = (name, size, type) => {
  const block = new Uint8Array(BLOCK), text = new TextEncoder()
  const put = (at, value) => block.set(typeof value === 'string' ? text.encode(value) : value, at)
  put(0, name.slice(0, 100))
  put(100, '0000644\0'); put(108, '0000000\0'); put(116, '0000000\0')
  put(124, `${Math.min(size, OCTAL_SIZE - 1).toString(8).padStart(11, '0')}\0`)
  put(136, '00000000000\0        '); put(156, type); put(257, 'ustar\0' + '00')
  const sum = block.reduce((total, byte) => total + byte, 0)
  put(148, `${sum.toString(8).padStart(6, '0')}\0 `)
  return block
}
const padding = (size) => new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK)
const paxRecord = (key, value) => {
  const rest = new TextEncoder().encode(` ${key}=${value}\n`)
  let length = rest.length
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length
  return [new TextEncoder().encode(String(length)), rest]
}
// Every name goes as a pax record: the plain header has room for 100 bytes of ASCII only.
const packTar = (files) => {
  const parts = []
  for (const { path, file } of files) {
    const records = new Blob([...paxRecord('path', path), ...(file.size >= OCTAL_SIZE ? paxRecord('size', file.size) : [])])
    const plain = new TextEncoder().encode(path.replace(/[^\x20-\x7e]/g, '_')).slice(-100)
    parts.push(tarHeader(new TextEncoder().encode('pax'), records.size, 'x'), records, padding(records.size))
    parts.push(tarHeader(plain, file.size, '0'), file, padding(file.size))
  }
  return new Blob([...parts, new Uint8Array(2 * BLOCK)])
}
const readAll = async (reader) => {
  const found = []
  for (;;) {
    const some = await new Promise((done, failed) => reader.readEntries(done, failed))
    if (!some.length) return found
    found.push(...some)
  }
}
const walk = async (entry, path, files) => {
  if (files.length > MOST_FILES) throw new Error(`The folder holds more than ${MOST_FILES} files.`)
  if (entry.isFile) files.push({ path, file: await new Promise((done, failed) => entry.file(done, failed)) })
  else for (const child of await readAll(entry.createReader())) await walk(child, `${path}/${child.name}`, files)
}
const megabytes = (n) => (n < 1e6 ? `${(n / 1e3).toFixed(0)} kB` : `${(n / 1e6).toFixed(n < 1e8 ? 1 : 0)} MB`)

export default function (component) {
  const { parentElement, data, setTriggerValue } = component
  const find = (name) => parentElement.querySelector(name)
  const zone = find('.zone'), input = find('.file'), folder = find('.folder'), idle = find('.idle'), busy = find('.busy'), failed = find('.failed')
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
    folder.value = ''
  }
  const sendAll = (name, files) => {
    const sorted = [...files].sort((a, b) => (a.path < b.path ? -1 : 1))
    if (!sorted.length) fail('That folder holds no files.')
    else send(packTar(sorted), `${name}.tar`)
  }
  const send = (file, name) => {
    if (!file || zone.request) return
    failed.hidden = true
    find('.name').textContent = name
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
        folder.value = ''
        setTriggerValue('stored', { sha256: answer.sha256 })
      } else fail(answer.says || `The server refused the file (${request.status}).`)
    })
    request.onerror = () => finish(() => fail('The connection to the server was lost. Drop the file again.'))
    request.onabort = () => finish(() => fail('Stopped: nothing was kept.'))
    request.open('PUT', data.url)
    request.setRequestHeader('X-Inspector-Token', data.token)
    request.setRequestHeader('X-File-Name', encodeURIComponent(name))
    request.send(file)
  }

  const enough = (event) => { event.preventDefault(); event.stopPropagation() }
  const choose = (files) => {
    if (files.length === 1) send(files[0], files[0].name)
    else if (files.length) sendAll(`${files.length} files`, [...files].map((file) => ({ path: file.name, file })))
  }
  input.onchange = () => choose(input.files)
  folder.onchange = () => {
    const files = [...folder.files].map((file) => ({ path: file.webkitRelativePath || file.name, file }))
    sendAll(files.length ? files[0].path.split('/')[0] : 'folder', files)
  }
  find('.pick').onclick = (event) => { enough(event); folder.click() }
  find('.stop').onclick = (event) => { enough(event); if (zone.request) zone.request.abort() }
  zone.ondragover = (event) => { enough(event); zone.classList.add('over') }
  zone.ondragleave = () => zone.classList.remove('over')
  zone.ondrop = async (event) => {
    enough(event)
    zone.classList.remove('over')
    const files = [...event.dataTransfer.files]
    // Entries must be asked for before the first await: the list is empty afterwards.
    const entries = [...(event.dataTransfer.items || [])].map((i) => i.webkitGetAsEntry && i.webkitGetAsEntry()).filter(Boolean)
    if (!entries.some((entry) => entry.isDirectory)) { choose(files); return }
    try {
      const found = []
      for (const entry of entries) await walk(entry, entry.name, found)
      sendAll(entries.length === 1 ? entries[0].name : `${entries.length} folders`, found)
    } catch (error) {
      fail(`The folder could not be read: ${error.message}`)
    }
  }
  return () => { if (zone.request) zone.request.abort() }
}
