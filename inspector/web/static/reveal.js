// Two pictures, one above the other; the upper one is cut where the slider stands. The page hears nothing of it.
export default function (component) {
  const { parentElement, data } = component
  const find = (name) => parentElement.querySelector(name)
  const slider = find('input'), over = find('.over'), line = find('.line')
  find('.under').src = data.under
  over.src = data.over
  const move = () => {
    over.style.clipPath = `inset(0 ${100 - slider.value}% 0 0)`
    line.style.left = `${slider.value}%`
  }
  slider.oninput = move
  move()
}
