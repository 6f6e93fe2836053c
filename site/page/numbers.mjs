// Counts the numbers of a tensor by typed arrays. Which bytes are which elements is Python's to say
// (inspector/browser/numbers.py): here are elements in order, little-endian, as every machine with a browser has them.
const SIZES = { float64: 8, float32: 4, float16: 2, bfloat16: 2 };
const AT_ONCE = 1 << 16;

let halves; // the value of each pattern of float16, made when one is met

function tableOfHalves() {
  const table = new Float32Array(1 << 16);
  for (let bits = 0; bits < table.length; bits++) {
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    const sign = bits >> 15 ? -1 : 1;
    if (exponent === 31) table[bits] = fraction ? NaN : sign * Infinity;
    else table[bits] = sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : (fraction / 1024) * 2 ** -14);
  }
  return table;
}

// Floats of these bytes, a stretch at a time.
function* stretches(bytes, type) {
  // A view must begin at a multiple of its size.
  const own = bytes.byteOffset % SIZES[type] ? bytes.slice() : bytes;
  const count = own.length / SIZES[type];
  if (type === "float64") return yield new Float64Array(own.buffer, own.byteOffset, count);
  if (type === "float32") return yield new Float32Array(own.buffer, own.byteOffset, count);
  const codes = new Uint16Array(own.buffer, own.byteOffset, count);
  const values = new Float32Array(Math.min(count, AT_ONCE));
  const bits = new Uint32Array(values.buffer);
  if (type === "float16") halves ??= tableOfHalves();
  for (let at = 0; at < count; at += AT_ONCE) {
    const n = Math.min(AT_ONCE, count - at);
    if (type === "bfloat16") for (let k = 0; k < n; k++) bits[k] = codes[at + k] << 16;
    else for (let k = 0; k < n; k++) values[k] = halves[codes[at + k]];
    yield values.subarray(0, n);
  }
}

// [NaN, infinite, zero, least, largest, first that is not finite]: NaN and -1 where there is none.
export function count(bytes, type) {
  let nan = 0;
  let infinite = 0;
  let zero = 0;
  let low = Infinity;
  let high = -Infinity;
  let first = -1;
  let seen = 0;
  for (const values of stretches(bytes, type)) {
    for (let k = 0; k < values.length; k++) {
      const value = values[k];
      // Of what is not finite, this is NaN.
      if (value - value !== 0) {
        if (value !== value) nan++;
        else infinite++;
        if (first < 0) first = seen + k;
        continue;
      }
      if (value === 0) zero++;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    seen += values.length;
  }
  // Zeros of either sign are one; 0 is what a sum with one makes of them.
  return low > high ? [nan, infinite, zero, NaN, NaN, first] : [nan, infinite, zero, low + 0, high + 0, first];
}

// As Python calls it: with a view of its own memory, which is let go of.
export function countOf(view, type) {
  const held = view.getBuffer("u8");
  try {
    return count(held.data, type);
  } finally {
    held.release();
  }
}
