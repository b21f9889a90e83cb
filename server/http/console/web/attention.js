// SPDX-License-Identifier: Apache-2.0
// The attention explorer: a text, and which of its tokens look at which, in every layer and head.

import {h, bar, duration, field, notice, percent, replace, segmented, select, sizeCanvas, whole} from './dom.js';
import {call, floats, servingModels} from './connection.js';
import {ramp, seriesName} from './colors.js';
import {heatGrid, legend} from './heat_grid.js';
import {linesView} from './attention_view.js';

const EXAMPLES = [
  'The animal didn\'t cross the street because it was too tired.',
  'She poured water from the pitcher into the cup until it was full.',
  'The keys to the old cabinet are on the table.',
];
const THUMB = 84;  // pixels, at most

// The weights of one text: [layers, heads, tokens, tokens].
class Maps {
  constructor(tokens, layers, heads, values) {
    Object.assign(this, {tokens, layers, heads, values, size: tokens.length});
  }
  // Of a layer's place in `layers`: [tokens, tokens].
  of(place, head) {
    const area = this.size * this.size;
    const start = (place * this.heads + head) * area;
    return this.values.subarray(start, start + area);
  }
}

const nearest = (layer, layers) => Math.min(Math.max(layer, 0), layers - 1);

// The maps, and the model with the layers and heads that they show: another model may have taken its name since the page
// asked for its numbers.
async function fetchMaps(model, text, layer, signal) {
  const ask = (selection) => call('Encoder/Encode', {
    model: model.name,
    sequences: {sequences: [{text}]},
    outputs: {dtype: 'DTYPE_F16', token_strings: true, attention_weights: selection},
  }, signal);
  let layers = null;
  const answer = await ask({}).catch(async (error) => {
    if (error.status !== 400) throw error;
    // A long text: the weights of all layers exceed the server's limit.
    const known = (await servingModels()).find(({name}) => name === model.name) ?? model;
    layers = {all: known.layers, shown: [nearest(layer, known.layers)]};
    return ask({layers: layers.shown});
  });
  const [sequence] = answer.sequences;
  const [weights] = answer.attention_weights;
  const [places, heads] = weights.shape;
  layers ??= {all: places, shown: Array.from({length: places}, (_, i) => i)};
  const maps = new Maps(sequence.token_strings, layers.shown, heads, floats(weights));
  return {maps, model: {name: model.name, layers: layers.all, heads}, timings: answer.timings, truncated: sequence.truncated};
}

// What a head mostly does, in words: the strongest of a few patterns, if it has more than a third of the weight.
export function habitOf(map, tokens) {
  const n = tokens.length;
  const special = tokens.map((token) => /^(\[.*\]|<.*>)$/.test(token));
  const share = {'the token itself': 0, 'the previous token': 0, 'the next token': 0, 'special tokens': 0};
  for (let i = 0; i < n; ++i) {
    for (let j = 0; j < n; ++j) {
      const weight = map[i * n + j] / n;
      if (special[j] && i !== j) share['special tokens'] += weight;
      else if (j === i) share['the token itself'] += weight;
      else if (j === i - 1) share['the previous token'] += weight;
      else if (j === i + 1) share['the next token'] += weight;
    }
  }
  const [name, most] = Object.entries(share).sort((a, b) => b[1] - a[1])[0];
  return most > 0.34 ? {name, share: most} : {name: 'many tokens', share: 0};
}

class Explorer {
  constructor(root, parameters, remember) {
    this.remember = remember;
    this.text = parameters.text ?? EXAMPLES[0];
    this.wanted = parameters.model ?? '';
    this.layer = whole(parameters.layer, 0);
    this.heads = new Set((parameters.heads ?? '0').split(',').map((head) => whole(head, 0)));
    this.view = parameters.view === 'grid' ? 'grid' : 'lines';
    this.token = whole(parameters.token, null);
    this.build(root);
    this.start();
  }

  build(root) {
    this.input = h('textarea', {rows: 2, spellcheck: 'false', id: 'attention-text'}, this.text);
    this.models = h('span', {class: 'slot'});
    this.status = h('div', {class: 'status', 'aria-live': 'polite'});
    this.stage = h('div');
    const form = h('form', {
      class: 'card ask', onsubmit: (event) => {
        event.preventDefault();
        this.text = this.input.value;
        this.token = null;
        this.load();
      },
    }, h('div', {class: 'field grow'}, h('label', {for: 'attention-text'}, 'Text'), this.input),
    this.models, h('button', {class: 'primary', type: 'submit'}, 'Show attention'),
    h('div', {class: 'examples'}, h('span', {class: 'quiet'}, 'Try '), EXAMPLES.map((text) => h('button', {
      type: 'button', class: 'chip', onclick: () => {
        this.input.value = text;
        form.requestSubmit();
      },
    }, text))));
    this.input.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey) return;
      event.preventDefault();
      form.requestSubmit();
    });
    root.append(h('div', {class: 'head'}, h('h1', {}, 'Attention explorer'),
                  h('p', {class: 'quiet'}, 'Which token looks at which, in every layer and head of a model.')),
                form, this.status, this.stage);
  }

  async start() {
    try {
      const models = await servingModels();
      if (models.length === 0) {
        replace(this.status, notice('info', 'No model serves now.'));
        return;
      }
      this.chosen = models.find(({name}) => name === this.wanted) ?? models[0];
      if (models.length > 1) {
        replace(this.models, field('Model', select(models.map(({name}) => [name, name]), this.chosen.name, (name) => {
          this.chosen = models.find((model) => model.name === name);
          this.load();
        })));
      }
      await this.load();
    } catch (error) {
      replace(this.status, notice('error', error.message));
    }
  }

  // Asks the chosen model. Until its answer is there, the stage keeps the maps of the last one, with their model and layer.
  async load(wanted = this.layer) {
    if (!this.chosen) return;  // the models are not known yet, or there are none
    this.abort?.abort();
    this.abort = new AbortController();
    this.stage.classList.add('waiting');
    try {
      const {maps, model, timings, truncated} = await fetchMaps(this.chosen, this.text, wanted, this.abort.signal);
      Object.assign(this, {model, layer: nearest(wanted, model.layers), maps});
      this.heads = new Set([...this.heads].filter((head) => head < model.heads));
      if (this.heads.size === 0) this.heads.add(0);
      if (this.token >= maps.size) this.token = null;
      replace(this.status, h('p', {class: 'quiet'}, `${model.name}: ${maps.size} tokens, ${model.layers} layers × ${
        model.heads} heads; computed in ${duration(timings.compute_us)}, ${duration(timings.total_us)} in all.`),
              truncated && notice('warning', 'The text was too long, and was cut.'),
              maps.layers.length < model.layers && notice('info',
                'The weights of all layers together exceed the server\'s limit: each layer is asked for by itself.'));
      this.save();
      this.buildStage();
    } catch (error) {
      if (error.name === 'AbortError') return;
      replace(this.status, notice('error', error.message));
      if (this.layerPicker) this.layerPicker.value = String(this.layer);
    }
    this.stage.classList.remove('waiting');
  }

  save() {
    this.remember({
      model: this.model.name, text: this.text, layer: this.layer, heads: [...this.heads].join(','), view: this.view,
      token: this.token,
    });
  }

  get place() { return this.maps.layers.indexOf(this.layer); }

  // Goes to a layer, which may have to be asked for.
  setLayer(layer) {
    const wanted = (layer + this.model.layers) % this.model.layers;
    if (!this.maps.layers.includes(wanted)) return this.load(wanted);
    this.layer = wanted;
    this.save();
    this.drawAll();
    return undefined;
  }

  setHeads(heads) {
    this.heads = new Set(heads);
    this.save();
    this.drawAll();
  }

  buildStage() {
    this.layerPicker = select(Array.from({length: this.model.layers}, (_, i) => [String(i), `Layer ${i}`]),
                              String(this.layer), (value) => this.setLayer(Number(value)));
    this.headChips = h('div', {class: 'heads', role: 'group', 'aria-label': 'Heads'});
    this.drawing = h('div', {class: 'drawing'});
    this.detail = h('aside', {class: 'card detail', 'aria-label': 'The chosen token'});
    this.overview = h('div', {class: 'overview-grid'});
    const step = (by, name) => h('button', {type: 'button', class: 'icon', 'aria-label': name, title: name,
                                            onclick: () => this.setLayer(this.layer + by)}, by < 0 ? '‹' : '›');
    replace(this.stage,
      h('div', {class: 'toolbar card'},
        h('div', {class: 'stepper'}, step(-1, 'Previous layer'), field('Layer', this.layerPicker), step(1, 'Next layer')),
        this.headChips,
        segmented('View', [['lines', 'Lines'], ['grid', 'Grid']], this.view, (view) => {
          this.view = view;
          this.save();
          this.drawAll();
        })),
      h('div', {class: 'explorer'}, h('section', {class: 'card', 'aria-label': 'Attention'}, this.drawing), this.detail),
      h('section', {class: 'card'}, h('h2', {}, 'All layers and heads'),
        h('p', {class: 'quiet'}, 'Each small map is a head: rows look, columns are looked at. Choose one with a click, ' +
          'or more of one layer with Ctrl.'),
        this.overview));
    this.buildOverview();
    this.drawAll();
  }

  buildOverview() {
    const {maps, model} = this;
    const color = ramp('amount');
    this.thumbs = [];
    const table = h('div', {class: 'thumbs', role: 'group', 'aria-label': 'All heads', onkeydown: (event) => this.moveThumb(event)});
    table.style.setProperty('--heads', model.heads);
    table.append(h('span'), ...Array.from({length: model.heads}, (_, head) => h('span', {class: 'thumb-head'}, String(head))));
    maps.layers.forEach((layer, place) => {
      table.append(h('span', {class: 'thumb-layer'}, `L${layer}`));
      for (let head = 0; head < model.heads; ++head) {
        const map = maps.of(place, head);
        const habit = habitOf(map, maps.tokens);
        const name = `Layer ${layer}, head ${head}: mostly ${habit.name}`;
        const canvas = h('canvas', {'aria-hidden': 'true'});
        const button = h('button', {
          type: 'button', class: 'thumb', title: name, 'aria-label': name, tabindex: '-1',
          onclick: (event) => this.pickThumb(layer, head, event.ctrlKey || event.metaKey || event.shiftKey),
        }, canvas);
        button.dataset.layer = layer;
        button.dataset.head = head;
        drawThumb(canvas, map, maps.size, color);
        this.thumbs.push(button);
        table.append(button);
      }
    });
    replace(this.overview, table);
    addEventListener('recolor', this.recolor = () => {
      if (!table.isConnected) return removeEventListener('recolor', this.recolor);
      const now = ramp('amount');
      return this.thumbs.forEach(({dataset, firstChild}) =>
        drawThumb(firstChild, maps.of(maps.layers.indexOf(Number(dataset.layer)), Number(dataset.head)), maps.size, now));
    });
  }

  pickThumb(layer, head, add) {
    const heads = new Set(add && layer === this.layer ? this.heads : []);
    if (heads.has(head) && heads.size > 1) heads.delete(head);
    else heads.add(head);
    this.layer = layer;
    this.setHeads(heads);
  }

  moveThumb(event) {
    const by = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.model.heads, ArrowDown: this.model.heads}[event.key];
    const now = this.thumbs.indexOf(document.activeElement);
    const next = this.thumbs[now + by];
    if (by === undefined || now < 0 || !next) return;
    event.preventDefault();
    next.focus();
  }

  drawAll() {
    this.layerPicker.value = String(this.layer);
    this.drawChips();
    for (const thumb of this.thumbs) {
      const chosen = Number(thumb.dataset.layer) === this.layer && this.heads.has(Number(thumb.dataset.head));
      thumb.setAttribute('aria-pressed', String(chosen));
      thumb.tabIndex = chosen ? 0 : -1;
    }
    if (this.view === 'lines') this.drawLines();
    else this.drawGrids();
    this.drawDetail(this.token);
  }

  drawChips() {
    const chips = Array.from({length: this.model.heads}, (_, head) => h('button', {
      type: 'button', class: 'head-chip', 'aria-pressed': String(this.heads.has(head)), 'aria-label': `Head ${head}`,
      title: `Head ${head}: mostly ${habitOf(this.maps.of(this.place, head), this.maps.tokens).name}`,
      style: {'--chip': `var(${seriesName(head)})`},
      onclick: () => {
        const heads = new Set(this.heads);
        if (!heads.delete(head)) heads.add(head);
        this.setHeads(heads.size ? heads : [head]);
        this.headChips.children[head].focus();
      },
    }, String(head)));
    const all = this.heads.size === this.model.heads;
    replace(this.headChips, chips, h('button', {
      type: 'button', class: 'chip', onclick: () => this.setHeads(all ? [0] : Array.from({length: this.model.heads}, (_, i) => i)),
    }, all ? 'One' : 'All'));
  }

  chosenMaps() {
    return [...this.heads].sort((a, b) => a - b).map(
        (head) => ({head, color: seriesName(head), map: this.maps.of(this.place, head)}));
  }

  drawLines() {
    replace(this.drawing, linesView({
      tokens: this.maps.tokens, maps: this.chosenMaps(), token: this.token,
      onpoint: (token) => this.drawDetail(token ?? this.token),
      onpick: (token) => {
        this.token = token;
        this.save();
        this.drawDetail(token);
      },
    }));
  }

  drawGrids() {
    const {tokens} = this.maps;
    const grids = this.chosenMaps().map(({head, map}) => {
      const habit = habitOf(map, tokens);
      return h('div', {class: 'grid-of-head'},
               h('h2', {}, `Head ${head}`, h('span', {class: 'quiet'}, ` mostly ${habit.name}`)),
               heatGrid({
                 label: `Attention weights of layer ${this.layer}, head ${head}`,
                 rows: tokens, columns: tokens, values: map, low: 0, high: 1, hideZeros: true, format: (value) => value.toFixed(2),
                 describe: (i, j, value) => `${tokens[i]} looks at ${tokens[j]} with ${percent(value)}`,
                 onpoint: (i) => this.drawDetail(i < 0 ? this.token : i),
                 onpick: (i) => {
                   this.token = i;
                   this.save();
                   this.drawDetail(i);
                 },
               }));
    });
    replace(this.drawing, h('div', {class: `grids of-${Math.min(grids.length, 3)}`}, grids), legend('amount', 0, 1, percent));
  }

  // What the token looks at, and what looks at it: the mean of the chosen heads.
  drawDetail(token) {
    const {tokens, size} = this.maps;
    const chosen = this.chosenMaps();
    const mean = (i, j) => chosen.reduce((sum, {map}) => sum + map[i * size + j], 0) / chosen.length;
    const heading = chosen.length === 1 ? `Layer ${this.layer}, head ${chosen[0].head}`
                                        : `Layer ${this.layer}, mean of ${chosen.length} heads`;
    const list = (weightOf) => h('ol', {class: 'bars'}, tokens.map((name, i) => ({name, weight: weightOf(i)}))
      .sort((a, b) => b.weight - a.weight).slice(0, 6).map(({name, weight}) => h('li', {},
        h('code', {}, name), bar(weight), h('b', {}, percent(weight)))));
    if (token === null) {
      const habits = chosen.map(({head, map}) => {
        const habit = habitOf(map, tokens);
        return h('li', {}, h('i', {class: 'dot', style: {background: `var(${seriesName(head)})`}}),
                 `Head ${head}: mostly ${habit.name}`, habit.share > 0 && h('b', {}, percent(habit.share)));
      });
      replace(this.detail, h('h2', {}, heading), h('ul', {class: 'habits'}, habits),
              h('p', {class: 'quiet'}, 'Point at a token, or use the arrow keys, to see what it looks at.'));
      return;
    }
    replace(this.detail, h('h2', {}, h('code', {}, tokens[token])), h('p', {class: 'quiet'}, heading),
            h('h3', {}, 'looks at'), list((j) => mean(token, j)),
            h('h3', {}, 'is looked at by'), list((i) => mean(i, token)));
  }
}

function drawThumb(canvas, map, size, color) {
  const context = sizeCanvas(canvas, THUMB, THUMB);
  const pixels = new ImageData(size, size);
  // Not spread: a map has more values than a function takes arguments.
  const most = map.reduce((largest, weight) => Math.max(largest, weight), 1e-6);
  map.forEach((weight, i) => pixels.data.set([...color(Math.sqrt(weight / most)), 255], i * 4));
  const small = h('canvas', {width: size, height: size});
  small.getContext('2d').putImageData(pixels, 0, 0);
  context.imageSmoothingEnabled = size > THUMB;
  context.drawImage(small, 0, 0, THUMB, THUMB);
  canvas.style.width = '100%';
  canvas.style.height = 'auto';
}

export function mount(root, parameters, remember) {
  const explorer = new Explorer(root, parameters, remember);
  return () => explorer.abort?.abort();
}
