// Solve the puzzle of a form (docs/guides/proof-of-work.md). This file is the script of the page, and of the worker
// that computes, so that the page stays usable. Without it the form is accepted at a stricter rate.
"use strict";

// SHA-256 (FIPS 180-4). Web Crypto is asynchronous: its calls would take longer than the hashes.
const isPrime = (n) => {
  for (let factor = 2; factor * factor <= n; factor++) if (n % factor === 0) return false;
  return true;
};
const primes = [];
for (let n = 2; primes.length < 64; n++) if (isPrime(n)) primes.push(n);
const fraction = (root) => ((root - Math.floor(root)) * 0x100000000) | 0;
const K = Int32Array.from(primes, (prime) => fraction(Math.cbrt(prime)));
const START = Int32Array.from(primes.slice(0, 8), (prime) => fraction(Math.sqrt(prime)));
const words = new Int32Array(64);

// Add one block of 16 words to the state.
const compress = (state, block) => {
  for (let i = 0; i < 16; i++) words[i] = block[i];
  for (let i = 16; i < 64; i++) {
    const x = words[i - 15];
    const y = words[i - 2];
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    words[i] = (words[i - 16] + s0 + words[i - 7] + s1) | 0;
  }
  let a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i] + words[i]) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g; g = f; f = e; e = (d + t1) | 0; d = c; c = b; b = a; a = (t1 + t2) | 0;
  }
  state[0] += a; state[1] += b; state[2] += c; state[3] += d;
  state[4] += e; state[5] += f; state[6] += g; state[7] += h;
};

// The digest of an ASCII text as 8 words.
const digest = (text) => {
  const blocks = new Int32Array(((text.length + 8 >> 6) + 1) * 16);
  for (let i = 0; i < text.length; i++) blocks[i >> 2] |= text.charCodeAt(i) << (24 - (i % 4) * 8);
  blocks[text.length >> 2] |= 0x80 << (24 - (text.length % 4) * 8);
  blocks[blocks.length - 1] = text.length * 8;
  const state = START.slice();
  for (let i = 0; i < blocks.length; i += 16) compress(state, blocks.subarray(i, i + 16));
  return state;
};

// The number that gives SHA-256(seed || part || number) as many leading zero bits as the difficulty, at most 32.
const solvePart = (seed, part, difficulty) => {
  const block = new Int32Array(16); // 32 bytes seed, 1 byte part, 4 bytes number, then the padding
  const state = new Int32Array(8);
  block.set(seed);
  block[15] = 37 * 8;
  for (let number = 0; ; number++) {
    block[8] = (part << 24) | (number >>> 8);
    block[9] = (number << 24) | 0x800000;
    state.set(START);
    compress(state, block);
    if (Math.clz32(state[0]) >= difficulty) return number;
  }
};

const solve = ({ puzzle, difficulty, parts }) => {
  const seed = digest(puzzle);
  return Array.from({ length: parts }, (_, part) => solvePart(seed, part, difficulty)).join(".");
};

const solveIn = (field) => {
  const { puzzle, difficulty, parts } = field.dataset;
  const status = field.form.querySelector("[data-solving]");
  const worker = new Worker(document.currentScript.src);
  let isWaiting = false;
  const finish = (solution) => {
    worker.terminate();
    field.value = solution;
    field.form.removeEventListener("submit", wait);
    status.textContent = "";
    if (isWaiting) field.form.requestSubmit();
  };
  const wait = (event) => {
    event.preventDefault();
    isWaiting = true;
    status.textContent = status.dataset.solving;
  };
  field.form.addEventListener("submit", wait);
  worker.addEventListener("message", (event) => finish(event.data));
  worker.addEventListener("error", () => finish("")); // as without JavaScript
  worker.postMessage({ puzzle, difficulty: Number(difficulty), parts: Number(parts) });
};

if (typeof document === "undefined") {
  addEventListener("message", (event) => postMessage(solve(event.data)));
} else {
  for (const field of document.querySelectorAll("[data-puzzle]")) solveIn(field);
}
