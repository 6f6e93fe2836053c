// One page, one step: Streamlit writes every change of the address as a step of its own, so that Back would lead through
// all that was chosen. Only another page is a step; what is chosen on one takes the place of what stood there. The next
// page's query may be written a moment before its path: then the page that is left gets its own back first. And who goes
// two pages back at once is not sent to the one between, whose answer comes when they are past it.
{
  const push = history.pushState.bind(history), SOON = 5000
  const pageOf = (address) => new URL(address, location.href).pathname.replace(/\/+$/, '')
  let last = { query: '', before: '', at: -SOON }, stepped = null, passed = new Map()
  history.pushState = (state, unused, address) => {
    const next = new URL(address ?? location.href, location.href), now = performance.now()
    if (pageOf(next) === pageOf(location.href)) {
      last = { query: next.search, before: location.href, at: now }
      history.replaceState(state, unused, address)
      return
    }
    if (stepped === pageOf(location.href) && now - (passed.get(pageOf(next)) ?? -SOON) < SOON) return
    const isEarly = now - last.at < SOON && location.search === last.query && next.search === last.query
    if (isEarly && pageOf(last.before) === pageOf(location.href)) history.replaceState(history.state, '', last.before)
    push(state, unused, address)
  }
  window.addEventListener('popstate', () => {
    if (stepped !== null) passed.set(stepped, performance.now())
    stepped = pageOf(location.href)
    passed.delete(stepped)
  })
  document.addEventListener('click', () => { stepped = null; passed = new Map() }, true)
}
// The server does not answer: what Streamlit says of it is for whoever started it, and covers the page. Ours stands above
// the page while it lasts. Where the server was started anew it knows nothing of this page, which is asked for once more by
// its address then; Streamlit itself would wait until something is pressed, and not know what.
{
  window.__streamlit.HOST_CONFIG = { blockErrorDialogs: true }
  const STATE = 'data-test-connection-state', BLIP = 2500, AGAIN = 4000, FIRST = 8000
  const words = {
    offline: ['This device is offline.', 'This page goes on by itself once it has a connection again.'],
    silent: ['The server does not answer.', 'It may be starting again, or the connection was interrupted. This page tries again by itself and goes on once there is an answer.'],
    closed: ['This page is cut off from the server.', 'Load it again.'],
    back: ['The server answers again.', ''],
  }
  const file = 'Your file stays on the server; should it be gone, this page asks for it.'
  let note, waiting, was = false
  const stateNow = () => document.querySelector(`[${STATE}]`)?.getAttribute(STATE)
  const say = (kind) => {
    const app = document.querySelector(`[${STATE}]`) ?? document.body
    if (!note?.isConnected) {
      note = document.createElement('div')
      note.className = 'mi-away'
      note.setAttribute('role', 'status')
      // The page's own style comes with its first answer.
      if (!was) note.style.cssText = 'position:fixed;top:35%;left:0;right:0;padding:0 2rem;text-align:center;font:16px/1.6 sans-serif'
      app.append(note)
    }
    if (note.dataset.kind === kind) return
    note.dataset.kind = kind
    const lead = document.createElement('b'), rest = document.createElement('span')
    lead.textContent = words[kind][0]
    const holds = kind !== 'back' && new URLSearchParams(location.search).has('file')
    rest.textContent = [words[kind][1], holds ? file : ''].join(' ').trim()
    note.replaceChildren(lead, rest)
    if (kind === 'closed') {
      const again = document.createElement('button')
      again.textContent = 'Load again'
      again.onclick = () => location.reload()
      note.append(again)
    }
  }
  // Whether somebody is there who lets nobody in, which no waiting changes.
  const look = async () => {
    let kind = stateNow() === 'DISCONNECTED_FOREVER' ? 'closed' : navigator.onLine === false ? 'offline' : 'silent'
    try {
      const answer = await fetch(`${window.__streamlit.BACKEND_BASE_URL}/_stcore/host-config`, { cache: 'no-store' })
      if (answer.status === 401 || answer.status === 403) kind = 'closed'
      // Streamlit's own script did not come: nothing else goes on by itself.
      else if (answer.ok && stateNow() === undefined) location.reload()
    } catch { /* nobody is there */ }
    if (waiting === undefined) return
    say(kind)
    waiting = setTimeout(look, AGAIN)
  }
  const follow = () => {
    const state = stateNow()
    if (state === undefined) return
    if (state !== 'CONNECTED') {
      if (was && waiting === undefined) waiting = setTimeout(look, BLIP)
      return
    }
    const again = was
    was = true
    clearTimeout(waiting)
    if (waiting !== undefined && again) setTimeout(() => window.dispatchEvent(new PopStateEvent('popstate', { state: history.state })))
    waiting = undefined
    if (!note?.isConnected) return
    note.removeAttribute('style')
    say('back')
    const shown = note
    setTimeout(() => { if (shown.dataset.kind === 'back') shown.remove() }, BLIP)
  }
  // A page that was asked of a server which was just ending has never been connected, and was blank without a word.
  setTimeout(() => { if (!was && waiting === undefined) waiting = setTimeout(look) }, FIRST)
  new MutationObserver(follow).observe(document, { subtree: true, attributes: true, attributeFilter: [STATE] })
}
