// One file goes to `data.url` by PUT; the page then hears its digest through the trigger "stored".
// A folder, or several files, go as one tar: its headers are made here, the files' own bytes are only referred to.
// Of one large file slices go beside it, where `data.ahead` says where to: first its head and end, then what is asked for.
// With `data.apart` each goes by itself, one after the other, and the page hears all digests at the end.
const BLOCK = 512
const MOST_FILES = 20000
// So long the first slices have the line for themselves.
const AHEAD_MS = 1500
const OCTAL_SIZE = 8 ** 11

const tarHeader = (name, size, type) => {
  const block = new Uint8Array(BLOCK), text = new TextEncoder()
  const put = (at, value) => block.set(typeof value === 'string' ? text.encode(value) : value, at)
  put(0, name.slice(0, 100))
  put(100, '0000644\0'); put(108, '0000000\0'); put(116, '0000000\0')
  put(124, `${Math.min(size, OCTAL_SIZE - 1).toString(8).padStart(11, '0')}\0`)
  put(136, '00000000000\0        '); put(156, type); put(257, 'ustar\0' + '00')
  // What tells a folder that was dropped from an archive: checkpoint/sent_folder.py.
  put(265, 'inspector-folder')
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
// Of a folder those that look like checkpoints, all where none does; by the names of their folders where names repeat.
const checkpointsAmong = (files, endings) => {
  const known = files.filter(({ path }) => endings.some((ending) => path.toLowerCase().endsWith(ending)))
  const last = (path) => path.split('/').pop(), names = known.map(({ path }) => last(path))
  const apart = new Set(names).size === names.length
  return (known.length ? known : files).map(({ path, file }) => ({ file, name: apart ? last(path) : path.replaceAll('/', '_') }))
}
const megabytes = (n) => (n < 1e6 ? `${(n / 1e3).toFixed(0)} kB` : `${(n / 1e6).toFixed(n < 1e8 ? 1 : 0)} MB`)

const drawNumber = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('')
// What the server says in the end of the slices that it asked for: {shows}, {waits}, or {} where it wants none.
const sendSlices = async (file, ahead, headers, signal) => {
  let wants = [[0, ahead.head], [file.size - ahead.tail, ahead.tail]]
  while (wants) {
    const body = new Blob(wants.map(([offset, n]) => file.slice(offset, offset + n)))
    const answer = await fetch(ahead.url, { method: 'POST', body, headers: { ...headers, 'X-File-Size': file.size }, signal })
    if (!answer.ok) return {}
    const says = await answer.json()
    if (!says.wants) return says
    wants = says.wants
  }
}

export default function (component) {
  const { parentElement, data, setTriggerValue, setStateValue } = component
  const find = (name) => parentElement.querySelector(name)
  const zone = find('.zone'), input = find('.file'), folder = find('.folder'), idle = find('.idle'), busy = find('.busy'), failed = find('.failed')
  find('.endings').textContent = data.says
  find('.endings').classList.toggle('sentence', !data.says.startsWith('.'))
  if (data.apart) {
    zone.classList.add('apart')
    find('.lead').firstChild.textContent = 'Drop checkpoints, or the folder they lie in, or browse for '
    find('.lead .browse').textContent = 'files'
  }
  zone.waiting ??= []
  zone.arrived ??= []
  const next = () => {
    const one = zone.waiting.shift()
    if (one) { send(one.file, one.name, true); return }
    if (data.apart) show(false)
    const all = zone.arrived
    zone.arrived = []
    if (all.length) setTriggerValue('stored', { sha256: all[all.length - 1], all })
  }

  // Whatever was told of a file on its way goes with it.
  const forgetAhead = () => {
    if (!zone.ahead) return
    zone.ahead.abort()
    zone.ahead = null
    find('.ahead').hidden = true
  }
  const lookAhead = async (file, headers) => {
    const ahead = new AbortController()
    zone.ahead = ahead
    try {
      const says = await sendSlices(file, data.ahead, headers, ahead.signal)
      if (zone.ahead !== ahead) return
      find('.ahead').textContent = says.waits || ''
      find('.ahead').hidden = !says.waits
      zone.shown = Boolean(says.shows)
      if (zone.shown) setStateValue('ahead', headers['X-Inspector-Upload'])
    } catch {
      // The upload goes on without; what ended this ends it, too, and says so.
    }
  }

  const show = (sending) => {
    idle.hidden = sending
    busy.hidden = !sending
  }
  const fail = (says) => {
    if (zone.shown) setStateValue('ahead', null)
    zone.shown = false
    failed.textContent = says
    failed.hidden = false
    show(false)
    input.value = ''
    folder.value = ''
  }
  const sendAll = (name, files) => {
    const sorted = [...files].sort((a, b) => (a.path < b.path ? -1 : 1))
    if (data.apart && sorted.length) {
      if (zone.request) return
      zone.waiting = checkpointsAmong(sorted, data.endings.split(' '))
      failed.hidden = true
      next()
      return
    }
    if (!sorted.length) fail('That folder holds no files.')
    else send(packTar(sorted), name)
  }
  const send = async (file, name, further) => {
    if (!file || zone.request) return
    if (!further) failed.hidden = true
    find('.name').textContent = zone.waiting.length ? `${name}, and ${zone.waiting.length} more` : name
    zone.shown = false
    find('.bar').style.width = '0'
    find('.told').textContent = `0 of ${megabytes(file.size)}`
    show(true)
    const request = new XMLHttpRequest()
    zone.request = request
    const finish = (then) => { zone.request = null; forgetAhead(); then() }
    request.upload.onprogress = (event) => {
      const done = event.loaded / Math.max(1, event.total)
      find('.bar').style.width = `${(100 * done).toFixed(1)}%`
      find('.told').textContent = done < 1 ? `${megabytes(event.loaded)} of ${megabytes(event.total)}, ${Math.floor(100 * done)} %` : 'Reading …'
    }
    request.onload = () => finish(() => {
      let answer = {}
      try { answer = JSON.parse(request.responseText) } catch { answer = {} }
      if (request.status === 200 && answer.sha256) {
        find('.told').textContent = 'Reading …'
        input.value = ''
        folder.value = ''
        zone.arrived.push(answer.sha256)
      } else fail(`${data.apart ? `${name}: ` : ''}${answer.says || `The server refused the file (${request.status}).`}`)
      next()
    })
    const give = (says) => { zone.waiting = []; fail(says); next() }
    request.onerror = () => finish(() => give('The connection to the server was lost. Drop the file again.'))
    request.onabort = () => finish(() => give(zone.arrived.length ? 'Stopped: what had arrived was kept.' : 'Stopped: nothing was kept.'))
    const headers = { 'X-Inspector-Token': data.token, 'X-File-Name': encodeURIComponent(name) }
    request.open('PUT', data.url)
    if (data.ahead && file instanceof File && file.size >= data.ahead.from) {
      headers['X-Inspector-Upload'] = drawNumber()
      await Promise.race([lookAhead(file, headers), new Promise((done) => setTimeout(done, AHEAD_MS))])
      if (zone.request !== request) return
    }
    for (const [key, value] of Object.entries(headers)) request.setRequestHeader(key, value)
    request.begun = true
    request.send(file)
  }
  const stop = () => {
    if (!zone.request) return
    // Nobody hears of the end of what has not begun.
    if (zone.request.begun) zone.request.abort()
    else zone.request.onabort()
  }

  const enough = (event) => { event.preventDefault(); event.stopPropagation() }
  const choose = (files) => {
    if (files.length === 1) send(files[0], files[0].name)
    else if (files.length) {
      // By the largest of them, which is what the others lie beside.
      const largest = [...files].sort((a, b) => b.size - a.size)[0].name
      sendAll(`${largest} and ${files.length - 1} more`, [...files].map((file) => ({ path: file.name, file })))
    }
  }
  input.onchange = () => choose(input.files)
  const chooseFolder = () => {
    const files = [...folder.files].map((file) => ({ path: file.webkitRelativePath || file.name, file }))
    sendAll(files.length ? files[0].path.split('/')[0] : 'folder', files)
  }
  folder.onchange = chooseFolder
  // What was chosen between the first sight of the zone and this script.
  if (!zone.request && input.files.length) choose(input.files)
  else if (!zone.request && folder.files.length) chooseFolder()
  find('.pick').onclick = (event) => { enough(event); folder.click() }
  find('.stop').onclick = (event) => { enough(event); stop() }
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
  return () => { zone.waiting = []; stop() }
}
