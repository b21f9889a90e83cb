// SPDX-License-Identifier: Apache-2.0
// Tasks of the playground whose outputs belong to tokens: words for a mask, labels of tokens, sparse vectors.

import {h, barList, notice, number, percent} from './dom.js';
import {floats} from './connection.js';
import {seriesName} from './colors.js';
import {heatGrid, legend} from './heat_grid.js';

const WORDS = 5;      // for a mask
const WEIGHTS = 256;  // of a sparse vector, the largest
const SHOWN = 12;     // of these in a list
const OUTSIDE = 'O';  // the label of tokens that are no entity

const sequencesOf = (texts) => ({sequences: texts.map((text) => ({text}))});

export const TOKEN_TASKS = {
  mask: {
    title: 'Fill mask', fields: [['texts', 'Texts with a mask, one a line', 4]], fits: (model) => model.tasks.includes('fill_mask'),
    missing: 'No model here fills masks. A folder saved from transformers\' ForMaskedLM does.',
    example: {texts: 'Paris is the [MASK] of France.\nThe dog [MASK] all night.'},
    request: (model, {texts}) =>
      ({model: model.name, sequences: sequencesOf(texts), outputs: {fill_mask: {top_k: WORDS}, token_strings: true}}),
    draw: drawMasks,
  },
  tokens: {
    title: 'Label tokens', fields: [['texts', 'Texts, one a line', 4]], fits: (model) => model.token_labels.length > 0,
    missing: 'No model here labels tokens. A folder saved from transformers\' ForTokenClassification does.',
    example: {texts: 'Angela Merkel was born in Hamburg.\nGoogle opened an office in Zurich.'},
    request: (model, {texts}) =>
      ({model: model.name, sequences: sequencesOf(texts), outputs: {token_scores: {}, token_strings: true}}),
    draw: drawTokenLabels,
  },
  sparse: {
    title: 'Sparse', fields: [['texts', 'Texts, one a line', 4]], fits: (model) => model.tasks.includes('sparse'),
    missing: 'No model here makes sparse vectors. SPLADE and BGE-M3 do.',
    example: {texts: 'How do plants get their energy?\nPhotosynthesis turns light into chemical energy.\nPrices fell for the third month.'},
    request: (model, {texts}) =>
      ({model: model.name, sequences: sequencesOf(texts), outputs: {sparse: {top_k: WEIGHTS}, token_strings: true}}),
    draw: drawSparse,
  },
};

function drawMasks(model, {texts}, answer) {
  const {scores: tensor, token_strings: words} = answer.fill_mask;
  const scores = floats(tensor);
  const size = tensor.shape[1];
  let start = 0;
  const list = () => {
    const entries = Array.from({length: size}, (_, i) => [words[start + i], scores[start + i], percent(scores[start + i])]);
    start += size;
    return barList(entries, 0, 1);
  };
  return texts.map((text, i) => {
    const masks = answer.sequences[i].mask_tokens;
    return h('section', {}, h('h2', {}, text),
             masks.length === 0 && notice('info', 'No mask here: BERT\'s tokenizers write [MASK], RoBERTa\'s <mask>.'),
             masks.flatMap((_, mask) => [masks.length > 1 && h('h3', {}, `Mask ${mask + 1}`), list()]));
  });
}

// "PER" of "B-PER": the beginning and the inside of an entity have one colour.
const entityOf = (label) => label.replace(/^[BIESLU]-/, '');

function drawTokenLabels(model, {texts}, answer) {
  const scores = floats(answer.token_scores);
  const labels = model.token_labels;
  const entities = [...new Set(labels.filter((label) => label !== OUTSIDE).map(entityOf))];
  let start = 0;
  return texts.map((text, i) => {
    const tokens = answer.sequences[i].token_strings;
    const values = scores.subarray(start, start += tokens.length * labels.length);
    const tagged = tokens.map((token, at) => {
      const row = values.subarray(at * labels.length, (at + 1) * labels.length);
      const score = Math.max(...row);
      const label = labels[row.indexOf(score)];
      if (label === OUTSIDE) return h('li', {}, h('code', {}, token), h('span', {}, '–'));
      return h('li', {class: 'entity', style: {'--tag': `var(${seriesName(entities.indexOf(entityOf(label)))})`}},
               h('code', {}, token), h('span', {}, `${label} ${percent(score)}`));
    });
    return h('section', {}, h('h2', {}, text), h('ol', {class: 'tagged'}, tagged),
             h('details', {}, h('summary', {}, 'All scores'),
               heatGrid({label: `Scores of the labels, for “${text}”`, rows: tokens, columns: labels, values, low: 0, high: 1, maxCell: 40,
                         format: (value) => value.toFixed(2), hideZeros: true,
                         describe: (token, label, value) => `${tokens[token]}, ${labels[label]}: ${percent(value)}`})));
  });
}

// Id to {name, weight}, of each text.
function sparseVectors({sparse, sequences}) {
  const weights = floats(sparse.weights);
  let at = 0;
  return sequences.map(({sparse_weights: size}) => {
    const vector = new Map();
    for (const end = at + size; at < end; ++at) {
      vector.set(sparse.ids[at], {name: sparse.token_strings[at] || `#${sparse.ids[at]}`, weight: weights[at]});
    }
    return vector;
  });
}

// [[name, product of the two weights], ...] of the tokens that both have, the largest first.
const sharedTokens = (a, b) => [...a].filter(([id]) => b.has(id)).map(([id, {name, weight}]) => [name, weight * b.get(id).weight])
  .sort((one, other) => other[1] - one[1]);

function drawSparse(model, {texts}, answer) {
  const vectors = sparseVectors(answer);
  const high = vectors.reduce((most, vector) => Math.max(most, ...[...vector.values()].map(({weight}) => weight)), 0);
  const lists = vectors.map((vector, i) => {
    const largest = [...vector.values()].sort((a, b) => b.weight - a.weight).slice(0, SHOWN);
    const all = vector.size === WEIGHTS ? `The ${WEIGHTS} largest weights` : `${vector.size} weights`;
    return h('section', {}, h('h2', {}, texts.length > 1 ? `${i + 1}. ${texts[i]}` : texts[i]),
             h('p', {class: 'quiet'}, vector.size > SHOWN ? `${all}, of which these are the first ${SHOWN}.` : `${all}.`),
             barList(largest.map(({name, weight}) => [name, weight, number(weight)]), 0, high));
  });
  return texts.length > 1 ? [...sharedGrid(texts, vectors), ...lists] : lists;
}

function sharedGrid(texts, vectors) {
  const pairs = vectors.flatMap((a) => vectors.map((b) => sharedTokens(a, b)));
  const values = Float32Array.from(pairs, (tokens) => tokens.reduce((sum, [, product]) => sum + product, 0));
  const names = texts.map((_, i) => String(i + 1));
  const high = values.reduce((most, value) => Math.max(most, value), 0);
  const describe = (i, j, value) => {
    const most = pairs[i * texts.length + j].slice(0, 3).map(([name]) => name);
    return `“${texts[i]}” and “${texts[j]}”: ${number(value)}${most.length ? `, most of it by ${most.join(', ')}` : ''}`;
  };
  return [h('h2', {}, 'Products of the vectors'),
          heatGrid({label: 'Products of the sparse vectors', rows: names, columns: names, values, low: 0, high, maxCell: 64,
                    format: (value) => number(value, 2), describe}),
          legend('amount', 0, high, (value) => number(value, 2))];
}
