// SPDX-License-Identifier: Apache-2.0
// The attention family written out, as plainly as the formulas: what the lab shows as scores, and checks the server's
// weights with. A matrix is a Float32Array, row by row.

// Numbers that look random and are the same for the same seed.
export function generator(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = state + 0x6d2b79f5 >>> 0;
    let t = Math.imul(state ^ state >>> 15, 1 | state);
    t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
    return ((t ^ t >>> 14) >>> 0) / 2 ** 32;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return {uniform, normal};
}

// The tokens of one head: [n, d].
//   random   each token by itself
//   groups   tokens of three kinds, alike inside a kind
//   path     each token is near the one before it
export function makeTokens(style, n, d, random) {
  const rows = new Float32Array(n * d);
  const centers = Array.from({length: 3}, () => Float32Array.from({length: d}, random.normal));
  for (let i = 0; i < n; ++i) {
    const center = centers[Math.floor(random.uniform() * 3)];
    for (let k = 0; k < d; ++k) {
      const noise = random.normal();
      if (style === 'groups') rows[i * d + k] = center[k] + 0.35 * noise;
      else if (style === 'path' && i > 0) rows[i * d + k] = 0.88 * rows[(i - 1) * d + k] + 0.47 * noise;
      else rows[i * d + k] = noise;
    }
  }
  return rows;
}

export const makeWeights = (rows, columns, random) =>
  Float32Array.from({length: rows * columns}, () => random.normal() / Math.sqrt(columns));

// a [n, k] times b [m, k] transposed: [n, m]
export function timesTransposed(a, b, k) {
  const n = a.length / k;
  const m = b.length / k;
  const out = new Float32Array(n * m);
  for (let i = 0; i < n; ++i) {
    for (let j = 0; j < m; ++j) {
      let sum = 0;
      for (let t = 0; t < k; ++t) sum += a[i * k + t] * b[j * k + t];
      out[i * m + j] = sum;
    }
  }
  return out;
}

// sin(p / base^(2i / d)) in column 2i, cos of the same in column 2i + 1
export function addSinusoidal(x, d) {
  return x.map((value, index) => {
    const p = Math.floor(index / d);
    const k = index % d;
    const angle = p / 10000 ** ((k - k % 2) / d);
    return value + (k % 2 ? Math.cos(angle) : Math.sin(angle));
  });
}

// Turns the pair (k, k + d / 2) of the token at p by p / base^(2k / d).
export function rotate(x, d) {
  const out = Float32Array.from(x);
  const half = d / 2;
  for (let start = 0; start < x.length; start += d) {
    for (let k = 0; k < half; ++k) {
      const angle = start / d / 10000 ** (2 * k / d);
      const [a, b] = [x[start + k], x[start + k + half]];
      out[start + k] = a * Math.cos(angle) - b * Math.sin(angle);
      out[start + k + half] = b * Math.cos(angle) + a * Math.sin(angle);
    }
  }
  return out;
}

// The slopes of the ALiBi paper: 2^(-8 (h + 1) / heads) for a power of two of heads; else those of the largest power of
// two below, and then every other one of twice that power.
export function alibiSlope(head, heads) {
  const power = 2 ** Math.floor(Math.log2(heads));
  return head < power ? 2 ** (-8 * (head + 1) / power) : 2 ** (-4 * (2 * (head - power) + 1) / power);
}

// score . tanh(query side + key side): [n, n]
function tanhScores(left, right, score) {
  const u = score.length;
  const n = left.length / u;
  const out = new Float32Array(n * n);
  for (let i = 0; i < n; ++i) {
    for (let j = 0; j < n; ++j) {
      let sum = 0;
      for (let t = 0; t < u; ++t) sum += score[t] * Math.tanh(left[i * u + t] + right[j * u + t]);
      out[i * n + j] = sum;
    }
  }
  return out;
}

// The columns [from, from + width) of a matrix with `columns`.
const slice = (x, columns, from, width) =>
  Float32Array.from({length: x.length / columns * width}, (_, i) => x[Math.floor(i / width) * columns + from + i % width]);

const elu = (x) => x > 0 ? x + 1 : Math.exp(x);
const scaled = (values, scale) => values.map((value) => value * scale);

// Scores of one head before masks, [n, keys]: how well a query fits a key. q, k [n, d].
const SCORES = {
  scaled_dot_product: ({q, k, d, scale}) => scaled(timesTransposed(q, k, d), scale),
  luong_dot: ({q, k, d}) => timesTransposed(q, k, d),
  luong_general: ({q, k, d, weights}) => timesTransposed(timesTransposed(q, transpose(weights.weight, d), d), k, d),
  luong_concat: ({q, k, d, weights}) => tanhScores(
      timesTransposed(q, slice(weights.weight, 2 * d, 0, d), d),
      timesTransposed(k, slice(weights.weight, 2 * d, d, d), d), weights.score_weight),
  additive: ({q, k, d, weights}) => tanhScores(timesTransposed(q, weights.query_weight, d),
                                               timesTransposed(k, weights.key_weight, d), weights.score_weight),
  linear: ({q, k, d}) => timesTransposed(q.map(elu), k.map(elu), d),
  linformer: ({q, k, d, scale, weights}) => {
    const keys = q.length / d;
    return scaled(timesTransposed(q, timesTransposed(weights.key_projection, transpose(k, d), keys), d), scale);
  },
};
for (const name of ['flash', 'local', 'strided', 'multi_head']) SCORES[name] = SCORES.scaled_dot_product;

// [rows, columns] to [columns, rows]
function transpose(x, columns) {
  const rows = x.length / columns;
  return Float32Array.from({length: x.length}, (_, i) => x[i % rows * columns + Math.floor(i / rows)]);
}

// Scores and weights of one head, each [n, columns]. NaN: the score of a key that is hidden from the query.
//   hidden(i, j)   whether key j is hidden from query i
//   slope          of ALiBi, or 0
export function scoresAndWeights({kind, slope, hidden, columns, ...head}) {
  const scores = SCORES[kind](head);
  const weights = new Float32Array(scores.length);
  for (let start = 0; start < scores.length; start += columns) {
    const i = start / columns;
    for (let j = 0; j < columns; ++j) {
      scores[start + j] = hidden(i, j) ? NaN : scores[start + j] - slope * Math.abs(i - j);
    }
    const row = scores.subarray(start, start + columns);
    const seen = [...row].filter((score) => !Number.isNaN(score));
    const most = Math.max(...seen);
    const part = kind === 'linear' ? (score) => score : (score) => Math.exp(score - most);
    const sum = seen.reduce((total, score) => total + part(score), 0);
    row.forEach((score, j) => { weights[start + j] = Number.isNaN(score) ? 0 : part(score) / sum; });
  }
  return {scores, weights};
}

// Queries and keys of head `at` of multi_head: [n, d] each.
export function project(x, hidden, d, at, weights) {
  const rows = (name) => weights[name].subarray(at * d * hidden, (at + 1) * d * hidden);
  return {q: timesTransposed(x, rows('query_weight'), hidden), k: timesTransposed(x, rows('key_weight'), hidden)};
}
