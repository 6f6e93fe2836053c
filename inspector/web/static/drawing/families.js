// What a box does, by its kind's name as torch, ONNX and their operators spell it: said by its colour where no column is.
// The first that fits; a name is looked at in small letters.
const FAMILIES = [
  ['norm', /norm(?!alize)|^lrn$/],
  ['activation', /relu|gelu|elu$|silu|swish|mish|sigmoid|tanh|softmax|softplus|softsign|logsoftmax|activation|^glu$|^swiglu|^erf$|^clip$|hardshrink|softshrink|threshold/],
  ['weights', /conv|linear|gemm|matmul|addmm|bmm$|^mm$|einsum|embedding|lstm|gru|^rnn|attention|bilinear/],
  ['pooling', /pool|upsample|interpolate|resize|^mean$|reducemean|pixelshuffle|pixel_shuffle|grid_sample/],
  ['shape', /reshape|view|flatten|permute|transpose|^t$|squeeze|^cat$|concat|split|chunk|slice|select|gather|expand|stack|^pad$|narrow|unbind|identity|contiguous|roll$|repeat/],
]
export const NAMES = { weights: 'weights', norm: 'normalisation', activation: 'activation', pooling: 'pooling', shape: 'shape' }

const known = new Map()

// "" where no name tells.
export const familyOf = (kind) => {
  if (!known.has(kind)) {
    const small = kind.toLowerCase()
    known.set(kind, FAMILIES.find(([, says]) => says.test(small))?.[0] ?? '')
  }
  return known.get(kind)
}
