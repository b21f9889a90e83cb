// SPDX-License-Identifier: Apache-2.0
// The attention lab: a kind of attention, a mask, positions; its scores, its weights, what it costs, its formula.

import {h, duration, field, notice, number, percent, replace, segmented, select} from './dom.js';
import {call, floats, tensor} from './connection.js';
import {logChart} from './charts.js';
import {heatGrid, legend} from './heat_grid.js';
import {addSinusoidal, alibiSlope, generator, makeTokens, makeWeights, project, rotate, scoresAndWeights} from './lab_math.js';

const MASKS = [['none', 'None'], ['causal', 'Causal'], ['padding', 'Padding'], ['drawn', 'Drawn']];
const POSITIONS = [['none', 'None'], ['sinusoidal', 'Sinusoidal'], ['rotary', 'Rotary'], ['alibi', 'ALiBi']];
const TOKENS = [['groups', 'in groups'], ['path', 'a path'], ['random', 'random']];
const UNITS = 16;  // of kinds that score with tanh

// What each kind takes, its field of AttendRequest, and the tensors that it brings. `d` is a head's width.
const all = {
  masks: ['none', 'causal', 'padding', 'drawn'],
  positions: ['none', 'sinusoidal', 'rotary', 'alibi'],
  scale: false,
  tensors: () => ({}),
};
const PROJECTIONS = ['query_weight', 'key_weight', 'value_weight', 'output_weight'];
const KINDS = {
  scaled_dot_product: {...all, scale: true, message: () => ({scaled_dot_product: {algorithm: 'ATTENTION_ALGORITHM_SCORES'}})},
  multi_head: {
    ...all, scale: true, positions: ['none', 'sinusoidal', 'alibi'],
    tensors: ({hidden}) => Object.fromEntries(PROJECTIONS.map((name) => [name, [hidden, hidden]])),
    message: ({heads, tensors}) => ({multi_head: {heads, ...tensors}}),
  },
  additive: {
    ...all, tensors: ({d}) => ({query_weight: [UNITS, d], key_weight: [UNITS, d], score_weight: [UNITS]}),
    message: ({tensors}) => ({additive: tensors}),
  },
  luong_dot: {...all, message: () => ({luong: {score: 'LUONG_SCORE_DOT'}})},
  luong_general: {
    ...all, tensors: ({d}) => ({weight: [d, d]}),
    message: ({tensors}) => ({luong: {score: 'LUONG_SCORE_GENERAL', ...tensors}}),
  },
  luong_concat: {
    ...all, tensors: ({d}) => ({weight: [UNITS, 2 * d], score_weight: [UNITS]}),
    message: ({tensors}) => ({luong: {score: 'LUONG_SCORE_CONCAT', ...tensors}}),
  },
  local: {...all, scale: true, message: ({window}) => ({local: {window}})},
  strided: {...all, scale: true, message: ({block}) => ({strided: {block}})},
  linear: {...all, masks: ['none', 'causal', 'padding'], positions: ['none', 'sinusoidal', 'rotary'],
           message: () => ({linear: {feature_map: 'FEATURE_MAP_ELU_PLUS_ONE'}})},
  linformer: {
    ...all, scale: true, masks: ['none'], positions: ['none', 'sinusoidal', 'rotary'],
    tensors: ({n, projected}) => ({key_projection: [projected, n]}), message: ({tensors}) => ({linformer: tensors}),
  },
};

const DEFAULTS = {kind: 'scaled_dot_product', mask: 'none', positions: 'none', tokens: 'groups', n: 12, d: 16, heads: 2,
                  window: 2, block: 4, projected: 4, sharpness: 1, seed: 1, head: 0, drawn: ''};
const NUMBERS = {n: [2, 32], d: [4, 64], heads: [1, 4], window: [0, 31], block: [1, 32], projected: [1, 32], sharpness: [0.1, 8],
                 seed: [1, 9999], head: [0, 3]};

// The settings of an address, which people may have written by hand.
function settingsFrom(parameters) {
  const settings = {...DEFAULTS};
  for (const [name, value] of Object.entries(parameters)) {
    if (!Object.hasOwn(DEFAULTS, name)) continue;
    if (!Object.hasOwn(NUMBERS, name)) {
      settings[name] = value;
    } else if (Number.isFinite(Number(value))) {
      const [low, high] = NUMBERS[name];
      const inside = Math.min(Math.max(Number(value), low), high);
      settings[name] = name === 'sharpness' ? inside : Math.round(inside);
    }
  }
  if (!Object.hasOwn(KINDS, settings.kind)) settings.kind = DEFAULTS.kind;
  settings.d -= settings.d % 2;
  if (!TOKENS.some(([style]) => style === settings.tokens)) settings.tokens = DEFAULTS.tokens;
  const cells = settings.drawn.split('.').map((cell) => parseInt(cell, 36)).filter((cell) => cell >= 0 && cell < settings.n ** 2);
  settings.drawn = cells.map((cell) => cell.toString(36)).join('.');
  return fitting(settings);
}

// With what the kind does not take left out.
function fitting(settings) {
  const {masks, positions} = KINDS[settings.kind];
  return {
    ...settings,
    mask: masks.includes(settings.mask) ? settings.mask : 'none',
    positions: positions.includes(settings.positions) ? settings.positions : 'none',
    head: Math.min(settings.head, settings.heads - 1),
  };
}

// Tensors and request of an experiment. One sequence, every head with its own tokens.
export function experiment(settings, wantWeights = true) {
  const {kind, n, d, heads} = settings;
  const random = generator(settings.seed);
  const own = kind === 'multi_head';  // it makes the heads itself
  const hidden = own ? d * heads : d;
  const parts = own ? [makeTokens(settings.tokens, n, hidden, random)]
                    : Array.from({length: heads}, () => makeTokens(settings.tokens, n, d, random));
  const x = Float32Array.from(parts.flatMap((part) => [...part]));
  const weights = {};
  const tensors = {};
  for (const [name, shape] of Object.entries(KINDS[kind].tensors({...settings, hidden}))) {
    weights[name] = makeWeights(shape[1] ? shape[0] : 1, shape[1] ?? shape[0], random);
    tensors[name] = tensor(weights[name], shape);
  }
  const hides = hiddenKeys(settings);
  const request = {
    query: tensor(x, own ? [1, n, hidden] : [1, heads, n, d]),
    weights: wantWeights ? 'ATTENTION_WEIGHTS_PER_HEAD' : 'ATTENTION_WEIGHTS_NONE',
    causal: settings.mask === 'causal',
    ...KINDS[kind].message({...settings, tensors}),
  };
  const scale = settings.sharpness / Math.sqrt(d);
  if (KINDS[kind].scale) request.scale = scale;
  if (settings.mask === 'padding') {
    request.key_padding_mask = tensor(Uint8Array.from({length: n}, (_, j) => hides.padding(j) ? 0 : 1), [1, n]);
  }
  if (settings.mask === 'drawn') {
    request.mask = tensor(Uint8Array.from({length: n * n}, (_, i) => hides.drawn.has(i) ? 0 : 1), [n, n]);
  }
  if (settings.positions === 'sinusoidal') request.added = {sinusoidal: {}};
  if (settings.positions === 'rotary') request.rotary = {};
  if (settings.positions === 'alibi') request.alibi = {};
  return {request, parts, weights, hides, scale, hidden};
}

// Which keys are hidden, and by what.
function hiddenKeys({kind, mask, n, window, block, drawn}) {
  const cells = new Set(drawn.split('.').filter(Boolean).map((cell) => parseInt(cell, 36)));
  const keptKeys = Math.max(1, Math.ceil(n * 2 / 3));
  const padding = (j) => j >= keptKeys;
  const blockOf = (i) => Math.floor(i / block);
  const lastOfBlock = (j) => j % block === block - 1;  // a block that is not full has none
  return {
    padding, drawn: cells,
    at: (i, j) => (mask === 'causal' && j > i) || (mask === 'padding' && padding(j)) || (mask === 'drawn' && cells.has(i * n + j)) ||
      (kind === 'local' && Math.abs(i - j) > window) ||
      (kind === 'strided' && blockOf(i) !== blockOf(j) && !lastOfBlock(j)),
  };
}

// The same experiment computed in the page, for one head.
function compute(settings, made, head) {
  const {kind, n, d, heads, positions} = settings;
  let q = made.parts[Math.min(head, made.parts.length - 1)];
  if (positions === 'sinusoidal') q = addSinusoidal(q, made.hidden);
  if (positions === 'rotary') q = rotate(q, d);
  const projected = kind === 'multi_head' ? project(q, made.hidden, d, head, made.weights) : {q, k: q};
  return scoresAndWeights({
    ...projected, kind, d, scale: made.scale, weights: made.weights, columns: kind === 'linformer' ? settings.projected : n,
    slope: positions === 'alibi' ? alibiSlope(head, heads) : 0,
    hidden: kind === 'linformer' ? () => false : made.hides.at,
  });
}

// A formula in the server's plain words as elements: x^2 raised, x_h lowered, Greek letters and roots as signs.
function formula(text) {
  const signs = text.replaceAll('sqrt(d)', '√d').replaceAll('sqrt(n)', '√n').replaceAll('phi', 'φ').replaceAll('<=', '≤')
      .replaceAll(' . ', ' · ');
  return signs.split(/(\^\w+|_\w+(?:,\w+)?)/).filter(Boolean).map((part) =>
    part[0] === '^' ? h('sup', {}, part.slice(1)) : part[0] === '_' ? h('sub', {}, part.slice(1)) : part);
}

class Lab {
  constructor(root, parameters, remember) {
    this.remember = remember;
    this.settings = settingsFrom(parameters);
    this.infos = {};
    this.controls = h('form', {class: 'card controls', 'aria-label': 'Settings', onsubmit: (event) => event.preventDefault()});
    this.problem = h('div', {'aria-live': 'polite'});
    this.about = h('section', {class: 'card about'});
    this.pictures = h('div', {class: 'pictures'});
    this.cost = h('section', {class: 'card'});
    root.append(h('div', {class: 'head'}, h('h1', {}, 'Attention lab'),
                  h('p', {class: 'quiet'}, 'The attention family on small tensors: the server computes, the page checks.')),
                h('div', {class: 'lab-columns'}, this.controls,
                  h('div', {class: 'lab-results'}, this.about, this.problem, this.pictures, this.cost)));
    this.start();
  }

  async start() {
    try {
      const {kinds} = await call('Attention/ListAttention');
      this.infos = Object.fromEntries(kinds.map((info) => [info.name, info]));
      this.buildControls();
      this.run();
    } catch (error) {
      replace(this.problem, error.status === 404 ? notice('info', 'The attention service is off on this server (--attention=off).')
                                                 : notice('error', error.message));
    }
  }

  change(values) {
    this.settings = fitting({...this.settings, ...values});
    const changed = Object.entries(this.settings).filter(([name, value]) => value !== DEFAULTS[name]);
    this.remember(Object.fromEntries(changed));
    if (['kind', 'mask', 'seed'].some((name) => name in values)) this.buildControls();
    this.run();
  }

  buildControls() {
    const {settings} = this;
    const kind = KINDS[settings.kind];
    const focused = document.activeElement?.id;
    const among = (name, choices, allowed) => segmented(name, choices.filter(([key]) => allowed.includes(key)), settings[name],
                                                        (value) => this.change({[name]: value}));
    const group = (title, control) => h('div', {class: 'field'}, h('span', {class: 'label'}, title), control);
    replace(this.controls,
      field('Kind', this.kindPicker()),
      group('Mask', among('mask', MASKS, kind.masks)),
      settings.mask === 'drawn' ? h('p', {class: 'hint'}, 'Click cells of the weights to hide or show them. ',
                                    h('button', {type: 'button', class: 'chip', onclick: () => this.change({drawn: ''})}, 'Show all')) : null,
      settings.kind === 'local' ? this.slider('window', 'Window, tokens on each side') : null,
      settings.kind === 'strided' ? this.slider('block', 'Block, tokens') : null,
      settings.kind === 'linformer' ? this.slider('projected', 'Projected keys') : null,
      group('Positions', among('positions', POSITIONS, kind.positions)),
      kind.scale ? this.slider('sharpness', 'Scale, times 1/√d', 0.1) : null,
      h('hr'),
      group('Tokens are', segmented('Tokens are', TOKENS, settings.tokens, (tokens) => this.change({tokens}))),
      this.slider('n', 'Tokens'), this.slider('d', 'Width of a head', 2), this.slider('heads', 'Heads'),
      h('div', {class: 'field inline'}, h('span', {class: 'label'}, `Seed ${settings.seed}`),
        h('button', {type: 'button', onclick: () => this.change({seed: settings.seed % 9999 + 1})}, 'Other numbers')));
    if (focused) document.getElementById(focused)?.focus();
  }

  kindPicker() {
    const names = Object.keys(KINDS).filter((name) => name in this.infos);
    const picker = select(names.map((name) => [name, this.infos[name].title]), this.settings.kind, (kind) => this.change({kind}));
    picker.id = 'lab-kind';
    return picker;
  }

  slider(name, title, step = 1) {
    const [low, high] = NUMBERS[name];
    const value = h('output', {}, String(this.settings[name]));
    const input = h('input', {type: 'range', min: low, max: high, step, id: `lab-${name}`, oninput: () => {
      value.textContent = input.value;
      this.change({[name]: Number(input.value)});
    }});
    input.value = this.settings[name];
    return h('div', {class: 'field'}, h('label', {for: input.id}, title, value), input);
  }

  async run() {
    const turn = this.turn = (this.turn ?? 0) + 1;
    const settings = {...this.settings};
    const made = experiment(settings);
    try {
      const answer = await call('Attention/Attend', made.request);
      if (turn !== this.turn) return;
      replace(this.problem);
      this.draw(settings, made, answer);
    } catch (error) {
      if (turn === this.turn) replace(this.problem, notice('error', error.message));
    }
  }

  draw(settings, made, answer) {
    const info = this.infos[settings.kind];
    const columns = settings.kind === 'linformer' ? settings.projected : settings.n;
    const area = settings.n * columns;
    const served = floats(answer.weights).subarray(settings.head * area, (settings.head + 1) * area);
    const {scores, weights} = compute(settings, made, settings.head);
    const difference = served.reduce((most, weight, i) => Math.max(most, Math.abs(weight - weights[i])), 0);
    replace(this.about, h('h2', {}, info.title), h('p', {class: 'formula'}, formula(info.formula)), h('p', {}, info.use));
    const shown = served.map((weight, i) => Number.isNaN(scores[i]) ? NaN : weight);
    const known = scores.filter((score) => !Number.isNaN(score));
    const reach = Math.max(...known.map(Math.abs), 1e-6);
    const names = Array.from({length: settings.n}, (_, i) => String(i + 1));
    const keys = Array.from({length: columns}, (_, i) => String(i + 1));
    const key = settings.kind === 'linformer' ? 'projected key' : 'key';
    const toggle = settings.mask !== 'drawn' ? undefined : (i, j) => {
      const cell = i * settings.n + j;
      if (!made.hides.drawn.delete(cell)) made.hides.drawn.add(cell);
      this.change({drawn: [...made.hides.drawn].map((at) => at.toString(36)).join('.')});
    };
    const picture = (title, note, values, colors, low, high, format, what) => h('section', {class: 'card picture'},
      h('h3', {}, title, h('span', {class: 'quiet'}, ` ${note}`)),
      heatGrid({label: title, rows: names, columns: keys, values, colors, low, high, format, maxCell: 34, onpick: toggle,
                hideZeros: colors === 'amount',
                describe: (i, j, value) => Number.isNaN(value) ? `Query ${i + 1} does not see ${key} ${j + 1}`
                                                               : `Query ${i + 1}, ${key} ${j + 1}: ${what} ${number(value)}`}),
      legend(colors, low, high, (value) => number(value, 2)));
    const heads = Array.from({length: settings.heads}, (_, i) => [i, `Head ${i + 1}`]);
    const picker = heads.length > 1 && segmented('Head', heads, settings.head, (head) => this.change({head}));
    const linear = settings.kind === 'linear';
    replace(this.pictures, picker,
      picture('Scores', linear ? 'φ(q) · φ(k)' : 'how well a query fits a key', scores, 'signed', -reach, reach,
              (value) => value.toFixed(1), 'score'),
      picture('Weights', linear ? 'scores divided by the sum of their row' : 'the softmax of each row', shown, 'amount',
              0, 1, (value) => value.toFixed(2), 'weight'));
    this.drawCost(settings, info, answer, known.length, area, difference);
  }

  drawCost(settings, info, answer, seen, area, difference) {
    const chart = h('div');
    const measure = h('button', {type: 'button', onclick: () => this.measure(chart, measure)}, 'Measure it for longer texts');
    const fact = (name, value) => h('div', {}, h('dt', {}, name), h('dd', {}, value));
    replace(this.cost, h('h2', {}, 'Cost'), h('dl', {class: 'facts'},
      fact('time', formula(info.time)), fact('memory', formula(info.memory)), fact('pairs scored', `${seen} of ${area}, ${percent(seen / area)}`),
      fact('computed in', duration(answer.timings.compute_us)),
      fact('server and page differ by', difference === 0 ? '0' : difference.toExponential(1))),
    difference > 1e-4 ? notice('warning', 'The weights of the server are not those that this page computes.') : null, measure, chart);
  }

  // Times of the kind beside those of scaled dot-product attention, the best of three each.
  async measure(place, button) {
    button.disabled = true;
    const lengths = [64, 128, 256, 512, 1024];
    const kinds = this.settings.kind === 'scaled_dot_product' ? ['scaled_dot_product'] : [this.settings.kind, 'scaled_dot_product'];
    const series = [];
    try {
      for (const kind of kinds) {
        const points = [];
        for (const n of lengths) {
          replace(place, h('p', {class: 'quiet'}, `Measuring ${this.infos[kind].title} at ${n} tokens…`));
          const plain = {heads: 1, d: 32, mask: 'none', positions: 'none', projected: 32};
          const {request} = experiment({...this.settings, ...plain, kind, n}, false);
          const times = [];
          for (let turn = 0; turn < 3; ++turn) times.push((await call('Attention/Attend', request)).timings.compute_us);
          points.push([n, Math.max(1, Math.min(...times))]);
        }
        series.push({name: this.infos[kind].title, points});
      }
      replace(place, logChart({
        title: 'Time of one head of width 32', xName: 'tokens', yName: 'time', series, xFormat: String, yFormat: duration,
      }));
    } catch (error) {
      replace(place, notice('error', error.message));
    }
    button.disabled = false;
  }
}

export function mount(root, parameters, remember) {
  const lab = new Lab(root, parameters, remember);
  return () => { lab.turn = NaN; };
}
