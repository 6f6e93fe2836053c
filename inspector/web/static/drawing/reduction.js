// Which arrows say nothing new: from a to c, where a way from a over others to c is drawn already (transitive reduction).
// arrows: [from, to] pairs flat, of `count` boxes in the order in which they run. Arrows that lead back are all kept.
export const reduce = (count, arrows) => {
  const words = Math.ceil(count / 32), next = Array.from({ length: count }, () => [])
  for (let at = 0; at < arrows.length; at += 2) if (arrows[at] < arrows[at + 1]) next[arrows[at]].push(at)
  const reached = new Uint32Array(count * words), kept = new Uint8Array(arrows.length / 2)
  for (let at = 0; at < arrows.length; at += 2) if (arrows[at] > arrows[at + 1]) kept[at / 2] = 1
  for (let from = count - 1; from >= 0; from--) {
    // The nearest first: whatever it reaches needs no arrow of its own.
    next[from].sort((a, b) => arrows[a + 1] - arrows[b + 1])
    const own = reached.subarray(from * words, (from + 1) * words)
    for (const at of next[from]) {
      const to = arrows[at + 1]
      if (own[to >> 5] & (1 << (to & 31))) continue
      kept[at / 2] = 1
      const theirs = reached.subarray(to * words, (to + 1) * words)
      for (let word = 0; word < words; word++) own[word] |= theirs[word]
      own[to >> 5] |= 1 << (to & 31)
    }
  }
  return kept
}
