// Copies the address of the view: file, page and whatever is chosen stand in it. The clipboard is there on https and on
// this machine alone; elsewhere the older way, and where that is refused too, the address stands there to be copied.
const oldWay = (text) => {
  const field = document.createElement('textarea')
  field.value = text
  field.style.cssText = 'position:fixed;top:0;opacity:0'
  document.body.append(field)
  field.select()
  try { return document.execCommand('copy') } catch { return false } finally { field.remove() }
}

// A page's heading, once its page was chosen by a link: who goes by keyboard or listens goes on from there. Not at first,
// where the page has just been loaded, nor when something on the page is chosen.
const focusHeading = (page) => {
  const before = window.inspectorPage
  window.inspectorPage = page
  if (before === undefined || before === page) return
  const seek = (left) => {
    const heading = document.querySelector('.mi-title h1')
    if (!heading) { if (left) setTimeout(() => seek(left - 1), 60); return }
    heading.tabIndex = -1
    heading.focus({ preventScroll: true })
  }
  seek(20)
}

const FOCUSABLE = 'button:not(:disabled), a[href], input:not(:disabled), textarea:not(:disabled), summary, [tabindex="0"]'
const calledSo = (element) => element.getAttribute('aria-label') || element.innerText

// What had the focus may be gone once it did its work: a picture is chosen, and the choice folds up. The focus then goes to
// what stands in its place and is called the same, else to the first of what it stood among, else to the page's heading.
const keepFocus = () => {
  if (window.inspectorKeepsFocus) return
  window.inspectorKeepsFocus = true
  let last = null, name = '', above = [], waiting
  document.addEventListener('focusin', ({ target }) => {
    last = target
    name = calledSo(target)
    above = []
    for (let at = target.parentElement; at; at = at.parentElement) above.push(at)
  })
  // Who clicks beside it lets go of it.
  document.addEventListener('focusout', ({ target }) => setTimeout(() => {
    if (target === last && target.isConnected && document.activeElement === document.body) last = null
  }))
  const isLost = () => last && !last.isConnected && document.activeElement === document.body
  const restore = () => {
    if (!isLost()) return
    const home = above.find((one) => one.isConnected), heading = document.querySelector('.mi-title h1')
    const left = [...(home?.querySelectorAll(FOCUSABLE) ?? [])].filter((one) => one.offsetParent)
    const isPage = !home || home.contains(heading)
    const next = left.find((one) => calledSo(one) === name) ?? (isPage ? heading : left[0] ?? heading)
    last = null
    if (next === heading && heading) heading.tabIndex = -1
    next?.focus({ preventScroll: true })
  }
  new MutationObserver(() => {
    if (!isLost()) return
    clearTimeout(waiting)
    waiting = setTimeout(restore, 250)
  }).observe(document.body, { childList: true, subtree: true })
}

export default function (component) {
  keepFocus()
  focusHeading(component.data.page)
  const button = component.parentElement.querySelector('.copy'), told = component.parentElement.querySelector('.told')
  button.title = 'Copy the address of this view'
  button.onclick = async () => {
    const address = window.location.href
    let done = false
    try { await navigator.clipboard.writeText(address); done = true } catch { done = oldWay(address) }
    button.focus()
    if (!done) { window.prompt('The address of this view', address); return }
    button.textContent = 'Copied'
    told.textContent = 'The address of this view was copied.'
    clearTimeout(button.back)
    button.back = setTimeout(() => { button.textContent = 'Copy link'; told.textContent = '' }, 2000)
  }
}
