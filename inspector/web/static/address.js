// The address says what is chosen: replaced, not pushed, so that one step back leads to the page before. A name without
// a value is taken out; what others wrote into it stays.
export default function (component) {
  const address = new URL(window.location.href)
  for (const [name, value] of Object.entries(component.data)) {
    if (value) address.searchParams.set(name, value)
    else address.searchParams.delete(name)
  }
  if (address.href !== window.location.href) window.history.replaceState(window.history.state, '', address)
}
