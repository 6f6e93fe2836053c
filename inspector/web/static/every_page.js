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
